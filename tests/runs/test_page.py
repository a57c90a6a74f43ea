"""The page on runs says what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from eyespot.runs import QRELS_FORMATS, RUN_FORMATS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "runs.md"


def test_its_code_runs_as_it_stands(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.splitlines() == ["my photo.jpg", "{'b.jpg'}", "3"], found.stderr


def test_it_names_every_format() -> None:
    runs, qrels = PAGE.read_text(encoding="utf-8").split("## Qrels")
    assert all(f"`{name}`" in runs for name in RUN_FORMATS)
    assert all(f"`{name}`" in qrels for name in QRELS_FORMATS)
