"""The snapshot of sentences belongs to tests that are there, and no test changes it by itself."""

from __future__ import annotations

import os

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
