"""Copies and bursts are grouped as they lie on disk, the same however a gallery grew, and other photos stay apart."""

from __future__ import annotations

import os
import shutil
import tarfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from PIL import ExifTags, Image

from eyespot import sample
from eyespot.formats.imports import npy
from eyespot.formats.imports.registered import take_in
from eyespot.gallery.groups.listing import file_groups, lost_with
from eyespot.gallery.groups.near_duplicates import Families, likely_pairs
from eyespot.gallery.groups.rule import ALONE, Frames, links_of
from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.segments import LINKS
from eyespot.photos.videos.addresses import reads_video
from tests.examples import examples
from tests.worlds import index_gallery
from tests.worlds.clips import clip
from tests.worlds.galleries import facts_of, opened

BEGUN = datetime(2024, 5, 1, 6)


def save(photo: Image.Image, place: Path, when: datetime | None = None, camera: str = "Trap 1") -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if when is not None:
        exif[ExifTags.Base.Model] = camera
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = when.strftime("%Y:%m:%d %H:%M:%S")
    photo.save(place, "JPEG", quality=85, exif=exif)


def originals(count: int) -> list[Image.Image]:
    places = sorted(sample.photos().glob("explore_world*.jpg"))[:count]
    return [Image.open(place).convert("RGB") for place in places]


