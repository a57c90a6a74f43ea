"""Judges that score words with a picture, by a matching head of BLIP or a cross-encoder: the library's own numbers."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from eyespot import rooms
from eyespot.types import EyespotError, Pair, Query, UsageError
from tests.lazy_import import lazy_import, requires
from tests.worlds import judge_models as tiny

torch = lazy_import("torch")
transformers = lazy_import("transformers")
pytestmark = [
    requires("torch", "transformers", "sentence_transformers"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of libraries that sentence-transformers imports
]

TEXTS = ["a heron", "a very large blue frog that eats a fly", "x" * 200]  # the last is longer than the tiny heads read
SENT = (
    "<|im_start|>system\nAnswer yes or no.<|im_end|>\n<|im_start|>user\n{}<query>: {}\n"
    "<document>: <|vision_start|><|image_pad|><|vision_end|>\n<|im_end|>\n<|im_start|>assistant\n"
)
BLIP2 = ("Blip2ForImageTextRetrieval", {"use_image_text_matching_head": True}, "logits_per_image")
HEADS: dict[str, tuple[Callable[[Path], Path], str, dict[str, bool], str]] = {
    "BLIP": (tiny.blip_itm, "BlipForImageTextRetrieval", {"use_itm_head": True}, "itm_score"),
    "BLIP-2": (tiny.blip2_itm, *BLIP2),
    "BLIP-2 with a picture token": (partial(tiny.blip2_itm, image_token=True), *BLIP2),
}


def load(kind: str, folder: Path, **options: Any) -> Any:
    return rooms.load("judges", f"{kind}:{folder}", device="cpu", **options)


@pytest.fixture(scope="module", params=list(HEADS))
def head(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Any, str]:
    make, kind, options, given = HEADS[request.param]
    return make(tmp_path_factory.mktemp("head") / "model"), kind, options, given


def own_probability(head: tuple[Path, str, Any, str], text: str, picture: Any) -> float:
    """The library's class on one pair; tiny heads read 64 tokens, a letter each, and BLIP's first is [CLS]."""
    folder, kind, options, given = head
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    fitting = text[: 63 if kind.startswith("BlipFor") else 64]
    inputs = processor(images=[picture], text=[fitting], return_tensors="pt")
    with torch.no_grad():
        return float(torch.softmax(getattr(model(**inputs, **options), given), dim=1)[0, 1])


def test_the_probability_of_a_head_is_the_librarys_own(head: tuple[Path, str, Any, str]) -> None:
    """Each text with its picture, alone; neighbours do not show."""
    pictures = tiny_models.pictures()
    expected = [own_probability(head, text, picture) for text, picture in zip(TEXTS, pictures, strict=True)]

    found = load("blip_itm", head[0]).scorer(TEXTS, pictures)

    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 1e-4


def test_pairs_of_a_query_are_scored_by_its_bare_words(head: tuple[Path, str, Any, str], tmp_path: Path) -> None:
    """No question around them: heads were trained on captions."""
    picture = tiny_models.pictures()[0]
    picture.save(tmp_path / "a.png")
    judge = load("blip_itm", head[0])

    answers = list(judge.judge([Pair(Query.words("a heron"), "a", tmp_path / "a.png")]))

    assert [one.verdict.probability for one in answers] == list(judge.scorer(["a heron"], [picture]))
    assert judge.prompt == hashlib.sha256(b"the bare words").hexdigest()[:16]


def test_a_model_without_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="blip, blip-2"):
        load("blip_itm", tiny.llava(tmp_path / "llava"))


def test_weights_of_another_head_are_refused(tmp_path: Path, head: tuple[Path, str, Any, str]) -> None:
    """A captioner of the same family lacks the head, which would else be random."""
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(head[0], tmp_path / "model")
    state = {name: value for name, value in load_file(copy / "model.safetensors").items() if "itm_head" not in name}
    save_file(state, copy / "model.safetensors", {"format": "pt"})

    with pytest.raises(EyespotError, match=r"itm_head\.bias"):
        _ = load("blip_itm", copy).scorer


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.reranker(tmp_path_factory.mktemp("reranker"))


def of_backbone(folder: Path, sent: str, picture: Any) -> float:
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(folder).eval()
    inputs = processor(images=[picture], text=[sent], return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[0, -1]
    yes, no = processor.tokenizer.convert_tokens_to_ids(["yes", "no"])
    return float(torch.sigmoid(logits[yes] - logits[no]))


def test_the_probability_of_a_cross_encoder_is_the_models_own(reranker: Path) -> None:
    """The backbone's logits after the re-ranker's own template; neighbours do not show."""
    texts, pictures = [*TEXTS[:2], "x"], tiny_models.pictures()
    sent = [SENT.format("", text) for text in texts]
    expected = [of_backbone(reranker, text, picture) for text, picture in zip(sent, pictures, strict=True)]

    found = load("cross_encoder", reranker).scorer(texts, pictures)

    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 1e-4


def test_an_instruction_is_said_first_and_is_another_judge(reranker: Path, tmp_path: Path) -> None:
    """It stands where the model's template puts a system message."""
    picture = tiny_models.pictures()[0]
    picture.save(tmp_path / "a.png")
    judge = load("cross_encoder", reranker, instruction="Find birds.")
    expected = of_backbone(reranker, SENT.format("<system>: Find birds.\n", "a heron"), picture)

    answers = list(judge.judge([Pair(Query.words("a heron"), "a", tmp_path / "a.png")]))

    assert answers[0].verdict.probability == pytest.approx(expected, abs=1e-5)
    assert judge.prompt != load("cross_encoder", reranker).prompt


def test_a_repository_that_brings_code_is_refused(reranker: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(reranker, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling.Jina"}}))

    with pytest.raises(UsageError, match="code"):
        load("cross_encoder", copy)


def test_a_model_that_reads_only_words_is_refused(tmp_path: Path) -> None:
    words = tiny.tokenizer([])
    size = {**tiny.SIZE, "vocab_size": len(words), "num_labels": 1}
    transformers.BertForSequenceClassification(transformers.BertConfig(**size)).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)

    with pytest.raises(UsageError, match="multimodal"):
        _ = load("cross_encoder", tmp_path).scorer


def test_damaged_weights_are_told(reranker: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(reranker, tmp_path / "copy")
    (copy / "model.safetensors").write_bytes(b"cut short")

    with pytest.raises(EyespotError, match="could not load"):
        _ = load("cross_encoder", copy).scorer
