"""The desk: queries, lists and marks, through double clicks, several people, threads, and kills."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eyespot.curate.annotate.annotation_store import AnnotationStore, AuditSample, Candidate, mark_of, relevant
from eyespot.curate.annotate.progress import Descent, descent
from eyespot.curate.annotate.queries import AnnotationQuery, read, write
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds.annotation import WORDS, desk

KILLED = """
import sys
from pathlib import Path
from eyespot.curate.annotate.annotation_store import AnnotationStore
desk = AnnotationStore(Path(sys.argv[1]))
for number in range(10_000):
    desk.mark("q", "ada", {str(number % 10): "yn"[number // 10 % 2]})
    print(number, flush=True)
"""


@pytest.fixture
def at(tmp_path: Path) -> Iterator[AnnotationStore]:
    with desk(tmp_path) as made:
        yield made


def marks(at: AnnotationStore, who: str) -> dict[str, str]:
    return {image: mark_of(judgement) for image, judgement in at.last_judgements("q", who).items()}


def test_marks_are_kept_with_their_rank_and_doubt_counts_as_no(at: AnnotationStore) -> None:
    at.mark("q", "ada", {"0": "y", "3": "n", "4": "d"})
    found = at.last_judgements("q", "ada")
    assert {image: (mark_of(entry), entry.rank, relevant(entry)) for image, entry in found.items()} == {
        "0": ("y", 1, True),
        "3": ("n", 4, False),
        "4": ("d", 5, False),
    }


@pytest.mark.parametrize(
    ("said", "found", "rows"),
    [
        (["y", "y"], {"0": "y"}, 1),  # a click that comes twice
        (["y", "n", "d"], {"0": "d"}, 3),
        (["y", None], {}, 2),
        (["y", None, "y"], {"0": "y"}, 3),
    ],
)
def test_the_last_word_counts(tmp_path: Path, said: list[str | None], found: dict[str, str], rows: int) -> None:
    """Also for whoever opens the desk afterwards."""
    with desk(tmp_path) as first:
        first.mark("q", "ada", {"1": "n"})
        for mark in said:
            first.mark("q", "ada", {"0": mark})
    with AnnotationStore(tmp_path / "ledger.sqlite") as second:
        assert marks(second, "ada") == {"1": "n"} | found and len(list(second.judgements.rows())) == 1 + rows


@pytest.mark.parametrize(
    ("name", "mark"), [("", "y"), ("   ", "y"), ("x" * 61, "y"), ("ada\x1b[2J", "y"), ("ada", "maybe")]
)
def test_a_name_and_a_mark_that_is_none_is_refused(at: AnnotationStore, name: str, mark: str) -> None:
    with raises(UsageError):
        at.mark("q", name, {"0": mark})
    assert at.annotators() == []


def test_two_people_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    with desk(tmp_path, 100) as first, AnnotationStore(tmp_path / "ledger.sqlite") as second:
        clicks = [(at, who, str(n)) for n in range(100) for at, who in ((first, "ada"), (second, "bob"))]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda click: click[0].mark("q", click[1], {click[2]: "y"}), clicks))
        counts = [len(marks(first, who)) for who in ("ada", "bob")]
        assert (*counts, len(list(first.judgements.rows()))) == (100, 100, 200)


def test_killed_in_mid_click_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    desk(tmp_path).close()
    line = [sys.executable, "-c", KILLED, str(tmp_path / "ledger.sqlite")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[3]) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) < 33:
            pass
        child.send_signal(signal.SIGKILL)
        confirmed = max([33, *map(int, child.stdout.read().split())])
    with AnnotationStore(tmp_path / "ledger.sqlite") as after:
        assert len(list(after.judgements.rows())) in (confirmed + 1, confirmed + 2)


@pytest.mark.parametrize(
    ("id", "text"),
    [("q", "a stork"), ("r", WORDS), ("r", ""), ("r", "  "), ("r", "a\0heron")],  # an id has words of its own
)
def test_a_query_has_an_id_and_words_of_its_own(at: AnnotationStore, id: str, text: str) -> None:
    with raises(UsageError):
        at.take_in([AnnotationQuery("s", "a nest", {}), AnnotationQuery(id, text, {})])
    assert [*at.queries()] == ["q"]
    with raises(UsageError):
        at.candidates("r")


def test_whatever_is_said_or_listed_changes_the_stamp_of_its_query(at: AnnotationStore) -> None:
    at.take_in([AnnotationQuery("r", "a stork", {})])
    stamps, other = [at.stamp("q")], at.stamp("r")
    for change in (
        lambda: at.mark("q", "ada", {"0": "y"}),
        lambda: at.mark("q", "ada", {"0": None}),
        lambda: at.extend("q", [Candidate("new"), Candidate("3"), Candidate("new")]),
        lambda: at.let_grow("q"),
        lambda: at.describe("q", {"category": "Species"}),
        lambda: at.keep_audit("q", ["ada"], AuditSample(1, [Candidate("0")], []), before=0, listed=0),
    ):
        change()
        stamps.append(at.stamp("q"))
    assert len(set(stamps)) == 7 and at.stamp("r") == other
    assert len(at.photos("q")) == 11  # a photo stands on a list once


def test_a_query_with_marks_stays_and_one_that_fails_the_intake_is_left_out(at: AnnotationStore) -> None:
    left_out = at.take_in([AnnotationQuery("r", "a thought", {"visible": "no"}), AnnotationQuery("s", "a nest", {})])
    assert ([one.id for one in left_out], [*at.queries()]) == (["r"], ["q", "s"])
    at.mark("q", "ada", {"0": "n"})
    with raises(UsageError):
        at.remove("q")
    assert len(at.photos("q")) == 10


def test_every_desk_has_a_name_of_its_own_for_good(tmp_path: Path) -> None:
    names = set()
    for folder in ("one", "two", "one"):
        with AnnotationStore(tmp_path / folder / "ledger.sqlite") as opened:
            names.add(opened.name())
    assert len(names) == 2


def test_queries_go_out_as_they_came_in(tmp_path: Path) -> None:
    facts = {"category": "Species", "lingo": "yes", "visible": "", "feasible": "", "of_interest": "yes"}
    write(tmp_path / "queries.csv", [AnnotationQuery("1", 'a "heron", wading', facts)])
    (found,) = read(tmp_path / "queries.csv")
    assert (found.id, found.text, found.facts["lingo"]) == ("1", 'a "heron", wading', "yes")
    assert found.open == ["visible", "feasible"]


def test_a_half_yes_is_refused_with_its_query(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("query_id,query_text,lingo\n7,a heron,perhaps\n")
    with raises(UsageError):
        read(tmp_path / "q.csv")


def test_the_rule_fires_at_the_last_of_so_many_in_a_row_and_ends_at_a_photo_without_a_mark() -> None:
    assert descent([True, False, False, True, False, False, False, True], 3) == Descent(8, 0, 7)
    assert descent([False, False, None, False], 3) == Descent(2, 2, None)
