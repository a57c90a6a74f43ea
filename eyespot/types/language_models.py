"""Language models, with or without pictures: messages, replies, what they cost; the role of a language model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

    Form = TypeVar("Form", bound=BaseModel)

Message: TypeAlias = Mapping[str, Any]  # as in OpenAI's chat completions: {"role": "user", "content": …}
Token: TypeAlias = tuple[str, float]  # as the server spells it, and its natural log-probability
MILLION = 1_000_000


class Spent(NamedTuple):
    """What answers cost: requests sent (retries included), tokens, and money in US dollars."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens in and out together."""
        return self.tokens_in + self.tokens_out

    @property
    def dollars(self) -> str:
        """The money for people: in cents, and below a cent with its first two digits."""
        digits = 2 if self.money >= 0.01 or self.money <= 0 else 1 - math.floor(math.log10(self.money))
        return f"${self.money:,.{digits}f}"

    def as_json(self) -> dict[str, Any]:
        """Its parts by name; money is None where tokens were paid for at a price that is not known."""
        return {**self._asdict(), "money": self.money if self.money or not self.tokens else None}

    def plus(self, more: Spent) -> Spent:
        """Both together."""
        calls, tokens_in, tokens_out, money = more
        return Spent(self.calls + calls, self.tokens_in + tokens_in, self.tokens_out + tokens_out, self.money + money)

    def times(self, count: int) -> Spent:
        """This cost `count` times."""
        return Spent(self.calls * count, self.tokens_in * count, self.tokens_out * count, self.money * count)


class Price(NamedTuple):
    """US dollars for a million tokens, the date of that price, and the table that has it."""

    input: float
    output: float
    date: str
    source: Path
    cached: float | None = None  # input that the server had read before; None: like other input
    batch: float = 1.0  # the share of it that a request in a batch costs
    cached_in_batch: float | None = None

    @property
    def in_batch(self) -> Price:
        """What a request in a batch costs."""
        input, output = self.input * self.batch, self.output * self.batch
        return self._replace(input=input, output=output, cached=self.cached_in_batch)

    def of(self, tokens_in: int, tokens_out: int, cached: int = 0, written: int = 0) -> float:
        """US dollars for this many tokens, of which `cached` were read before and `written` stored to be read again."""
        again = min(cached, tokens_in) if self.cached is not None else 0
        dollars = (tokens_in - again + written / 4) * self.input + again * (self.cached or 0) + tokens_out * self.output
        return dollars / MILLION


@dataclass(frozen=True)
class Tokens:
    """What one request is taken to need: a picture of 768 pixels costs 560 to 770 tokens at the usual models."""

    picture: int = 765
    words: int = 80
    answer: int = 1

    def cost(self, calls: int, price: Price | None) -> Spent:
        """What this many requests would cost if none is repeated; without a price the money is 0."""
        tokens_in, tokens_out = calls * (self.picture + self.words), calls * self.answer
        return Spent(calls, tokens_in, tokens_out, price.of(tokens_in, tokens_out) if price else 0.0)


class Adjustment(NamedTuple):
    """A field of a request that was not sent as asked; without `sent_as`, its name then, it was left out."""

    field: str
    asked: Any
    sent_as: str = ""
    sent: Any = None


class Reply(NamedTuple):
    """What a model answers: its words, the alternatives of their first token, what the reply cost and why it ended."""

    text: str  # without thoughts
    logprobs: (
        tuple[Token, ...] | None
    )  # of the answer's first token, as many as were asked for; None: the server gives none
    usage: Spent
    finish: str
    declined: str = ""  # why, where the model or its guard refuses to answer
    model: str = ""  # the model that answered, as the server names it
    changes: tuple[Adjustment, ...] = ()  # of the request, because the server does not accept it as asked
    fingerprint: str = ""  # of the served model, where the server gives one (OpenAI's system_fingerprint)
    thought: bool = False  # whether the model thought before, or instead of, its answer

    @property
    def cut(self) -> bool:
        """Whether a limit ended it: "length", "MAX_TOKENS", "model_context_window_exceeded"."""
        return any(word in self.finish.casefold() for word in ("length", "max", "limit", "window"))

    @property
    def unspoken(self) -> bool:
        """Whether the token limit was reached before the answer began."""
        return self.cut and not self.text.strip()


class Exchange(NamedTuple):
    """A request as it was sent, and what came of it.

    Pictures stand in `body` as "<picture 1>", "<picture 2>", …; `pictures` are the SHA-256 of the files that were sent.
    """

    body: Mapping[str, Any]
    pictures: tuple[str, ...] = ()
    reply: Reply | None = None
    trouble: str = ""  # where there is no reply, what the server said instead

    @property
    def changes(self) -> tuple[Adjustment, ...]:
        """What became of fields of the request, where it has a reply."""
        return self.reply.changes if self.reply else ()


class BudgetMeter(Protocol):
    """Counts requests: a budget, or the meter of one item on it."""

    def take(self, likely: Callable[[], Spent] = Spent) -> None:
        """Count one request before it is sent; raises `BudgetSpent` if the budget has no room for it.

        `likely` estimates what it may cost, where nothing else is known of requests to its model.
        """

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what the request cost, money in US dollars."""

    def lose(self) -> None:
        """The cost of the request will never be known."""


def ignore_exchange(_exchange: Exchange) -> None:
    """Does nothing with an exchange."""


class LanguageModel(Protocol):
    """A language or vision-language model. Any number of threads may use it."""

    @property
    def name(self) -> str:
        """Which model it is and where: "openai:gpt-5-mini", "openai:llava@localhost"."""

    @property
    def price(self) -> Price | None:
        """What its tokens cost; None if no price table has the model."""

    @property
    def free(self) -> bool:
        """Whether its requests cost nothing."""

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """The model's next message; options (max_tokens, temperature, …) go into the request unchanged."""

    def answer(self, messages: Sequence[Message], form: type[Form], **options: Any) -> Form:
        """The model's answer as an object of this pydantic model."""

    def metered(self, meter: BudgetMeter, on_exchange: Callable[[Exchange], None] = ignore_exchange) -> LanguageModel:
        """The same model, whose requests this meter counts; `on_exchange` gets each request with what came of it."""
