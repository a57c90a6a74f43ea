"""Stages in a row: every search, and every experiment of a paper, is a list of arguments.

    collection = eyespot.open("inat24")
    inquire = Chain(Nearest.of(collection, k=100), JudgeRerank.of(collection, "openai:gpt-5-mini", depth=100))
    run = inquire([Query.words("a heron with a fish")])

`chain_of` makes the chain that the options of a command ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from eyespot.search.embedding import KnownVectors
from eyespot.search.local import DEPTH
from eyespot.types import Encoder, Mask, Query, Run, Stage, UsageError

if TYPE_CHECKING:
    from eyespot.search.adapted import AnyAdapter
    from eyespot.search.by_words import ByWords
    from eyespot.search.searchable import Searchable

WAYS = ("look", "words", "both")


@dataclass(frozen=True, init=False)
class Chain:
    """Stages in turn, each of which gets the run of the one before it; a chain in a chain is its stages."""

    stages: tuple[Stage, ...]

    def __init__(self, *stages: Stage) -> None:
        if not stages:
            raise UsageError("a chain needs a stage; start with Nearest")
        flat = (inner for stage in stages for inner in (stage.stages if isinstance(stage, Chain) else (stage,)))
        object.__setattr__(self, "stages", tuple(flat))

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The run of the last stage; the first one gets `run`."""
        first, *rest = self.stages
        made = first(queries, run)
        for stage in rest:
            made = stage(queries, made)
        return made


