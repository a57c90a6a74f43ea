"""Approximate search under what galleries do to it: filters, batches, rows without a vector, vectors of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot.indexes._approximate import estimate_recall
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import NOT_FINITE
from eyespot.types import Index, UsageError
from tests.indexes.test_contract import WAYS, loading
from tests.wording import raises
from tests.worlds.vectors import clustered

ALL = [(name, way) for name, ways in WAYS.items() for way in ways]


def share(index: Index, exact: Index, queries: np.ndarray, mask: np.ndarray | None) -> float:
    """Of the true 20 nearest, the share that is found."""
    found, true = (one.search(queries, 20, mask).rows.tolist() for one in (index, exact))
    return float(np.mean([len({*a} & {*b}) / 20 for a, b in zip(found, true, strict=True)]))


@pytest.mark.long
def test_lists_answer_a_filter_exactly_and_removed_rows_as_ever() -> None:
    """What a filter makes lists miss cannot be seen. Rows that are gone are no filter: of them a tenth is left here,
    and the twenty nearest are no longer of one cluster, and so of several lists."""
    vectors = clustered(20_000)
    queries, mask = vectors[:40], np.random.default_rng(1).random(20_000) < 0.1
    load = loading("faiss", {"kind": "ivf", "lists": 16, "probes": 1, "depth": 200})
    index, exact, thinned = load([vectors]), Exact([vectors]), load([vectors], live=mask)

    assert index.search(queries, 20, mask).exact and not index.search(queries, 20).exact
    assert not thinned.search(queries, 20, mask).exact
    assert share(thinned, exact, queries, mask) >= share(index, exact, queries, None) - 0.05


CODES = [{"kind": "pq"}, {"kind": "rabitq"}]


def adverse(name: str, scores: np.ndarray, near: np.ndarray) -> np.ndarray:
    """A filter that hides what is nearest to a query, by the scores of the rows and those of the nearest one's rows."""
    mask = np.ones(len(scores), np.bool_)
    share = {"a thousandth": 0.001, "a hundredth": 0.01, "half": 0.5, "a cluster": 0.03}[name]
    mask[np.argsort(-(near if name == "a cluster" else scores))[: int(share * len(scores))]] = False
    return mask


@pytest.mark.parametrize("way", CODES, ids=["pq", "rabitq"])
def test_what_is_stated_is_what_is_found(way: dict[str, Any]) -> None:
    """Without a filter, and queries of two kinds; the second, far from the rows, is harder."""
    vectors = clustered(20_000, 64)
    far = clustered(40, 64, seed=3) + np.linspace(-0.2, 0.2, 64, dtype=np.float32)
    index, exact = loading("faiss", {**way, "depth": 400})([vectors], recall=0.9), Exact([vectors])
    for queries in (clustered(40, 64, seed=2), far):
        stated = index.search(queries, 20).recall
        assert stated is not None and stated - share(index, exact, queries, None) < 0.02


@pytest.mark.parametrize("name", ["a thousandth", "a hundredth", "half", "a cluster"])
@pytest.mark.parametrize("way", CODES, ids=["pq", "rabitq"])
def test_an_adverse_filter_is_noticed_and_answered_exactly(way: dict[str, Any], name: str) -> None:
    vectors, queries = clustered(20_000, 64), clustered(12, 64, seed=2)
    index = loading("faiss", {**way, "depth": 200})([vectors], recall=0.99, promise=0.97)
    unaware, exact = loading("faiss", {**way, "depth": 200})([vectors], recall=0.99), Exact([vectors])
    missed = []
    for query in queries:
        scores = vectors @ query
        mask = adverse(name, scores, vectors @ vectors[scores.argmax()])
        found, plain = index.search(query[None], 20, mask), unaware.search(query[None], 20, mask)
        true = exact.search(query[None], 20, mask).scores[0, -1] - 1e-6
        held, before = ((one.scores >= true).mean() for one in (found, plain))
        assert (found.recall or 1.0) - held < 0.1
        missed.append((1 - held, 1 - before))
    after, before = np.mean(missed, axis=0)
    assert after < 0.02 and (before > 0.05 or name == "a thousandth")


def test_exact_search_that_steps_in_reads_the_codes_it_is_given() -> None:
    """A narrow filter is searched exactly from an eighth of the rows on where there are codes, and from a 64th else."""
    pytest.importorskip("numba")
    vectors, calls = clustered(20_000, 64), []
    coded = Exact([vectors], small=0, patience=0)
    coded.prepare()

    def opened() -> Exact:
        calls.append("exact")
        return coded

    mask = np.random.default_rng(0).random(20_000) < 0.1
    index = loading("faiss", {"kind": "pq", "depth": 200})([vectors], recall=0.9, exact=opened)

    assert not index.search(vectors[:2], 20).exact and calls == []
    assert index.search(vectors[:2], 20, mask).exact and calls == ["exact"]
    assert not loading("faiss", {"kind": "pq", "depth": 200})([vectors], recall=0.9).search(vectors[:2], 20, mask).exact


@pytest.mark.parametrize("length", [0.0, 3e38], ids=["zero", "beyond float32"])
@pytest.mark.parametrize("way", CODES, ids=["pq", "rabitq"])
def test_where_rough_scores_say_nothing_answers_are_rows_all_the_same(way: dict[str, Any], length: float) -> None:
    """faiss may name no row then; also where nothing is promised, scores are those of the rows."""
    vectors = clustered(5000)
    query = vectors[:1] * np.float32(length)

    found = loading("faiss", {**way, "depth": 100})([vectors], recall=0.9).search(query, 10)

    assert len({*found.rows[0].tolist()} & {*range(5000)}) == 10
    assert np.allclose(found.scores[0], vectors[found.rows[0]].astype(np.float64) @ query[0].astype(np.float64))


