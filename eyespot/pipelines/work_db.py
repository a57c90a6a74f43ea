"""What a pipeline has done and paid for, in one file next to its steps; it survives a kill at any moment.

Answers of models are on the disk before they are used, requests with what they may cost before they are sent. Outcomes
of single records follow in groups, at least four a second: a kill may lose some, which costs work and no money. Records
without an answer are written at once, because nothing else says that the model was asked.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.llms.batches import ItemRequests, ReservationStore, RunDatabase
from eyespot.llms.budget import Budget, CostLimits, ItemMeter, LargestCost
from eyespot.pipelines.outcomes import Failed, Outcome, line_of, packed, unpacked
from eyespot.storage import exchange_log
from eyespot.types import Adjustment, Exchange, Spent

FILE = "work.sqlite"
GROUP, PAUSE = 8192, 0.25  # outcomes, seconds: whichever is reached first makes a group durable
_SCHEMA = Path(__file__).with_name("work_db.sql").read_text("utf-8")
_PAY = """INSERT INTO costs(name, step, seconds, calls, tokens_in, tokens_out, money) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds, calls = calls + excluded.calls,
    tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out,
    money = money + excluded.money"""
_KNOWN = "SELECT outcomes FROM outcomes WHERE step = ? AND record = ?"
_SUMS = """SELECT total(seconds), sum(calls), sum(tokens_in), sum(tokens_out), total(money) FROM
    (SELECT name, seconds, calls, tokens_in, tokens_out, money FROM costs
    UNION ALL SELECT name, 0, 1, tokens_in, tokens_out, money FROM unpaid)"""
_WAITING = """SELECT count(*) FROM pending_requests JOIN unpaid ON id = reserved WHERE name = ? AND reply IS NULL
    AND batch IS NOT NULL"""
_KEEP = "INSERT OR REPLACE INTO answers(prompt, answer, asked, at) VALUES (?, ?, ?, ?)"
_PROVENANCE = "INSERT OR REPLACE INTO provenance(prompt, served, changes) VALUES (?, ?, ?)"
_EARLIER = "step IN (SELECT step FROM costs WHERE name = ? AND step <> ?)"
_USE = "INSERT OR IGNORE INTO uses(step, prompt, record) VALUES (?, ?, ?)"
_PROMPTS = """SELECT record, prompt, asked, answer FROM uses LEFT JOIN answers USING (prompt) WHERE step = ?
    ORDER BY at IS NULL, at, record, prompt"""
_ORIGINS = """SELECT ifnull(CASE WHEN json_valid(asked) THEN json_extract(asked, '$.use') END, ''), served, changes,
    count(DISTINCT prompt) FROM uses JOIN answers USING (prompt) LEFT JOIN provenance USING (prompt) WHERE step = ?
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
_SEEN = """INSERT INTO dearest(name, model, requests, tokens_in, tokens_out, money) VALUES (?, ?, 1, ?, ?, ?)
    ON CONFLICT DO UPDATE SET requests = requests + 1, tokens_in = max(tokens_in, excluded.tokens_in),
    tokens_out = max(tokens_out, excluded.tokens_out), money = max(money, excluded.money)"""
_DEAREST = "SELECT requests, tokens_in, tokens_out, money FROM dearest WHERE name = ? AND model = ?"


class Provenance(NamedTuple):
    """How a model came to its answer: its name as the server gives it, and what of the request was not accepted."""

    served: str = ""
    changes: Sequence[Adjustment] = ()


@dataclass(frozen=True)
class StepCost:
    """Seconds of work over all runs, and what was spent in them."""

    seconds: float
    spent: Spent


class Origin(NamedTuple):
    """How many answers of a step have one provenance; None: from before that was written down."""

    model: str
    provenance: Provenance | None
    answers: int

    def as_json(self) -> dict[str, Any]:
        """Its fields; null where no provenance is recorded."""
        served, changes = self.provenance or (None, None)
        every = None if changes is None else [change._asdict() for change in changes]
        return {"model": self.model, "count": self.answers, "served": served, "changes": every}


class StepKey(NamedTuple):
    """The key of a step's outcomes: its name, and the digest of all that its results depend on."""

    name: str
    digest: str


@dataclass
class _Pending:
    """What is not on the disk yet."""

    rows: list[tuple[str, bytes, bytes, bool]]
    uses: list[tuple[str, str, str]]
    since: float


