"""Shards merged into segments: which, with every answer as it was, whatever comes after and through kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.gallery import disk, items_table, segments
from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.integrity import faults
from eyespot.gallery.layout.stored import shard_keys
from eyespot.gallery.picture_index import PictureIndex
from eyespot.gallery.segments import compact, members_of
from eyespot.gallery.view import Gallery
from eyespot.photos.places import Root
from eyespot.search.index_choice import Measured, stored_of
from eyespot.storage.digests import DIGESTS
from eyespot.types import EyespotError, no_progress
from tests.command import refuses, run_eyespot
from tests.examples import examples
from tests.made_once import made_once
from tests.worlds import draw, index_gallery
from tests.worlds.galleries import flip

SHARDS = 8


def photos_of(folder: Path, first: int, count: int) -> Path:
    """Drawn photos with labels; every tenth is a copy of the one before, under its own bytes."""
    lines = ["file_name,kind,number"]
    folder.mkdir(parents=True)
    for seed in range(first, first + count):
        draw(folder / f"{seed:03d}.jpg", seed)
        lines.append(f"{seed:03d}.jpg,{'heron' if seed % 3 else 'egret'},{seed}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    shutil.copyfile(folder / f"{first:03d}.jpg", folder / "again.jpg")
    with (folder / "again.jpg").open("ab") as file:
        file.write(b"\0")
    (folder / "torn.jpg").write_bytes(b"\xff\xd8\xff")
    return folder


def make(folder: Path) -> None:
    index_gallery(folder / "gallery", photos_of(folder / "photos", 0, 4 * SHARDS - 1), shard_rows=4, codes=True)


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """32 photos in eight shards with codes."""
    made = made_once("segments", make)
    shutil.copytree(made / "photos", tmp_path / "photos")
    copied = Path(shutil.copytree(made / "gallery", tmp_path / "gallery"))
    index_gallery(copied, tmp_path / "photos")
    return copied


def answers(gallery: Path) -> list[Any]:
    """What each question is answered, without the time it took."""
    found = []
    for question in (
        ("search", "stripes", "-k", 30),
        ("search", "stripes", "--by", "look"),
        ("search", "egret", "--by", "words"),
        ("search", "--where", "number > 20"),
        ("search", "a bird", "--where", "kind = 'heron'"),
        ("duplicates",),
        ("failures",),
    ):
        done = run_eyespot(*question, "-g", gallery, "--json")
        assert done.returncode in (0, 3), done.stderr
        answer = json.loads(done.stdout)
        found.append(answer | {"took_ms": 0} if isinstance(answer, dict) else answer)
    return found


def rows_of(gallery: Path) -> tuple[list[Any], bytes, list[int]]:
    """All rows: their facts, vectors and groups, bit for bit."""
    view = Gallery(gallery).view(Gallery(gallery).stem())
    facts = [row for shard in view.shards for row in items_table.read_items(shard).to_pylist()]
    return facts, b"".join(block.tobytes() for block in view.blocks), Groups(view).numbers.tolist()


def names(gallery: Path) -> list[str]:
    return [shard.name for shard in disk.shard_paths(gallery)]


@pytest.mark.long
def test_a_segment_has_all_rows_and_every_answer_stays(gallery: Path) -> None:
    rows, before = rows_of(gallery), answers(gallery)
    view = Gallery(gallery).view(Gallery(gallery).stem())
    covered = stored_of(view, "faiss", {}, Measured(0.9, 50, 1, "words")).shards
    keys, files = shard_keys(view), len(list((gallery / "shards").rglob("*.npy")))

    merged = compact(gallery, grace=0)

    view = Gallery(gallery).view(Gallery(gallery).stem())
    assert names(gallery) == merged.segments == [f"00000-{SHARDS - 1:05d}"]
    assert (merged.shards, merged.rows, merged.notes) == (SHARDS, len(rows[0]), [])
    assert [member.rows for member in members_of(view.shards[0])] == [4] * SHARDS
    assert rows_of(gallery) == rows and answers(gallery) == before
    assert view.codes is not None and shard_keys(view) == keys
    assert stored_of(view, "faiss", {}, Measured(0.9, 50, 1, "words")).shards == covered
    assert len(list((gallery / "shards").rglob("*.npy"))) * SHARDS == files
    assert faults(gallery, no_progress) == [] and not compact(gallery, grace=0).segments


def test_a_fresh_segment_is_not_read_whole_to_see_that_it_is_sound_and_a_copy_of_it_is_none(gallery: Path) -> None:
    compact(gallery, grace=0.0)

    (segment,) = disk.shard_paths(gallery)
    digests = (segment / DIGESTS).stat().st_mtime_ns
    assert all(file.stat().st_ctime_ns <= digests for file in segment.iterdir() if file.name != DIGESTS)
    shutil.copytree(segment, segment.with_name("00000-old"))
    assert disk.shard_path(gallery, 0) == segment


def test_links_of_copies_lead_to_the_rows_where_they_are_now(gallery: Path, tmp_path: Path) -> None:
    """Those of a shard that came before the segment and points into it; it is not written again for that."""
    shutil.copyfile(tmp_path / "photos" / "000.jpg", tmp_path / "photos" / "third.jpg")
    with (tmp_path / "photos" / "third.jpg").open("ab") as file:
        file.write(b"\1")
    compact(gallery, most=16, grace=0)
    index_gallery(gallery)
    before = rows_of(gallery)[2]
    links = {shard.name: (shard / "links.i64").read_bytes() for shard in disk.shard_paths(gallery)}
    assert before[0] >= 0 and before.count(before[0]) == 3

    compact(gallery, grace=0)

    assert rows_of(gallery)[2] == before
    assert (disk.shard_paths(gallery)[0] / "links.i64").read_bytes() == b"".join(links.values())


def change(act: str, folder: Path, number: int) -> None:
    """What people do to their photos between two runs."""
    if act == "more":
        photos_of(folder / f"more{number}", 40 + 10 * number, 9)
    elif act == "label":
        table = folder / "photos" / "metadata.csv"
        table.write_text(table.read_text().replace("heron", f"stork {number}"))
    elif act == "move":
        (folder / "photos" / "005.jpg").replace(folder / "photos" / "a.jpg")
    elif act == "lose":
        (folder / "photos" / "007.jpg").unlink()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_comes_after_ends_as_without_segments(gallery: Path, tmp_path: Path, seed: int) -> None:
    plain, chance = Path(shutil.copytree(gallery, tmp_path / "plain")), random.Random(seed)
    acts = ["more", "compact", "label", "move", "compact", "lose", "repair", "more", "compact", "lost index", "index"]
    chance.shuffle(acts)
    for number, act in enumerate(["compact", *acts]):
        if act == "compact":
            compact(gallery, most=chance.choice([16, 40, 1 << 20]), grace=0)
        else:
            change(act, tmp_path, number)
            for one in (gallery, plain):
                for file in one.glob("index.sqlite*") if act == "lost index" else ():
                    file.unlink()
                roots = [tmp_path / "photos", *sorted(tmp_path.glob("more*"))]
                index_gallery(one, *roots, shard_rows=4, repair=act in ("repair", "lost index"), codes=True)
        assert rows_of(gallery) == rows_of(plain), act
    assert faults(gallery, no_progress) == []
    assert any("-" in name for name in names(gallery)) and not any("-" in name for name in names(plain))


KILLED = """
import os, signal, sys
from pathlib import Path
gallery, moment = sys.argv[1], int(sys.argv[2])
from eyespot.gallery import segments
seen = 0
def hook(event, args):
    global seen
    if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.utime"):
        if gallery in str(args[0]) or event in ("os.remove", "os.rmdir"):
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
segments.compact(Path(gallery), most=16, grace=0)
print(seen)
"""


def killed_at(gallery: Path, moment: int) -> int:
    """Compact, killed before its so many-th change or look at a file; how many there were if it came to its end."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(gallery), str(moment)], capture_output=True, text=True)
    assert done.returncode in (0, -9), done.stderr
    return int(done.stdout) if done.returncode == 0 else 0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_kill_at_any_moment_loses_nothing(gallery: Path, tmp_path: Path) -> None:
    rows = rows_of(gallery)
    moments = killed_at(Path(shutil.copytree(gallery, tmp_path / "counted")), 0)
    assert moments > 50
    for moment in np.linspace(1, moments, examples(15)).astype(int).tolist():
        victim = Path(shutil.copytree(gallery, tmp_path / "victim"))
        killed_at(victim, moment)
        assert rows_of(victim) == rows, moment  # as a search finds it before anything is mended
        if moment % 2:
            compact(victim, most=16, grace=0)
        index_gallery(victim, tmp_path / "photos")
        assert rows_of(victim) == rows and faults(victim, no_progress) == [], moment
        assert not disk.merged_paths(victim) and not list((victim / "shards").glob(".*"))
        shutil.rmtree(victim)


