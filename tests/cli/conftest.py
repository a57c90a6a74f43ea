"""The command line as users run it: a process of its own, and a gallery of the sample photos made by it."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eyespot import sample
from tests.cli.hatched import Nest
from tests.made_once import made_once

READ_LATE = ("EYESPOT_", "HOME", "OPENAI_")  # variables that only eyespot's own code looks at, when it needs them
Eyespot = Callable[..., "subprocess.CompletedProcess[str]"]


def run_eyespot(
    *words: object, cwd: Path | None = None, before: Sequence[str] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    """`eyespot …` in a new process, without the caller's own EYESPOT_ settings; `before` is put before the line."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EYESPOT_")}
    usual = sys.platform == "linux" and not before and all(name.startswith(READ_LATE) for name in env)
    measured = "COVERAGE_PROCESS_START" in os.environ  # which sees new processes, and none that are forked
    if usual and not measured and nest().ready:
        return nest().run([str(word) for word in words], cwd, clean | env, 280)
    line = [*before, sys.executable, "-m", "eyespot.cli", *map(str, words)]
    return subprocess.run(line, cwd=cwd, env=clean | env, capture_output=True, text=True, timeout=280)


@cache
def nest() -> Nest:
    """Where this worker's processes are hatched."""
    made = Nest()
    atexit.register(made.close)
    return made


def confined() -> list[str]:
    """What to put before a line so that file permissions hold for it, also for root; skips where that cannot be."""
    if os.geteuid() != 0:
        return []
    capabilities = "-dac_override,-dac_read_search"
    line = ["setpriv", "--bounding-set", capabilities, "--inh-caps", capabilities]
    if not shutil.which("setpriv") or subprocess.run([*line, "test", "-e", "/"], capture_output=True).returncode:
        pytest.skip("root reads everything, and no setpriv takes that from it")
    return line


def copy_of_sample_gallery(place: Path) -> Path:
    """The 208 sample photos, which are indexed once."""
    return Path(shutil.copytree(made_once("sample", _index_sample) / "gallery", place))


def _index_sample(folder: Path) -> None:
    made = run_eyespot("index", sample.photos(), "-g", folder / "gallery", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["pictures"] == 208


@pytest.fixture(scope="session")
def sample_gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sample_gallery(tmp_path_factory.mktemp("sample") / "gallery")


@pytest.fixture
def search(sample_gallery: Path) -> Callable[..., list[dict[str, Any]]]:
    """`eyespot search … --json` in the sample photos, giving the items."""

    def ask(*words: object) -> list[dict[str, Any]]:
        found = run_eyespot("search", *words, "-g", sample_gallery, "--json")
        assert found.returncode == 0, found.stderr
        items: list[dict[str, Any]] = json.loads(found.stdout)["items"]
        return items

    return ask
