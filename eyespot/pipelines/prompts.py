"""Questions to models from a step: pictures and words in, an answer of a strict form out.

`prompt_of` makes the prompt, `ask_model` sends it through a step's `Context`, and `Models` is the client that sends it
to language models (`eyespot.llms`) or to models of a pipeline's own, such as a demonstration that runs offline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from eyespot import llms
from eyespot.llms import BadAnswer, Declined, JpegEncoder, NoReply, image_message, text_message
from eyespot.llms.prices import Prices, own_table, read_prices
from eyespot.llms.protocols import SIDE
from eyespot.llms.unsupported_fields import left_out
from eyespot.photos.places import picture_of
from eyespot.pipelines import (
    CallMeter,
    Client,
    Context,
    CostLimits,
    Declared,
    NoAnswer,
    Prompt,
    Spent,
)
from eyespot.types import Tokens, UsageError

if TYPE_CHECKING:
    from eyespot.types import Exchange

WAY = ("url", "requests_per_minute", "timeout", "attempts", "first_rest")
"""A recipe's settings of the way to a model, which change no answer."""
OWN = {"use", "system", "words", "form", "pictures", "side", "judge", "draw"}  # of a prompt, no option of the request
FRACTIONS = ("timeout", "first_rest")  # seconds; the other numbers are whole
ANSWER_TOKENS = 400  # what an answer with its reasons is taken to need, before anything is asked
LIMITS = ("max_tokens", "max_completion_tokens")  # of an answer, as a recipe may say them of a model
PROMPT = "prompt"


class AnswerForm(BaseModel):
    """What an answer must look like: no field more, none less, none of another kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


Answer = TypeVar("Answer", bound=AnswerForm)


@dataclass(frozen=True)
class PromptPicture:
    """A picture that a model is shown: its id, which is the digest of its bytes, and where it lies."""

    id: str
    path: str


@dataclass(frozen=True)
class ModelAnswer(Generic[Answer]):
    """An answer, or why the model would not give one."""

    answer: Answer | None
    declined: str = ""


def template(declared: Declared, ours: str) -> str:
    """The wording of a step's question: that of the recipe, or else ours; `UsageError` for another name of it."""
    strange = next((name for name in declared.prompts if name != PROMPT), None)
    if strange is not None:
        raise UsageError(f'step {declared.name} has one prompt, and no {strange!r}; write prompt = "FILE"')
    return declared.prompts.get(PROMPT, ours)


def prompt_of(
    model: Mapping[str, Any], words: str, form: type[AnswerForm], pictures: Sequence[PromptPicture] = (), **more: Any
) -> Prompt:
    """The prompt for a model of a recipe's `[models]`; `more` (a `draw`, the `judge`) is part of it.

    Only the client gets names in `more` that begin with `_`. Raises `UsageError` for a model without `use`, and for
    a key that would be written down with the prompt.
    """
    if not isinstance(model.get("use"), str):
        raise UsageError('a model of the recipe does not say which it is; write use = "openai:MODEL"')
    if "key" in model:
        raise UsageError("a recipe holds no keys, for it is shown to others; set OPENAI_API_KEY or ANTHROPIC_API_KEY")
    options = {f"_{name}" if name in WAY else name: value for name, value in model.items()}
    question = {"words": words, "form": form.model_json_schema(), "pictures": [picture.id for picture in pictures]}
    return {**options, **question, **more, "_pictures": [picture.path for picture in pictures], "_form": form}


def shared_lines(template: str, gap: str) -> int:
    """How many lines of a filled prompt stand before this gap, and the line that says what data is; 0: there is none.

    They go before the pictures as `_shared`, the others after them: a provider caches what begins alike.
    """
    return 1 + template[: template.find(f"{{{gap}}}")].count("\n") if f"{{{gap}}}" in template else 0


def ask_model(context: Context, prompt: Prompt, form: type[Answer]) -> ModelAnswer[Answer]:
    """The model's answer, from the disk if it was ever asked this; `NoAnswer` where it gives none of this form."""
    answer = context.ask(prompt)
    if "declined" in answer and "declined" not in form.model_fields:
        return ModelAnswer(None, str(answer["declined"]))
    return ModelAnswer(form.model_validate(answer))


def expected(model: Mapping[str, Any], pictures: int, words: str) -> Spent:
    """What such a question is likely to cost; what runs offline costs nothing."""
    use = str(model.get("use", ""))
    if not llms.is_language_model(use):
        return Spent()
    return _tokens(model, pictures, len(words)).cost(1, read_prices().of(use.partition(":")[2]))


