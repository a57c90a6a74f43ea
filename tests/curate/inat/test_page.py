"""The page on curating runs as it stands."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, tools


@pytest.mark.long
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    script = "set -e\n" + "\n".join(blocks(ROOT / "docs" / "inat.md", "sh"))
    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True)
    assert shell.returncode == 0, shell.stderr
    assert "step,what,observations" in shell.stdout and (tmp_path / "birds" / "card.html").is_file()
