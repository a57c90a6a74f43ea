"""Queries that share a scan get what each gets alone, bit for bit, whatever its k and its mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.indexes import exact
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import NotFiniteVectors, quantise
from eyespot.types import Mask, ScanRequest, UsageError
from tests.examples import examples

pytest.importorskip("numba", reason="codes need the extra [fast]")

ROWS, DIM = 700, 16


@pytest.fixture(autouse=True)
def every_batch_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of few rows."""
    monkeypatch.setattr(exact, "_FEW_LEFT", 20)
    monkeypatch.setattr(exact, "_AT_ONCE", 20)


def world(seed: int) -> list[np.ndarray]:
    """Three blocks with many equal rows, one of them in half precision."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((ROWS // 4, DIM)).astype(np.float16)
    rows = vectors[rng.integers(0, len(vectors), ROWS)].astype(np.float32)
    return [rows[:300], rows[300:450].astype(np.float16), rows[450:]]


def index_of(blocks: Sequence[np.ndarray], coded: Sequence[bool]) -> Exact:
    codes = [quantise(block, 1) if use else None for block, use in zip(blocks, coded, strict=True)]
    return Exact(blocks, codes if any(coded) else None, threads=2, small=0, patience=float("inf"))


@st.composite
def requests(draw: st.DrawFn) -> list[ScanRequest]:
    """Up to forty searches with up to twelve masks, from all rows to none, many of them the same array."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shares = draw(st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0]), min_size=1, max_size=12))
    masks: list[Mask | None] = [None, *(rng.random(ROWS) < share for share in shares)]
    count = draw(st.integers(1, 40))
    queries = rng.standard_normal((count, DIM)).astype(np.float32)
    queries[rng.random(count) < 0.1] = 0  # under which all rows tie
    depths = [1, 2, 10, 50, ROWS + 7]
    return [ScanRequest(one, int(rng.choice(depths)), masks[rng.integers(len(masks))]) for one in queries]


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 50), coded=st.tuples(st.booleans(), st.booleans(), st.booleans()), asked=requests())
def test_each_answer_is_that_of_a_scan(seed: int, coded: tuple[bool, bool, bool], asked: list[ScanRequest]) -> None:
    index = index_of(world(seed), coded)
    together = index.ranked_each(asked)
    for one, (rows, scores) in zip(asked, together, strict=True):
        own_rows, own_scores = index.ranked(one.query[None], one.k, one.mask)
        assert rows.tolist() == own_rows.tolist()
        assert scores.tobytes() == own_scores.tobytes()


@pytest.mark.parametrize(("k", "value", "mask"), [(0, 1, None), (5, np.nan, None), (5, 1, np.ones(3, bool))])
def test_what_a_search_refuses_is_refused(k: int, value: float, mask: Mask | None) -> None:
    index, good = index_of(world(0), [True] * 3), np.ones(DIM, np.float32)
    with pytest.raises(UsageError):
        index.search_each([ScanRequest(good, 5), ScanRequest(good * value, k, mask)])


def test_a_row_that_is_not_finite_is_named_only_where_a_mask_lets_it_through() -> None:
    blocks = world(0)
    blocks[0][7] = np.nan
    index, query = index_of(blocks, [True] * 3), np.ones(DIM, np.float32)
    (found,) = index.search_each([ScanRequest(query, 5, np.arange(ROWS) != 7)])
    assert found.rows.shape == (1, 5)
    with pytest.raises(NotFiniteVectors):
        index.search_each([ScanRequest(query, 5)])
