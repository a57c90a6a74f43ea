"""Search in which every query has its own view of the space, against the dense formula over all photos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot import rooms
from eyespot.search.adapted import Adapted, IndexUnder, seen_by
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.search.nearest import Nearest
from eyespot.types import Adapter, Query, UsageError
from tests.worlds.adapters import checkpoint

QUERIES = [Query.words("a windmill", "w"), Query.words("a red tower", "t")]


@pytest.fixture(scope="module")
def adapter(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Adapter:
    dim = collection.view.space.dim
    loaded: Adapter = rooms.load("adapters", f"quari:{checkpoint(tmp_path_factory.mktemp('quari'), dim, 'starter')}")
    return loaded


def vectors(collection: Collection) -> Any:
    return np.concatenate([np.asarray(block, np.float64) for block in collection.view.blocks])


def dense(collection: Collection, adapter: Adapter, query: Query) -> Any:
    """The score of every row by the formula with the whole matrix, in float64: (rows,)."""
    (view,) = adapter.adapt(embed([query], collection.encoder))
    matrix = view.identity * np.eye(adapter.dim) + view.left.astype(np.float64) @ view.right.T.astype(np.float64)
    mapped = vectors(collection) @ matrix
    return mapped @ view.query / np.linalg.norm(mapped, axis=1)


def ids(collection: Collection, rows: Any) -> list[str]:
    return [facts["id"] for facts in collection.view.facts(np.asarray(rows).tolist())]


@pytest.mark.long
def test_a_first_stage_ranks_as_the_dense_formula(collection: Collection, adapter: Adapter) -> None:
    run = Adapted(collection.view, collection.encoder, adapter, 20, collection.view.live)(QUERIES)

    for query in QUERIES:
        scores = dense(collection, adapter, query)
        best = np.argsort(-scores, kind="stable")[:20]
        assert [hit.image for hit in run[query.id]] == ids(collection, best)
        assert np.abs([hit.score for hit in run[query.id]] - scores[best]).max() < 1e-6
    assert run.header["adapted"] and run.header["exact"]


def test_a_run_is_reranked_to_a_depth_and_stays_as_it_was_below(collection: Collection, adapter: Adapter) -> None:
    first = Nearest(collection.view, collection.encoder, collection.index, 30, collection.view.live)(QUERIES)

    run = Adapted(collection.view, collection.encoder, adapter, 30, collection.view.live, depth=10)(QUERIES, first)

    for query in QUERIES:
        before, after = [[hit.image for hit in each[query.id]] for each in (first, run)]
        scores = dict(
            zip(ids(collection, range(len(vectors(collection)))), dense(collection, adapter, query), strict=True)
        )
        assert after[:10] == sorted(before[:10], key=lambda image: -scores[image])
        assert after[10:] == before[10:] and [hit.image for hit in run[query.id]] == after
    assert (np.diff(run.score[:30]) <= 0).all()


def test_an_index_to_plain_queries_gives_the_same(collection: Collection, adapter: Adapter) -> None:
    under = IndexUnder(adapter, collection.view.blocks)

    found = under.search(embed(QUERIES, collection.encoder), 5)

    best = [np.argsort(-dense(collection, adapter, query), kind="stable")[:5].tolist() for query in QUERIES]
    assert under.exact and found.rows.tolist() == best


def test_images_are_seen_where_their_cosine_is_their_score(collection: Collection, adapter: Adapter) -> None:
    (view,) = adapter.adapt(embed(QUERIES[:1], collection.encoder))

    seen = seen_by(view, vectors(collection).astype(np.float32))

    assert np.abs(np.linalg.norm(seen, axis=1) - 1).max() < 1e-5
    assert np.abs(seen @ view.query - dense(collection, adapter, QUERIES[0])).max() < 1e-5


def test_the_library_s_own_call_takes_a_checkpoint(collection: Collection, tmp_path: Path) -> None:
    place = checkpoint(tmp_path, collection.view.space.dim, "starter")

    run = collection.search("a windmill", k=3, adapt=place)

    wanted = np.argsort(-dense(collection, rooms.load("adapters", f"quari:{place}"), QUERIES[0]), kind="stable")[:3]
    assert [hit.image for hit in run["q"]] == ids(collection, wanted)


@pytest.mark.parametrize(("dim", "encoder", "text"), [(512, "clip-of-others", "eyespot train quari"), (12, None, "12")])
def test_an_adapter_of_another_space_is_refused(
    collection: Collection, tmp_path: Path, dim: int, encoder: str | None, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        collection.search("a windmill", adapt=checkpoint(tmp_path, dim, encoder))
