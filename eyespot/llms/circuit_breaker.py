"""A server that fails gets fewer requests at once, then one at a time after a rest, and then none: the run ends.

A request counts as failed if it may succeed later: no connection, no answer in time, a status such as 500 or 429. Any
other answer, also a refusal, shows that the server works.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

from eyespot.llms.errors import Busy, RetryableError, ServerDown, StatusError
from eyespot.llms.retry import RetryPolicy

LOG = logging.getLogger(__name__)
PROBES = 6  # requests, one at a time, after every worker has failed
LOOK = 0.25  # seconds after which a thread that waits looks whether the run was stopped


@dataclass
class CircuitBreaker:
    """Lets the requests of many threads through, as many at once as the server bears.

    How many workers there are it learns from the requests. A server that fails from now on gets at most three requests
    for each of them (with one or two workers as many as one pair may take, and one more). Two failures in a row, or one
    status such as 429, halve the number of requests at once; each success raises it again.
    """

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _users: int = 0  # threads that send or wait for it
    _workers: int = 1  # the most users there were
    _in_flight: int = 0
    _failures: int = 0  # since the last success
    _width: float = math.inf  # requests at once
    _halvings: int = 0
    _paused_until: float = 0.0
    _last: str = ""  # the last failure
    _failed_at: float = 0.0
    _changed: Condition = field(default_factory=Condition, repr=False)

    @contextmanager
    def request(self, address: str) -> Iterator[None]:
        """One request to this address; `ServerDown` instead of it if all before it failed."""
        halvings = self._begin(address)
        failure, answered = None, False
        try:
            yield
            answered = True
        except RetryableError as trouble:
            failure = trouble
            raise
        except StatusError:
            answered = True
            raise
        finally:
            with self._changed:
                self._users, self._in_flight = self._users - 1, self._in_flight - 1
                if failure is not None:
                    self._fail(failure, halvings)
                elif answered:
                    self._succeed()
                self._changed.notify_all()

    def reset(self) -> None:
        """A new run: what failed before it does not count."""
        with self._changed:
            self._failures, self._paused_until = 0, 0.0

    @property
    def most(self) -> int:
        """How many requests may fail in a row.

        An answer from before the server failed may come late and begin the count anew, one for each other worker.
        """
        return max(self.retry.attempts + 1, min(2 * self._workers + 1, self._workers + PROBES))

    def _begin(self, address: str) -> int:
        """Wait until a request may be sent; how often the width was halved until then."""
        with self._changed:
            self._users += 1
            self._workers = max(self._workers, self._users)
            try:
                while not self._has_room(address):
                    rest = self._paused_until - self.clock()
                    self._changed.wait(min(LOOK, rest) if rest > 0 else LOOK)
                    self.sleep(0)  # raises `Halted` if the run is stopped
            except BaseException:
                self._users -= 1
                raise
            self._in_flight += 1
            return self._halvings

    def _has_room(self, address: str) -> bool:
        if self._failures >= self.most and self.clock() > self._failed_at + self.retry.max_delay:
            self._failures = self.most - 1  # long ago: a page that is served for days tries again
        if self._failures >= self.most:
            raise ServerDown(
                f"{address} failed {self._failures} times in a row ({self._last}); check it and run the same line "
                "again to go on: what was answered before is kept"
            )
        fits = self._in_flight < self._width and self._failures + self._in_flight < self.most
        return fits and self._paused_until <= self.clock()

    def _fail(self, trouble: RetryableError, halvings: int) -> None:
        self._failures, self._last, self._failed_at = self._failures + 1, str(trouble), self.clock()
        # Requests that were sent before the last halving say nothing of the width since then
        if halvings == self._halvings and (self._failures > 1 or isinstance(trouble, Busy)):
            self._width, self._halvings = max(1.0, min(self._width, self._in_flight + 1) / 2), self._halvings + 1
            LOG.info("the server fails: at most %d requests at once", self._width)
        if (probes := self._failures - self._workers) > 0:
            rest = min(self.retry.max_delay, self.retry.first_delay * 2.0 ** (probes - 1))
            self._width, self._paused_until = 1.0, self.clock() + rest
            LOG.info("%d failures in a row: one request after %.1f s", self._failures, rest)

    def _succeed(self) -> None:
        self._failures, self._paused_until = 0, 0.0
        self._width += 1 / self._width
