"""`eyespot search` moved by judged photos: those of the line, and those that are recorded."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot import sample
from eyespot.judges.person import VERDICTS
from eyespot.ledger.judgements import Judgements
from eyespot.types import Judgement, Query, Term
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.worlds import index_gallery, make_gallery, second_encoder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gallery(tmp_path_factory.mktemp("feedback"), 24)


@pytest.fixture
def gallery(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "gallery"))


def search(gallery: Path, *words: object) -> Any:
    return run_json("search", "stripes", "-k", 24, "-g", gallery, *words)


def record(gallery: Path, image: str, key: str, who: str, query: Query = Query.words("stripes")) -> None:
    with Judgements(gallery / "ledger.sqlite") as judgements:
        digest = judgements.enter([query])[query]
        judgements.record([Judgement(digest, image, f"person:{who}", "p", VERDICTS[key], at=time.time())])


def test_the_record_moves_the_search_where_it_is_wanted(gallery: Path) -> None:
    first, *_, last = (item["id"] for item in search(gallery)["items"])
    record(gallery, last, "y", "ada")
    record(gallery, first, "n", "bob")

    assert "moved" not in search(gallery)
    assert search(gallery, "--feedback", "everybody")["moved"] == {"yes": 1, "no": 1, "missing": 0, "by": "2 people"}
    assert search(gallery, "--feedback", "ada")["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "ada"}
    both = search(gallery, "--feedback", "person:ada", "--no", last)
    assert both["moved"] == {"yes": 0, "no": 1, "missing": 0, "by": "ada and this line"}
    assert last not in {item["id"] for item in both["items"]}


def test_a_photo_that_is_not_meant_takes_its_copies_with_it(tmp_path: Path) -> None:
    """As on the page; or `--copy` and `--xmp` would take the copy."""
    photos = sorted(Path(sample.photos()).glob("*.jpg"))[:3]
    for photo in photos:
        shutil.copy(photo, tmp_path)
    with Image.open(photos[0]) as image:
        image.save(tmp_path / "saved_again.png")
    index_gallery(tmp_path / "gallery", tmp_path)
    copies = {photos[0].name, "saved_again.png"}

    def names(*words: object) -> list[str]:
        found = run_json("search", "stripes", "-g", tmp_path / "gallery", *words)
        return [Path(item["path"]).name for item in found["items"]]

    assert len(names()) == 3
    for name in copies:
        assert sorted(names("--no", name)) == sorted(photo.name for photo in photos[1:])
        assert set(names("--no", name, "--ungrouped")) == {photo.name for photo in photos[1:]} | copies - {name}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("stripes --yes nothing", 2),
        ("stripes --feedback ' '", 2),
        ("--feedback everybody", 2),
        ("stripes --feedback --json", 2),
        ("stripes --feedback-from ada", 2),
        ("stripes --feedback everybody --calibrate 30 --rerank encoder:starter", 2),
        ("stripes --feedback everybody --by words", 2),
        ("stripes --feedback eve", 4),
    ],
)
def test_what_cannot_be_moved_is_refused_with_the_way_out(gallery: Path, words: str, code: int) -> None:
    refuses("search", "-g", gallery, *shlex.split(words), code=code)


def test_a_photo_has_a_rank_path_or_name(gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank is that of the search before, whichever words it had."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    refuses("search", "stripes", "-g", gallery, "--yes", "3", code=2)
    items = search(gallery)["items"]

    for name in ("24", items[-1]["path"], Path(items[-1]["path"]).name, items[-1]["id"]):
        search(gallery)
        assert search(gallery, "--yes", name)["items"][0]["id"] == items[-1]["id"]
    refuses("search", "stripes", "-g", gallery, "--yes", "25", code=2)


def test_two_encoders_are_compared_by_the_verdicts_in_their_gallery(made: Path, gallery: Path) -> None:
    """Side by side in one gallery; verdicts in the order of the first make that one right, whatever the other says."""
    other = second_encoder()
    done("compare-encoders", "-e", "starter", "-e", other, "-g", gallery, code=2)
    index_gallery(gallery, made.parent / "photos", encoders=(other,))
    found = {one: [item["id"] for item in search(gallery, "-e", one)["items"]] for one in ("starter", other)}
    order = [item["id"] for item in search(gallery, "-e", "starter", "--by", "look")["items"]]
    search(gallery, "--yes", order[0], "--no", order[-1])
    refuses("compare-encoders", "-e", "starter", "-e", other, "-g", gallery, code=4)
    for place, image in enumerate(order):
        record(gallery, image, "y" if place < 6 else "n", "ada")
    example = Path(shutil.copy(next((made.parent / "photos").iterdir()), gallery / "gone.jpg"))
    record(gallery, order[0], "y", "ada", Query("q", (Term(1.0, image=example),)))
    example.unlink()
    words = ("-g", gallery, "--samples", 100)

    report = run_json("compare-encoders", "-e", "starter", "-e", other, *words)
    (pair,) = [one for one in report["comparisons"] if one["measure"].startswith("AP")]
    assert all(len(one) == 24 for one in found.values())
    assert pair["baseline"] == 1 and 0 < pair["mean"] <= 1 and report["queries"] == 1
    ran = done("compare-encoders", "-e", "starter", "-e", other, *words)
    assert "verdicts" in ran.stdout and ran.stderr.count("gone.jpg") == 1
    assert "no interval" in ran.stdout and "no difference" in ran.stdout  # one query shows none, however large it is
    assert "name two" in refuses("compare-encoders", "-e", "starter", "-e", "starter", "-g", gallery)
    refuses("compare-encoders", "-e", "starter", "-g", gallery)
