"""A local copy: what a view finds in it, large files in ranges, a lost address, and kills in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

import eyespot
from eyespot.gallery import disk
from eyespot.gallery.integrity import faults
from eyespot.gallery.remote import OURS, fetch, publish
from eyespot.gallery.remote.stores import PIECE
from eyespot.gallery.segments import compact
from eyespot.storage.digests import DIGESTS, damaged_at_a_glance
from eyespot.types import EyespotError, UsageError, no_progress
from tests.command import run_eyespot
from tests.gallery.test_remote import at, cache as cache
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import draw, galleries, index_gallery, make_gallery, second_encoder
from tests.worlds.galleries import flip

BOTH = ("starter", OTHER := second_encoder())


def make(folder: Path) -> None:
    make_gallery(folder, 6, encoders=BOTH, shard_rows=3, codes=True)


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Six photos in two shards, with vectors and codes of two encoders."""
    made = made_once("two spaces", make)
    shutil.copytree(made / "photos", tmp_path / "photos")
    return Path(shutil.copytree(made / "gallery", tmp_path / "gallery"))


def contents(gallery: Path) -> dict[str, bytes]:
    """The files of a gallery by their names, without those that only a copy has."""
    return {name: data for name, data in galleries.contents(gallery).items() if OURS.fullmatch(name)}


def grow(gallery: Path, tmp_path: Path, *encoders: str) -> None:
    """A seventh photo, for some of the encoders."""
    draw(tmp_path / "photos" / "new.png", 99)
    index_gallery(gallery, tmp_path / "photos", encoders=encoders or BOTH, shard_rows=3)


def test_a_copy_finds_in_each_space_what_the_gallery_finds(gallery: Path, tmp_path: Path) -> None:
    publish(str(gallery), at(tmp_path))
    for encoder in (None, OTHER):
        found = eyespot.open(at(tmp_path), encoder).search("stripes", k=9).run
        assert found["q"] == eyespot.open(gallery, encoder).search("stripes", k=9).run["q"]


def test_a_copy_has_the_folder_that_is_named(gallery: Path, tmp_path: Path) -> None:
    """As a text too; its address, which may hold a password, is for the owner alone."""
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path), into=str(tmp_path / "named"))
    assert copy == tmp_path / "named" and contents(copy) == contents(gallery)
    assert (copy / ".fetched.json").stat().st_mode & 0o777 == 0o600


def test_a_whole_copy_answers_while_its_address_is_away_and_says_of_when_it_is(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, at(tmp_path))
    before = run_eyespot("search", "stripes", "-g", at(tmp_path))
    copy = fetch(at(tmp_path))
    (tmp_path / "store").rename(tmp_path / "away")
    after, checked = (run_eyespot(*words, "-g", at(tmp_path)) for words in (["search", "stripes"], ["doctor"]))

    assert (after.returncode, after.stdout) == (0, before.stdout) and "the copy here answers as of 20" in after.stderr
    assert f"copy of {at(tmp_path)} as of 20" in checked.stdout
    (copy / "shards" / "00000" / "items.parquet").unlink()
    assert "no gallery is published" in run_eyespot("search", "stripes", "-g", at(tmp_path)).stderr


@pytest.mark.parametrize("state", ["cut", "of an older eyespot"])
def test_a_copy_that_does_not_know_what_it_has_keeps_it(gallery: Path, tmp_path: Path, state: str) -> None:
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path))
    place = copy / ".fetched.json"
    files = json.dumps(json.loads(place.read_text("utf-8"))["files"])
    place.write_text(files[:-9] if state == "cut" else files, "utf-8")

    (tmp_path / "store").rename(tmp_path / "away")
    assert len(eyespot.open(copy, OTHER).search("stripes", k=9).run["q"]) == 6
    with raises(UsageError):
        fetch(at(tmp_path))
    (tmp_path / "away").rename(tmp_path / "store")
    assert contents(fetch(at(tmp_path))) == contents(gallery)


