"""The photos that the tests of this folder make sets from, indexed once, and the set that the demonstration makes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eyespot.curate.recos.making import RecosSteps
from tests.worlds.recos import made, photos, recipe


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nineteen of the sample photos."""
    return photos(tmp_path_factory.mktemp("recos"))


@pytest.fixture(scope="session")
def demonstrated(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> RecosSteps:
    """The set that the demonstration makes of them."""
    out = tmp_path_factory.mktemp("demonstrated")
    return made(recipe(out, gallery), out)


@pytest.fixture
def copied(tmp_path: Path, demonstrated: RecosSteps) -> Path:
    """A folder in which that set was made as well, to go on with."""
    return Path(shutil.copytree(demonstrated.pipe.out, tmp_path / "copied"))
