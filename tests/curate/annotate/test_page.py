"""The page on labelling runs as it stands, up to the server that it starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks, tools


@pytest.mark.long
def test_its_lines_run_up_to_the_server(tmp_path: Path) -> None:
    (script,) = blocks(ROOT / "docs" / "annotate.md", "sh")
    *lines, last = script.splitlines()

    done = subprocess.run(
        ["sh", "-ec", "\n".join(lines)], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True
    )

    assert last == "eyespot serve" and done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "50 new photos on the list, 50 in all"