class WorkDB(RunDatabase):
    """Outcomes, answers and costs; any number of threads of one program use it at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / FILE, _SCHEMA)
        if "record" not in (row[1] for row in self._sql.execute("PRAGMA table_info(uses)")):  # by an earlier version
            self._sql.execute("ALTER TABLE uses ADD COLUMN record TEXT NOT NULL DEFAULT ''")
        self._pending = _Pending([], [], time.monotonic())

    def __enter__(self) -> WorkDB:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()
        self.close()

    # -- outcomes of single records -----------------------------------------------------------------------------

    def outcomes(self, step: StepKey, line: bytes) -> list[Outcome] | None:
        """The step's outcomes of the record of this line; None if it has not worked on it yet."""
        with self.reading() as sql:
            row = sql.execute(_KNOWN, (step.digest, _digest(line))).fetchone()
        return None if row is None else unpacked(row[0], line)

    def keep(self, step: StepKey, line: bytes, outcomes: list[Outcome]) -> None:
        """Keep a step's outcomes of the record of this line; on the disk with its group, or at `flush`."""
        failed = any(isinstance(outcome, Failed) for outcome in outcomes)
        with self._lock:
            self._pending.rows.append((step.digest, _digest(line), packed(outcomes, line), failed))
            full = len(self._pending.rows) >= GROUP or time.monotonic() - self._pending.since > PAUSE
        if full:
            self.flush()

    def forget_failures(self, step: StepKey) -> None:
        """Let the records that failed in this step be tried again."""
        with self.writing() as sql:
            sql.execute("DELETE FROM outcomes WHERE step = ? AND failed", (step.digest,))

    def forget_earlier(self, step: StepKey) -> None:
        """Let go of what the step of this name came to with other settings or inputs, now that it is finished.

        Answers stay, and records that failed: nothing else says that these were sent and paid for.
        """
        with self.writing() as sql:
            sql.execute(f"DELETE FROM outcomes WHERE NOT failed AND {_EARLIER}", step)
            sql.execute(f"DELETE FROM uses WHERE {_EARLIER}", step)

    def known(self, step: StepKey) -> int:
        """How many records this step has outcomes of."""
        return self._count("SELECT count(*) FROM outcomes WHERE step = ?", step.digest)

    def waiting(self, step: StepKey) -> int:
        """How many requests of the step are at work in batches."""
        return self._count(_WAITING, step.name)

    def _count(self, query: str, of: str) -> int:
        with self._lock:
            return int(self._sql.execute(query, (of,)).fetchone()[0])

    def flush(self) -> None:
        """Write what is pending."""
        with self._lock:
            pending, self._pending = self._pending, _Pending([], [], time.monotonic())
            if pending.rows or pending.uses:
                with self.writing():
                    self._sql.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?)", pending.rows)
                    self._sql.executemany(_USE, pending.uses)

    # -- answers of models --------------------------------------------------------------------------------------

    def answer(self, prompt: str) -> dict[str, Any] | None:
        """The answer to the prompt of this digest, if there ever was one."""
        with self._lock:
            row = self._sql.execute("SELECT answer FROM answers WHERE prompt = ?", (prompt,)).fetchone()
        return None if row is None else json.loads(row[0])

    def keep_answer(
        self,
        prompt: str,
        sent: Mapping[str, Any],
        answer: Mapping[str, Any],
        *,
        provenance: Provenance = Provenance(),
        exchanges: Sequence[Exchange] = (),
    ) -> None:
        """Keep an answer with what was asked and how it came about; it is on the disk when this returns."""
        changes = line_of([change._asdict() for change in provenance.changes]).decode()
        with self.writing():
            self._sql.execute(_KEEP, (prompt, line_of(answer).decode(), line_of(sent).decode(), time.time()))
            self._sql.execute(_PROVENANCE, (prompt, provenance.served, changes))
            self._insert(prompt, exchanges)

    def keep_exchanges(self, prompt: str, several: Sequence[Exchange]) -> None:
        """Keep what was sent for the prompt of this digest, and what came back, though it is not an answer."""
        if several:
            with self.writing():
                self._insert(prompt, several)

    def exchanges(self, prompt: str) -> list[Exchange]:
        """What was ever sent for the prompt of this digest, and what came back."""
        with self._lock:
            return list(exchange_log.read(self._sql, [prompt]))

    def _insert(self, prompt: str, several: Sequence[Exchange]) -> None:
        exchange_log.insert(self._sql, prompt, several, exchange_log.count(self._sql, prompt))

    def use(self, step: StepKey, prompt: str, record: str = "") -> None:
        """Count the answer to the prompt of this digest as one of the step's; on the disk before its outcomes."""
        with self._lock:
            self._pending.uses.append((step.digest, prompt, record))

    def prompts(self, step: StepKey) -> list[tuple[str, str, dict[str, Any], dict[str, Any] | None]]:
        """By record what the step asked, in the order of its answers: the prompt's digest, the prompt, the answer."""
        with self._lock:
            rows = self._sql.execute(_PROMPTS, (step.digest,)).fetchall()
        return [
            (record, key, json.loads(sent or "{}"), answer and json.loads(answer)) for record, key, sent, answer in rows
        ]

    def origins(self, step: StepKey) -> list[Origin]:
        """How the answers came about that the step has used as it stands."""
        self.flush()
        with self._lock:
            rows = self._sql.execute(_ORIGINS, (step.digest,)).fetchall()
        origins = []
        for model, served, changes, count in rows:
            adjustments = [Adjustment(**change) for change in json.loads(changes or "[]")]
            provenance = None if served is None or changes is None else Provenance(served, tuple(adjustments))
            origins.append(Origin(model, provenance, count))
        return origins

    # -- costs --------------------------------------------------------------------------------------------------

    def work(self, step: StepKey, seconds: float) -> None:
        """Count time that a step took."""
        with self.writing() as sql:
            sql.execute(_PAY, (*step, seconds, *Spent()))

    def cost(self, step: StepKey | None = None) -> StepCost:
        """What the step of this name cost since the beginning, as it was before it was changed, too; None: all steps.

        What requests without an answer may have cost counts.
        """
        of = " WHERE name = ?" * (step is not None)
        with self._lock:
            seconds, *spent = self._sql.execute(_SUMS + of, () if step is None else (step.name,)).fetchone()
        return StepCost(seconds, Spent(*(value or 0 for value in spent)))


