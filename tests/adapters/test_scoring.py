"""The exact scan under adapted queries against the dense matrix in float64, its bounds, and scans that are shared."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.adapters.quari import scoring
from eyespot.adapters.quari._ceilings import CodedBounds, PlainBounds
from eyespot.adapters.quari._device import OnDevice
from eyespot.adapters.quari._directions import Outside, ways
from eyespot.adapters.quari._formula import Formula
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.kernels.codes import Codes, NotFiniteVectors, quantise
from eyespot.kernels.rows import RowBlocks
from eyespot.types import AdaptedQuery, Mask, NearestRows, ScanRequest, UsageError
from tests.examples import examples
from tests.lazy_import import requires
from tests.wording import check_wording, raises

CODED = {"small": 0, "patience": 0}
MAPS = ["gaussian", "orthonormal", "principal", "anchored", "near the identity", "annihilating", "huge", "tiny", "none"]
GALLERIES = ["clustered", "duplicates", "zero rows", "any length", "half precision"]


class World(NamedTuple):
    vectors: Any  # (n, dim)
    view: AdaptedQuery


def clustered(rng: np.random.Generator, rows: int, dim: int) -> Any:
    """Unit vectors with a common part and directions of falling weight, as embeddings have them."""
    centres = rng.standard_normal((max(1, rows // 20), dim)) / np.sqrt(1 + np.arange(dim))
    vectors = centres[rng.integers(0, len(centres), rows)] + 0.05 * rng.standard_normal((rows, dim)) + 0.2
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def gallery(kind: str, rng: np.random.Generator, rows: int, dim: int) -> Any:
    vectors = clustered(rng, rows, dim)
    if kind == "duplicates":
        vectors = vectors[rng.integers(0, max(1, rows // 9), rows)]
    if kind == "zero rows":
        vectors[rng.integers(0, rows, rows // 3)] = 0
    if kind == "any length":
        vectors *= np.exp(rng.uniform(-9, 9, (rows, 1))).astype(np.float32)
    return vectors.astype(np.float16) if kind == "half precision" else vectors


def bent(kind: str, rng: np.random.Generator, vectors: Any, rank: int) -> AdaptedQuery:
    """A view of the space of some kind."""
    dim = vectors.shape[1]
    query = vectors[0].astype(np.float64) + 0.3 * rng.standard_normal(dim)
    left, right = rng.standard_normal((2, dim, rank))
    identity = float(kind in ("anchored", "near the identity", "annihilating"))
    if kind == "orthonormal":
        left, right = np.linalg.qr(left)[0], np.linalg.qr(right)[0]
    if kind == "principal":
        left = right = np.linalg.svd(vectors[:50].astype(np.float64), full_matrices=False)[2][:rank].T
    if kind in ("anchored", "near the identity"):
        left, right = 0.8 * left / np.linalg.norm(left), right / np.linalg.norm(right)
    if kind == "near the identity":
        left *= 1e-3
    if kind == "annihilating":  # the identity less a projection that holds the first rows: their f(x) is 0
        left = np.linalg.svd(vectors[: min(rank, 3)].astype(np.float64), full_matrices=False)[2].T
        right = -left
    sizes = {"huge": 1e15, "tiny": 1e-15}
    left, right = left * sizes.get(kind, 1), right * sizes.get(kind, 1)
    if kind == "none":
        left, right, identity = left[:, :0], right[:, :0], 1.0
    return view(query, left, right, identity)


def view(query: Any, left: Any, right: Any, identity: float) -> AdaptedQuery:
    query = np.asarray(query, np.float64)
    return AdaptedQuery(
        (query / np.linalg.norm(query)).astype(np.float32),
        np.asarray(left, np.float32),
        np.asarray(right, np.float32),
        identity,
    )


def by_the_matrix(adapted: AdaptedQuery, vectors: Any) -> Any:
    """cos(query, f(x)) by the dense matrix in float64; 0 where f(x) is nothing but rounding."""
    rows, query = vectors.astype(np.float64), adapted.query.astype(np.float64)
    left, right = adapted.left.astype(np.float64), adapted.right.astype(np.float64)
    mapped = rows @ (adapted.identity * np.eye(len(query)) + left @ right.T)
    lengths = np.linalg.norm(mapped, axis=1)
    size = adapted.identity + np.linalg.norm(left) * np.linalg.norm(right)
    mask = lengths > 1e-9 * size * np.linalg.norm(rows, axis=1)
    return np.where(mask, mapped @ query / np.where(mask, lengths, 1) / np.linalg.norm(query), 0.0)


def assert_best(found: NearestRows, j: int, true: Any, k: int, allowed: Any = None) -> None:
    """The k best of the true scores, best first, each row once; what differs by rounding alone may change places."""
    rows = found.rows[j]
    where = np.arange(len(true)) if allowed is None else np.flatnonzero(allowed)
    best = -np.sort(-true[where])[:k]
    assert len(rows) == len(set(rows.tolist())) == min(k, len(where)) and set(rows.tolist()) <= set(where.tolist())
    assert np.abs(true[rows] - best).max(initial=0) < 1e-9
    assert np.abs(found.scores[j] - true[rows]).max(initial=0) < 1e-6


def world(data: st.DataObject, rows: int, widest: int = 40) -> World:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31), "seed"))
    dim, rank = data.draw(st.integers(1, widest), "dim"), data.draw(st.integers(1, 9), "rank")
    vectors = gallery(data.draw(st.sampled_from(GALLERIES), "gallery"), rng, rows, dim)
    return World(vectors, bent(data.draw(st.sampled_from(MAPS), "map"), rng, vectors, rank))


SOUND = view([1, 0], np.eye(2), np.eye(2), 1.0)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_any_small_world_is_ranked_as_by_the_matrix(data: st.DataObject) -> None:
    rows = data.draw(st.sampled_from([1, 2, 17, 300]), "rows")
    vectors, adapted = world(data, rows)
    k = data.draw(st.integers(1, rows + 5), "k")
    cut = data.draw(st.integers(0, rows), "cut")

    found = AdaptedIndex([vectors[:cut], vectors[cut:]]).search([adapted], k)

    assert_best(found, 0, by_the_matrix(adapted, vectors), k)


@pytest.mark.parametrize("kind", ["gaussian", "anchored"])
@pytest.mark.parametrize(("options", "k"), [(CODED, 50), (CODED, 1000), ({}, 50)], ids=["coded", "many", "plain"])
def test_twenty_thousand_rows(kind: str, options: dict[str, Any], k: int) -> None:
    rng = np.random.default_rng(3)
    vectors = clustered(rng, 20_000, 96)
    views = [bent(kind, rng, vectors, 24) for _ in range(2)]
    index = AdaptedIndex([vectors[:8000], vectors[8000:]], **options)

    found = index.search(views, k)

    for j, adapted in enumerate(views):
        assert_best(found, j, Formula.of(adapted, vectors.shape[1]).scores(vectors), k)


@pytest.mark.parametrize("coded", [0, 1, 2])
def test_blocks_without_codes_are_looked_at_by_their_vectors(coded: int) -> None:
    rng = np.random.default_rng(21)
    vectors = clustered(rng, 6000, 96)
    blocks = np.split(vectors, [2500, 2600])
    codes = [quantise(block) if at == coded else None for at, block in enumerate(blocks)]
    views, allowed = [bent(kind, rng, vectors, 24) for kind in ("gaussian", "anchored")], rng.random(6000) < 0.7
    index = AdaptedIndex(blocks, codes, small=0, patience=4)

    found = [index.search(views, 50, mask) for mask in (None, allowed)]

    assert [part is not None for part in index.codes] == [at == coded for at in range(3)]
    assert np.array_equal(index.search(views, 50).rows, found[0].rows)
    assert all(part is not None for part in index.codes)  # made by now
    for one, mask in zip(found, (None, allowed), strict=True):
        true = AdaptedIndex(blocks, patience=math.inf).search(views, 50, mask)
        assert np.array_equal(one.rows, true.rows) and np.array_equal(one.scores, true.scores)


def test_a_card_that_runs_out_of_memory_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(13)
    vectors = clustered(rng, 20_000, 96)
    views = [bent("gaussian", rng, vectors, 24)]
    index = AdaptedIndex(vectors, patience=0).on(torch.device("cpu"))
    assert index.search(views, 50).rows.shape == (1, 50)
    tried = []

    def full(*_: object, **__: object) -> None:
        tried.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.linalg, "vector_norm", full)
    found = index.search(views, 50)

    plain = AdaptedIndex(vectors).search(views, 50)
    assert np.array_equal(found.rows, plain.rows) and np.array_equal(found.scores, plain.scores)
    assert tried == [1] and index.search(views, 50).rows.shape == (1, 50) and tried == [1]


@pytest.mark.parametrize("options", [CODED, {}])
def test_ties_go_to_the_lower_row(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    distinct = clustered(rng, 40, 20)
    vectors = np.tile(distinct, (50, 1))
    adapted = bent("gaussian", rng, vectors, 6)
    best = int(by_the_matrix(adapted, distinct).argmax())

    found = AdaptedIndex([vectors[:777], vectors[777:]], **options).search([adapted], 30)

    assert found.rows[0].tolist() == [best + 40 * copy for copy in range(30)]


@pytest.mark.parametrize("options", [CODED, {}])
def test_numbers_that_leave_float32(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    vectors = clustered(rng, 2000, 16) * np.float32(1e30)
    adapted = bent("huge", rng, vectors, 4)

    assert_best(AdaptedIndex(vectors, **options).search([adapted], 9), 0, by_the_matrix(adapted, vectors), 9)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_no_score_is_above_its_ceiling(data: st.DataObject) -> None:
    vectors, adapted = world(data, 300, widest=70)
    rows, formula = RowBlocks([vectors]), Formula.of(adapted, vectors.shape[1])
    index = AdaptedIndex([vectors], **CODED)
    index.prepare()
    true = by_the_matrix(adapted, vectors)

    for first in (CodedBounds(index.codes, index.lengths, 1), PlainBounds(rows, index.lengths)):
        for way in (ways(formula, index.sample), Outside.of(formula, formula.direction, index.sample)):
            for count in (0, 3, 15):
                assert (first.ceilings([way.first(count)], None)[0] >= true).all()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_torch_rules_out_no_row_that_is_among_the_best(device: str, data: st.DataObject) -> None:
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    vectors, adapted = world(data, 300, widest=70)
    rows, lengths = RowBlocks([vectors[:120], vectors[120:]]), AdaptedIndex([vectors]).lengths
    k, allowed = data.draw(st.integers(1, 100)), np.random.default_rng(0).random(300) < 0.5
    true = by_the_matrix(adapted, vectors)

    for mask in (None, allowed):
        found = OnDevice(rows, lengths, torch.device(device)).candidates(Formula.of(adapted, vectors.shape[1]), k, mask)

        there = np.arange(300) if mask is None else np.flatnonzero(mask)
        best = there[np.argsort(-true[there])[:k]]
        assert set(found) <= set(there) and (np.diff(found) > 0).all()
        assert len(found) >= k and true[best[-1]] <= true[found].max(initial=-1)
        assert np.sort(true[found])[-k:] == pytest.approx(np.sort(true[best]), abs=1e-9)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_float32_and_its_error_hold_the_score(data: st.DataObject) -> None:
    vectors, adapted = world(data, 300, widest=70)
    index = AdaptedIndex([vectors])

    low, high = Formula.of(adapted, vectors.shape[1]).near(vectors.astype(np.float32), index.lengths.astype(np.float64))

    true = by_the_matrix(adapted, vectors)
    assert (low <= true).all() and (high >= true).all()


def test_nothing_to_search() -> None:
    adapted = view([1, 0], np.eye(2), np.eye(2), 1.0)

    assert AdaptedIndex([]).search([adapted], 3).rows.shape == (1, 0)
    assert AdaptedIndex([np.ones((0, 2), np.float32)]).search([adapted], 3).rows.shape == (1, 0)
    assert AdaptedIndex([np.ones((4, 2), np.float32)]).search([], 3).rows.shape == (0, 3)
    assert AdaptedIndex([np.ones((4, 2), np.float32)]).search([adapted], 3, np.zeros(4, bool)).rows.shape == (1, 0)
    assert AdaptedIndex([np.ones((4, 2), np.float32)]).rescore(adapted, []).shape == (0,)


FOUR = np.ones((4, 2), np.float32)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: AdaptedIndex([FOUR]).search([SOUND], 0),
        lambda: AdaptedIndex([FOUR]).search([SOUND], 1, np.ones(3, bool)),
        lambda: AdaptedIndex([FOUR]).search([SOUND], 1, np.ones(4)),
        lambda: AdaptedIndex([FOUR]).search([SOUND._replace(query=np.ones(3, np.float32))], 1),
        lambda: AdaptedIndex([FOUR]).search([SOUND._replace(left=np.ones((2, 5), np.float32))], 1),
        lambda: AdaptedIndex([FOUR]).search([SOUND._replace(right=np.full((2, 2), np.nan, np.float32))], 1),
        lambda: AdaptedIndex([FOUR]).search([SOUND._replace(identity=math.inf)], 1),
        lambda: AdaptedIndex([FOUR * np.float32(np.nan)]).search([SOUND], 1),
        lambda: AdaptedIndex([FOUR * np.float32(np.inf)]).search([SOUND], 1),
        lambda: AdaptedIndex([FOUR]).rescore(SOUND, [4]),
        lambda: AdaptedIndex([FOUR]).rescore(SOUND, [-1]),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(ask: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        ask()
    check_wording(str(caught.value))


@pytest.mark.parametrize("options", [{"patience": math.inf}, CODED], ids=["plain", "coded"])
def test_rows_that_are_not_finite_spoil_no_search_that_leaves_them_out(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    vectors = clustered(rng, 5000, 24).astype(np.float32)
    adapted, allowed = bent("near the identity", rng, vectors, 3), np.ones(5000, bool)
    allowed[[0, 1234]] = False
    expected = AdaptedIndex([vectors], **options).search([adapted], 20, allowed)
    vectors[0, 3], vectors[1234, 3] = np.nan, np.inf
    index = AdaptedIndex([vectors], **options)

    found = index.search([adapted], 20, allowed)
    assert found.rows.tolist() == expected.rows.tolist()
    with pytest.raises(NotFiniteVectors):
        index.search([adapted], 20)


def test_codes_can_be_brought_along() -> None:
    rng = np.random.default_rng(11)
    vectors, others = clustered(rng, 2, 64), clustered(rng, 2, 64)
    codes: list[Codes] = [quantise(vectors)]

    index = AdaptedIndex([vectors], codes, small=0)
    index.prepare()

    assert index.codes[0] is codes[0]
    with raises(UsageError):
        AdaptedIndex([others], codes)


ROWS, DIM = 3000, 24


@pytest.fixture
def every_batch_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of few rows, and in several windows."""
    monkeypatch.setattr(scoring, "_FEW_LEFT", 20)
    monkeypatch.setattr(AdaptedIndex, "window", 1024)


