"""Which shards may share a segment, and what a repair makes of a segment whose files beside the vectors are damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.gallery import disk, segments
from eyespot.gallery.index_db import Ledger
from eyespot.gallery.integrity import faults
from eyespot.gallery.photos.places import Root
from eyespot.gallery.remote.manifest import FACTS, File, Manifest
from eyespot.gallery.segments import compact, members_of
from eyespot.gallery.view import Gallery
from eyespot.search.index_choice import Measured, stored_of
from eyespot.storage.digests import DIGESTS
from eyespot.types import no_progress
from tests.command import run_eyespot
from tests.gallery.test_segments import SHARDS, names, photos_of, rows_of
from tests.gallery.test_segments import gallery as gallery  # 32 photos in eight shards
from tests.worlds import index_gallery


def import_part(folder: Path, gallery: Path, encoder: str = "starter", **columns: list[object]) -> None:
    """Two vectors and the facts of their pictures, as a copy."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    seed = int.from_bytes(folder.name.encode(), "big") % 2**32
    np.save(folder / "img_emb" / "img_emb_0.npy", np.random.default_rng(seed).normal(size=(2, 512)).astype(np.float16))
    facts = {"key": [f"{folder.name}/{row}" for row in range(2)], **columns}
    pq.write_table(pa.table(facts), folder / "metadata" / "metadata_0.parquet")
    done = run_eyespot("import", "clip-retrieval", folder, "-g", gallery, "-e", encoder, "--copy")
    assert done.returncode == 0, done.stderr


def test_shards_that_stay_as_they_are_do_so_however_many_there_are(gallery: Path) -> None:
    for shard in disk.shard_paths(gallery):
        (shard / "local" / "sift").mkdir(parents=True)
    assert compact(gallery, most=8, grace=0).segments == []
    assert len(list(gallery.glob("shards/*/local/sift"))) == SHARDS


def test_no_segment_lies_around_a_shard_that_is_lost(gallery: Path) -> None:
    rows = rows_of(gallery)
    shutil.rmtree(disk.shard_path(gallery, 3))
    compact(gallery, grace=0)
    index_gallery(gallery)
    assert rows_of(gallery)[:2] == rows[:2]
    assert names(gallery) == ["00000-00002", "00003", "00004-00007"]


def test_no_segment_lies_around_a_shard_that_is_planned(tmp_path: Path) -> None:
    """As a run that was killed leaves it, between two imports."""
    place, photos = tmp_path / "gallery", photos_of(tmp_path / "photos", 0, 3)
    import_part(tmp_path / "a", place)
    known = Ledger(place)
    known.begin_looking()
    known.look(known.add_root(Root(str(photos), "folder")), Root(str(photos), "folder"))
    known.make_plan(None, False)
    known.close()
    import_part(tmp_path / "b", place)

    compact(place, grace=0)
    index_gallery(place)

    assert Gallery(place).header.rows == 8
    assert sum(map(disk.count_items, disk.shard_paths(place))) == 8 and faults(place, no_progress) == []


@pytest.mark.long
def test_columns_of_another_type_or_spelling_are_not_put_together(tmp_path: Path) -> None:
    place = tmp_path / "gallery"
    import_part(tmp_path / "a", place, year=[2020, 2**60 + 1], Kind=["heron", "owl"])
    import_part(tmp_path / "b", place, year=["about 2020", "2020"], Kind=["heron", "owl"])
    import_part(tmp_path / "c", place, year=["about 2020", "2020"], kind=["heron", "owl"])
    import_part(tmp_path / "d", place, kind=["heron", "owl"])
    line = ("search", "--where", "kind = 'heron'", "-g", place, "-e", "starter", "--json")
    before = sorted(one["id"] for one in json.loads(run_eyespot(*line).stdout)["items"])

    assert compact(place, grace=0).segments == ["00002-00003"]

    after = sorted(one["id"] for one in json.loads(run_eyespot(*line).stdout)["items"])
    assert before == after and len(before) == 4


def test_an_approximate_index_is_of_whole_segments(gallery: Path, tmp_path: Path) -> None:
    opened = Gallery(gallery)
    record = stored_of(opened.view(opened.stem()), "faiss", {}, Measured(0.9, 50, 1, "words"))
    folder = gallery / "indexes" / opened.stem() / "faiss"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(record.as_json()))
    index_gallery(gallery, photos_of(tmp_path / "more", 100, 7), shard_rows=4)
    assert compact(gallery, grace=0).segments == ["00000-00007", "00008-00009"]


