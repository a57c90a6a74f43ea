"""Judges behind an endpoint: a pair becomes pictures and a question, a reply a verdict or the reason for none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

from eyespot import llms
from eyespot.judges._answers import GRADES, AnswerMode, FirstToken, Grades, Words
from eyespot.judges._prompt import PLAIN, JudgePrompt, examples
from eyespot.judges._rounds import ENDED
from eyespot.ledger.judgements import query_digest
from eyespot.llms.batches import ItemRequests, Requests, Waiting
from eyespot.llms.budget import Budget, ItemMeter
from eyespot.llms.client import Endpoint
from eyespot.llms.errors import BadAnswer, Declined, Halted, NoReply
from eyespot.llms.flow_control import LastResult, Underway
from eyespot.llms.protocols import SIDE, JpegEncoder, image_message, text_message
from eyespot.llms.settings import POSITIVE, refuse_not_positive
from eyespot.llms.unsupported_fields import PROBABILITIES, left_out
from eyespot.photos.places import picture_of
from eyespot.storage.digests import text_digest
from eyespot.types import (
    Adjustment,
    Answer,
    AnswerStream,
    Exchange,
    EyespotError,
    Pair,
    SequentialAnswers,
    UsageError,
    Verdict,
)

TRIES = 3  # of a question whose answer is none of those that were asked for
EXAMPLES = "The last of the {pictures} pictures is the photograph to judge; before it come the examples.\n"


@dataclass(frozen=True)
class EndpointJudge:
    """An `eyespot.types.Judge` that asks a model behind an endpoint, `workers` pairs at a time."""

    language_model: Endpoint
    wording: JudgePrompt
    pictures: JpegEncoder
    way: AnswerMode
    workers: int
    budget: Budget
    requests: Requests | None = None  # they wait for batches

    @property
    def name(self) -> str:
        """The language model's."""
        return self.language_model.name

    @property
    def prompt(self) -> str:
        """The wording's digest, or one of all that is special: another size of pictures, way of asking, field."""
        return self._digest(self.way.special)

    @property
    def fallbacks(self) -> dict[str, str]:
        """The prompts of the ways that may stand in for this one, and what to say of each; words come last."""
        return {self._digest(special): sentence for special, sentence in self.way.fallbacks.items()}

    @property
    def notes(self) -> list[str]:
        """What users should know of the answers so far, a sentence each."""
        fields = _left_out(self.language_model.unsupported.changes)
        unaccepted = [f"{self.name} does not accept {', '.join(fields)}; it is asked without"] if fields else []
        return [*self.way.notes(self.name), *unaccepted, *self.language_model.notes]

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """One answer for every pair as soon as it is there.

        `BudgetSpent`, or `EyespotError` for what would fail with every pair, is raised after the answers in flight.
        """
        self.language_model.sleep.reset()
        self.language_model.breaker.reset()
        if self.requests is not None:
            return SequentialAnswers(self._in_batches(pairs, self.requests))
        return Underway(pairs, self._answer, self.workers, self.language_model.sleep.cancel)

    def _in_batches(self, pairs: Sequence[Pair], requests: Requests) -> Iterator[Answer]:
        """The answers whose replies are there; pairs that wait for a batch come again once it has ended."""
        while pairs:
            waiting = []
            for pair in pairs:
                about = query_digest(pair.query), pair.image, self.name, self.language_model.address, self.prompt
                item = requests.of(text_digest(*about))
                try:
                    answer = self._answer(pair, item)
                except Waiting:
                    waiting.append(pair)
                except EyespotError:
                    item.forget_error()
                    raise
                else:
                    yield answer
                    item.finish()  # whoever took it has it on the disk
            if waiting:
                requests.wait()
            pairs = waiting

    def _digest(self, way: str) -> str:
        special = [way] if way else []
        special += [f"side={self.pictures.side}"] if self.pictures.side != SIDE else []
        special += [f"extra={json.dumps(extra, sort_keys=True)}"] if (extra := self.language_model.extra) else []
        return text_digest(self.wording.digest, *special) if special else self.wording.digest

    def _answer(self, pair: Pair, item: ItemRequests | None = None) -> Answer:
        meter, exchanges = ItemMeter(self.budget), list[Exchange]()
        endpoint = self.language_model.metered(meter, exchanges.append, item)
        answer = self._outcome(pair, endpoint, meter, exchanges)
        spent = meter.spent if item is None else item.spent
        return answer._replace(spent=spent, exchanges=tuple(exchanges))

    def _outcome(self, pair: Pair, endpoint: Endpoint, meter: ItemMeter, exchanges: list[Exchange]) -> Answer:
        try:
            pictures = [self.pictures(path) for path in (*examples(pair.query), pair.path)]
            which = EXAMPLES.format(pictures=len(pictures)) if len(pictures) > 1 else ""
            messages = [text_message("system", self.wording.system)] if self.wording.system else []
            messages.append(image_message(pictures, which + self.wording.ask(pair.query)))
            for attempt in range(TRIES):
                with nullcontext() if attempt == TRIES - 1 else suppress(BadAnswer):
                    verdict, fallback = self.way(endpoint, messages)
                    break
        except Declined as why:
            return Answer(pair, Verdict(probability=0.0, reason=f"refused: {why}"), refused=True)
        except (BadAnswer, NoReply) as why:
            if self.wording.exact and str(why).startswith("the server answers 400"):  # 0 in INQUIRE's code
                return Answer(pair, Verdict(probability=0.0, reason=f"refused: {why}"), refused=True)
            return Answer(pair, None, failure=str(why))
        except (EyespotError, Halted) as end:
            if not meter.spent.calls:
                raise
            cut = Answer(pair, None, failure=ENDED, spent=meter.spent, exchanges=tuple(exchanges))
            raise LastResult(cut, end) from None
        # What the model did not accept of the request goes into the reason, so that the ledger has it
        changes = next((exchange.changes for exchange in reversed(exchanges) if exchange.reply), ())
        if fields := _left_out(changes):
            reasons = [verdict.reason] if verdict.reason else []
            verdict = replace(verdict, reason="; ".join([*reasons, f"asked without {', '.join(fields)}"]))
        return Answer(pair, verdict, prompt=self._digest(fallback) if fallback else "")


