"""The page on QuARI runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, tools

PAGE = ROOT / "docs" / "quari.md"


@pytest.mark.long
def test_its_lines_and_its_code_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    env, script = tools(tmp_path), "set -e\n" + "\n".join(blocks(PAGE, "sh"))

    shell = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert shell.returncode == 0, shell.stderr
    (code,) = blocks(PAGE, "python")
    ours = code + "\nimport sys; kept = np.load('found.npz'); sys.exit(int((kept['ids'] != found.rows).any()))"
    assert subprocess.run([sys.executable, "-c", ours], cwd=tmp_path, env=env).returncode == 0


@pytest.mark.long
def test_the_page_on_training_runs(tmp_path: Path) -> None:
    """The blocks of made-up and sample pictures; the others need published sets and a model from the hub."""
    pytest.importorskip("torch")
    script, published, labelled, hub = blocks(ROOT / "docs" / "training.md", "sh")

    shell = subprocess.run(
        ["sh", "-ec", script + "\n" + labelled], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True
    )

    assert shell.returncode == 0, shell.stderr
    assert "320 pairs, 80 held out" in shell.stderr and (tmp_path / "found.npz").is_file()
    assert "train2017" in published and "hf:openai" in hub
