"""`eyespot search` on real photos: by words, by picture, both, under filters; its forms of output and its errors."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import eyespot
from eyespot import sample
from eyespot.types import NothingFound, UsageError
from tests.command import run_eyespot
from tests.worlds import draw

Search = Callable[..., list[dict[str, Any]]]


def photo(part: str) -> Path:
    """The one sample photo whose name holds `part`."""
    (found,) = [place for place in sample.photos().glob("*.jpg") if part in place.name]
    return found


@pytest.mark.long
def test_words_find_pictures_of_what_they_name(search: Search) -> None:
    assert "windmill" in search("a windmill", "-k", 1)[0]["title"].lower()
    assert {item["category"] for item in search("a fish", "-k", 5)} == {"categorization/fishes"}


@pytest.mark.long
def test_a_picture_finds_itself_first(search: Search) -> None:
    picture = search("a fish", "-k", 1)[0]["path"]

    first, second, *_ = search("--image", picture, "-k", 3)

    assert first["path"] == picture and first["score"] == pytest.approx(1, abs=1e-4)
    assert second["score"] < 0.999


@pytest.mark.long
def test_words_and_a_picture_and_minus_work_together(search: Search) -> None:
    picture = search("a fish", "-k", 1)[0]["path"]

    with_words = search("lighthouse", "--image", picture, "-k", 208)
    arithmetic = search(f"{picture} + lighthouse", "-k", 208)
    without = search(f"lighthouse - {picture}", "-k", 208)

    assert [item["id"] for item in with_words] == [item["id"] for item in arithmetic]
    rank = {item["path"]: item["rank"] for item in with_words}
    assert rank[picture] < 10 < {item["path"]: item["rank"] for item in without}[picture]


@pytest.mark.long
def test_why_says_what_terms_and_words_add_to_the_score(search: Search, sample_gallery: Path) -> None:
    (hit,) = search("2:windmill + grass - people", "-k", 1, "--why", "--by", "look")
    (worded,) = search("a windmill", "-k", 1, "--why")

    added = {words[0]: float(words[2]) for words in (one["sentence"].split() for one in hit["why"])}
    assert set(added) == {"windmill", "grass", "people"} and sum(added.values()) == pytest.approx(
        hit["score"], abs=2e-3
    )
    assert [one["code"] for one in worded["why"] if one["code"] == "word"] == ["word"] * 2
    lines = run_eyespot("search", "windmill + grass", "-g", sample_gallery, "-k", 2, "--why").stdout.splitlines()
    assert len(lines) == 4 and "windmill adds +" in lines[1]
    listed = run_eyespot("search", "--after", "2000", "-g", sample_gallery, "--why")
    assert listed.returncode == 2 and "--why needs words" in listed.stderr


@pytest.mark.long
def test_a_filter_gives_every_row_it_lets_through_and_no_other(search: Search) -> None:
    everything = search("sun", "-k", 500, "--ungrouped")
    fishes = search("sun", "-k", 500, "--where", "category = 'categorization/fishes'")
    labelled = search("sun", "-k", 500, "--label", "category=categorization/fishes")

    assert len(everything) == 208
    assert [item["id"] for item in fishes] == [
        item["id"] for item in everything if item["category"] == "categorization/fishes"
    ]
    assert [item["id"] for item in labelled] == [item["id"] for item in fishes]
    assert [item["rank"] for item in fishes] == list(range(1, len(fishes) + 1))


def test_json_has_the_promised_shape(sample_gallery: Path) -> None:
    found = json.loads(run_eyespot("search", "a windmill", "-g", sample_gallery, "-k", 2, "--json").stdout)

    assert (found["query"], found["exact"]) == ("a windmill", True)
    assert found["took_ms"] > 0
    assert [list(item)[:4] for item in found["items"]] == [["rank", "id", "path", "score"]] * 2
    assert {"title", "category", "author", "licence", "width", "taken", "latitude"} <= found["items"][0].keys()


@pytest.mark.long
def test_paths_are_one_a_line_and_the_table_has_titles(sample_gallery: Path) -> None:
    paths = run_eyespot("search", "a windmill", "-g", sample_gallery, "-k", 3, "--paths").stdout.splitlines()
    table = run_eyespot("search", "a windmill", "-g", sample_gallery, "-k", 3).stdout.splitlines()

    assert len(paths) == 3 and all(Path(path).is_file() for path in paths)
    assert all(path in line for path, line in zip(paths, table, strict=True))


@pytest.mark.long
def test_names_that_would_break_a_line_or_act_on_a_terminal_are_spelled_out(tmp_path: Path) -> None:
    name = "two\nlines \x1b[31mred \u202egpj.jpg"
    draw(tmp_path / "photos" / name, 1)
    (tmp_path / "photos" / "zero\n\x1b[31m.jpg").write_bytes(b"")
    rows = f'{{"file_name": {json.dumps(name)}, "title": "a \\u001b[31mtitle", "score": 9, "rank": "first"}}'
    (tmp_path / "photos" / "metadata.jsonl").write_text(rows)
    run_eyespot("index", "photos", cwd=tmp_path)

    (table,) = run_eyespot("search", "stripes", cwd=tmp_path).stdout.splitlines()
    paths = run_eyespot("search", "stripes", "--paths", cwd=tmp_path).stdout
    ended = run_eyespot("search", "stripes", "--print0", cwd=tmp_path).stdout
    (failed,) = run_eyespot("failures", cwd=tmp_path).stdout.splitlines()
    (item,) = json.loads(run_eyespot("search", "stripes", "--json", cwd=tmp_path).stdout)["items"]

    place = str(tmp_path / "photos" / name)
    assert table.endswith(r"two\nlines \x1b[31mred \u202egpj.jpg  a \x1b[31mtitle")
    assert (paths, ended) == (f"{place}\n", f"{place}\0")
    assert failed.endswith("zero\\n\\x1b[31m.jpg\tempty file")
    assert (item["rank"], item["path"], item["score"] < 1) == (1, place, True)


@pytest.mark.long
@pytest.mark.parametrize("form", ["--json", "--paths", "-k3"])
def test_a_full_disk_under_the_output_is_one_sentence(sample_gallery: Path, form: str) -> None:
    line = f"{sys.executable} -m eyespot.cli search windmill -g {sample_gallery} {form} > /dev/full"

    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True)

    assert ran.returncode == 1
    *_, last = ran.stderr.splitlines()
    assert last == "eyespot: cannot write what was found (no space left on device); make room, or send it elsewhere"


@pytest.mark.long
def test_a_tar_that_became_junk_leaves_boxes_on_the_sheet(tmp_path: Path) -> None:
    place = draw(tmp_path / "photos" / "a.jpg", 1)
    with tarfile.open(tmp_path / "photos.tar", "w") as archive:
        archive.add(place, "a.jpg")
    run_eyespot("index", "photos.tar", cwd=tmp_path)
    (tmp_path / "photos.tar").write_bytes(b"junk" * 1000)

    result = run_eyespot("search", "stripes", "--html", "sheet.html", cwd=tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
    assert "unreadable" in (tmp_path / "sheet.html").read_text()


def test_a_contact_sheet_is_one_page_with_the_pictures_inside(sample_gallery: Path, tmp_path: Path) -> None:
    run_eyespot("search", "a windmill", "-g", sample_gallery, "-k", 5, "--html", tmp_path / "sheet.html")

    page = (tmp_path / "sheet.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 5
    assert "<script" not in page


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["a windmill", "--where", "categry = 'x'"], 2, "categry"),
        (["a windmill", "--where", "1=1); DROP TABLE items; --"], 2, "eyespot: "),
        (["a windmill", "--where", "category = 'no such'"], 4, "widen it"),
        (["a windmill", "--label", "category"], 2, "COLUMN=VALUE"),
        (["a windmill", "--near", "here"], 2, "LAT,LON,KM"),
        (["a windmill", "--after", "soon"], 2, "soon"),
        (["a windmill", "--json", "--paths"], 2, "exclude each other"),
        (["a windmill", "--paths", "--print0"], 2, "exclude each other"),
        (["a windmill", "--where", "   "], 2, "--where is empty"),
        (["caf\udce9"], 2, "not valid UTF-8"),
        (["a windmill", "--label", "title=caf\udce9"], 2, "not valid UTF-8"),
        (["a windmill", "-k", "0"], 2, "greater than or equal to 1"),
        ([], 2, "nothing to search for"),
        ([""], 2, "the query is empty"),
        (["--after", "2021", "--rerank", "encoder:starter"], 2, "--rerank needs words or a picture"),
        (["./not-there.jpg"], 2, "not-there.jpg"),
        (["https://example.org/a.jpg"], 2, "fetch"),
        (["a windmill", "-e", "hf:no/such"], 2, "no vectors of hf:no/such"),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(
    sample_gallery: Path, words: list[str], code: int, sentence: str
) -> None:
    result = run_eyespot("search", *words, "-g", sample_gallery)

    assert (result.returncode, result.stdout) == (code, "")
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["a", "windmill"], "a windmill"),
        (["2:a", "windmill", "-", "people"], "2:a windmill - people"),
        (["a", "windmill", "-k", "3", "+", "a", "river"], "a windmill + a river"),
        (["--", "-", "people"], "- people"),
        (["- people"], "- people"),
    ],
)
def test_a_query_needs_no_quotes(sample_gallery: Path, words: list[str], query: str) -> None:
    result = run_eyespot("search", "-g", sample_gallery, "--json", *words)

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["query"] == query


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """A folder with a gallery of three dated pictures and one without a date, named by their order."""
    for seed, date in enumerate(["2023:05:02 10:00:00", "2022:01:01 09:00:00", "2020:07:01 00:00:00", ""]):
        place = draw(tmp_path / "photos" / f"{seed}.jpg", seed)
        exif = Image.Exif()
        exif.get_ifd(0x8769).update({36867: date} if date else {})
        with Image.open(place) as picture:
            picture.save(place, exif=exif)
    assert run_eyespot("index", "photos", cwd=tmp_path).returncode == 0
    return tmp_path


@pytest.mark.long
def test_filters_without_words_list_by_date(dated: Path) -> None:
    def names(*words: object) -> list[str]:
        return [Path(line).stem for line in run_eyespot("search", *words, "--paths", cwd=dated).stdout.splitlines()]

    items = json.loads(run_eyespot("search", "--where", "width > 0", "--json", cwd=dated).stdout)["items"]
    table = run_eyespot("search", "--where", "width > 0", "--html", "sheet.html", cwd=dated).stdout.splitlines()
    run = eyespot.open(dated / ".eyespot").search(where="width > 0", k=2)

    assert (names("--after", "2021"), names("--before", "2023", "-k", 1)) == (["0", "1"], ["1"])
    assert [(item["rank"], item["score"]) for item in items] == [(n, None) for n in range(1, 5)]
    assert [Path(item["path"]).stem for item in items] == ["0", "1", "2", "3"]
    assert table[0].startswith("   1  2023-05-02  ") and table[3].startswith("   4           –  ")
    assert "2023-05-02" in (dated / "sheet.html").read_text()
    assert [Path(run.facts[hit.image]["path"]).stem for hit in run["q"]] == ["0", "1"]


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert run_eyespot("--version", cwd=tmp_path).stdout == f"eyespot {eyespot.__version__}\n"


def test_a_file_that_is_no_picture_cannot_be_searched_with(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "torn.jpg").write_bytes(photo("IndiaGate").read_bytes()[:2000])

    result = run_eyespot("search", "--image", tmp_path / "torn.jpg", "-g", sample_gallery)

    assert result.returncode == 2
    assert "truncated" in result.stderr


def test_without_a_gallery_the_way_to_one_is_said(tmp_path: Path) -> None:
    result = run_eyespot("search", "a windmill", cwd=tmp_path)

    assert result.returncode == 2
    assert "eyespot index" in result.stderr


@pytest.mark.long
def test_a_language_the_encoder_does_not_know_is_told(sample_gallery: Path) -> None:
    german = run_eyespot("search", "ein Reiher steht im Wasser", "-g", sample_gallery)
    english = run_eyespot("search", "a heron stands in the water", "-g", sample_gallery)

    assert "English" in german.stderr
    assert "English" not in english.stderr


@pytest.mark.parametrize("words", ["piano", "a photo of a trumpet", "tomato", "people dancing in a club"])
def test_no_good_match_is_told(sample_gallery: Path, words: str) -> None:
    assert "probably no good match" in run_eyespot("search", words, "-g", sample_gallery).stderr


@pytest.mark.parametrize("words", ["a windmill", "giraffe", "hammer", "a photo of an owl"])
def test_a_good_match_is_not_doubted(sample_gallery: Path, words: str) -> None:
    assert "probably no good match" not in run_eyespot("search", words, "-g", sample_gallery).stderr


def test_a_search_of_a_small_gallery_loads_nothing_heavy(sample_gallery: Path) -> None:
    script = (
        "import sys\nfrom eyespot.cli import app\n"
        f"app(['search', 'a windmill', '-g', {str(sample_gallery)!r}], standalone_mode=False)\n"
        "print(sorted({'numba', 'torch', 'duckdb', 'pandas', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert ran.stderr.splitlines()[-1] == "[]"


def test_the_library_gives_a_run_with_the_facts_of_its_items(sample_gallery: Path) -> None:
    collection = eyespot.open(sample_gallery)

    run = collection.search("a windmill", k=5)

    hits = run["q"]
    assert len(hits) == 5 and "windmill" in run.facts[hits[0].image]["title"].lower()
    assert (np.diff(run.score) <= 0).all()
    assert run.header["encoder"] == "starter"
    with pytest.raises(NothingFound):
        collection.search("a windmill", where="width < 0")
    with pytest.raises(UsageError):
        collection.search()
