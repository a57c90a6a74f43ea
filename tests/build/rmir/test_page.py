"""The page on RMIR sets: its commands and its Python run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.test_docs import ROOT, blocks, tools

PAGE = ROOT / "docs" / "rmir.md"


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    env = tools(tmp_path)

    shell = subprocess.run(
        ["sh", "-c", "set -e\n" + "\n".join(blocks(PAGE, "sh"))], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert shell.returncode == 0, shell.stderr
    (code,) = blocks(PAGE, "python")
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert python.stdout.split()[0] in ("functional", "temporal", "causal"), python.stderr