def shared_world(seed: int) -> list[np.ndarray]:
    """Two blocks with many equal rows."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((ROWS // 3, DIM)).astype(np.float16)[rng.integers(0, ROWS // 3, ROWS)]
    return [rows[:1700].astype(np.float32), rows[1700:]]


@st.composite
def requests(draw: st.DrawFn) -> list[ScanRequest]:
    """Up to twelve adapted queries with up to six masks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = draw(st.lists(st.sampled_from([0.0, 0.02, 0.3, 0.6, 0.95, 1.0]), min_size=1, max_size=6))
    masks: list[Mask | None] = [None, *(rng.random(ROWS) < share for share in shares)]
    scans = []
    for _ in range(draw(st.integers(1, 12))):
        query, left, right = (rng.standard_normal(shape).astype(np.float32) for shape in (DIM, (DIM, 3), (DIM, 3)))
        view = AdaptedQuery(query / np.linalg.norm(query), 0.2 * left, right, float(rng.integers(0, 2)))
        scans.append(ScanRequest(view, int(rng.choice([1, 5, 60])), masks[rng.integers(len(masks))]))
    return scans


@requires("numba")
@pytest.mark.usefixtures("every_batch_is_scanned")
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 20), coded=st.sampled_from(["all", "some", "none"]), scans=requests())
def test_each_answer_is_that_of_a_scan_of_its_own(seed: int, coded: str, scans: list[ScanRequest]) -> None:
    blocks = shared_world(seed)
    codes = [
        quantise(block, 1) if coded == "all" or (coded == "some" and not at) else None
        for at, block in enumerate(blocks)
    ]
    index = AdaptedIndex(blocks, None if coded == "none" else codes, threads=2, small=0, patience=float("inf"))
    for one, (rows, scores) in zip(scans, index.ranked_each(scans), strict=True):
        own_rows, own_scores = index.ranked([one.query], one.k, one.mask)
        assert rows.tolist() == own_rows.tolist()
        assert scores.tobytes() == own_scores.tobytes()
