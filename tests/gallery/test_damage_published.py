"""A published gallery is damaged at random, and the command that the reader's message names heals it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")


from tests.command import run_eyespot
from tests.lazy_import import requires

SCRIPT = Path(__file__).parents[2] / "scripts" / "damage_published.py"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("damage_published", SCRIPT)
    assert spec and spec.loader
    module = sys.modules["damage_published"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["damage_published"]


@pytest.mark.parametrize("count", [pytest.param(16, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.timeout(3600)
def test_faults_in_a_folder_are_healed(script: ModuleType, tmp_path: Path, count: int) -> None:
    world = script.World(tmp_path, f"file://{tmp_path}/store", run=run_eyespot)
    found = list(script.faults(world, count, seed=1))
    assert [fault for fault in found if fault[2] not in ("healed", "not seen")] == []
    assert sum(became == "healed" for _, _, became in found) >= 0.4 * count


@pytest.mark.parametrize("count", [pytest.param(18, marks=pytest.mark.slow)])
@pytest.mark.timeout(1800)
@requires("s3fs", "moto", "flask_cors")
def test_faults_in_a_bucket_are_healed(script: ModuleType, tmp_path: Path, count: int) -> None:
    with script.s3_server() as env:
        world = script.World(tmp_path, "s3://birds/store", env, run_eyespot)
        found = list(script.faults(world, count, seed=2))
    assert [fault for fault in found if fault[2] not in ("healed", "not seen")] == []
    assert sum(became == "healed" for _, _, became in found) >= count / 3
