"""Judges that may re-rank, with one budget, and their rounds in the background; adapters that may be chosen."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Any, Literal

from eyespot import rooms
from eyespot.gallery.view import Gallery
from eyespot.llms.budget import Budget
from eyespot.llms.prices import read_prices
from eyespot.search.adapted import AnyAdapter, adapter_named, refuse_other_space
from eyespot.search.judge_rerank import is_judge, judge_named
from eyespot.types import EyespotError, Judge, Price, Space, Tokens, UsageError
from eyespot.web._problems import Problem
from eyespot.web._settings import Judging


def open_adapters(folders: Iterable[tuple[str, str]], gallery: Gallery) -> dict[str, AnyAdapter]:
    """The checkpoints by their names; `UsageError` for one that is none, or fits no space of the gallery."""
    spaces = [gallery.header.spaces[gallery.stem(encoder)] for encoder in gallery.encoders]
    adapters = {}
    for name, folder in folders:
        adapter = adapter_named(folder)
        wrong = [_misfit(adapter, space) for space in spaces]
        if all(wrong):
            raise UsageError(f"--adapt {name}: {wrong[0]}")
        adapters[name] = adapter
    return adapters


def _misfit(adapter: AnyAdapter, space: Space) -> str:
    """Why an adapter does not fit a space; "" if it does."""
    try:
        refuse_other_space(adapter, space)
    except UsageError as error:
        return str(error)
    return ""


def refuse_misfit(name: str, adapter: AnyAdapter, space: Space) -> None:
    """`Problem` if the adapter is of another space than the one that is searched."""
    if _misfit(adapter, space):
        raise Problem(422, f"the adapter {name!r} does not fit {space.encoder}; choose another encoder, or no adapter")


# -- judges -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AllowedJudge:
    """A judge that people may ask, under the name that they see; one round at a time asks (`asking`)."""

    name: str
    judge: Judge
    asking: Lock = field(default_factory=Lock, repr=False)

    @property
    def paid(self) -> bool:
        """Whether its questions cost money, or may because no table has their price."""
        model = self.judge.language_model
        return model is not None and not model.free

    @property
    def price(self) -> Price | None:
        """The price of its language model; None if no table has it."""
        model = self.judge.language_model
        return None if model is None else model.price

    def cost(self, questions: int) -> dict[str, Any]:
        """What this many questions would cost, if none is repeated; money in US dollars, None without a price."""
        free = self.judge.language_model is None
        spent = Tokens().cost(0 if free else questions, self.price)
        known = self.price or not self.paid
        return {"calls": spent.calls, "tokens": spent.tokens, "money": spent.money if known else None}


@dataclass(frozen=True)
class Judges:
    """The allowed judges, and the budget that they share as long as the server runs."""

    named: Mapping[str, AllowedJudge]
    depth: int
    budget: Budget

    def __getitem__(self, name: str) -> AllowedJudge:
        if name not in self.named:
            there = f"there are: {', '.join(self.named)}" if self.named else "the owner of this gallery allows none"
            raise UsageError(f"no judge {name!r} re-ranks here; {there}")
        return self.named[name]


def open_judges(judging: Judging) -> Judges:
    """The judges by their names.

    `UsageError` for one that is none, that cannot be asked from a server, or whose money no limit could hold.
    """
    budget, table = Budget(judging.calls, None, judging.money), read_prices(judging.prices)
    named = {}
    for name, spec in judging.judges:
        if spec.partition(":")[0] == "person" or not is_judge(spec):
            models = ", ".join(judge for judge in rooms.names("judges") if judge != "person")
            raise UsageError(f"--rerank {name}: {spec!r} is not a judge that a server can ask; there are: {models}")
        price = table.of(spec.partition(":")[2])
        judge = judge_named(spec, budget=budget, prices=table if price else None)
        _ = judge.name  # a missing model is an error now, not for every visitor
        named[name] = AllowedJudge(name, judge)
    if judging.money is not None:
        # Requests without a price would count as nothing, so a limit of money would never stop them
        for allowed in named.values():
            if allowed.paid and allowed.price is None:
                raise UsageError(
                    f"--rerank {allowed.name} has no price, so --budget-money cannot hold it; give one with --prices"
                )
    return Judges(named, judging.depth, budget)


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
        """Send no more; what is under way has a moment to be stored, all rounds together, and then ends."""
        self._closing.set()
        latest = time.monotonic() + seconds
        for job in list(self._jobs.values()):
            job.ended.wait(max(0.0, latest - time.monotonic()))
