"""Exact search must rank as a double-precision scan over all rows would, whatever the vectors and the first pass."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.indexes import exact
from eyespot.indexes._batches import QueryBatch
from eyespot.indexes._coded import CodedProducts, MixedProducts
from eyespot.indexes._plain import PlainProducts
from eyespot.indexes.exact import Exact
from eyespot.kernels import compiled
from eyespot.kernels.codes import Codes, quantise
from eyespot.kernels.rows import RowBlocks
from eyespot.types import EyespotError, NearestRows, UsageError
from tests.examples import examples
from tests.processors import compiled_for
from tests.wording import check_wording, raises

PASSES = ("plain", "few", "many", "mixed", "widened")


class WithoutKernels(Exact):
    """As in a process that has not loaded numba: codes are scanned for one query at a time by numpy."""

    def search(self, queries: np.ndarray, k: int, mask: np.ndarray | None = None) -> NearestRows:
        """Each query twice, the second time by the products of the first."""
        if compiled():
            import eyespot.kernels.scans  # noqa: F401 # which may be wanted while numba is hidden
        with pytest.MonkeyPatch.context() as patch:
            patch.delitem(sys.modules, "numba", raising=False)
            found = [super(WithoutKernels, self).search(query[None], k, mask) for query in queries for _ in range(2)]
        for one, again in zip(found[::2], found[1::2], strict=True):
            assert np.array_equal(one.rows, again.rows) and np.array_equal(one.scores, again.scores)
        return NearestRows(*(np.concatenate([one[at] for one in found[::2]]) for at in range(2)))


def opened(blocks: Any, how: str, **options: Any) -> Exact:
    """An index that takes one first pass only, at any size; of `mixed`, every second block has codes."""
    if how == "mixed":
        blocks = np.array_split(blocks, 3) if isinstance(blocks, np.ndarray) else blocks
        codes = [None if at % 2 else quantise(block) for at, block in enumerate(blocks)]
        return Exact(blocks, codes, patience=math.inf, small=0, **options)
    kind = WithoutKernels if how == "widened" else Exact
    return kind(blocks, patience=math.inf if how == "plain" else 0, small=0, **options)


def unit(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    vectors = rng.standard_normal((rows, dim)) + rng.standard_normal(dim)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def every_score(blocks: Sequence[np.ndarray], queries: np.ndarray) -> np.ndarray:
    """(m, n) in double precision, each row summed alike."""
    vectors = np.concatenate([block.astype(np.float64) for block in blocks])
    return np.stack([(vectors * query.astype(np.float64)).sum(axis=1) for query in queries])


def assert_best(found: NearestRows, scores: np.ndarray, k: int, mask: np.ndarray) -> None:
    """The k best rows under the mask; rows may change places only within a difference of 1e-6 (relative if large)."""
    count = min(k, int(mask.sum()))
    assert found.rows.shape == found.scores.shape == (len(scores), count)
    assert found.rows.dtype == np.int64 and found.scores.dtype == np.float32
    for rows, given_scores, true in zip(found.rows, found.scores, scores, strict=True):
        best = np.lexsort((np.arange(len(true)), np.where(mask, -true, np.inf)))[:count]
        slack = 1e-6 * max(1.0, float(np.abs(true).max(initial=0)))
        assert mask[rows].all() and len(set(rows.tolist())) == count
        assert np.allclose(true[rows], true[best], rtol=0, atol=slack * 1e-6)
        with np.errstate(over="ignore"):  # a score beyond float32 is given as infinite; the order still holds
            narrowed = true[rows].astype(np.float32)
        assert np.allclose(given_scores, narrowed, rtol=1e-6, atol=1e-6)
        for (one, s), (other, t) in pairwise(zip(rows, true[rows], strict=True)):
            assert s != t or one < other


def check(blocks: Sequence[np.ndarray], queries: np.ndarray, k: int, mask: np.ndarray | None, how: str) -> None:
    found = opened(blocks, how, threads=2).search(queries, k, mask)
    rows = sum(len(block) for block in blocks)
    assert_best(found, every_score(blocks, queries), k, np.ones(rows, np.bool_) if mask is None else mask)


@pytest.fixture(autouse=True)
def first_pass_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small worlds are scored outright; here the first pass must do its work on them too."""
    monkeypatch.setattr(exact, "_AT_ONCE", 0)
    monkeypatch.setattr(exact, "_FEW_LEFT", 0)
    if compiled():
        monkeypatch.setattr("eyespot.kernels.tiles.fast", lambda: True)


