"""Stages in a row: every search, and every experiment of a paper, is a list of arguments.

    collection = eyespot.open("inat24")
    inquire = Chain(Nearest.of(collection, k=100), JudgeRerank.of(collection, "openai:gpt-5-mini", depth=100))
    run = inquire([Query.words("a heron with a fish")])

`chain_of` makes the chain that settings ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from eyespot.search.local import DEPTH
from eyespot.types import Mask, Query, Run, Stage, UsageError, kind_text

if TYPE_CHECKING:
    from eyespot.search.adapted import AnyAdapter
    from eyespot.search.embedding import KnownVectors
    from eyespot.search.searchable import Searchable
    from eyespot.settings.search import RankingSettings


@dataclass(frozen=True, init=False)
class Chain:
    """Stages in turn, each of which gets the run of the one before it; a chain in a chain is its stages."""

    stages: tuple[Stage, ...]

    def __init__(self, *stages: Stage) -> None:
        if not stages:
            raise UsageError("a chain needs a stage; start with Nearest")
        if strange := [stage for stage in stages if not callable(stage)]:
            raise UsageError(f"a stage is a function of queries and a run, not {kind_text(strange[0])}")
        flat = (inner for stage in stages for inner in (stage.stages if isinstance(stage, Chain) else (stage,)))
        object.__setattr__(self, "stages", tuple(flat))

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The run of the last stage; the first one gets `run`."""
        if isinstance(queries, str) or not all(isinstance(query, Query) for query in queries):
            raise UsageError(f'queries are a list, as in [Query.words("a heron")], not {kind_text(queries)}')
        for stage in self.stages:
            run = stage(queries, run)
            if not isinstance(run, Run):
                raise UsageError(f"the stage {kind_text(stage)} gives {kind_text(run)}; a stage gives a Run")
        assert run is not None
        return run


@dataclass(frozen=True)
class TopK:
    """A stage that keeps the k best of every ranking."""

    k: int

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The run, shortened; `UsageError` without one."""
        if run is None:
            raise UsageError("there is no run to cut; put a first stage, such as Nearest, before this one")
        return run.reranked({query: run[query][: self.k] for query in run})


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
class RankingStages:
    """Stages of which one ranks the gallery, to any depth; what they need was opened once.

    before: what chooses the pictures that the ranking starts from. ranks: the stage whose `k` is the depth; None where
    the run comes from elsewhere. after: what re-ranks at most `least` of its hits. k: how many hits remain.
    """

    before: tuple[Stage, ...]
    ranks: Any
    after: tuple[Stage, ...]
    k: int
    least: int = 0

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The k best hits."""
        deepest = max(self.k, self.least)
        ranks = () if self.ranks is None else (replace(self.ranks, k=deepest),)
        for stage in (*self.before, *ranks, *self.after):
            run = stage(queries, run)
        assert run is not None
        return TopK(self.k)(queries, run) if deepest > self.k else run

    def to(self, k: int) -> RankingStages:
        """The same with k hits."""
        return replace(self, k=k)


def chain_of(
    collection: Searchable,
    settings: RankingSettings,
    *,
    k: int,
    mask: Mask | None = None,
    adapter: AnyAdapter | None = None,
    vectors: KnownVectors | None = None,
    rewriting: Callable[[Query], Query] | None = None,
    grouped: bool = False,
    named: bool = False,
    reranks: int | None = None,
    depth: int = DEPTH,
) -> Stage:
    """The stages that settings ask for, as one, each opened once.

    mask: the rows that may be found, all without. adapter: the one that `settings.adapt` names, where it is open.
    vectors: of the queries, none of which is then encoded. rewriting: gives a query other terms. grouped: only the best
    of each group of copies or frames remains. named: other names of what a query names count as its words, where the
    gallery was given any. reranks: the chain starts with a run of its caller, of which an adapter re-ranks so many
    hits. depth: of how many hits local descriptors are compared.

    Raises `UsageError` for settings that do not go together and for an adapter of another space, and what
    `LocalRerank.of` says of an unknown method.
    """
    settings.refuse_conflicts()
    if adapter is None and settings.adapt is not None:
        from eyespot.search.adapted import adapter_named

        adapter = adapter_named(settings.adapt)
    mask = collection.allowed(mask)
    opened = {"view": collection.view, "encoder": vectors or collection.encoder, "mask": mask, "k": k}
    ranking = _ranking(collection, settings, opened, adapter=adapter, named=named, reranks=reranks, depth=depth)
    stage: Stage = ranking
    if grouped:
        from eyespot.search.grouped import Grouped

        # A search by words alone does not rank every row
        holding = ranking.ranks.holding if settings.way == "words" else None
        stage = Grouped(ranking.to, collection.view, mask, k, holding)
    return stage if rewriting is None else RewordedStage(rewriting, stage)


def _ranking(
    collection: Searchable,
    settings: RankingSettings,
    opened: dict[str, Any],
    *,
    adapter: AnyAdapter | None,
    named: bool,
    reranks: int | None,
    depth: int,
) -> RankingStages:
    """The stages in their order, to one depth."""
    later = None if adapter is None or reranks is not None else settings.adapt_depth
    first: Any = None
    if adapter is not None and later is None:
        first = _adapted(collection, adapter, opened, reranks)
    elif reranks is None and settings.way == "look":
        from eyespot.search.nearest import Nearest  # each stage is imported where it is wanted

        first = Nearest(**opened, index=collection.index)
    elif reranks is None:
        from eyespot.search.by_words import ByWords

        contrast = partial(getattr, collection, "contrast")  # made when a query needs it
        how: dict[str, Any] = {"by": settings.way, "teach": settings.teach, "named": named, "contrast": contrast}
        first = ByWords(**opened, index=collection.index, words=collection.words, **how)
    before: tuple[Stage, ...] = ()
    if settings.neighbours is not None:
        from eyespot.search.query_expansion import QueryExpansion

        before = () if first is None else (replace(first, k=max(1, settings.neighbours)),)
        alpha = 1.0 if settings.alpha is None else settings.alpha
        first = QueryExpansion(**opened, index=collection.index, n=settings.neighbours, alpha=alpha)
    after = [] if later is None or adapter is None else [_adapted(collection, adapter, opened, later)]
    if settings.local:
        from eyespot.search.local_rerank import LocalRerank

        after.append(LocalRerank.of(collection, settings.local, depth))
    least = max(later or 0, depth if settings.local else 0)
    return RankingStages(before, first, tuple(after), opened["k"], least)


def _adapted(collection: Searchable, adapter: AnyAdapter, opened: dict[str, Any], depth: int | None) -> Stage:
    """The stage of an adapter, which searches, or re-ranks the first `depth` hits."""
    from eyespot.adapters.linear import Linear
    from eyespot.search.adapted import Adapted

    through = None if isinstance(adapter, Linear) else collection.scan
    return Adapted(**opened, adapter=adapter, depth=depth, through=through)