def test_members_know_their_vectors_whatever_the_encoder_is_called(tmp_path: Path) -> None:
    for name in ("a", "b"):
        import_part(tmp_path / name, tmp_path / "gallery", "open_clip:ViT-H-14/metaclip_2.5b")
    (shard, _) = disk.shard_paths(tmp_path / "gallery")
    note = disk.read_notes(shard)[0]
    compact(tmp_path / "gallery", grace=0)
    found = [member.digests for member in members_of(disk.shard_paths(tmp_path / "gallery")[0])]
    assert f"blake2b:{found[0][f'{disk.stem_of(note.space)}.npy']}" == note.checksum and len(found[1]) == 1


KILLED = """
import os, signal, sys
moved = False
def hook(event, args):
    global moved
    if event == "open" and moved:
        os.kill(os.getpid(), signal.SIGKILL)
    moved = moved or (event == "os.rename" and str(args[1]).endswith("shards/00001"))
sys.addaudithook(hook)
from eyespot.cli import main
main()
"""


def test_what_a_killed_import_left_is_written_anew(tmp_path: Path) -> None:
    folder, place = tmp_path / "clip", tmp_path / "gallery"
    (folder / "img_emb").mkdir(parents=True)
    vectors = np.random.default_rng(0).normal(size=(3, 4, 512)).astype(np.float32)
    for part, block in enumerate(vectors / np.linalg.norm(vectors, axis=2, keepdims=True)):
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", block)
    line = ["import", "clip-retrieval", str(folder), "-g", str(place), "-e", "starter", "--copy"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *line], capture_output=True)
    assert killed.returncode == -9 and (place / "shards" / "00001").is_dir()

    assert run_eyespot(*line).returncode == 0

    assert names(place) == ["00000", "00001", "00002"] and Gallery(place).header.rows == 12
    index_gallery(place)
    assert names(place) == ["00000", "00001", "00002"] and faults(place, no_progress) == []


def rot(place: Path) -> None:
    """Another bit, as a disk loses one: no date says so."""
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 4
    place.write_bytes(data)
    later = (place.parent / DIGESTS).stat().st_mtime_ns + 10**9
    os.utime(place.parent / DIGESTS, ns=(later, later))


@pytest.mark.parametrize("name", [*disk.ROW_STORE, segments.MEMBERS])
def test_a_repair_makes_again_what_lies_beside_a_segment(gallery: Path, name: str) -> None:
    compact(gallery, most=16, grace=0)
    rows, members = rows_of(gallery), members_of(disk.shard_paths(gallery)[0])
    rot(disk.shard_paths(gallery)[0] / name)
    assert [fault.file for fault in faults(gallery, no_progress)] == [name]

    index_gallery(gallery, repair=True)

    assert faults(gallery, no_progress) == [] and rows_of(gallery) == rows
    counts = [(member.number, member.rows) for member in members]
    assert [(one.number, one.rows) for one in members_of(disk.shard_paths(gallery)[0])] == counts


def test_a_list_of_members_is_made_again_without_an_index(gallery: Path) -> None:
    """Links of copies then are, too: they name rows by shards of which nobody knows where they begin."""
    compact(gallery, most=16, grace=0)
    rows = rows_of(gallery)
    (disk.shard_paths(gallery)[0] / segments.MEMBERS).write_text("[]")
    for place in gallery.glob("index.sqlite*"):
        place.unlink()
    index_gallery(gallery, repair=True)
    assert rows_of(gallery)[1:] == rows[1:] and faults(gallery, no_progress) == []


def test_damaged_facts_of_an_import_end_no_index_run(tmp_path: Path) -> None:
    place = tmp_path / "gallery"
    import_part(tmp_path / "a", place)
    facts = disk.shard_paths(place)[0] / disk.ITEMS
    facts.write_bytes(facts.read_bytes()[:-9])
    index_gallery(place, photos_of(tmp_path / "photos", 0, 3))
    assert disk.count_items(disk.shard_paths(place)[1]) == 4


def test_a_copy_of_a_segment_under_another_name_is_no_segment(gallery: Path) -> None:
    compact(gallery, grace=0)
    (segment,) = disk.shard_paths(gallery)
    shutil.copytree(segment, segment.with_name("00000-old"))
    assert disk.shard_path(gallery, 0) == segment


def test_a_file_that_is_called_like_a_space_is_one_of_the_facts() -> None:
    files = {f"shards/00000/{name}": File("", 0, "", 0) for name in ("starter-1", "starter-1.toml")}
    assert Manifest(files).part_of("shards/00000/starter-1") == FACTS