@dataclass(frozen=True)
class TopK:
    """A stage that keeps the k best of every ranking."""

    k: int

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The run, shortened; `UsageError` without one."""
        if run is None:
            raise UsageError("there is no run to cut; put a first stage, such as Nearest, before this one")
        made = Run({query: run[query][: self.k] for query in run})
        made.facts, made.header, made.notes = run.facts, run.header, run.notes
        return made


@dataclass(frozen=True)
class RewordedStage:
    """A stage that gets queries in other words; the run's header lists the texts of each under `wordings`."""

    reword: Callable[[Query], Query]
    stage: Stage

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The run of the stage for the reworded queries."""
        reworded = [self.reword(query) for query in queries]
        made = copy(self.stage(reworded, run))
        texts = {query.id: [term.text for term in query.terms if term.text is not None] for query in reworded}
        made.header = made.header | {"wordings": texts}
        return made


@dataclass(frozen=True)
class StageOptions:
    """What a search is made of: the stages that its options name, under which filter, and how many hits remain.

    `adapt` is an adapter or what names it (a QuARI checkpoint, `linear:FILE`), `neighbours` the N of query expansion
    and `alpha` its power of the cosine, `rerank_local` a method that compares local descriptors of the first `depth`
    hits, `rewriting` gives a query other terms. With `adapt_depth` the adapter does not search: it re-ranks so many
    hits of the plain search. Where `reranks` is set the chain starts with a run of its caller: the adapter re-ranks the
    first `reranks` hits of it. `by` is look, words
    or both; with `teach`, both also goes by what photos with the query's words look like; with `named`, other names of
    what the query names count as its words, where the gallery was given any. With `grouped` only the best
    of each group of copies or frames remains.
    """

    k: int = 20
    mask: Mask | None = None
    adapt: AnyAdapter | Path | str | None = None
    neighbours: int | None = None
    rerank_local: str | None = None
    depth: int = DEPTH
    rewriting: Callable[[Query], Query] | None = None
    reranks: int | None = None
    grouped: bool = False
    by: str = "look"
    teach: bool = True
    named: bool = False
    adapt_depth: int | None = None
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.by not in WAYS:
            raise UsageError(f"no way {self.by!r} to search; there are: {', '.join(WAYS)}")
        if self.by != "look" and not self.reads_words:
            raise UsageError(
                f"an adapter, query expansion and local descriptors compare looks, and words have none; leave out --by"
                f" {self.by}, or search --by look"
            )

    @property
    def reads_words(self) -> bool:
        """Whether these stages can also search the words beside the photos."""
        return self.adapt is None and self.plain and self.reranks is None

    @property
    def default_way(self) -> str:
        """By what people search unless they say otherwise: both where these stages read words."""
        return "both" if self.reads_words else "look"

    @property
    def adapts_later(self) -> bool:
        """Whether the adapter re-ranks the hits of the plain search."""
        return self.adapt is not None and self.adapt_depth is not None and self.reranks is None

    @property
    def deepest(self) -> int:
        """How many hits the first stage finds: what remains at the end, and what later stages look at."""
        later = self.adapt_depth or 0 if self.adapts_later else 0
        return max(self.k, later, self.depth if self.rerank_local else 0)

    @property
    def plain(self) -> bool:
        """Whether the first stage is all there is."""
        return self.neighbours is None and self.rerank_local is None


def chain_of(collection: Searchable, options: StageOptions, vectors: KnownVectors | None = None) -> Stage:
    """The stages that the options ask for, as one; with `vectors` no query is encoded.

    Raises `UsageError` for an adapter of another space, and what `LocalRerank.of` says of an unknown method.
    """
    encoder = vectors or collection.encoder
    mask = collection.allowed() if options.mask is None else options.mask
    if options.grouped:
        return _grouped(collection, replace(options, mask=mask), vectors)
    stages: list[Stage] = []
    if options.adapt is not None or options.reranks is None:
        k = options.deepest if options.neighbours is None else max(1, options.neighbours)
        stages.append(_first_stage(collection, replace(options, k=k, mask=mask), encoder))
    if options.neighbours is not None:
        from eyespot.search.query_expansion import QueryExpansion

        expanding = options.neighbours, options.deepest, mask, options.alpha
        stages.append(QueryExpansion(collection.view, encoder, collection.index, *expanding))
    if options.adapts_later:
        stages.append(_adapted(collection, replace(options, mask=mask, reranks=options.adapt_depth), encoder))
    if options.rerank_local:
        from eyespot.search.local_rerank import LocalRerank

        stages.append(LocalRerank.of(collection, options.rerank_local, options.depth))
    if options.deepest > options.k:
        stages.append(TopK(options.k))
    chain = Chain(*stages)
    return chain if options.rewriting is None else RewordedStage(options.rewriting, chain)


def _grouped(collection: Searchable, options: StageOptions, vectors: KnownVectors | None) -> Stage:
    """The same search, of which only the best of each group remains."""
    from eyespot.search.grouped import Grouped

    plain = replace(options, grouped=False, rewriting=None)
    mask = collection.allowed() if options.mask is None else options.mask
    holding = None
    if options.by == "words":
        holding = _by_words(collection, replace(plain, mask=mask), vectors or collection.encoder).holding
    search = partial(_of_depth, collection, plain, vectors)
    best = Grouped(search, collection.view, mask, options.k, holding)
    return best if options.rewriting is None else RewordedStage(options.rewriting, best)


def _of_depth(collection: Searchable, options: StageOptions, vectors: KnownVectors | None, k: int) -> Stage:
    return chain_of(collection, replace(options, k=k), vectors)


def _by_words(collection: Searchable, options: StageOptions, encoder: Encoder | KnownVectors) -> ByWords:
    from eyespot.search.by_words import ByWords

    mask = collection.allowed() if options.mask is None else options.mask
    how = options.k, mask, options.by, options.teach, options.named
    contrast = partial(getattr, collection, "contrast")  # made when a query needs it
    return ByWords(collection.view, encoder, collection.index, collection.words, *how, contrast=contrast)


def _first_stage(collection: Searchable, options: StageOptions, encoder: Encoder | KnownVectors) -> Stage:
    """What ranks first; each stage is imported where it is wanted, so that a plain search starts quickly."""
    if options.adapt is not None and not options.adapts_later:
        return _adapted(collection, options, encoder)
    if options.by != "look":
        return _by_words(collection, options, encoder)
    from eyespot.search.nearest import Nearest

    mask = collection.allowed() if options.mask is None else options.mask
    return Nearest(collection.view, encoder, collection.index, options.k, mask)


def _adapted(collection: Searchable, options: StageOptions, encoder: Encoder | KnownVectors) -> Stage:
    """The stage of the adapter, which searches, or re-ranks the first `reranks` hits."""
    from eyespot.adapters.linear import Linear
    from eyespot.search.adapted import Adapted, adapter_named, refuse_other_space
    from eyespot.search.linear_adapted import LinearAdapted

    mask = collection.allowed() if options.mask is None else options.mask
    adapter = options.adapt if options.adapt is not None else ""
    adapter = adapter_named(adapter) if isinstance(adapter, str | Path) else adapter
    if isinstance(adapter, Linear):
        refuse_other_space(adapter, collection.view.space)
        return LinearAdapted(collection.view, encoder, adapter, options.k, mask, options.reranks)
    return Adapted(collection.view, encoder, adapter, options.k, mask, options.reranks, collection.scan)
