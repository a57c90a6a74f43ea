"""Facts and filters of the server: as the tables say, without a copy, and only new shards are looked at again."""

from __future__ import annotations

import gc
import shutil
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery import disk, filters, items_table, row_store
from eyespot.indexes.exact import Exact
from eyespot.search.collection import Collection
from eyespot.types import Mask, NearestRows, ScanRequest, UsageError
from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web.found.facets import facets_of
from eyespot.web.found.facts import Facts
from eyespot.web.found.masks import RUNS, FactStore, FilterRun, MaskStore, mask_keys
from eyespot.web.found.scanning import MOST, Batcher, SharedIndex
from eyespot.web.found.snapshot import Snapshot
from tests.examples import examples
from tests.web.conftest import copy_gallery
from tests.wording import raises

CONDITIONS = (
    "number > 2", "number <> 3", "number IS NULL", "NOT (number > 2)", "score = score", "score > 1e300",
    "kind LIKE 'h%'", "kind ILIKE '%ß%'", "regexp_matches(kind, '^[hH]')", "lower(kind) = 'heron'", "kind IN ('', 'x')",
    "score < 0", "score IS NULL",
    "path LIKE '%a%'", "path IS NULL", "taken >= '2000-01-01'", "year(taken) = 1999", "number > 2 OR kind IS NULL",
    "CAST(number AS VARCHAR) = '3'",
)  # fmt: skip
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.none() | st.integers(-3, 6),
            "score": st.none() | st.floats(width=64),
            "kind": st.none() | st.sampled_from(["heron", "Heron", "ß", "", "x", "日本"]),
            "paths": st.lists(st.sampled_from(["a", "b/ä", ""]), max_size=2),
            "taken": st.none() | st.sampled_from(["1999-12-31", "2000-01-01", "2030-06-01"]),
        }
    ),
    min_size=1,
    max_size=12,
)


def shards_of(folder: Path, tables: list[list[dict[str, Any]]], lacking: str, by_row: bool) -> list[Path]:
    """A shard for each table; the last one lacks a column, and the first has it as text where it is a number."""
    shards = []
    for number, rows in enumerate(tables):
        shard = folder / "shards" / f"{number:05d}"
        shard.mkdir(parents=True)
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        made = {
            "id": pa.array([f"{number}-{at}" for at in range(len(rows))]),
            "number": pa.array(columns["number"], pa.int64()),
            "score": pa.array(columns["score"], pa.float64()),
            "kind": pa.array(columns["kind"], pa.string()),
            "paths": pa.array(columns["paths"], pa.list_(pa.string())),
            "taken": pa.array(columns["taken"], pa.string()).cast(pa.timestamp("s")),
        }
        if number and number == len(tables) - 1:
            del made[lacking]
        if number == 0 and lacking == "number" and len(tables) > 1:
            made["number"] = made["number"].cast(pa.string())
        items_table.write_items(shard, pa.table(made))
        if by_row and number % 2:
            row_store.write_row_store(shard)
        shards.append(shard)
    return shards


def plain_duckdb(shards: list[Path], sql: str) -> Mask:
    names = [str(shard / disk.ITEMS) for shard in shards]
    columns = "* EXCLUDE (paths), paths[1] AS path"
    table = f"SELECT {columns} FROM read_parquet(?, union_by_name = true)"
    found = duckdb.execute(f"SELECT ({sql}) IS TRUE AS hit FROM ({table})", [names]).fetchnumpy()["hit"]
    return np.asarray(found, np.bool_)


