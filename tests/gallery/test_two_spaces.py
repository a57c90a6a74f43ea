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
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.view import Gallery
from eyespot.types import Encoder, UsageError
from tests.worlds import draw


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tiny_models.hf_clip(tmp_path_factory.mktemp("clip"))
    encoder: Encoder = rooms.load("encoders", f"hf:{folder}", device="cpu")
    return encoder


def test_a_second_encoder_is_added_and_both_are_kept_up_to_date(
    tmp_path: Path, photos: Path, starter: Encoder, tiny_clip: Encoder
) -> None:
    gallery = tmp_path / "gallery"
    index(gallery, [str(photos)], [starter], Options(shard_rows=4))
    before = [np.array(block) for block in eyespot.open(gallery).view.blocks]
    added = index(gallery, [], [tiny_clip], Options())
    draw(photos / "new.jpg", 99)
    later = index(gallery, [], [starter, tiny_clip], Options())

    assert (added.embedded, later.embedded) == (9, 1)
    assert Gallery(gallery).encoders == ["starter", tiny_clip.space.encoder]
    for name in Gallery(gallery).encoders:
        collection = eyespot.open(gallery, name)
        assert len(collection.search("stripes", k=50).image) == 10
        assert collection.view.blocks[0].shape[1] == collection.view.space.dim
    after = eyespot.open(gallery).view.blocks
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=False))


def test_vectors_of_a_space_added_later_are_those_of_the_encoder(
    tmp_path: Path, photos: Path, starter: Encoder, tiny_clip: Encoder
) -> None:
    index(tmp_path / "later", [str(photos)], [starter], Options())
    index(tmp_path / "later", [], [tiny_clip], Options())
    index(tmp_path / "first", [str(photos)], [tiny_clip], Options())

    (later,), (first,) = (
        eyespot.open(tmp_path / name, tiny_clip.space.encoder).view.blocks for name in ("later", "first")
    )
    np.testing.assert_array_equal(later, first)


def test_pictures_without_vectors_in_one_space_are_counted_and_filled_later(
    tmp_path: Path, photos: Path, starter: Encoder, tiny_clip: Encoder
) -> None:
    gallery = tmp_path / "my gallery"
    index(gallery, [str(photos)], [starter, tiny_clip], Options())
    draw(photos / "new.jpg", 99)
    index(gallery, [], [starter], Options())

    run = eyespot.open(gallery, tiny_clip.space.encoder).search("stripes", k=50)
    assert len(run.image) == 9
    (notice,) = [note for note in run.notes if "not searched: 1;" in note]
    assert shlex.split(notice.partition(" with: ")[2]) == ["eyespot", "index", "-g", str(gallery)]
    index(gallery, [], [starter, tiny_clip], Options())
    assert len(eyespot.open(gallery, tiny_clip.space.encoder).search("stripes", k=50).image) == 10


def test_a_picture_gone_before_its_second_vector_is_left_out_until_it_is_back(
    tmp_path: Path, photos: Path, starter: Encoder, tiny_clip: Encoder
) -> None:
    gallery = tmp_path / "gallery"
    index(gallery, [str(photos)], [starter], Options())
    backup = (photos / "photo1.jpg").read_bytes()
    (photos / "photo1.jpg").write_bytes(b"damaged")
    (tmp_path / "elsewhere").mkdir()
    index(gallery, [str(tmp_path / "elsewhere")], [tiny_clip], Options())  # the damage is not seen: no root is scanned

    assert len(eyespot.open(gallery, tiny_clip.space.encoder).search("stripes", k=50).image) == 8
    (photos / "photo1.jpg").write_bytes(backup)
    index(gallery, [], [starter, tiny_clip], Options(retry_failed=True))
    assert len(eyespot.open(gallery, tiny_clip.space.encoder).search("stripes", k=50).image) == 9


def test_trying_again_keeps_the_vectors_of_what_cannot_be_read_now(
    tmp_path: Path, photos: Path, starter: Encoder, tiny_clip: Encoder
) -> None:
    gallery = tmp_path / "gallery"
    index(gallery, [str(photos)], [starter], Options())
    (photos / "photo1.jpg").rename(tmp_path / "away.jpg")
    index(gallery, [], [tiny_clip], Options())
    before = np.array(eyespot.open(gallery, tiny_clip.space.encoder).view.blocks[0])
    photos.rename(tmp_path / "unplugged")
    index(gallery, [], [tiny_clip], Options(retry_failed=True))

    np.testing.assert_array_equal(eyespot.open(gallery, tiny_clip.space.encoder).view.blocks[0], before)
    assert before.any(axis=1).sum() == 8


def test_a_picture_is_read_from_whichever_of_its_paths_is_there(
    tmp_path: Path, photos: Path, starter: Encoder, tiny_clip: Encoder
) -> None:
    gallery = tmp_path / "gallery"
    shutil.copytree(photos, tmp_path / "a copy")
    index(gallery, [str(tmp_path / "a copy"), str(photos)], [starter], Options())
    (tmp_path / "a copy").rename(tmp_path / "unplugged")
    index(gallery, [], [tiny_clip], Options())

    assert len(eyespot.open(gallery, tiny_clip.space.encoder).search("stripes", k=50).image) == 9


def test_a_model_in_a_folder_is_named_from_the_current_folder_too(
    tmp_path: Path, photos: Path, tiny_clip: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(tmp_path / "gallery", [str(photos)], [tiny_clip], Options())
    folder = Path(tiny_clip.space.encoder.removeprefix("hf:"))
    monkeypatch.chdir(folder.parent)

    assert eyespot.open(tmp_path / "gallery", f"hf:{folder.name}").view.space.encoder == tiny_clip.space.encoder
    with pytest.raises(UsageError, match="no vectors of hf:other"):
        eyespot.open(tmp_path / "gallery", "hf:other")
