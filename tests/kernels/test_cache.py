"""Compiled kernels are kept, and made anew when any source of theirs has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("numba", reason="kernels are compiled by numba, which comes with the extra [fast]")

PLACE = """
import os, sys
from eyespot.kernels import keep_compiled_kernels
{before}
keep_compiled_kernels()
import numba
print(os.environ["NUMBA_CACHE_DIR"], numba.config.CACHE_DIR)
"""


def place_of(package: Path, before: str = "", **environment: str) -> str:
    """The folder that a process with this copy of the package keeps kernels in."""
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(package), **environment}
    line = [sys.executable, "-c", PLACE.format(before=before)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=env, cwd=package)
    folder, used = done.stdout.split()
    assert folder == used
    return folder


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of what compiles."""
    room = "eyespot/kernels"
    shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "eyespot" / "__init__.py").touch()
    return tmp_path


@pytest.mark.long
def test_numba_that_was_loaded_before_uses_the_folder_too_and_one_of_the_user_is_taken(package: Path) -> None:
    assert place_of(package, before="import numba") == place_of(package)
    assert place_of(package, NUMBA_CACHE_DIR=str(package / "own")) == str(package / "own")


WRITABLE = "import pathlib; os.access = lambda place, mode: pathlib.Path(place) in map(pathlib.Path, {places!r})"


@pytest.mark.long
def test_a_package_that_cannot_be_written_keeps_them_in_the_users_cache(package: Path, tmp_path: Path) -> None:
    """The user of a test may be root, who can write everywhere: the system's answer is given here."""
    cache = tmp_path / "cache"
    cache.mkdir()
    asked = {"XDG_CACHE_HOME": str(cache)}
    user = place_of(package, before=WRITABLE.format(places=[str(cache)]), **asked)
    nowhere = place_of(package, before=WRITABLE.format(places=[]), **asked)

    assert Path(user).parent == cache / "eyespot" and "eyespot-numba-" in nowhere
    assert Path(user).name == Path(nowhere).name


@pytest.mark.long
def test_a_kernel_is_compiled_anew_when_what_it_calls_has_changed(package: Path) -> None:
    """numba by itself would go on with the old part: its file is another."""
    room = package / "eyespot" / "kernels"
    (room / "inner.py").write_text("import numba\n@numba.njit\ndef factor(x):\n    return 2 * x\n")
    (room / "outer.py").write_text(
        "from eyespot.kernels import keep_compiled_kernels\nkeep_compiled_kernels()\nimport numba\n"
        "from eyespot.kernels.inner import factor\n@numba.njit(cache=True)\ndef scaled(x):\n    return factor(x)\n"
    )
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {
        "PYTHONPATH": str(package)
    }
    line = [sys.executable, "-c", "from eyespot.kernels.outer import scaled; print(scaled(21))"]

    def answer() -> str:
        return subprocess.run(line, capture_output=True, text=True, check=True, env=env, cwd=package).stdout

    first, again = answer(), answer()
    (room / "inner.py").write_text("import numba\n@numba.njit\ndef factor(x):\n    return 3 * x\n")

    assert (first, again, answer()) == ("42\n", "42\n", "63\n")
    assert list((room / "__pycache__").glob("numba-*/*/outer.scaled-*.nbc"))
