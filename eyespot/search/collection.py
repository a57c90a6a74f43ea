"""A gallery with its encoder and index at hand: `eyespot.open(gallery).search("a heron")`."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from eyespot import rooms
from eyespot.encoders import NEGATION
from eyespot.extras import install_line
from eyespot.gallery.view import Gallery
from eyespot.kernels import compiled
from eyespot.search import query_language
from eyespot.search.nearest import as_run
from eyespot.types import (
    Encoder,
    EyespotError,
    Index,
    Mask,
    NearestRows,
    Note,
    NothingFound,
    Progress,
    Query,
    Run,
    Stage,
    UsageError,
    no_progress,
    refusing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from PIL.Image import Image

    from eyespot.gallery.filters import Condition
    from eyespot.gallery.word_index import WordIndex
    from eyespot.search.adapted import SearchBackend
    from eyespot.search.estimates.study import CollectionEstimate
    from eyespot.search.feedback import Feedback
    from eyespot.search.hits import Hits
    from eyespot.search.label_learning import Contrast
    from eyespot.search.searchable import Scan
    from eyespot.settings.search import FilterSettings, RankingSettings, SearchSettings

    Picture: TypeAlias = Path | Image | NDArray[np.uint8] | IO[bytes]
    Searched: TypeAlias = str | Query | Picture | None

MANY_ROWS = 200_000  # from here on, waiting for a search without compiled kernels is worth a word
NO_MATCH = "no-match"  # the code of the note that nothing scores as a match should
IMPORTED = "imported"  # the revision of vectors that came with nothing but their encoder's name


def no_match(best: float, weakest: float) -> Note:
    """The note that `best` lies below what a match scores at least, in digits that tell the two apart."""
    digits = 3 if round(best, 3) < round(weakest, 3) else 8
    return Note(NO_MATCH, f"probably no good match: the best score is {best:.{digits}f}, below {weakest:.{digits}f}")


def _change(name: str, then: str, now: str) -> str:
    same = next((at for at, (one, other) in enumerate(zip(then, now, strict=False)) if one != other), 0)
    at = max(0, same - 20)  # with some words before what differs
    return f"{name} {then[at : at + 60]}, now {now[at : at + 60]}"


class Collection:
    """One space of a gallery, ready to be searched.

    The encoder, the vectors and whatever else a search may take are loaded when they are first needed, so that a plain
    search starts quickly.
    """

    backend: SearchBackend | None = None  # who searches in place of this process; set it before the first search

    def __init__(self, gallery: Path | str, encoder: str | None = None, index: str = "exact") -> None:
        with refusing("a gallery is opened by its folder or address", gallery):
            self.gallery, self._searched_by = Gallery(Path(gallery).expanduser()), index
        self.view = self.gallery.view(self._stem(encoder))

    def _stem(self, encoder: str | None) -> str:
        """The space of an encoder's name; of an export in a folder that moved, the one of the same files."""
        try:
            return self.gallery.stem(encoder)
        except UsageError:
            if not str(encoder).startswith("onnx:"):
                raise
            moved: Encoder = rooms.load("encoders", str(encoder))
            spaces = self.gallery.header.spaces.items()
            same = [stem for stem, space in spaces if replace(moved.space, encoder=space.encoder) == space]
            if not same:
                raise
            self.encoder = moved
            return same[-1]

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that made this space; refused if what is installed now would give other vectors."""
        space = self.view.space
        encoder: Encoder = rooms.load("encoders", space.encoder)
        installed = encoder.space
        if installed.digest == space.digest or (space.revision == IMPORTED and installed.dim == space.dim):
            return encoder
        if space.revision == IMPORTED:
            raise EyespotError(
                f"the imported vectors have {space.dim} components, {space.encoder} gives {installed.dim}; import them"
                " into a new gallery with -e and the encoder that made them"
            )
        then, now = asdict(space), asdict(installed)
        differs = "; ".join(_change(name, str(then[name]), str(now[name])) for name in then if then[name] != now[name])
        raise EyespotError(
            f"this gallery's vectors were made with another {space.encoder} ({differs}); bring it up to date with:"
            f" eyespot index -e {space.encoder} -g {self.gallery.path}"
        )

    @cached_property
    def index(self) -> Index:
        """Certified exact search over the mapped vectors, or the approximate index that was asked for."""
        if self._searched_by == "exact" and self.backend is None:
            from eyespot.indexes.exact import SMALL, Exact

            numbers = int(self.view.starts[-1]) * self.view.space.dim
            return Exact(self.view.blocks, self.view.codes if numbers >= SMALL else None)  # small ones use no codes
        from eyespot.search.index_choice import open_index

        return open_index(self.view, self._searched_by, self.backend)

    @cached_property
    def words(self) -> WordIndex:
        """Labels, titles and names beside the photos."""
        from eyespot.gallery.word_index import WordIndex

        return WordIndex(self.gallery.path)

    @cached_property
    def contrast(self) -> Contrast:
        """A sample of the rows, with which labelled photos are contrasted."""
        from eyespot.search.by_words import background

        return background(self.view)

    @cached_property
    def scan(self) -> Scan:
        """Exact search under adapted queries."""
        if self.backend is not None:
            return self.backend.scan(self.view.blocks, self.view.codes)
        from eyespot.search.adapted import scan_of

        return scan_of(self.view)

    def __len__(self) -> int:
        """How many pictures a search can find."""
        return int(self.view.live.sum())

    @property
    def ids(self) -> list[str]:
        """The id of each picture that a search can find, in the order of their rows."""
        return [str(facts["id"]) for facts in self.view.facts(np.flatnonzero(self.view.live).tolist())]

    def __repr__(self) -> str:
        pictures = f"{len(self):,} pictures, {self.view.space.dim} numbers each by {self.view.space.encoder}"
        return f"<collection {self.gallery.path}: {pictures}, searched by {self._searched_by}>"

    def query(self, query: Searched = None, image: Picture | str | None = None) -> Query:
        """The query that `search` makes of the same arguments; raises `UsageError` for what cannot be searched."""
        if isinstance(query, np.ndarray) and query.ndim == 1:
            raise UsageError("words and pictures are searched here; a vector: collection.index.search(vector[None], k)")
        if query is not None and not isinstance(query, str | Query):
            return query_language.with_picture(None, query)
        parsed = query_language.parse(query) if isinstance(query, str) else query
        if image is not None:
            return query_language.with_picture(parsed, image)
        if parsed is None:
            raise UsageError(
                'nothing to search for; give words, as in: eyespot search "a heron", or --image FILE, or a filter'
            )
        return parsed

    @overload
    def search(self, query: list[Any] | tuple[Any, ...], **how: Any) -> list[Hits]: ...

    @overload
    def search(self, query: Searched = None, **how: Any) -> Hits: ...

    def search(
        self,
        query: Any = None,
        *,
        image: Picture | str | None = None,
        where: str | Condition | None = None,
        feedback: Feedback | str | bool | None = None,
        **options: Any,
    ) -> Hits | list[Hits]:
        """The k nearest pictures to words, a picture, or both; of a list of queries those of each, by one scan.

        `query` is a text that may use weights, pictures and minus (`2:heron + ./pool.jpg - people`), a `Query`, or a
        picture: a `Path`, an open file, a PIL image, an array (height, width, 3) of uint8. The options are those of
        `eyespot search`, by the names of `SearchSettings`: `k`, `by`, `adapt`, `neighbours`, `near`, `label`, `rerank`,
        …; a filter alone lists pictures by date, newest first. `where` may also be a condition, and `feedback` the
        judged photos themselves. `UsageError` for what cannot be searched, `NothingFound` if nothing is left.
        """
        from eyespot.gallery.filters import all_of, columns_of
        from eyespot.search.hits import Hits
        from eyespot.search.parts import condition_of
        from eyespot.settings import FEW
        from eyespot.settings.search import SearchSettings

        options |= {"where": where} if isinstance(where, str) else {}
        options |= {"feedback": feedback} if feedback is not None and not isinstance(feedback, tuple) else {}
        settings = SearchSettings.read(**options)
        for name in settings.model_fields_set:
            if reason := SearchSettings.display(name).python:
                raise UsageError(f"Collection.search has no {name}: {reason}")
        condition = condition_of(settings, list(columns_of(self.view.tables)) if settings.filters else [])
        if where is not None and not isinstance(where, str):
            with refusing('where is a condition in SQL, as in where="width > 300"', where):
                condition = all_of(where, condition) if condition is not None else all_of(where)
        mask, k = self.allowed(condition), settings.k or FEW
        if query is None and image is None and settings.adapt is None and condition is not None:
            return Hits(self.by_date(mask, k, bool(settings.grouped), settings))
        if not isinstance(query, list | tuple):
            return Hits(next(self._answers([self.query(query, image)], settings, mask, feedback)))
        wanted = [self.query(one, image) for one in query]
        if len({one.id for one in wanted}) < len(wanted):
            wanted = [replace(one, id=f"q{number}") for number, one in enumerate(wanted, 1)]
        return [Hits(run) for run in self._answers(wanted, settings, mask, feedback)]

    def estimate(self, query: Searched = None, *, judge: Any = None, **options: Any) -> CollectionEstimate:
        """How many photos of each group are relevant, with 95 % intervals, by verdicts on a few dozen of them.

        `judge` is one by its name (`person:ada`) or a function of a query's text and a picture's path; the options are
        those of `eyespot estimate`, by the names of `EstimateSettings`: `by`, `looks`, `where`, `compare`, …
        """
        from eyespot.search.estimates.study import estimate_collection
        from eyespot.settings.estimate import EstimateSettings

        named = {} if judge is None or callable(judge) else {"judge": judge}
        settings = EstimateSettings.read(**options, **named)
        return estimate_collection(self, self.query(query), settings, judge if callable(judge) else None)

    def _answers(self, queries: list[Query], settings: SearchSettings, mask: Mask, feedback: Any) -> Iterator[Run]:
        """The run of each query: of all together, unless their own feedback moves them, or words choose the rows."""
        from eyespot.search.chain import Chain, TopK
        from eyespot.search.parts import judge_stage, ledger_of, moves_of, rewriter, without_no
        from eyespot.settings import FEW

        reword = settings.expand and rewriter(settings.expand, ledger_of(settings.ledger, self.gallery.path))
        how: dict[str, Any] = {"rewriting": reword or None, "grouped": bool(settings.grouped)}
        how["mask"] = without_no(self, settings, mask, how["grouped"])
        alone = settings.moves or isinstance(feedback, tuple) or (settings.grouped and settings.way == "words")
        k = settings.k or FEW
        for some in [[query] for query in queries] if alone else [queries] * bool(queries):
            moves: Any = feedback if isinstance(feedback, tuple) else moves_of(self, some[0], settings)
            if settings.rerank is None:
                yield from self.answers(some, self.stage(settings, k=k, feedback=moves, **how), settings)
                continue
            with judge_stage(settings, self.gallery.path) as judge:
                found = self.stage(settings, k=max(k, judge.depth), feedback=moves, **how)(some)
                for query in some:  # one by one, so that what is said of a judge's answers is of this query's
                    stage = partial(Chain(judge, TopK(k)), run=found.only([query.id]))
                    yield from self.answers([query], stage, settings)

    def stage(
        self,
        settings: RankingSettings,
        *,
        k: int,
        mask: Mask,
        feedback: Feedback | None = None,
        rewriting: Callable[[Query], Query] | None = None,
        grouped: bool = False,
    ) -> Stage:
        """The stages that settings name, as `chain_of` makes them, for queries that judged photos move, if any."""
        from eyespot.search.chain import chain_of  # which takes a collection

        how: dict[str, Any] = {"k": k, "mask": mask, "rewriting": rewriting, "grouped": grouped, "named": True}
        if feedback is None:
            return chain_of(self, settings, **how)
        from eyespot.search.feedback import MovedSearch

        return MovedSearch(self, settings, feedback, **how)

    def answers(self, queries: Sequence[Query], stage: Stage, settings: FilterSettings | None = None) -> list[Run]:
        """The run of a stage, or of a chain of them, for each query, with notes for the user, also on the filter."""
        with query_language.logged(Query("q", tuple(term for query in queries for term in query.terms))):
            every = stage(queries)
        runs = []
        for query in queries:
            run = every if len(queries) == 1 else every.only([query.id])
            pictures = [str(term.image) for term in query.terms if term.image is not None]
            run.header = run.header | {"query": query_language.format_query(query), "pictures": pictures}
            run.facts = {image: run.facts[image] for image in run.images.tolist() if image in run.facts}
            run.notes = [*run.notes, *self._notes(query, run, settings)]
            runs.append(run)
        return runs

    def by_date(self, allowed: Mask, k: int, grouped: bool = False, settings: FilterSettings | None = None) -> Run:
        """The k newest of these pictures, those without a date last; a score is minus the rank, and says no more.

        With `grouped` the original of each group of copies or frames, where its newest would be.
        """
        newest = self.view.newest(np.flatnonzero(allowed), int(allowed.sum()) if grouped else k)
        if grouped:
            from eyespot.gallery.groups.stored import Groups

            groups = Groups(self.view)
            newest = groups.best(newest[groups.first(newest)][:k], allowed)
        listed = NearestRows(newest[None], -np.arange(1, len(newest) + 1, dtype=np.float32)[None])
        run = as_run([Query("q", ())], listed, self.view)
        if grouped:
            for hit, others in zip(run[Query("q", ()).id], groups.others(newest, allowed).tolist(), strict=True):
                run.facts[hit.image]["others"] = others
        run.notes = self._notes(Query("q", ()), run, settings)
        run.header |= {"query": "", "heading": "Newest first", "pictures": [], "by_date": True}
        return run

    def allowed(self, where: str | Condition | Mask | None = None, progress: Progress = no_progress) -> Mask:
        """The rows that a search may find, (rows,), a mask as it is; `NothingFound` if there is none."""
        if isinstance(where, np.ndarray):
            return where
        live = self.view.live
        if where is not None:
            from eyespot.gallery import filters

            columns = filters.columns_of(self.view.tables)
            condition = filters.checked(where, list(columns)) if isinstance(where, str) else where
            live = live & filters.mask(self.view.tables, condition, progress=progress)
        if not live.any():
            if where is not None:
                from eyespot.search.parts import filter_notes

                notes = filter_notes(condition, lambda other: filters.mask(self.view.tables, other) & self.view.live)
                raise NothingFound("; ".join(["no picture fits the filter; widen it", *notes]))
            line = f"eyespot index PHOTOS -g {self.gallery.path}"
            raise NothingFound(f"the gallery has no pictures yet; add some with: {line}")
        return live

    def _notes(self, query: Query, run: Run, settings: FilterSettings | None) -> list[str]:
        own = [term.text for term in query.terms if term.text is not None]
        texts = run.header.get("wordings", {}).get(query.id, own if run.header.get("by") != "words" else [])
        answered = query.id in run.header.get("answered", ())  # by labels, which see what an encoder does not
        texts = [text for text in texts if not answered or NEGATION.search(text)]
        notes = [caveat for text in texts if (caveat := self.encoder.caveat(text))]
        # Encoders know what one text should score; a mixture, or another view of the space, scores otherwise.
        plain = texts == own and not run.header.keys() & {"adapted", "expanded", "rerank_local", "moved"}
        plain = plain and run.header.get("by") != "words" and query.id not in run.header.get("worded", ())
        plain = plain and len(run.score) > 0 and len(own) == len(query.terms) == 1 and query.terms[0].weight > 0
        weakest = self.encoder.weakest_match(own[0]) if plain else None
        run.header["likely_above"] = None if notes else weakest  # of words that are not known well much lies below
        if weakest is not None and (best := run.score.max()) < weakest:
            notes.append(no_match(best, weakest))
        encoder, imported = self.view.space.encoder, self.view.space.revision == IMPORTED
        if without := self.view.without_vector:
            way_out = "" if imported else f"; bring them in with: eyespot index -g {quote(str(self.gallery.path))}"
            name = self.gallery.called(self.view.stem)
            notes.append(f"pictures without {name} vectors, not searched: {without}{way_out}")
        if damaged := self.view.damaged_codes:
            slow = f"{damaged[0]} is missing or damaged, so its shard was searched more slowly"
            notes.append(f"{slow}; repair it with: eyespot index --repair -g {quote(str(self.gallery.path))}")
        notes += self.view.notes
        if settings is not None and settings.filters:
            from eyespot.gallery.filters import mask
            from eyespot.search.parts import filter_notes

            notes += filter_notes(settings, lambda condition: mask(self.view.tables, condition) & self.view.live)
        if imported:
            notes.append(f"the vectors were imported as made by {encoder}; that could not be checked")
        rows = int(self.view.starts[-1])
        if query.terms and self._searched_by == "exact" and rows > MANY_ROWS and not compiled():
            notes.append(f"compiled kernels search {rows:,} pictures many times as fast: {install_line('fast')}")
        return notes
