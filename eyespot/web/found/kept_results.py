"""The results of late that a server keeps for those who page through them, within a limit of memory."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, OrderedDict
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from numpy.typing import NDArray

from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams
from eyespot.web.found.results import RankedResult, SearchContext, searched

ID = re.compile("[0-9a-f]{24}")
KEPT = 128 << 20  # bytes that are kept for those who page
PLAIN, JUDGED = 20_000, 250  # bytes of a result without its arrays, and of each row that a judge saw


class HeldBytes:
    """How many bytes all results hold; an array that several share counts once."""

    def __init__(self) -> None:
        self.held = 0
        self._entries: dict[str, tuple[int, list[NDArray[Any]]]] = {}  # arrays stay here, lest another get its number
        self._holders: Counter[int] = Counter()

    def enter(self, name: str, plain: int, arrays: list[NDArray[Any]]) -> None:
        """A result with what it holds beside arrays, in place of what was entered for it before."""
        self.strike(name)
        self._entries[name] = plain, arrays
        self.held += plain
        for array in arrays:
            self.held += 0 if self._holders[id(array)] else array.nbytes
            self._holders[id(array)] += 1

    def strike(self, name: str) -> None:
        """A result that is not kept any more, if it is known."""
        plain, arrays = self._entries.pop(name, (0, []))
        self.held -= plain
        for array in arrays:
            self._holders[id(array)] -= 1
            if not self._holders[id(array)]:
                del self._holders[id(array)]
                self.held -= array.nbytes


class Results:
    """The searches of late; the same search over the same gallery is one result, whoever asks."""

    def __init__(self, limit: int = KEPT) -> None:
        self.kept = limit
        self._results: OrderedDict[str, RankedResult] = OrderedDict()
        self._current: dict[str, str] = {}  # of each encoder the version of the gallery that was last searched
        self._old: set[str] = set()  # those of a gallery that has been indexed since
        self._book, self._lock = HeldBytes(), Lock()
        self._flights: WeakValueDictionary[str, _SingleFlight] = WeakValueDictionary()  # of searches that run

    def __getitem__(self, id: str) -> RankedResult:
        with self._lock:
            if not ID.fullmatch(id):
                raise Problem(404, "there is no result of this name; search, and take what `run` says")
            if id not in self._results:
                raise Problem(410, "this result is not kept any more; search again")
            self._results.move_to_end(id)
            return self._results[id]

    @property
    def held(self) -> int:
        """About how many bytes all of them hold, beside what is served anyway."""
        return self._book.held

    def recent(self) -> list[RankedResult]:
        """All that are kept, the latest first."""
        with self._lock:
            return list(reversed(self._results.values()))

    def search(self, params: SearchParams, world: SearchContext) -> RankedResult:
        """The result of a search. Raises `UsageError` for one that cannot be run, `NothingFound` if nothing is left."""
        among = f"\0{world.among.version}" if world.among else ""
        among += f"\0{world.feedback}" if world.feedback else ""
        id = hashlib.sha256(f"{params.address()}\0{world.snapshot.version}{among}".encode()).hexdigest()[:24]
        with self._lock:
            # What was entered as of now may be of a gallery that has been indexed since
            encoder = world.snapshot.view.space.encoder
            if self._current.get(encoder) != world.snapshot.version:
                self._current[encoder], self._book = world.snapshot.version, HeldBytes()
                for result in self._results.values():
                    self._enter(result)
            if id in self._results:
                self._results.move_to_end(id)
                return self._results[id]
            flight = self._flights.setdefault(id, _SingleFlight())
        with flight.lock:  # whoever asks for the same meanwhile waits for the first
            with self._lock:
                if id in self._results:
                    return self._results[id]
            return self.keep(searched(id, params, world))

    def keep(self, made: RankedResult) -> RankedResult:
        """The result, kept for whoever pages through it; the one that is kept already, if there is."""
        with self._lock:
            result = self._results.setdefault(made.id, made)
            self._results.move_to_end(made.id)
            self._enter(result)
            # The longest unused go, before them those of a gallery that has been indexed since; the latest stays
            while self._book.held > self.kept and len(self._results) > 1:
                old = (id for id in self._results if id in self._old and id != made.id) if self._old else iter(())
                oldest = next(old, None) or next(iter(self._results))
                self._book.strike(oldest)
                self._old.discard(oldest)
                del self._results[oldest]
            return result

    def _enter(self, result: RankedResult) -> None:
        snapshot = result.snapshot
        old = self._current.get(snapshot.view.space.encoder, snapshot.version) != snapshot.version
        if old:
            self._old.add(result.id)
        # What goes with a result: also all that a snapshot remembers which nobody else has any more
        arrays: list[NDArray[Any]] = [result.rows, result.scores, result.vector, result.mask]
        if result.origin is not None:
            arrays += [result.origin.rows, result.origin.scores]
        live = snapshot.view.live  # served anyway
        arrays = arrays + snapshot.remembered() if old else [array for array in arrays if array is not live]
        worded = len(live) // 8 if result.options.by == "words" else 0  # the rows that hold a word, once counted
        self._book.enter(result.id, PLAIN + worded + JUDGED * len(result.judged), arrays)


class _SingleFlight:
    """Whoever has the lock runs the search."""

    def __init__(self) -> None:
        self.lock = Lock()
