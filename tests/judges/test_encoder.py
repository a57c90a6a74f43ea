"""A second embedding model as a judge: it orders by the cosine, by a stated curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot import rooms
from eyespot.judges.encoder import share
from eyespot.search.judge_rerank import SecondModel
from eyespot.types import EyespotError, Pair, Query, Space, UsageError, Vectors
from tests.examples import examples
from tests.wording import raises

HERON, POOL = Query.words("a heron"), Query.words("a pool")


@dataclass
class Flat:
    """Vectors in a plane, by the name of the file: a picture called 0.3.jpg has the cosine 0.3 with every query."""

    revision: str = "1"
    asked: list[Query] = field(default_factory=list)

    @property
    def space(self) -> Space:
        return Space("flat", self.revision, "w", "p", 2)

    def query(self, query: Query) -> Vectors:
        self.asked.append(query)
        return np.array([1, 0], np.float32)

    def picture(self, path: Path) -> Vectors:
        if path.stem == "broken":
            raise EyespotError(f"cannot read the picture {path}")
        cosine = float(path.stem)
        return np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)


def pairs(query: Query, *names: str) -> list[Pair]:
    return [Pair(query, name, Path(f"{name}.jpg")) for name in names]


def test_the_probability_is_the_stated_curve_of_the_cosine() -> None:
    """At 0.25 a half; 0.05 above it 1 / (1 + 1/e)."""
    answers = rooms.load("judges", "encoder:flat", embedding=Flat()).judge(pairs(HERON, "0.25", "0.3"))

    found = [answer.verdict.probability for answer in answers]
    assert found == [0.5, pytest.approx(1 / (1 + np.exp(-1)), abs=1e-6)]


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=2))
def test_the_curve_never_falls_and_is_a_probability(cosines: list[float]) -> None:
    low, high = sorted(cosines)

    assert 0 < share(low) <= share(high) < 1


def test_a_broken_picture_fails_alone_and_a_query_is_encoded_once() -> None:
    flat, names = Flat(), ("0.1", "broken", "0.2")
    asked = [*pairs(HERON, *names), *pairs(POOL, *names)]

    answers = list(rooms.load("judges", "encoder:flat", embedding=flat).judge(asked))

    assert [answer.verdict is None for answer in answers] == [False, True, False] * 2
    assert "broken.jpg" in answers[1].failure
    assert flat.asked == [HERON, POOL]


def test_another_revision_is_another_judge_of_the_same_name() -> None:
    one, other = (rooms.load("judges", "encoder:flat", embedding=Flat(revision)) for revision in "12")

    assert one.name == other.name == "encoder:flat" and one.prompt != other.prompt


def test_a_model_that_is_not_there_is_one_sentence() -> None:
    with raises(UsageError):
        _ = SecondModel("nope").space
