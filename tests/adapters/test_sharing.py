"""Adapted queries that share a reading of the codes find what each finds alone, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.adapters.quari import scoring
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.kernels.codes import quantise
from eyespot.types import AdaptedQuery, Mask, ScanRequest
from tests.examples import examples

pytest.importorskip("numba", reason="codes need the extra [fast]")

ROWS, DIM = 3000, 24


@pytest.fixture(autouse=True)
def every_batch_is_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of few rows, and in several windows."""
    monkeypatch.setattr(scoring, "_FEW_LEFT", 20)
    monkeypatch.setattr(AdaptedIndex, "window", 1024)


def world(seed: int) -> list[np.ndarray]:
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
    asked = []
    for _ in range(draw(st.integers(1, 12))):
        query, left, right = (rng.standard_normal(shape).astype(np.float32) for shape in (DIM, (DIM, 3), (DIM, 3)))
        view = AdaptedQuery(query / np.linalg.norm(query), 0.2 * left, right, float(rng.integers(0, 2)))
        asked.append(ScanRequest(view, int(rng.choice([1, 5, 60])), masks[rng.integers(len(masks))]))
    return asked


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 20), coded=st.sampled_from(["all", "some", "none"]), asked=requests())
def test_each_answer_is_that_of_a_scan_of_its_own(seed: int, coded: str, asked: list[ScanRequest]) -> None:
    blocks = world(seed)
    codes = [
        quantise(block, 1) if coded == "all" or (coded == "some" and not at) else None
        for at, block in enumerate(blocks)
    ]
    index = AdaptedIndex(blocks, None if coded == "none" else codes, threads=2, small=0, patience=float("inf"))
    for one, (rows, scores) in zip(asked, index.ranked_each(asked), strict=True):
        own_rows, own_scores = index.ranked([one.query], one.k, one.mask)
        assert rows.tolist() == own_rows.tolist()
        assert scores.tobytes() == own_scores.tobytes()
