"""The results of late that a server keeps for those who page through them, within a limit of memory."""

from __future__ import annotations

import hashlib
import re
from threading import Lock
from weakref import WeakValueDictionary

from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web._search_params import SearchParams
from eyespot.web.found.results import RankedResult, SearchContext, searched

ID = re.compile("[0-9a-f]{24}")
KEPT = 128 << 20  # bytes that are kept for those who page
PLAIN, JUDGED = 20_000, 250  # bytes of a result without its arrays, and of each row that a judge saw


def _size_of(result: RankedResult) -> int:
    """About how many bytes a result holds, beside what is served anyway."""
    live = result.snapshot.view.live
    arrays = [result.rows, result.scores, result.vector, result.mask]
    worded = len(live) // 8 if result.options.by == "words" else 0  # the rows that hold a word, once counted
    return PLAIN + worded + JUDGED * len(result.judged) + sum(one.nbytes for one in arrays if one is not live)


class Results:
    """The searches of late; the same search over the same gallery is one result, whoever asks.

    Those of the gallery as it was before the last two index runs are let go, and their snapshots with them.
    """

    def __init__(self, limit: int = KEPT) -> None:
        self._results: RecentAnswers[RankedResult] = RecentAnswers(limit, _size_of)
        self._versions: dict[str, tuple[str, str]] = {}  # of each encoder the gallery's last two versions
        self._lock = Lock()
        self._flights: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # of searches that run

    def __getitem__(self, id: str) -> RankedResult:
        if not ID.fullmatch(id):
            raise Problem(404, "there is no result of this name; search, and take what `run` says")
        result = self._results.known(id)
        if result is None:
            raise Problem(410, "this result is not kept any more; search again")
        return result

    def recent(self) -> list[RankedResult]:
        """All that are kept, the latest first."""
        return self._results.values()[::-1]

    def search(self, params: SearchParams, world: SearchContext) -> RankedResult:
        """The result of a search. Raises `UsageError` for one that cannot be run, `NothingFound` if nothing is left."""
        among = f"\0{world.among.version}" if world.among else ""
        among += f"\0{world.feedback}" if world.feedback else ""
        version, encoder = world.snapshot.version, world.snapshot.view.space.encoder
        id = hashlib.sha256(f"{params.address()}\0{version}{among}".encode()).hexdigest()[:24]
        with self._lock:
            last, _ = self._versions.get(encoder, ("", ""))
            if last != version:
                self._versions[encoder] = version, last
                known = {one for pair in self._versions.values() for one in pair}
                self._results.forget(lambda result: result.snapshot.version not in known)
            flight = self._flights.setdefault(id, Lock())
        with flight:  # whoever asks for the same meanwhile waits for the first
            return self._results.get(id, lambda: searched(id, params, world))

    def keep(self, made: RankedResult) -> RankedResult:
        """The result, kept for whoever pages through it; the one that is kept already, if there is."""
        return self._results.get(made.id, lambda: made)
