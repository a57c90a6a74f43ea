"""A gallery of the sample photos, made by the command line, and a search in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eyespot import sample
from tests.command import Done, environment, run_eyespot
from tests.worlds import copy_of_sample_gallery, index_gallery

FEW = ("eiffelTower", "bucket", "cup", "chair", "bulb", "dam1")


def done(*words: object, code: int = 0, **more: Any) -> Done:
    ran = run_eyespot(*words, **more)
    assert ran.returncode == code, f"ended with {ran.returncode}: {ran.stderr}"
    return ran


def run_json(*words: object, **more: Any) -> Any:
    return json.loads(done(*words, "--json", **more).stdout)


def gallery_of_samples(folder: Path, photos: Sequence[Path]) -> Path:
    """`folder/gallery` of copies of these sample photos in `folder/photos`."""
    (folder / "photos").mkdir(parents=True)
    for photo in photos:
        shutil.copy(photo, folder / "photos")
    index_gallery(folder / "gallery", folder / "photos")
    return folder / "gallery"


@contextmanager
def serving(gallery: Path, *words: object, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of `eyespot serve`, and the address that it told."""
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", "0", *map(str, words)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(line, env=environment(**env), stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stderr is not None
        message = process.stderr.readline()
        found = re.search(r"look at (\S+);", message)
        assert found, message + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def sample_gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sample_gallery(tmp_path_factory.mktemp("sample") / "gallery")


@pytest.fixture(scope="session")
def few_gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = [sample.photos() / f"categorization__{name}.jpg" for name in FEW]
    return gallery_of_samples(tmp_path_factory.mktemp("few"), photos)


@pytest.fixture
def search(sample_gallery: Path) -> Callable[..., list[dict[str, Any]]]:
    """`eyespot search … --json` in the sample photos, giving the items."""

    def ask(*words: object) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = run_json("search", *words, "-g", sample_gallery)["items"]
        return items

    return ask
