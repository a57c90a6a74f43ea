"""How deep a symmetric matrix goes below zero: never less than the truth, and little more."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.adapters.quari._directions import NormTerms
from eyespot.adapters.quari._formula import Formula
from eyespot.types import AdaptedQuery
from tests.examples import examples


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
