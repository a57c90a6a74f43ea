"""Local features on disk: what goes in comes out, a shard that is done is done, and what failed is told."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot import rooms
from eyespot.cli.index import update
from eyespot.gallery import disk
from eyespot.gallery.describing import Describing, describe
from eyespot.gallery.indexing import Options
from eyespot.gallery.local import Described, DescribedShard, LocalNote, local_sets, new_local, read_local_note
from eyespot.photos.places import Root
from eyespot.types import Encoder, EyespotError, LocalFeatures, NothingFound, UsageError
from tests.lazy_import import requires
from tests.wording import check_wording, raises
from tests.worlds import draw, index_gallery, make_gallery
from tests.worlds.galleries import contents, facts_of, flip, opened


@dataclass
class Corners:
    """An extractor of the four corners' colours, brightest first, that counts the pictures it sees."""

    name: str = "corners"
    settings: dict[str, Any] = field(default_factory=lambda: {"corners": 4})
    min_side: int | None = None
    seen: int = 0

    def describe(self, picture: Image.Image, count: int) -> LocalFeatures:
        self.seen += 1
        width, height = picture.size
        places = [(x, y) for x in (0, width - 1) for y in (0, height - 1)]
        colours = np.array([picture.getpixel(place) for place in places], np.uint8)
        order = np.argsort(-colours.sum(axis=1, dtype=int), kind="stable")[:count]
        return LocalFeatures(colours[order], np.array(places, np.float32)[order])


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine photos and their gallery, in shards of four."""
    return make_gallery(tmp_path_factory.mktemp("indexed"), 9, shard_rows=4).parent


@pytest.fixture
def photos(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed / "photos", tmp_path / "photos"))


@pytest.fixture
def gallery(indexed: Path, photos: Path, tmp_path: Path) -> Path:
    """A copy whose root is the copy of the photos."""
    copied = Path(shutil.copytree(indexed / "gallery", tmp_path / "gallery"))
    header = disk.read_header(copied)
    header.roots = {number: Root(str(photos), "folder") for number in header.roots}
    disk.write_header(copied, header)
    return copied


def described(gallery: Path, extractor: str | None = None) -> Described:
    return Described.of(opened(gallery), extractor)


def flipped(gallery: Path, pattern: str) -> dict[str, bytes]:
    for place in gallery.rglob(pattern):
        flip(place, -1)
    return local_files(gallery)


def local_files(gallery: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(gallery).items() if "/local/" in name}


def test_what_stands_in_the_gallery_is_what_the_extractor_gave(gallery: Path) -> None:
    describe(gallery, Corners(), Describing(count=3))
    facts, found = facts_of(gallery), described(gallery)
    for fact, features in zip(facts, found.features([fact["id"] for fact in facts]), strict=True):
        wanted = Corners().describe(Image.open(fact["path"]).convert("RGB"), 3)
        assert features is not None
        np.testing.assert_array_equal(features.descriptors, wanted.descriptors)
        np.testing.assert_array_equal(features.keypoints, wanted.keypoints)


def test_a_new_picture_alone_is_described(gallery: Path, photos: Path) -> None:
    describe(gallery, Corners())
    draw(photos / "new.jpg", 50)
    index_gallery(gallery, photos)
    summary = describe(gallery, extractor := Corners())
    assert (extractor.seen, summary.described, summary.pictures, summary.failures) == (1, 1, 10, [])


def test_only_what_is_asked_for_is_described_and_the_rest_another_time(gallery: Path) -> None:
    ids = [fact["id"] for fact in facts_of(gallery)]

    first = describe(gallery, Corners(), Describing(only=set(ids[2:5])))
    there = [features is not None for features in described(gallery).features(ids)]
    rest = describe(gallery, Corners())

    assert (first.pictures, first.described, rest.described) == (3, 3, len(ids) - 3)
    assert there == [at in (2, 3, 4) for at in range(len(ids))]


def test_what_cannot_be_read_is_told_and_tried_again_only_when_asked(gallery: Path, photos: Path) -> None:
    lost = photos / "1.jpg"
    backup = lost.read_bytes()
    lost.unlink()
    (photos / "2.jpg").write_bytes(backup)

    first, again = describe(gallery, Corners()), describe(gallery, Corners())
    lost.write_bytes(backup)
    mended = describe(gallery, Corners(), Describing(retry_failed=True))

    assert [Path(failure.path).name for failure in first.failures] == ["1.jpg", "2.jpg"]
    for failure in first.failures:
        check_wording(failure.reason)
    assert (first.described, again.described, again.failures) == (7, 0, first.failures)
    assert (mended.described, [Path(failure.path).name for failure in mended.failures]) == (1, ["2.jpg"])


def test_mending_a_shard_leaves_it_as_if_nothing_had_failed(gallery: Path, photos: Path, tmp_path: Path) -> None:
    away = (photos / "4.jpg").rename(tmp_path / "away.jpg")
    describe(gallery, Corners())
    away.rename(photos / "4.jpg")
    describe(gallery, Corners(), Describing(retry_failed=True))
    mended = local_files(gallery)
    for name in mended:
        (gallery / name).unlink()

    describe(gallery, Corners())

    assert mended == local_files(gallery) and len(mended) == 15


def test_an_interrupted_shard_is_not_there_and_the_finished_ones_are(gallery: Path) -> None:
    @dataclass
    class Tired(Corners):
        def describe(self, picture: Image.Image, count: int) -> LocalFeatures:
            if self.seen == 6:
                raise KeyboardInterrupt
            return super().describe(picture, count)

    with pytest.raises(KeyboardInterrupt):
        describe(gallery, Tired())
    stem = LocalNote.of(Corners(), 100).stem
    done = [shard.name for shard in disk.shard_paths(gallery) if read_local_note(shard, stem)]

    summary = describe(gallery, Corners())

    assert done == ["00000"]
    assert summary.described == 5
    assert not list(gallery.rglob("local/.*"))


def test_of_sets_of_several_extractors_one_is_chosen_and_of_one_that_with_more_features(gallery: Path) -> None:
    for count in (2, 3):
        describe(gallery, Corners(), Describing(count=count))
    assert described(gallery).note.count == 3

    describe(gallery, Corners("edges:fine"), Describing(count=2))
    with raises(UsageError):
        described(gallery)
    assert described(gallery, "edges").note.count == 2
    assert len(local_sets(disk.shard_paths(gallery))) == 3


def test_a_shard_of_pictures_without_features(tmp_path: Path) -> None:
    note = LocalNote("none", {}, 5)
    with new_local(tmp_path, note) as writer:
        writer.add(LocalFeatures(np.zeros((0, 7), np.uint8), np.zeros((0, 2), np.float32)))
        writer.add("too dark")

    shard = DescribedShard(tmp_path, note.stem)
    features = shard.features(0)

    assert features is not None and features.descriptors.shape == (0, 7)
    assert (shard.features(1), shard.note and shard.note.missing) == (None, {1: "too dark"})


def test_a_damaged_set_and_a_gallery_without_pictures_are_told(gallery: Path, tmp_path: Path) -> None:
    describe(gallery, Corners())
    for place in gallery.rglob("descriptors.npy"):
        place.write_bytes(place.read_bytes()[:100])
    with pytest.raises(EyespotError, match=r"eyespot index --repair -g"):
        described(gallery).features([facts_of(gallery)[0]["id"]])

    disk.write_header(tmp_path, disk.Header())
    with raises(NothingFound):
        describe(tmp_path, Corners())


@requires("cv2")
def test_a_damaged_set_stays_while_the_photos_are_out_of_reach(photos: Path, tmp_path: Path, starter: Encoder) -> None:
    gallery = tmp_path / "own"
    index_gallery(gallery, photos, shard_rows=4)
    describe(gallery, rooms.load("descriptors", "sift"))
    (photos / "1.jpg").unlink()  # gone for good, and its row with it
    index_gallery(gallery)
    before = local_files(gallery)
    damaged = flipped(gallery, "shards/0000[01]/local/*/descriptors.npy")
    photos.rename(photos.with_name("away"))
    away = update(gallery, [], [starter], Options(repair=True))
    after = local_files(gallery)
    photos.with_name("away").rename(photos)
    back = update(gallery, [], [starter], Options(repair=True))

    assert after == damaged != before and len(away.damaged) == 2
    waiting = [note for note in away.notes if "stay damaged" in note]
    assert ["00000" in waiting[0] and ": 3 photos" in waiting[0], ": 4 photos" in waiting[1]] == [True, True]
    assert back.damaged == [] and any("2 shards" in note for note in back.notes)
    mended = local_files(gallery)
    assert all(mended[name] == before[name] for name in before if "00001" in name)
