"""Hits and named lists as files, a table, keywords, and a page that opens: `eyespot search` and `eyespot lists`."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from pathlib import Path

import pytest

from eyespot.ledger.photo_lists import PhotoLists
from tests.cli.conftest import done, run_json
from tests.command import refuses, run_process
from tests.worlds import make_gallery


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    return make_gallery(tmp_path, 2)


def test_hits_go_where_they_are_wanted(gallery: Path) -> None:
    here = gallery.parent

    line = ["--copy", "copies", "--album", "links", "--csv", "hits.csv", "--xmp", " blots ", "--paths"]
    shown = done("search", "blots", "-g", gallery, *line, "--all-columns", cwd=here)

    paths = [Path(path) for path in shown.stdout.splitlines()]
    assert {path.name for path in paths} == {"0.jpg", "1.jpg"}
    assert [(here / "copies" / path.name).read_bytes() for path in paths] == [path.read_bytes() for path in paths]
    assert [(here / "links" / path.name).resolve() for path in paths] == paths
    rows = list(csv.DictReader((here / "hits.csv").read_text().splitlines()))
    assert "latitude" in rows[0] and [row["path"] for row in rows] == [str(path) for path in paths]
    assert b"<rdf:li>blots</rdf:li>" in (here / "photos" / "0.jpg.xmp").read_bytes()
    for sentence in ("2 pictures copied to copies", "2 pictures linked in links", "2 pictures have the keyword blots"):
        assert f"eyespot: {sentence}\n" in shown.stderr


def test_what_cannot_be_copied_is_named_and_the_exit_code_is_3(gallery: Path) -> None:
    (gallery.parent / "photos" / "0.jpg").unlink()

    shown = done("search", "blots", "-g", gallery, "--copy", "copies", "--json", cwd=gallery.parent, code=3)

    assert "1 picture copied to copies" in shown.stderr
    assert re.search(r"left out: .*0\.jpg \(no such file or directory\)", shown.stderr)


@pytest.mark.long
def test_the_page_of_hits_opens_in_the_browser(gallery: Path) -> None:
    here = gallery.parent
    browser = here / "browser.py"
    browser.write_text("import sys\nopen('opened.txt', 'w').write(sys.argv[1])\n")

    env = {"BROWSER": f"{sys.executable} {browser} %s", "TMPDIR": str(here)}
    ran = run_process("search", "blots", "-g", gallery, "--open", cwd=here, **env)

    assert ran.returncode == 0, ran.stderr
    page = Path((here / "opened.txt").read_text().removeprefix("file://"))
    assert page.read_text().count("<img") == 2
    assert page.parent.stat().st_mode & 0o077 == 0


def test_without_a_browser_the_page_is_named(gallery: Path) -> None:
    shown = done("search", "blots", "-g", gallery, "--open", cwd=gallery.parent, PATH="", BROWSER="", DISPLAY="")

    named = re.search(r"no browser was found; open (.*hits\.html)", shown.stderr)
    assert named and Path(named[1]).is_file()


@pytest.mark.parametrize(
    ("words", "code"),
    [("--xmp ' '", 2), ("--xmp 'a\tb'", 2), ("--all-columns", 2), ("--csv no/hits.csv", 2), ("--copy photos/0.jpg", 1)],
)
def test_what_makes_no_sense_is_one_sentence(words: str, code: int, gallery: Path) -> None:
    refuses("search", "blots", "-g", gallery, *shlex.split(words), code=code, cwd=gallery.parent)


# -- lists that are kept ----------------------------------------------------------------------------------------


@pytest.fixture
def listed(gallery: Path) -> Path:
    """A list of two photos, and of one that has left the gallery."""
    ids = [one["id"] for one in run_json("search", "blots", "-g", gallery)["items"]]
    with PhotoLists(gallery / "ledger.sqlite") as lists:
        lists.make("Two blots", "ada", [*ids, "f" * 32])
    return gallery


def test_lists_are_listed_and_shown(listed: Path) -> None:
    lines = done("lists", "list", "-g", listed).stdout.split("\t")
    (one,) = run_json("lists", "list", "--gallery", listed)
    paths = done("lists", "show", "two BLOTS", "-g", listed).stdout.splitlines()
    shown = run_json("lists", "show", one["list"], "--gallery", listed)

    assert lines[1:] == ["3", "ada", "Two blots\n"]
    assert [one["path"] for one in shown] == paths and all(Path(path).is_file() for path in paths)
    assert len(paths) == 2


def test_a_list_is_exported(listed: Path, tmp_path: Path) -> None:
    words = ("--copy", tmp_path / "copies", "--album", tmp_path / "links", "--csv", tmp_path / "blots.csv")

    done("lists", "export", "Two blots", *words, "--all-columns", "--gallery", listed)

    assert len(list((tmp_path / "copies").iterdir())) == len(list((tmp_path / "links").iterdir())) == 2
    with (tmp_path / "blots.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


@pytest.mark.parametrize(("words", "code"), [("show no-such", 4), ("export 'Two blots'", 2)])
def test_what_cannot_be_done_with_a_list_is_one_sentence(listed: Path, words: str, code: int) -> None:
    refuses("lists", *shlex.split(words), "-g", listed, code=code)


def test_a_gallery_without_lists_stays_as_it_is(gallery: Path) -> None:
    (gallery / "ledger.sqlite").unlink(missing_ok=True)

    done("lists", "list", "-g", gallery, code=4)

    assert not (gallery / "ledger.sqlite").exists()
