"""How requests go out: many items at once, again where that helps, and fewer to a server that fails.

`RetryPolicy` says how often a request is sent and how long to wait in between. `Underway` runs threads and loses no
result. `RateLimiter` bounds requests a minute over all of them, and `CircuitBreaker` gives a server that fails fewer
requests at once, then one at a time after a rest, then none.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Condition, Event, Lock
from typing import Any, Generic, TypeVar, cast

from eyespot.llms.errors import Busy, Halted, NoReply, RetryableError, ServerDown, StatusError, Unreachable
from eyespot.types import EyespotError, quantity

LOG = logging.getLogger(__name__)
MINUTE = 60.0
PROBES = 6  # requests, one at a time, after every worker has failed
LOOK = 0.25  # seconds after which a thread that waits looks whether the run was stopped

Item = TypeVar("Item")
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
        attempt = 1
        while True:
            try:
                return request()
            except RetryableError as trouble:
                LOG.debug("%s: %s", model, trouble)
                if attempt < self.attempts:
                    seconds, retry = self.delay(attempt, trouble), f"{attempt} of {self.attempts - 1}"
                    LOG.info("%s: %s; retry %s in %.1f s", model, trouble.summary, retry, seconds)
                elif isinstance(trouble, Unreachable):
                    way_out = "start the server or fix its address, and run the same line again"
                    raise EyespotError(f"{trouble}; {way_out}") from None
                else:
                    LOG.info("%s: %s, %d times; no further attempt", model, trouble.summary, attempt)
                    raise NoReply(f"{trouble}, {quantity(attempt, 'attempt')}") from None
            sleep(seconds)
            attempt += 1

    def delay(self, attempt: int, trouble: RetryableError) -> float:
        """Seconds until the next attempt: what the server asks for, otherwise exponential with full jitter."""
        if trouble.wait is not None:
            return trouble.wait
        return random.uniform(0, min(self.max_delay, self.first_delay * 2.0 ** (attempt - 1)))


class LastResult(Exception):
    """What an item came to although the run ends, and why it ends."""

    def __init__(self, result: object, reason: BaseException) -> None:
        super().__init__(str(reason))
        self.result, self.reason = result, reason


class Underway(Iterator[Result], Generic[Item, Result]):
    """The results of `work` in the order in which they are ready.

    At most `workers` items are begun and not yet handed out, so whoever keeps each result before taking the next can
    lose no more than those. Until a result is there no more than `first` are begun: what the first item teaches about a
    server the others need not learn.
    An error of `work`, or one that is thrown in, is raised once all results under way are handed out; nothing more is
    begun then, and `halt` is called so that those who rest give up. `work` raises `LastResult` for an error that leaves
    a result.
    """

    def __init__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        workers: int,
        halt: Callable[[], object] = lambda: None,
        first: int = 1,
    ) -> None:
        self._items, self._work, self._workers, self._halt = iter(items), work, workers, halt
        self._pool = ThreadPoolExecutor(workers)
        self._done: SimpleQueue[Future[Result]] = SimpleQueue()
        self._open = 0  # begun and not yet handed out
        self._window = first
        self._end: BaseException | None = None

    def __next__(self) -> Result:
        while self._end is None and self._open < self._window:
            try:
                item = next(self._items)
            except StopIteration:
                break
            self._pool.submit(self._work, item).add_done_callback(self._done.put)
            self._open += 1
        while self._open:
            if results := self._taken(self._done.get()):
                return results[0]
        self._pool.shutdown(wait=False)
        raise StopIteration if self._end is None else self._end

    def ready(self) -> list[Result]:
        """What else is ready now, so that whoever keeps results can keep several at once; nothing new is begun."""
        found: list[Result] = []
        while not self._done.empty():
            found += self._taken(self._done.get())
        return found

    def throw(self, reason: BaseException, *_: Any) -> Result:
        """Begin nothing more and give the next result that is under way; `reason` once there is none."""
        self._stop(reason)
        self._end = reason
        return next(self)

    def close(self) -> None:
        """Begin nothing more; results that are under way are dropped."""
        self._stop(StopIteration())

    def _taken(self, future: Future[Result]) -> list[Result]:
        """The result of an item that is ready; nothing where it is an error, which ends the run."""
        self._open -= 1
        error = future.exception()
        if error is None:
            self._window = self._workers
            return [future.result()]
        self._stop(error.reason if isinstance(error, LastResult) else error)
        return [cast(Result, error.result)] if isinstance(error, LastResult) else []

    def _stop(self, reason: BaseException) -> None:
        self._end = self._end or reason
        self._halt()


# -- the rate ------------------------------------------------------------------------------------------------


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
class RateLimiter:
    """At most this many requests in any minute, shared by threads; None: no limit.

    When a server asks one thread to wait, all wait (`pause`).
    """

    requests: int | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = field(default_factory=CancellableSleep)
    _sent: deque[float] = field(default_factory=deque, repr=False)  # when, by the clock
    _paused_until: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def acquire(self) -> None:
        """Wait until one more request may be sent, and count it."""
        while True:
            with self._lock:
                now = self.clock()
                while self._sent and self._sent[0] <= now - MINUTE:
                    self._sent.popleft()
                seconds = self._paused_until - now
                if self.requests is not None and len(self._sent) >= self.requests:
                    seconds = max(seconds, self._sent[-self.requests] + MINUTE - now)
                if seconds <= 0:
                    self._sent.append(now)
                    return
            LOG.info("rate limit: waiting %.1f s", seconds)
            self.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Let no request be sent for this many seconds."""
        with self._lock:
            self._paused_until = max(self._paused_until, self.clock() + seconds)


# -- a server that fails ----------------------------------------------------------------------------------------


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
                    self._failures, self._paused_until = 0, 0.0
                    self._width += 1 / self._width
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
