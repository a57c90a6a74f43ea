"""`eyespot annotate` as users run it: from a file of queries to an exported set, alone and as a team."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from eyespot.curate.annotate.agreement import settle
from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.progress import standing
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.worlds import annotation as world, draw_photos, index_gallery

QUERIES = "query_id,query_text,visible,feasible,of_interest\n1,a heron,yes,yes,yes\n2,a thought,no,yes,yes\n"
Place = tuple[str, Path]


def photo(number: int) -> str:
    return f"clip-retrieval:pictures/{number:04d}.jpg"


def marks(path: Path, marked: dict[str, str]) -> Path:
    path.write_text("image,mark\n" + "".join(f"{image},{mark}\n" for image, mark in marked.items()))
    return path


@pytest.fixture(scope="module")
def labelled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty photos on the list of query 1; Ada marked all, the first ten as herons, and Bo the second otherwise."""
    folder = tmp_path_factory.mktemp("labelled")
    where = ("-g", world.gallery(folder, 30, 10))
    (folder / "q.csv").write_text(QUERIES)
    added = run_json("annotate", "add", folder / "q.csv", *where)
    assert added == {"taken": ["1"], "left_out": {"2": ["visible"]}}
    done("annotate", "list", "1", "--label", "kind=heron", "--label", "kind=other", *where)
    for who, signs in {"Ada": "y" * 10 + "n" * 20, "Bo": "yn"}.items():
        table = marks(folder / "marks.csv", {photo(at): sign for at, sign in enumerate(signs)})
        assert run_json("annotate", "mark", "1", table, "--as", who, *where)["changed"] == len(signs)
    return where[1]


@pytest.fixture
def labelled(labelled_once: Path, tmp_path: Path) -> Place:
    return "-g", Path(shutil.copytree(labelled_once, tmp_path / "gallery"))


@pytest.fixture
def twelve(tmp_path: Path) -> Place:
    """Twelve photos and the query 1, with three of them on its list."""
    where = ("-g", world.gallery(tmp_path, 12, 3))
    done("annotate", "add", "--id", "1", "--text", "a heron", *where)
    done("annotate", "list", "1", "--nearest", 3, "-e", "starter", *where)
    return where


@pytest.mark.parametrize(("words", "code"), [("status", 4), ("list 1", 2), ("add", 2), ("export out", 4)])
def test_what_cannot_be_is_told_in_a_sentence(words: str, code: int, tmp_path: Path) -> None:
    index_gallery(tmp_path / "gallery", draw_photos(tmp_path / "photos", 1))

    refuses("annotate", *words.split(), "-g", tmp_path / "gallery", code=code, cwd=tmp_path)


