"""Vision–language models on this machine: `transformers:ORG/NAME[@REVISION]` or `transformers:FOLDER`.

Qwen2-VL, Qwen2.5-VL, Qwen3-VL, LLaVA 1.5 and 1.6, PaliGemma, BLIP-2 and InstructBLIP are asked a question whose answer
is yes or no. The score is the share of yes in the first generated word (as INQUIRE re-ranks).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.judges._local import OPTIONS as LOCAL, LocalJudge, LocalSettings, loading, source
from eyespot.judges._prompt import QUERY, JudgePrompt, described
from eyespot.models.torch_models import model_of, on_device, processor_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image

SPELLING = "transformers:ORG/NAME[@REV]|FOLDER"
KIND = "local model"
OFFLINE = "once fetched"
NEEDS = "the extra [torch]; weights from the model hub or a folder"
OPTIONS = LOCAL


Inputs: TypeAlias = Any  # a processor's BatchFeature: name → tensor (n, ...)
Asker: TypeAlias = Callable[[Any, str, Sequence[str], Sequence["Image"]], Inputs]
"""(processor, system text, questions, pictures) to what the model takes."""

PADDED: dict[str, Any] = {"padding": True, "padding_side": "right"}  # `padded_in_front` moves it


def chat(processor: Any, system: str, questions: Sequence[str], pictures: Sequence[Image]) -> Inputs:
    """A conversation in the checkpoint's own chat template; a template without a system role gets its text in front."""
    from jinja2 import TemplateError

    if processor.chat_template is None:
        raise UsageError("this checkpoint brings no chat template; put its chat_template.jinja into the folder")
    whole = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}

    def templated(system: str, texts: Sequence[str]) -> Inputs:
        first = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
        conversations = [
            [*first, {"role": "user", "content": [{"type": "image", "image": one}, {"type": "text", "text": text}]}]
            for text, one in zip(texts, pictures, strict=True)
        ]
        padded = dict(PADDED)  # the library writes into what it is given
        return padded_in_front(processor.apply_chat_template(conversations, **whole, processor_kwargs=padded))

    try:
        return templated(system, questions)
    except TemplateError:
        return templated("", [f"{system}\n{text}".strip() for text in questions])


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


SPACES = ("", "Ġ", "▁")  # how vocabularies write a leading space: not at all, of bytes, of pieces
SURE = 0.9  # what yes and no should take together of all that the model might say


def spellings(tokenizer: Any, word: str) -> list[int]:
    """The tokens that are this word in any case, with or without a leading space, in ascending order.

    Raises UsageError if the vocabulary holds it in no spelling: its first piece could begin any other word too.
    """
    vocabulary = tokenizer.get_vocab()
    cases = {word, word.lower(), word.upper(), word.capitalize()}
    found = {vocabulary[space + case] for space in SPACES for case in cases if space + case in vocabulary}
    if not found:
        raise UsageError(f"the model has no single token for the answer {word!r}; choose another word in the wording")
    return sorted(found)


def answer_tokens(tokenizer: Any, wording: JudgePrompt) -> tuple[list[int], list[int]]:
    """The tokens of yes and of no: all their spellings, or the one that an exact wording names."""
    if wording.token is None:
        return spellings(tokenizer, wording.yes), spellings(tokenizer, wording.no)
    yes, no = ([int(tokenizer(word).input_ids[wording.token])] for word in (wording.yes, wording.no))
    return yes, no


@dataclass
class FirstWord:
    """What the first word of answers says, and how often it was neither yes nor no."""

    yes: list[int]
    no: list[int]
    answers: int = 0
    unsure: int = 0

    def probabilities(self, logits: torch.Tensor) -> NDArray[np.float64]:
        """yes / (yes + no) with both taken from the softmax over the whole vocabulary; (n, vocabulary) to (n,)."""
        import torch

        logprobs = torch.log_softmax(logits.double(), dim=-1)  # (n, vocabulary)
        yes, no = (torch.logsumexp(logprobs[:, ids], dim=-1) for ids in (self.yes, self.no))  # (n,), (n,)
        self.answers += len(logprobs)
        self.unsure += int((torch.logaddexp(yes, no).exp() < SURE).sum())
        # as a difference of logarithms it stays right where both are too small for a float
        share: NDArray[np.float64] = torch.sigmoid(yes - no).cpu().numpy()
        return share

    @property
    def notes(self) -> list[str]:
        """A sentence if yes and no together ever took less than nine tenths."""
        if not self.unsure:
            return []
        return [
            f"in {self.unsure:,} of {self.answers:,} answers yes and no together had a probability below {SURE:g}: "
            "the model may not understand the question; try another wording"
        ]


def load(rest: str, **options: Any) -> LocalJudge:
    """A vision–language model as a judge; options as in `Settings` (wording, device, dtype, batch, read).

    The weights are loaded when the first pair is judged. Code that a repository brings is not run.
    Raises: UsageError if the model is of another family, EyespotError if it cannot be had.
    """
    settings, model = LocalSettings.of(options), source("transformers", rest)
    asker = family(model.name, model.config["model_type"])
    wording, ask = settings.wording, settings.wording.ask
    if wording.exact:
        asker, ask = written(wording.turns.replace(QUERY, "{}")), described

    def opened() -> YesOrNo:
        with loading(model.name):
            from transformers import AutoModelForImageTextToText

            folder = model.folder()
            processor = processor_of(folder)
            network = model_of(AutoModelForImageTextToText, folder, settings.torch_dtype)
            answers = FirstWord(*answer_tokens(processor.tokenizer, settings.wording))
            return YesOrNo(network.to(settings.torch_device).eval(), processor, asker, settings.wording.system, answers)

    return LocalJudge(model.name, wording.digest, ask, opened, settings)


@dataclass
class YesOrNo:
    """A loaded model that is asked questions about pictures."""

    model: Any
    processor: Any
    asker: Asker
    system: str
    answers: FirstWord

    def __call__(self, texts: Sequence[str], pictures: Sequence[Image]) -> NDArray[np.float64]:
        """The share of yes in the first word of each answer, (n,)."""
        questions = list(texts)
        # A query that spells one of the model's control tokens must not act as one
        for token in self.processor.tokenizer.all_special_tokens:
            questions = [text.replace(token, " ") for text in questions]
        return self.answers.probabilities(self.first_word(self.asker(self.processor, self.system, questions, pictures)))

    def first_word(self, inputs: Inputs) -> torch.Tensor:
        """The logits of the first generated token, (n, vocabulary)."""
        import torch

        wanted = {"max_new_tokens": 1, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
        with torch.inference_mode():
            logits: torch.Tensor = self.model.generate(**on_device(inputs, self.model), **wanted).logits[0]
        return logits

    @property
    def notes(self) -> list[str]:
        """Whether the model answers with yes and no at all."""
        return self.answers.notes
