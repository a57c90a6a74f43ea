"""The snapshot of sentences belongs to tests that are there, and no test changes it by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eyespot.types import UsageError
from tests import wording


def test_every_sentence_belongs_to_a_test() -> None:
    assert wording.stale() == []


def test_a_sentence_that_was_changed_fails_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(wording.REWRITE, raising=False)

    with pytest.raises(AssertionError, match="make wording"), wording.raises(UsageError):
        raise UsageError("nobody has said this before")


def test_another_class_fails_its_test() -> None:
    with pytest.raises(AssertionError, match="KeyError"), wording.raises(LookupError):
        raise KeyError("a")


def test_what_differs_from_run_to_run_is_left_out(tmp_path: os.PathLike[str]) -> None:
    general = wording.general(f"{tmp_path}/a.jpg is not there; ask http://127.0.0.1:4711/v1, or see {wording.TESTS}")

    assert general == "TMP/a.jpg is not there; ask http://127.0.0.1:PORT/v1, or see CHECKOUT/tests"


# -- that the test command runs every file of tests --------------------------------------------------------------


TESTS = Path(__file__).parent


def test_no_file_of_tests_is_passed_over(request: pytest.FixtureRequest) -> None:
    folders = {folder.name for folder in TESTS.rglob("*") if folder.is_dir() and next(folder.glob("test_*.py"), None)}
    passed_over = [
        name for name in folders if any(Path(name).match(pattern) for pattern in request.config.getini("norecursedirs"))
    ]

    assert "rmir" in folders
    assert passed_over == []
