"""The photos that the tests of this folder make sets from, indexed once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eyespot.curate.rmir.files import FinishedSteps
from tests.worlds.rmir import made, photos, recipe


@pytest.fixture(scope="session")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nineteen of the sample photos."""
    return photos(tmp_path_factory.mktemp("rmir"))


@pytest.fixture(scope="session")
def demonstrated(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> FinishedSteps:
    """The set that the demonstration makes of them; it lies in the parent of its `work`."""
    out = tmp_path_factory.mktemp("demonstrated")
    return made(recipe(out, gallery), out)


@pytest.fixture
def copied(tmp_path: Path, demonstrated: FinishedSteps) -> Path:
    """A folder in which that set was made as well, to go on with another recipe."""
    return Path(shutil.copytree(demonstrated.pipe.work.parent, tmp_path / "copied"))
