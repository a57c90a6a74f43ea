"""How each family of vision–language models is asked: what stands around the question. One row a family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

Inputs: TypeAlias = Any  # a processor's BatchFeature: name → tensor (n, ...)
Asker: TypeAlias = Callable[[Any, str, Sequence[str], Sequence["Image"]], Inputs]
"""(processor, system text, questions, pictures) to what the model takes."""

PADDED: dict[str, Any] = {"padding": True, "padding_side": "right"}  # `padded_in_front` moves it


def chat(processor: Any, system: str, questions: Sequence[str], pictures: Sequence[Image]) -> Inputs:
    """A conversation in the checkpoint's own chat template; a template without a system role gets its text in front."""
    from jinja2 import TemplateError

    if processor.chat_template is None:
        raise UsageError("this checkpoint brings no chat template; put its chat_template.jinja into the folder")
    pairs = list(zip(questions, pictures, strict=True))
    try:
        return _templated(
            processor, [[*_text_message("system", system), _image_message(text, picture)] for text, picture in pairs]
        )
    except TemplateError:
        return _templated(
            processor, [[_image_message(f"{system}\n{text}".strip(), picture)] for text, picture in pairs]
        )


def _templated(processor: Any, conversations: list[list[dict[str, Any]]]) -> Inputs:
    whole = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
    padded = dict(PADDED)  # the library writes into what it is given
    return padded_in_front(processor.apply_chat_template(conversations, **whole, processor_kwargs=padded))


def _text_message(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": [{"type": "text", "text": text}]}] if text else []


def _image_message(text: str, picture: Image) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": text}]}


def written(pattern: str) -> Asker:
    """One line with the question where `{}` stands, as models without conversations were trained."""

    def asker(processor: Any, system: str, questions: Sequence[str], pictures: Sequence[Image]) -> Inputs:
        texts = [pattern.format(f"{system} {question}".strip()) for question in questions]
        return padded_in_front(processor(images=list(pictures), text=texts, return_tensors="pt", **PADDED))

    return asker


def padded_in_front(inputs: Inputs) -> Inputs:
    """Padding before everything else, picture tokens included: the first word is what follows the last token.

    Processors asked to pad on the left pad a Q-Former's text on the left too, and BLIP's put the picture before a text
    that is padded already; a pair's answer would hang on its neighbours in the batch.
    """
    order = inputs["attention_mask"].argsort(dim=1, stable=True)  # (n, length), padding first
    for name in ("input_ids", "token_type_ids", "mm_token_type_ids", "attention_mask"):
        if name in inputs:
            inputs[name] = inputs[name].gather(1, order)
    inputs.pop("labels", None)  # PaliGemma's processor adds what only training needs
    return inputs


FAMILIES: dict[str, Asker] = {  # model_type in config.json → how it is asked
    "blip-2": written("Question: {} Answer:"),
    "instructblip": written("{}"),
    "llava": chat,
    "llava_next": chat,
    "paligemma": written("<image>answer en {}"),
    "qwen2_vl": chat,
    "qwen2_5_vl": chat,
    "qwen3_vl": chat,
    "qwen3_vl_moe": chat,
}
ELSEWHERE = ("vila", "nvila", "llava_llama", "llava_qwen2", "llava_mistral")  # VILA's, and LLaVA's before conversion


def family(name: str, model_type: str) -> Asker:
    """How models of this type are asked; `UsageError` says where to take those that transformers does not hold."""
    if model_type in ELSEWHERE or "vila" in model_type:
        raise UsageError(
            f"{name} is of a kind ({model_type}) that transformers does not hold, as VILA is: serve it behind an "
            "OpenAI-style endpoint and judge with openai:MODEL, or take a LLaVA that llava-hf has converted"
        )
    if model_type not in FAMILIES:
        raise UsageError(f"{name} is a {model_type}, which cannot be asked; there are: {', '.join(FAMILIES)}")
    return FAMILIES[model_type]
