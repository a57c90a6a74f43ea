"""Why a photo has its score: parts that add up, and what is left without a term or a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eyespot import rooms
from eyespot.search.query_language import parse
from eyespot.search.why import MOST_WORDS, explain
from eyespot.types import Query, UsageError
from tests.wording import raises


@pytest.fixture(scope="module")
def encoder() -> Any:
    return rooms.load("encoders", "starter")


@pytest.fixture(scope="module")
def photo(encoder: Any) -> Any:
    """What a photo of a penguin on rocks might be."""
    vectors = encoder.encode_texts(["a penguin", "rocks"])
    return vectors.sum(0) / np.linalg.norm(vectors.sum(0))


def test_what_terms_add_sums_up_to_the_score_and_without_one_is_the_score_of_the_others(
    encoder: Any, photo: Any
) -> None:
    report = explain(parse("2:penguin + rocks - people"), photo, encoder)

    assert [(one.name, one.weight) for one in report.terms] == [("penguin", 2), ("rocks", 1), ("people", -1)]
    assert sum(one.adds or 0 for one in report.terms) == pytest.approx(report.score, abs=1e-5)
    penguin, rocks, people = report.terms
    assert (penguin.adds or 0) > (rocks.adds or 0) > abs(people.adds or 0)
    assert penguin.without == pytest.approx(explain(parse("rocks - people"), photo, encoder).score, abs=1e-6)


def test_without_a_word_is_the_score_of_the_words_that_are_left(encoder: Any, photo: Any) -> None:
    report = explain(Query.words("a penguin on rocks"), photo, encoder)

    assert [one.word for one in report.words] == ["a", "penguin", "on", "rocks"]
    assert report.words[1].without == pytest.approx(explain(Query.words("a on rocks"), photo, encoder).score, abs=1e-6)
    assert min(report.words, key=lambda one: one.without).word in ("penguin", "rocks")
    assert report.terms[0].without is None  # nothing would be left


def test_of_a_long_text_only_some_words_are_left_out(encoder: Any, photo: Any) -> None:
    report = explain(Query.words("penguin " * 40), photo, encoder)

    assert len(report.words) == MOST_WORDS


def test_what_cancels_out_without_a_term_has_no_score(encoder: Any, photo: Any) -> None:
    report = explain(parse("penguin - penguin + rocks"), photo, encoder)

    assert report.terms[2].without is None and report.terms[0].without is not None
    with raises(UsageError):
        explain(parse("penguin - penguin"), photo, encoder)