@pytest.mark.long
@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(ROWS, min_size=1, max_size=4),
    st.sampled_from(["number", "score", "kind", "taken"]),
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3),
    st.booleans(),
)
def test_a_filter_selects_what_duckdb_selects(
    tmp_path_factory: pytest.TempPathFactory, tables: Any, lacking: str, conditions: list[str], by_row: bool
) -> None:
    """Also when it is asked of one table after the other, of which some are remembered."""
    shards = shards_of(tmp_path_factory.mktemp("gallery"), tables, lacking, by_row)
    store, files = FactStore(), [shard / disk.ITEMS for shard in shards]
    facts, kinds = store.open(shards), filters.kinds_of(files)
    for sql in conditions:
        condition = filters.checked(sql, list(filters.columns_of(files)))
        try:
            wanted = plain_duckdb(shards, sql)
        except duckdb.Error:  # a text that is no number, say
            with pytest.raises(UsageError):
                store.masks.mask(facts.tables, condition, kinds)
            continue

        for count in (1, len(shards), len(shards)):
            part = store.masks.mask(facts.tables[:count], condition, kinds)
            assert part.tolist() == wanted[: len(part)].tolist()

        assert filters.mask(files, condition).tolist() == wanted.tolist()


def facts_in(folder: Path, count: int = 3) -> tuple[FactStore, Facts]:
    rows = [{"number": at, "score": 0.5, "kind": "heron", "paths": ["a"], "taken": None} for at in range(5)]
    store = FactStore()
    return store, store.open(shards_of(folder, [rows] * count, "score", by_row=True))


def masks_of(facts: Facts, store: MaskStore, sql: str) -> Mask:
    files = [table.stamp.path for table in facts.tables]
    condition = filters.checked(sql, list(filters.columns_of(files)))
    return store.mask(facts.tables, condition, filters.kinds_of(files))


def test_what_was_looked_at_is_not_read_again(tmp_path: Path) -> None:
    store, facts = facts_in(tmp_path)
    files = [table.stamp.path for table in facts.tables]
    condition, kinds = filters.checked("number > 2", ["number"]), filters.kinds_of(files)
    before = store.masks.mask(facts.tables[:2], condition, kinds)
    for file in files[:2]:
        file.unlink()

    after = store.masks.mask(facts.tables, condition, kinds)

    assert after.tolist() == [*before.tolist(), False, False, False, True, True]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=60))
def test_what_is_remembered_has_a_limit_and_the_longest_unused_goes_first(asked: list[tuple[int, int]]) -> None:
    """As of a list in order of use, whose sizes are within the limit or of the latest alone."""
    recent, used = RecentAnswers(100, lambda answer: answer[1]), dict[int, tuple[int, int]]()
    for key, size in asked:
        used[key] = used.pop(key, (key, size))
        assert recent.get(key, partial(tuple, (key, size))) == used[key]
        while sum(one[1] for one in used.values()) > 100 and len(used) > 1:
            del used[next(iter(used))]
        assert recent.values() == [*used.values()] and recent.size == sum(one[1] for one in used.values())


@pytest.fixture(scope="module")
def slow_shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slow") / "00000"
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array([f"{'a' * 40}{at}" for at in range(300_000)])}), folder / disk.ITEMS)
    return folder


SLOW, SLOWER = (
    " OR ".join(f"regexp_matches(id, '(a|aa)+{letter}$')" for letter in letters)
    for letters in ("bcdefghi", "bcdefghijklmnopqrstuvwxyz" * 4)
)


def test_who_waits_too_long_learns_how_far_it_is_and_finds_it_done_later(slow_shard: Path) -> None:
    facts, store = FactStore().open([slow_shard]), MaskStore(patience=0.01)
    with pytest.raises(Problem, match="%") as raised:
        masks_of(facts, store, SLOW)
    assert raised.value.status == 503 and raised.value.headers["Retry-After"]

    found = None
    while found is None:
        with suppress(Problem):
            found = masks_of(facts, store, SLOW)

    assert len(found) == 300_000 and not found.any()


def fill(store: MaskStore, shards: list[Path], runs: int = 2) -> list[FilterRun]:
    """Slow filters that run or wait: two of them fill both threads."""
    tables = list(FactStore().open(shards).tables)
    conditions = [filters.Condition(f"{SLOWER} OR id = '{number}'", ("id",)) for number in range(runs)]
    kinds = {"id": "VARCHAR"}
    return [store.start(mask_keys(tables, one, kinds), one, kinds) for one in conditions]


