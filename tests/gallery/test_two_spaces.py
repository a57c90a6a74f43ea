"""Two encoders' spaces side by side in one gallery: adding one never disturbs the other."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_models

import eyespot
from eyespot import rooms
from eyespot.gallery.view import Gallery
from eyespot.types import Encoder, UsageError
from tests.worlds import draw, draw_photos, index_gallery


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tiny_models.hf_clip(tmp_path_factory.mktemp("clip"))
    encoder: Encoder = rooms.load("encoders", f"hf:{folder}", device="cpu")
    return encoder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return draw_photos(tmp_path / "photos", 5)


@pytest.fixture
def gallery(tmp_path: Path, photos: Path) -> Path:
    """Five photos in one space."""
    index_gallery(tmp_path / "my gallery", photos, shard_rows=3)
    return tmp_path / "my gallery"


def found(gallery: Path, encoder: Encoder | str) -> int:
    """How many photos a search in a space finds."""
    name = encoder if isinstance(encoder, str) else encoder.space.encoder
    return len(eyespot.open(gallery, name).search("stripes", k=50).image)


def vectors(gallery: Path, encoder: Encoder | str) -> np.ndarray:
    name = encoder if isinstance(encoder, str) else encoder.space.encoder
    return np.concatenate([np.array(block) for block in eyespot.open(gallery, name).view.blocks])


@pytest.mark.long
def test_a_second_encoder_is_added_and_both_are_kept_up_to_date(
    tmp_path: Path, photos: Path, gallery: Path, clip: Encoder
) -> None:
    before = vectors(gallery, "starter")
    added = index_gallery(gallery, encoders=[clip])
    index_gallery(tmp_path / "first", photos, encoders=[clip])
    assert np.array_equal(vectors(gallery, clip), vectors(tmp_path / "first", clip))
    draw(photos / "new.jpg", 99)
    later = index_gallery(gallery, encoders=["starter", clip])

    assert (added.embedded, later.embedded) == (5, 1)
    assert Gallery(gallery).encoders == ["starter", clip.space.encoder]
    assert found(gallery, "starter") == found(gallery, clip) == 6
    assert np.array_equal(vectors(gallery, "starter")[:5], before)
    assert vectors(gallery, clip).shape == (6, clip.space.dim)


@pytest.mark.long
def test_pictures_without_vectors_in_one_space_are_counted_and_filled_later(
    photos: Path, gallery: Path, clip: Encoder
) -> None:
    index_gallery(gallery, encoders=[clip])
    draw(photos / "new.jpg", 99)
    index_gallery(gallery)

    run = eyespot.open(gallery, clip.space.encoder).search("stripes", k=50)
    assert len(run.image) == 5
    (notice,) = [note for note in run.notes if "not searched: 1;" in note]
    assert shlex.split(notice.partition(" with: ")[2]) == ["eyespot", "index", "-g", str(gallery)]
    index_gallery(gallery, encoders=["starter", clip])
    assert found(gallery, clip) == 6


def test_a_picture_that_cannot_be_read_for_its_second_vector_is_left_out_until_it_is_back(
    tmp_path: Path, photos: Path, gallery: Path, clip: Encoder
) -> None:
    backup = (photos / "1.jpg").read_bytes()
    (photos / "1.jpg").write_bytes(b"damaged")
    (tmp_path / "elsewhere").mkdir()
    index_gallery(gallery, tmp_path / "elsewhere", encoders=[clip])  # the damage is not seen: no root is scanned
    before = vectors(gallery, clip)
    assert found(gallery, clip) == before.any(axis=1).sum() == 4

    photos.rename(tmp_path / "unplugged")
    index_gallery(gallery, encoders=[clip], retry_failed=True)
    assert np.array_equal(vectors(gallery, clip), before)

    (tmp_path / "unplugged").rename(photos)
    (photos / "1.jpg").write_bytes(backup)
    index_gallery(gallery, encoders=["starter", clip], retry_failed=True)
    assert found(gallery, clip) == 5


def test_a_picture_is_read_from_whichever_of_its_paths_is_there(tmp_path: Path, photos: Path, clip: Encoder) -> None:
    shutil.copytree(photos, tmp_path / "a copy")
    index_gallery(tmp_path / "gallery", tmp_path / "a copy", photos)
    (tmp_path / "a copy").rename(tmp_path / "unplugged")
    index_gallery(tmp_path / "gallery", encoders=[clip])

    assert found(tmp_path / "gallery", clip) == 5


def test_a_model_in_a_folder_is_named_from_the_current_folder_too(
    gallery: Path, clip: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_gallery(gallery, encoders=[clip])
    folder = Path(clip.space.encoder.removeprefix("hf:"))
    monkeypatch.chdir(folder.parent)

    assert eyespot.open(gallery, f"hf:{folder.name}").view.space.encoder == clip.space.encoder
    with pytest.raises(UsageError, match="hf:other"):
        eyespot.open(gallery, "hf:other")
