"""Local features on disk: what goes in comes out, a shard that is done is done, and what failed is told."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
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
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.local import Described, DescribedShard, LocalNote, local_sets, new_local, read_local_note
from eyespot.gallery.photos.sources import Root
from eyespot.gallery.view import Gallery
from eyespot.types import Encoder, EyespotError, LocalFeatures, NothingFound, UsageError
from tests.lazy_import import requires
from tests.worlds import draw


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
def indexed(tmp_path_factory: pytest.TempPathFactory, starter: Encoder) -> Path:
    """Nine photos and their gallery, in shards of four."""
    folder = tmp_path_factory.mktemp("indexed")
    for seed in range(9):
        draw(folder / "photos" / f"photo{seed}.jpg", seed)
    index(folder / "gallery", [str(folder / "photos")], [starter], Options(shard_rows=4))
    return folder


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


def opened(gallery: Path, extractor: str | None = None) -> Described:
    found = Gallery(gallery)
    return Described.of(found.view(found.stem()), extractor)


def contents(gallery: Path) -> dict[str, bytes]:
    return {str(place.relative_to(gallery)): place.read_bytes() for place in sorted(gallery.rglob("local/*/*"))}


def test_what_stands_in_the_gallery_is_what_the_extractor_gave(gallery: Path) -> None:
    describe(gallery, Corners(), Describing(count=3))

    found = opened(gallery)
    facts = found.view.facts(range(9))
    for fact, features in zip(facts, found.features([fact["id"] for fact in facts]), strict=True):
        wanted = Corners().describe(Image.open(fact["path"]).convert("RGB"), 3)
        assert features is not None
        np.testing.assert_array_equal(features.descriptors, wanted.descriptors)
        np.testing.assert_array_equal(features.keypoints, wanted.keypoints)


def test_a_second_run_looks_at_nothing_and_a_new_picture_alone_is_described(
    gallery: Path, photos: Path, starter: Encoder
) -> None:
    describe(gallery, Corners())
    draw(photos / "new.jpg", 50)
    index(gallery, [str(photos)], [starter], Options())
    extractor = Corners()

    summary = describe(gallery, extractor)

    assert (extractor.seen, summary.described, summary.pictures, summary.failures) == (1, 1, 10, [])


def test_what_cannot_be_read_is_told_and_tried_again_only_when_asked(gallery: Path, photos: Path) -> None:
    lost = photos / "photo1.jpg"
    backup = lost.read_bytes()
    lost.unlink()
    (photos / "photo2.jpg").write_bytes(backup)

    first, again = describe(gallery, Corners()), describe(gallery, Corners())
    lost.write_bytes(backup)
    mended = describe(gallery, Corners(), Describing(retry_failed=True))

    reasons = {Path(failure.path).name: failure.reason for failure in first.failures}
    assert reasons == {
        "photo1.jpg": "no such file or directory",
        "photo2.jpg": "changed since it was indexed; run eyespot index first",
    }
    assert (first.described, again.described, again.failures) == (7, 0, first.failures)
    assert (mended.described, [Path(failure.path).name for failure in mended.failures]) == (1, ["photo2.jpg"])


def test_a_gallery_without_pictures_has_nothing_to_describe(tmp_path: Path) -> None:
    disk.write_header(tmp_path, disk.Header())

    with pytest.raises(NothingFound, match="has no pictures to describe; add some"):
        describe(tmp_path, Corners())


def test_mending_a_shard_leaves_it_as_if_nothing_had_failed(gallery: Path, photos: Path, tmp_path: Path) -> None:
    away = (photos / "photo4.jpg").rename(tmp_path / "away.jpg")
    describe(gallery, Corners())
    away.rename(photos / "photo4.jpg")
    describe(gallery, Corners(), Describing(retry_failed=True))
    mended = contents(gallery)
    for shard in disk.shard_paths(gallery):
        for place in (shard / "local").rglob("*.*"):
            place.unlink()

    describe(gallery, Corners())

    assert mended == contents(gallery) and len(mended) == 15


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


KILLED = """
import time
from pathlib import Path
from eyespot.gallery.describing import Describing, describe
from tests.gallery.test_describing import Corners

class Slow(Corners):
    def describe(self, picture, count):
        time.sleep(0.05)
        return super().describe(picture, count)

