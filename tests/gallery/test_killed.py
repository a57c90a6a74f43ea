"""Indexing that is killed (SIGKILL, no warning) at random moments ends in the same gallery as indexing left alone."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eyespot.gallery.disk import map_vectors, read_items, shard_paths
from eyespot.gallery.view import Gallery
from tests.worlds import draw


def command(gallery: Path, photos: Path) -> list[str]:
    """Index two roots at once; the second has label columns that the first lacks."""
    return [sys.executable, "-m", "eyespot.cli", "index", *map(str, sorted(photos.iterdir())), "-g", str(gallery)]


def start(gallery: Path, photos: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(gallery, photos), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def left_alone(gallery: Path, photos: Path) -> float:
    """Index without a kill; seconds until the first shard stood."""
    begun = time.monotonic()
    process = start(gallery, photos)
    while not shard_paths(gallery) and process.poll() is None:
        time.sleep(0.01)
    seconds = time.monotonic() - begun
    _, complaints = process.communicate(timeout=300)
    assert process.returncode == 3, complaints.decode()  # two of the files are bad
    return seconds


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


def kill_often(gallery: Path, photos: Path, times: int, seconds: float) -> int:
    """Start indexing and kill it so often, at random moments from its start on; how many kills hit a live run.

    The span of moments shrinks with every shard that gets done, so that work is left for the last of the runs too. A
    run that ended before its kill, on a machine that got quicker, begins it all anew within a shorter span.
    """
    moment, hits = random.Random(times), 0
    for _ in range(4 * times):
        before = len(shard_paths(gallery))
        process = start(gallery, photos)
        time.sleep(moment.uniform(0.05, seconds))
        live = process.poll() is None
        process.kill()
        process.communicate()
        hits = hits + 1 if live else 0
        if hits == times:
            break
        if not live:
            shutil.rmtree(gallery)
        seconds *= 0.6 if not live else 0.8 if len(shard_paths(gallery)) > before else 1.03
    return hits


@pytest.mark.parametrize(
    ("count", "times"),
    [(130, 6), pytest.param(640, 50, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])],
)
@pytest.mark.long
def test_a_killed_run_started_again_ends_in_the_same_gallery(tmp_path: Path, count: int, times: int) -> None:
    photos = collection(tmp_path / "photos", count)
    seconds = left_alone(tmp_path / "calm", photos)
    hits = kill_often(tmp_path / "killed", photos, times, 1.1 * seconds)
    left_alone(tmp_path / "killed", photos)

    assert hits == times
    assert contents(tmp_path / "killed") == contents(tmp_path / "calm")
    assert len(contents(tmp_path / "calm")) > 1
    assert sum(len(facts) for facts, _ in contents(tmp_path / "calm")) == count
    assert not list((tmp_path / "killed" / "shards").glob(".*"))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 photos, indexed without trouble."""
    folder = tmp_path_factory.mktemp("calm")
    left_alone(folder / "gallery", collection(folder / "photos", 80))
    return folder


@pytest.mark.long
@pytest.mark.parametrize("kibibytes", [24, 90])
def test_no_room_on_the_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, calm: Path, kibibytes: int) -> None:
    """A limit on the size of files stands in for a full disk; it hits the ledger or the vectors."""
    photos = calm / "photos"
    cramped = ["bash", "-c", f'ulimit -f {kibibytes}; exec "$@"', "-", *command(tmp_path / "gallery", photos)]
    full = subprocess.run(cramped, capture_output=True, text=True)
    left_alone(tmp_path / "gallery", photos)

    assert full.returncode == 1
    (sentence,) = full.stderr.splitlines()
    assert sentence.startswith("eyespot: cannot write") and "make room and run the same line again" in sentence
    assert contents(tmp_path / "gallery") == contents(calm / "gallery")
