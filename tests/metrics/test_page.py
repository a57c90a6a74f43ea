"""The page on metrics runs as it stands, and names every measure and preset."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eyespot.metrics import PRESETS, names
from tests.pages import ROOT, blocks, tools

PAGE = ROOT / "docs" / "metrics.md"


@pytest.mark.long
def test_the_page_on_metrics_runs_as_it_stands(tmp_path: Path) -> None:
    script = "set -e\n" + "\n".join(blocks(PAGE, "sh"))
    env = tools(tmp_path)

    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    (code,) = blocks(PAGE, "python")
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert (shell.returncode, python.returncode) == (0, 0), shell.stderr + python.stderr
    assert shell.stdout.splitlines()[0].split()[:2] == ["AP@50", "0.5000"]


def test_every_measure_and_preset_is_described() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert [name for name in names() if f"`{name}" not in text] == []
    assert [name for name in PRESETS if f"`{name}`" not in text] == []
