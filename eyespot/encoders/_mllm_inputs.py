"""What multimodal language models are given: what stands around picture and words, a row a family, and pixels.

The instructions are our own words; a model that was trained with one wording may read better with that: an
`eyespot.toml` in its folder goes before this table.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator

from eyespot.settings.fields import Settings
from eyespot.storage.text_files import toml_of
from eyespot.types import Pixels, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

WORDS = "{}"  # where the words of a query stand
SETTINGS = "eyespot.toml"


def _with_words(text: str) -> str:
    if WORDS not in text:
        raise ValueError(f"it never says the words of a query; put {WORDS} into it")
    return text


class Instructions(Settings):
    """What is said beside a picture, around words, and around words that ask about a picture.

    `reasoning` is what a query adds for a model that reasons before it embeds.
    """

    picture: str
    text: Annotated[str, AfterValidator(_with_words)]
    both: Annotated[str, AfterValidator(_with_words)]
    reasoning: str = ""

    def changed(self, given: Mapping[str, str]) -> Instructions:
        """The same with some others; `UsageError` for what is not an instruction."""
        return Instructions.read(**{**self.model_dump(), **given})

    def around(self, words: str | None, beside_picture: bool) -> str:
        """All that is said: around these words, or beside a picture that has none."""
        if words is None:
            return self.picture
        return (self.both if beside_picture else self.text).replace(WORDS, words)


class Family(Settings):
    """One row. `template` holds {picture} and {text}; without one the checkpoint's own chat template is used.

    `marker` is a token that the vector is read at, `thought` the token that ends reasoning; a family with a `thought`
    embeds queries after it and what is found without. `positions`: how pictures' tokens are counted, in a "grid" of
    height and width as the model was first trained, or in a "row" like words.
    """

    name: str
    instructions: Instructions
    template: str = ""
    marker: str = ""
    thought: str = ""
    positions: str = "grid"


ANSWER = Instructions(
    picture="Name what this picture shows in one word:",
    text=f"{WORDS}\nName what a picture of this shows in one word:",
    both=f"{WORDS}\nName what the picture that answers this shows in one word:",
)
REPRESENT = Instructions(
    picture="Represent this picture.",
    text=f"Find a picture that fits these words: {WORDS}",
    both=f"Represent this picture together with a question about it: {WORDS}",
)
THINK = (
    "Embed what is given above, be it a picture, words or both. Think first, between <think> and </think>. "
    "Then say what it comes to in a word or a sentence, and end with <gen_emb>."
)
REASON = REPRESENT.changed({"reasoning": THINK})
CHAT = Family(name="chat", instructions=ANSWER)
VLM2VEC = Family(name="vlm2vec", instructions=REPRESENT, template="{picture} {text}", positions="row")
UME_R1 = Family(name="ume-r1", instructions=REASON, marker="<disc_emb>", thought="<gen_emb>")
PHI_4 = Family(name="phi-4", instructions=ANSWER, template="<|user|>{picture}{text}<|end|><|assistant|>")

FAMILIES = {one.name: one for one in (CHAT, VLM2VEC, UME_R1, PHI_4)}
KINDS = {  # model_type in config.json → how its plain checkpoints are asked
    "qwen2_vl": CHAT,
    "qwen2_5_vl": CHAT,
    "qwen3_vl": CHAT,
    "qwen3_vl_moe": CHAT,
    "phi4_multimodal": PHI_4,
}
ELSEWHERE = {  # kinds whose code lies in their repositories, which is not run → what to take instead
    "phi3_v": "take it through a server that knows it (served:TIGER-Lab/VLM2Vec-Full, docs/how/encoders.md), or "
    "VLM2Vec on Qwen2-VL (mllm:VLM2Vec/VLM2Vec-V2.0)",
    "phi4mm": "take the revision that transformers reads by itself (microsoft/Phi-4-multimodal-instruct@refs/pr/70)",
}


def family(name: str, kind: str, vocabulary: Container[str]) -> Family:
    """The row of a model by its tokens, its name or its `kind` (model_type); `UsageError` if there is none."""
    if kind in ELSEWHERE:
        raise UsageError(f"{name} is a {kind}, whose code lies in its repository and is not run; {ELSEWHERE[kind]}")
    if kind not in KINDS:
        raise UsageError(f"{name} is a {kind}, which cannot embed here; there are: {', '.join(KINDS)}")
    if UME_R1.marker in vocabulary and UME_R1.thought in vocabulary:
        return UME_R1
    # The model's own name, without the folders that it happens to lie in
    plain = name.partition("@")[0].partition(":")[2].rpartition("/")[2].casefold()
    return VLM2VEC if "vlm2vec" in plain and KINDS[kind] is CHAT else KINDS[kind]


def settled(found: Family, folder: Path) -> Family:
    """The row with what an `eyespot.toml` in the model's folder says otherwise.

    `family` names another row; `[instructions]` holds picture, text, both, reasoning. `UsageError` for other keys.
    """
    path = folder / SETTINGS
    if not path.is_file():
        return found
    overrides = said_in(path)
    row = FAMILIES.get(overrides.pop("family", found.name))
    if row is None:
        raise UsageError(f"{path} names no family of these: {', '.join(FAMILIES)}")
    try:
        words = row.instructions.changed(overrides.pop("instructions", {}))
        return Family.read(**row.model_dump() | {"instructions": words} | overrides)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def said_in(path: Path) -> dict[str, Any]:
    """What a TOML file says, with a table of instructions if any; `UsageError` if it is none."""
    config = toml_of(path)
    if not isinstance(config.get("instructions", {}), Mapping):
        raise UsageError(f"{path} has no table [instructions]; write it as [instructions] with lines below")
    return config


# -- pictures of any shape as rows of one length, so that a batch is one array: height, width, then the bytes -----

MOST_PIXELS = 1280 * 28 * 28  # what a picture may cost: 1,280 tokens of Qwen2-VL
MOST_RATIO = 20  # of the longer side to the shorter; narrower pictures get black edges, or the processors refuse them
HEAD = 8  # bytes of height and width


@dataclass(frozen=True)
class ModelInput:
    """One input of a model that reads both: a picture as `packed` made it, words, or the two together."""

    picture: Pixels | None
    words: str | None


def packed(picture: Image) -> Pixels:
    """A picture, at most `MOST_PIXELS` large, as bytes (HEAD + 3 · MOST_PIXELS,)."""
    from PIL import Image

    width, height = picture.size
    least = -(-max(width, height) // MOST_RATIO)
    if min(width, height) < least:
        whole = Image.new("RGB", (max(width, least), max(height, least)))
        whole.paste(picture, ((whole.width - width) // 2, (whole.height - height) // 2))
        picture, (width, height) = whole, whole.size
    if width * height > MOST_PIXELS:
        scale = (MOST_PIXELS / (width * height)) ** 0.5
        size = max(1, int(width * scale)), max(1, int(height * scale))
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    pixels = np.asarray(picture, np.uint8)  # (height, width, 3)
    row: Pixels = np.zeros(HEAD + 3 * MOST_PIXELS, np.uint8)
    row[:HEAD] = np.array(pixels.shape[:2], "<u4").view(np.uint8)
    row[HEAD : HEAD + pixels.size] = pixels.reshape(-1)
    return row


def unpacked(row: Pixels) -> Image:
    """The picture of such bytes."""
    from PIL import Image

    height, width = np.ascontiguousarray(row[:HEAD]).view("<u4").tolist()
    return Image.fromarray(row[HEAD : HEAD + 3 * height * width].reshape(height, width, 3))
