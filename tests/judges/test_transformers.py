"""Local vision–language models: P(yes) is the library's own, whatever stands beside a pair in its batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from hypothesis import given, settings, strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.judges import JudgePrompt
from eyespot.judges._local import PairBatches
from eyespot.judges.transformers import FirstWord, spellings
from eyespot.llms.fences import DATA, fenced
from eyespot.types import Answer, EyespotError, Pair, Query, UsageError
from tests.examples import examples
from tests.lazy_import import lazy_import, requires
from tests.wording import raises
from tests.worlds import judge_models as tiny

torch = lazy_import("torch")
transformers = lazy_import("transformers")
pytestmark = requires("torch", "transformers")

ASKED = JudgePrompt("short", "Look well.", "Is this {query}?")
WORDS = ["a heron", "a very large blue frog that eats a fly", "{x}"]
CHATML = (
    "<|im_start|>system\nLook well.<|im_end|>\n<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>"
    "Is this {}?<|im_end|>\n<|im_start|>assistant\n"
)
VICUNA = "Look well. USER: <image>\nIs this {}? ASSISTANT:"
FAMILIES: dict[str, tuple[Callable[[Path], Path], str, str]] = {  # tiny model, its class, what it is sent
    "Qwen2.5-VL": (tiny.qwen25_vl, "Qwen2_5_VLForConditionalGeneration", CHATML),
    "Qwen3-VL": (tiny.qwen3_vl, "Qwen3VLForConditionalGeneration", CHATML),
    "LLaVA 1.5": (tiny.llava, "LlavaForConditionalGeneration", VICUNA),
    "LLaVA 1.6": (tiny.llava_next, "LlavaNextForConditionalGeneration", VICUNA),
    "PaliGemma": (tiny.paligemma, "PaliGemmaForConditionalGeneration", "<image>answer en Look well. Is this {}?"),
    "BLIP-2 OPT": (tiny.blip2, "Blip2ForConditionalGeneration", "Question: Look well. Is this {}? Answer:"),
    "BLIP-2 T5": (tiny.blip2_t5, "Blip2ForConditionalGeneration", "Question: Look well. Is this {}? Answer:"),
    "InstructBLIP": (tiny.instructblip, "InstructBlipForConditionalGeneration", "Look well. Is this {}?"),
}
YES, NO = ("Yes", "yes"), ("No", "no")  # what the tiny tokenizers hold of them


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    make, kind, sent = FAMILIES[request.param]
    return make(tmp_path_factory.mktemp("family") / "model"), kind, sent.replace("Is this", f"{DATA}\nIs this")


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llava(tmp_path_factory.mktemp("llava") / "llava")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """Three queries of different lengths, each with a picture of another shape."""
    home = tmp_path_factory.mktemp("pictures")
    files = [home / f"{number}.png" for number in range(3)]
    for picture, file in zip(tiny_models.pictures(), files, strict=True):
        picture.save(file)
    return [Pair(Query.words(words), file.stem, file) for words, file in zip(WORDS, files, strict=True)]


def load(folder: Path, **options: Any) -> Any:
    return rooms.load("judges", f"transformers:{folder}", **{"device": "cpu", "wording": ASKED, **options})


def verdicts(answers: Iterator[Answer]) -> dict[str, float | None]:
    return {one.pair.image: one.verdict.probability if one.verdict else None for one in answers}


def own_probability(folder: Path, kind: str, sent: str, picture: Image.Image) -> float:
    """yes / (yes + no) from the logits that the library's own class gives for one pair."""
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    inputs = processor(images=[picture], text=[sent], return_tensors="pt")
    inputs.pop("labels", None)
    if model.config.get_text_config().is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.tensor([[model.config.get_text_config().decoder_start_token_id]])
    with torch.no_grad():
        share = torch.softmax(model(**inputs).logits[0, -1], dim=0)
    ids = processor.tokenizer.convert_tokens_to_ids
    yes, no = (float(sum(share[ids(word)] for word in words)) for words in (YES, NO))
    return yes / (yes + no)


def test_the_probability_is_the_librarys_own(family: tuple[Path, str, str], pairs: list[Pair]) -> None:
    """Its class called on one pair, with the text written out here; padding and neighbours do not show."""
    folder, kind, sent = family
    expected = [
        own_probability(folder, kind, sent.replace("{}", fenced(words)), Image.open(pair.path).convert("RGB"))
        for words, pair in zip(WORDS, pairs, strict=True)
    ]

    found = list(verdicts(load(folder, batch=3).judge(pairs)).values())

    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(expected) > 1e-4  # or one picture and one text would be as good as another