def grouped(gallery: Path) -> list[list[str]]:
    names: dict[int, list[str]] = {}
    for number, facts in zip(Groups(opened(gallery)).numbers.tolist(), facts_of(gallery), strict=True):
        if number >= 0:
            names.setdefault(number, []).append(Path(facts["path"]).name)
    return sorted(sorted(some) for some in names.values())


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six photos; two have copies, one a burst, and one stands before a fixed camera for an hour."""
    folder = tmp_path_factory.mktemp("groups") / "photos"
    first, second, third, fourth, *others = originals(6)
    save(first, folder / "a.jpg")
    save(first.transpose(Image.Transpose.ROTATE_90), folder / "a-turned.jpg")
    save(first.resize((first.width // 2, first.height // 2)), folder / "late" / "a-small.jpg")
    width, height = second.size
    save(second, folder / "b.jpg")
    save(second.crop((width // 30, height // 30, width, height)), folder / "late" / "b-cropped.jpg")
    for at in range(3):
        save(third.crop((at, at, width - 9 + at, height - 9)), folder / f"c{at}.jpg", BEGUN + timedelta(seconds=at))
    for hour in range(3):
        save(fourth, folder / f"d{hour}.jpg", BEGUN + timedelta(hours=hour))
    for at, photo in enumerate(others):
        save(photo, folder / f"other{at}.jpg", BEGUN, camera=f"Phone {at}")
    return folder


GROUPED = [["a-small.jpg", "a-turned.jpg", "a.jpg"], ["b-cropped.jpg", "b.jpg"], ["c0.jpg", "c1.jpg", "c2.jpg"]]


def test_copies_and_bursts_are_grouped_and_what_says_other_times_is_not(photos: Path) -> None:
    index_gallery(photos.parent / "gallery", photos, shard_rows=4)
    made = photos.parent / "gallery"
    view = opened(made)
    assert grouped(made) == GROUPED and Groups(view).lost(view.live) == 5


@pytest.mark.long
def test_a_gallery_that_grew_has_the_groups_of_one_made_at_once(photos: Path, tmp_path: Path) -> None:
    gallery, folder = tmp_path / "gallery", tmp_path / "photos"
    shutil.copytree(photos, folder, ignore=lambda _, names: [name for name in names if name == "late"])
    index_gallery(gallery, folder)
    before = {place: place.read_bytes() for place in gallery.glob("shards/*/*.?64")}
    shutil.copytree(photos / "late", folder / "late")
    index_gallery(gallery)

    assert grouped(gallery) == GROUPED
    assert len(before) == 2 and {place: place.read_bytes() for place in before} == before


def test_the_largest_stays_and_the_others_bytes_are_counted(photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    shutil.copytree(photos, folder)
    shutil.copy(folder / "other0.jpg", folder / "same bytes.jpg")
    with tarfile.open(tmp_path / "z.tar", "w") as archive:
        archive.add(folder / "other0.jpg", "inside.jpg")
    index_gallery(tmp_path / "gallery", folder, tmp_path / "z.tar")
    groups = {Path(group.files[0].path).name: group for group in file_groups(opened(tmp_path / "gallery"))}

    assert {name: group.kind for name, group in groups.items()} == {
        min("a.jpg", "a-turned.jpg", key=lambda name: -(folder / name).stat().st_size): "copies",
        "b.jpg": "copies",
        "c0.jpg": "burst",
        "other0.jpg": "exact",
    }
    assert groups["b.jpg"].why.startswith("the largest, ")
    assert groups["b.jpg"].freed == (folder / "late" / "b-cropped.jpg").stat().st_size
    assert [file.inside for file in groups["other0.jpg"].files].count(str(tmp_path / "z.tar")) == 1
    assert groups["other0.jpg"].freed == (folder / "other0.jpg").stat().st_size  # of one file, none of the archive


@pytest.mark.parametrize(
    ("cosine", "agree", "joined"), [(0.95, False, True), (0.9, True, True), (0.9, False, False), (0.8, True, False)]
)
def test_photos_that_nearly_agree_are_compared_in_full(cosine: float, agree: bool, joined: bool) -> None:
    hashes = np.full((2, 8), 0x0F0F0F0F0F0F0F0F, np.uint64)
    hashes[1] ^= np.uint64(0xFF00)  # eight bits
    frames = Frames(
        blocks=[np.array([[1, 0], [cosine, np.sqrt(1 - cosine**2)]], np.float32)],
        hashes=hashes,
        colours=np.zeros((2, 8), np.uint8),
        kinds=np.zeros(2, np.uint8),
        seconds=np.full(2, np.nan),
        cameras=np.full(2, ALONE),
        same=lambda pairs: np.full(len(pairs), agree),
    )
    assert len(links_of(frames, 0)) == joined


def test_copies_in_new_shards_of_photos_that_a_repair_gave_hashes_are_found(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    for at, photo in enumerate(originals(3)):
        save(photo, folder / f"{at}.jpg")
    index_gallery(gallery, folder)
    for name in ("hashes.u64", LINKS, "digests.txt"):  # as an older eyespot left it
        (gallery / "shards" / "00000" / name).unlink()
    save(originals(1)[0].transpose(Image.Transpose.ROTATE_90), folder / "turned.jpg")
    index_gallery(gallery)
    assert grouped(gallery) == []

    index_gallery(gallery, repair=True)

    assert grouped(gallery) == [["0.jpg", "turned.jpg"]] and (gallery / "shards" / "00000" / LINKS).exists()


def test_links_to_a_file_and_files_that_are_gone_never_stay(tmp_path: Path) -> None:
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    first, second, *_ = originals(2)
    save(first, folder / "real.jpg")
    (folder / "a link.jpg").symlink_to(folder / "real.jpg")
    os.link(folder / "real.jpg", folder / "z same file.jpg")
    save(second, folder / "large.jpg")
    save(second.resize((second.width // 2, second.height // 2)), folder / "small.jpg")
    index_gallery(gallery, folder)
    (group,) = file_groups(opened(gallery))
    assert Path(group.files[0].path).name == "large.jpg"

    shutil.copy(folder / "real.jpg", folder / "y copy.jpg")
    (folder / "large.jpg").unlink()
    index_gallery(gallery)

    assert [[Path(file.path).name for file in group.files] for group in file_groups(opened(gallery))] == [
        ["real.jpg", "y copy.jpg"]
    ]


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 20), st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_likely_pairs_are_close_and_begin_where_they_are_asked_to(bits: int, seed: int, since: int) -> None:
    rng = np.random.default_rng(seed)
    hashes = np.repeat(rng.integers(1, 2**63, (10, 1), np.uint64), 4, axis=0)
    hashes ^= np.bitwise_or.reduce(np.uint64(1) << rng.integers(0, 63, (40, 6), np.uint64), axis=1)[:, None]
    pairs = np.concatenate([np.empty((0, 2), np.int64), *likely_pairs(np.repeat(hashes, 8, axis=1), bits, since)])
    apart = np.bitwise_count(hashes[pairs[:, 0], 0] ^ hashes[pairs[:, 1], 0])
    assert (apart <= bits).all() and (pairs[:, 0] < pairs[:, 1]).all() and (pairs[:, 1] >= since).all()


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=40), st.integers(1, 7))
def test_families_are_the_same_however_their_pairs_come(pairs: list[tuple[int, int]], step: int) -> None:
    at_once, in_parts = Families(20), Families(20)
    at_once.join(np.array(pairs, np.int64).reshape(-1, 2))
    for start in range(0, len(pairs), step):
        in_parts.join(np.array(pairs[start : start + step][::-1], np.int64).reshape(-1, 2))
    reached = {row: {row} for row in range(20)}
    for _ in range(20):
        for a, b in pairs:
            both = reached[a] | reached[b]
            reached |= dict.fromkeys(both, both)

    every = np.array([(a, b) for a in range(20) for b in range(20)])
    assert at_once.apart(every).tolist() == [[a, b] for a, b in every.tolist() if b not in reached[a]]
    assert at_once.first().tolist() == in_parts.first().tolist() == [min(reached[row]) for row in range(20)]


def test_imported_photos_without_their_pictures_are_bursts_by_time_and_camera(tmp_path: Path) -> None:
    """Of eight rows two were taken by one camera in one second, and look alike."""
    vectors = np.eye(8, 512, dtype=np.float32)
    vectors[4] = vectors[2]
    np.save(tmp_path / "vectors.npy", vectors)
    second = [None, 5, 70, 70, 71, None, 500, 900]
    table = {
        "image_path": [f"{row}.jpg" for row in range(8)],
        "taken": pa.array([None if at is None else BEGUN + timedelta(seconds=at) for at in second], pa.timestamp("s")),
        "camera": ["trap", "", "trap", "other", "trap", "trap", None, None],
    }
    pq.write_table(pa.table(table), tmp_path / "items.parquet")
    take_in(tmp_path / "gallery", npy.source([tmp_path]), "starter")

    index_gallery(tmp_path / "gallery")

    numbers = Groups(opened(tmp_path / "gallery")).numbers
    assert numbers.tolist() == [-1, -1, 2, -1, 2, -1, -1, -1]


def test_the_original_stays_and_stands_for_its_group(tmp_path: Path) -> None:
    """A smaller photo with a date stays before larger copies without; the search shows that very file."""
    folder, gallery = tmp_path / "photos", tmp_path / "gallery"
    photo = originals(1)[0]
    small = photo.resize((photo.width // 2, photo.height // 2))
    save(small, folder / "original.jpg", BEGUN)
    save(photo, folder / "a larger copy.jpg")
    photo.save(folder / "another.png")
    index_gallery(gallery, folder)
    (group,) = file_groups(opened(gallery))
    assert [Path(file.path).name for file in group.files] == ["original.jpg", "another.png", "a larger copy.jpg"]
    assert group.why == "has date, which not all others have"
    assert [lost_with(file, group.files[0]) for file in group.files] == [[], ["pixels"], ["pixels"]]

    view = opened(gallery)
    rows = np.arange(3)
    names = [Path(facts["path"]).name for facts in view.facts(Groups(view).best(rows, view.live).tolist())]
    assert names == ["original.jpg"] * 3
    without = view.live & np.array([Path(facts["path"]).name != "original.jpg" for facts in view.facts([0, 1, 2])])
    (best,) = set(Groups(view).best(rows[without], without).tolist())
    assert Path(view.facts([best])[0]["path"]).name == "another.png"


def test_of_equal_files_the_one_with_a_sidecar_stays(tmp_path: Path) -> None:
    """What a sidecar says is known of the bytes, and goes with the one file beside which it lies."""
    folder, photo = tmp_path / "photos", originals(1)[0]
    save(photo, folder / "a.jpg")
    shutil.copy(folder / "a.jpg", folder / "b.jpg")
    save(photo.resize((photo.width // 2, photo.height // 2)), folder / "small.jpg")
    for name in ("b.jpg.xmp", "small.xmp"):
        (folder / name).write_text('<x:xmpmeta xmlns:x="adobe:ns:meta/"/>')
    (folder / "metadata.csv").write_text("file_name,taken\na.jpg,1503-06-07\n")  # of a painting
    index_gallery(tmp_path / "gallery", folder)
    (group,) = file_groups(opened(tmp_path / "gallery"))
    named = [(Path(one.path).name, one.has[1:]) for one in group.files]
    assert named == [("b.jpg", ("sidecar",)), ("a.jpg", ()), ("small.jpg", ("sidecar",))]
    assert group.why == "has a sidecar, which not all others have"


def test_a_grey_copy_never_stays_before_colours(tmp_path: Path) -> None:
    folder, photo = tmp_path / "photos", originals(1)[0]
    muted = Image.blend(photo.convert("L").convert("RGB"), photo, 0.1)
    save(muted, folder / "colour.jpg")
    save(photo.convert("L").convert("RGB").resize((photo.width * 2, photo.height * 2)), folder / "grey.jpg")
    index_gallery(tmp_path / "gallery", folder)
    (group,) = file_groups(opened(tmp_path / "gallery"))
    assert [Path(file.path).name for file in group.files] == ["colour.jpg", "grey.jpg"]
    assert group.why == "has colours, which not all others have"


@pytest.mark.skipif(not reads_video(), reason="needs the extra [video]")
def test_of_a_video_the_moment_that_was_found_is_shown(tmp_path: Path) -> None:
    clip(tmp_path / "films" / "tour.mp4", originals(2), 3)
    index_gallery(tmp_path / "gallery", tmp_path / "films")
    view = opened(tmp_path / "gallery")
    groups = Groups(view)
    assert groups.numbers[0] == groups.numbers[1] >= 0
    assert groups.best(np.array([1, 0]), view.live).tolist() == [1, 0]
