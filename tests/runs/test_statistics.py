"""What judgements hold, counted: small ones by hand, and the published ones where they are."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.runs import read_qrels
from eyespot.runs.statistics import MatchCountBin, histogram, statistics
from eyespot.types import Qrels
from tests.worlds.runs import CONFORMANCE, judgements

QRELS = Qrels({"p": {"a": 1, "b": 0, "c": 2}, "q": {"a": 1, "d": -1}, "r": {"b": 0}})


def test_pairs_images_grades_and_matches_by_hand() -> None:
    found = statistics(QRELS, pool=9)
    assert (found.queries, found.judged, found.relevant) == (3, 5, 3)
    assert (found.images_judged, found.images_relevant, found.pool) == (3, 2, 9)
    assert (found.without_relevant, found.grades) == (["r"], {-1: 1, 0: 2, 1: 2, 2: 1})
    assert astuple(found.matches) == (1.0, 1.0, 0.5, 1.5, 0.0, 2.0)


def test_of_some_queries_of_one_that_nobody_judged_and_of_none() -> None:
    found = statistics(QRELS, ["q", "new"])
    assert (found.queries, found.judged, found.relevant, found.images_judged) == (2, 1, 1, 1)
    assert found.without_relevant == ["new"] and found.matches.mean == 0.5
    none = statistics(QRELS, [])
    assert (none.queries, none.judged, none.histogram) == (0, 0, []) and math.isnan(none.matches.mean)


def test_bins_double_and_those_between_are_shown_empty() -> None:
    assert histogram(np.array([1, 2, 3, 9])) == [
        MatchCountBin(1, 1, 1),
        MatchCountBin(2, 3, 2),
        MatchCountBin(4, 7, 0),
        MatchCountBin(8, 15, 1),
    ]
    assert histogram(np.array([0, 1])) == [MatchCountBin(0, 0, 1), MatchCountBin(1, 1, 1)]


@given(st.lists(st.integers(0, 5000), max_size=30))
def test_every_query_is_in_the_one_bin_that_holds_its_number(counts: list[int]) -> None:
    bins = histogram(np.array(counts, np.int64))
    assert [sum(bin.least <= count <= bin.most for count in counts) for bin in bins] == [bin.queries for bin in bins]
    assert sum(bin.queries for bin in bins) == len(counts)
    assert all(before.most + 1 == after.least for before, after in pairwise(bins))


@given(judgements)
def test_numbers_agree_with_the_judgements_one_by_one(drawn: dict[str, dict[str, int]]) -> None:
    found = statistics(Qrels(drawn))
    pairs = [(image, grade) for images in drawn.values() for image, grade in images.items()]
    assert found.relevant == sum(grade > 0 for _, grade in pairs)
    assert found.images_judged == len({image for image, grade in pairs if grade >= 0})
    assert sum(found.grades.values()) == len(pairs)
    assert found.without_relevant == [query for query in drawn if not Qrels(drawn).relevant(query)]


@pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the conformance data are not beside the repository")
def test_inquire_rerank_hard_is_as_its_authors_say() -> None:
    found = statistics(read_qrels(CONFORMANCE / "inquire_rerank_hard" / "qrels.txt"))
    assert (found.queries, found.judged, found.relevant, found.images_judged) == (59, 5_900, 739, 5_806)
    assert (found.matches.least, found.matches.most, found.without_relevant) == (1, 44, [])
