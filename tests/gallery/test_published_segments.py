"""Segments at an address: what is sent and dropped after shards were merged, also while others publish and fetch."""

from __future__ import annotations

import math
import shutil
import threading
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="galleries at an address need the extra [remote]")

import eyespot
from eyespot.gallery import disk
from eyespot.gallery.integrity import faults
from eyespot.gallery.remote import FACTS, OURS, fetch, publish
from eyespot.gallery.segments import compact
from eyespot.types import EyespotError, UsageError, no_progress
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import draw_photos, index_gallery

SHARDS = 4


def make(folder: Path) -> None:
    draw_photos(folder / "photos", 3 * SHARDS, name="{}.png")
    index_gallery(folder / "gallery", folder / "photos", shard_rows=3, codes=True)


@pytest.fixture
def gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve photos in four shards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(made_once("four shards", make) / "gallery", tmp_path / "gallery"))


@pytest.fixture
def compacted(gallery: Path, tmp_path: Path) -> Path:
    """The same in one segment."""
    copied = Path(shutil.copytree(gallery, tmp_path / "compacted"))
    compact(copied, grace=0)
    return copied


def url_of(tmp_path: Path) -> str:
    return f"file://{tmp_path}/store"


def contents(gallery: Path) -> dict[str, bytes]:
    """What a gallery is: its files by name, without those of shards that were merged."""
    merged = {place.name for place in disk.merged_paths(gallery)}
    files = {place.relative_to(gallery).as_posix(): place for place in gallery.rglob("*") if place.is_file()}
    return {
        name: place.read_bytes()
        for name, place in files.items()
        if OURS.fullmatch(name) and place.parent.name not in merged
    }


def images(gallery: Path | str) -> list[str]:
    return [hit.image for hit in eyespot.open(gallery).search("stripes", k=50)["q"]]


def folders(copy: Path) -> list[str]:
    return sorted(place.name for place in (copy / "shards").iterdir())


@pytest.mark.parametrize("grace", [0, math.inf])
def test_after_compact_the_segment_is_sent_and_a_copy_drops_the_shards(
    gallery: Path, tmp_path: Path, grace: float
) -> None:
    """Also while the merged shards still lie there, as after an index run."""
    publish(gallery, url_of(tmp_path))
    found, copy = images(url_of(tmp_path)), fetch(url_of(tmp_path), part=FACTS)
    compact(gallery, grace=grace)

    done = publish(gallery, url_of(tmp_path))
    assert images(url_of(tmp_path)) == found

    (segment,) = disk.shard_paths(gallery)
    assert done.sent == len(list(segment.iterdir())) + 1  # and gallery.toml
    assert folders(copy) == [segment.name] and contents(copy) == contents(gallery)
    assert publish(gallery, url_of(tmp_path)).sent == 0


def test_shards_published_over_their_segment_take_its_place(gallery: Path, compacted: Path, tmp_path: Path) -> None:
    """Another machine has an older state of the gallery, and publishes it."""
    publish(compacted, url_of(tmp_path))
    copy = fetch(url_of(tmp_path))
    found = images(copy)
    for last in (gallery, compacted, gallery):
        publish(last, url_of(tmp_path))
        assert images(url_of(tmp_path)) == found
        assert contents(copy) == contents(last) and len(folders(copy)) == len(disk.shard_paths(last))


@pytest.mark.parametrize("part", [FACTS, "everything"])
def test_a_reader_in_the_middle_of_a_fetch_has_the_state_that_it_began_with(
    gallery: Path, compacted: Path, tmp_path: Path, part: str
) -> None:
    publish(gallery, url_of(tmp_path))
    ended: list[bool] = []

    def meanwhile(*_: object) -> None:
        if not ended:
            ended.append(True)
            publish(compacted, url_of(tmp_path))

    copy = fetch(url_of(tmp_path), tmp_path / "copy", meanwhile, part)

    assert ended and len(folders(copy)) == SHARDS
    assert images(copy) == images(gallery) and faults(fetch(url_of(tmp_path), copy), no_progress) == []
    assert len(folders(copy)) == 1 and contents(copy) == contents(compacted)


def test_a_reader_whose_fetch_was_cut_before_and_after_a_segment_came(
    gallery: Path, compacted: Path, tmp_path: Path
) -> None:
    """Every so many-th file ends the fetch, while shards and segment are published in turn."""
    for turn in range(8):
        publish([gallery, compacted][turn % 2], url_of(tmp_path))
        steps = iter(range(3 + 5 * turn))

        def cut(*_: object, steps: object = steps) -> None:
            if next(steps, None) is None:  # type: ignore[call-overload]
                raise KeyboardInterrupt

        try:
            fetch(url_of(tmp_path), tmp_path / "copy", cut)
        except KeyboardInterrupt:
            continue
    assert contents(fetch(url_of(tmp_path), tmp_path / "copy")) == contents(compacted)
    assert len(folders(tmp_path / "copy")) == 1 and images(tmp_path / "copy") == images(gallery)


def test_two_publishers_of_shards_and_of_their_segment(gallery: Path, compacted: Path, tmp_path: Path) -> None:
    """Readers have the one or the other, whole."""
    url, wrong = url_of(tmp_path), list[str]()
    publish(gallery, url)

    def often(mine: Path) -> None:
        for _ in range(6):
            try:
                publish(mine, url)
            except EyespotError as error:
                if "run again" not in str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=often, args=(mine,)) for mine in (gallery, compacted)]
    for thread in threads:
        thread.start()
    states, rounds = [contents(gallery), contents(compacted)], 0
    while any(thread.is_alive() for thread in threads) or rounds < 3:
        assert contents(fetch(url, tmp_path / "copy")) in states
        rounds += 1
    assert not wrong and images(tmp_path / "copy") == images(gallery)


def test_a_segment_that_is_half_fetched_hides_no_rows(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, url_of(tmp_path))
    copy = fetch(url_of(tmp_path), tmp_path / "copy")
    compact(gallery, grace=0)
    publish(gallery, url_of(tmp_path))
    (lost,) = (tmp_path / "store").glob("shards/00000-*/starter-*.bounds*")
    lost.rename(tmp_path / "lost")

    with pytest.raises(EyespotError):
        fetch(url_of(tmp_path), copy)
    half, left = images(copy), disk.shard_paths(copy)
    (tmp_path / "lost").rename(lost)
    fetch(url_of(tmp_path), copy)

    assert half == images(copy) == images(gallery) and len(left) == SHARDS
    assert folders(copy) == ["00000-00003"]


def test_a_copy_is_not_compacted(gallery: Path, tmp_path: Path) -> None:
    publish(gallery, url_of(tmp_path))
    with raises(UsageError):
        compact(fetch(url_of(tmp_path), tmp_path / "copy"))
