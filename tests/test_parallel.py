"""The parallel map gives the results of `map`, and stays within its bounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.parallel import ordered_map


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 6), st.integers(0, 9))
def test_the_results_are_those_of_map_in_the_same_order(items: list[int], workers: int, ahead: int) -> None:
    def work(item: int) -> int:
        time.sleep(item / 5000)  # so that later items are often ready first
        return -item

    assert list(ordered_map(work, items, workers, ahead)) == [-item for item in items]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 30), st.integers(2, 6), st.integers(0, 9), st.integers(0, 10))
def test_no_more_items_are_taken_than_may_be_ahead(count: int, workers: int, ahead: int, wanted: int) -> None:
    taken = 0

    def source() -> Iterator[int]:
        nonlocal taken
        for item in range(count):
            taken += 1
            yield item

    results = ordered_map(lambda item: item, source(), workers, ahead)
    for number, _ in zip(range(wanted), results, strict=False):
        assert taken <= number + max(workers, ahead)
    results.close()  # type: ignore[attr-defined]
    assert taken <= wanted + max(workers, ahead)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 9))
def test_an_error_comes_at_its_place_and_ends_the_map(place: int, workers: int, ahead: int) -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == place:
            raise ValueError(item)
        return item

    results = ordered_map(work, range(100), workers, ahead)
    assert [next(results) for _ in range(place)] == list(range(place))
    with pytest.raises(ValueError, match=str(place)):
        next(results)
    assert len(begun) <= place + 1 + max(workers, ahead)


def test_items_are_worked_on_at_the_same_time() -> None:
    both = threading.Barrier(2)  # alone an item would wait until the barrier breaks
    assert len(list(ordered_map(lambda _item: both.wait(20), range(2), 2, 0))) == 2


def test_an_executor_stays_open() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(ordered_map(str, range(3), pool, 2)) == ["0", "1", "2"]
        assert pool.submit(str, 3).result() == "3"
