"""The page on galleries that outgrow a laptop runs as it stands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, tools

PAGE = ROOT / "docs" / "scale.md"


@pytest.mark.long
def test_its_lines_run(tmp_path: Path) -> None:
    script = "set -e\n" + "\n".join(blocks(PAGE, "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True)
    assert shell.returncode == 0, shell.stderr
    found, _, plan = shell.stdout.partition("\n}\n")
    assert len(json.loads(found + "}")["items"]) == 3 and plan.startswith("100,000,000 images of starter")
    assert "were there; search it with" in plan and "windmill" in plan
    assert "20,000,000 images of starter" in plan and "1,000,000,000 images of starter, 1152 numbers each" in plan