@pytest.mark.long
def test_from_marks_to_a_set(labelled: Place, tmp_path: Path) -> None:
    """Only sets without problems are kept."""
    with AnnotationStore(labelled[1] / "ledger.sqlite") as store:
        settle(store, "1", "Cy", photo(1), "y")
    done("annotate", "add", "--id", "2", "--text", "another heron", *labelled)
    done("annotate", "list", "2", "--nearest", 4, *labelled)
    (tmp_path / "run.txt").write_text(f"2 Q0 {photo(0)} 1 2 t\n")
    done("annotate", "list", "2", "--run", tmp_path / "run.txt", *labelled)
    done("annotate", "mark", "2", marks(tmp_path / "m.csv", {photo(0): "d"}), "--as", "Ada", *labelled)

    status = run_json("annotate", "status", "1", "--wage", 10**9, *labelled)["1"]["annotators"]["Ada"]
    every = run_json("annotate", "export", tmp_path / "all", *labelled)["queries"]
    survivors = run_json("annotate", "export", tmp_path / "kept", "--kept", *labelled)["queries"]

    assert status["relevant"] == 10 and status["stopped"] and status["cost"] is None  # of imported marks
    assert status["labelled"] == 30
    with (tmp_path / "kept" / "annotations.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 10
    assert len(json.loads((tmp_path / "kept" / "candidates.json").read_text())["1"]) == 30
    assert set(survivors) < set(every) == {"1", "2"}


def test_a_table_without_marks_takes_none_back_and_empty_ones_do(twelve: Place, tmp_path: Path) -> None:
    labelled = []
    for table, code in {"image,mark\n{},y\n": 0, "image,Mark\n{},n\n": 2, "image,mark\n{},\n": 0}.items():
        (tmp_path / "marks.csv").write_text(table.format(photo(0)))
        done("annotate", "mark", "1", tmp_path / "marks.csv", "--as", "Ada", *twelve, code=code)
        annotators = run_json("annotate", "status", "1", *twelve)["1"]["annotators"]
        labelled.append(annotators["Ada"]["labelled"] if annotators else 0)

    assert labelled == [1, 1, 0]


def test_open_photos_and_criteria_are_listed_and_a_picture_is_not_a_table(twelve: Place, tmp_path: Path) -> None:
    audit = ("annotate", "audit", "1", "--as", "Ada", "--size", 5, *twelve)

    drawn = done(*audit).stdout.splitlines()
    done("annotate", "mark", "1", marks(tmp_path / "m.csv", {drawn[1].strip(): "n"}), "--as", "Ada", *twelve)
    left = done(*audit, "--join").stdout.splitlines()

    assert "5 are open" in drawn[0] and "4 are open" in left[0] and [drawn[0][:2], *drawn[2:]] == ["5 ", *left[1:]]
    assert "visible in the picture alone (open)" in done("annotate", "status", *twelve).stdout
    assert run_json("annotate", "status", *twelve)["1"]["criteria"]["feasible"] == "open"
    refuses("annotate", "mark", "1", tmp_path / "0001.jpg", "--as", "Ada", *twelve)


def test_no_agreement_beyond_chance_is_made_of_one_kind_of_mark(twelve: Place, tmp_path: Path) -> None:
    with AnnotationStore(twelve[1] / "ledger.sqlite") as store:
        for who in ("Ada", "Bo"):
            store.mark("1", who, {photo(0): "y", photo(1): "y"})
    reported = done("annotate", "agreement", *twelve).stdout

    assert "100.0% of 2 photos" in reported and "nan" not in reported
    assert "krippendorff_alpha: cannot be computed, because all 4 marks are the same" in reported
    assert run_json("annotate", "agreement", *twelve)["1"]["krippendorff_alpha"]["value"] is None


@pytest.mark.long
def test_the_agreement_of_a_team_and_a_set_without_flagged_photos(labelled: Place, tmp_path: Path) -> None:
    (pair,) = run_json("annotate", "agreement", *labelled)["1"]["pairs"]
    with AnnotationStore(labelled[1] / "ledger.sqlite") as store:
        settle(store, "1", "Cy", photo(1), "n")
        store.team.flags.put(photo(3), "other", "Ada", "a drawing")

    assert (pair["photos"], pair["agreed"]) == (2, 0.5)
    counts = run_json("annotate", "export", tmp_path / "set", "--without-flagged", *labelled)["queries"]["1"]
    assert counts["labelled"] == 29
    assert "all together: 9 relevant of 30" in done("annotate", "status", *labelled).stdout


def ranking(folder: Path, *names: str) -> Path:
    lines = [f"1 Q0 {name} {at} {-at} t" for at, name in enumerate(names, 1)]
    (folder / "run.txt").write_text("\n".join(lines))
    return folder / "run.txt"


def test_a_second_person_joins_an_audit(twelve: Place, tmp_path: Path) -> None:
    """The ranking and the marks name photos by their files; the gallery does not know one of them."""
    refuses("annotate", "list", "1", "--run", ranking(tmp_path, "elsewhere.jpg"), *twelve, code=4)
    ranking(tmp_path, *(f"{at:04}.jpg" for at in range(12)), "elsewhere.jpg")
    audit = ("annotate", "audit", "1", *twelve, "--as")
    listed = run_json("annotate", "list", "1", "--run", tmp_path / "run.txt", *twelve)
    table = marks(tmp_path / "m.csv", {"0005.jpg": "n", "0006.jpg": "n"})
    table.write_text(table.read_text() + "0005.jpg,y\n")
    assert run_json("annotate", "mark", "1", table, "--as", "Bo", *twelve)["changed"] == 2
    refuses("annotate", "mark", "1", marks(tmp_path / "m.csv", {"elsewhere.jpg": "y"}), "--as", "Bo", *twelve)

    drawn = run_json(*audit, "Ada", "--size", 10, "--seed", 1)
    joined = run_json(*audit, "Bo", "--join")
    refuses(*audit, "Cy")
    with AnnotationStore(twelve[1] / "ledger.sqlite") as store:
        last = store.last_audit("1", "Bo")
        assert last is not None and store.auditors(last[0]) == ["Ada", "Bo"]
        store.mark("1", "Ada", {one["image"]: "n" for one in drawn["photos"]})
        state = standing(store, "1", "Ada").audit

    assert drawn["open"] == [one["image"] for one in drawn["photos"]]
    assert done(*audit, "Ada", "--join", code=2).stdout == ""  # all are marked
    assert listed == {"query": "1", "new": 9, "listed": 12, "unknown": 1}
    assert joined | {"open": drawn["open"]} == drawn and len(drawn["photos"]) == 10
    assert {*joined["open"]} == {*drawn["open"]} - {photo(5), photo(6)}  # Bo's marks count in his audit
    assert state is not None and state.done == state.size == 10