@st.composite
def hostile(draw: st.DrawFn) -> tuple[list[np.ndarray], np.ndarray]:
    """Blocks of vectors with duplicates, near ties, zeros, and lengths from 1e-30 to 1e15; and queries like them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, dim = draw(st.integers(1, 300)), draw(st.sampled_from((1, 2, 7, 64, 65, 130)))
    vectors = unit(rng, rows, dim)
    kinds = draw(st.sets(st.sampled_from(("same", "near", "zero", "huge", "tiny", "mixed", "spike"))))
    some = rng.random(rows) < 0.5
    if "same" in kinds:
        vectors[some] = vectors[0]
    if "near" in kinds:
        vectors[~some] = vectors[0] + 1e-7 * unit(rng, rows, dim)[~some]
    if "spike" in kinds:
        vectors[some, 0] += 40
    if "zero" in kinds:
        vectors[rng.random(rows) < 0.3] = 0
    scale = {"huge": 1e15, "tiny": 1e-30}.get(next(iter(kinds & {"huge", "tiny"}), ""), 1.0)
    lengths = 10.0 ** rng.uniform(-12, 12, (rows, 1)) if "mixed" in kinds else np.ones((rows, 1))
    vectors = (vectors * lengths * scale).astype(np.float32)
    queries = unit(rng, draw(st.sampled_from((1, 3, 5, 9))), dim)
    if draw(st.booleans()):
        queries[0] = draw(st.sampled_from((0.0, 1e-20, 1e10))) * queries[0]
    return parted(draw, vectors), queries


def parted(draw: st.DrawFn, vectors: np.ndarray) -> list[np.ndarray]:
    cuts = sorted(draw(st.lists(st.integers(0, len(vectors)), max_size=3)))
    blocks = np.split(vectors, cuts)
    if float(np.abs(vectors).max()) < 6e4 and draw(st.booleans()):
        blocks[0] = blocks[0].astype(np.float16)
    return blocks


@pytest.mark.parametrize("how", PASSES)
@settings(max_examples=examples(60), deadline=None)
@given(
    world=hostile(),
    k=st.integers(1, 400),
    density=st.sampled_from((None, 0.0, 0.01, 0.3, 0.99)),
    seed=st.integers(0, 99),
)
def test_the_answer_is_that_of_a_double_precision_scan(
    how: str, world: tuple[list[np.ndarray], np.ndarray], k: int, density: float | None, seed: int
) -> None:
    blocks, queries = world
    queries = np.tile(queries, (5, 1)) if how == "many" else queries[:4]
    rows = sum(len(block) for block in blocks)
    mask = None if density is None else np.random.default_rng(seed).random(rows) < density
    check(blocks, queries, k, mask, how)


@pytest.mark.parametrize("how", PASSES)
@settings(max_examples=examples(40), deadline=None)
@given(world=hostile())
def test_the_bound_of_the_first_pass_holds_for_every_row(how: str, world: tuple[list[np.ndarray], np.ndarray]) -> None:
    blocks, queries = world
    queries = np.tile(queries, (5, 1)) if how == "many" else queries[:4]
    rows, scores = sum(len(block) for block in blocks), every_score(blocks, queries)
    codes = [quantise(block) for block in blocks]
    batch, first = QueryBatch.of(queries, rows, None), CodedProducts(codes, 2)
    shortlists = first.scan_each(batch)
    if how == "plain":
        shortlists = PlainProducts(RowBlocks(blocks)).scan_each(batch)
    if how == "mixed":
        shortlists = MixedProducts(RowBlocks(blocks), [None, *codes[1:]], 2).scan_each(batch)
    if how == "widened":
        shortlists = [
            found for at in range(len(queries)) for found in first.widened_pass(batch.part(slice(at, at + 1)))
        ]
    for shortlist, true in zip(shortlists, scores, strict=True):
        assert len(shortlist.rows) == rows  # nothing can be ruled out when all are wanted
        assert (shortlist.low <= true[shortlist.rows]).all() and (true[shortlist.rows] <= shortlist.high).all()


@settings(max_examples=examples(60), deadline=None)
@given(world=hostile())
def test_codes_hold_what_they_promise(world: tuple[list[np.ndarray], np.ndarray]) -> None:
    for block in world[0]:
        assert quantise(block, threads=1).proven(block)


@pytest.mark.parametrize("how", PASSES)
@pytest.mark.parametrize("k", [1, 700])
def test_a_larger_clustered_gallery(how: str, k: int) -> None:
    rng = np.random.default_rng(1)
    centres = 3 * rng.standard_normal((40, 96))
    vectors = (centres[rng.integers(0, 40, 20_000)] + rng.standard_normal((20_000, 96)) + 2).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[:: 20_000 // 19] + 0.02 * rng.standard_normal((20, 96)).astype(np.float32)
    check([vectors[:12_345], vectors[12_345:]], queries if how == "many" else queries[:3], k, None, how)


@pytest.mark.parametrize("how", PASSES)
def test_rising_scores_and_ten_thousand_ties(how: str) -> None:
    """The worst order for a running threshold, then more ties than a list holds at first."""
    vectors = np.zeros((20_000, 8), np.float32)
    vectors[:, 0] = np.minimum(np.arange(20_000) / 10_000, 1)
    queries = np.tile(np.eye(8, dtype=np.float32)[:1], (20 if how == "many" else 1, 1))
    found = opened(vectors, how).search(queries, 60)
    assert found.rows.tolist() == [list(range(10_000, 10_060))] * len(queries)


@pytest.mark.parametrize("how", PASSES)
def test_a_row_that_rounding_hides(how: str) -> None:
    """A code tells 127ths: 0.49 of one becomes 0 and hides the best row, 0.51 becomes 1 and flatters the others."""
    vectors = np.zeros((41, 64), np.float32)
    vectors[:, 0] = 1
    vectors[:40, 1:31] = 0.51 / 127
    vectors[40, 1:] = 0.49 / 127
    queries = np.ones((20 if how == "many" else 1, 64), np.float32)
    queries[:, 0] = 0
    found = opened(np.concatenate([vectors, -vectors]), how).search(queries, 5)
    assert found.rows.tolist() == [[40, 0, 1, 2, 3]] * len(queries)


@pytest.mark.parametrize("how", PASSES)
@pytest.mark.parametrize(("length", "query"), [(1e-37, 1), (1e-42, 1), (1e37, 1), (1e37, 1e37), (1e-30, 1e-30)])
def test_lengths_at_the_ends_of_float32(how: str, length: float, query: float) -> None:
    rng = np.random.default_rng(2)
    vectors, queries = ((unit(rng, rows, 64) * size).astype(np.float32) for rows, size in ((500, length), (20, query)))
    true = every_score([vectors], queries)
    found = opened(vectors, how).search(queries if how == "many" else queries[:2], 10)
    for rows, scores in zip(found.rows, true, strict=False):
        assert rows.tolist() == np.lexsort((np.arange(500), -scores))[:10].tolist()


def test_a_block_without_codes_is_scanned_alone_until_it_has_some() -> None:
    rng = np.random.default_rng(5)
    blocks = [unit(rng, rows, 64) for rows in (900, 0, 700, 40)]
    codes, queries = [quantise(blocks[0]), None, None, quantise(blocks[3])], unit(rng, 4, 64)
    index = Exact(blocks, codes, small=0, patience=3)

    found = [index.search(queries, 30) for _ in range(2)]
    assert [part is not None for part in index.codes] == [True, False, False, True]
    found += [index.search(queries, 30) for _ in range(3)]

    assert index.codes[0] is codes[0] and all(part is not None for part in index.codes)
    true = opened(blocks, "plain").search(queries, 30)
    assert all(np.array_equal(one.rows, true.rows) and np.array_equal(one.scores, true.scores) for one in found)


def test_many_callers_at_once() -> None:
    rng = np.random.default_rng(8)
    index, queries = opened(unit(rng, 5000, 64), "few"), unit(rng, 40, 64)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda query: index.search(query[None], 20).rows[0].tolist(), queries))
    assert together == index.search(queries, 20).rows.tolist()


FIVE = np.ones((5, 4), np.float32)


def spoiled(value: float) -> np.ndarray:
    vectors = np.ones((30, 4), np.float32)
    vectors[20, 1] = value
    return vectors


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Exact(FIVE).search(np.ones((1, 3)), 1),
        lambda: Exact(FIVE).search(np.ones(4), 1),
        lambda: Exact(FIVE).search(np.array([[1, 1, np.nan, 1]]), 1),
        lambda: Exact(FIVE).search(np.array([[1, 1, np.inf, 1]]), 1),
        lambda: Exact(FIVE).search(np.ones((1, 4)), 0),
        lambda: Exact(FIVE).search(np.ones((1, 4)), -3),
        lambda: Exact(FIVE).search(np.ones((1, 4)), 1, np.ones(4, np.bool_)),
        lambda: Exact(FIVE).search(np.ones((1, 4)), 1, np.ones(5)),
        lambda: Exact([np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)]),
        lambda: Exact(np.ones((2, 3))),
        lambda: Exact(np.ones(3, np.float32)),
        *(
            lambda how=how, count=count, bad=bad: opened(spoiled(bad), how).search(np.ones((count, 4), np.float32), 1)
            for how in ("plain", "few")
            for count in (1, 16)
            for bad in (np.nan, np.inf)
        ),
    ],
)
def test_what_makes_no_sense_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        ask()
    check_wording(str(caught.value))


@pytest.mark.parametrize("count", [1, 16])
@pytest.mark.parametrize("how", PASSES)
def test_rows_that_are_not_finite_spoil_no_search_that_leaves_them_out(how: str, count: int) -> None:
    """As imported vectors have them: in place, and never found."""
    rng = np.random.default_rng(count)
    vectors, mask = unit(rng, 400, 24), np.ones(400, np.bool_)
    mask[[0, 7, 321]] = False
    scores, queries = every_score([vectors], vectors[:count]), vectors[:count].copy()
    vectors[[0, 7, 321], 5] = [np.nan, np.inf, -np.inf]
    assert_best(opened(vectors, how, threads=2).search(queries, 20, mask), scores, 20, mask)


@pytest.fixture
def vectors(tmp_path: Path) -> np.ndarray:
    np.save(tmp_path / "v.npy", unit(np.random.default_rng(5), 400, 70))
    return np.load(tmp_path / "v.npy", mmap_mode="r")


def test_saved_codes_answer_alike(tmp_path: Path, vectors: np.ndarray) -> None:
    quantise(vectors).save(tmp_path / "v")
    codes = Codes.load(tmp_path / "v")
    assert isinstance(codes.codes, np.memmap)
    index = Exact([vectors], [codes], small=0)
    assert index.codes == [codes]
    assert_best(index.search(vectors[:9], 5), every_score([vectors], vectors[:9]), 5, np.ones(400, np.bool_))


def test_codes_of_other_vectors_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    codes = quantise(vectors)
    codes.save(tmp_path / "v")
    other = vectors + np.float32(0.001)
    for block in (other, vectors[:-1], vectors[:, :-1], vectors.astype(np.float16), vectors[::-1]):
        with pytest.raises(UsageError, match="not of these vectors"):
            Exact([np.ascontiguousarray(block)], [codes])
    with pytest.raises(UsageError, match="not of these vectors"):
        Exact([vectors], [codes, codes])
    changed = np.load(tmp_path / "v.npy")
    changed[3] = -changed[3]  # none of the rows the digest looks at
    np.save(tmp_path / "v.npy", changed)
    with pytest.raises(UsageError, match="not of these vectors"):
        Exact([np.load(tmp_path / "v.npy", mmap_mode="r")], [Codes.load(tmp_path / "v")])


def test_damaged_codes_are_refused(tmp_path: Path, vectors: np.ndarray) -> None:
    quantise(vectors).save(tmp_path / "v")
    with (tmp_path / "v.codes.npy").open("r+b") as file:
        file.truncate(1000)
    for name in ("v", "nothing"):
        with raises(EyespotError):
            Codes.load(tmp_path / name)


@pytest.mark.long
@pytest.mark.parametrize("processor", ["generic", "haswell"])
def test_a_kernel_for_an_older_processor_gives_the_same_answers(tmp_path: Path, processor: str) -> None:
    """Compiled for a processor without AVX-512, in another process: one of any kind, and one with AVX2."""
    code = """
import math, numpy as np
from eyespot.indexes import exact
from eyespot.kernels import tiles
exact._AT_ONCE, multiplies_bytes, tiles.fast = 0, tiles.fast, lambda: True
v = np.random.default_rng(0).standard_normal((999, 70)).astype(np.float32)
fast, plain = exact.Exact(v, patience=0, small=0), exact.Exact(v, patience=math.inf)
print((fast.search(v[:20], 9).rows == plain.search(v[:20], 9).rows).all(), len(fast.codes), multiplies_bytes())
"""
    whole = {**os.environ, **compiled_for(processor), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=whole)
    assert done.stdout.split() == ["True", "1", str(processor == "haswell")]
