"""Reading ease and grade are those of published examples, and syllables are counted as dictionaries have them."""

from __future__ import annotations

import pytest

from eyespot.pipelines.data_card.wording import flesch_kincaid, flesch_reading_ease, syllables, wording


@pytest.mark.parametrize(
    ("text", "ease"),
    [  # the examples of Wikipedia's article on the tests
        ("The cat sat on the mat.", 116.1),
        ("This sentence, taken as a reading passage unto itself, is being used to prove a point.", 69.0),
        ("The Australian platypus is seemingly a hybrid of a mammal and reptilian creature.", 37.5),
    ],
)
def test_the_ease_of_published_sentences(text: str, ease: float) -> None:
    found = wording([text])
    assert found is not None and round(found.ease, 1) == ease


def test_both_formulas_by_hand() -> None:
    # 100 words in 5 sentences with 150 syllables: 206.835 - 20.3 - 126.9 and 7.8 + 17.7 - 15.59
    assert flesch_reading_ease(100, 5, 150) == pytest.approx(59.635)
    assert flesch_kincaid(100, 5, 150) == pytest.approx(9.91)


@pytest.mark.parametrize(
    ("word", "count"),
    [
        *(("being", 2), ("radio", 3), ("nation", 2), ("social", 2), ("iguana", 3), ("created", 3), ("visual", 3)),
        *(("queen", 1), ("guard", 1), ("biodiversity", 6), ("religion", 3), ("species", 2), ("heron", 2)),
    ],
)
def test_vowels_side_by_side(word: str, count: int) -> None:
    assert syllables(word) == count