def _left_out(changes: Sequence[Adjustment]) -> list[str]:
    """Without the probabilities, which the answer mode reports itself."""
    return left_out(change for change in changes if change.field not in PROBABILITIES)


# -- options ---------------------------------------------------------------------------------------------------

OBJECT = """write the request's own fields, as in '{"reasoning_effort": "low"}'"""
SET = {  # fields that the judge sets itself, and what to do instead
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "say answer_tokens instead"),
    **dict.fromkeys(("logprobs", "top_logprobs", "logprob_token_ids", "response_format"), "say answer instead"),
    **dict.fromkeys(("model", "messages", "system", "temperature", "n", "stream"), "leave it out"),
}


def request_fields(text: str) -> dict[str, Any]:
    """The fields that a JSON object holds; `UsageError` for other text."""

    def refuse_constant(name: str) -> float:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        request = json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        raise UsageError(f"extra is not JSON ({error.msg} at {error.pos}); {OBJECT}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"extra is not JSON ({error}); {OBJECT}") from None
    if not isinstance(request, dict):
        raise UsageError(f"extra is not a JSON object; {OBJECT}")
    return request


# What users may say of such a judge. Keys are left to the environment: any list of processes shows a command line.
OPTIONS: dict[str, Callable[[str], Any]] = {
    "url": str,
    "answer": str,
    "answer_tokens": int,
    "side": int,
    "workers": int,
    "requests_per_minute": int,
    "timeout": float,
    "attempts": int,
    "extra": request_fields,
}
USUAL: Mapping[str, Any] = {  # what `load` takes beside the options of the language model (`EndpointSettings`)
    "wording": None,  # None: the judge's own for its answers
    "read": picture_of,  # a file to an upright RGB picture
    "side": SIDE,  # pixels of the longer side of what is sent
    "workers": 8,  # requests in flight at once
    "answer": "",  # words, grades or, where the endpoint can, probabilities
    "answer_tokens": 16,  # the most that an answer in words may have
    "requests": None,  # where requests wait for batches
}


def endpoint_judge(vendor: str, model: str, options: Mapping[str, Any], ways: Sequence[str]) -> EndpointJudge:
    """The judge that asks a vendor's model, which can answer in these ways, the first by itself.

    An option that is None has its default. Raises `UsageError` for unknown ones and numbers below 1.
    """
    given = {name: value for name, value in options.items() if value is not None}
    own = {**USUAL, **{name: value for name, value in given.items() if name in USUAL}}
    known = {option.name for option in fields(llms.EndpointSettings)} - {"strict", "thinks"}
    if unknown := [name for name in options if name not in {*USUAL, *known}]:
        raise UsageError(f"{vendor} has no option {unknown[0]!r}; there are: {', '.join(sorted({*USUAL, *known}))}")
    refuse_not_positive(vendor, {name: given.get(name) for name in ("side", "workers", "answer_tokens", *POSITIVE)})
    if name := next((name for name in given.get("extra", {}) if name in SET), ""):
        raise UsageError(f"{vendor}: extra holds {name}, which is set already; {SET[name]}")
    if not model:
        raise UsageError(f"name the model that is to judge, as in {vendor}:MODEL")
    if (answer := own["answer"] or ways[0]) not in ways:
        raise UsageError(f"{vendor} cannot answer in {answer!r}; choose one of: {', '.join(ways)}")
    wording, tokens = own["wording"] or (GRADES if answer == "grades" else PLAIN), own["answer_tokens"]
    modes: dict[str, AnswerMode] = {"probabilities": FirstToken(wording, tokens), "words": Words(wording, tokens)}
    mode = {**modes, "grades": Grades(tokens)}[answer]
    budget = given.get("budget") or llms.Budget()
    more = {name: value for name, value in given.items() if name not in USUAL} | {"budget": budget}
    # Models that think get more tokens, unless the user says how many an answer may have
    thinking = {"raise_token_limit": "answer_tokens" not in given}
    thinking["thinks"] = vendor != "openai" or bool(given.get("extra"))  # whoever sets fields may want it
    endpoint = llms.load(f"{vendor}:{model}", **{**thinking, **more})
    pictures = llms.JpegEncoder(own["read"], own["side"])
    return EndpointJudge(endpoint, wording, pictures, mode, own["workers"], budget, own["requests"])
