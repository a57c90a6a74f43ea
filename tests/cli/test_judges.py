"""`eyespot judges` and `eyespot export judgements`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eyespot import rooms
from eyespot.cli import app
from eyespot.ledger.judgements import Judgements
from eyespot.runs import read_qrels
from eyespot.types import EyespotError, Judgement, Query, Spent, Term, Verdict

HERON = Query.words("a heron")
OWL = Query("q", (Term(1.0, "an owl"), Term(-2.0, "snow")))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    with Judgements(path) as judgements:
        heron, owl = judgements.enter([HERON, OWL]).values()
        judgements.record(
            [
                Judgement(heron, "a", "m", "p", Verdict(0.9), spent=Spent(1, 100, 1, 0.01)),
                Judgement(heron, "b", "m", "p", Verdict(0.2)),
                Judgement(heron, "c", "m", "p", None, "hung up"),
                Judgement(owl, "a", "m", "p", Verdict(0.6)),
            ]
        )
    return path


def run_cli(*words: object) -> Result:
    """`eyespot …` in this process: its stdout, its stderr, and what it raised."""
    return CliRunner().invoke(app, [*map(str, words)])


def code_of(done: Result) -> int:
    """The exit code of an error that users see in one sentence."""
    assert isinstance(done.exception, EyespotError), done.exception
    return done.exception.exit_code


def export(ledger: Path, to: str, *words: object) -> Result:
    return run_cli("export", "judgements", "--ledger", ledger, "--to", ledger.parent / to, *words)


# -- judges -----------------------------------------------------------------------------------------------------


def test_every_judge_is_listed_with_what_it_is() -> None:
    listed: list[dict[str, Any]] = json.loads(run_cli("judges", "list", "--json").stdout)

    assert [row["name"] for row in listed] == rooms.names("judges")
    assert all(row["spelling"].startswith(row["name"]) for row in listed)
    assert [row["name"] for row in listed if not (row["kind"] and row["needs"] and row["offline"] is not None)] == []


def test_one_price_is_shown_with_the_file_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('["mine"]\ninput = 0.5\noutput = 2\ndate = "2026-11"\n')

    shown = run_cli("judges", "prices", "mine", "--prices", tmp_path / "p.toml", "--json")

    assert json.loads(shown.stdout) == [
        {"model": "mine", "input": 0.5, "output": 2.0, "date": "2026-11", "source": str(tmp_path / "p.toml")}
    ]


def test_all_prices_are_lines_of_the_table() -> None:
    lines = run_cli("judges", "prices").stdout.splitlines()

    assert [line.split()[1:5] for line in lines if line.startswith("gpt-4o ")] == [["2.500", "in", "10.000", "out"]]


def test_an_unknown_model_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    shown = run_cli("judges", "prices", "no-such")

    assert (code_of(shown), shown.stdout) == (4, "")
    assert f"no price is known for no-such; add it to {tmp_path}/eyespot/prices.toml" in str(shown.exception)


# -- export -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["q.txt", "q.parquet"])
def test_qrels_name_queries_by_their_words(ledger: Path, to: str) -> None:
    done = export(ledger, to, "--qrels", "--json")

    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"out": str(ledger.parent / to), "queries": 2, "judgements": 3}
    assert read_qrels(ledger.parent / to).grades == {
        "a heron": {"a": 1, "b": 0},
        "an owl - 2:snow": {"a": 1},
    }


def test_a_file_of_queries_gives_their_ids_and_leaves_the_others_out(ledger: Path) -> None:
    (ledger.parent / "queries.csv").write_text("query_id,query_text\n17,a heron\n18,a stork\n")

    done = export(ledger, "q.txt", "--queries", ledger.parent / "queries.csv")

    assert (ledger.parent / "q.txt").read_text() == "17 0 a 1\n17 0 b 0\n"
    assert done.stderr == "eyespot: 1 judged queries are not among those named and are left out\n"


def test_a_threshold_moves_the_line(ledger: Path) -> None:
    export(ledger, "q.json", "--threshold", "0.7")

    assert read_qrels(ledger.parent / "q.json").grades["an owl - 2:snow"] == {"a": 0}


def test_a_table_has_failures_too(ledger: Path) -> None:
    assert json.loads(export(ledger, "j.jsonl", "--json").stdout)["judgements"] == 4


def test_one_of_several_judges_must_be_named_for_qrels(ledger: Path) -> None:
    with Judgements(ledger) as judgements:
        (digest,) = judgements.enter([HERON]).values()
        judgements.record([Judgement(digest, "a", "person:ada", "p", Verdict(0.0))])

    vague, exact = export(ledger, "q.txt"), export(ledger, "q.txt", "--by", "person:ada")

    assert code_of(vague) == 2 and "several have judged (m, person:ada)" in str(vague.exception)
    assert exact.exit_code == 0 and (ledger.parent / "q.txt").read_text() == "a heron\t0\ta\t0\n"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--to", "q.xls"), 2, "no ending that says what to write"),
        (("--to", "q.txt", "-g", "nowhere"), 4, "there is no ledger"),
    ],
)
def test_what_is_wrong_is_said(
    ledger: Path, words: tuple[str, ...], code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ledger.parent)

    done = run_cli("export", "judgements", *words)

    assert code_of(done) == code and sentence in str(done.exception)


def test_a_ledger_without_verdicts_has_nothing_to_give(tmp_path: Path) -> None:
    Judgements(tmp_path / "ledger.sqlite").close()

    done = export(tmp_path / "ledger.sqlite", "q.txt")

    assert code_of(done) == 4 and "has no verdict" in str(done.exception)
