"""Indexing that is killed (SIGKILL, no warning), or has no room, ends in the same gallery as indexing left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.gallery.items_table import read_items
from eyespot.gallery.view import Gallery
from tests.command import run_eyespot, run_process
from tests.worlds import draw
from tests.worlds.kills import killed_at


def line(gallery: Path, photos: Path) -> list[str]:
    """Index two roots at once; the second has label columns that the first lacks."""
    return ["index", *map(str, sorted(photos.iterdir())), "-g", str(gallery)]


def contents(gallery: Path) -> list[tuple[list[dict[str, Any]], bytes]]:
    """Facts and vectors of every shard, bit for bit."""
    stem = Gallery(gallery).stem()
    return [(read_items(shard).to_pylist(), map_vectors(shard, stem).tobytes()) for shard in shard_paths(gallery)]


def collection(folder: Path, count: int) -> Path:
    for seed in range(count):
        draw(folder / f"root{seed % 2}" / f"{seed % 4}" / f"{seed:04d}.jpg", seed)
    (folder / "root1" / "twin.jpg").write_bytes((folder / "root0" / "0" / "0000.jpg").read_bytes())
    (folder / "root1" / "zero.jpg").write_bytes(b"")
    (folder / "root1" / "torn.jpg").write_bytes((folder / "root0" / "0" / "0000.jpg").read_bytes()[:400])
    rows = "".join(f"{seed % 4}/{seed:04d}.jpg,{seed}\n" for seed in range(1, count, 6))
    (folder / "root1" / "metadata.csv").write_text("file_name,number\n" + rows)
    return folder


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 photos in two shards, indexed without trouble, but for two files that are bad."""
    folder = tmp_path_factory.mktemp("calm")
    assert run_eyespot(*line(folder / "gallery", collection(folder / "photos", 80))).returncode == 3
    return folder


@pytest.mark.long
@pytest.mark.parametrize("changes", [(1, 6, 9, 4), pytest.param(range(1, 40), marks=pytest.mark.slow)])
def test_a_killed_run_started_again_ends_in_the_same_gallery(tmp_path: Path, calm: Path, changes: Any) -> None:
    again = line(tmp_path / "gallery", calm / "photos")
    killed = [killed_at(change, *again) for change in changes]
    assert run_eyespot(*again).returncode == 3
    assert killed[0] and sum(killed) >= 3
    assert contents(tmp_path / "gallery") == contents(calm / "gallery")
    assert len(contents(calm / "gallery")) > 1 and sum(len(facts) for facts, _ in contents(calm / "gallery")) == 80
    assert not list((tmp_path / "gallery" / "shards").glob(".*"))


@pytest.mark.long
@pytest.mark.parametrize("kibibytes", [24, 90])
def test_no_room_on_the_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, calm: Path, kibibytes: int) -> None:
    """A limit on the size of files stands in for a full disk; it hits the ledger or the vectors."""
    again = line(tmp_path / "gallery", calm / "photos")
    full = run_process(*again, before=["bash", "-c", f'ulimit -f {kibibytes}; exec "$@"', "-"])
    assert run_eyespot(*again).returncode == 3
    (sentence,) = full.stderr.splitlines()
    assert full.returncode == 1 and "make room" in sentence
    assert contents(tmp_path / "gallery") == contents(calm / "gallery")
