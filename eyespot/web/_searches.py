"""The searches of a server: run, reordered, narrowed and counted by what its snapshots and its ledger hold."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from eyespot.ledger.judgements import query_digest
from eyespot.search.adapted import AnyAdapter
from eyespot.search.feedback import Feedback, feedback_of
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import EyespotError, Judgement, Mask, UsageError
from eyespot.web._judges import Judges, refuse_misfit
from eyespot.web._judging import verdicts_by
from eyespot.web._ledgers import ServedLedger
from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web._search_params import SearchParams, query_of, refuse
from eyespot.web._snapshots import Snapshots
from eyespot.web.found.calibrated import CalibrationSummary, JudgeKey, known_of
from eyespot.web.found.derived import countable_of, in_judged_order, rows_by_verdict, tab_of
from eyespot.web.found.results import Countable, ListMask, RankedResult, SearchContext, mask_of, searched
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures import CacheFolder

CALIBRATIONS, LIST_MASKS = 200, 32  # that are remembered
ID = re.compile("[0-9a-f]{24}")
KEPT = 128 << 20  # bytes that are kept for those who page
PLAIN, JUDGED = 20_000, 250  # bytes of a result without its arrays, and of each row that a judge saw


def _size_of(result: RankedResult) -> int:
    """About how many bytes a result holds, beside what is served anyway."""
    live = result.snapshot.view.live
    arrays: list[NDArray[Any]] = [result.rows, result.scores, result.vector, result.mask]
    worded = len(live) // 8 if result.options.by == "words" else 0  # the rows that hold a word, once counted
    return PLAIN + worded + JUDGED * len(result.judged) + sum(one.nbytes for one in arrays if one is not live)


class Results:
    """The searches of late; the same search over the same gallery is one result, whoever asks.

    Those of the gallery as it was before the last two index runs are let go, and their snapshots with them.
    """

    def __init__(self, limit: int = KEPT) -> None:
        self.results: RecentAnswers[RankedResult] = RecentAnswers(limit, _size_of)
        self._versions: dict[str, tuple[str, str]] = {}  # of each encoder the gallery's last two versions
        self._lock = Lock()
        self._flights: WeakValueDictionary[str, Lock] = WeakValueDictionary()  # of searches that run

    def __getitem__(self, id: str) -> RankedResult:
        if not ID.fullmatch(id):
            raise Problem(404, "there is no result of this name; search, and take what `run` says")
        result = self.results.known(id)
        if result is None:
            raise Problem(410, "this result is not kept any more; search again")
        return result

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
                self.results.forget(lambda result: result.snapshot.version not in known)
            flight = self._flights.setdefault(id, Lock())
        with flight:  # whoever asks for the same meanwhile waits for the first
            return self.results.get(id, lambda: searched(id, params, world))

    def keep(self, made: RankedResult) -> RankedResult:
        """The result, kept for whoever pages through it; the one that is kept already, if there is."""
        return self.results.get(made.id, lambda: made)


class Searches:
    """All searches over one gallery; results stay for whoever pages through them. withheld: as of a snapshot."""

    def __init__(
        self,
        snapshots: Snapshots,
        ledger: ServedLedger,
        cache: CacheFolder,
        *,
        adapters: Mapping[str, AnyAdapter],
        judges: Judges,
        withheld: bool = False,
    ) -> None:
        self.snapshots, self.ledger, self.cache, self.results = snapshots, ledger, cache, Results()
        self._adapters, self._judges, self._withheld = adapters, judges, withheld
        self._calibrations: RecentAnswers[CalibrationSummary | None] = RecentAnswers(CALIBRATIONS)
        self._judged_rows: RecentAnswers[dict[str, list[int]]] = RecentAnswers(CALIBRATIONS)
        self._recorded: RecentAnswers[Feedback] = RecentAnswers(LIST_MASKS)
        self._list_masks: RecentAnswers[ListMask] = RecentAnswers(LIST_MASKS)

    def run(self, params: SearchParams, judge_key: JudgeKey | None = None) -> RankedResult:
        """The result of a search, in a judge's order or down to what is likely where that is asked for.

        `judge_key` is under which name and question somebody judges. `Problem` for words that the owner refuses.
        """
        result = self._ordered(params.whole, judge_key)
        if params.verdict is None:
            return result
        return self.results.keep(tab_of(result, params, params.verdict, self.judged_rows(result, params, judge_key)))

    def tab(self, result: RankedResult, verdict: str, judge_key: JudgeKey | None) -> RankedResult:
        """The photos of a result with this verdict, or with none; of a tab those of the whole result."""
        whole = result.origin if result.params.verdict is not None and result.origin is not None else result
        params = result.params.model_copy(update={"verdict": verdict})
        return tab_of(whole, params, verdict, self.judged_rows(whole, params, judge_key))

    def _ordered(self, params: SearchParams, judge_key: JudgeKey | None) -> RankedResult:
        refuse(params.q, self.snapshots.settings.refused)
        snapshot, adapter = self.snapshots.current(params.encoder), None
        snapshot = snapshot.withheld if self._withheld else snapshot
        if params.adapt is not None:
            if params.adapt not in self._adapters:
                there = ", ".join(self._adapters) or "none that its owner allows"
                raise UsageError(f"no adapter {params.adapt!r} in this gallery; there are: {there}")
            adapter = self._adapters[params.adapt]
            refuse_misfit(params.adapt, adapter, snapshot.view.space)
        among = self.list_mask(params.list, snapshot)
        feedback = self._feedback(params, judge_key)
        context = SearchContext(snapshot, self.cache.uploads, adapter, among, feedback)
        plain = self.results.search(params.plain, context)
        if params.rerank is not None:
            if params.likely is not None:
                raise UsageError("what is likely is known of the search's own order; leave out rerank or likely")
            return self.results.keep(in_judged_order(plain, params, self.judge(params.rerank)))
        if params.likely is None:
            return plain
        known = self.calibration(plain, judge_key)
        if known is None:
            raise UsageError("nobody knows how probable these hits are; judge about 30 photos spread over them first")
        most = known.calibration.likely(params.likely).hits
        return self.results.keep(plain.derived(params, f"{most}", most=most))

    def _feedback(self, params: SearchParams, judge_key: JudgeKey | None) -> Feedback | None:
        """What is recorded for a search, where it is to be moved by that; `UsageError` for who cannot judge."""
        if params.feedback is None:
            return None
        query = query_of(params, self.cache.uploads)
        if judge_key is None or query is None:
            raise UsageError("verdicts are on words or a picture, by whoever may judge; search without feedback")
        mine = judge_key[0] if params.feedback == "mine" else None  # who may have said nothing so far
        whose = mine or (None if params.feedback == "everybody" else params.feedback)
        tables, digest = self.ledger.readable, query_digest(query)
        key = (digest, whose, mine, tables.judgements.last(digest), tables.clicks.latest(digest))
        # Of 25,000 verdicts this takes 0.4 s
        return self._recorded.get(key, lambda: feedback_of(tables.judgements, tables.clicks, query, whose, mine))

    def judged_rows(
        self, result: RankedResult, params: SearchParams, judge_key: JudgeKey | None
    ) -> dict[str, list[int]]:
        """The rows of a result by somebody's verdicts, or by everybody's; `UsageError` where there can be none."""
        query = result.query
        if judge_key is None or query is None:
            raise UsageError("verdicts are on words or a picture, by whoever may judge; search without a verdict")
        ledger = self.ledger.readable.judgements
        key = (result.id, judge_key, params.whose, ledger.last(query_digest(query)))
        return self._judged_rows.get(
            key, lambda: rows_by_verdict(result, verdicts_by(ledger, query, judge_key, params.whose))
        )

    def judge(self, name: str) -> JudgeRerank:
        """A judge that the owner allowed as a second stage, with the ledger; `UsageError` if there is none."""
        return JudgeRerank(self._judges[name].judge, self.ledger.readable.judgements, self._judges.depth)

    def calibration(self, result: RankedResult, judge_key: JudgeKey | None) -> CalibrationSummary | None:
        """What the verdicts in the ledger say of a search's own order; None where there are not enough.

        None, too, where verdicts moved that order: they say nothing of photos that stand where they put them.
        """
        result = result.root
        if result.params.feedback is not None or not self.ledger.path.exists():
            return None
        with suppress(EyespotError):  # whoever judges learns that the ledger cannot be opened
            ledger = self.ledger.readable.judgements
            counts = [] if result.query is None else ledger.judge_counts(query_digest(result.query))
            key = (result.id, judge_key, tuple(counts))
            return self._calibrations.get(key, lambda: known_of(result, ledger, counts, judge_key) if counts else None)
        return None

    # -- rows -----------------------------------------------------------------------------------------------

    def list_mask(self, name: str | None, snapshot: Snapshot) -> ListMask | None:
        """The rows of a list; None where none is named. `NothingFound` if no list has the name."""
        if name is None:
            return None
        lists = self.ledger.readable.lists
        one = lists.find(name)
        key = f"{one.id} {one.changed} {snapshot.version}"

        def make() -> ListMask:
            mask = np.zeros(len(snapshot.view.live), bool)  # (rows,)
            rows = snapshot.rows_by_id(lists.photos(one.id))
            mask[rows[rows >= 0]] = True
            return ListMask(mask, key)

        return self._list_masks.get(key, make)

    def mask(self, params: SearchParams, snapshot: Snapshot) -> Mask:
        """The rows that pass the filter of a search and are on its list, (rows,)."""
        mask, among = mask_of(snapshot, params), self.list_mask(params.list, snapshot)
        return mask if among is None else mask & among.mask

    def countable(self, params: SearchParams, judge_key: JudgeKey | None = None) -> Countable:
        """What a search, or its tab, could show without any filter: all photos where none runs."""
        snapshot = self.snapshots.current(params.encoder)
        live = snapshot.view.live
        found = Countable(np.zeros_like(live) if params.something else live, False)
        for search in (params.unmoved, params.unmoved.unfiltered) if params.something else ():
            with suppress(EyespotError, Problem):  # where the filters leave nothing, the search without them counts
                result, judgements = self.run(search), dict[str, Judgement]()
                if params.verdict is not None and judge_key is not None and result.query is not None:
                    ledger = self.ledger.readable.judgements
                    judgements = verdicts_by(ledger, result.query, judge_key, params.whose)
                found = countable_of(result, params.verdict, judgements)
                break
        among = self.list_mask(params.list, snapshot)
        return found if among is None else found._replace(rows=found.rows & among.mask)
