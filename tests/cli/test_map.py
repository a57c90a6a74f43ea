"""`eyespot map` makes the map of a gallery, places what came since, and computes it anew when told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.lazy_import import requires
from tests.worlds import copy_of_sample_gallery

pytestmark = requires("openTSNE")


@pytest.mark.long
def test_a_map_is_made_once_then_completed_and_made_anew_with_again(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "g")
    made = run_json("map", "-g", gallery, "--sample", "60", "--seed", "3")
    assert (made["photos"], made["computed"], made["placed"], made["seed"]) == (208, 60, 148, 3)
    assert 0.5 < made["trustworthiness"] <= 1
    first = Path(made["file"]).read_bytes()

    more = done("map", "-g", gallery, "-e", "starter")
    assert more.stdout.startswith("208 photos on the map: 60 computed, 148 placed by their neighbours;")
    assert Path(made["file"]).read_bytes() == first

    again = run_json("map", "-g", gallery, "--encoder", "starter", "--again")
    assert again["seed"] == 0 and again["computed"] > 60


def test_a_gallery_without_photos_or_vectors_of_the_encoder_has_no_map(sample_gallery: Path, tmp_path: Path) -> None:
    refuses("map", "-g", sample_gallery, "-e", "hf:x")
    refuses("map", "-g", tmp_path / "nowhere")
