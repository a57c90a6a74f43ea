"""`python -m eyespot`, for those whose shell does not find the command."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_runs_as_a_module() -> None:
    version, wrong = (
        subprocess.run([sys.executable, "-m", "eyespot", word], capture_output=True, text=True, timeout=60)
        for word in ("--version", "serch")
    )

    assert version.returncode == 0 and version.stdout.startswith("eyespot ")
    assert wrong.returncode == 2 and "Did you mean 'search'" in wrong.stderr
