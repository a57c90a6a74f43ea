"""A model behind an address: each request is counted, rate-limited and sent, and sent again where that helps."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from eyespot.llms.batch_protocols import ServedModel
from eyespot.llms.batches import ItemRequests
from eyespot.llms.budget import Budget, ItemMeter
from eyespot.llms.errors import (
    LONGEST,
    MORE_TOKENS,
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
from eyespot.llms.flow_control import CircuitBreaker, RateLimiter
from eyespot.llms.prices import own_table
from eyespot.llms.protocols import cache_of, counted, likely, text_message, usage_of, without_pictures
from eyespot.llms.replies import objects_in
from eyespot.llms.unsupported_fields import (
    LIMITS,
    NO_THOUGHT,
    amendment,
    changes,
    left_out,
    refused,
    room_to_think,
    without,
    without_thought,
)
from eyespot.types import BudgetMeter, Exchange, EyespotError, Message, Reply, Spent
from eyespot.types.language_models import ignore_exchange

if TYPE_CHECKING:
    from pydantic import BaseModel

    Form = TypeVar("Form", bound=BaseModel)

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

REPAIR = "That does not have the requested form: {wrong}. Answer again, with the corrected JSON object alone."
FORM = "Answer with one JSON object alone, of this JSON schema: {schema}"


@dataclass(frozen=True)
class Endpoint(ServedModel):
    """One model at one address, an `eyespot.types.LanguageModel`; any number of threads may use it.

    `meter` counts every request before it is sent, and its cost afterwards. Copies share what was learned of the
    server. `on_exchange` gets each request with what came of it, also one that has no reply.
    """

    meter: BudgetMeter | Budget = field(default_factory=Budget)
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    free: bool = True  # requests cost nothing
    on_exchange: Callable[[Exchange], None] = ignore_exchange
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields of every request for a message
    raise_token_limit: bool = False  # for a model that thinks and reaches the limit before its answer
    strict: bool = False  # nothing is left out of a request; what the server refuses ends the run
    thinks: bool = True  # False: a model that is seen to think is asked not to
    notes: list[str] = field(default_factory=list)  # what users should know of its counts and its price
    requests: ItemRequests | None = None  # where requests wait for a batch, and replies for their turn

    def metered(
        self,
        meter: BudgetMeter,
        on_exchange: Callable[[Exchange], None] = ignore_exchange,
        requests: ItemRequests | None = None,
    ) -> Endpoint:
        """The same model, whose requests this meter counts; `on_exchange` gets each request with what came of it.

        `requests` are those of one item, which may be sent in a batch.
        """
        return replace(self, meter=meter, on_exchange=on_exchange, requests=requests)

    # -- messages -------------------------------------------------------------------------------------------

    def chat(self, messages: Sequence[Message], **options: Any) -> Reply:
        """The model's next message; options (max_tokens, temperature, …) go into the request unchanged.

        What this server refuses of a request is left out of it, and of later ones.

        Raises `Declined` (the model or its guard refuses), `NoReply` (no answer to this request), `BudgetSpent`, and
        `EyespotError` for what would fail with every request: a wrong key, an unknown model, an unreachable server.
        """
        wanted = {**self.dialect.body(self.model, messages, options), **self.extra}
        with self.unsupported.one_at_a_time(wanted):
            reply = self._accepted_reply(wanted)
        if reply.declined:
            raise Declined(reply.declined)
        return reply

    def _accepted_reply(self, wanted: Mapping[str, Any]) -> Reply:
        """The reply to a request without what this server refuses of it."""
        while True:
            adapted = self.unsupported.adapted
            body = (
                adapted(wanted) if self.requests is None else self.requests.body(wanted, adapted, self.dialect.takes_n)
            )
            try:
                reply = self._send_with_retries(self.dialect.path, body, self.dialect.reply)
            except StatusError as trouble:
                self._report(body, trouble=str(trouble))
                self._learn_from(body, trouble, (NO_THOUGHT.keys() | {"n"}) & (body.keys() - wanted.keys()))
                continue
            except NoReply as trouble:
                self._report(body, trouble=str(trouble))
                raise
            if reply.thought and not self.thinks:
                self.unsupported.learn(without_thought)
                if reply.unspoken and self.unsupported.adapted(wanted) != body:
                    self._report(body, reply)
                    continue
            reply = reply._replace(changes=changes(wanted, body))
            self._report(body, reply)
            if reply.unspoken and self._raised_limit(body, reply.thought):
                continue
            if reply.unspoken and room_to_think(body) == body:
                raise NoReply(f"the model ended before its answer began{MORE_TOKENS}")
            self.unsupported.record(reply.changes)
            return reply

    def answer(self, messages: Sequence[Message], form: type[Form], **options: Any) -> Form:
        """The model's answer as an object of this pydantic model; one that does not fit is sent back once.

        Raises what `chat` raises, `Declined` also for a refusal in words, which is not sent back, and `BadAnswer` for a
        second answer that does not fit.
        """
        schema = {**_untitled(form.model_json_schema()), "title": form.__name__}
        words = FORM.format(schema=json.dumps(schema))
        if self.dialect.takes_forms:
            response_format = {"type": "json_schema", "json_schema": {"name": form.__name__, "schema": schema}}
            options = {"response_format": response_format, **options}
        # A server with structured output shows the form to its model; in words as well it would be paid for twice
        written = not self.dialect.takes_forms or self.unsupported.has(form_in_words)
        conversation = _with_form(messages, words) if written else list(messages)
        first = self.chat(conversation, **options)
        if not written and any(one.field == "response_format" for one in first.changes):
            self.unsupported.learn(form_in_words)
            return self.answer(messages, form, **options)
        try:
            return _parsed(first.text, form)
        except BadAnswer as wrong:
            whole = first.text.encode("utf-8", "replace").decode()  # half a character cannot be sent back
            again = REPAIR.format(wrong=wrong)
            conversation += [
                text_message("assistant", whole or "(nothing)"),
                text_message("user", again if written else f"{again} {words}"),
            ]
        return _parsed(self.chat(conversation, **options).text, form)

    def _report(self, body: Mapping[str, Any], reply: Reply | None = None, trouble: str = "") -> None:
        """Hand on what was sent, with digests in place of pictures, and what came of it."""
        plain, pictures = without_pictures(body)
        self.on_exchange(Exchange(plain, pictures, reply, trouble))

    def _raised_limit(self, body: Mapping[str, Any], thought: bool = False) -> bool:
        """Whether the token limit of a model that reached it can be raised; it is, from now on.

        Where one token was asked for, for its probabilities, a limit says little of a model that was not seen to think.
        """
        single = "logprobs" in body and not thought and any(body.get(name) == 1 for name in LIMITS)
        if not self.raise_token_limit or single or room_to_think(body) == body:
            return False
        LOG.info("%s reaches the token limit before its answer; the limit is raised", self.model)
        self.unsupported.learn(room_to_think)
        return True

    def _learn_from(self, body: Mapping[str, Any], trouble: StatusError, added: Collection[str]) -> None:
        """Learn what to leave out from now on; raises what the trouble means if nothing can be left out.

        `added` are fields that nobody asked for, which leave first.
        """
        who = f"{self.model} at {self.address}"
        words = set(re.split(r"[^a-z_]+", f"{trouble.param} {trouble.text}".casefold()))
        if refused_fields := [name for name in added if name in words]:
            self.unsupported.learn(without(*refused_fields))
            return
        if (amend := amendment(body, trouble)) is not None:
            adjusted = changes(body, amend(body))
            if self.strict and (fields := left_out(adjusted)):
                raise EyespotError(
                    f"{who} does not accept {', '.join(fields)} ({trouble.text}); leave it out, name a model that "
                    "takes it, or say strict = false"
                ) from None
            LOG.info("%s does not accept %s as sent; the request is changed", who, ", ".join(x.field for x in adjusted))
            self.unsupported.learn(amend)
        elif trouble.cut_off and self._raised_limit(body):
            return
        elif name := refused(body, trouble):
            raise EyespotError(
                f"{who} does not accept {name} ({trouble.text}); leave it out, or name another"
            ) from None
        else:
            raise final(trouble, self.address, self.model) from None

    # -- requests -------------------------------------------------------------------------------------------

    def request(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to any other request; raises what `chat` raises."""
        try:
            data = self._send_with_retries(path, body, dict)
        except StatusError as trouble:
            self._report(body, trouble=str(trouble))
            raise final(trouble, self.address, self.model) from None
        text, model = json.dumps(data, ensure_ascii=False), str(data.get("model") or "")
        self._report(body, Reply(text, None, usage_of(data), "", model=model))  # no message: word for word
        return data

    def get_if_supported(self, path: str) -> Mapping[str, Any] | None:
        """What the server has under this path (GET), None if nothing; raises what `chat` raises but `Declined`."""
        try:
            return self._send_with_retries(path, None, dict)
        except StatusError:
            return None

    def _send_with_retries(
        self, path: str, body: Mapping[str, Any] | None, read: Callable[[Mapping[str, Any]], Result]
    ) -> Result:
        requests = self.requests

        def request() -> Result:
            with self.breaker.request(self.address):
                if requests is None or body is None:
                    return read(self._send(path, body))
                return read(requests.reply(self, body, lambda: self._send(path, body)))

        if requests is None or body is None or not requests.store.batched:
            return self.retry.send(request, self.sleep, self.model)
        # What came with a batch was waited for already, and says nothing of the server now
        again = replace(self.retry, first_delay=0.0)
        return again.send(lambda: read(requests.reply(self, body, dict)), self.sleep, self.model)

    def _send(self, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The answer to one request: POST, or GET without a body."""
        self.rate_limiter.acquire()
        meter = ItemMeter(self.meter) if isinstance(self.meter, Budget) else self.meter
        meter.take(partial(likely, body, self.price) if body else Spent)
        began = time.monotonic()
        try:
            data = self.transport.get(path) if body is None else self.transport.post(path, body)
        except BaseException as trouble:
            if isinstance(trouble, Busy | Unreachable | StatusError):
                meter.pay(0, 0, 0.0)  # turned away
            else:
                meter.lose()  # on the way, perhaps after it was paid
            if isinstance(trouble, RetryableError) and trouble.wait is not None:
                if trouble.wait > self.retry.max_retry_after:
                    asked = f"{self.address} asks to wait {trouble.wait:.0f} seconds"
                    raise EyespotError(f"{asked}; run the same line again then") from None
                self.rate_limiter.pause(trouble.wait)
            raise
        answer = counted(body or {}, data)
        usage = usage_of(answer)
        tokens = usage.tokens_in, usage.tokens_out
        meter.pay(*tokens, self.price.of(*tokens, *cache_of(answer)) if self.price else 0.0)
        estimated = f"{self.name} does not count all tokens; they are estimated from pictures and letters"
        unpriced = f"no price is known for {self.model}, so its money counts as 0; add it to {own_table()}"
        for sentence, holds in ((estimated, answer is not data), (unpriced, not (self.price or self.free))):
            self.notes.extend([sentence] * (holds and sentence not in self.notes))
        LOG.info("%s %s: %d tokens in, %d tokens out, %.2f s", self.model, path, *tokens, time.monotonic() - began)
        return answer


def form_in_words(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Learned of a server that takes no form of answers: requests say it in words, and are otherwise as they were."""
    return body


def _untitled(schema: Any) -> Any:
    """A schema without the titles that pydantic makes of its names: every request would pay for them."""
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _untitled(part) for name, part in schema.items() if name != "title" or not isinstance(part, str)}


def _with_form(messages: Sequence[Message], words: str) -> list[Message]:
    """The messages with the form of the answer in words; before pictures it is part of a prefix that is cached."""
    *before, last = messages
    parts = last["content"]
    if isinstance(parts, list) and parts[0]["type"] == "text":
        return [*before, {**last, "content": [parts[0], {"type": "text", "text": words}, *parts[1:]]}]
    return [*messages, text_message("user", words)]


def _parsed(text: str, form: type[Form]) -> Form:
    """The JSON object in the text, which may be fenced or have words around it, as the form.

    Raises `Declined` for a refusal in words, and `BadAnswer` for all else, also for two objects that both fit.
    """
    from pydantic import ValidationError

    fitting: list[Form] = []
    errors: list[ValidationError] = []
    objects = objects_in(text)
    for document in map(json.dumps, objects) if objects else [text]:
        try:
            fitting.append(form.model_validate_json(document))
        except ValidationError as error:
            errors.append(error)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise BadAnswer(f"the answer: it holds {len(fitting)} objects; give one")
    if "{" not in text and SORRY.match(text):
        raise Declined(text.strip()[:LONGEST])
    wrong = [f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}" for item in errors[-1].errors()]
    raise BadAnswer("; ".join(wrong[:5]))
