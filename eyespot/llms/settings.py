"""Language models by name: `load("openai:MODEL")`, with the settings of the way to the model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from eyespot.llms import transport
from eyespot.llms.budget import Budget
from eyespot.llms.client import Endpoint
from eyespot.llms.flow_control import CancellableSleep, CircuitBreaker, RateLimiter, RetryPolicy
from eyespot.llms.prices import Prices, read_prices
from eyespot.llms.protocols import AnthropicMessages, ChatCompletions, Dialect
from eyespot.types import BudgetMeter, UsageError


@dataclass(frozen=True)
class Vendor:
    """How the models of a vendor are reached, or those of a server with the vendor's protocol."""

    connect: Callable[[str | None, str | None, float], transport.Transport]
    dialect: Dialect
    url: str  # the environment variable with the address
    key: str  # the environment variable with the key


VENDORS = {
    "anthropic": Vendor(transport.anthropic, AnthropicMessages(), "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "openai": Vendor(transport.openai, ChatCompletions(), "OPENAI_BASE_URL", "OPENAI_API_KEY"),
}
HOSTS = ("api.openai.com", "api.anthropic.com")
HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # whose tokens cost nothing
POSITIVE = ("requests_per_minute", "timeout", "attempts")


@dataclass(frozen=True)
class EndpointSettings:
    """The way to a model behind an endpoint, with its defaults."""

    budget: Budget | BudgetMeter = field(default_factory=Budget)
    url: str | None = None  # the endpoint's address; None: from the environment, then the vendor's own
    key: str | None = None  # None: from the environment; a local server needs none
    requests_per_minute: int | None = None
    timeout: float = 60.0  # seconds without a byte until an answer counts as lost
    attempts: int = 6  # of one request, the first included
    first_rest: float = 1.0  # seconds before the first retry; each further wait may be twice as long
    prices: Prices | None = None  # None: the tables that eyespot ships and the user's own
    extra: Mapping[str, Any] = field(default_factory=dict)  # further fields of each request, unchanged
    raise_token_limit: bool = True  # for models that think and reach the limit before their answer
    thinks: bool = True  # False: a model that is seen to think is asked not to, where its server can
    strict: bool = False  # what the server does not accept in a request ends the run; otherwise it is left out

    @classmethod
    def of(cls, vendor: str, given: Mapping[str, Any]) -> EndpointSettings:
        """The settings that options give, None being the default; `UsageError` for unknown ones and numbers below 0."""
        known = {option.name for option in fields(cls)}
        if unknown := [name for name in given if name not in known]:
            raise UsageError(f"{vendor} has no option {unknown[0]!r}; there are: {', '.join(sorted(known))}")
        settings = cls(**{name: value for name, value in given.items() if value is not None})
        refuse_not_positive(vendor, {name: given.get(name) for name in POSITIVE})
        return settings

    def endpoint(self, vendor: str, model: str) -> Endpoint:
        """The model at its address; `UsageError` without an address and without a key."""
        reach = VENDORS[vendor]
        url, key = (os.environ.get(name) or None for name in (reach.url, reach.key))
        connection = reach.connect(self.url or url, self.key or key, self.timeout)
        host = urlsplit(connection.address).hostname or ""
        retry, sleep = RetryPolicy(self.attempts, self.first_rest), CancellableSleep()
        price = (self.prices or read_prices()).of(model)
        # A model's name says little behind another address; a server of this machine may move between ports
        place = "" if host in HOSTS else f"@{'localhost' if host in HERE else host}"
        return Endpoint(
            connection,
            model,
            reach.dialect,
            name=f"{vendor}:{model}{place}",
            meter=self.budget,
            rate_limiter=RateLimiter(self.requests_per_minute, sleep=sleep),
            retry=retry,
            breaker=CircuitBreaker(retry, sleep),
            price=price,
            free=price is None and host in HERE,
            sleep=sleep,
            extra=self.extra,
            raise_token_limit=self.raise_token_limit,
            strict=self.strict,
            thinks=self.thinks,
        )


def load(spec: str, **options: Any) -> Endpoint:
    """The language model "openai:MODEL" or "anthropic:MODEL"; options as in `EndpointSettings`. No request is sent.

    OPENAI_BASE_URL or `url` is another address with the same protocol (vLLM, Ollama, llama.cpp, …), OPENAI_API_KEY or
    `key` the key; likewise for Anthropic. `budget` limits calls, tokens and US dollars over all requests, `timeout` and
    `first_rest` are seconds. Raises `UsageError` for an unknown name, without a model, without an address and a key,
    and for unknown options; `EyespotError` if a package is missing.
    """
    vendor, _, model = spec.partition(":")
    if not is_language_model(spec):
        there = " or ".join(f"{name}:MODEL" for name in reversed(VENDORS))
        raise UsageError(f"{spec!r} is not a language model; use {there}")
    settings = EndpointSettings.of(vendor, options)
    if not model:
        raise UsageError(f"name the model, as in {vendor}:MODEL")
    return settings.endpoint(vendor, model)


def is_language_model(spec: str) -> bool:
    """Whether this names a language model that `load` knows, as "openai:MODEL" does."""
    return spec.partition(":")[0] in VENDORS


def unpriced(models: Mapping[str, Any]) -> list[str]:
    """The models of a recipe that no table has a price for: what is behind an address of this machine may cost, too."""
    prices = read_prices()
    uses = [str(model.get("use", "")) for model in models.values() if isinstance(model, Mapping)]
    found = [use for use in uses if use.partition(":")[0] in VENDORS and prices.of(use.partition(":")[2]) is None]
    return list(dict.fromkeys(found))


def refuse_not_positive(owner: str, numbers: Mapping[str, float | None]) -> None:
    """`UsageError` for a number that is 0 or below."""
    for name, value in numbers.items():
        if value is not None and value <= 0:
            raise UsageError(f"{owner}: {name} is {value}; give a number above 0")
