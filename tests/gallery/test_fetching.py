"""A copy in parts: what comes first, what a view brings, large files in ranges, full disks, and kills in between."""

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
from eyespot.gallery.remote import FACTS, OURS, complete, fetch, publish
from eyespot.gallery.remote.stores import PIECE
from eyespot.gallery.segments import compact
from eyespot.gallery.view import Gallery
from eyespot.search.index_choice import read_stored
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


def spaces_in(copy: Path) -> set[str]:
    """The encoders whose vectors have come to a copy, wholly or in part."""
    spaces = disk.read_header(copy).spaces
    return {space.encoder for stem, space in spaces.items() if list(copy.glob(f"shards/*/{stem}.*"))}


@pytest.mark.long
def test_facts_come_alone_and_vectors_with_the_view(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path), part=FACTS)
    assert spaces_in(copy) == set() and len(list(copy.glob("shards/*/items.parquet"))) == 2
    assert (copy / ".origin.json").stat().st_mode & 0o777 == 0o600  # the address is for the owner alone

    first = eyespot.open(at(tmp_path)).search("stripes", k=9).run
    assert spaces_in(copy) == {"starter"}
    second = eyespot.open(at(tmp_path), OTHER).search("stripes", k=9).run

    assert spaces_in(copy) == {"starter", OTHER} and contents(copy) == contents(gallery)
    for found, encoder in ((first, None), (second, OTHER)):
        assert found["q"] == eyespot.open(gallery, encoder).search("stripes", k=9).run["q"]


def test_a_copy_whose_folder_is_opened_brings_what_it_lacks_of_its_own_state(gallery: Path, tmp_path: Path) -> None:
    """Though another state is published by then."""
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path), part=FACTS)
    before = contents(gallery)
    grow(gallery, tmp_path, "starter")
    publish(gallery, at(tmp_path))

    assert len(eyespot.open(copy, OTHER).search("stripes", k=9).run["q"]) == 6
    complete(copy, disk.read_header(copy).default)
    assert contents(copy) == before


@pytest.mark.long
def test_what_a_copy_has_is_kept_up_to_date_and_nothing_else_comes(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, at(tmp_path))
    copy = eyespot.open(at(tmp_path)).gallery.path
    grow(gallery, tmp_path)
    publish(gallery, at(tmp_path))

    fetch(at(tmp_path), part=FACTS)

    assert spaces_in(copy) == {"starter"}
    (tmp_path / "store").rename(tmp_path / "away")
    assert len(eyespot.open(copy).search("stripes", k=9).run["q"]) == 7
    with pytest.raises(EyespotError, match="is missing"):
        eyespot.open(copy, OTHER)


def test_a_whole_copy_answers_while_its_address_is_away_and_says_of_when_it_is(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, at(tmp_path))
    before = run_eyespot("search", "stripes", "-g", at(tmp_path))
    copy = fetch(at(tmp_path), part=FACTS)
    (tmp_path / "store").rename(tmp_path / "away")
    after, checked = (run_eyespot(*words, "-g", at(tmp_path)) for words in (["search", "stripes"], ["doctor"]))

    assert (after.returncode, after.stdout) == (0, before.stdout) and "the copy here answers as of 20" in after.stderr
    assert "here: facts, starter-" in checked.stdout
    (copy / "shards" / "00000" / "items.parquet").unlink()
    assert "no gallery is published" in run_eyespot("search", "stripes", "-g", at(tmp_path)).stderr


def test_a_copy_of_an_older_eyespot_keeps_what_it_has(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path))
    (copy / ".origin.json").unlink()
    assert len(eyespot.open(copy, OTHER).search("stripes", k=9).run["q"]) == 6
    fetch(at(tmp_path), part=FACTS)
    assert contents(copy) == contents(gallery)


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_copy_without_its_list_is_mended_by_its_address(gallery: Path, tmp_path: Path, damage: str) -> None:
    publish(gallery, at(tmp_path))
    copy = fetch(at(tmp_path), part=FACTS)
    (place,) = copy.glob(".published-*.json")
    place.write_bytes(place.read_bytes()[:-9])
    if damage == "gone":
        place.unlink()

    with pytest.raises(EyespotError, match=f"-g {at(tmp_path)}"):
        eyespot.open(copy)
    assert len(eyespot.open(at(tmp_path)).search("stripes", k=9).run["q"]) == 6
    assert len(eyespot.open(copy, OTHER).search("stripes", k=9).run["q"]) == 6


def test_a_stored_index_comes_with_the_search_that_uses_it(gallery: Path, tmp_path: Path) -> None:
    stem = Gallery(gallery).stem()
    place = gallery / "indexes" / stem / "flat"
    place.mkdir(parents=True)
    (place / "settings.json").write_text("{}")
    (place / "lists.bin").write_bytes(b"lists")
    publish(gallery, at(tmp_path))
    view = eyespot.open(at(tmp_path)).view
    assert not (view.gallery.path / "indexes").exists()

    with pytest.raises(EyespotError):  # these settings are none
        read_stored(view, "flat")

    assert (view.gallery.path / "indexes" / stem / "flat" / "lists.bin").read_bytes() == b"lists"


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
    place = disk.shard_path(gallery, 1) / f"{Gallery(gallery).stem()}.npy"
    flip(place)
    publish(gallery, at(tmp_path))
    with pytest.raises(EyespotError, match=place.name):
        eyespot.open(at(tmp_path))
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
    with pytest.raises(EyespotError, match="is not what was published"):
        fetch(at(tmp_path), tmp_path / "copy")


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


def test_stopped_between_facts_and_vectors_a_copy_ends_in_what_is_published(gallery: Path, tmp_path: Path) -> None:
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
            fetch(url, copy, stop, FACTS)
            complete(copy, Gallery(copy).stem(), stop)
    fetch(url, copy, part=FACTS)
    complete(copy, Gallery(copy).stem())

    (tmp_path / "store").rename(tmp_path / "away")
    assert eyespot.open(copy).search("stripes", k=9).run["q"] == eyespot.open(other).search("stripes", k=9).run["q"]
    (tmp_path / "away").rename(tmp_path / "store")
    assert contents(fetch(url, copy)) == contents(other)


@pytest.mark.parametrize("number", ["1", "64"])
def test_transfers_are_a_setting(large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    for wrong in ("0", "65", "many", "-1", "2.5"):
        monkeypatch.setenv("EYESPOT_TRANSFERS", wrong)
        with raises(UsageError):
            publish(large, at(tmp_path))
    monkeypatch.setenv("EYESPOT_TRANSFERS", number)
    publish(large, at(tmp_path))
    assert contents(fetch(at(tmp_path))) == contents(large)
