"""A pipeline on the command line: what it would do, what it did, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from eyespot.cli._building import carry_out, foretell, tell_done
from eyespot.pipelines import BudgetSpent, CostLimits, RunOptions
from tests.worlds.pipelines import ask_step, client, odd_ones_go, pipeline, source


def test_what_would_be_done(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps = [source(12), odd_ones_go(), ask_step(workers=1)]
    foretell(steps, tmp_path, RunOptions(), json=False)
    with pytest.raises(BudgetSpent):
        carry_out(steps, tmp_path, RunOptions(limits=CostLimits(calls=2), client=client()))

    foretell(steps, tmp_path, RunOptions(), json=False)

    assert capfd.readouterr().out.splitlines() == [
        "numbers          to run on records nobody knows yet",
        "even             to run on records nobody knows yet",
        "asked            to run on records nobody knows yet",
        "numbers          finished, 12 records",
        "even             finished, 6 records",
        "asked            to run on at most 6 records, 2 of them done; at most 4 calls, likely $1.00",
    ]


def test_what_was_done_and_that_records_failed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = carry_out(pipeline(), tmp_path, RunOptions(client=client()))

    with pytest.raises(typer.Exit) as left:
        tell_done(done, json=False)

    shown = capfd.readouterr()
    assert left.value.exit_code == 3 and "1 records failed" in shown.err
    assert shown.out.splitlines()[2] == "asked            6 in, 5 added, 7 kept; 3 bad; 1 no answer"


def test_both_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    foretell(pipeline(), tmp_path, RunOptions(limit=5), json=True)
    planned = json.loads(capfd.readouterr().out)
    tell_done(carry_out([source(3)], tmp_path, RunOptions()), json=True, out="x")
    report = json.loads(capfd.readouterr().out)

    assert planned["steps"][2]["spent"] == {"calls": 5, "tokens_in": 0, "tokens_out": 0, "money": 1.25}
    assert report["out"] == "x" and report["steps"][0]["kept"] == 3 and report["steps"][0]["ran"] is True
