"""Damage to shards: a full look names it wherever it strikes, and one run of `index` mends it to the bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery import disk
from eyespot.gallery.files import Damaged
from eyespot.gallery.indexing import Summary
from eyespot.gallery.integrity import faults
from eyespot.gallery.view import Gallery
from eyespot.storage.digests import DIGESTS
from eyespot.types import EyespotError, no_progress
from tests.worlds import draw_photos, index_gallery, make_gallery
from tests.worlds.galleries import contents, flip, opened

SHARDS, ROWS = 3, 4


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve photos in three shards, and beside them a copy to damage."""
    folder = tmp_path_factory.mktemp("sound")
    index_gallery(folder / "sound", draw_photos(folder / "photos", SHARDS * ROWS), shard_rows=ROWS)
    shutil.copytree(folder / "sound", folder / "gallery")
    return folder


@pytest.fixture
def gallery(sound: Path) -> Path:
    """The copy, sound again."""
    shutil.rmtree(sound / "gallery")
    return Path(shutil.copytree(sound / "sound", sound / "gallery"))


def shards_of(gallery: Path) -> dict[str, bytes]:
    """Every file of every shard."""
    return contents(gallery / "shards")


def mended(gallery: Path, repair: bool = True) -> Summary:
    summary: Summary = index_gallery(gallery, repair=repair)
    return summary


def vectors_of(gallery: Path, shard: int) -> Path:
    return disk.shard_path(gallery, shard) / f"{Gallery(gallery).stem()}.npy"


@pytest.mark.parametrize("way", ["cut", "longer", "gone"])
@pytest.mark.parametrize("name", ["npy", "toml", "parquet"])
def test_what_shows_at_a_glance_is_mended_by_index_alone(sound: Path, gallery: Path, name: str, way: str) -> None:
    """In the newest shard, whose type new vectors have; and a shard is gone."""
    (place,) = disk.shard_path(gallery, SHARDS - 1).glob(f"*.{name}")
    data = place.read_bytes()
    place.write_bytes({"cut": data[: len(data) // 2], "longer": data + b"\nno more"}.get(way, data))
    if way == "gone":
        place.unlink()
    shutil.rmtree(disk.shard_path(gallery, 1))
    assert {fault.shard for fault in faults(gallery, no_progress)} == {"00001", place.parent.name}
    mended(gallery, repair=False)
    assert shards_of(gallery) == shards_of(sound / "sound")


def test_a_note_that_names_other_rows_is_noticed(gallery: Path) -> None:
    place = vectors_of(gallery, 0).with_suffix(".toml")
    place.write_text(place.read_text().replace("missing = []", "missing = [2]"))

    (fault,) = faults(gallery, no_progress)
    (place.parent / DIGESTS).unlink()
    older = faults(gallery, no_progress)[0]

    assert (fault.shard, fault.stem, fault.file) == ("00000", Gallery(gallery).stem(), place.name)
    assert fault.way_out.endswith(f"eyespot index --repair -g {gallery}")
    assert "row 2" in older.reason and "row 2" not in fault.reason


def test_halves_stay_halves(sound: Path, tmp_path: Path) -> None:
    index_gallery(tmp_path, sound / "photos", shard_rows=2 * ROWS, half=True)
    before = shards_of(tmp_path)
    for place in tmp_path.glob("shards/*/*.npy"):
        place.unlink()
    mended(tmp_path)
    assert shards_of(tmp_path) == before


def test_damaged_vectors_wait_for_a_disk_that_is_away(tmp_path: Path) -> None:
    """Their pictures cannot be embedded now; what is left of the vectors is not thrown away."""
    gallery, photos = make_gallery(tmp_path), tmp_path / "photos"
    whole = shards_of(gallery)
    flip(vectors_of(gallery, 0), 999)
    struck = shards_of(gallery)
    photos.rename(tmp_path / "away")

    summary = mended(gallery)
    (tmp_path / "away").rename(photos)
    left = shards_of(gallery)
    mended(gallery)

    assert left == struck and [fault.shard for fault in summary.damaged] == ["00000"]
    assert any(f"repaired when {photos} " in note for note in summary.notes)
    assert shards_of(gallery) == whole


def test_a_gallery_without_checksums_is_read_and_goes_on(gallery: Path) -> None:
    """As older versions wrote it; it gets digests, once its vectors were looked at."""
    for place in gallery.rglob(DIGESTS):
        place.unlink()
    for note in gallery.glob("shards/*/*.toml"):
        lines = note.read_text().splitlines()
        note.write_text("\n".join(line for line in lines if not line.startswith(("checksum", "dtype"))) + "\n")
    older = shards_of(gallery)

    assert faults(gallery, no_progress) == []
    vectors = np.load(place := vectors_of(gallery, 1))
    vectors[2, 5] = np.nan
    whole = place.read_bytes()
    np.save(place, vectors)
    assert [fault.shard for fault in faults(gallery, no_progress)] == ["00001"]
    place.write_bytes(whole)
    assert mended(gallery, repair=False).embedded == 0
    now = shards_of(gallery)
    assert {name: now[name] for name in older} == older
    assert {name.rpartition("/")[2] for name in now.keys() - older.keys()} == {DIGESTS}


@pytest.mark.parametrize("copy", [True, False], ids=["copied", "in place"])
def test_damaged_imports_are_named_and_left(tmp_path: Path, copy: bool) -> None:
    folder, gallery = tmp_path / "vectors", tmp_path / "gallery"
    folder.mkdir()
    np.save(folder / "vectors.npy", np.eye(8, dtype=np.float32))
    take_in(gallery, npy.source([folder]), "other", copy=copy)
    assert faults(gallery, no_progress) == []
    place = next(gallery.glob("shards/*/*.npy"), folder / "vectors.npy")
    vectors = np.load(place)
    vectors[3] = np.nan
    np.save(place, vectors)

    (fault,) = faults(gallery, no_progress)
    summary = mended(gallery)

    assert summary.damaged == [fault] and "--repair" not in fault.way_out
    np.save(place, np.eye(8, dtype=np.float32))
    assert faults(gallery, no_progress) == []


def test_facts_that_neither_index_nor_shard_knows_are_embedded_again(gallery: Path) -> None:
    (gallery / "index.sqlite").unlink()
    shard = disk.shard_path(gallery, 2)
    (shard / "items.parquet").write_bytes(b"")

    with pytest.raises(EyespotError, match=str(shard)):
        mended(gallery)
    shutil.rmtree(shard)
    summary = mended(gallery)

    assert (summary.pictures, summary.embedded) == (SHARDS * ROWS, ROWS)


def test_a_search_of_rows_that_do_not_fit_names_the_shard(gallery: Path) -> None:
    place = vectors_of(gallery, 1)
    (place.parent / DIGESTS).unlink()  # as of an older gallery
    np.save(place, np.load(place)[:-1])
    view = opened(gallery)
    with pytest.raises(Damaged, match=r"00001.*eyespot index --repair -g "):
        _ = view.live
