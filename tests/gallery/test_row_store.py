"""Facts of single rows and rows by id, from the files beside a table: the same as the table says, or not used."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery import disk, items_table, row_store
from eyespot.gallery.remote import fetch, publish
from eyespot.gallery.row_store import IdIndex, find_ids, find_rows, numbers_of, numbers_of_column, take_rows
from eyespot.gallery.segments import compact
from eyespot.gallery.view import Gallery
from tests.examples import examples
from tests.gallery.test_segments import gallery as gallery  # 32 photos in eight shards


def to_seconds(time: datetime) -> datetime:
    return time.replace(microsecond=0)


rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(st.characters(codec="utf-8"), max_size=20),
            "paths": st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=3),
            "taken": st.none() | st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(to_seconds),
            "latitude": st.none() | st.floats(),
            "kind": st.none() | st.sampled_from(["heron", "Heron", "ß", ""]),
            "title": st.none() | st.text(st.characters(codec="utf-8"), max_size=12),
            "number": st.none() | st.integers(-(2**63), 2**63 - 1),
            "live": st.booleans(),
        }
    ),
    min_size=1,
    max_size=40,
)  # fmt: skip
SCHEMA = pa.schema(
    {
        "id": pa.string(), "paths": pa.list_(pa.string()), "taken": pa.timestamp("s"), "latitude": pa.float64(),
        "kind": pa.string(), "title": pa.string(), "number": pa.int64(), "live": pa.bool_(),
    }
)  # fmt: skip


def shard_of(folder: Path, table: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    items_table.write_items(folder, pa.Table.from_pylist(table, schema=SCHEMA))
    row_store.write_row_store(folder)
    return folder


def table_of(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": f"{number:032x}", "kind": "heron", "number": number} for number in range(first, first + count)]


@settings(max_examples=examples(60), deadline=None)
@given(rows, st.data())
def test_rows_are_those_of_the_table(
    tmp_path_factory: pytest.TempPathFactory, table: list[dict[str, Any]], data: st.DataObject
) -> None:
    shard = shard_of(tmp_path_factory.mktemp("shard"), table)
    wanted = data.draw(st.lists(st.integers(0, len(table) - 1), max_size=10))

    batch = row_store.open_rows(shard)

    assert batch is not None
    assert repr(take_rows(shard, wanted)) == repr(items_table.read_rows(shard, wanted).to_pylist())


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text(max_size=12)), st.lists(st.text(max_size=12)))
def test_an_id_stands_for_its_first_row(ids: list[str], others: list[str]) -> None:
    """Also where ids repeat, and of ids that are no text."""
    known = [one for one in ids if one.isprintable() or not any("\ud800" <= letter <= "\udfff" for letter in one)]
    names = pa.array(known, pa.string())

    found = find_ids(names, IdIndex.of(names), [*known, *others]).tolist()

    assert found == [known.index(one) if one in known else -1 for one in [*known, *others]]


def test_ids_with_one_number_are_told_apart() -> None:
    names, index = pa.array(["a", "b", "c"]), IdIndex(np.repeat(numbers_of(["a"]), 3), np.arange(3, dtype=np.uint32))

    assert find_ids(names, index, ["a"]).tolist() == [0]
    assert find_ids(pa.array(["b", "c", "a"]), index, ["a", "d"]).tolist() == [2, -1]


@given(st.lists(st.text(max_size=40)))
def test_numbers_of_ids_stand_on_disk_and_never_change(ids: list[str]) -> None:
    """Against splitmix64 in whole numbers, as its authors give it."""
    assert numbers_of(ids).tolist() == [plain_number(id.encode("utf-8", "surrogatepass")) for id in ids]
    known = [id for id in ids if not any("\ud800" <= letter <= "\udfff" for letter in id)]
    column = pa.array(["before", *known], pa.string())[1:]
    assert numbers_of_column(column).tolist() == numbers_of(known).tolist()


def plain_number(text: bytes) -> int:
    state = len(text)
    for at in range(0, len(text), 8):
        state = (state ^ int.from_bytes(text[at : at + 8].ljust(8, b"\0"), "little")) + 0x9E3779B97F4A7C15
        state %= 2**64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        state ^= state >> 31
    return state


def test_a_table_that_is_written_anew_is_not_answered_for(tmp_path: Path) -> None:
    shard = shard_of(tmp_path, table_of(0, 5))
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path, kept)

    items_table.write_items(shard, pa.Table.from_pylist(table_of(10, 5), schema=SCHEMA))
    assert not (shard / row_store.ROWS).exists()
    for name in disk.ROW_STORE:
        shutil.copy(kept / name, shard / name)

    assert row_store.open_rows(shard) is None and row_store.open_ids(shard) is None
    assert take_rows(shard, [0])[0]["number"] == 10 and find_rows(shard, [f"{12:032x}"]).tolist() == [2]


@pytest.mark.parametrize("name", disk.ROW_STORE)
@pytest.mark.parametrize("at", [0.0, 0.5, 0.999])
def test_a_damaged_file_is_not_used(tmp_path: Path, name: str, at: float) -> None:
    shard = shard_of(tmp_path, table_of(0, 300))
    place = shard / name
    with place.open("r+b") as file:
        file.seek(int(at * place.stat().st_size))
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 255]))

    assert take_rows(shard, [7])[0]["number"] == 7 and find_rows(shard, [f"{250:032x}"]).tolist() == [250]


@pytest.mark.long
def test_shards_have_them_and_whoever_fetches_them_and_older_ones_get_them(gallery: Path, tmp_path: Path) -> None:
    assert len(list(gallery.glob("shards/*/items.arrow"))) == len(disk.shard_paths(gallery))
    before = facts_of(gallery)

    for _ in range(2):
        compact(gallery, grace=0)
        assert {place.name for place in gallery.glob("shards/*/items*")} == {disk.ITEMS, *disk.ROW_STORE}
        assert facts_of(gallery) == before
        publish(gallery, (tmp_path / "shared").as_uri())
        (shard,) = disk.shard_paths(fetch((tmp_path / "shared").as_uri(), tmp_path / "copy"))
        assert row_store.open_rows(shard) is not None and facts_of(tmp_path / "copy") == before
        for place in gallery.glob("shards/*/items.*arrow"):
            place.unlink()
        assert facts_of(gallery) == before


@pytest.mark.parametrize("segments", [False, True])
def test_rows_are_found_by_their_ids_in_any_order(gallery: Path, segments: bool) -> None:
    if segments:
        compact(gallery, grace=0)
    view = Gallery(gallery).view(Gallery(gallery).stem())
    rows = [5, 31, 0, 17]
    ids = [str(items["id"]) for items in Gallery(gallery).view(view.stem).facts(rows)]

    assert view.rows_by_id([*ids, "none", ids[1]]).tolist() == [*rows, -1, 31]
    assert [items["id"] for items in view.facts(rows)] == ids
    assert view.rows_by_id([ids[2], "none", *ids]).tolist() == [0, -1, *rows]
    for shard in disk.shard_paths(gallery):
        shutil.rmtree(shard)
    assert view.rows_by_id(ids).tolist() == rows


def facts_of(gallery: Path) -> list[dict[str, Any]]:
    """Of all rows, each found by its id."""
    known = Gallery(gallery)
    view = known.view(known.stem())
    found = view.facts(range(int(view.starts[-1])))
    assert known.view(view.stem).rows_of([row["id"] for row in found]) == list(range(len(found)))
    return found


@settings(max_examples=examples(60), deadline=None)
@given(rows, st.data())
def test_what_is_read_of_rows_beforehand_is_their_bytes(table: list[dict[str, Any]], data: st.DataObject) -> None:
    """Within the file, and of each text exactly its bytes."""
    wanted = np.array(data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=9)), np.int64)
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_store, "prefetch_bytes", lambda first, stop: seen.append((first, stop)))
        batch = row_store.open_rows(shard_of(Path(folder) / "shard", table))
        assert batch is not None
        row_store.prefetch_facts(batch, wanted)
        spans = [span for first, stop in seen for span in zip(first.tolist(), stop.tolist(), strict=True)]

        buffers = [one for column in batch.columns for one in column.buffers() if one is not None]
        known = [(one.address, one.address + one.size) for one in buffers]
        assert all(any(start <= first <= stop <= end for start, end in known) for first, stop in spans)
        if not hasattr(batch.column("title"), "dictionary"):
            found = {ctypes.string_at(first, stop - first) for first, stop in spans}
            assert found >= {title.encode() for row in wanted if (title := table[row]["title"])}
        del batch, buffers
