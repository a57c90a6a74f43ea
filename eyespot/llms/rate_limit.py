"""The rate of requests: at most a number of requests and tokens a minute over all threads; waits can be cancelled."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock

from eyespot.llms.errors import Halted

LOG = logging.getLogger(__name__)
MINUTE = 60.0


class CancellableSleep:
    """A sleep of many threads that ends for all of them at once when the run is stopped."""

    def __init__(self) -> None:
        self._over = Event()

    def __call__(self, seconds: float) -> None:
        """Sleep for this many seconds; `Halted` if the run is stopped before that."""
        if self._over.wait(max(0.0, seconds)):
            raise Halted("the run was stopped")

    def reset(self) -> None:
        """A new run: threads may sleep again."""
        self._over.clear()

    def cancel(self) -> None:
        """Wake all threads that sleep; from now on none can."""
        self._over.set()


@dataclass
class SentRequest:
    """When a request was sent, and its tokens (an estimate until they are known)."""

    time: float  # seconds, by the clock of its limiter
    tokens: int = 0


@dataclass
class RateLimiter:
    """At most this many requests and tokens in any minute, shared by threads; None: no limit.

    Tokens are known only afterwards: until then a request counts as many as the last one had. When a server asks one
    thread to wait, all wait (`pause`).
    """

    requests: int | None = None
    tokens: int | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = field(default_factory=CancellableSleep)
    _sent: deque[SentRequest] = field(default_factory=deque, repr=False)
    _paused_until: float = 0.0
    _last_tokens: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def acquire(self) -> SentRequest:
        """Wait until one more request may be sent, and count it."""
        while True:
            with self._lock:
                now = self.clock()
                while self._sent and self._sent[0].time <= now - MINUTE:
                    self._sent.popleft()
                seconds = max(self._paused_until - now, self._until_tokens(now))
                if self.requests is not None and len(self._sent) >= self.requests:
                    seconds = max(seconds, self._sent[-self.requests].time + MINUTE - now)
                if seconds <= 0:
                    self._sent.append(SentRequest(now, self._last_tokens))
                    return self._sent[-1]
            LOG.info("rate limit: waiting %.1f s", seconds)
            self.sleep(seconds)

    def settle(self, request: SentRequest, tokens: int) -> None:
        """Say how many tokens the request had."""
        with self._lock:
            request.tokens = self._last_tokens = tokens

    def pause(self, seconds: float) -> None:
        """Let no request be sent for this many seconds."""
        with self._lock:
            self._paused_until = max(self._paused_until, self.clock() + seconds)

    def _until_tokens(self, now: float) -> float:
        if self.tokens is None:
            return 0.0
        excess, wait = sum(request.tokens for request in self._sent) + self._last_tokens - self.tokens, 0.0
        for request in self._sent:  # the oldest leave the minute first
            if excess <= 0:
                break
            excess -= request.tokens
            wait = request.time + MINUTE - now
        return wait