def test_a_new_copy_is_not_read_again_when_it_is_opened(gallery: Path, tmp_path: Path) -> None:
    """Its files are newer than the digests that were published; each was compared when it came."""
    publish(gallery, at(tmp_path))
    copy = eyespot.open(at(tmp_path)).gallery.path
    shard = disk.shard_paths(copy)[0]
    read = (shard / DIGESTS).stat().st_mtime_ns
    files = [file for file in shard.iterdir() if file.name != DIGESTS]
    assert all(max(file.stat().st_mtime_ns, file.stat().st_ctime_ns) <= read for file in files)

    flip(files[0])
    assert list(damaged_at_a_glance(shard, [files[0].name])) == [files[0].name]


def test_damage_from_before_the_publication_still_shows_in_a_copy(gallery: Path, tmp_path: Path) -> None:
    place = disk.shard_path(gallery, 1) / f"{disk.read_header(gallery).default}.npy"
    flip(place)
    publish(gallery, at(tmp_path))
    with pytest.raises(EyespotError, match=place.name):
        eyespot.open(at(tmp_path)).search("stripes")
    assert [fault.file for fault in faults(fetch(at(tmp_path)), no_progress)] == [place.name]


@pytest.fixture
def large(gallery: Path) -> Path:
    """The same with a file of more than four pieces among the facts."""
    data = np.random.default_rng(0).bytes(4 * PIECE + 12345)
    (gallery / "shards" / "00001" / "large.bin").write_bytes(data)
    return gallery


@pytest.mark.parametrize("size", [5 * PIECE, 1 << 62])
def test_a_file_that_is_shorter_than_its_publication_states_ends(gallery: Path, tmp_path: Path, size: int) -> None:
    publish(gallery, at(tmp_path))
    place = tmp_path / "store" / "gallery.json"
    published = json.loads(place.read_text("utf-8"))
    next(entry for name, entry in published["files"].items() if name.endswith("items.arrow"))[1] = size
    place.write_text(json.dumps(published), "utf-8")
    assert contents(fetch(at(tmp_path), tmp_path / "copy")) == contents(gallery)  # by their digests


@pytest.mark.parametrize("damaged", [False, True])
def test_a_large_file_goes_on_where_a_killed_run_left_it(large: Path, tmp_path: Path, damaged: bool) -> None:
    """In the middle of a piece; if what came was damaged since, the file comes again."""
    publish(large, at(tmp_path))
    copy = fetch(at(tmp_path), tmp_path / "copy")
    (sent,) = (tmp_path / "store").glob("shards/00001/large.*")
    place = copy / "shards" / "00001" / "large.bin"
    part = place.with_name(f".large.bin.{sent.name.split('.')[1]}.part")
    came = place.read_bytes()[: 3 * PIECE + 99]
    part.write_bytes(bytes(len(came)) if damaged else came)
    place.unlink()
    inode, told = part.stat().st_ino, list[int]()

    fetch(at(tmp_path), copy, lambda _what, done, _total: told.append(done))

    assert contents(copy) == contents(large) and not part.exists()
    assert damaged or (place.stat().st_ino == inode and told == sorted(told))


def test_stopped_at_any_file_a_copy_ends_in_what_is_published(gallery: Path, tmp_path: Path) -> None:
    url, copy = at(tmp_path), tmp_path / "copy"
    other = Path(shutil.copytree(gallery, tmp_path / "other"))
    grow(other, tmp_path, "starter")
    compact(other, grace=0)
    for steps, state in ((3, gallery), (9, other), (15, gallery), (12, other)):
        publish(state, url)
        left = iter(range(steps))

        def stop(*_: object, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            fetch(url, copy, stop)
    assert contents(fetch(url, copy)) == contents(other)
    assert eyespot.open(copy).search("stripes", k=9).run["q"] == eyespot.open(other).search("stripes", k=9).run["q"]


@pytest.mark.parametrize("number", ["1", "64"])
def test_transfers_are_a_setting(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    for wrong in ("0", "65", "many", "-1", "2.5"):
        monkeypatch.setenv("EYESPOT_TRANSFERS", wrong)
        with raises(UsageError):
            publish(large, at(tmp_path))
    monkeypatch.setenv("EYESPOT_TRANSFERS", number)
    publish(large, at(tmp_path))
    assert contents(fetch(at(tmp_path))) == contents(large)
