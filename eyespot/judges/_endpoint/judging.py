"""A judge behind an endpoint: a pair becomes pictures and a question, a reply a verdict or the reason for none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from eyespot.judges._wording import JudgePrompt, examples
from eyespot.llms.client import Endpoint
from eyespot.llms.concurrency import LastResult, Underway
from eyespot.llms.errors import BadAnswer, Declined, Halted, NoReply
from eyespot.llms.images import SIDE, JpegEncoder
from eyespot.llms.prices import Prices
from eyespot.llms.protocols import Message, Reply, image_message, text_message
from eyespot.llms.unsupported_fields import PROBABILITIES, Adjustment, left_out
from eyespot.types import Answer, EyespotError, Pair, Verdict

TRIES = 3  # of a question whose answer is none of those that were asked for
ENDED = "the run ended before its answer was whole"
EXAMPLES = "The last of the {pictures} pictures is the photograph to judge; before it come the examples.\n"


class VisionPrompt(NamedTuple):
    """What a model is shown and asked: pictures as base64 JPEG, the photograph to judge last."""

    system: str
    question: str
    pictures: tuple[str, ...]

    @property
    def messages(self) -> list[Message]:
        """The same as a conversation."""
        return [
            *([text_message("system", self.system)] if self.system else []),
            image_message(self.pictures, self.question),
        ]


class VerdictWithFallback(NamedTuple):
    """A verdict, and the fallback that it came by; "" where it came by the way itself."""

    verdict: Verdict
    fallback: str = ""


class AnswerMode(Protocol):
    """How a verdict is got from a model: its first token, its words, a grade, several votes."""

    @property
    def special(self) -> str:
        """What tells verdicts of this way from those by the first token; "" for that one."""
        ...

    @property
    def fallbacks(self) -> Mapping[str, str]:
        """The `special` of other ways by which a reply may be read, the finest first, and what to say of each."""
        ...

    def __call__(self, endpoint: Endpoint, sight: VisionPrompt) -> VerdictWithFallback:
        """One verdict; `BadAnswer` if the model answered something else."""
        ...

    def notes(self, name: str) -> list[str]:
        """What the user should know of the verdicts so far."""
        ...


@dataclass(frozen=True)
class EndpointJudge:
    """An `eyespot.types.Judge` that asks an endpoint, `workers` pairs at a time."""

    name: str
    endpoint: Endpoint
    wording: JudgePrompt
    pictures: JpegEncoder
    way: AnswerMode
    workers: int
    prices: Prices | None = None  # which the endpoint counts by, for their notes

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
        """What the user should know of the answers so far, a sentence each."""
        return self.way.notes(self.name) + self._unaccepted() + (self.prices.notes if self.prices else [])

    def judge(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair as soon as it is there.

        `BudgetSpent`, or `EyespotError` for what would fail with every pair, is raised after the answers under way.
        """
        self.endpoint.rest.begin()
        return Underway(pairs, self._answer, self.workers, self.endpoint.rest.halt)

    def _unaccepted(self) -> list[str]:
        if fields := _left_out(self.endpoint.amended.changes):
            return [f"{self.name} does not accept {', '.join(fields)}; it is asked without"]
        return []

    def _digest(self, way: str) -> str:
        special = [way] if way else []
        special += [f"side={self.pictures.side}"] if self.pictures.side != SIDE else []
        special += [f"extra={json.dumps(extra, sort_keys=True)}"] if (extra := self.endpoint.extra) else []
        if not special:
            return self.wording.digest
        return hashlib.sha256("\x1f".join([self.wording.digest, *special]).encode()).hexdigest()[:16]

    def _answer(self, pair: Pair) -> Answer:
        endpoint, tab = self.endpoint.tabbed()
        replies: list[Reply] = []
        try:
            shown = tuple(self.pictures(path) for path in (*examples(pair.query), pair.path))
            which = EXAMPLES.format(pictures=len(shown)) if len(shown) > 1 else ""
            sight = VisionPrompt(self.wording.system, which + self.wording.ask(pair.query), shown)
            verdict, fallback = self._opinion(replace(endpoint, on_reply=replies.append), sight)
        except Declined as why:
            return Answer(pair, Verdict(probability=0.0, reason=f"refused: {why}"), refused=True, spent=tab.spent)
        except (BadAnswer, NoReply) as why:
            return Answer(pair, None, failure=str(why), spent=tab.spent)
        except (EyespotError, Halted) as end:
            if not tab.spent.calls:
                raise
            raise LastResult(Answer(pair, None, failure=ENDED, spent=tab.spent), end) from None
        # The verdict with what the model would not take of the request, in its reason: so the ledger holds it
        fields = _left_out(replies[-1].changes) if replies else []
        said = [verdict.reason] if verdict.reason else []
        verdict = (
            replace(verdict, reason="; ".join([*said, f"asked without {', '.join(fields)}"])) if fields else verdict
        )
        return Answer(pair, verdict, spent=tab.spent, prompt=self._digest(fallback) if fallback else "")

    def _opinion(self, endpoint: Endpoint, sight: VisionPrompt) -> VerdictWithFallback:
        for _ in range(TRIES - 1):
            try:
                return self.way(endpoint, sight)
            except BadAnswer:
                continue
        return self.way(endpoint, sight)


def _left_out(changes: Sequence[Adjustment]) -> list[str]:
    """Without the probabilities, of which the way of asking speaks itself."""
    return left_out(one for one in changes if one.field not in PROBABILITIES)
