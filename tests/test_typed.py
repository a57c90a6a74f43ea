"""Type checkers of people who install eyespot see its types."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import eyespot

collection = eyespot.open(".eyespot")
reveal_type(collection)
reveal_type(collection.search("a heron", k=5))
"""


def test_a_script_that_uses_eyespot_is_checked_against_its_types(tmp_path: Path) -> None:
    """Without `py.typed` all of them would be `Any`, and mypy would say that stubs are missing."""
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "eyespot.pth").write_text(f"{ROOT}\n", encoding="utf-8")  # as an editable install does it
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    line = [sys.executable, "-m", "mypy", "--python-executable", str(tmp_path / "venv" / "bin" / "python")]
    quiet = ["--cache-dir", str(tmp_path / "cache"), "--config-file", "", "script.py"]

    checked = subprocess.run([*line, *quiet], cwd=tmp_path, capture_output=True, text=True)

    revealed = [line for line in checked.stdout.splitlines() if "Revealed type" in line]
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert ["eyespot." in line for line in revealed] == [True, True], revealed
