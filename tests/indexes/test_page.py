"""The page on exact search runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.pages import ROOT, blocks


def test_its_code_runs(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "docs" / "exact.md", "python")

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