def _digest(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()[:16]


class StepStore(ReservationStore):
    """The requests of one step in the file of its pipeline, over all runs."""

    def __init__(self, work: WorkDB, step: StepKey) -> None:
        super().__init__(work, step.name)
        self.work, self.step = work, step

    def total(self) -> Spent:
        """What all steps spent and reserved since the beginning."""
        return self.work.cost().spent

    def dearest(self, model: str) -> LargestCost:
        """The most that a request of the step to this model cost so far."""
        with self.work.reading() as sql:
            row = sql.execute(_DEAREST, (self.step.name, model)).fetchone()
        return LargestCost() if row is None else LargestCost(row[0], Spent(1, *row[1:]))

    def settle(self, number: int | None, model: str, paid: Spent) -> None:
        """Replace a reservation, if there is one, by what the request did cost; on the disk when this returns."""
        with self.work.writing() as sql:
            sql.execute(_PAY, (*self.step, 0.0, *paid))
            if number is not None:
                sql.execute("DELETE FROM unpaid WHERE id = ?", (number,))
                if any(paid[1:]):  # a request that was turned away says nothing of the price
                    sql.execute(_SEEN, (self.step.name, model, *paid[1:]))


class ReservedBudget(Budget):
    """What the requests of one step are paid from, by any number of threads; those of earlier runs count.

    What a request may cost is on the disk before it is sent, and what it did cost replaces it. What a kill cuts off
    stays counted, because it may have been paid.
    """

    def __init__(self, limits: CostLimits, work: WorkDB, step: StepKey, expects: Spent = Spent()) -> None:
        super().__init__(limits.calls, limits.tokens, limits.money, StepStore(work, step))
        self.expects = expects  # of one record

    @contextmanager
    def opened(self, requests: ItemRequests | None = None) -> Iterator[PromptMeter]:
        """The meter of one prompt. What it leaves unpaid stays counted, and no thread waits for it any more."""
        meter = PromptMeter(self, self.expects)
        meter.requests = requests
        try:
            yield meter
        finally:
            meter.lose()


class PromptMeter(ItemMeter):
    """A `CallMeter` of one prompt."""

    def __init__(self, budget: Budget, expected: Spent = Spent()) -> None:
        super().__init__(budget, expected)
        self.exchanges: list[Exchange] = []
        self.requests: ItemRequests | None = None

    def report(self, exchange: Exchange) -> None:
        """Say what was sent and what came of it."""
        self.exchanges.append(exchange)

    @property
    def provenance(self) -> Provenance:
        """How the answer came about: by the last reply."""
        replies = (exchange.reply for exchange in reversed(self.exchanges))
        last = next((reply for reply in replies if reply is not None), None)
        return Provenance() if last is None else Provenance(last.model, last.changes)