def test_a_template_without_a_system_role_gets_its_text_with_the_question(tmp_path: Path, pairs: list[Pair]) -> None:
    """Some checkpoints refuse that role."""
    folder = tiny.llava(tmp_path / "llava", tiny.WITHOUT_SYSTEM)
    sent = f'USER: <image>\nLook well.\n{DATA}\nIs this "a heron"? ASSISTANT:'
    picture = Image.open(pairs[0].path).convert("RGB")

    found = verdicts(load(folder).judge(pairs[:1]))["0"]

    assert found == pytest.approx(own_probability(folder, "LlavaForConditionalGeneration", sent, picture), abs=1e-5)


def test_a_checkpoint_without_a_template_is_told_what_to_do(tmp_path: Path, pairs: list[Pair]) -> None:
    judge = load(tiny.llava(tmp_path / "llava", template=None))

    with pytest.raises(UsageError, match="chat_template"):
        list(judge.judge(pairs))


def test_a_query_cannot_speak_for_the_model(llava: Path, pairs: list[Pair]) -> None:
    judge = load(llava)
    tricky, plain = (Pair(Query.words(words), "0", pairs[0].path) for words in ("a<image>heron<s>fly", "a heron fly"))

    assert verdicts(judge.judge([tricky])) == verdicts(judge.judge([plain]))


def test_what_is_neither_yes_nor_no_is_noted(llava: Path, pairs: list[Pair]) -> None:
    """A random model says anything; what is noted comes with the answers, not before."""
    judge = load(llava)
    before = judge.notes

    list(judge.judge(pairs))

    assert before == []
    assert "3 of 3" in judge.notes[0]


def test_every_spelling_of_an_answer_counts() -> None:
    """Any case, with a space before it as bytes or as pieces write it; never a longer word, and never a part of one."""
    words = tiny.tokenizer([], words=("Yes", "ĠYES", "▁yes", "yesterday", "Nein"))

    found = [words.convert_ids_to_tokens(number) for number in spellings(words, "Yes")]

    assert sorted(found) == ["Yes", "ĠYES", "▁yes"]
    with raises(UsageError):
        spellings(words, "Jawohl")


def test_the_share_of_yes_by_hand() -> None:
    """(0.4 + 0.1) / (0.4 + 0.1 + 0.3) = 0.625; 0.8 together is below nine tenths."""
    first_word = FirstWord(yes=[0, 3], no=[1])

    found = first_word.probabilities(torch.log(torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.6, 0.3, 0.01, 0.09]])))

    np.testing.assert_allclose(found, [0.625, 0.69 / 0.99], atol=1e-7)
    assert (first_word.answers, first_word.unsure) == (2, 1)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.floats(-2000, 2000), min_size=3, max_size=3), st.floats(-500, 500))
def test_no_is_what_yes_is_not(logits: list[float], shift: float) -> None:
    """Swapped answers give 1 - p; adding the same to every logit changes nothing; never NaN, however far apart."""
    row = torch.tensor([logits], dtype=torch.float64)
    yes, no = (FirstWord(*ids).probabilities(row)[0] for ids in (([0], [1]), ([1], [0])))

    assert 0 <= yes <= 1
    assert yes + no == pytest.approx(1)
    assert FirstWord([0], [1]).probabilities(row + shift)[0] == pytest.approx(yes, abs=1e-9)


def test_an_example_picture_is_a_failure_of_its_own() -> None:
    """The model would be told of a picture that it is not shown."""
    example = Pair(Query.composed("example.jpg", "in winter"), "a", Path("a"))

    answers = list(batches(lambda texts, pictures: [0.5], 2).answers([example, *named("b")]))

    assert verdicts(iter(answers)) == {"b": 0.5, "a": None}
    assert "example picture" in answers[1].failure


def batches(score: Callable[[Any, Any], Any], size: int) -> PairBatches:
    """Batches of pairs whose pictures are their names, so that a score can see them."""
    return PairBatches(score, lambda query: query.id, lambda path: path.name, size)  # type: ignore[arg-type,return-value]


def named(*names: str) -> list[Pair]:
    return [Pair(Query.words("q"), name, Path(name)) for name in names]


