"""`eyespot describe` and the searches that need it; `eyespot map`, which places what came since."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot import sample
from tests.cli.conftest import done, gallery_of_samples, run_json
from tests.command import refuses
from tests.lazy_import import requires
from tests.pages import ROOT, blocks, run_code, run_lines
from tests.worlds import copy_of_sample_gallery


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = sorted(sample.photos().glob("explore_monuments__france*.jpg"))
    return gallery_of_samples(tmp_path_factory.mktemp("described") / "world", photos)


@requires("cv2")
@pytest.mark.long
def test_the_page_runs_as_it_stands(gallery: Path, tmp_path: Path) -> None:
    page = ROOT / "docs" / "research" / "rerank_baselines.md"
    (script, _), (code, chain, _) = blocks(page, "sh"), blocks(page, "python")
    (tmp_path / ".eyespot").symlink_to(gallery)

    printed = "".join(line.stdout for line in run_lines(script, tmp_path)).splitlines()

    assert [line.split()[0] for line in printed] == ["1", "2", "3", "4", "5"] * 3
    assert all("pontduGard" in line for line in printed[::5])
    assert run_code(code, tmp_path).startswith("5 0.")
    assert run_code(chain, tmp_path) == "spatial 5\n"


@requires("cv2")
@pytest.mark.long
def test_what_could_not_be_described_is_listed_and_ends_with_3(gallery: Path) -> None:
    photo = gallery.parent / "photos" / "explore_monuments__france_montStMichel.jpg"
    content = photo.read_bytes()
    photo.unlink()

    ran = done("describe", "-g", gallery, "--count", 20, "--workers", 2, code=3)
    photo.write_bytes(content)
    again = done("describe", "-g", gallery, "--count", 20, "--retry-failed")

    assert ran.stdout == f"{photo}\tno such file or directory\n" and "--retry-failed" in ran.stderr
    assert (again.stdout, again.stderr) == ("", "")


@pytest.mark.parametrize(
    "words", ["search castle --rerank-local chamfer@dinov2", "describe --with orb", "describe --workers 999"]
)
@requires("cv2")
def test_what_cannot_be_done_is_one_sentence(gallery: Path, words: str) -> None:
    refuses(*words.split(), "-g", gallery)


@requires("openTSNE")
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


@requires("openTSNE")
def test_a_gallery_without_photos_or_vectors_of_the_encoder_has_no_map(sample_gallery: Path, tmp_path: Path) -> None:
    refuses("map", "-g", sample_gallery, "-e", "hf:x")
    refuses("map", "-g", tmp_path / "nowhere")
