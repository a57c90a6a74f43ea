"""A model behind an address: one request is counted, paced and sent, and sent again where that helps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from eyespot.llms.errors import (
    LONGEST,
    SORRY,
    BadAnswer,
    Busy,
    Declined,
    NoReply,
    RetryableError,
    StatusError,
    Unreachable,
    final,
)
from eyespot.llms.protocols import Dialect, Message, Reply, text_message, usage_of
from eyespot.llms.rate_limit import CancellableSleep, RateLimiter
from eyespot.llms.transport import Wire
from eyespot.llms.unsupported_fields import Amended, amendment, changes, left_out, refused, thinking
from eyespot.types import EyespotError, Spent

if TYPE_CHECKING:
    from pydantic import BaseModel
    from tenacity import RetryCallState

    Form = TypeVar("Form", bound=BaseModel)

Found = TypeVar("Found")

REPAIR = "That does not have the form that was asked for: {wrong}. Answer again, with the mended JSON object alone."
FORM = "Answer with one JSON object alone, of this JSON schema: {schema}"


class BudgetMeter(Protocol):
    """What requests are counted by: a budget, or the `ItemMeter` of one item on it."""

    def take(self) -> None: ...

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None: ...

    def lose(self) -> None: ...


class UnlimitedBudget:
    """A till that counts nothing and lets everything leave."""

    def take(self) -> None:
        """One request leaves."""

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """It cost this."""

    def lose(self) -> None:
        """What it cost will never be known."""


@dataclass
class ItemMeter:
    """What one item cost, counted on its way to what all items share."""

    till: BudgetMeter
    spent: Spent = field(default_factory=Spent)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def take(self) -> None:
        """Count one request that is about to leave; `BudgetSpent` if it may not."""
        self.till.take()
        self._add(Spent(calls=1))

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what a request cost."""
        self.till.pay(tokens_in, tokens_out, money)
        self._add(Spent(0, tokens_in, tokens_out, money))

    def lose(self) -> None:
        """What a request cost will never be known."""
        self.till.lose()

    def _add(self, more: Spent) -> None:
        with self._lock:
            self.spent = self.spent.plus(more)


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is sent at most, and how many seconds lie between."""

    attempts: int = 6
    first: float = 1.0  # seconds; each further rest may be twice as long, and every one is a random share of that
    longest: float = 60.0
    most_asked: float = 300.0  # a server that asks for more than this gets no further request

    def rest(self, state: RetryCallState) -> float:
        """Seconds until the next attempt: what the server asks for, otherwise exponential with full jitter."""
        from tenacity import wait_random_exponential

        trouble = state.outcome.exception() if state.outcome else None
        if isinstance(trouble, RetryableError) and trouble.wait is not None:
            return trouble.wait
        return wait_random_exponential(self.first, self.longest)(state)


def free(_tokens_in: int, _tokens_out: int) -> float:
    """The price of what runs at home."""
    return 0.0


def ignore(_reply: Reply) -> None:
    """Nobody wants to know how a request was answered."""


@dataclass(frozen=True)
class Endpoint:
    """One model at one address, asked by any number of threads.

    Every request is counted by the till before it leaves and paid after; `money` is the price in US dollars of so many
    tokens in and out. Copies share what was learned of the server. `on_reply` sees each reply, also one that declines.
    """

    wire: Wire
    model: str
    dialect: Dialect
    till: BudgetMeter = field(default_factory=UnlimitedBudget)
    pace: RateLimiter = field(default_factory=RateLimiter)
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    money: Callable[[int, int], float] = free
    rest: CancellableSleep = field(default_factory=CancellableSleep)
    amended: Amended = field(default_factory=Amended)
    on_reply: Callable[[Reply], None] = ignore
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields of every request for a message
    roomy: bool = False  # the limit of tokens is raised where a model that thinks used it up before its answer
    strict: bool = False  # nothing is left out of a request; what the server refuses ends the run

    def tabbed(self) -> tuple[Endpoint, ItemMeter]:
        """The same endpoint for one item, and what that item cost so far."""
        tab = ItemMeter(self.till)
        return replace(self, till=tab), tab

    # -- questions ------------------------------------------------------------------------------------------

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """The model's next message; options (max_tokens, temperature, …) go into the request as they are.

        Raises `Declined` (the model or its guard does not want to), `NoReply` (no answer to this one), `BudgetSpent`,
        and `EyespotError` for what would be the same with every question: a wrong key, no such model, nobody there.
        """
        asked = {**self.dialect.body(self.model, messages, options), **self.extra}
        with self.amended.turn(asked):
            reply = self._accepted(asked)
        if reply.declined:
            raise Declined(reply.declined)
        return reply

    def answer(self, messages: Sequence[Message], form: type[Form], **options: Any) -> Form:
        """The model's answer as an object of this pydantic model; one that does not fit is asked to be mended once.

        Raises what `chat` raises, `Declined` also for a refusal in words, which nobody mends, and `BadAnswer` for a
        second answer that does not fit.
        """
        schema = form.model_json_schema()
        shape = {"type": "json_schema", "json_schema": {"name": form.__name__, "schema": schema}}
        asked = [*messages, text_message("user", FORM.format(schema=json.dumps(schema)))]
        options = {**self._formed(shape), **options}
        first = self.chat(asked, **options).text
        try:
            return _fitted(first, form)
        except BadAnswer as wrong:
            mending = [
                text_message("assistant", first or "(nothing)"),
                text_message("user", REPAIR.format(wrong=wrong)),
            ]
        return _fitted(self.chat([*asked, *mending], **options).text, form)

    def request(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to any other request; raises what `chat` raises."""
        try:
            return self._send_with_retries(path, body, _as_it_is)
        except StatusError as trouble:
            raise final(trouble, self.wire.address, self.model) from None

    def offers(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The same for a request that not every server knows; None where this one does not."""
        curious = replace(self, patience=replace(self.patience, attempts=2))
        try:
            return curious._send_with_retries(path, body, _as_it_is)
        except (StatusError, NoReply):
            return None

    def tells(self, path: str) -> Mapping[str, Any] | None:
        """What the server tells there (GET); None where it tells nothing. Raises what `chat` raises but `Declined`."""
        try:
            return self._send_with_retries(path, None, _as_it_is)
        except StatusError:
            return None

    def _formed(self, shape: Mapping[str, Any]) -> dict[str, Any]:
        return {"response_format": shape} if self.dialect.takes_forms else {}

    def _accepted(self, asked: Mapping[str, Any]) -> Reply:
        """The reply to a request without what this server refuses of it."""
        while True:
            body = self.amended(asked)
            try:
                reply = self._send_with_retries(self.dialect.path, body, self.dialect.reply)
            except StatusError as trouble:
                self._mend(body, trouble)
                continue
            if reply.unspoken and self._thinks(body):
                continue
            return self._answered(reply._replace(changes=changes(asked, body)))

    def _thinks(self, body: Mapping[str, Any]) -> bool:
        """Whether more tokens can be given to what used up its limit; they are, from now on."""
        if not self.roomy or "logprobs" in body or thinking(body) == body:
            return False
        self.amended.learn(thinking)
        return True

    def _answered(self, reply: Reply) -> Reply:
        self.amended.record(reply.changes)
        self.on_reply(reply)
        return reply

    def _mend(self, body: Mapping[str, Any], trouble: StatusError) -> None:
        """Learn what to leave out from now on; raises what the trouble means where nothing can be."""
        if (amend := amendment(body, trouble)) is not None:
            if self.strict and (fields := left_out(changes(body, amend(body)))):
                raise EyespotError(
                    f"{self.model} at {self.wire.address} does not accept {', '.join(fields)} ({trouble.said}); leave "
                    "it out, name a model that takes it, or say strict = false"
                ) from None
            self.amended.learn(amend)
        elif trouble.cut_off and self._thinks(body):
            return
        elif name := refused(body, trouble):
            raise EyespotError(
                f"{self.model} at {self.wire.address} does not accept {name} ({trouble.said}); leave it out, or name "
                "a model that takes it"
            ) from None
        else:
            raise final(trouble, self.wire.address, self.model) from None

    # -- requests -------------------------------------------------------------------------------------------

    def _send_with_retries(
        self, path: str, body: Mapping[str, Any] | None, read: Callable[[Mapping[str, Any]], Found]
    ) -> Found:
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

        trying = Retrying(
            stop=stop_after_attempt(self.patience.attempts),
            wait=self.patience.rest,
            retry=retry_if_exception_type(RetryableError),
            sleep=self.rest,
            reraise=True,
        )
        try:
            return trying(lambda: self._sent(path, body, read))
        except Unreachable as trouble:
            raise EyespotError(
                f"{trouble}; start the server or mend its address, and run the same line again"
            ) from None
        except RetryableError as trouble:
            raise NoReply(f"{trouble}, {self.patience.attempts} times") from None

    def _sent(self, path: str, body: Mapping[str, Any] | None, read: Callable[[Mapping[str, Any]], Found]) -> Found:
        """One request that leaves, without a body to look what lies there."""
        left = self.pace.enter()
        self.till.take()
        try:
            data = self.wire.get(path) if body is None else self.wire.post(path, body)
        except BaseException as trouble:
            if isinstance(trouble, Busy | Unreachable | StatusError):
                self.till.pay(0, 0, 0.0)  # turned away
            else:
                self.till.lose()  # on the way, perhaps after it was paid
            if isinstance(trouble, RetryableError | StatusError):
                self._hold(trouble)
            raise
        usage = usage_of(data)
        self.pace.settle(left, usage.tokens_in + usage.tokens_out)
        self.till.pay(usage.tokens_in, usage.tokens_out, self.money(usage.tokens_in, usage.tokens_out))
        return read(data)

    def _hold(self, trouble: RetryableError | StatusError) -> None:
        if not isinstance(trouble, RetryableError) or trouble.wait is None:
            return
        if trouble.wait > self.patience.most_asked:
            raise EyespotError(
                f"{self.wire.address} asks to wait {trouble.wait:.0f} seconds; run the same line again then"
            )
        self.pace.hold(trouble.wait)


def _as_it_is(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return data


def _fitted(text: str, form: type[Form]) -> Form:
    """The JSON object in the text, which may be fenced or have words around it, as the form.

    Raises `Declined` for a refusal in words, and `BadAnswer` for all else.
    """
    from pydantic import ValidationError

    start, end = text.find("{"), text.rfind("}")
    try:
        return form.model_validate_json(text[start : end + 1] if start >= 0 else text)
    except ValidationError as error:
        if start < 0 and SORRY.match(text):
            raise Declined(text.strip()[:LONGEST]) from None
        wrong = [f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {one['msg']}" for one in error.errors()]
        raise BadAnswer("; ".join(wrong[:5])) from None