describe(Path({gallery!r}), Slow(), Describing(workers=1))
"""


def test_killed_in_the_middle_the_next_run_does_the_rest(gallery: Path) -> None:
    stem = LocalNote.of(Corners(), 100).stem
    code = KILLED.format(gallery=str(gallery))
    child = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2], stderr=subprocess.PIPE)
    while not (gallery / "shards" / "00001" / "local").exists() and child.poll() is None:
        time.sleep(0.005)
    child.kill()
    complaints = child.communicate()[1].decode()

    done = [shard for shard in disk.shard_paths(gallery) if read_local_note(shard, stem)]
    summary = describe(gallery, Corners())

    assert child.returncode == -signal.SIGKILL, complaints
    assert 1 <= len(done) < 3
    assert summary.described == 9 - 4 * len(done)
    assert not list(gallery.rglob("local/.*"))
    found = opened(gallery)
    assert None not in found.features([fact["id"] for fact in found.view.facts(range(9))])


def test_sets_of_several_extractors_stand_side_by_side_and_one_is_chosen(gallery: Path) -> None:
    describe(gallery, Corners())
    describe(gallery, Corners("edges:fine"), Describing(count=2))

    with pytest.raises(UsageError, match="local descriptors of corners, edges:fine; choose, as in chamfer@corners"):
        opened(gallery)
    assert opened(gallery, "edges").note.count == 2
    assert len(local_sets(disk.shard_paths(gallery))) == 2


def test_of_one_extractor_the_set_with_more_features_serves(gallery: Path) -> None:
    describe(gallery, Corners(), Describing(count=2))
    describe(gallery, Corners(), Describing(count=3))

    assert opened(gallery).note.count == 3


def test_a_shard_of_pictures_without_features(tmp_path: Path) -> None:
    note = LocalNote("none", {}, 5)
    with new_local(tmp_path, note) as writer:
        writer.add(LocalFeatures(np.zeros((0, 7), np.uint8), np.zeros((0, 2), np.float32)))
        writer.add("too dark")

    shard = DescribedShard(tmp_path, note.stem)
    features = shard.features(0)

    assert features is not None and features.descriptors.shape == (0, 7)
    assert (shard.features(1), shard.note and shard.note.missing) == (None, {1: "too dark"})


def test_a_damaged_set_is_told_with_the_way_out(gallery: Path) -> None:
    describe(gallery, Corners())
    for place in gallery.rglob("descriptors.npy"):
        place.write_bytes(place.read_bytes()[:100])

    with pytest.raises(EyespotError, match=r"missing or damaged .*; repair it with: eyespot index --repair -g"):
        opened(gallery).features([opened(gallery).view.facts([0])[0]["id"]])


@requires("cv2")
def test_a_damaged_set_stays_while_the_photos_are_out_of_reach(photos: Path, tmp_path: Path, starter: Encoder) -> None:
    gallery = tmp_path / "own"
    index(gallery, [str(photos)], [starter], Options(shard_rows=4))
    describe(gallery, rooms.load("descriptors", "sift"))
    (photos / "photo1.jpg").unlink()  # gone for good, and its row with it
    index(gallery, [], [starter])
    before = contents(gallery)
    for place in gallery.rglob("shards/0000[01]/local/*/descriptors.npy"):
        place.write_bytes(place.read_bytes()[:-1] + bytes([place.read_bytes()[-1] ^ 1]))
    damaged = contents(gallery)
    photos.rename(photos.with_name("away"))
    away = update(gallery, [], [starter], Options(repair=True))
    after = contents(gallery)
    photos.with_name("away").rename(photos)
    back = update(gallery, [], [starter], Options(repair=True))

    assert after == damaged != before and len(away.damaged) == 2
    assert [note.partition(" of shard ")[2] for note in away.notes if "stay damaged" in note] == [
        f"0000{number} stay damaged: {rows} photos are out of reach" for number, rows in enumerate((3, 4))
    ]
    assert back.damaged == [] and any("of 2 shards were damaged; they are made again" in note for note in back.notes)
    assert {name: data for name, data in contents(gallery).items() if "00001" in name} == {
        name: data for name, data in before.items() if "00001" in name
    }
