"""Videos are searched by frames: one a shot, each with its time, and what is no video is a failure with a reason."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot import sample
from eyespot.gallery.groups.listing import file_groups
from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.indexing import Summary
from eyespot.gallery.view import Gallery, View
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import NotReread, read_again, reread
from eyespot.photos.videos import decoding
from eyespot.photos.videos.addresses import clock, file_of, frame_of, frame_path, reads_video, title_of
from eyespot.photos.videos.decoding import open_video
from eyespot.photos.videos.metadata import video_facts
from eyespot.photos.videos.shots import shots
from eyespot.types import Encoder
from tests.command import run_process
from tests.worlds import index_gallery, second_encoder
from tests.worlds.clips import clip, large_clip, sound, turned

pytestmark = pytest.mark.skipif(not reads_video(), reason="needs the extra [video]")
ENDINGS = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".mts")


@pytest.fixture(scope="module")
def photos() -> list[Image.Image]:
    names = ("fish1", "windmill1", "dam1", "fly_agaric")
    found = [next(iter(sorted(sample.photos().glob(f"*{name}*.jpg"))), None) for name in names]
    return [Image.open(place).convert("RGB") for place in found if place]


@pytest.fixture
def folder(tmp_path: Path, photos: list[Image.Image]) -> Path:
    """Two videos of two shots each."""
    clip(tmp_path / "films" / "a.mp4", photos[:2], metadata={"creation_time": "2021-05-31T18:02:11Z"})
    clip(tmp_path / "films" / "b.mkv", photos[2:0:-1])
    return tmp_path / "films"


def indexed(folder: Path) -> Summary:
    summary: Summary = index_gallery(folder.parent / "gallery", folder, workers=1)
    return summary


def view(folder: Path, name: str = "gallery") -> View:
    gallery = Gallery(folder.parent / name)
    return gallery.view(gallery.stem())


def facts_of(folder: Path, name: str = "gallery") -> list[dict[str, Any]]:
    shown = view(folder, name)
    return shown.facts(np.flatnonzero(shown.live).tolist())


def paths(folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for one in facts_of(folder) for path in one["paths"])


@pytest.mark.long
def test_one_frame_a_shot_is_read_again_as_it_was(photos: list[Image.Image], starter: Encoder, tmp_path: Path) -> None:
    for ending in ENDINGS:
        clip(tmp_path / "films" / f"tour{ending}", photos[:3], 3)
    summary, shown = indexed(tmp_path / "films"), view(tmp_path / "films")
    facts = facts_of(tmp_path / "films")

    times = [(Path(frame.video).suffix, frame.ms) for one in facts if (frame := frame_of(one["path"]))]
    assert not summary.failures
    assert sorted((ending, at // 3000) for ending, at in times) == sorted(product(ENDINGS, range(3)))
    assert [one["video_time"] * 1000 for one in facts] == [at for _, at in times]
    assert len({one["video_id"] for one in facts}) == len(ENDINGS)
    for row, one in enumerate(facts):
        picture = reread(one["id"], one["paths"], None)
        assert not isinstance(picture, NotReread) and picture.size == (320, 240)
        again = starter.encode_pixels(np.stack([starter.read(picture)]))[0]
        assert float(again @ shown.vectors([row])[0]) > 0.98  # a JPEG of the same frame


def test_a_frame_has_the_facts_of_its_video_and_its_own_time(photos: list[Image.Image], tmp_path: Path) -> None:
    tags = {
        "creation_time": "2021-05-31T18:02:11Z",
        "com.apple.quicktime.location.ISO6709": "+48.8577+002.2950+035.1/",
        "com.apple.quicktime.make": "Apple",
        "com.apple.quicktime.model": "iPhone 12",
        "title": "A walk",
    }
    clip(tmp_path / "films" / "walk.mov", photos[:2], 4, tags)
    indexed(tmp_path / "films")
    first, second = facts_of(tmp_path / "films")

    taken = datetime(2021, 5, 31, 18, 2, 11)
    assert (second["taken"] - taken).total_seconds() == int(second["video_time"]) >= 4
    assert (first["latitude"], first["longitude"], first["camera"]) == (48.8577, 2.295, "Apple iPhone 12")
    assert (first["embedded_title"], first["video_length"], first["width"]) == ("A walk", 8.0, 320)
    assert json.dumps({name: str(value) for name, value in first.items()})


def test_facts_of_videos_are_read_as_cameras_write_them() -> None:
    known = video_facts(
        {"com.apple.quicktime.creationdate": "2021-05-31T18:02:11+0200", "creation_time": "2021-05-31T16"}
    )
    damaged = video_facts({"creation_time": "1904-01-01T00:00:00Z", "location": "+99.0+200.0/", "make": "\x00"})

    assert known == {"taken": datetime(2021, 5, 31, 18, 2, 11), "taken_from": "video"}
    assert damaged == {"gps_doubtful": "99, 200 (video: out of range)"}
    for text, place in {"-4851.5-00217.7/": (-48.858333, -2.295), "+485130+0021742/": (48.858333, 2.295)}.items():
        facts = video_facts({"location": text})
        assert (facts["latitude"], facts["longitude"]) == pytest.approx(place)


def test_a_video_filmed_on_its_side_is_upright(photos: list[Image.Image], tmp_path: Path) -> None:
    place = turned(clip(tmp_path / "a.mp4", photos[:1]))
    upright = np.asarray(open_picture(read_again(f"{place}#t=00:00:00.000")).image.resize((12, 16)), float)
    expected = photos[0].resize((360, 270)).crop((0, 10, 320, 250)).transpose(Image.Transpose.ROTATE_270)

    assert np.abs(upright - np.asarray(expected.resize((12, 16)), float)).mean() < 12


def test_names_of_frames_say_video_and_time() -> None:
    path = frame_path("deep/tour.MP4", 3_723_045)

    assert path == "deep/tour.MP4#t=01:02:03.045" and frame_of(path) == ("deep/tour.MP4", 3_723_045)
    assert (file_of(path), title_of(path), clock(83_500)) == ("deep/tour.MP4", "tour 01:02:03", "00:01:23")
    assert frame_of("a.jpg#t=00:00:00.000") is frame_of("a.mp4#t=1") is frame_of("a.mp4") is None


class Still:
    """A sample of one colour."""

    def __init__(self, colour: int, sharp: float = 1.0) -> None:
        self.colour, self.sharp = colour, sharp

    def colours(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.eye(8)[self.colour]

    def sharpness(self) -> float:
        return self.sharp


def test_the_sharpest_of_the_first_three_samples_stands_for_a_shot() -> None:
    found = list(shots([Still(1, 2), Still(1, 5), Still(1, 3), Still(1, 9), Still(2), Still(1)]))

    assert [(one.colour, one.sharp) for one in found] == [(1, 5), (2, 1), (1, 1)]


def test_the_last_frame_of_a_video_is_read_again(photos: list[Image.Image], tmp_path: Path) -> None:
    """A decoder holds frames back until it is told that nothing comes any more."""
    with open_video(str(clip(tmp_path / "a.mp4", photos[:2]))) as video:
        last = video.at(3900)
        with pytest.raises(BadPicture):
            video.at(4000)

    assert (last.ms, last.size) == (3900, (320, 240))


def test_long_films_are_sampled(photos: list[Image.Image], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MOST_FRAMES", 5)
    with open_video(str(clip(tmp_path / "long.avi", photos[:4], 6))) as video:
        times = [one.ms for one in video.samples()]

    assert 2 <= len(times) <= 5 and times == sorted({*times}) and times[-1] - times[0] > 12_000


@pytest.mark.long
def test_what_cannot_be_read_is_a_failure(folder: Path, photos: list[Image.Image], tmp_path: Path) -> None:
    """Also what comes before the end of one that is cut short."""
    whole = (folder / "a.mp4").read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.mp4").touch()
    (folder / "text.mov").write_text("no film")
    (folder / "list.mp4").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{folder / 'b.mkv'}\n#EXT-X-ENDLIST\n"
    )
    long = clip(tmp_path / "long.mkv", photos[:3], 4).read_bytes()
    (folder / "early.mkv").write_bytes(long[: len(long) // 2])
    sound(folder / "sound.mp4")
    large_clip(folder / "bomb.mkv", 9000, 9000)
    large_clip(folder / "liar.mkv", 9000, 64)
    key = {"encryption_key": "76a6c65c5ea762046bd749a2e632ccbb", "encryption_kid": "a7e61c373e219033c21091fa607bf3b8"}
    clip(folder / "locked.mp4", photos[:1], 1, None, encryption_scheme="cenc-aes-ctr", **key)
    summary = indexed(folder)

    why = {failure.path: failure.reason for failure in summary.failures}
    assert {one.partition("#")[0] for one in paths(folder)} == {"a.mp4", "b.mkv", "early.mkv"}
    assert why.pop("early.mkv").startswith("cut short: of 00:00:12 only 00:00:0")
    assert why.pop("empty.mp4") == "empty file" and why.pop("sound.mp4") == "sound without a picture"
    assert why.pop("locked.mp4") == "encrypted" and "36 megapixels" in why.pop("bomb.mkv")
    assert set(why) == {"cut.mp4", "text.mov", "list.mp4", "liar.mkv"} and all("damaged" in one for one in why.values())
    assert summary.found.files == 11 == summary.found.searchable + summary.found.failures


@pytest.mark.long
@pytest.mark.parametrize("name", ["frame_threads.webm", "more_streams.mts"])
def test_damage_that_crashed_readers_is_a_failure(name: str, photos: list[Image.Image], tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    shutil.copy(Path(__file__).parent / "damaged_videos" / name, tmp_path / "films")
    photos[0].save(tmp_path / "films" / "a.jpg")
    done = run_process("index", "films", "--json", cwd=tmp_path)  # it may crash its process

    assert done.returncode == 3, done.stderr[-2000:]
    looked = json.loads(done.stdout)["looked"]
    assert (looked["pictures"], looked["failed"]) == (1, 1)


def test_a_video_that_is_gone_or_changed_shows_no_frame(folder: Path) -> None:
    place = f"{folder / 'a.mp4'}#t=00:00:00.000"
    with pytest.raises(OSError, match="changed since"):
        read_again(f"{folder / 'a.mp4'}#t=00:00:00.050")
    (folder / "a.mp4").write_bytes(b"no film any more")
    with pytest.raises(OSError, match="no video"):
        read_again(place)
    with pytest.raises(BadPicture):
        open_picture((folder / "a.mp4").read_bytes())
    (folder / "a.mp4").unlink()
    with pytest.raises(FileNotFoundError):
        read_again(place)


def test_a_changed_video_is_read_again_and_a_moved_one_is_not(folder: Path, photos: list[Image.Image]) -> None:
    indexed(folder)
    before = paths(folder)
    (folder / "a.mp4").rename(folder / "c.mp4")
    moved = indexed(folder)
    renamed = paths(folder)
    clip(folder / "c.mp4", photos[2:], 3)
    changed = indexed(folder)
    now = {path for path in paths(folder) if path.startswith("c.mp4")}

    assert moved.embedded == 0 and ["1 file that" in note for note in moved.notes] == [True]
    assert renamed == sorted(path.replace("a.mp4", "c.mp4") for path in before)
    assert changed.embedded == len(now) and not changed.notes
    assert not now & {*renamed} - {"c.mp4#t=00:00:00.000"}


def test_deleted_videos_take_their_frames_along(folder: Path) -> None:
    for photo in sorted(sample.photos().glob("*.jpg"))[:6]:
        shutil.copy(photo, folder)
    indexed(folder)
    (folder / "a.mp4").unlink()
    summary = indexed(folder)

    assert [note for note in summary.notes if "1 picture is gone" in note]
    assert {path.partition("#")[0] for path in paths(folder) if "#" in path} == {"b.mkv"}


def test_labels_of_a_video_are_labels_of_its_frames(folder: Path) -> None:
    labels = folder / "metadata.csv"
    labels.write_text("file_name,species\na.mp4,a fish\n")
    indexed(folder)
    first = {one["path"]: one["species"] for one in facts_of(folder)}
    labels.write_text("file_name,species\na.mp4,a trout\n")
    indexed(folder)

    assert {value for path, value in first.items() if "a.mp4" in path} == {"a fish"}
    assert {one["species"] for one in facts_of(folder)} == {"a trout", None}


@pytest.mark.long
def test_a_second_space_and_a_lost_index_find_the_same_frames(folder: Path) -> None:
    indexed(folder)
    before = paths(folder)
    index_gallery(folder.parent / "gallery", folder, encoders=[second := second_encoder()], workers=1)
    for place in (folder.parent / "gallery").glob("index.sqlite*"):
        place.unlink()
    again = indexed(folder)
    gallery = Gallery(folder.parent / "gallery")

    assert paths(folder) == before and again.pictures == len(before)
    assert gallery.view(gallery.stem(second)).live.all()


def test_frames_of_a_video_are_one_group_and_no_duplicates(folder: Path) -> None:
    shutil.copy(folder / "a.mp4", folder / "copy.mp4")
    indexed(folder)
    groups, (listed,) = Groups(view(folder)), file_groups(view(folder))

    assert len(groups.numbers) == 4 and len({*groups.numbers.tolist()}) == 2 and groups.numbers.min() >= 0
    assert groups.others(np.arange(4), np.array([True, True, True, False])).tolist() == [1, 1, 0, 1]
    assert (listed.kind, [Path(file.path).name for file in listed.files]) == ("exact", ["a.mp4", "copy.mp4"])


def test_a_frame_that_a_list_named_first_is_in_the_group_of_its_video(folder: Path, tmp_path: Path) -> None:
    indexed(folder)
    (name,) = [path for path in paths(folder) if path.startswith("a.mp4") and not path.endswith("00.000")]
    (tmp_path / "list.csv").write_text(f"path\nfilms/{name}\n")
    for root in (tmp_path / "list.csv", folder):
        index_gallery(tmp_path / "two", root, workers=1)
    numbers = Groups(view(folder, "two")).numbers.tolist()
    groups = dict(zip((one["path"] for one in facts_of(folder, "two")), numbers, strict=True))

    assert len({number for path, number in groups.items() if "a.mp4" in path}) == 1
    assert -1 not in numbers and len({*numbers}) == 2, groups


def test_a_video_alone_and_in_a_list_is_read_too(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("path,species\nfilms/a.mp4,a fish\n")
    index_gallery(tmp_path / "one", folder / "a.mp4", workers=1)
    index_gallery(tmp_path / "two", tmp_path / "list.csv", workers=1)
    one, two = facts_of(folder, "one"), facts_of(folder, "two")

    assert [facts["path"] for facts in one] == [facts["path"] for facts in two]
    assert read_again(one[0]["path"]) and two[0]["species"] == "a fish"