def _tokens(model: Mapping[str, Any], pictures: int, letters: int) -> Tokens:
    """The tokens of a question; its answer has as many as the recipe allows, where it has a limit."""
    usual = Tokens()
    answer = max((int(model[name]) for name in LIMITS if isinstance(model.get(name), int)), default=ANSWER_TOKENS)
    return Tokens(usual.picture * pictures, usual.words + letters // 4, answer)


# -- the client -------------------------------------------------------------------------------------------------


@dataclass
class Models:
    """A runner's client for all models of a recipe, each opened when it is first asked.

    `others` are clients by the first part of `use`. `prices` is a table of one's own. `note` gets a sentence for each
    setting that a model does not accept, once; with `strict` such a setting ends the run instead.
    """

    others: Mapping[str, Client] = field(default_factory=dict)
    prices: Prices | None = None
    note: Callable[[str], None] = lambda _sentence: None
    strict: bool = False
    _noted: set[str] = field(default_factory=set, repr=False)
    _opened: dict[tuple[Any, ...], llms.Endpoint] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __call__(self, prompt: Prompt, meter: CallMeter) -> Mapping[str, Any]:
        """The answer's fields, or {"declined": why}; `NoAnswer` where there is none of the form that was asked for."""
        other = self.others.get(str(prompt["use"]).partition(":")[0])
        if other is not None:
            return other(prompt, meter)
        model, words = self._model(prompt), str(prompt["words"])
        options = {name: value for name, value in prompt.items() if name not in OWN and not name.startswith("_")}
        letters = len(words.encode("utf-8", "replace")) + len(json.dumps(prompt["form"]))  # the form is sent, too
        likely = _tokens(prompt, len(prompt["pictures"]), letters).cost(1, model.price)
        try:
            shown = zip(prompt["pictures"], prompt["_pictures"], strict=True)
            pictures = [_jpeg(id, Path(path), _side(prompt)) for id, path in shown]
            messages = [text_message("system", prompt["system"])] if "system" in prompt else []
            requests = getattr(meter, "requests", None)
            batched = requests is not None and requests.store.batched
            lines = words.split("\n")
            shared = int((pictures and prompt.get("_shared")) or len(lines))
            message = image_message(pictures, "\n".join(lines[:shared]), text_first=True)
            if lines[shared:]:
                last = {"type": "text", "text": "\n".join(lines[shared:])}
                message = {**message, "content": [*message["content"], last]}
            elif len(pictures) > 1 and str(prompt["use"]).startswith("anthropic:") and not batched:
                # Up to there it is to be cached; requests of one batch run side by side and would store it each
                *parts, first, last = message["content"]
                message = {**message, "content": [*parts, {**first, "cache_control": {"type": "ephemeral"}}, last]}
            messages.append(message)
            meter.expect(str(prompt["use"]), likely)
            metered = model.metered(meter, partial(self._report, prompt, meter), requests)
            fields: dict[str, Any] = metered.answer(messages, prompt["_form"], **options).model_dump(mode="json")
        except Declined as why:
            return {"declined": str(why) or "without a word"}
        except (BadAnswer, NoReply) as why:
            raise NoAnswer(f"{prompt['use']}: {why}") from None
        return fields

    def check(self, models: Mapping[str, Any], limits: CostLimits = CostLimits()) -> None:
        """`UsageError` or `EyespotError` for a model that cannot be asked, before anything is asked.

        With a limit of money also for one whose price is unknown: its requests would count as nothing.
        """
        for model in models.values():
            if isinstance(model, dict) and str(model.get("use")).partition(":")[0] not in self.others:
                prompt = prompt_of(model, "", AnswerForm)
                JpegEncoder(picture_of, _side(prompt))  # refuses a side that no picture can have
                opened = self._model(prompt)
                if limits.money is not None and opened.price is None and not opened.free:
                    known = f"no price is known for {model['use']}"
                    raise UsageError(f"{known}; add it to {own_table()}, or limit calls or tokens in place of money")

    def _report(self, prompt: Prompt, meter: CallMeter, exchange: Exchange) -> None:
        """Hand on what came of a request, and note each setting that was left out and how it counts, once."""
        meter.report(exchange)
        sentences = self._model(prompt).notes
        with self._lock:
            new = [field for field in left_out(exchange.changes) if f"{prompt['use']} {field}" not in self._noted]
            fresh = [sentence for sentence in sentences if sentence not in self._noted]
            self._noted |= {*fresh, *(f"{prompt['use']} {field}" for field in new)}
        fresh += [f"{prompt['use']} does not accept {', '.join(new)}; it is asked without"] if new else []
        for sentence in fresh:
            self.note(sentence)

    def _model(self, prompt: Prompt) -> llms.Endpoint:
        """The model that the prompt names, opened when it is first asked."""
        use, way = str(prompt["use"]), {name: prompt[f"_{name}"] for name in WAY if f"_{name}" in prompt}
        key = (use, *sorted(way.items()))
        with self._lock:
            if key in self._opened:
                return self._opened[key]
            if not llms.is_language_model(use):
                raise UsageError(f"{use!r} is not a model that answers questions; use openai:MODEL or anthropic:MODEL")
            for name, value in way.items():
                _check(use, name, value)
            # The budget reserves what the recipe's limit allows, so that limit is not raised
            opened = llms.load(use, prices=self.prices, strict=self.strict, raise_token_limit=False, **way)
            return self._opened.setdefault(key, opened)


@lru_cache(maxsize=256)
def _jpeg(_id: str, path: Path, side: int) -> str:
    """A picture's data, which many requests show: some 50 MB of them stay in memory."""
    return JpegEncoder(picture_of, side)(path)


def _check(use: str, name: str, value: object) -> None:
    """`UsageError` for an option that is text where a number belongs, or the other way round."""
    kinds = str if name == "url" else (int, float) if name in FRACTIONS else int
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise UsageError(f"{use}: {name} is {value!r}; give {'an address' if kinds is str else 'a number'}")


def _side(prompt: Prompt) -> int:
    """The pixels of the longer side of each picture."""
    side = prompt.get("side", SIDE)
    _check(str(prompt["use"]), "side", side)
    return int(side)
