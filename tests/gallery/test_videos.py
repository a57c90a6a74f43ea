"""Videos are searched by frames: one a shot, each with its time, and what is no video is a failure with a reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eyespot import sample
from eyespot.gallery.groups.listing import file_groups
from eyespot.gallery.groups.stored import Groups, frames_by_video
from eyespot.gallery.indexing import Options, Summary, index
from eyespot.gallery.photos.pictures import BadPicture, open_picture
from eyespot.gallery.photos.places import read_again
from eyespot.gallery.rereading import NotReread, reread
from eyespot.gallery.videos.addresses import clock, file_of, frame_of, frame_path, reads_video, title_of
from eyespot.gallery.videos.metadata import video_facts
from eyespot.gallery.videos.shots import shots
from eyespot.gallery.view import Gallery, View
from eyespot.types import Encoder, EyespotError
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


def indexed(folder: Path, starter: Encoder, **options: bool) -> Summary:
    return index(folder.parent / "gallery", [str(folder)], [starter], Options(workers=1, **options))  # type: ignore[arg-type]


def view(folder: Path) -> View:
    gallery = Gallery(folder.parent / "gallery")
    return gallery.view(gallery.stem())


def paths(folder: Path) -> list[str]:
    shown = view(folder)
    facts = shown.facts(np.flatnonzero(shown.live).tolist())
    return sorted(os.path.relpath(path, folder) for one in facts for path in one["paths"])


def reasons(summary: Summary) -> dict[str, str]:
    return {failure.path: failure.reason for failure in summary.failures}


# -- frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_frame_a_shot_is_read_again_as_it_was(
    ending: str, photos: list[Image.Image], starter: Encoder, tmp_path: Path
) -> None:
    clip(tmp_path / "films" / f"tour{ending}", photos[:3], 3)
    summary = indexed(tmp_path / "films", starter)
    shown = view(tmp_path / "films")
    facts = shown.facts(range(int(shown.starts[-1])))

    times = [frame.ms for one in facts if (frame := frame_of(one["path"]))]
    assert [at // 3000 for at in times] == [0, 1, 2] and not summary.failures
    assert [one["video_time"] * 1000 for one in facts] == times and len({one["video_id"] for one in facts}) == 1
    for row, one in enumerate(facts):
        picture = reread(one["id"], one["paths"], None)
        assert not isinstance(picture, NotReread) and picture.size == (320, 240)
        again = starter.encode_pixels(np.stack([starter.read(picture)]))[0]
        assert float(again @ shown.vectors([row])[0]) > 0.98  # a JPEG of the same frame


def test_a_frame_has_the_facts_of_its_video_and_its_own_time(
    photos: list[Image.Image], starter: Encoder, tmp_path: Path
) -> None:
    tags = {
        "creation_time": "2021-05-31T18:02:11Z",
        "com.apple.quicktime.location.ISO6709": "+48.8577+002.2950+035.1/",
        "com.apple.quicktime.make": "Apple",
        "com.apple.quicktime.model": "iPhone 12",
        "title": "A walk",
    }
    clip(tmp_path / "films" / "walk.mov", photos[:2], 4, tags)
    indexed(tmp_path / "films", starter)
    first, second = view(tmp_path / "films").facts([0, 1])

    taken = datetime(2021, 5, 31, 18, 2, 11)
    assert (second["taken"] - taken).total_seconds() == int(second["video_time"]) >= 4
    assert (first["latitude"], first["longitude"], first["camera"]) == (48.8577, 2.295, "Apple iPhone 12")
    assert (first["embedded_title"], first["video_length"], first["width"]) == ("A walk", 8.0, 320)


def test_facts_of_videos_are_read_as_cameras_write_them() -> None:
    known = video_facts(
        {"com.apple.quicktime.creationdate": "2021-05-31T18:02:11+0200", "creation_time": "2021-05-31T16"}
    )
    damaged = video_facts({"creation_time": "1904-01-01T00:00:00Z", "location": "+99.0+200.0/", "make": "\x00"})

    assert known.taken == datetime(2021, 5, 31, 18, 2, 11)
    assert damaged == (None,) * 7
    assert video_facts({"location": "-4851.5-00217.7/"})[1:3] == pytest.approx((-48.858333, -2.295))
    assert video_facts({"location": "+485130+0021742/"})[1:3] == pytest.approx((48.858333, 2.295))


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


def test_long_films_have_a_limit_and_still_scenes_one_frame(
    photos: list[Image.Image], starter: Encoder, tmp_path: Path
) -> None:
    from eyespot.gallery.videos import decoding

    clip(tmp_path / "films" / "still.mp4", photos[:1], 12)
    indexed(tmp_path / "films", starter)
    with decoding.open_video(str(tmp_path / "films" / "still.mp4")) as video:
        few = list(video._far_apart(12_000))

    assert len(paths(tmp_path / "films")) == 1
    assert len(few) <= decoding.MOST_FRAMES and [one.ms for one in few] == sorted({one.ms for one in few})


# -- what is no video ---------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_a_failure_with_a_reason_and_the_rest_goes_on(
    folder: Path, photos: list[Image.Image], starter: Encoder
) -> None:
    whole = (folder / "a.mp4").read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.mp4").touch()
    (folder / "text.mov").write_text("no film")
    (folder / "list.mp4").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{folder / 'b.mkv'}\n#EXT-X-ENDLIST\n"
    )
    sound(folder / "sound.mp4")
    large_clip(folder / "bomb.mkv", 9000, 9000)
    large_clip(folder / "liar.mkv", 9000, 64)
    key = {"encryption_key": "76a6c65c5ea762046bd749a2e632ccbb", "encryption_kid": "a7e61c373e219033c21091fa607bf3b8"}
    clip(folder / "locked.mp4", photos[:1], 1, None, encryption_scheme="cenc-aes-ctr", **key)
    summary = indexed(folder, starter)

    why = reasons(summary)
    assert {one.partition("#")[0] for one in paths(folder)} == {"a.mp4", "b.mkv"}
    assert why.pop("empty.mp4") == "empty file" and why.pop("sound.mp4") == "sound without a picture"
    assert why.pop("locked.mp4") == "encrypted" and "36 megapixels" in why.pop("bomb.mkv")
    assert set(why) == {"cut.mp4", "text.mov", "list.mp4", "liar.mkv"} and all("damaged" in one for one in why.values())
    assert summary.looked.files == 10 == summary.looked.searchable + summary.looked.failures


@pytest.mark.parametrize("name", ["frame_threads.webm", "more_streams.mts"])
def test_damage_that_crashed_readers_is_a_failure_and_photos_beside_it_are_found(
    name: str, photos: list[Image.Image], tmp_path: Path
) -> None:
    (tmp_path / "films").mkdir()
    shutil.copy(Path(__file__).parent / "damaged_videos" / name, tmp_path / "films")
    photos[0].save(tmp_path / "films" / "a.jpg")
    line = [sys.executable, "-m", "eyespot.cli", "index", "films", "--json"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)  # it may crash its process

    assert done.returncode == 3, done.stderr[-2000:]
    looked = json.loads(done.stdout)["looked"]
    assert (looked["pictures"], looked["failed"]) == (1, 1)


def test_a_film_that_ends_early_is_a_failure_whose_frames_are_found(
    folder: Path, photos: list[Image.Image], starter: Encoder
) -> None:
    clip(folder / "long.mkv", photos[:3], 4)
    data = (folder / "long.mkv").read_bytes()
    (folder / "long.mkv").write_bytes(data[: len(data) // 2])
    summary = indexed(folder, starter)

    assert reasons(summary)["long.mkv"].startswith("cut short: of 00:00:12 only 00:00:0")
    assert [one for one in paths(folder) if one.startswith("long")]
    assert summary.looked.files == 3 == summary.looked.searchable + summary.looked.failures


def test_a_video_that_is_gone_or_changed_shows_no_frame(folder: Path, photos: list[Image.Image]) -> None:
    place = f"{folder / 'a.mp4'}#t=00:00:00.000"
    with pytest.raises(OSError, match="changed since"):
        read_again(f"{folder / 'a.mp4'}#t=00:00:00.050")
    (folder / "a.mp4").write_bytes(b"no film any more")
    with pytest.raises(OSError, match="no video"):
        read_again(place)
    (folder / "a.mp4").unlink()
    with pytest.raises(FileNotFoundError):
        read_again(place)


# -- again --------------------------------------------------------------------------------------------------


def test_a_changed_video_is_read_again_and_a_moved_one_is_not(
    folder: Path, photos: list[Image.Image], starter: Encoder
) -> None:
    indexed(folder, starter)
    before = paths(folder)
    (folder / "a.mp4").rename(folder / "c.mp4")
    moved = indexed(folder, starter)
    renamed = paths(folder)
    clip(folder / "c.mp4", photos[2:], 3)
    changed = indexed(folder, starter)

    assert (moved.embedded, moved.notes) == (0, [])
    assert renamed == sorted(path.replace("a.mp4", "c.mp4") for path in before)
    assert changed.embedded == len([path for path in paths(folder) if path.startswith("c.mp4")]) and not changed.notes
    assert not {path for path in paths(folder) if path.startswith("c.mp4")} & {*renamed} - {"c.mp4#t=00:00:00.000"}


def test_deleted_videos_take_their_frames_along(folder: Path, starter: Encoder) -> None:
    for number in range(6):
        shutil.copy(sorted(sample.photos().glob("*.jpg"))[number], folder)
    indexed(folder, starter)
    (folder / "a.mp4").unlink()
    summary = indexed(folder, starter)

    assert [note for note in summary.notes if "1 pictures are gone" in note]
    assert {path.partition("#")[0] for path in paths(folder) if "#" in path} == {"b.mkv"}


def test_labels_of_a_video_are_labels_of_its_frames(folder: Path, starter: Encoder) -> None:
    labels = folder / "metadata.csv"
    labels.write_text("file_name,species\na.mp4,a fish\n")
    indexed(folder, starter)
    first = {one["path"]: one["species"] for one in view(folder).facts([0, 1, 2, 3])}
    labels.write_text("file_name,species\na.mp4,a trout\n")
    indexed(folder, starter)
    second = {one["species"] for one in view(folder).facts([0, 1, 2, 3])}

    assert {value for path, value in first.items() if "a.mp4" in path} == {"a fish"} and second == {"a trout", None}


def test_a_second_space_and_a_lost_index_find_the_same_frames(folder: Path, starter: Encoder) -> None:
    from eyespot import rooms

    indexed(folder, starter)
    before = paths(folder)
    crops: Encoder = rooms.load("encoders", "crops:4:starter")
    index(folder.parent / "gallery", [str(folder)], [crops], Options(workers=1))
    for place in (folder.parent / "gallery").glob("index.sqlite*"):
        place.unlink()
    again = indexed(folder, starter)
    gallery = Gallery(folder.parent / "gallery")

    assert paths(folder) == before and again.pictures == len(before)
    assert gallery.view(gallery.stem("crops:4:starter")).live.all()


def test_frames_of_a_video_are_one_group_and_no_duplicates(folder: Path, starter: Encoder) -> None:
    shutil.copy(folder / "a.mp4", folder / "copy.mp4")
    indexed(folder, starter)
    shown = view(folder)
    numbers = Groups(shown).numbers
    groups = file_groups(shown)

    assert len(numbers) == 4 and len(set(numbers.tolist())) == 2 and numbers.min() >= 0
    assert [(group.kind, [Path(file.path).name for file in group.files]) for group in groups] == [
        ("exact", ["a.mp4", "copy.mp4"])
    ]


def test_a_frame_that_a_list_named_first_is_in_the_group_of_its_video(
    folder: Path, starter: Encoder, tmp_path: Path
) -> None:
    indexed(folder, starter)
    (name,) = [path for path in paths(folder) if path.startswith("a.mp4") and not path.endswith("00.000")]
    (tmp_path / "list.csv").write_text(f"path\nfilms/{name}\n")
    for root in (tmp_path / "list.csv", folder):
        index(tmp_path / "two", [str(root)], [starter], Options(workers=1))
    gallery = Gallery(tmp_path / "two")
    shown = gallery.view(gallery.stem())
    groups = dict(zip((one["path"] for one in shown.facts(range(4))), Groups(shown).numbers.tolist(), strict=True))

    assert len({number for path, number in groups.items() if "a.mp4" in path}) == 1
    assert -1 not in groups.values() and len({*groups.values()}) == 2, groups


def test_without_videos_only_the_names_of_columns_are_read(
    folder: Path, photos: list[Image.Image], starter: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eyespot.gallery import disk

    for name in ("a.mp4", "b.mkv"):
        (folder / name).unlink()
    photos[0].save(folder / "a.jpg")
    indexed(folder, starter)
    columns: list[str] = []
    read = disk.read_items

    def noting(shard: Path, names: list[str] | None = None) -> object:
        table = read(shard, names)
        columns.extend(table.column_names)
        return table

    monkeypatch.setattr(disk, "read_items", noting)

    assert frames_by_video(view(folder)).tolist() == [-1] and not columns


def test_a_killed_run_goes_on_to_the_same_gallery(folder: Path, starter: Encoder, tmp_path: Path) -> None:
    class Killed(EyespotError):
        pass

    def killing(what: str, done: int, total: int) -> None:
        if what == "embedding" and done == 1:
            raise Killed

    options = Options(workers=1, shard_rows=1)
    with pytest.raises(Killed):
        index(tmp_path / "gallery", [str(folder)], [starter], Options(workers=1, shard_rows=1, progress=killing))
    summary = index(tmp_path / "gallery", [str(folder)], [starter], options)
    index(tmp_path / "whole", [str(folder)], [starter], options)

    ids = []
    for gallery in (Gallery(tmp_path / name) for name in ("gallery", "whole")):
        shown = gallery.view(gallery.stem())
        ids.append([one["id"] for one in shown.facts(range(int(shown.starts[-1])))])
    assert ids[0] == ids[1] and summary.looked.videos.videos == 2


def test_a_video_alone_and_in_a_list_is_read_too(folder: Path, starter: Encoder, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("path,species\nfilms/a.mp4,a fish\n")
    index(tmp_path / "one", [str(folder / "a.mp4")], [starter], Options(workers=1))
    index(tmp_path / "two", [str(tmp_path / "list.csv")], [starter], Options(workers=1))
    galleries = [Gallery(tmp_path / name) for name in ("one", "two")]
    facts = [gallery.view(gallery.stem()).facts([0, 1]) for gallery in galleries]

    assert [one["path"] for one in facts[0]] == [one["path"] for one in facts[1]]
    assert read_again(facts[0][0]["path"]) and facts[1][0]["species"] == "a fish"


def test_frames_are_stored_as_plain_facts(folder: Path, starter: Encoder) -> None:
    indexed(folder, starter)
    (facts,) = view(folder).facts([0])

    assert json.dumps({name: str(value) for name, value in facts.items()})
    with pytest.raises(BadPicture):
        open_picture((folder / "a.mp4").read_bytes())
