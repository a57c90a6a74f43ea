"""The examples run as they stand, offline."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import copy_of_sample_gallery

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PRINTS = {  # what each script prints, in part
    "search_and_rerank.py": "indmill",
    "inquire_chain.py": "against the first stage: ",
    "quari.py": "mean reciprocal rank",
    "own_step.py": "large: ",
}
ELSEWHERE = {f"{name}_retriever.py" for name in ("haystack", "langchain", "llamaindex")}  # rows of scripts/extras.toml


def run(words: list[str], folder: Path, *paths: Path) -> str:
    path = os.pathsep.join(str(place) for place in (*paths, ROOT))
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all scripts, with the gallery that they make: they find nothing new."""
    place = tmp_path_factory.mktemp("examples")
    copy_of_sample_gallery(place / "sample-gallery")
    return place


@pytest.mark.long
@pytest.mark.parametrize("script", PRINTS)
def test_a_script_runs_as_it_stands(script: str, folder: Path) -> None:
    if script == "quari.py":
        pytest.importorskip("torch")

    assert PRINTS[script] in run([str(EXAMPLES / script)], folder)


@pytest.mark.long
def test_the_notebook_shows_what_it_stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scripts import notebook

    stored = json.loads((EXAMPLES / "first_look.ipynb").read_text(encoding="utf-8"))
    again = copy.deepcopy(stored)
    monkeypatch.chdir(folder)
    notebook.run(again)

    def texts(found: Any) -> list[list[str]]:
        outputs = [cell.get("outputs", ()) for cell in found["cells"]]
        return [[text for out in some for text in out.get("text") or out["data"]["text/plain"]] for some in outputs]

    assert texts(again) == texts(stored)
    assert any("<img" in "".join(out.get("data", {}).get("text/html", "")) for out in stored["cells"][3]["outputs"])


def test_every_script_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*PRINTS, *ELSEWHERE}


@pytest.mark.long
def test_a_package_adds_an_encoder(tmp_path: Path) -> None:
    """Built as a wheel and unpacked next to its metadata, as pip installs it."""
    pytest.importorskip("hatchling")
    site, photos = tmp_path / "site", ROOT / "eyespot" / "sample" / "photos"
    run(["-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], EXAMPLES / "encoder_plugin")
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    few = tmp_path / "photos"
    few.mkdir()
    for photo in sorted(photos.glob("*.jpg"))[:5]:
        (few / photo.name).symlink_to(photo)

    assert "colours" in run(["-m", "eyespot.cli", "encoders", "list"], tmp_path, site)
    run(["-m", "eyespot.cli", "index", "photos", "-e", "colours", "-g", "gallery"], tmp_path, site)
    assert ".jpg" in run(["-m", "eyespot.cli", "search", "blue", "-g", "gallery", "--paths"], tmp_path, site)
