"""Stages as one contract: queries and a run in, a run out; and chains of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from eyespot import sample
from eyespot.ledger.judgements import Judgements
from eyespot.search import (
    Adapted,
    Chain,
    Collection,
    Fused,
    Fusion,
    JudgeRerank,
    LocalRerank,
    Nearest,
    QueryExpansion,
    TopK,
    chain_of,
)
from eyespot.search.judge_rerank import judge_named
from eyespot.settings.search import StageSettings
from eyespot.types import AdaptedQuery, Query, Run, Stage, UsageError, Vectors
from tests.lazy_import import requires
from tests.wording import raises

pytestmark = requires("cv2")
NAMES = sorted(path.name for path in sample.photos().glob("*.jpg"))[:9:4]
PICTURES = [Query.picture(sample.photos() / name, name) for name in NAMES]


class Mirror:
    """An adapter that turns every query around, so that the farthest picture comes first."""

    space, dim, caution = None, 0, None

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def adapt(self, queries: Vectors) -> list[AdaptedQuery]:
        nothing = np.zeros((self.dim, 1), np.float32)
        return [AdaptedQuery(-query, nothing, nothing, 1.0) for query in queries]


def adapted(collection: Collection, ledger: Judgements) -> Stage:
    adapter = Mirror(collection.view.space.dim)
    return Adapted(collection.view, collection.encoder, adapter, 10, collection.allowed(), 5, collection.scan)


STAGES: dict[str, Callable[[Collection, Judgements], Stage]] = {
    "Nearest": lambda collection, _: Nearest.of(collection, 10),
    "Adapted": adapted,
    "QueryExpansion": lambda collection, _: QueryExpansion.of(collection, 2, 10),
    "LocalRerank": lambda collection, _: LocalRerank.of(collection, "spatial", depth=5),
    "JudgeRerank": lambda _, ledger: JudgeRerank(judge_named("encoder:starter"), ledger, depth=5),
    "TopK": lambda *_: TopK(3),
    "Fused": lambda collection, ledger: Fused(Nearest.of(collection, 10), adapted(collection, ledger), fusion=Fusion()),
    "chain_of": lambda collection, _: chain_of(
        collection, StageSettings(neighbours=2, rerank_local="chamfer"), k=10, depth=5
    ),
}


@pytest.fixture(scope="module")
def first(collection: Collection) -> Run:
    return Nearest.of(collection, 10)(PICTURES)


def images(run: Run, query: Query) -> list[str]:
    return [hit.image for hit in run[query.id]]


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_maps_a_run_to_a_run(name: str, collection: Collection, ledger: Judgements, first: Run) -> None:
    """First stages need none; those that re-rank say what to put before them."""
    stage = STAGES[name](collection, ledger)

    run = stage(PICTURES, first)

    assert list(run) == [query.id for query in PICTURES]
    for query in PICTURES:
        scores = [hit.score for hit in run[query.id]]
        assert scores and scores == sorted(scores, reverse=True)
        assert len(set(images(run, query))) == len(scores) and set(images(run, query)) <= set(run.facts)
    if name not in ("LocalRerank", "JudgeRerank", "TopK"):
        assert list(stage(PICTURES)) == [query.id for query in PICTURES]
        return
    with raises(UsageError):
        stage(PICTURES)


def test_a_chain_in_a_chain_is_its_stages(collection: Collection, ledger: Judgements) -> None:
    a, b, c = (STAGES[name](collection, ledger) for name in ("Nearest", "JudgeRerank", "TopK"))

    assert Chain(a, Chain(b, c)) == Chain(Chain(a, b), c) == Chain(a, b, c) != Chain(a, c, b)
    assert dict(Chain(a, Chain(b, c))(PICTURES)) == dict(c(PICTURES, b(PICTURES, a(PICTURES))))


def test_a_chain_without_a_stage_says_what_to_start_with() -> None:
    with raises(UsageError):
        Chain()


def test_an_adapter_in_a_chain_re_ranks_the_run_before_it(collection: Collection, ledger: Judgements) -> None:
    plain = Nearest.of(collection, 10)(PICTURES)

    run = Chain(Nearest.of(collection, 10), adapted(collection, ledger))(PICTURES)

    for query in PICTURES:
        assert images(run, query) == [*reversed(images(plain, query)[:5]), *images(plain, query)[5:]]


@pytest.mark.long
def test_options_make_the_chain_that_one_writes_by_hand(collection: Collection) -> None:
    by_hand = Chain(
        Nearest.of(collection, 2),
        QueryExpansion.of(collection, 2, 1000),
        LocalRerank.of(collection, "spatial"),
        TopK(7),
    )

    run = chain_of(collection, StageSettings(neighbours=2, rerank_local="spatial"), k=7)(PICTURES)

    assert dict(run) == dict(by_hand(PICTURES))
