"""`eyespot search` moved by judged photos of the line or of the record, and by titles and names that find photos."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from eyespot.judges.person import VERDICTS
from eyespot.ledger.judgements import Judgements
from eyespot.runs import read_run
from eyespot.types import Judgement, Query, Term
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.worlds import copy_of_sample_gallery, index_gallery, make_gallery, second_encoder


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


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("stripes --yes nothing", 2),
        ("stripes --feedback ' '", 2),
        ("--feedback everybody", 2),
        ("stripes --feedback --json", 2),
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


# -- `--by`: titles and names find photos, each hit says why, and `eval` may read --------------------------------------


def found_in(gallery: Path, *words: object) -> Any:
    return run_json("search", *words, "-g", gallery)


def test_words_alone_find_nothing_else_and_obey_filters(sample_gallery: Path) -> None:
    found = found_in(sample_gallery, "gate", "--by", "words", "-k", 50)
    india = found_in(sample_gallery, "gate", "--by", "words", "--where", "path LIKE '%India%'")

    assert found["by"] == "words" and 0 < len(found["items"]) < 50
    assert all("gate" in json.dumps([item["path"], item.get("title")]).lower() for item in found["items"])
    assert ["India" in item["path"] for item in india["items"]] == [True]
    for options in ((), ("--rerank", "person:ada", "--calibrate", "10")):
        none = done("search", "zyzzyva", "--by", "words", *options, "-g", sample_gallery, code=4)
        assert none.stdout == "" and "--by look" in none.stderr


# -- names that are given ---------------------------------------------------------------------------------------


def test_names_are_given_listed_used_and_removed(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    (tmp_path / "gates.csv").write_text("latin,english\nporta maxima,gate\none\n")
    wanted = ("search", "porta maxima", "--by", "words", "-g", gallery, "-k", 3)
    done(*wanted, code=4)

    given = done("names", tmp_path / "gates.csv", "-g", gallery, code=3)
    found = done(*wanted)

    assert given.stdout == "gates.csv: 2 names of 1 taxa\n"
    assert "gates.csv:3 has 1 fields where the header has 2" in given.stderr
    assert "Gate" in found.stdout and "porta maxima = gate, by gates.csv" in found.stderr
    assert run_json("names", "-g", gallery)["files"] == [{"name": "gates.csv", "taxa": 1, "names": 2}]
    done("names", "--remove", "gates.csv", "-g", gallery)
    done(*wanted, code=4)


@pytest.mark.parametrize("words", ["empty.csv", "--remove other.csv", "empty.csv one/empty.csv"])
def test_what_is_no_table_of_names_is_refused(words: str, sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "empty.csv").write_text("a,b")

    refuses("names", *words.split(), "-g", sample_gallery, cwd=tmp_path)


@pytest.mark.long
def test_eval_reads_words_when_asked(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("id\ttext\nq1\tBrandenburg Gate\n")
    items = found_in(sample_gallery, "Brandenburg Gate", "--by", "words", "-k", 2)["items"]
    (tmp_path / "qrels.txt").write_text("".join(f"q1 0 {item['id']} 1\n" for item in items))
    line = ("eval", "own", "--data", tmp_path, "-g", sample_gallery, "--json")

    look, both = done(*line), done(*line, "--by", "both", "--out", tmp_path / "out")

    assert "words and look" in both.stdout and "words and look" not in look.stdout
    (written,) = (tmp_path / "out").rglob("run*.parquet")
    assert read_run(written).header["by"] == "both"
