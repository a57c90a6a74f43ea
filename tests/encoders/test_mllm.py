"""Multimodal language models as encoders: the library's own hidden states, of pictures, words and both as one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from hypothesis import given, strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.types import EyespotError, UsageError
from tests.encoders import tiny_multimodal
from tests.lazy_import import lazy_import, requires
from tests.wording import raises

torch = lazy_import("torch")
transformers = lazy_import("transformers")
pytestmark = requires("torch", "transformers")


TEXTS = ["What makes this?", "x", "Which tool is missing here, and where might it have been left?"]
CHATTING = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
THOUGHTS = 6


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("mllm")
    return {name: make(home / name) for name, make in tiny_multimodal.MODELS.items()}


@pytest.fixture(scope="module")
def encoders(folders: dict[str, Path]) -> dict[str, Any]:
    return {name: load(folder) for name, folder in folders.items()}


@pytest.fixture(params=list(tiny_multimodal.MODELS))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def load(folder: Path, **options: Any) -> Any:
    return rooms.load("encoders", f"mllm:{folder}", device="cpu", thoughts=THOUGHTS, **options)


def of_library(encoder: Any, inputs: Any, at: int = -1) -> Any:
    """The library's last hidden state of one input at a token, of unit length."""
    with torch.no_grad():
        found = encoder.network(**inputs, output_hidden_states=True).hidden_states[-1][0, at]
    return torch.nn.functional.normalize(found, dim=0).numpy()


def chatted(encoder: Any, picture: Any, words: str) -> Any:
    """One message in the checkpoint's own template, as its documentation has it."""
    content = [*([{"type": "image", "image": picture}] if picture else []), {"type": "text", "text": words}]
    whole = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
    return encoder.processor.apply_chat_template([{"role": "user", "content": content}], **whole)


def close(one: Any, other: Any) -> bool:
    return bool(np.abs(np.asarray(one) - np.asarray(other)).max() < 1e-5)


@pytest.mark.parametrize("name", CHATTING)
def test_a_picture_and_words_are_one_message_and_so_is_each_alone(name: str, encoders: dict[str, Any]) -> None:
    encoder, picture = encoders[name], tiny_models.pictures()[0]
    instructions, shown = encoder.family.instructions, encoder.read(picture)[None]

    both = encoder.encode_composed(shown, TEXTS[:1])[0]
    words, alone = encoder.encode_texts(TEXTS[:1])[0], encoder.encode_pixels(shown)[0]

    assert close(both, of_library(encoder, chatted(encoder, picture, instructions.both.replace("{}", TEXTS[0]))))
    assert close(words, of_library(encoder, chatted(encoder, None, instructions.text.replace("{}", TEXTS[0]))))
    assert close(alone, of_library(encoder, chatted(encoder, picture, instructions.picture)))


def test_vlm2vec_counts_the_tokens_of_a_picture_in_a_row(encoders: dict[str, Any]) -> None:
    """It was trained without the token that begins a picture, hence with the positions of words."""
    encoder, picture = encoders["vlm2vec"], tiny_models.pictures()[0]
    words = encoder.family.instructions.both.replace("{}", TEXTS[0])
    inputs = encoder.processor(text=[f"<|image_pad|> {words}"], images=[picture], return_tensors="pt")
    row = torch.arange(inputs["input_ids"].shape[1]).expand(3, 1, -1)

    (vector,) = encoder.encode_composed(encoder.read(picture)[None], TEXTS[:1])

    assert close(vector, of_library(encoder, {**inputs, "position_ids": row}))
    assert not close(vector, of_library(encoder, inputs))


