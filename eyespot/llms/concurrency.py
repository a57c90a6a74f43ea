"""Work on many items by several threads at once: results as they come, and none that was begun is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")


class LastResult(Exception):
    """What an item came to although the run ends, and why it ends."""

    def __init__(self, result: object, reason: BaseException) -> None:
        super().__init__(str(reason))
        self.result, self.reason = result, reason


class Underway(Iterator[Result], Generic[Item, Result]):
    """The results of `work` in the order in which they are ready.

    At most `workers` items are begun and not yet handed out, so whoever keeps each result before taking the next can
    lose no more than those. Until a result is there no more than `first` are begun: what the first item teaches about a
    server the others need not learn.
    An error of `work`, or one that is thrown in, is raised once all results under way are handed out; nothing more is
    begun then, and `halt` is called so that those who rest give up. `work` raises `LastResult` for an error that leaves
    a result.
    """

    def __init__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        workers: int,
        halt: Callable[[], object] = lambda: None,
        first: int = 1,
    ) -> None:
        self._items, self._work, self._workers, self._halt = iter(items), work, workers, halt
        self._pool = ThreadPoolExecutor(workers)
        self._done: SimpleQueue[Future[Result]] = SimpleQueue()
        self._open = 0  # begun and not yet handed out
        self._window = first
        self._end: BaseException | None = None

    def __next__(self) -> Result:
        self._begin()
        while self._open:
            if results := self._taken(self._done.get()):
                return results[0]
        self._pool.shutdown(wait=False)
        raise StopIteration if self._end is None else self._end

    def ready(self) -> list[Result]:
        """What else is ready now, so that whoever keeps results can keep several at once; nothing new is begun."""
        found: list[Result] = []
        while not self._done.empty():
            found += self._taken(self._done.get())
        return found

    def throw(self, reason: BaseException, *_: Any) -> Result:
        """Begin nothing more and give the next result that is under way; `reason` once there is none."""
        self._stop(reason)
        self._end = reason
        return next(self)

    def close(self) -> None:
        """Begin nothing more; results that are under way are dropped."""
        self._stop(StopIteration())

    def _begin(self) -> None:
        while self._end is None and self._open < self._window:
            try:
                item = next(self._items)
            except StopIteration:
                return
            self._pool.submit(self._work, item).add_done_callback(self._done.put)
            self._open += 1

    def _taken(self, future: Future[Result]) -> list[Result]:
        """The result of an item that is ready; nothing where it is an error, which ends the run."""
        self._open -= 1
        error = future.exception()
        if error is None:
            self._window = self._workers
            return [future.result()]
        self._stop(error.reason if isinstance(error, LastResult) else error)
        return [cast(Result, error.result)] if isinstance(error, LastResult) else []

    def _stop(self, reason: BaseException) -> None:
        self._end = self._end or reason
        self._halt()
