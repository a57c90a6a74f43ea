"""Running a pipeline: what is finished stays, what is begun goes on, what changed is done again; and a dry run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from eyespot.llms.batches import Requests, Waiting
from eyespot.llms.budget import CostLimits
from eyespot.llms.settings import unpriced
from eyespot.llms.unsupported_fields import left_out
from eyespot.parallel import ordered_map
from eyespot.pipelines.outcomes import Added, Drop, Failed, Keep, NoAnswer, Outcome, Record, Records, line_of
from eyespot.pipelines.step import CallMeter, Context, MapStep, Prompt, SqlStep, Step, digest_of_json
from eyespot.pipelines.step_folder import (
    CachedResult,
    StepCounts,
    StepWriter,
    cached_result,
    counted,
    digest_of_drops,
    place_of,
    write_manifest,
)
from eyespot.pipelines.work_db import FILE, Origin, ReservedBudget, StepCost, StepKey, WorkDB
from eyespot.storage.atomic import new_folder
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, Spent, UsageError, no_progress, quantity

Client: TypeAlias = Callable[[Prompt, CallMeter], Mapping[str, Any]]
"""Puts a prompt to a model and gives its answer, each request counted by the meter; `NoAnswer` if there is none."""
log = logging.getLogger(__name__)
AHEAD = 4  # records for each worker that may be ready before their turn
TICK = 1.0  # seconds after which the time worked is written down
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class RunOptions:
    """How to run: the seed of all that is drawn, what may be spent, who answers, and how many records a trial takes.

    `limit` is the most records that the first step keeps. `retry_failed` tries again what failed in an earlier run.
    `strict` ends the run where a model does not accept all settings of a request. `batch` sends requests about single
    records in batches.
    """

    seed: int = 0
    limits: CostLimits = field(default_factory=CostLimits)
    client: Client | None = None
    limit: int | None = None
    retry_failed: bool = False
    tell: Progress = no_progress
    strict: bool = False
    batch: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"a trial takes 1 record or more, not {self.limit}")


@dataclass(frozen=True)
class StepResult:
    """A finished step: what became of its records, what it cost over all runs, and whether it ran in this one.

    `origins` says how the answers of models came about.
    """

    step: Step
    folder: Path
    counts: StepCounts
    cost: StepCost
    records: Records
    ran: bool
    origins: Sequence[Origin] = ()


def run(steps: Sequence[Step], work: Path | str, how: RunOptions = RunOptions()) -> list[StepResult]:
    """Run every step that is not finished, in order, and store the results in the folder `work`.

    Run again after anything (a kill, a spent budget, a full disk) it goes on where it was, and ends in the same files.
    Raises `BudgetSpent` once the budget is spent, `Unaccounted` for a step that loses a record, and what steps raise.
    """
    check(steps)
    work = Path(work)
    with locked(work), WorkDB(work) as memory:
        done: list[StepResult] = []
        for number, step in enumerate(steps, 1):
            before = done[-1].records if done else Records()
            earlier = {one.step.name: one.records for one in done if one.step.name in step.needs}
            done.append(_Turn(step, place_of(work, number, step, move=True), memory, how, earlier).take(before))
        return done


class PlannedStep(NamedTuple):
    """A step to come: at most `records` would be worked on (None: unknown yet), of which `known` are done already.

    `spent` is the most calls of the step, and what these are likely to cost: a model that thinks costs more. Answers
    that are on the disk cost nothing. `unpriced` are models without a known price, `waiting` requests in
    batches at work.
    """

    name: str
    finished: bool
    records: int | None
    known: int
    spent: Spent
    unpriced: Sequence[str] = ()
    waiting: int = 0


def plan(steps: Sequence[Step], work: Path | str, how: RunOptions = RunOptions()) -> list[PlannedStep]:
    """What `run` would do; no request is sent and nothing is written."""
    check(steps)
    work = Path(work)
    planned: list[PlannedStep] = []
    outputs: dict[str, Records] = {}  # by finished steps; what the others will keep is unknown
    before, most = Records(), how.limit if steps[0].grows is None else 0
    for number, step in enumerate(steps, 1):
        mark = mark_of(step, how, outputs) if set(step.needs) <= set(outputs) else None
        reached = len(outputs) == number - 1  # all before it are finished
        result = cached_result(place_of(work, number, step)) if mark and reached and not step.always else None
        retried = result is not None and how.retry_failed and result.counts.failed > 0
        if mark and result and result.digest == digest_here(mark, before, how) and not retried:
            before, most = result.records, len(result.records)
            outputs[step.name] = before
            planned.append(PlannedStep(step.name, True, most, result.counts.came, Spent()))
            continue
        most = len(before) if reached and number > 1 else most
        known = waiting = 0
        if mark and isinstance(step.work, MapStep) and (work / FILE).exists():
            with WorkDB(work) as memory:
                known = min(memory.known(mark), most or 0)
                waiting = memory.waiting(mark)
        requests = max(0, (most or 0) - known)
        requests = requests if step.asking is None else min(requests, step.asking)
        expects = step.expects.times(requests)
        planned.append(PlannedStep(step.name, False, most, known, expects, unpriced(step.models), waiting))
        most = step.grows(most or 0) if step.grows else most
    return planned


def check(steps: Sequence[Step]) -> None:
    """`UsageError` for a pipeline that cannot run."""
    names = [step.name for step in steps]
    if not names:
        raise UsageError("the recipe has no steps; declare one with [[steps]]")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two steps are called {twice!r}; give one of them another name")
    for at, step in enumerate(steps):
        late = [name for name in step.needs if name not in names[:at]]
        if late:
            raise UsageError(f"step {step.name} needs {late[0]!r}, which is not a step before it; put it earlier")
    if isinstance(steps[0].work, MapStep):
        raise UsageError(f"the first step {names[0]!r} works on single records and none are there; begin with a source")


def mark_of(step: Step, how: RunOptions, earlier: Mapping[str, Records]) -> StepKey:
    """What the outcome of one record depends on: the step, the seed, and what it needs of earlier steps."""
    needed = [earlier[name].digest for name in step.needs]
    needed += [digest_of_drops(earlier[name]) for name in step.needs_drops]
    return StepKey(step.name, digest_of_json([step.digest(how.seed), needed]))


def digest_here(mark: StepKey, before: Records, how: RunOptions) -> str:
    """What a finished step depends on: its mark and the records that came; the first step also on the limit."""
    return digest_of_json([mark.digest, before.digest, how.limit if before.path is None else None])


# -- one step ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turn:
    step: Step
    folder: Path
    memory: WorkDB
    how: RunOptions
    earlier: Mapping[str, Records]

    @cached_property
    def mark(self) -> StepKey:
        return mark_of(self.step, self.how, self.earlier)

    def take(self, before: Records) -> StepResult:
        digest = digest_here(self.mark, before, self.how)
        found = cached_result(self.folder)
        if found is not None and not (reason := self._why_again(found, digest)):
            log.info("step %s is finished: %s", self.step.name, found.counts)
            return self._done(found, ran=False)
        known = self.memory.known(self.mark)
        reason = "it was never finished" if found is None else reason
        log.info("step %s runs on %d records, of which %d are known: %s", self.step.name, len(before), known, reason)
        if self.how.retry_failed:
            self.memory.forget_failures(self.mark)
        with new_folder(self.folder) as folder:
            counts = self._worked(before, folder)
            write_manifest(folder, self.step, (self.mark.digest, digest), counts)
        self.memory.forget_earlier(self.mark)
        log.info("step %s ran: %s", self.step.name, counts)
        again = cached_result(self.folder)
        assert again is not None
        return self._done(again, ran=True)

    def _why_again(self, found: CachedResult, digest: str) -> str:
        """Why a finished step runs again; empty if it does not."""
        if found.digest != digest:
            return "its settings, inputs or records changed"
        if self.step.always:
            return "it runs every time"
        failed = found.counts.failed if self.how.retry_failed else 0
        return f"tried again: {quantity(failed, 'record')} that failed" if failed else ""

    def _done(self, found: CachedResult, ran: bool) -> StepResult:
        cost, origins = self.memory.cost(self.mark), self.memory.origins(self.mark)
        # `EyespotError` for answers to other requests than those of a strict recipe
        for model, provenance, _ in origins if self.how.strict else ():
            if provenance and (fields := left_out(provenance.changes)):
                raise EyespotError(
                    f"step {self.step.name} has answers of {model} without {', '.join(fields)}, which it does not "
                    "accept; name another model or leave out what it does not accept, or say strict = false"
                )
        return StepResult(self.step, self.folder, found.counts, cost, found.records, ran, origins)

    def _worked(self, before: Records, folder: Path) -> StepCounts:
        budget = ReservedBudget(self.how.limits, self.memory, self.mark, self.step.expects)
        requests = Requests(self.memory, budget, self.how.batch and isinstance(self.step.work, MapStep), self.how.tell)
        ask = _Asking(self.mark, self.memory, self.how.client, budget, requests)
        context = Context(self.step.name, self.how.seed, ask, self.how.tell, self.earlier, self.how.limit)
        with _clock(self.memory, self.mark) as tick:
            work = self.step.work
            if isinstance(work, SqlStep):
                added = work.work(before, folder, context)
                return counted(folder, added, len(before), work.key).accounted(self.step.name)
            account = StepWriter(self.step.name, folder)
            try:
                if isinstance(work, MapStep):
                    settled: Iterator[object] = self._settled_one_by_one(work, before, account, context)
                else:
                    limit = self.how.limit if before.path is None else None
                    outcomes = iter(work.work(before, context))
                    settled = account.settle_all(before, outcomes, limit)
                self.how.tell(self.step.name, 0, len(before))
                for number, _ in enumerate(settled, 1):
                    self.how.tell(self.step.name, number, len(before))
                    tick()
                return account.counts()
            finally:
                self.memory.flush()
                account.close()

    def _waiting(self, worked: Iterable[tuple[Record, list[Outcome] | None]]) -> int:
        """How many records wait for a batch; the outcomes of the others are on the disk."""
        count = sum(outcomes is None for _, outcomes in worked)
        self.memory.flush()
        return count

    def _settled_one_by_one(
        self, each: MapStep, before: Records, account: StepWriter, context: Context
    ) -> Iterator[Record]:
        assert isinstance(context.ask, _Asking)
        ask = context.ask
        # Looking for what cannot be there costs as much as a cheap step does
        any_known = ask.requests.batched or self.memory.known(self.mark)

        def work(record: Record) -> tuple[Record, list[Outcome] | None]:
            line = line_of(record)
            if any_known and (known := self.memory.outcomes(self.mark, line)) is not None:
                return record, known
            try:
                asking = replace(ask, record=str(record.get("id")), waits=[])
                result = each.work(record, replace(context, ask=asking))
                outcomes = [result] if isinstance(result, Keep | Drop | Failed | Added) else list(result)
            except NoAnswer as error:
                outcomes = [Failed(record, NO_ANSWER, str(error))]
            if asking.waits:
                return record, None
            self.memory.keep(self.mark, line, outcomes)
            if self.step.models and any(isinstance(one, Failed) for one in outcomes):
                self.memory.flush()  # after a kill no answer would tell that this was asked and paid for
            return record, outcomes

        # Every record once before any is settled, and those again that wait for a batch
        while ask.requests.batched and self._waiting(ordered_map(work, before, each.workers, each.workers * AHEAD)):
            ask.requests.wait()
        for record, outcomes in ordered_map(work, before, each.workers, each.workers * AHEAD):
            assert outcomes is not None
            account.settle(record, outcomes)
            yield record


@contextmanager
def _clock(memory: WorkDB, mark: StepKey) -> Iterator[Callable[[], None]]:
    """Writes down the time worked, every second or so and at the end, however it ends."""
    since = [time.monotonic()]

    def write_time() -> None:
        now = time.monotonic()
        memory.work(mark, now - since[0])
        since[0] = now

    def tick() -> None:
        if time.monotonic() - since[0] > TICK:
            write_time()

    try:
        yield tick
    finally:
        write_time()


# -- asking -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asking:
    """`Context.ask`: what was answered once comes from the disk; an answer is on the disk before it is used."""

    mark: StepKey
    memory: WorkDB
    client: Client | None
    budget: ReservedBudget
    requests: Requests
    record: str = ""  # which is worked on
    waits: list[str] = field(default_factory=list)  # prompts about it whose replies come with a batch

    def __call__(self, prompt: Prompt) -> dict[str, Any]:
        sent = {name: value for name, value in prompt.items() if not name.startswith("_")}
        key = digest_of_json(sent)
        known = self.memory.answer(key)
        self.memory.use(self.mark, key, self.record)
        if known is not None:
            return known
        if self.client is None:
            raise EyespotError(f"step {self.mark.name} asks a model and none is there; name one in the recipe")
        draws = [digest_of_json({**sent, "draw": draw}) for draw in prompt.get("_draws", ()) if draw != sent["draw"]]
        draws = [draw for draw in draws if self.memory.answer(draw) is None]
        requests = self.requests.of(key, draws) if self.requests.batched or prompt.get("_draws") else None
        with self.budget.opened(requests) as meter:
            try:
                answer = dict(self.client(prompt, meter))
            except Waiting as why:
                self.waits.append(key)
                raise NoAnswer(str(why)) from None
            except EyespotError as error:  # an answer that cannot be used is on the disk, too
                self.memory.keep_exchanges(key, meter.exchanges)
                if requests:
                    requests.finish() if isinstance(error, NoAnswer) else requests.forget_error()
                raise
        if meter.exchanges:  # the request has both, word for word
            sent = {name: value for name, value in sent.items() if name not in ("words", "form")}
        self.memory.keep_answer(key, sent, answer, provenance=meter.provenance, exchanges=meter.exchanges)
        if requests:
            requests.finish()
        return answer
