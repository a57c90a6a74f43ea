"""What all pages share: the gallery opened for reading, its ledger, its small pictures, and what is being looked at."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock, Thread
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Request

from eyespot.gallery import disk
from eyespot.gallery.view import Gallery
from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.ledger.photo_lists import PhotoLists
from eyespot.search.feedback import Feedback
from eyespot.search.recorded import feedback_of
from eyespot.types import EyespotError, Judgement, Mask, Query, UsageError
from eyespot.web._allowed import open_adapters, open_judges, refuse_misfit
from eyespot.web._indexer import Indexer
from eyespot.web._jobs import Jobs
from eyespot.web._judging import verdicts_by, verdicts_on
from eyespot.web._problems import Problem
from eyespot.web._remembering import Remembering
from eyespot.web._request_metrics import RequestMetrics
from eyespot.web._search_params import SearchParams, query_of, refuse
from eyespot.web._settings import ServerSettings
from eyespot.web._tier import SearchTier
from eyespot.web.found.calibrated import CalibrationSummary, Own, known_of, voices_on
from eyespot.web.found.counts import Countable, mask_of
from eyespot.web.found.facets import facets_of
from eyespot.web.found.fact_store import FactStore
from eyespot.web.found.judged import LedgerJudge, in_its_order
from eyespot.web.found.open_files import TooManyFilesError, refuse_too_many
from eyespot.web.found.results import ListMask, RankedResult, Results, SearchContext
from eyespot.web.found.scanning import ScanCounts
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.tabs import rows_by_verdict, tab_of
from eyespot.web.found.telling import telling_first
from eyespot.web.pictures.thumbnails import Thumbnails

CALIBRATIONS, LIST_MASKS = 200, 32  # that are remembered
LOADING = 30  # seconds that the end waits for what is being loaded


class AppState:
    """One gallery being served."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.gallery = Gallery(settings.gallery)
        self.gallery.stem(settings.encoder)  # an encoder that is not there is told now and not to every visitor
        self.counts, self.results, self.scans = RequestMetrics(), Results(), ScanCounts()
        self.tier = SearchTier(settings)
        self.adapters = open_adapters(settings.adapters, self.gallery)
        self.judges, self.jobs = open_judges(settings.judging), Jobs()
        self.indexer = Indexer(settings.gallery)
        self.facts = FactStore()
        self._calibrations: OrderedDict[Any, CalibrationSummary | None] = OrderedDict()
        self.ready, self.unready = False, "the gallery is still being opened; come again in a moment"
        self._snapshots: dict[str, Snapshot] = {}
        self._lists: dict[Path, PhotoLists] = {}
        self._clicks: dict[Path, Clicks] = {}
        self._judged_rows: dict[Any, dict[str, list[int]]] = {}
        self._recorded: dict[Any, Feedback] = {}
        self._list_masks: dict[str, ListMask] = {}
        self.history = Remembering(settings.history) if settings.keep_history else None
        self._preparing: Thread | None = None
        self._opening, self._copying, self._copied = Lock(), Lock(), ExitStack()

    @cached_property
    def cache_folder(self) -> Path:
        """A folder for thumbnails and uploads; a passing one where the gallery may not be written."""
        place = self.settings.cache_folder
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                return place
        self._temporary = tempfile.TemporaryDirectory(prefix="eyespot-web-")
        return Path(self._temporary.name)

    @property
    def pictures(self) -> Path:
        """Where uploaded pictures lie."""
        return self.cache_folder / "pictures"

    @cached_property
    def thumbnails(self) -> Thumbnails:
        """The small pictures."""
        return Thumbnails(self.cache_folder / "thumbnails")

    @cached_property
    def judgements(self) -> Judgements:
        """The judgements in the gallery's ledger; `EyespotError` if it cannot be written."""
        with self._opening:
            return Judgements(self.settings.ledger)

    @property
    def readable_judgements(self) -> Judgements:
        """The same for who only reads; where the ledger cannot be written, a copy of it as it was at the first look."""
        try:
            return self.judgements
        except EyespotError as error:
            with self._copying, suppress(EyespotError, OSError):
                return self._copy
            raise error

    @cached_property
    def _copy(self) -> Judgements:
        ledger = self.settings.ledger
        with ExitStack() as opened:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="eyespot-ledger-")))
            # What a killed server wrote last still stands in the log beside the ledger.
            for source in (ledger, ledger.with_name(f"{ledger.name}-wal")):
                if source.is_file():
                    shutil.copyfile(source, folder / source.name)
            made = opened.enter_context(Judgements(folder / ledger.name))
            self._copied = opened.pop_all()
        return made

    @property
    def lists(self) -> PhotoLists:
        """The named lists, for whoever changes them; `EyespotError` if the ledger cannot be written."""
        return self._lists_at(self.judgements.path)

    @property
    def readable_lists(self) -> PhotoLists:
        """The same for whoever only reads."""
        return self._lists_at(self.readable_judgements.path)

    def _lists_at(self, path: Path) -> PhotoLists:
        with self._opening:
            if path not in self._lists:
                self._lists[path] = PhotoLists(path)
            return self._lists[path]

    @property
    def encoders(self) -> list[str]:
        """The encoders whose spaces can be searched, the one that is taken unasked first."""
        chosen = self.settings.encoder or self.gallery.encoders[0]
        return sorted(self.gallery.encoders, key=lambda name: name != chosen)

    def snapshot(self, encoder: str | None = None) -> Snapshot:
        """The gallery as it is now in one encoder's space; `UsageError` if it has none of that encoder.

        It is opened anew when somebody has indexed; who holds the old one keeps it. Where its files cannot be opened
        beside those of the old one, that stays, and its notes say so.
        """
        name = encoder or self.encoders[0]
        gallery = self.settings.gallery
        # What changes whenever something was indexed
        names = ("items.parquet", disk.ROW_STORE[0])
        places = [shard / name for shard in disk.shard_paths(gallery) for name in names]
        version = _times([gallery / "gallery.toml", gallery / "names.sqlite", *places])
        with self._opening:
            known = self._snapshots.get(name)
            if known is not None and f"{name} {version}" in (known.version, known.missed):
                return known
            try:
                self._snapshots[name] = self._opened(name, f"{name} {version}", known)
            except TooManyFilesError as error:
                if known is None:
                    raise
                known.missed, known.why_missed = f"{name} {version}", str(error)
            return self._snapshots[name]

    def _opened(self, name: str, version: str, known: Snapshot | None) -> Snapshot:
        collection = self.tier.collection(name)
        refuse_too_many(collection.view)
        if known is not None and known.view.space == collection.view.space:
            collection.encoder = known.collection.encoder  # loading a large one again would take minutes
        made = Snapshot(collection, self.facts, version, self.scans)
        made.prepare()
        facets_of(made)
        _remove_copies(self.cache_folder / "facts")
        self.gallery = collection.gallery
        return made

    # -- searches -------------------------------------------------------------------------------------------

    def search(self, params: SearchParams, own: Own | None = None) -> RankedResult:
        """The result of a search, frozen, in a judge's order or down to what is likely where that is asked for.

        `own` is under which name and question somebody judges. `Problem` for words that the owner refuses.
        """
        frozen = self._ordered(params.whole, own)
        if params.verdict is None:
            return frozen
        return self.results.keep(tab_of(frozen, params, params.verdict, self.judged_rows(frozen, params, own)))

    def tab(self, frozen: RankedResult, verdict: str, own: Own | None) -> RankedResult:
        """The photos of a result with this verdict, or with none; of a tab those of the whole result."""
        whole = frozen.origin if frozen.params.verdict is not None and frozen.origin is not None else frozen
        params = frozen.params.model_copy(update={"verdict": verdict})
        return tab_of(whole, params, verdict, self.judged_rows(whole, params, own))

    def _ordered(self, params: SearchParams, own: Own | None) -> RankedResult:
        refuse(params.q, self.settings.refused)
        snapshot = self.snapshot(params.encoder)
        adapter = None
        if params.adapt is not None:
            if params.adapt not in self.adapters:
                there = ", ".join(self.adapters) or "none that its owner allows"
                raise UsageError(f"no adapter {params.adapt!r} in this gallery; there are: {there}")
            adapter = self.adapters[params.adapt]
            refuse_misfit(params.adapt, adapter, snapshot.view.space)
        among = self.list_mask(params.list, snapshot)
        feedback = self.feedback(params, own)
        plain = self.results.freeze(params.plain, SearchContext(snapshot, self.pictures, adapter, among, feedback))
        if params.rerank is not None:
            if params.likely is not None:
                raise UsageError("what is likely is known of the search's own order; leave out rerank or likely")
            return self.results.keep(in_its_order(plain, params, self.judge(params.rerank)))
        if params.first is not None:
            return self.results.keep(telling_first(plain, params, self.judged_rows(plain, params, own)))
        if params.likely is None:
            return plain
        known = self.calibration(plain, own)
        if known is None:
            raise UsageError("nobody knows how probable these hits are; judge about 30 photos spread over them first")
        return self.results.keep(plain.cut(params, known.calibration.likely(params.likely).hits))

    def feedback(self, params: SearchParams, own: Own | None) -> Feedback | None:
        """What is recorded for a search, where it is to be moved by that; `UsageError` for who cannot judge."""
        if params.feedback is None:
            return None
        query = query_of(params, self.pictures)
        if own is None or query is None:
            raise UsageError("verdicts are on words or a picture, by whoever may judge; search without feedback")
        if params.feedback == "mine":
            return self.recorded(query, own[0], own[0])
        return self.recorded(query, None if params.feedback == "everybody" else params.feedback)

    def recorded(self, query: Query, whose: str | None, unknown: str | None = None) -> Feedback:
        """Verdicts and clicks on a query, of all people or of one; those of `unknown` may be none."""
        ledger, digest = self.readable_judgements, query_digest(query)
        clicks = self._clicks_at(ledger.path)
        key = (digest, whose, unknown, ledger.last(digest), clicks.latest(digest))
        known = self._recorded.get(key)
        if known is None:  # of 25,000 verdicts this takes 0.4 s, and every page of a search shows how many there are
            known = self._recorded[key] = feedback_of(ledger, clicks, query, whose, unknown)
            while len(self._recorded) > LIST_MASKS:
                self._recorded.pop(next(iter(self._recorded)), None)
        return known

    @property
    def clicks(self) -> Clicks:
        """The clicks in the ledger, for whoever clicks; `EyespotError` if it cannot be written."""
        return self._clicks_at(self.judgements.path)

    def _clicks_at(self, path: Path) -> Clicks:
        with self._opening:
            if path not in self._clicks:
                self._clicks[path] = Clicks(path)
            return self._clicks[path]

    def countable(self, params: SearchParams) -> Countable:
        """What a search could show without any filter, for the counts of its filters; all photos where none runs."""
        snapshot = self.snapshot(params.encoder)
        found = Countable(snapshot.view.live, params.something and params.grouped is not False)
        with suppress(EyespotError, Problem):
            if params.something:
                found = self.search(params.unmoved).countable
        among = self.list_mask(params.list, snapshot)
        return found if among is None else found._replace(rows=found.rows & among.mask)

    def judged_rows(self, frozen: RankedResult, params: SearchParams, own: Own | None) -> dict[str, list[int]]:
        """The rows of a result by somebody's verdicts, or by everybody's; `UsageError` where there can be none."""
        if own is None or frozen.query is None:
            raise UsageError("verdicts are on words or a picture, by whoever may judge; search without a verdict")
        ledger = self.readable_judgements
        key = (frozen.id, own, params.whose, ledger.last(query_digest(frozen.query)))
        if key not in self._judged_rows:
            verdicts = verdicts_by(ledger, frozen.query, own, params.whose)
            self._judged_rows[key] = rows_by_verdict(frozen, verdicts)
            while len(self._judged_rows) > CALIBRATIONS:
                self._judged_rows.pop(next(iter(self._judged_rows)), None)
        return self._judged_rows[key]

    def list_mask(self, name: str | None, snapshot: Snapshot) -> ListMask | None:
        """The rows of a list; None where none is named. `NothingFound` if no list has the name."""
        if name is None:
            return None
        lists = self.readable_lists
        one = lists.find(name)
        key = f"{one.id} {one.changed} {snapshot.version}"
        if key not in self._list_masks:
            mask = np.zeros(len(snapshot.view.live), bool)  # (rows,)
            rows = snapshot.rows_by_id(lists.photos(one.id))
            mask[rows[rows >= 0]] = True
            self._list_masks[key] = ListMask(mask, key)
            while len(self._list_masks) > LIST_MASKS:
                self._list_masks.pop(next(iter(self._list_masks)), None)
        return self._list_masks[key]

    def mask(self, params: SearchParams, snapshot: Snapshot) -> Mask:
        """The rows that pass the filter of a search and are on its list, (rows,)."""
        mask, among = mask_of(snapshot, params), self.list_mask(params.list, snapshot)
        return mask if among is None else mask & among.mask

    def judge(self, name: str) -> LedgerJudge:
        """A judge that the owner allowed, with the ledger; `UsageError` if there is none of that name."""
        return LedgerJudge(self.judges[name].judge, self.readable_judgements, self.judges.depth)

    def calibration(self, frozen: RankedResult, own: Own | None) -> CalibrationSummary | None:
        """What the verdicts in the ledger say of a search's own order; None where there are not enough.

        None, too, where verdicts moved that order: they say nothing of photos that stand where they put them.
        """
        frozen = frozen.root
        if frozen.params.feedback is not None:
            return None
        with suppress(EyespotError):  # a ledger that cannot be opened is told to whoever judges
            voices = voices_on(frozen, self.readable_judgements) if self.settings.ledger.exists() else []
            key = (frozen.id, own, tuple(voices))
            if key not in self._calibrations:
                self._calibrations[key] = known_of(frozen, self.readable_judgements, voices, own) if voices else None
                while len(self._calibrations) > CALIBRATIONS:
                    self._calibrations.popitem(last=False)
            return self._calibrations[key]
        return None

    def verdicts(self, params: SearchParams, items: Sequence[str], judge: str) -> dict[str, Judgement]:
        """What somebody last said of these items for the words and the picture of a search."""
        return verdicts_on(self.readable_judgements, query_of(params, self.pictures), items, judge)

    def prepare(self) -> None:
        """Load in the background what the first search would wait for."""

        def load() -> None:
            try:
                self.snapshot()
            except EyespotError as error:  # who searches is told the same
                self.unready = str(error)
            else:
                self.ready = True

        self._preparing = Thread(target=load, daemon=True)
        self._preparing.start()

    def close(self) -> None:
        """Finish what is being written, and ask nobody any more."""
        self.jobs.close()
        self.facts.masks.close()
        self.indexer.close()
        if self._preparing is not None:
            self._preparing.join(LOADING)  # Python aborts if it ends around a thread that loads a library
        self.tier.close()
        if self.history is not None:
            self.history.close()
        for opened in (*self._lists.values(), *self._clicks.values()):
            opened.close()
        self._copied.close()
        if "judgements" in self.__dict__:
            self.judgements.close()


def _times(places: Sequence[Path]) -> str:
    """When each of these files was written, of those that are there."""
    times = []
    for place in places:
        with suppress(FileNotFoundError, NotADirectoryError):
            times.append(f"{place.stat().st_mtime_ns:x}")
    return " ".join(times)


def _remove_copies(folder: Path) -> None:
    """Remove the copies of facts that an older eyespot made."""
    for pattern in ("[0-9]*-*-*.arrow", "[0-9]*-*-*.npy"):
        for copy in folder.glob(pattern):
            with suppress(OSError):
                copy.unlink()


def house_of(request: Request) -> AppState:
    """The house of this application, as a dependency."""
    house: AppState = request.app.state.house
    return house


Served = Annotated[AppState, Depends(house_of)]
