"""Coefficients of agreement equal worked examples of the literature, and keep their laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.runs.agreement import LEVELS, Ratings, cohen_kappa, fleiss_kappa, krippendorff_alpha
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises

FEW = 50
Grid = list[list[int | None]]  # raters by items

# Krippendorff 2011, section C: four observers, twelve units, gaps.
KRIPPENDORFF: Grid = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]

# Fleiss 1971, table 1: how many of six psychiatrists gave each of thirty patients each of five diagnoses.
_TABLE = (
    "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031 "
    "00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"
)
FLEISS = _TABLE.split()


def grid(raters: Grid) -> Ratings:
    return Ratings.of((f"i{i}", f"r{r}", value) for r, row in enumerate(raters) for i, value in enumerate(row))


def counted(patients: list[str]) -> Ratings:
    given = [[value for value, times in enumerate(map(int, row)) for _ in range(times)] for row in patients]
    return Ratings.of((f"i{i}", f"r{r}", value) for i, row in enumerate(given) for r, value in enumerate(row))


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_krippendorff_2011(level: str, value: float) -> None:
    alpha = krippendorff_alpha(grid(KRIPPENDORFF), level, samples=FEW)
    assert round(alpha.value, 3) == value
    assert (alpha.items, alpha.ratings) == (11, 40)  # unit 12 has one rating
    two = krippendorff_alpha(grid([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]), samples=FEW)
    assert round(two.value, 3) == 0.095  # section A: observed 4/10, expected by 14 zeros and 6 ones
    assert two.observed == pytest.approx(0.6)


def test_one_category_alone_and_nothing_rated_twice_say_nothing() -> None:
    for coefficient in (cohen_kappa, fleiss_kappa, krippendorff_alpha):
        assert np.isnan(coefficient(grid([[1, 1], [1, 1]]), samples=FEW).value)
    alpha = krippendorff_alpha(grid([[1, 2, None], [None, None, 3]]))
    assert np.isnan(alpha.value) and alpha.items == 0


def test_fleiss_kappa_is_that_of_fleiss_1971() -> None:
    kappa = fleiss_kappa(counted(FLEISS), samples=FEW)
    assert (round(kappa.value, 3), round(kappa.observed, 4), round(kappa.expected, 4)) == (0.430, 0.5556, 0.2199)


def test_cohen_kappa_by_hand() -> None:
    # 20 yes and yes, 5 yes and no, 10 no and yes, 15 no and no: (0.7 - 0.5) / (1 - 0.5)
    first, second = [1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    kappa = cohen_kappa(grid([first, second]), samples=FEW)
    assert (kappa.value, kappa.observed, kappa.expected) == pytest.approx((0.4, 0.7, 0.5))


tables = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.none() | st.integers(0, 3), min_size=raters, max_size=raters), min_size=1, max_size=8
    )
)


@settings(max_examples=examples(150))
@given(tables, st.sampled_from([*LEVELS]))
def test_alpha_is_one_less_the_mean_distance_of_pairs_within_units_over_that_of_all_pairs(
    items: Grid, level: str
) -> None:
    alpha = krippendorff_alpha(grid([list(row) for row in zip(*items, strict=True)]), level, samples=1)

    units = [[v for v in row if v is not None] for row in items]
    units = [unit for unit in units if len(unit) > 1]
    everything = [value for unit in units for value in unit]

    def apart(a: int, b: int) -> float:
        if level == "ordinal":
            low, high = sorted((a, b))
            between = sum(low <= v <= high for v in everything)
            return (between - (everything.count(a) + everything.count(b)) / 2) ** 2
        return (a - b) ** 2 if level == "interval" else float(a != b)

    within = sum(apart(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2))
    chance = sum(apart(a, b) for a, b in permutations(everything, 2))
    if not chance:
        assert np.isnan(alpha.value)
    else:
        assert alpha.value == pytest.approx(1 - within * (len(everything) - 1) / chance)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=20), st.permutations(range(3)))
def test_names_of_categories_do_not_matter_but_to_grades(pairs: list[tuple[int, int]], names: list[int]) -> None:
    raters = [[pair[side] for pair in pairs] for side in (0, 1)]
    renamed = [[names[value] for value in row] for row in raters]
    for coefficient in (cohen_kappa, fleiss_kappa, krippendorff_alpha):
        before, after = (coefficient(grid(each), samples=1).value for each in (raters, renamed))
        assert after == pytest.approx(before, nan_ok=True)


def test_abstentions_count_as_a_category_or_not_at_all() -> None:
    rows = [(f"i{i}", f"r{r}", v) for i, v in enumerate(["yes", "no", "abstain", "abstain"]) for r in (0, 1)]
    rows += [("i4", "r0", "yes"), ("i4", "r1", "no")]
    ratings = Ratings.of(rows)
    among, without = (krippendorff_alpha(each, samples=FEW) for each in (ratings, ratings.without("abstain")))
    assert (among.observed, among.items) == (0.8, 5)
    assert (without.observed, without.items) == (pytest.approx(2 / 3), 3)
    assert without.value < among.value


def test_the_interval_holds_the_value_and_narrows_with_more_items() -> None:
    small, large = (fleiss_kappa(counted(FLEISS * times), samples=500, seed=1) for times in (1, 9))
    assert small.low < small.value < small.high
    assert large.high - large.low == pytest.approx((small.high - small.low) / 3, rel=0.25)
    assert fleiss_kappa(counted(FLEISS), samples=500, seed=1) == small


def test_what_does_not_fit_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match="take alpha"):
        fleiss_kappa(grid(KRIPPENDORFF))
    with pytest.raises(UsageError, match="two raters"):
        cohen_kappa(grid(KRIPPENDORFF))
    with raises(UsageError):
        krippendorff_alpha(Ratings.of([("i", "a", 1), ("i", "b", "abstain")]), "ordinal")
    with raises(UsageError):
        krippendorff_alpha(grid(KRIPPENDORFF), "ratio")
    with pytest.raises(UsageError, match="two values"):
        Ratings.of([("i", "a", 1), ("i", "a", 2)])
