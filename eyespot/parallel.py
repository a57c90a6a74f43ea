"""One parallel map: bounded, and in the order of the items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in order, `size` at a time; the last batch may be smaller."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int | Executor, ahead: int
) -> Iterator[Result]:
    """What `work` makes of each item, in the order of the items; it never starts more than `ahead` before their turn.

    `workers` is a number of threads, of which one or none works in the thread of the caller, or an executor, which
    stays open. When an item raises, or the reader stops, items that wait are cancelled and no other one starts; those
    in progress end first.
    """
    if isinstance(workers, Executor):
        yield from _ordered(work, items, workers, max(ahead, 1))
    elif workers <= 1:
        yield from map(work, items)
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from _ordered(work, items, pool, max(ahead, workers))


def _ordered(work: Callable[[Item], Result], items: Iterable[Item], pool: Executor, ahead: int) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    coming = iter(items)
    try:
        waiting.extend(pool.submit(work, item) for item in islice(coming, ahead))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(coming, 1))
    finally:
        for future in waiting:
            future.cancel()