@pytest.mark.long
def test_an_index_run_merges_many_small_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shards that were merged stay until the next run, for searches that began before."""
    gallery, photos = tmp_path / "gallery", photos_of(tmp_path / "photos", 0, segments.MANY)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 1000, 1000))
        full = index_gallery(gallery, photos, shard_rows=1)
    assert full.embedded == segments.MANY + 1 and len(names(gallery)) == segments.MANY + 1
    assert len([note for note in full.notes if "not merged" in note and "make room" in note]) == 1

    index_gallery(gallery)
    rows, old = rows_of(gallery), disk.merged_paths(gallery)
    index_gallery(gallery)

    assert len(names(gallery)) == 1 and len(old) >= segments.MANY
    assert rows_of(gallery) == rows and not disk.merged_paths(gallery)


@pytest.mark.long
def test_the_command_says_what_it_did(gallery: Path) -> None:
    dry = json.loads(run_eyespot("compact", "-g", gallery, "--dry-run", "--json").stdout)
    assert (dry["segments"], dry["merged"], dry["shards"], dry["dry_run"]) == (1, SHARDS, SHARDS, True)
    done, again = (run_eyespot("compact", "-g", gallery, "--rows", 1000) for _ in range(2))
    assert done.stdout.startswith(f"{SHARDS} shards merged into 1 segment")
    assert again.stdout.startswith("nothing to merge")
    refuses("compact", "-g", gallery, "--rows", 10)


# -- which shards may share a segment ---------------------------------------------------------------------------


def import_part(folder: Path, gallery: Path, encoder: str = "starter", **columns: list[object]) -> int:
    """Two vectors and the facts of their pictures, as a copy; how many were new."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    seed = int.from_bytes(folder.name.encode(), "big") % 2**32
    np.save(folder / "img_emb" / "img_emb_0.npy", np.random.default_rng(seed).normal(size=(2, 512)).astype(np.float16))
    facts = {"key": [f"{folder.name}/{row}" for row in range(2)], **columns}
    pq.write_table(pa.table(facts), folder / "metadata" / "metadata_0.parquet")
    done = run_eyespot("import", "clip-retrieval", folder, "-g", gallery, "-e", encoder, "--copy", "--json")
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["added"])


