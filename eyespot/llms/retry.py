"""Retries: how often a request is sent, how long to wait in between, and what it means when none succeeds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from eyespot.llms.errors import NoReply, RetryableError, Unreachable
from eyespot.types import EyespotError

if TYPE_CHECKING:
    from tenacity import RetryCallState

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is sent at most, and how many seconds pass in between."""

    attempts: int = 6  # the first included
    first_delay: float = 1.0  # seconds; the limit doubles with each attempt, every delay is a random share of it
    max_delay: float = 60.0  # seconds
    max_retry_after: float = 300.0  # seconds; a server that asks for a longer wait ends the run

    def send(self, request: Callable[[], Result], sleep: Callable[[float], None], model: str) -> Result:
        """What `request` returns; a request that raises `RetryableError` is sent again.

        Raises `EyespotError` if the server cannot be reached, and `NoReply` if no attempt has an answer.
        """
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

        def log(state: RetryCallState) -> None:
            trouble = state.outcome.exception() if state.outcome else None
            if isinstance(trouble, RetryableError):
                seconds, retry = state.upcoming_sleep, f"{state.attempt_number} of {self.attempts - 1}"
                LOG.info("%s: %s; retry %s in %.1f s", model, trouble.summary, retry, seconds)
                LOG.debug("%s: %s", model, trouble)

        retrying = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=self.delay,
            retry=retry_if_exception_type(RetryableError),
            sleep=sleep,
            before_sleep=log,
            reraise=True,
        )
        try:
            return retrying(request)
        except Unreachable as trouble:
            raise EyespotError(f"{trouble}; start the server or fix its address, and run the same line again") from None
        except RetryableError as trouble:
            LOG.info("%s: %s, %d times; no further attempt", model, trouble.summary, self.attempts)
            raise NoReply(f"{trouble}, {self.attempts} times") from None

    def delay(self, state: RetryCallState) -> float:
        """Seconds until the next attempt: what the server asks for, otherwise exponential with full jitter."""
        from tenacity import wait_random_exponential

        trouble = state.outcome.exception() if state.outcome else None
        if isinstance(trouble, RetryableError) and trouble.wait is not None:
            return trouble.wait
        return wait_random_exponential(self.first_delay, self.max_delay)(state)

    def refuse_long_wait(self, seconds: float, address: str) -> None:
        """`EyespotError` if the server asks for a longer wait than `max_retry_after`."""
        if seconds > self.max_retry_after:
            raise EyespotError(f"{address} asks to wait {seconds:.0f} seconds; run the same line again then")