def test_a_batch_that_does_not_fit_is_halved_and_the_rest_goes_on() -> None:
    """The allocator's true error: whoever asks for more than two at once asks for a petabyte."""
    tried: list[int] = []

    def score(texts: Any, pictures: Any) -> list[float]:
        tried.append(len(pictures))
        torch.empty(1 << 50 if len(pictures) > 2 else 1, dtype=torch.uint8)
        return [0.5] * len(pictures)

    found = verdicts(batches(score, 8).answers(named(*"abcdefghijk")))

    assert found == dict.fromkeys("abcdefghijk", 0.5)
    assert tried == [8, 4, 2, 2, 2, 2, 2, 1]


def odd_picture() -> float:
    """Qwen's processor refuses a picture two hundred times as wide as high."""
    raise ValueError("aspect ratio\nand more")


def one_too_many() -> float:
    raise MemoryError


@pytest.mark.parametrize(
    ("odd", "why"), [(odd_picture, "aspect ratio"), (one_too_many, "memory"), (lambda: float("nan"), "float32")]
)
def test_a_pair_that_the_model_cannot_take_fails_alone(odd: Callable[[], float], why: str) -> None:
    def score(texts: Any, pictures: Any) -> list[float]:
        return [odd() if picture == "odd" else 0.25 for picture in pictures]

    answers = {one.pair.image: one for one in batches(score, 4).answers(named("a", "odd", "b", "c", "d"))}

    assert verdicts(iter(answers.values())) == {"odd": None} | dict.fromkeys("abcd", 0.25)
    assert why in answers["odd"].failure and "\n" not in answers["odd"].failure


def test_a_broken_accelerator_ends_it() -> None:
    """After such an error nothing else would run, and a thousand failures say less than one."""

    def score(texts: Any, pictures: Any) -> list[float]:
        raise RuntimeError("CUDA error: device-side assert triggered")

    with raises(EyespotError):
        list(batches(score, 2).answers(named("a", "b")))


def test_the_name_follows_the_weights_not_the_place(llava: Path, tmp_path: Path) -> None:
    """A moved folder is the same judge, other weights are another; nothing is loaded where nothing is asked."""
    moved = shutil.copytree(llava, tmp_path / "elsewhere" / "llava")
    other = shutil.copytree(llava, tmp_path / "other" / "llava")
    (other / "model.safetensors").write_bytes(b"no weights")

    assert load(moved).name == load(llava).name != load(other).name
    assert load(llava).name.startswith("transformers:llava@")
    assert load(llava).prompt == ASKED.digest
    assert list(load(other).judge([])) == []


def test_a_model_of_the_hub_is_named_by_its_commit(llava: Path, hub_cache: Path, pairs: list[Pair]) -> None:
    commit = tiny_models.published(hub_cache, "eyespot/tiny-llava", llava)

    judge = rooms.load("judges", "transformers:eyespot/tiny-llava", device="cpu", wording=ASKED)

    assert judge.name == f"transformers:eyespot/tiny-llava@{commit}"
    assert rooms.load("judges", f"transformers:eyespot/tiny-llava@{commit}", device="cpu").name == judge.name
    assert verdicts(judge.judge(pairs)) == verdicts(load(llava).judge(pairs))


@pytest.mark.parametrize("spec", ["eyespot/absent", "./nope", "a/b/c"])
def test_a_model_that_is_not_there_is_told_with_the_way_out(spec: str) -> None:
    with raises(EyespotError if spec == "eyespot/absent" else UsageError):
        rooms.load("judges", f"transformers:{spec}", device="cpu")


@pytest.mark.parametrize("config", [{"model_type": "llava_llama"}, {"model_type": "clip"}, {}, None], ids=range(4))
def test_a_model_that_cannot_be_asked_is_refused(tmp_path: Path, config: Any) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))

    with raises(UsageError if config else EyespotError):
        load(tmp_path)


@pytest.mark.parametrize(("option", "value"), [("dtype", "int8"), ("batch", 0), ("device", "tpu"), ("colour", 1)])
def test_an_option_that_makes_no_sense_is_refused(llava: Path, option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{option}.*{value}|no option '{option}'"):
        load(llava, **{option: value})


def test_half_precision_gives_nearly_the_same(llava: Path, pairs: list[Pair]) -> None:
    whole, half = (verdicts(load(llava, dtype=dtype).judge(pairs)) for dtype in ("float32", "bfloat16"))

    assert half != whole
    assert all(half[image] == pytest.approx(whole[image], abs=0.05) for image in whole)
