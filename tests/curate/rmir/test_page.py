"""The page on RMIR sets: its commands and its Python run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, run_page, tools

PAGE = ROOT / "docs" / "rmir.md"


@pytest.mark.long
def test_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = tools(tmp_path)

    run_page(PAGE, tmp_path, env, monkeypatch)
    (code,) = blocks(PAGE, "python")
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert python.stdout.split()[0] in ("functional", "temporal", "causal"), python.stderr
