"""`eyespot map` makes the map of a gallery, places what came since, and computes it anew when told to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import copy_of_sample_gallery
from tests.command import run_eyespot
from tests.lazy_import import requires

pytestmark = requires("openTSNE")


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    return copy_of_sample_gallery(tmp_path / "g")


@pytest.mark.long
def test_a_map_is_made_once_then_completed_and_made_anew_with_again(gallery: Path) -> None:
    made = json.loads(run_eyespot("map", "-g", gallery, "--json", "--sample", "60", "--seed", "3").stdout)
    assert (made["photos"], made["computed"], made["placed"], made["seed"]) == (208, 60, 148, 3)
    assert 0.5 < made["trustworthiness"] <= 1
    first = Path(made["file"]).read_bytes()

    more = run_eyespot("map", "-g", gallery, "-e", "starter")
    assert more.stdout.startswith("208 photos on the map: 60 computed, 148 placed by their neighbours;")
    assert Path(made["file"]).read_bytes() == first

    again = json.loads(run_eyespot("map", "-g", gallery, "--encoder", "starter", "--again", "--json").stdout)
    assert again["seed"] == 0 and again["computed"] > 60


def test_a_gallery_without_photos_or_vectors_of_the_encoder_has_no_map(gallery: Path, tmp_path: Path) -> None:
    assert "has no vectors of hf:x" in run_eyespot("map", "-g", gallery, "-e", "hf:x").stderr
    shutil.rmtree(gallery)
    none = run_eyespot("map", "-g", gallery)
    assert none.returncode != 0 and "eyespot index" in none.stderr
