"""Matching heads of BLIP and BLIP-2: the probability is the softmax of the library's own two logits."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from eyespot import rooms
from eyespot.types import Pair, Query, UsageError
from tests.lazy_import import lazy_import, requires
from tests.worlds import judge_models as tiny

torch = lazy_import("torch")
transformers = lazy_import("transformers")
pytestmark = requires("torch", "transformers")

TEXTS = ["a heron", "a very large blue frog that eats a fly", "x" * 200]  # the last is longer than the tiny heads read
HEADS: dict[str, tuple[Callable[[Path], Path], str, dict[str, bool], str]] = {
    "BLIP": (tiny.blip_itm, "BlipForImageTextRetrieval", {"use_itm_head": True}, "itm_score"),
    "BLIP-2": (
        tiny.blip2_itm,
        "Blip2ForImageTextRetrieval",
        {"use_image_text_matching_head": True},
        "logits_per_image",
    ),
    "BLIP-2 with a picture token": (
        partial(tiny.blip2_itm, image_token=True),
        "Blip2ForImageTextRetrieval",
        {"use_image_text_matching_head": True},
        "logits_per_image",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=list(HEADS))
def head(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Any, str]:
    make, kind, options, given = HEADS[request.param]
    return make(tmp_path_factory.mktemp("head") / "model"), kind, options, given


def load(folder: Path, **options: Any) -> Any:
    return rooms.load("judges", f"blip_itm:{folder}", device="cpu", **options)


def own_probability(head: tuple[Path, str, Any, str], text: str, picture: Any) -> float:
    """The library's class on one pair; tiny heads read 64 tokens, a letter each, and BLIP's first is [CLS]."""
    folder, kind, options, given = head
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    fitting = text[: 63 if kind.startswith("BlipFor") else 64]
    inputs = processor(images=[picture], text=[fitting], return_tensors="pt")
    with torch.no_grad():
        return float(torch.softmax(getattr(model(**inputs, **options), given), dim=1)[0, 1])


def test_the_probability_is_the_librarys_own(head: tuple[Path, str, Any, str]) -> None:
    """Each text with its picture, alone."""
    pictures = tiny_models.pictures()
    expected = [own_probability(head, text, picture) for text, picture in zip(TEXTS, pictures, strict=True)]

    found = load(head[0]).scorer(TEXTS, pictures)

    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 1e-4


def test_a_batch_gives_what_each_pair_gives_alone(head: tuple[Path, str, Any, str]) -> None:
    """Neighbours must not show."""
    score, pictures = load(head[0]).scorer, tiny_models.pictures()

    alone = [score([text], [picture])[0] for text, picture in zip(TEXTS, pictures, strict=True)]

    np.testing.assert_allclose(score(TEXTS, pictures), alone, atol=1e-5)


def test_pairs_of_a_query_are_scored_by_its_bare_words(head: tuple[Path, str, Any, str], tmp_path: Path) -> None:
    """No question around them: heads were trained on captions."""
    picture = tiny_models.pictures()[0]
    picture.save(tmp_path / "a.png")
    judge = load(head[0])

    answers = list(judge.judge([Pair(Query.words("a heron"), "a", tmp_path / "a.png")]))

    assert [one.verdict.probability for one in answers] == list(judge.scorer(["a heron"], [picture]))
    assert judge.prompt == hashlib.sha256(b"the bare words").hexdigest()[:16]


def test_a_model_without_a_head_is_refused(tmp_path: Path) -> None:
    """A LLaVA answers questions, it has no head."""
    folder = tiny.llava(tmp_path / "llava")

    with pytest.raises(UsageError, match="has no matching head; there are those of: blip, blip-2"):
        load(folder)


def test_weights_of_another_head_are_refused(tmp_path: Path, head: tuple[Path, str, Any, str]) -> None:
    """A captioner of the same family lacks the head, which would else be random."""
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(head[0], tmp_path / "model")
    state = {name: value for name, value in load_file(copy / "model.safetensors").items() if "itm_head" not in name}
    save_file(state, copy / "model.safetensors", {"format": "pt"})

    with pytest.raises(Exception, match=r"model lacks weights, itm_head\.bias for one; fetch the model again"):
        _ = load(copy).scorer