def test_phi_4_is_asked_in_its_own_turns(encoders: dict[str, Any]) -> None:
    encoder, picture = encoders["phi4"], tiny_models.pictures()[0]
    words = encoder.family.instructions.both.replace("{}", TEXTS[0])
    text = f"<|user|><|image|>{words}<|end|><|assistant|>"
    inputs = encoder.processor(text=[text], images=[picture], return_tensors="pt")

    (vector,) = encoder.encode_composed(encoder.read(picture)[None], TEXTS[:1])

    with torch.no_grad():  # asked for all hidden states, this class loses those of its picture tower
        last = encoder.network.model(**inputs).last_hidden_state[0, -1]
    assert close(vector, torch.nn.functional.normalize(last, dim=0))


def test_what_a_reasoner_finds_is_read_at_its_marker(encoders: dict[str, Any]) -> None:
    """The whole message is said by the library; what follows the marker does not reach it."""
    encoder, picture = encoders["ume_r1"], tiny_models.pictures()[0]
    inputs = chatted(encoder, picture, f"{encoder.family.instructions.picture}\n<disc_emb>\n")
    marker = encoder.processor.tokenizer.convert_tokens_to_ids("<disc_emb>")
    at = inputs["input_ids"][0].tolist().index(marker)

    (vector,) = encoder.encode_pixels(encoder.read(picture)[None])

    assert close(vector, of_library(encoder, inputs, at))


def test_a_reasoner_embeds_a_query_after_its_reasoning(encoders: dict[str, Any]) -> None:
    """What the library generates greedily, and then the token that ends reasoning."""
    encoder, picture = encoders["ume_r1"], tiny_models.pictures()[0]
    instructions, words = encoder.family.instructions, encoder.processor.tokenizer
    prompt = f"{instructions.both.replace('{}', TEXTS[0])}\n<disc_emb>\n{instructions.reasoning}"
    inputs = chatted(encoder, picture, prompt)
    whole = encoder.network.generate(**inputs, do_sample=False, max_new_tokens=THOUGHTS)
    end = torch.tensor([[words.convert_tokens_to_ids("<gen_emb>")]])
    ids = torch.cat([whole, end], 1)
    kinds = torch.zeros_like(ids)
    kinds[:, : inputs["input_ids"].shape[1]] = inputs["mm_token_type_ids"]
    longer = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": kinds}

    (vector,) = encoder.encode_composed(encoder.read(picture)[None], TEXTS[:1])

    assert close(vector, of_library(encoder, {**inputs, **longer}))


@given(st.lists(st.integers(0, 9), max_size=12))
def test_reasoning_ends_at_its_token_or_gets_it(ids: list[int]) -> None:
    from eyespot.encoders.mllm import thought

    found = thought(ids, 7, {8, 9})

    assert found[-1] == 7 and found.count(7) == 1
    assert found[:-1] == (ids[: ids.index(7)] if 7 in ids else [one for one in ids if one not in (8, 9)])


def test_a_batch_gives_what_each_gives_alone(family: str, encoders: dict[str, Any]) -> None:
    """Pictures of other shapes and texts of other lengths are neighbours, padded in front or behind."""
    encoder = encoders[family]
    shown = np.stack([encoder.read(picture) for picture in tiny_models.pictures()])

    alone = [encoder.encode_composed(row[None], [text])[0] for row, text in zip(shown, TEXTS, strict=True)]
    words_alone = [encoder.encode_texts([text])[0] for text in TEXTS]
    pictures_alone = [encoder.encode_pixels(row[None])[0] for row in shown]

    assert close(encoder.encode_composed(shown, TEXTS), alone)
    assert close(encoder.encode_texts(TEXTS), words_alone)
    assert close(encoder.encode_pixels(shown), pictures_alone)


def test_control_tokens_in_a_text_are_words(encoders: dict[str, Any]) -> None:
    """A text that spells a picture's token must not ask for a picture that is not there."""
    encoder = encoders["ume_r1"]

    spelled, blank = encoder.encode_texts(["a<|image_pad|>b<gen_emb>", "a b "])

    assert close(spelled, blank)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 9))