@pytest.mark.long
def test_slow_filters_hold_nobody_up(tmp_path: Path, slow_shard: Path) -> None:
    """Each of two has many tables to go through, and a third gets its turn between them."""
    slow = [shutil.copytree(slow_shard, tmp_path / "slow" / f"{number:05d}") for number in range(4)]
    _, facts = facts_in(tmp_path / "quick")
    store = MaskStore(patience=600, stretch=1)
    runs = fill(store, slow)

    masks_of(facts, store, "number > 2")

    assert not any(run.over.is_set() for run in runs)
    store.close()


def test_a_remembered_mask_is_of_one_type_however_a_column_is_spelled(tmp_path: Path) -> None:
    _, facts = facts_in(tmp_path)
    store, condition = MaskStore(), filters.Condition("typeof(\"NUMBER\") = 'BIGINT'", ("NUMBER",))
    kinds = filters.kinds_of([table.stamp.path for table in facts.tables])
    assert store.mask(facts.tables, condition, kinds).all()
    assert not store.mask(facts.tables, condition, kinds | {"number": "VARCHAR"}).any()


@pytest.mark.parametrize("rows", [0, 7])
def test_a_table_that_was_removed_or_written_anew_since_is_not_filtered(tmp_path: Path, rows: int) -> None:
    store, facts = facts_in(tmp_path)
    files = [table.stamp.path for table in facts.tables]
    condition, kinds = filters.checked("number >= 0", ["number"]), filters.kinds_of(files)
    if rows:
        items_table.write_items(
            files[1].parent, pa.table({"id": [str(at) for at in range(rows)], "number": range(rows)})
        )
    else:
        shutil.rmtree(files[1].parent)

    with raises(Problem) as raised:
        store.masks.mask(facts.tables, condition, kinds)

    assert raised.value.status == 503
    again = store.open([file.parent for file in files if file.exists()])
    assert store.masks.mask(again.tables, condition, kinds).all()


def test_filters_that_wait_have_a_limit(slow_shard: Path) -> None:
    """Each holds what it has found so far, and goes on when nobody waits for it any more."""
    store = MaskStore(patience=600)
    fill(store, [slow_shard], RUNS)
    with raises(Problem):
        fill(store, [slow_shard], RUNS + 1)
    store.close()


def test_the_end_of_a_server_does_not_wait_for_a_slow_filter(slow_shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, file_masks = Event(), filters.file_masks
    monkeypatch.setattr(filters, "file_masks", lambda *words, **more: (begun.set(), file_masks(*words, **more))[1])
    store = MaskStore()
    (run,) = fill(store, [slow_shard], 1)
    assert begun.wait(60)
    store.close()
    assert run.over.wait(60) and isinstance(run.error, Problem) and not run.found


def test_facts_stay_when_their_shard_is_merged_and_removed(tmp_path: Path) -> None:
    """And a picture that is gone is not found by its id."""
    _, facts = facts_in(tmp_path)
    live, gone = np.ones(15, np.bool_), np.arange(15) != 7
    before = facts.take([0, 7, 12])
    shutil.rmtree(tmp_path / "shards")

    assert facts.take([0, 7, 12]) == before
    assert facts.rows_by_id(["1-2", "2-2", "9-9", "", "1-2"], live).tolist() == [7, 12, -1, -1, 7]
    assert facts.rows_by_id(["1-2", "0-1"], gone).tolist() == [-1, 1]


def test_rows_come_from_decoded_groups_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "shards" / "00000"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [f"{at:06d}" for at in range(10_000)]}), folder / disk.ITEMS, row_group_size=1000)
    facts, rows = FactStore(30_000).open([folder]), [*range(0, 10_000, 500), 7, 9_999, 7]

    assert [row["id"] for row in facts.take(rows)] == [f"{at:06d}" for at in rows]


def test_a_new_snapshot_opens_and_counts_only_what_is_new(tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path, 6)
    collection, store = Collection(gallery, "starter"), FactStore()
    first, second = (Snapshot(collection, store, version) for version in "12")
    facets = facets_of(first)
    assert facets_of(second).labels == facets.labels
    assert [one is two for one, two in zip(first.tables, second.tables, strict=True)] == [True] * len(first.tables)
    assert all(len(table.made) for table in second.tables)


