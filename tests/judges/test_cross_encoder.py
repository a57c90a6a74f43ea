"""Multimodal cross-encoders: the probability is the sigmoid of the logit of yes less that of no."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
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

TEXTS = ["a heron", "a very large blue frog that eats a fly", "x"]
SENT = (
    "<|im_start|>system\nAnswer yes or no.<|im_end|>\n<|im_start|>user\n{}<query>: {}\n"
    "<document>: <|vision_start|><|image_pad|><|vision_end|>\n<|im_end|>\n<|im_start|>assistant\n"
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.reranker(tmp_path_factory.mktemp("reranker"))


def load(folder: Path, **options: Any) -> Any:
    return rooms.load("judges", f"cross_encoder:{folder}", device="cpu", **options)


def own_probability(folder: Path, sent: str, picture: Any) -> float:
    """Qwen3-VL itself on one pair, with the text written out here."""
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(folder).eval()
    inputs = processor(images=[picture], text=[sent], return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[0, -1]
    yes, no = processor.tokenizer.convert_tokens_to_ids(["yes", "no"])
    return float(torch.sigmoid(logits[yes] - logits[no]))


def test_the_probability_is_the_models_own(reranker: Path) -> None:
    """The backbone's logits after the re-ranker's own template."""
    pictures = tiny_models.pictures()
    sent = [SENT.format("", text) for text in TEXTS]
    expected = [own_probability(reranker, text, picture) for text, picture in zip(sent, pictures, strict=True)]

    found = load(reranker).scorer(TEXTS, pictures)

    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 1e-4


def test_a_batch_gives_what_each_pair_gives_alone(reranker: Path) -> None:
    """Neighbours must not show."""
    score, pictures = load(reranker).scorer, tiny_models.pictures()

    alone = [score([text], [picture])[0] for text, picture in zip(TEXTS, pictures, strict=True)]

    np.testing.assert_allclose(score(TEXTS, pictures), alone, atol=1e-5)


def test_an_instruction_is_said_first_and_is_another_judge(reranker: Path, tmp_path: Path) -> None:
    """It stands where the model's template puts a system message."""
    picture = tiny_models.pictures()[0]
    picture.save(tmp_path / "a.png")
    judge = load(reranker, instruction="Find birds.")
    expected = own_probability(reranker, SENT.format("<system>: Find birds.\n", "a heron"), picture)

    answers = list(judge.judge([Pair(Query.words("a heron"), "a", tmp_path / "a.png")]))

    assert answers[0].verdict.probability == pytest.approx(expected, abs=1e-5)
    assert judge.prompt != load(reranker).prompt


def test_a_repository_that_brings_code_is_refused(reranker: Path, tmp_path: Path) -> None:
    """As jina-reranker-m0's does."""
    copy = shutil.copytree(reranker, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling.Jina"}}))

    with pytest.raises(UsageError, match="needs code that its repository brings, which is not run here"):
        load(copy)


def test_a_model_that_reads_only_words_is_refused(tmp_path: Path) -> None:
    """Most cross-encoders do."""
    words = tiny.tokenizer([])
    size = {**tiny.SIZE, "vocab_size": len(words), "num_labels": 1}
    transformers.BertForSequenceClassification(transformers.BertConfig(**size)).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)

    with pytest.raises(UsageError, match="does not give one score for words and a picture; name a multimodal"):
        _ = load(tmp_path).scorer


def test_damaged_weights_are_told(reranker: Path, tmp_path: Path) -> None:
    """One sentence, when they are needed."""
    copy = shutil.copytree(reranker, tmp_path / "copy")
    (copy / "model.safetensors").write_bytes(b"cut short")

    with pytest.raises(EyespotError, match=r"could not load cross_encoder:copy@"):
        _ = load(copy).scorer