def test_a_packed_picture_unpacks_to_itself(width: int, height: int, seed: int) -> None:
    """But for black edges around what is narrower than a twentieth of its length."""
    from eyespot.encoders._mllm_inputs import packed, unpacked

    drawn = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)

    again = np.asarray(unpacked(packed(Image.fromarray(drawn))))

    left, top = (again.shape[1] - width) // 2, (again.shape[0] - height) // 2
    assert np.array_equal(again[top : top + height, left : left + width], drawn)
    assert max(again.shape[:2]) <= 20 * min(again.shape[:2])


@pytest.mark.parametrize("size", [(4000, 3000), (30_000, 10)])
def test_a_picture_costs_no_more_than_others(size: tuple[int, int], encoders: dict[str, Any]) -> None:
    """However large or narrow: the processors refuse some, and a token for every 28 pixels has no end."""
    from eyespot.encoders._mllm_inputs import MOST_PIXELS, unpacked

    encoder = encoders["qwen2_5_vl"]
    row = encoder.read(Image.new("RGB", size, "white"))

    shown = unpacked(row)

    assert shown.width * shown.height <= MOST_PIXELS
    assert encoder.encode_pixels(row[None]).shape == (1, encoder.space.dim)


def test_an_adapter_is_added_to_the_weights_of_its_base(folders: dict[str, Path], tmp_path: Path) -> None:
    """Named as older versions of the library named the same layers; a DoRA also gives each row its length."""
    base = load(folders["qwen2_vl"])
    added = tiny_multimodal.adapter(tmp_path / "lora", folders["qwen2_vl"], base.network)
    tiny_multimodal.adapter(tmp_path / "dora", folders["qwen2_vl"], base.network, lengths=3.0)

    tuned, dora = load(tmp_path / "lora"), load(tmp_path / "dora")

    before, after, long = (dict(one.network.named_modules()) for one in (base, tuned, dora))
    assert all(torch.allclose(after[name].weight, before[name].weight + more) for name, more in added.items())
    assert all(torch.allclose(long[name].weight.norm(dim=1), torch.tensor(3.0)) for name in added)
    assert tuned.space.weights != base.space.weights
    tiny_multimodal.adapter(tmp_path / "other", folders["phi4"], base.network)
    with pytest.raises(EyespotError, match="base model"):
        load(tmp_path / "other")


@pytest.mark.parametrize("kind", ["phi3_v", "phi4mm", "clip"])
def test_a_kind_that_cannot_embed_is_refused_with_the_way_out(kind: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    (tmp_path / "model.safetensors").write_bytes(b"")

    with raises(UsageError):
        load(tmp_path)


def test_a_file_beside_the_weights_gives_other_words(folders: dict[str, Path], tmp_path: Path) -> None:
    first, copy = load(folders["qwen2_vl"]), shutil.copytree(folders["qwen2_vl"], tmp_path / "copy")
    (copy / "eyespot.toml").write_text('[instructions]\npicture = "Say what is here:"\n')

    other = load(copy)

    assert other.family.instructions.picture == "Say what is here:"
    assert other.family.instructions.both == first.family.instructions.both
    assert other.space.weights == first.space.weights and other.space.digest != first.space.digest


@pytest.mark.parametrize(
    "text",
    [
        'family = "x"',
        '[instructions]\nboth = "no place"',
        "[instructions]\nsong = 'x'",
        "instructions = 3",
        "family = ",
    ],
    ids=range(5),
)
def test_a_wrong_file_is_told(text: str, folders: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(folders["qwen2_vl"], tmp_path / "copy")
    (copy / "eyespot.toml").write_text(text)

    with raises(UsageError):
        load(copy)


def test_missing_weights_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(folders["qwen2_vl"], tmp_path / "copy")
    state = load_file(copy / "model.safetensors")
    state.pop(next(name for name in state if "q_proj.weight" in name))
    save_file(state, copy / "model.safetensors", {"format": "pt"})

    with pytest.raises(EyespotError, match="lacks weights"):
        load(copy)