def test_shards_of_other_vectors_or_with_more_files_are_merged_apart(gallery: Path, tmp_path: Path) -> None:
    for shard in disk.shard_paths(gallery)[:2]:
        (shard / "local" / "sift").mkdir(parents=True)
    index_gallery(gallery, photos_of(tmp_path / "more", 100, 8), shard_rows=4, half=True)

    compact(gallery, grace=0)

    kinds = [disk.dtype_of(shard, Gallery(gallery).stem()) for shard in disk.shard_paths(gallery)]
    assert kinds == ["float32"] * 3 + ["float16"] and len(list(gallery.glob("shards/*/local/sift"))) == 2


@pytest.mark.long
def test_copies_of_imported_vectors_are_merged_and_known_as_before(tmp_path: Path) -> None:
    place = tmp_path / "gallery"
    for name in "abcde":
        import_part(tmp_path / name, place, "open_clip:ViT-H-14/metaclip_2.5b")
    rows, note = rows_of(place), disk.read_notes(disk.shard_paths(place)[0])[0]

    assert compact(place, most=4, grace=0).segments == ["00000-00001", "00002-00003"]
    assert rows_of(place) == rows and faults(place, no_progress) == []
    found = [member.digests for member in members_of(disk.shard_paths(place)[0])]
    assert f"blake2b:{found[0][f'{disk.stem_of(note.space)}.npy']}" == note.checksum and len(found[1]) == 1

    assert compact(place, grace=0).segments == ["00000-00004"]
    added = [import_part(tmp_path / name, place, "open_clip:ViT-H-14/metaclip_2.5b") for name in "af"]
    assert rows_of(place)[0][:10] == rows[0] and names(place) == ["00000-00004", "00005"] and added == [0, 2]
    assert faults(place, no_progress) == [] and len({row["id"] for row in rows_of(place)[0]}) == 12


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
    known = PictureIndex(place)
    known.begin_visits()
    known.visit(known.add_root(Root(str(photos), "folder")), Root(str(photos), "folder"))
    known.make_plan(None, False)
    known.close()
    import_part(tmp_path / "b", place)

    compact(place, grace=0)
    index_gallery(place)

    assert Gallery(place).header.rows == 8
    assert sum(map(items_table.count_items, disk.shard_paths(place))) == 8 and faults(place, no_progress) == []


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


