"""`eyespot search --copy --album --csv --xmp --open`: hits as files, a table, keywords, and a page that opens."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest

from tests.command import run_eyespot
from tests.worlds import draw


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Two drawn photos."""
    for seed in range(2):
        draw(tmp_path / "photos" / f"{seed}.jpg", seed)
    run_eyespot("index", "photos", "-g", "gallery", cwd=tmp_path)
    return tmp_path / "gallery"


def test_hits_go_where_they_are_wanted(gallery: Path) -> None:
    here = gallery.parent

    line = ["--copy", "copies", "--album", "links", "--csv", "hits.csv", "--xmp", " blots ", "--paths"]
    done = run_eyespot("search", "blots", "-g", gallery, *line, cwd=here)

    paths = [Path(path) for path in done.stdout.splitlines()]
    assert (done.returncode, {path.name for path in paths}) == (0, {"0.jpg", "1.jpg"}), done.stderr
    assert [(here / "copies" / path.name).read_bytes() for path in paths] == [path.read_bytes() for path in paths]
    assert [(here / "links" / path.name).resolve() for path in paths] == paths
    rows = csv.DictReader((here / "hits.csv").read_text().splitlines())
    assert [row["path"] for row in rows] == [str(path) for path in paths]
    assert b"<rdf:li>blots</rdf:li>" in (here / "photos" / "0.jpg.xmp").read_bytes()
    for sentence in ("2 pictures copied to copies", "2 pictures linked in links", "2 pictures have the keyword blots"):
        assert f"eyespot: {sentence}\n" in done.stderr


def test_what_cannot_be_copied_is_named_and_the_exit_code_is_3(gallery: Path) -> None:
    (gallery.parent / "photos" / "0.jpg").unlink()

    done = run_eyespot("search", "blots", "-g", gallery, "--copy", "copies", "--json", cwd=gallery.parent)

    assert done.returncode == 3
    assert "1 picture copied to copies" in done.stderr
    assert re.search(r"left out: .*0\.jpg \(no such file or directory\)", done.stderr)


@pytest.mark.long
def test_the_page_of_hits_opens_in_the_browser(gallery: Path) -> None:
    here = gallery.parent
    browser = here / "browser.py"
    browser.write_text("import sys\nopen('opened.txt', 'w').write(sys.argv[1])\n")

    done = run_eyespot(
        "search", "blots", "-g", gallery, "--open", cwd=here, BROWSER=f"{sys.executable} {browser} %s", TMPDIR=str(here)
    )

    assert done.returncode == 0, done.stderr
    page = Path((here / "opened.txt").read_text().removeprefix("file://"))
    assert page.read_text().count("<img") == 2
    assert page.parent.stat().st_mode & 0o077 == 0


def test_without_a_browser_the_page_is_named(gallery: Path) -> None:
    done = run_eyespot("search", "blots", "-g", gallery, "--open", cwd=gallery.parent, PATH="", BROWSER="", DISPLAY="")

    named = re.search(r"no browser was found; open (.*hits\.html)", done.stderr)
    assert named, done.stderr
    assert Path(named[1]).is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--xmp", " "], "--xmp takes a keyword of visible characters"),
        (["--xmp", "a\tb"], "--xmp takes a keyword of visible characters"),
        (["--all-columns"], "--all-columns says what --csv writes; name its file"),
        (["--csv", "no/hits.csv"], "there is no folder no to write hits.csv to; make it first"),
        (["--copy", "photos/0.jpg"], "photos/0.jpg"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(words: list[str], sentence: str, gallery: Path) -> None:
    done = run_eyespot("search", "blots", "-g", gallery, *words, cwd=gallery.parent)

    assert done.returncode in (1, 2)
    assert done.stderr.splitlines()[-1].startswith(f"eyespot: {sentence}"), done.stderr


def test_all_columns_go_into_the_table(gallery: Path) -> None:
    done = run_eyespot("search", "blots", "-g", gallery, "--csv", "hits.csv", "--all-columns", cwd=gallery.parent)

    assert done.returncode == 0
    assert "latitude" in (gallery.parent / "hits.csv").read_text().splitlines()[0].split(",")
