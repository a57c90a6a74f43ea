"""The endpoint judge against real servers over a tiny vision–language model."""

from __future__ import annotations

import base64
import io
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.model(tmp_path)


@pytest.fixture
def pairs(tmp_path: Path) -> list[Pair]:
    """Three noisy pictures, each with two queries; of the model's size, as libraries differ in how they resize."""
    noise, found = np.random.default_rng(0), []
    for number in range(3):
        Image.fromarray(noise.integers(0, 256, (32, 32, 3), np.uint8)).save(tmp_path / f"{number}.png")
        found += [Pair(query, str(number), tmp_path / f"{number}.png") for query in (HERON, FROG)]
    return found


def test_transformers_serve_tells_no_probabilities_and_its_decision_is_taken(folder: Path, pairs: list[Pair]) -> None:
    from transformers import pipeline

    with tiny.transformers_serve(folder) as url:
        answers = list(rooms.load("judges", f"openai:{folder}", url=url).judge(pairs))

    decide: Any = pipeline("decision", model=str(folder), device="cpu")
    for answer in answers:
        picture = Image.open(io.BytesIO(base64.b64decode(JpegEncoder()(answer.pair.path))))
        question = {"shown": {"type": "noul", "instructions": PLAIN.ask(answer.pair.query)}}
        own = decide({"state": "Picture: IMG0", "questions": question, "assets": {"IMG0": picture}})
        assert answer.verdict.probability == pytest.approx(own["shown"]["noul"], abs=1e-5)
    assert len(answers) == len(pairs)