@pytest.mark.long
def test_a_damaged_shard_stays_as_it_is_and_is_named(gallery: Path) -> None:
    place = disk.shard_path(gallery, 5) / f"{Gallery(gallery).stem()}.npy"
    flip(place, -3)

    merged = compact(gallery, most=16, grace=0)

    assert merged.segments == ["00000-00003"] and names(gallery)[1:] == [f"{number:05d}" for number in range(4, SHARDS)]
    (sentence,) = merged.notes
    assert str(place.parent) in sentence and "eyespot index --repair" in sentence
    index_gallery(gallery, repair=True)
    assert compact(gallery, grace=0).notes == [] and len(names(gallery)) == 1


@pytest.mark.parametrize("name", [*disk.ROW_STORE, segments.MEMBERS])
def test_a_repair_makes_again_what_lies_beside_a_segment(gallery: Path, name: str) -> None:
    compact(gallery, most=16, grace=0)
    rows, members = rows_of(gallery), members_of(disk.shard_paths(gallery)[0])
    place = disk.shard_paths(gallery)[0] / name
    flip(place, place.stat().st_size // 2)
    later = (place.parent / DIGESTS).stat().st_mtime_ns + 10**9
    os.utime(place.parent / DIGESTS, ns=(later, later))  # as a disk loses a bit: no date says so
    assert [fault.file for fault in faults(gallery, no_progress)] == [name]

    index_gallery(gallery, repair=True)

    assert faults(gallery, no_progress) == [] and rows_of(gallery) == rows
    counts = [(member.number, member.rows) for member in members]
    assert [(one.number, one.rows) for one in members_of(disk.shard_paths(gallery)[0])] == counts


def test_a_list_of_members_that_is_damaged_is_one_sentence_and_made_again_without_an_index(gallery: Path) -> None:
    """Links of copies then are, too: they name rows by shards of which nobody knows where they begin."""
    compact(gallery, most=16, grace=0)
    rows = rows_of(gallery)
    (disk.shard_paths(gallery)[0] / segments.MEMBERS).write_text("[]")
    with pytest.raises(EyespotError, match="damaged"):
        members_of(disk.shard_paths(gallery)[0])
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
    assert items_table.count_items(disk.shard_paths(place)[1]) == 4
