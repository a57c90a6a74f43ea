"""Rounds of judging that go on in the background, some photos at a time, while people look how far they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Literal

from eyespot.types import EyespotError
from eyespot.web._problems import Problem

AT_ONCE = 20  # rounds that go on or wait
REMEMBERED = 200  # that have ended
Key = tuple[str, str]  # a result and a judge


@dataclass
class Job:
    """A round of judging: how it goes, and in sentences what should be known of it."""

    state: Literal["running", "done", "stopped", "failed"] = "running"
    notes: list[str] = field(default_factory=list)
    stopping: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)


class Jobs:
    """The rounds of this server."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[Key, Job] = OrderedDict()
        self._lock, self._closing = Lock(), Event()

    def get(self, key: Key) -> Job | None:
        """How the round of this judge over this result that was started last stands now; it does not go on."""
        if (job := self._jobs.get(key)) is None:
            return None
        state = job.state  # first, as what a round says at its end stands before it has ended
        return replace(job, state=state, notes=[*job.notes])

    def start(self, key: Key, work: Callable[[], Iterator[str]]) -> None:
        """Let a judge look in the background, unless a round is under way already.

        `work` is run to its next `yield` as long as the server is not closing; it yields what should be known, or "".
        """
        with self._lock:
            known = self._jobs.get(key)
            if known is not None and known.state == "running":
                return
            if sum(job.state == "running" for job in self._jobs.values()) >= AT_ONCE:
                raise Problem(429, "many judges are at work already; try again in a minute", {"Retry-After": "60"})
            job = self._jobs[key] = Job()
            self._jobs.move_to_end(key)
            for old in [known for known, job in self._jobs.items() if job.state != "running"][:-REMEMBERED]:
                del self._jobs[old]
        Thread(target=self._run, args=(job, work), daemon=True).start()

    def stop(self, key: Key) -> None:
        """Ask no more in a round that is under way; what has been sent is answered and kept."""
        if (job := self._jobs.get(key)) is not None:
            job.stopping.set()

    def _run(self, job: Job, work: Callable[[], Iterator[str]]) -> None:
        ended: Literal["done", "stopped"] = "done"
        try:
            for note in work():
                if note and note not in job.notes:
                    job.notes.append(note)
                if self._closing.is_set() or job.stopping.is_set():
                    ended = "stopped"
                    break
            job.state = ended
        except EyespotError as error:
            job.notes, job.state = [*job.notes, str(error)], "failed"
        except BaseException:
            if self._closing.is_set():  # it took too long to end, and what it works with is closed by now
                job.state = "stopped"
                return
            job.notes = [*job.notes, "the judge stumbled; what happened stands in the server's output"]
            job.state = "failed"
            raise
        finally:
            job.ended.set()

    def close(self, seconds: float = 5.0) -> None:
        """Ask no more; what is under way has a moment to be kept. Later than that it ends without a word."""
        self._closing.set()
        for job in list(self._jobs.values()):
            job.ended.wait(seconds)
