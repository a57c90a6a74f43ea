"""`eyespot search` on real photos: by words, by picture, both, under filters; its forms of output and its errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import sample
from eyespot.types import NothingFound, UsageError
from tests.cli.conftest import run_eyespot

Search = Callable[..., list[dict[str, Any]]]


def photo(part: str) -> Path:
    """The one sample photo whose name holds `part`."""
    (found,) = [place for place in sample.photos().glob("*.jpg") if part in place.name]
    return found


def test_words_find_pictures_of_what_they_name(search: Search) -> None:
    assert "windmill" in search("a windmill", "-k", 1)[0]["title"].lower()
    assert {item["category"] for item in search("a fish", "-k", 5)} == {"categorization/fishes"}


def test_a_picture_finds_itself_first(search: Search) -> None:
    picture = search("a fish", "-k", 1)[0]["path"]

    first, second, *_ = search("--image", picture, "-k", 3)

    assert first["path"] == picture and first["score"] == pytest.approx(1, abs=1e-4)
    assert second["score"] < 0.999


def test_words_and_a_picture_and_minus_work_together(search: Search) -> None:
    picture = search("a fish", "-k", 1)[0]["path"]

    with_words = search("lighthouse", "--image", picture, "-k", 208)
    arithmetic = search(f"{picture} + lighthouse", "-k", 208)
    without = search(f"lighthouse - {picture}", "-k", 208)

    assert [item["id"] for item in with_words] == [item["id"] for item in arithmetic]
    rank = {item["path"]: item["rank"] for item in with_words}
    assert rank[picture] < 10 < {item["path"]: item["rank"] for item in without}[picture]


def test_a_filter_gives_every_row_it_lets_through_and_no_other(search: Search) -> None:
    everything = search("sun", "-k", 500)
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


def test_paths_are_one_a_line_and_the_table_has_titles(sample_gallery: Path) -> None:
    paths = run_eyespot("search", "a windmill", "-g", sample_gallery, "-k", 3, "--paths").stdout.splitlines()
    table = run_eyespot("search", "a windmill", "-g", sample_gallery, "-k", 3).stdout.splitlines()

    assert len(paths) == 3 and all(Path(path).is_file() for path in paths)
    assert all(path in line for path, line in zip(paths, table, strict=True))


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
        (["a windmill", "-k", "0"], 2, "greater than or equal to 1"),
        ([], 2, "nothing to search for"),
        (["./not-there.jpg"], 2, "not-there.jpg"),
        (["https://example.org/a.jpg"], 2, "fetch"),
        (["a windmill", "-e", "hf:no/such"], 2, "no vectors of hf:no/such"),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(
    sample_gallery: Path, words: list[str], code: int, sentence: str
) -> None:
    asked = run_eyespot("search", *words, "-g", sample_gallery)

    assert (asked.returncode, asked.stdout) == (code, "")
    assert sentence in asked.stderr
    assert "Traceback" not in asked.stderr


def test_a_file_that_is_no_picture_cannot_be_searched_with(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "torn.jpg").write_bytes(photo("IndiaGate").read_bytes()[:2000])

    asked = run_eyespot("search", "--image", tmp_path / "torn.jpg", "-g", sample_gallery)

    assert asked.returncode == 2
    assert "truncated" in asked.stderr


def test_without_a_gallery_the_way_to_one_is_said(tmp_path: Path) -> None:
    asked = run_eyespot("search", "a windmill", cwd=tmp_path)

    assert asked.returncode == 2
    assert "eyespot index" in asked.stderr


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
