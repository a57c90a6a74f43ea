"""The page on re-ranking sets runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, tools

PAGE = ROOT / "docs" / "rerank.md"


@pytest.mark.long
def test_its_lines_and_its_code_run(tmp_path: Path) -> None:
    env, script = tools(tmp_path), "set -e\n" + "\n".join(blocks(PAGE, "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert shell.returncode == 0, shell.stderr
    (code,) = blocks(PAGE, "python")
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert len(found.stdout.splitlines()) == 2, found.stderr
