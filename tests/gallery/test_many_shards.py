"""A gallery of thousands of shards: more mapped files than a program may usually open, and notes that are read fast."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eyespot.gallery import disk, items_table
from eyespot.gallery.facts import table_of
from eyespot.gallery.int8_codes import write_missing
from eyespot.gallery.picture_index import StoredRow
from eyespot.gallery.view import Gallery
from eyespot.types import EyespotError, Space, no_progress

SPACE = Space("starter", "1", "none", "none", 8)
STEM = disk.stem_of(SPACE)
SHARDS = 60
OPEN = """
import resource, sys
from eyespot.gallery.view import Gallery
from eyespot.types import EyespotError
usual, most, times = map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
gallery = Gallery(sys.argv[1])
try:
    views = [gallery.view(gallery.stem()) for _ in range(times)]
    opened = [(len(view.blocks), view.codes is not None) for view in views]
    print(*opened[-1], *views[-1].notes)
except EyespotError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty shards of one row, with codes: four mapped files each."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(SHARDS):
        shard = disk.shard_path(folder, number)
        shard.mkdir(parents=True)
        items_table.write_items(shard, table_of([StoredRow(f"{number}", {}, [0], [f"{number}.jpg"], 1, 1, {})], {}))
        disk.write_vectors(shard, np.eye(8, dtype=np.float32)[:1], disk.SpaceNote(SPACE, [], [[1.0] * 8] * 3))
    disk.write_header(folder, disk.Header({0: disk.Root(str(folder), "folder")}, {STEM: SPACE}, STEM, SHARDS))
    write_missing(Gallery(folder).view(STEM), no_progress)
    return folder


def output(gallery: Path, usual: int, most: int, times: int = 1) -> str:
    """What a program says that may open so many files and opens a gallery so often: blocks, codes and notes."""
    line = [sys.executable, "-c", OPEN, gallery, *map(str, (usual, most, times))]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_files_that_are_more_than_the_usual_limit_are_opened(gallery: Path) -> None:
    """The limit is raised as far as it may be, also for what is open already; codes are not silently left out."""
    assert output(gallery, 100, 1000) == output(gallery, 100, 5000, times=4) == "60 True\n"
    few = output(gallery, 100, 150)
    assert few.startswith("60 False the int8 codes are 180 files")
    (advice,) = re.findall(r"ulimit -n (\d+)", few)
    assert output(gallery, 100, int(advice)) == "60 True\n"
    assert "ulimit" in output(gallery, 70, 70) or "raise the limit" in output(gallery, 70, 70)


def test_a_search_reads_notes_without_their_fingerprints(gallery: Path) -> None:
    shard = disk.shard_path(gallery, 0)
    note, seen = disk.read_note(shard, STEM), disk.glance(shard, STEM)
    assert note is not None and note.fingerprints == [[1.0] * 8] * 3
    assert seen is not None and (seen.space, seen.missing, seen.fingerprints) == (SPACE, [], [])


def test_fingerprints_over_several_lines_are_read_and_damaged_ones_are_told(tmp_path: Path) -> None:
    disk.write_note(tmp_path, disk.SpaceNote(SPACE, [3], [[0.5]], "/somewhere.npy"))
    place = tmp_path / f"{STEM}.toml"
    written = place.read_text()
    for right in ("[[0.5]]", "[\n  [0.5],\n]"):
        place.write_text(written.replace("[[0.5]]", right))
        assert disk.read_note(tmp_path, STEM) == disk.SpaceNote(SPACE, [3], [[0.5]], "/somewhere.npy")
        seen = disk.glance(tmp_path, STEM)
        assert seen is not None and (seen.space, seen.missing) == (SPACE, [3])
    for wrong in ("[[1.0, ]", "{}", "[1.0, x]"):
        place.write_text(written.replace("[[0.5]]", wrong))
        with pytest.raises(EyespotError, match="damaged"):
            disk.read_note(tmp_path, STEM)
