"""The endpoint judge against real servers over a tiny vision–language model."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot import rooms
from eyespot.judges import PLAIN
from eyespot.llms import JpegEncoder
from eyespot.types import Pair, Query
from tests.lazy_import import requires
from tests.worlds import judge_servers as tiny

pytestmark = [requires("transformers", "uvicorn"), pytest.mark.long]  # servers of transformers start
HERON, FROG = Query.words("a heron", "heron"), Query.words("a blue frog", "frog")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.model(tmp_path_factory.mktemp("llava"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """Three noisy pictures, each with two queries; of the model's size, as libraries differ in how they resize."""
    photos, noise = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    found = []
    for number in range(3):
        Image.fromarray(noise.integers(0, 256, (32, 32, 3), np.uint8)).save(photos / f"{number}.png")
        found += [Pair(query, str(number), photos / f"{number}.png") for query in (HERON, FROG)]
    return found


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    with tiny.transformers_serve(folder) as url:
        yield url


def probabilities(judge: Any, pairs: list[Pair]) -> dict[tuple[str, str], float]:
    answers = list(judge.judge(pairs))
    assert not [answer.failure for answer in answers if answer.failure]
    return {(answer.pair.query.id, answer.pair.image): answer.verdict.probability for answer in answers}


def test_transformers_serve_tells_no_probabilities_and_its_decision_is_taken(
    served: str, folder: Path, pairs: list[Pair]
) -> None:
    from transformers import pipeline

    judge = rooms.load("judges", f"openai:{folder}", url=served)
    found = probabilities(judge, pairs)

    decide: Any = pipeline("decision", model=str(folder), device="cpu")
    for pair in pairs:
        picture = Image.open(io.BytesIO(base64.b64decode(JpegEncoder()(pair.path))))
        question = {"shown": {"type": "noul", "instructions": PLAIN.ask(pair.query)}}
        own = decide({"state": "Picture: IMG0", "questions": question, "assets": {"IMG0": picture}})
        assert found[pair.query.id, pair.image] == pytest.approx(own["shown"]["noul"], abs=1e-5)


def test_words_of_a_random_model_are_failures_with_what_it_said(served: str, folder: Path, pairs: list[Pair]) -> None:
    judge = rooms.load("judges", f"openai:{folder}", url=served, answer="words", answer_tokens=2)
    (answer,) = judge.judge(pairs[:1])

    assert answer.verdict is None and "neither" in answer.failure
    assert answer.spent.calls == 3 and answer.spent.tokens_in > 50
