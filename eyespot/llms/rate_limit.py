"""How fast requests leave: so many requests and tokens a minute over all threads, and rests that can be cut short."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock

from eyespot.llms.errors import Halted

MINUTE = 60.0


class CancellableSleep:
    """A sleep of many threads that ends for all of them at once when the run is stopped."""

    def __init__(self) -> None:
        self._over = Event()

    def __call__(self, seconds: float) -> None:
        """Sleep so long; `Halted` if the run is stopped before that."""
        if self._over.wait(max(0.0, seconds)):
            raise Halted("the run was stopped")

    def begin(self) -> None:
        """A new run: rests are rests again."""
        self._over.clear()

    def halt(self) -> None:
        """Wake all who sleep and let nobody fall asleep."""
        self._over.set()


@dataclass
class Left:
    """A request that left: when, and its tokens (a guess until they are known)."""

    at: float
    tokens: int = 0


@dataclass
class RateLimiter:
    """At most so many requests and tokens in any minute, shared by threads; None is no limit.

    Tokens are known only afterwards: until then a request counts as many as the last one had. Who is told to wait
    makes all wait (`hold`).
    """

    requests: int | None = None
    tokens: int | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = field(default_factory=CancellableSleep)
    _left: deque[Left] = field(default_factory=deque, repr=False)
    _held_until: float = 0.0
    _usual: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def enter(self) -> Left:
        """Wait until one more request may leave, and count it."""
        while True:
            with self._lock:
                now = self.clock()
                while self._left and self._left[0].at <= now - MINUTE:
                    self._left.popleft()
                seconds = max(self._held_until - now, self._until_requests(now), self._until_tokens(now))
                if seconds <= 0:
                    self._left.append(Left(now, self._usual))
                    return self._left[-1]
            self.sleep(seconds)

    def settle(self, request: Left, tokens: int) -> None:
        """Say how many tokens it was in truth."""
        with self._lock:
            request.tokens = self._usual = tokens

    def hold(self, seconds: float) -> None:
        """Let nothing leave for so long."""
        with self._lock:
            self._held_until = max(self._held_until, self.clock() + seconds)

    def _until_requests(self, now: float) -> float:
        if self.requests is None or len(self._left) < self.requests:
            return 0.0
        return self._left[len(self._left) - self.requests].at + MINUTE - now

    def _until_tokens(self, now: float) -> float:
        if self.tokens is None:
            return 0.0
        over, wait = sum(request.tokens for request in self._left) + self._usual - self.tokens, 0.0
        for request in self._left:  # the oldest fall out of the minute first
            if over <= 0:
                break
            over -= request.tokens
            wait = request.at + MINUTE - now
        return wait
