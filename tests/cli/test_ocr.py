"""`eyespot index --ocr`: text in pictures becomes facts that `--where` finds; without the extra, one sentence."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from eyespot import rooms
from eyespot.curate.recos.drawing import boards
from eyespot.gallery.indexing import Options, index
from tests.command import run_eyespot
from tests.lazy_import import requires
from tests.worlds import draw
from tests.worlds.bar_texts import BarReader, draw_bars


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two drawn signs and two pictures without writing."""
    folder = tmp_path / "photos"
    for seed in (1, 2):
        draw(folder / f"plain{seed}.jpg", seed)
    for name, text in {"gate": "NO PARKING 42", "shop": "FRESH FISH"}.items():
        chance = Random(name)
        boards.paint(text, boards.invent("text", chance), chance).save(folder / f"{name}.jpg")
    return folder


@pytest.mark.skipif(find_spec("rapidocr") is not None, reason="the extra [ocr] is installed")
def test_without_the_extra_nothing_is_indexed_and_the_line_is_said(photos: Path, tmp_path: Path) -> None:
    done = run_eyespot("index", photos, "--ocr", cwd=tmp_path)

    assert done.returncode == 1 and not (tmp_path / ".eyespot" / "shards").exists()
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("eyespot: rapidocr needs the extra [ocr]: ") and "pip install" in sentence


def test_a_dry_run_reads_no_text(photos: Path, tmp_path: Path) -> None:
    done = run_eyespot("index", photos, "--ocr", "--dry-run", cwd=tmp_path)

    assert done.returncode == 2 and "--ocr and --dry-run exclude each other" in done.stderr


@pytest.mark.long
@requires("rapidocr")
def test_signs_are_read_once_and_found_by_their_words(photos: Path, tmp_path: Path) -> None:
    first = run_eyespot("index", photos, "--ocr", "--workers", 1, cwd=tmp_path)
    again = json.loads(run_eyespot("index", "--ocr", "--json", cwd=tmp_path).stdout)
    condition = "text_in_picture ILIKE '%no parking%'"
    found = json.loads(run_eyespot("search", "a sign", "--where", condition, "--json", cwd=tmp_path).stdout)

    assert first.returncode == 0
    assert "text was read in 4 pictures now; 2 of the gallery have text" in first.stderr
    assert again["texts"] == {"read": 0, "with_text": 2, "away": 0, "failures": 0}
    assert [Path(hit["path"]).name for hit in found["items"]] == ["gate.jpg"]


def test_failures_lists_pictures_whose_text_could_not_be_read(tmp_path: Path) -> None:
    draw_bars(tmp_path / "photos" / "bad.png", "!!!")
    encoder = rooms.load("encoders", "starter")
    index(tmp_path / ".eyespot", [str(tmp_path / "photos")], [encoder], Options(workers=1, text_reader=BarReader()))

    done = run_eyespot("failures", "--json", cwd=tmp_path)

    assert json.loads(done.stdout) == [
        {"path": str(tmp_path / "photos" / "bad.png"), "reason": "its text: the bars are torn"}
    ]
