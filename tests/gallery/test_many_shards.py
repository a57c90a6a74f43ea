"""A gallery of thousands of shards: more mapped files than a program may usually open, and notes that are read fast."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.facts import table_of
from eyespot.gallery.index_db import StoredRow
from eyespot.gallery.int8_codes import write_missing
from eyespot.gallery.view import Gallery
from eyespot.types import EyespotError, Space, no_progress
from tests.wording import raises

SPACE = Space("starter", "1", "none", "none", 8)
STEM = disk.stem_of(SPACE)
SHARDS = 60
OPEN = """
import resource, sys
from eyespot.gallery.view import Gallery
from eyespot.types import EyespotError
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[3])))
gallery = Gallery(sys.argv[1])
view = gallery.view(gallery.stem())
try:
    print(len(view.blocks), view.codes is not None, *view.notes)
except EyespotError as error:
    print(error)
"""


def add_shard(folder: Path, number: int, ids: list[str], vectors: np.ndarray, note: disk.SpaceNote) -> Path:
    shard = disk.shard_path(folder, number)
    shard.mkdir(parents=True)
    disk.write_items(shard, table_of([StoredRow(id, {}, [0], [f"{id}.jpg"], 1, 1, {}) for id in ids], {}))
    disk.write_vectors(shard, vectors, note)
    return shard


def finish(folder: Path, space: Space, rows: int) -> None:
    """The head of a gallery, and the codes of its vectors."""
    stem = disk.stem_of(space)
    disk.write_header(folder, disk.Header({0: disk.Root(str(folder), "folder")}, {stem: space}, stem, rows))
    write_missing(Gallery(folder).view(stem), no_progress)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty shards of one row, with codes: four mapped files each."""
    folder, note = tmp_path_factory.mktemp("many"), disk.SpaceNote(SPACE, [], [[1.0] * 8] * 3)
    for number in range(SHARDS):
        add_shard(folder, number, [f"{number}"], np.eye(8, dtype=np.float32)[:1], note)
    finish(folder, SPACE, SHARDS)
    return folder


@pytest.mark.parametrize(
    ("usual", "most", "output"),
    [
        (100, 1000, "60 True"),
        (100, 150, "60 False the int8 codes are 180 files, more than this program may open"),
        (70, 70, "more than a program may open; raise the limit"),
    ],
    ids=["raised", "too few for codes", "too few"],
)
def test_files_that_are_more_than_the_usual_limit_are_opened(gallery: Path, usual: int, most: int, output: str) -> None:
    """The limit that a program starts with is raised as far as it may be; codes are then not silently left out."""
    line = [sys.executable, "-c", OPEN, str(gallery), str(usual), str(most)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert output in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("verb", ["search", "search --by look"])
def test_a_search_without_room_for_codes_says_so_and_its_way_out_works(tmp_path: Path, verb: str) -> None:
    """As many vectors as are searched by their codes, in sixty shards that are links to one."""
    space: Space = rooms.load("encoders", "starter").space
    rows = (1 << 26) // (SHARDS * space.dim) + 1
    vectors = np.random.default_rng(3).normal(size=(rows, space.dim)).astype(np.float16)
    note = disk.SpaceNote(space, [], vectors[:3].astype(float).tolist())
    first = add_shard(tmp_path, 0, [f"{row}" for row in range(rows)], vectors, note)
    finish(tmp_path, space, rows)
    for number in range(1, SHARDS):
        disk.shard_path(tmp_path, number).mkdir()
        for file in first.iterdir():
            os.link(file, disk.shard_path(tmp_path, number) / file.name)

    line = f"{shlex.quote(sys.executable)} -m eyespot.cli {verb} bird -k 5 -g {shlex.quote(str(tmp_path))} --json"
    shell = ["bash", "-c"]
    few = subprocess.run([*shell, f"ulimit -n 180; {line}"], capture_output=True, text=True, check=True)
    (advice,) = re.findall(r"raise the limit with: (ulimit -n \d+)", few.stderr)
    many = subprocess.run([*shell, f"ulimit -Sn 180; {advice}; {line}"], capture_output=True, text=True, check=True)
    assert "int8 codes are 180 files" in few.stderr and "int8 codes" not in many.stderr
    answers = [[(item["id"], item["score"]) for item in json.loads(one.stdout)["items"]] for one in (few, many)]
    assert len(answers[0]) == 5 and answers[0] == answers[1]


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
        with raises(EyespotError):
            disk.read_note(tmp_path, STEM)


def test_what_is_open_already_counts(gallery: Path) -> None:
    """As in a server that has several spaces, or the old and the new state of a gallery."""
    several = OPEN.replace("view = ", "views = [gallery.view(gallery.stem()) for _ in range(3)]\nview = ")
    several = several.replace("try:", "try:\n    kept = [(one.blocks, one.codes) for one in views]")
    done = subprocess.run([sys.executable, "-c", several, str(gallery), "100", "5000"], capture_output=True, text=True)
    assert done.stdout == "60 True\n", done.stderr
