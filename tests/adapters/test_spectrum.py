"""How deep a symmetric matrix goes below zero: never less than the truth, and little more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.adapters.quari._directions import NormTerms
from eyespot.adapters.quari._formula import Formula
from eyespot.adapters.quari._spectrum import depth, leading_pairs
from eyespot.types import AdaptedQuery
from tests.examples import examples

SPECTRA = ["flat", "steep", "a few", "positive", "negative", "one depth", "zero"]


def spectrum(kind: str, rng: np.random.Generator, rows: int) -> Any:
    values = rng.standard_normal(rows)
    if kind == "steep":
        values *= 0.5 ** np.arange(rows)
    if kind == "a few":
        values[3:] *= 1e-3
    if kind in ("positive", "negative"):
        values = np.abs(values) * (1 if kind == "positive" else -1)
    if kind == "one depth":
        values = np.where(values > 0, values, -1.0)
    return values * (kind != "zero")


def symmetric(values: Any, rng: np.random.Generator) -> Any:
    turn = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    whole = (turn * values) @ turn.T
    return (whole + whole.T) / 2


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_what_is_left_goes_no_deeper_and_not_much_less(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31), "seed"))
    rows, scale = data.draw(st.sampled_from([1, 2, 17, 60, 128]), "rows"), data.draw(st.sampled_from([1e-120, 1, 1e90]))
    form = symmetric(spectrum(data.draw(st.sampled_from(SPECTRA), "spectrum"), rng, rows), rng) * scale
    largest = float(np.linalg.norm(form, 2))
    values, vectors = leading_pairs(form, data.draw(st.sampled_from([1, 6, 24]), "pairs"))
    taken = slice(0, data.draw(st.integers(0, len(values)), "taken"))
    rest = form - (vectors[:, taken] * values[taken]) @ vectors[:, taken].T
    true = max(0.0, -float(np.linalg.eigvalsh(rest)[0]))

    for guess in (0.0, true / 2, true):
        step = largest / 1024 + 1e-200
        found = depth(rest, guess, step)

        assert found >= true - 1e-13 * largest
        assert found <= guess + max(step, 2 * (true - guess)) + 1e-11 * largest
    assert depth(rest, 0.9 * true, step) <= 1.3 * true + step + 1e-11 * largest


@pytest.mark.parametrize("kind", ["steep", "a few", "one depth", "zero"])
def test_the_pairs_farthest_from_zero_are_found(kind: str) -> None:
    rng = np.random.default_rng(1)
    form = symmetric(np.sort(spectrum(kind, rng, 128)), rng)

    values, vectors = leading_pairs(form, 24)

    true = np.linalg.eigvalsh(form)
    largest = true[np.argsort(-np.abs(true))[:3]]
    assert np.abs(vectors.T @ vectors - np.eye(len(values))).max(initial=0) < 1e-12
    assert (np.diff(values) >= 0).all()
    assert np.abs(values[:, None] - largest).min(axis=0).max() < 0.01 * max(1.0, float(np.abs(true).max()))


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_a_map_about_the_identity_is_bounded_in_every_direction(data: st.DataObject) -> None:
    """Of the whole matrix: less the gains, plus the debts, no eigenvalue is below the floor."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31), "seed"))
    dim, rank = 90, data.draw(st.sampled_from([1, 5, 30, 44]), "rank")
    left, right = rng.standard_normal((2, dim, rank)) / (dim * rank) ** 0.5
    left = left * data.draw(st.sampled_from([0.0, 1e-9, 0.5, 30.0]), "size")
    shared = data.draw(st.sampled_from([0.0, 3.0]), "shared")
    left, right = (part + shared * rng.standard_normal((dim, 1)) / dim for part in (left, right))
    if data.draw(st.booleans(), "repeated"):
        left[:, rank // 2 :] = left[:, :1]
    query = rng.standard_normal(dim).astype(np.float32)
    formula = Formula.of(AdaptedQuery(query, left.astype(np.float32), right.astype(np.float32), 1.0), dim)
    sample = rng.standard_normal((200, dim)).astype(np.float32)
    bent = formula.identity * np.eye(dim) + formula.left @ formula.right.T
    terms = NormTerms.of(formula, formula.direction, sample)

    for count in (0, 1, 4, 22, 78):
        one = terms.first(count)
        rest = bent @ bent.T - one.gains.T @ one.gains + one.debts.T @ one.debts - one.floor * np.eye(dim)
        lowest = float(np.linalg.eigvalsh(rest)[0])
        assert lowest >= -one.slack
        assert len(one.gains) + len(one.debts) <= count
        assert lowest <= 0.05 * formula.identity**2 + 0.5 * float(np.linalg.norm(bent - formula.identity * np.eye(dim)))
        assert one.slack < 1e-9 * formula.size**2
