"""A gallery of the sample photos, made by the command line, and a search in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eyespot import sample
from tests.command import run_eyespot
from tests.made_once import made_once


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