@pytest.mark.parametrize(("name", "way"), ALL, ids=[way.get("kind", name) for name, way in ALL])
def test_rows_that_are_not_finite_are_no_hindrance_and_not_found(name: str, way: dict[str, Any]) -> None:
    """As imported vectors have them: they stay where they are, and no mask lets them through."""
    vectors, mask = clustered(2000), np.ones(2000, np.bool_)
    mask[[0, 900, 1999]] = False
    queries, exact = vectors[100:140], Exact([vectors])
    spoiled = vectors.copy()
    spoiled[[0, 900, 1999], 3] = [np.nan, np.inf, -np.inf]
    index = loading(name, way)([spoiled])

    assert not np.isin(index.search(queries, 50, mask).rows, [0, 900, 1999]).any()
    assert share(index, exact, queries, mask) >= 0.9


@pytest.mark.parametrize(("name", "way"), ALL, ids=[way.get("kind", name) for name, way in ALL])
def test_without_a_mask_they_are_refused_and_never_an_answer(name: str, way: dict[str, Any]) -> None:
    vectors, refused = clustered(3000), []
    vectors[[0, 900, 1999], 3] = [np.nan, np.inf, -np.inf]
    index = loading(name, {**way, "depth": 1000})([vectors])
    for query in vectors[100:140, None]:
        try:
            assert np.isfinite(index.search(query, 50).scores).all()
        except UsageError as error:
            refused.append(str(error))

    assert set(refused) <= {NOT_FINITE}
    assert refused or way.get("kind") != "pq"  # which names such rows, like any of zeros, for some of the queries


def test_lists_are_as_many_as_there_are_rows_and_an_eighth_of_them_is_looked_into() -> None:
    faiss = pytest.importorskip("eyespot.indexes.faiss", reason="needs faiss-cpu")

    with raises(UsageError):
        faiss.FaissShape("ivf", lists=9).settled(8, 4)
    assert faiss.FaissShape("pq", lists=9).settled(8, 4).lists == 1
    assert faiss.FaissShape("ivf", lists=64).settled(10_000, 32).probes == 8
    assert faiss.FaissShape("hnsw").settled(10_000, 32).probes == 400
    with raises(UsageError):
        loading("faiss", {"kind": "pq"})([clustered(1500)], promise=1.1)


@pytest.mark.parametrize(("kind", "mapped"), [("hnsw", True), ("ivf", False)])
def test_a_graph_is_mapped_from_its_file_and_lists_are_read(kind: str, mapped: bool, tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    way = {"kind": kind} | ({"lists": 16} if kind == "ivf" else {})
    vectors = clustered(5000)
    loading("faiss", way)([vectors], folder=tmp_path)

    index = loading("faiss", way)([vectors], folder=tmp_path)  # what the first one built
    index.search(vectors[:1], 5)

    assert (str(tmp_path) in maps.read_text()) is mapped


# -- an answer's recall, estimated from its own scores, against the share that it holds of drawn scores ----------


def drawn(noise: float, named: int, k: int, seed: int) -> tuple[float, float]:
    """The estimate and the true share: 50,000 scores, and rough ones that err by a normal deviate."""
    rng = np.random.default_rng(seed)
    exact = rng.standard_normal(50_000)
    rough = 2 * (exact + noise * rng.standard_normal(50_000)) + 7  # in another unit, as some rough scores are
    first = np.argsort(-rough)[:named]
    last = float(np.sort(exact[first])[-k])
    true = float((exact[first] >= np.sort(exact)[-k]).sum() / k)
    return estimate_recall(rough[first], exact[first], last, k, 50_000), true


@pytest.mark.parametrize(("noise", "named", "k"), [(0.05, 100, 10), (0.1, 400, 50), (0.2, 1600, 10), (0.3, 1600, 50)])
def test_what_is_missed_is_estimated_without_being_seen(noise: float, named: int, k: int) -> None:
    estimates, true = np.array([drawn(noise, named, k, seed) for seed in range(20)]).T

    assert true.mean() > 0.8
    assert estimates.mean() - true.mean() < 0.02
    assert true.mean() - estimates.mean() < 0.08


def test_an_answer_that_holds_little_is_not_called_good() -> None:
    estimates, true = np.array([drawn(2.0, 200, 50, seed) for seed in range(20)]).T

    assert true.mean() < 0.3 and estimates.mean() < true.mean() + 0.05


def test_where_all_rows_were_named_or_rough_scores_have_no_error_nothing_is_missed() -> None:
    scores, many = np.arange(30.0), np.linspace(0, 1, 200)

    assert estimate_recall(scores, scores, 20.0, 10, 30) == 1.0
    assert estimate_recall(many, many, 0.9, 20, 10_000) > 0.999


@pytest.mark.parametrize(
    ("rough", "exact"),
    [
        (np.ones(30), np.arange(30.0)),  # the rough scores say nothing
        (np.arange(30.0), -np.arange(30.0)),  # or the contrary
        (np.r_[np.zeros(20), np.ones(10)], np.arange(30.0)),  # or not how many rows lie below the cut
        (np.arange(5.0), np.arange(5.0)),  # too few to see how far they are off
    ],
)
def test_where_nothing_can_be_concluded_nothing_is_stated(rough: np.ndarray, exact: np.ndarray) -> None:
    assert estimate_recall(rough, exact, float(np.sort(exact)[-3]), 3, 1000) == 0.0
