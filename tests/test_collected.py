"""That the test command runs every file of tests: a folder that is passed over fails in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def test_no_file_of_tests_is_passed_over(request: pytest.FixtureRequest) -> None:
    folders = {folder.name for folder in TESTS.rglob("*") if folder.is_dir() and next(folder.glob("test_*.py"), None)}
    passed_over = [
        name for name in folders if any(Path(name).match(pattern) for pattern in request.config.getini("norecursedirs"))
    ]

    assert "rmir" in folders
    assert passed_over == []
