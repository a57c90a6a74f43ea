"""For pytest, in the runs of `mutants.py`: which test runs now, how long each takes, and which were chosen."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

SECONDS: dict[str, float] = {}
FAILED: set[str] = set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that were chosen, in their order."""
    if chosen := os.environ.get("MUTANTS_CHOSEN"):
        order = {test: place for place, test in enumerate(json.loads(Path(chosen).read_text()))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tell coverage.py which test runs, here and in processes that the test starts."""
    if "MUTANTS_SECONDS" in os.environ:
        os.environ["MUTANTS_TEST"] = item.nodeid
        if measuring := import_module("coverage").Coverage.current():
            measuring.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up a test's parts."""
    SECONDS[report.nodeid] = SECONDS.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        FAILED.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write down the tests that passed."""
    if place := os.environ.get("MUTANTS_SECONDS"):
        passed = {test: seconds for test, seconds in SECONDS.items() if test not in FAILED}
        Path(place).write_text(json.dumps(passed))
