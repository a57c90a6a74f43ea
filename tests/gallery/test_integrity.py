"""Damage to shards: a full look names it wherever it strikes, and one run of `index` mends it to the bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eyespot.gallery import disk
from eyespot.gallery.files import Damaged
from eyespot.gallery.formats import npy
from eyespot.gallery.formats.registered import Copied, InPlace, take_in
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.gallery.integrity import Fault, faults
from eyespot.gallery.view import Gallery
from eyespot.storage.digests import DIGESTS
from eyespot.types import Encoder, EyespotError
from tests.examples import examples
from tests.worlds import draw

SHARDS, ROWS = 3, 4


def silent(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, starter: Encoder) -> Path:
    """Twelve photos in three shards, and beside them a copy to damage."""
    folder = tmp_path_factory.mktemp("sound")
    for seed in range(SHARDS * ROWS):
        draw(folder / "photos" / f"{seed:02d}.jpg", seed)
    index(folder / "sound", [str(folder / "photos")], [starter], Options(shard_rows=ROWS))
    shutil.copytree(folder / "sound", folder / "gallery")
    return folder


@pytest.fixture
def gallery(sound: Path) -> Path:
    """The copy, sound again."""
    shutil.rmtree(sound / "gallery")
    return Path(shutil.copytree(sound / "sound", sound / "gallery"))


def shards(gallery: Path) -> dict[str, bytes]:
    """Every file of every shard."""
    places = (place for place in (gallery / "shards").rglob("*") if place.is_file())
    return {place.relative_to(gallery).as_posix(): place.read_bytes() for place in places}


def mended(gallery: Path, starter: Encoder, repair: bool = True) -> Summary:
    return index(gallery, [], [starter], Options(repair=repair))


def vectors_of(gallery: Path, shard: int) -> Path:
    return disk.shard_path(gallery, shard) / f"{Gallery(gallery).stem()}.npy"


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]


def struck(data: bytes, way: str, share: float) -> bytes | None:
    """What damage leaves of a file; None: nothing, not even its name."""
    at = int(share * (len(data) - 1))
    left = {
        "flip": flip(data, at),
        "cut": data[:at],
        "longer": data + b"\nno more",
        "zeros": data[:at] + bytes(len(data) - at),
    }
    return left.get(way)


@pytest.mark.long
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blows=st.dictionaries(
        st.integers(0, SHARDS - 1),
        st.tuples(st.sampled_from(["flip", "cut", "longer", "zeros", "gone"]), st.floats(0, 1)),
        min_size=1,
    )
)
def test_any_damage_to_vectors_is_noticed_and_mended_to_the_bit(
    sound: Path, starter: Encoder, blows: dict[int, tuple[str, float]]
) -> None:
    gallery, before = sound / "gallery", shards(sound / "sound")
    changed = set()
    for shard, blow in blows.items():
        place = vectors_of(gallery, shard)
        after = struck(whole := place.read_bytes(), *blow)
        place.unlink() if after is None else place.write_bytes(after)
        changed |= {place.parent.name} if after != whole else set()

    noticed = {fault.shard for fault in faults(gallery, silent)}
    summary = mended(gallery, starter)

    assert noticed == changed
    assert summary.embedded == ROWS * len(changed)
    assert shards(gallery) == before
    assert faults(gallery, silent) == summary.damaged == []


@pytest.mark.parametrize("way", ["cut", "longer", "gone"])
@pytest.mark.parametrize("name", ["npy", "toml", "parquet"])
def test_what_shows_at_a_glance_is_mended_by_index_alone(
    sound: Path, gallery: Path, starter: Encoder, name: str, way: str
) -> None:
    """In the newest shard, whose type new vectors have."""
    (place,) = disk.shard_path(gallery, SHARDS - 1).glob(f"*.{name}")
    after = struck(place.read_bytes(), way, 0.5)
    place.unlink() if after is None else place.write_bytes(after)

    assert [fault.shard for fault in faults(gallery, silent)] == [place.parent.name]
    mended(gallery, starter, repair=False)

    assert shards(gallery) == shards(sound / "sound")


def test_a_flipped_page_of_facts_is_noticed_and_written_again(sound: Path, gallery: Path, starter: Encoder) -> None:
    place = disk.shard_path(gallery, 1) / "items.parquet"
    id = str(disk.read_items(place.parent)["id"][2]).encode()
    place.write_bytes(flip(data := place.read_bytes(), data.index(id)))

    assert [(fault.shard, fault.stem) for fault in faults(gallery, silent)] == [("00001", "")]
    assert mended(gallery, starter).embedded == 0
    assert shards(gallery) == shards(sound / "sound")


def test_a_shard_that_is_gone_is_noticed_and_made_again(sound: Path, gallery: Path, starter: Encoder) -> None:
    shutil.rmtree(disk.shard_path(gallery, 1))

    assert [fault.shard for fault in faults(gallery, silent)] == ["00001"]
    assert mended(gallery, starter, repair=False).embedded == ROWS
    assert shards(gallery) == shards(sound / "sound")


def test_a_note_that_names_other_rows_is_noticed(gallery: Path, starter: Encoder) -> None:
    place = vectors_of(gallery, 0).with_suffix(".toml")
    place.write_text(place.read_text().replace("missing = []", "missing = [2]"))

    (fault,) = faults(gallery, silent)
    (place.parent / DIGESTS).unlink()
    older = faults(gallery, silent)

    assert fault.reason == "its bytes are not those that were written"
    assert "row 2 holds no vector, or its note is wrong" in older[0].reason


def test_halves_stay_halves(sound: Path, starter: Encoder, tmp_path: Path) -> None:
    gallery = tmp_path / "gallery"
    index(gallery, [str(sound / "photos")], [starter], Options(shard_rows=2 * ROWS, half=True))
    before = shards(gallery)
    for place in gallery.glob("shards/*/*.npy"):
        place.unlink()
    mended(gallery, starter)

    assert shards(gallery) == before


def test_damaged_vectors_wait_for_a_disk_that_is_away(sound: Path, starter: Encoder, tmp_path: Path) -> None:
    """Their pictures cannot be embedded now; what is left of the vectors is not thrown away."""
    photos, gallery = tmp_path / "photos", tmp_path / "gallery"
    shutil.copytree(sound / "photos", photos)
    index(gallery, [str(photos)], [starter], Options())
    place, whole = vectors_of(gallery, 0), shards(gallery)
    place.write_bytes(flip(place.read_bytes(), 999))
    struck = shards(gallery)
    photos.rename(tmp_path / "away")

    summary = mended(gallery, starter)
    (tmp_path / "away").rename(photos)
    left = shards(gallery)
    mended(gallery, starter)

    assert left == struck and [fault.shard for fault in summary.damaged] == ["00000"]
    assert any(f"is repaired when {photos} is there again" in note for note in summary.notes)
    assert shards(gallery) == whole


def test_a_gallery_without_checksums_is_read_and_goes_on(gallery: Path, starter: Encoder) -> None:
    """As older versions wrote it; it gets digests, once its vectors were looked at."""
    for place in gallery.rglob(DIGESTS):
        place.unlink()
    for note in gallery.glob("shards/*/*.toml"):
        lines = note.read_text().splitlines()
        note.write_text("\n".join(line for line in lines if not line.startswith(("checksum", "dtype"))) + "\n")
    older = shards(gallery)

    assert faults(gallery, silent) == []
    vectors = np.load(place := vectors_of(gallery, 1))
    vectors[2, 5] = np.nan
    whole = place.read_bytes()
    np.save(place, vectors)
    assert [fault.shard for fault in faults(gallery, silent)] == ["00001"]
    place.write_bytes(whole)
    assert mended(gallery, starter, repair=False).embedded == 0
    now = shards(gallery)
    assert {name: now[name] for name in older} == older
    assert {name.rpartition("/")[2] for name in now.keys() - older.keys()} == {DIGESTS}


@pytest.mark.parametrize("way", [Copied(), InPlace()], ids=["copied", "in place"])
def test_damaged_imports_are_named_and_left(tmp_path: Path, starter: Encoder, way: Copied | InPlace) -> None:
    folder, gallery = tmp_path / "vectors", tmp_path / "gallery"
    folder.mkdir()
    np.save(folder / "vectors.npy", np.eye(8, dtype=np.float32))
    take_in(gallery, npy.source([folder]), "other", way)
    assert faults(gallery, silent) == []
    place = next(gallery.glob("shards/*/*.npy"), folder / "vectors.npy")
    vectors = np.load(place)
    vectors[3] = np.nan
    np.save(place, vectors)

    (fault,) = faults(gallery, silent)
    summary = mended(gallery, starter)

    assert summary.damaged == [fault] and fault.way_out.startswith("put it back from a copy")
    np.save(place, np.eye(8, dtype=np.float32))
    assert faults(gallery, silent) == []


def test_facts_that_neither_index_nor_shard_knows_are_embedded_again(gallery: Path, starter: Encoder) -> None:
    (gallery / "index.sqlite").unlink()
    shard = disk.shard_path(gallery, 2)
    (shard / "items.parquet").write_bytes(b"")

    with pytest.raises(EyespotError, match="move that folder away and run again") as excinfo:
        mended(gallery, starter)
    shutil.rmtree(shard)
    summary = mended(gallery, starter)

    assert str(shard) in str(excinfo.value)
    assert (summary.pictures, summary.embedded) == (SHARDS * ROWS, ROWS)


def test_a_search_of_rows_that_do_not_fit_names_the_shard(gallery: Path) -> None:
    place = vectors_of(gallery, 1)
    (place.parent / DIGESTS).unlink()  # as of an older gallery
    np.save(place, np.load(place)[:-1])
    view = Gallery(gallery).view(Gallery(gallery).stem())

    with pytest.raises(Damaged, match=r"00001.*eyespot index --repair -g "):
        _ = view.live


def test_faults_tell_shard_space_reason_and_way_out(gallery: Path) -> None:
    vectors_of(gallery, 1).unlink()
    stem = Gallery(gallery).stem()

    report = faults(gallery, silent)

    assert report == [
        Fault(
            "00001",
            stem,
            "no such file or directory",
            f"repair it with: eyespot index --repair -g {gallery}",
            f"{stem}.npy",
        )
    ]