@pytest.mark.long
def test_an_old_snapshot_lets_go_of_its_files_at_once(tmp_path: Path) -> None:
    """Not when Python looks for circles: until then its files would count as open beside those of newer ones."""
    snapshot = Snapshot(Collection(copy_gallery(tmp_path, 6), "starter"), FactStore(), "1")
    snapshot.prepare()
    facets_of(snapshot)
    block = weakref.ref(snapshot.view.blocks[0])
    gc.collect()
    gc.disable()
    try:
        del snapshot
        assert block() is None
    finally:
        gc.enable()


# -- searches that come while a scan runs share the next one, and each gets what it would get alone ---------------


SCANNING_ROWS = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)


class Gate:
    """An exact index whose first scan waits until it is let go; it notes how many queries each scan had."""

    def __init__(self) -> None:
        self.index, self.sizes = Exact(SCANNING_ROWS), list[int]()
        self.open, self.entered = threading.Event(), threading.Event()

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        self.sizes.append(len(requests))
        self.entered.set()
        assert self.open.wait(120)
        return self.index.search_each(requests)


def asked_behind_one(gate: Gate, more: Sequence[tuple[np.ndarray, int, Any]]) -> list[Future[NearestRows]]:
    """The answers to searches that came while the scan of a first one ran."""
    shared = SharedIndex(gate, threading.RLock())
    with ThreadPoolExecutor(len(more) + 1) as pool:
        first = pool.submit(shared.search, SCANNING_ROWS[:1], 3)
        assert gate.entered.wait(120)
        answers = [pool.submit(shared.search, *one) for one in more]
        while len(shared.batcher.waiting) < len(more):
            time.sleep(0.002)
        gate.open.set()
    assert first.result().rows.tolist() == gate.index.search(SCANNING_ROWS[:1], 3).rows.tolist()
    return answers


def test_who_comes_while_a_scan_runs_shares_the_next_one() -> None:
    gate, rng = Gate(), np.random.default_rng(1)
    more = [(SCANNING_ROWS[at : at + 1], 1 + at % 7, rng.random(500) < 0.5 if at % 2 else None) for at in range(9)]
    answers = asked_behind_one(gate, more)

    assert gate.sizes == [1, 9]
    for one, answer in zip(more, answers, strict=True):
        alone, found = gate.index.search(*one), answer.result()
        assert (found.rows.tolist(), found.scores.tobytes()) == (alone.rows.tolist(), alone.scores.tobytes())


def test_what_is_wrong_with_one_search_is_told_to_that_one_alone() -> None:
    gate, broken = Gate(), np.full((1, 8), np.nan, np.float32)
    good, bad, other = asked_behind_one(
        gate, [(SCANNING_ROWS[:1], 3, None), (broken, 3, None), (SCANNING_ROWS[1:2], 2, None)]
    )

    assert good.result().rows.shape == (1, 3) and other.result().rows.shape == (1, 2)
    with raises(UsageError):
        bad.result()


def test_very_many_are_several_scans() -> None:
    gate = Gate()
    asked_behind_one(gate, [(SCANNING_ROWS[:1], 2, None)] * (MOST + 3))
    assert gate.sizes == [1, MOST, 3]


def test_a_search_of_several_queries_is_one_request_for_each() -> None:
    shared = SharedIndex(Exact(SCANNING_ROWS), threading.RLock())
    assert (
        shared.search(SCANNING_ROWS[:4], 3).rows.tolist()
        == Exact(SCANNING_ROWS).search(SCANNING_ROWS[:4], 3).rows.tolist()
    )


def test_a_scan_that_is_broken_off_leaves_nobody_waiting() -> None:
    class Broken:
        def __enter__(self) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None: ...

    batcher = Batcher(Exact(SCANNING_ROWS).search_each, Broken())
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            batcher([ScanRequest(SCANNING_ROWS[0], 1)])
