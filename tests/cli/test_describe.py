"""`eyespot describe` and the options of `eyespot search` that need what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot import sample
from tests.cli.conftest import done, gallery_of_samples
from tests.command import refuses
from tests.lazy_import import requires
from tests.pages import ROOT, blocks, run_code, run_lines

pytestmark = requires("cv2")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = sorted(sample.photos().glob("explore_monuments__france*.jpg"))
    return gallery_of_samples(tmp_path_factory.mktemp("described") / "world", photos)


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
def test_what_cannot_be_done_is_one_sentence(gallery: Path, words: str) -> None:
    refuses(*words.split(), "-g", gallery)
