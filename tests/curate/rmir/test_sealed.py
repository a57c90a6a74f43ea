"""What the panel said, sealed beside the queues: enough to compare without the recipe, and nothing less."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.curate.rmir.audit import (
    LAST,
    PANEL,
    VERDICTS,
    agreed,
    agreements,
    compared,
    last_hits,
    read_panel,
    said_in,
)
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.pipelines.human_review import Queue
from eyespot.types import UsageError


@pytest.fixture
def audit(copied: Path) -> Path:
    """The folder of the queues, every other case accepted."""
    folder = copied / "audit"
    for name in (VERDICTS, LAST):
        queue = Queue(folder / name)
        for at, case in enumerate(queue.cases.values()):
            queue.decide(case, "accept" if at % 2 else "drop", "ada")
    return folder


def test_it_covers_every_case_and_no_other(audit: Path) -> None:
    cases = {id for name in (VERDICTS, LAST) for id in Queue(audit / name).cases}
    assert set(read_panel(audit)) == cases


def test_the_agreement_is_that_of_the_finished_set(audit: Path, demonstrated: FinishedSteps) -> None:
    assert agreed(read_panel(audit), said_in(audit / VERDICTS)) == agreements(demonstrated, audit) != []


def test_the_last_hits_compare_as_in_the_finished_set(audit: Path, demonstrated: FinishedSteps) -> None:
    found = compared(read_panel(audit), said_in(audit / LAST))
    assert found is not None and found == last_hits(demonstrated, audit)


def test_without_it_there_is_none(tmp_path: Path) -> None:
    assert read_panel(tmp_path) == {}


def test_a_line_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / PANEL).write_text('{"id": "x"}\n')
    with pytest.raises(UsageError, match="line 1: is not what a panel said"):
        read_panel(tmp_path)
