"""Frozen results take no more memory than they are given, and those of a gallery as it was go first."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyespot.search.collection import Collection
from eyespot.types import Index, Mask, NearestRows, NothingFound, Vectors
from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams
from eyespot.web._searches import Results
from eyespot.web.found.masks import FactStore
from eyespot.web.found.results import JudgedPlace, RankedResult, SearchContext
from eyespot.web.found.snapshot import Snapshot
from tests.web.conftest import copy_gallery
from tests.wording import raises

MIB = 1 << 20


def world_of(gallery: Path, version: str) -> SearchContext:
    collection = Collection(gallery, "starter")
    snapshot = Snapshot(collection, FactStore(), version)
    snapshot.prepare()
    return SearchContext(snapshot, gallery / "pictures")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SearchContext:
    """Four photos."""
    return world_of(copy_gallery(tmp_path_factory.mktemp("results"), 4), "1")


def one(world: SearchContext) -> RankedResult:
    return Results().search(SearchParams(q="stripes"), world)


def kept_of(frozen: RankedResult, masks: list[Mask], limit: int) -> list[str]:
    """Which of as many results, named by their numbers, a store of so many bytes still has."""
    results = Results(limit)
    for number, mask in enumerate(masks):
        results.keep(replace(frozen, id=str(number), mask=mask))
    return [frozen.id for frozen in results.results.values()[::-1]]


def test_masks_count_in_full_and_the_latest_is_kept_however_large_it_is(world: SearchContext) -> None:
    """Of masks of a million rows, one MiB each, sixteen MiB hold fifteen: the rest is the results themselves."""
    frozen = one(world)
    masks = [np.ones(MIB, bool) for _ in range(40)]
    assert kept_of(frozen, masks, 16 * MIB) == [str(number) for number in range(39, 24, -1)]
    assert kept_of(frozen, masks[:3], 1000) == ["2"]


def test_what_a_judge_said_counts(world: SearchContext) -> None:
    """A thousand rows of 250 bytes beside the result's own twenty thousand: fourteen of them take 3.8 MB."""
    results, frozen = Results(4_000_000), one(world)
    for number in range(100):
        results.keep(replace(frozen, id=str(number), judged={row: JudgedPlace(row, 0.5) for row in range(1000)}))
    assert len(results.results.values()) == 14


@pytest.mark.parametrize(("by", "rows"), [("look", 4), ("words", 2)])
def test_counting_filters_leaves_no_array_of_all_rows_with_a_result(world: SearchContext, by: str, rows: int) -> None:
    """A server that remembers thousands of searches would otherwise grow by the gallery's length with each."""
    frozen = Results().search(SearchParams(q="heron", by=by), world)
    shared = [frozen.mask, frozen.rows, frozen.scores, frozen.vector, frozen.holding]

    countable = frozen.countable

    remembered = [value for value in vars(frozen).values() if isinstance(value, np.ndarray)]
    fresh = [value for value in remembered if not any(value is known for known in shared)]
    assert sum(value.nbytes for value in fresh) <= (len(countable.rows) + 7) // 8
    assert int(countable.rows.sum()) == rows


def test_results_of_a_gallery_as_it_was_stay_until_it_is_indexed_once_more(tmp_path: Path) -> None:
    """So that nobody who pages loses the place, and no more than one old snapshot is held."""
    gallery, results = copy_gallery(tmp_path, 4), Results()
    worlds = [world_of(gallery, version) for version in "123"]
    found = [results.search(SearchParams(q="stripes"), world) for world in worlds[:2]]
    assert [results[one.id] is one for one in found] == [True, True]

    found.append(results.search(SearchParams(q="a disc"), worlds[2]))

    assert {one.id for one in results.results.values()} == {one.id for one in found[1:]}
    with raises(Problem):
        results[found[0].id]


class CountedIndex:
    """An index that knows how often it was searched, and takes its time."""

    exact = True

    def __init__(self, index: Index) -> None:
        self.index, self.searches = index, 0

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """As the index itself."""
        self.searches += 1
        time.sleep(0.05)
        return self.index.search(queries, k, mask)


def test_the_same_search_by_several_people_at_once_is_one(tmp_path: Path) -> None:
    collection = Collection(copy_gallery(tmp_path, 4), "starter")
    counted = collection.index = CountedIndex(collection.index)
    snapshot = Snapshot(collection, FactStore(), "1")
    results, world = Results(), SearchContext(snapshot, tmp_path / "pictures")
    together = threading.Barrier(6)

    def search(words: str) -> RankedResult:
        together.wait()
        return results.search(SearchParams(q=words), world)

    with ThreadPoolExecutor(6) as people:
        found = list(people.map(search, ["stripes", "stripes", "stripes", "dots", "stripes", "stripes"]))

    assert counted.searches == 2 and len({id(frozen) for frozen in found}) == 2


def test_who_comes_after_a_search_that_failed_is_told_the_same(world: SearchContext) -> None:
    results = Results()
    for _ in range(2):
        with raises(NothingFound):
            results.search(SearchParams(q="zyzzyva", by="words"), world)
