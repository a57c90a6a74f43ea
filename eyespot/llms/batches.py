"""Requests in batches, for half the price, and replies that are stored until their answer is on the disk.

A request that is put into a batch raises `Waiting`. Whoever asks comes again once `Requests.wait` has the replies, and
finds them in the order in which it sent its requests. All of this lies in the SQLite file of the caller: what may be
paid before it is sent, a batch before it is created, its id before it is waited for. A run that is killed takes the
same batch up again. (OpenAI: Batch API; Anthropic: Message Batches API.)
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import Any, TypeVar

from eyespot.llms.batch_protocols import PROTOCOLS, UNANSWERED, BatchResult, BatchState, ServedModel, await_end
from eyespot.llms.budget import Budget, BudgetSpent, BudgetStore, total_of
from eyespot.llms.errors import Busy, NoReply, RetryableError, StatusError, Trouble, Unreachable, final, of_status
from eyespot.llms.protocols import cache_of, likely, usage_of
from eyespot.llms.unsupported_fields import NEEDED, without
from eyespot.storage import sqlite
from eyespot.storage.atomic import trouble
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, Spent, no_progress

Body = Mapping[str, Any]
Result = TypeVar("Result")
SCHEMA = """
CREATE TABLE IF NOT EXISTS unpaid(id INTEGER PRIMARY KEY, name TEXT NOT NULL, tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL, money REAL NOT NULL);
CREATE TABLE IF NOT EXISTS pending_requests(number INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL,
    nth INTEGER NOT NULL, model TEXT NOT NULL, body TEXT NOT NULL, reserved INTEGER, sharing INTEGER, batch TEXT,
    status INTEGER, reply TEXT, UNIQUE(item, nth));
CREATE INDEX IF NOT EXISTS draws_of_request ON pending_requests(sharing) WHERE sharing IS NOT NULL;
CREATE TABLE IF NOT EXISTS sent_batches(token TEXT PRIMARY KEY, place TEXT NOT NULL, id TEXT, at REAL NOT NULL);
"""
REQUEST = "INSERT INTO pending_requests(item, nth, model, body, reserved) VALUES (?, ?, ?, ?, ?)"
FURTHER = """INSERT OR IGNORE INTO pending_requests(item, nth, model, body, sharing, status, reply)
    VALUES (?, 0, ?, '', ?, ?, ?)"""
WINDOW = 24 * 3600.0  # seconds after which both vendors end a batch, whatever has no reply by then
ROWS, BYTES = 10_000, 100_000_000  # of one batch, which may have 50,000 and 200 MB at OpenAI, 100,000 and 256 MB else


class Waiting(Trouble):
    """The reply comes with a batch."""


class LeftAtWork(EyespotError):
    """A person leaves while batches are at work."""

    exit_code = 130


@contextmanager
def requests_in(
    folder: Path, limits: tuple[int | None, int | None, float | None], tell: Progress = no_progress
) -> Iterator[Requests]:
    """The requests of batches of this folder, for one program at a time; limits of calls, tokens and money."""
    with locked(folder), closing(RunDatabase(folder / "requests.sqlite")) as database:
        yield Requests(database, Budget(*limits, ReservationStore(database)), batched=True, tell=tell)


# -- what is sent and what came -----------------------------------------------------------------------------------


class RunDatabase:
    """The SQLite file of a run, for one thread at a time; the requests of its batches are in it."""

    def __init__(self, file: Path, schema: str = "") -> None:
        try:
            self._sql = sqlite.connect(file, SCHEMA + schema)
        except (sqlite3.Error, OSError) as error:
            way_out = trouble(error, elsewhere="name another folder")
            raise EyespotError(f"cannot write to {file} {way_out}") from None
        self._lock = RLock()

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The tables, for one thread at a time."""
        with self._lock:
            yield self._sql

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The tables, for one thread at a time; what is written is on the disk at the end, whole or not at all."""
        try:
            with self._lock:
                if self._sql.in_transaction:  # part of a larger one of this thread
                    yield self._sql
                else:
                    with sqlite.transaction(self._sql):
                        yield self._sql
        except sqlite3.Error as error:
            raise EyespotError(f"cannot write down what was done {trouble(error)}") from None


class ReservationStore(BudgetStore):
    """What a run spends, with what its requests may cost on the disk: those of earlier runs count."""

    def __init__(self, database: RunDatabase, name: str = "") -> None:
        super().__init__()
        self.database, self.name = database, name

    def total(self) -> Spent:
        """All that this run spent, and all that is reserved."""
        with self.database.reading() as sql:
            reserved = [Spent(1, *row) for row in sql.execute("SELECT tokens_in, tokens_out, money FROM unpaid")]
        return total_of([super().total(), *reserved])

    def reserve(self, price: Spent) -> int:
        """Count a request with what it may cost, on the disk when this returns; its number."""
        with self.database.writing() as sql:
            number = sql.execute("INSERT INTO unpaid VALUES (NULL, ?, ?, ?, ?)", (self.name, *price[1:])).lastrowid
        assert number is not None
        return number

    def settle(self, number: int | None, model: str, paid: Spent) -> None:
        """Replace a reservation, if there is one, by what the request did cost."""
        with self.database.writing() as sql:
            sql.execute("DELETE FROM unpaid WHERE id = ?", (number,))
        super().settle(None, model, paid)


@dataclass
class Requests:
    """The requests of a step that have no answer on the disk yet.

    `batched`: they are sent in batches; otherwise only further draws of one reply are stored here.
    """

    database: RunDatabase
    budget: Budget
    batched: bool = False
    tell: Progress = no_progress
    _pending: dict[str, dict[int, Body]] = field(default_factory=dict)  # bodies by model and number
    _bytes: int = 0
    _endpoints: dict[str, ServedModel] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock, repr=False)

    def __post_init__(self) -> None:
        with self.database.writing() as sql:
            self._forget_unsent(sql)

    def of(self, item: str, draws: Sequence[str] = ()) -> ItemRequests:
        """The requests of one item; `draws` are the items that equal it and may share its reply."""
        return ItemRequests(self, item, tuple(draws))

    def register(self, endpoint: ServedModel) -> None:
        """Remember who answers for the batches of a model, those of an earlier run among them."""
        self._endpoints[_place(endpoint)] = endpoint

    def enqueue(self, endpoint: ServedModel, item: ItemRequests, body: Body) -> None:
        """Put a request into the next batch, unless it is there or the budget has no room before others are answered.

        `BudgetSpent` if there are none.
        """
        choices = int(body.get("n", 1))
        one = likely(body, None)
        expected = one._replace(tokens_out=one.tokens_out * choices)
        with self._lock, self.database.writing() as sql:
            if item.row()[0] is not None:
                return
            try:
                price = endpoint.price.in_batch if endpoint.price else None
                money = price.of(expected.tokens_in, expected.tokens_out) if price else 0.0
                reserved = self.budget.reserve_batched(endpoint.name, expected._replace(money=money))
            except BudgetSpent:
                if self.waiting():
                    return
                raise
            fields = json.dumps({name: value for name, value in body.items() if name not in NEEDED})
            row = item.item, item.sent, endpoint.name, fields, reserved
            number = sql.execute(REQUEST, row).lastrowid
            assert number is not None
            if choices > 1:
                sql.executemany(FURTHER, [(draw, endpoint.name, number, None, None) for draw in item.draws])
        with self._lock:
            pending = self._pending.setdefault(_place(endpoint), {})
            pending[number] = body
            self._bytes += len(json.dumps(body))
            if self._bytes > BYTES or len(pending) >= ROWS:
                self._submit()

    def waiting(self) -> int:
        """How many requests have no reply yet."""
        with self.database.reading() as sql:
            count: int = sql.execute(
                "SELECT count(*) FROM pending_requests WHERE reply IS NULL AND sharing IS NULL"
            ).fetchone()[0]
        return count

    def wait(self) -> None:
        """Send what is pending, and wait until all batches have ended; Ctrl-C leaves them at work."""
        with self._lock:
            self._submit()
        with self.database.reading() as sql:
            batches = sql.execute("SELECT token, place, id, at FROM sent_batches ORDER BY at, token").fetchall()
        for token, place, id, at in batches:
            if endpoint := self._endpoints.get(place):
                try:
                    self._take(token, endpoint, id, at)
                except KeyboardInterrupt:
                    at_work = f"{self.waiting():,} requests are at work in batches"
                    raise LeftAtWork(f"{at_work}; run the same line again to take their answers") from None
        if batches and not any(place in self._endpoints for _, place, *_ in batches):
            places = ", ".join(sorted({place for _, place, *_ in batches}))
            raise EyespotError(f"batches of {places} are at work; name these models and addresses for their answers")

    def _submit(self) -> None:
        # A thread that is still at work when a batch fails must not send the same requests once more
        pending, self._pending, self._bytes = self._pending, {}, 0
        for place, bodies in pending.items():
            token, endpoint = token_hex(8), self._endpoints[place]
            with self.database.writing() as sql:
                sql.execute("INSERT INTO sent_batches(token, place, at) VALUES (?, ?, ?)", (token, place, time.time()))
                sql.executemany("UPDATE pending_requests SET batch = ? WHERE number = ?", [(token, n) for n in bodies])
            named = {f"{token}-{number}": body for number, body in bodies.items()}
            id = self._call(endpoint, partial(_create_batch, endpoint, token, named))
            with self.database.writing() as sql:
                sql.execute("UPDATE sent_batches SET id = ? WHERE token = ?", (id, token))

    def _take(self, token: str, endpoint: ServedModel, id: str | None, at: float) -> None:
        """Wait for a batch and take its results, once; without an id it was perhaps never created."""
        protocol = PROTOCOLS[endpoint.dialect.path]
        id = id or self._call(endpoint, lambda: protocol.find(endpoint, token, at))
        with self.database.reading() as sql:
            rows = sql.execute("SELECT number, reserved FROM pending_requests WHERE batch = ?", (token,)).fetchall()
        waiting = {f"{token}-{number}": (number, reserved) for number, reserved in rows}
        state, results = BatchState(True, 0, "it never reached the server"), list[BatchResult]()
        if id is not None:
            sent, end = (time.strftime("%a %H:%M", time.localtime(moment)) for moment in (at, at + WINDOW))
            show = partial(self.tell, f"batch of {endpoint.model}, sent {sent}, ends {end} at the latest")
            state = self._call(endpoint, lambda: await_end(protocol, endpoint, id, lambda done: show(done, len(rows))))
            results = self._call(endpoint, lambda: list(protocol.results(endpoint, state)))
        with self.database.writing() as sql:
            sql.execute("DELETE FROM sent_batches WHERE token = ?", (token,))
            if state.failure:
                sql.execute("UPDATE pending_requests SET batch = NULL WHERE batch = ?", (token,))
                self._forget_unsent(sql)
            else:
                results += [BatchResult(name, UNANSWERED, "the batch ended without it") for name in waiting]
            for one in results:
                if row := waiting.pop(one.name, None):  # the first result of each
                    self._store(sql, endpoint, *row, one)
        if state.failure and id is not None:
            raise EyespotError(f"{endpoint.address} refuses the batch ({state.failure}); correct it and run again")

    def _forget_unsent(self, sql: sqlite3.Connection) -> None:
        """What was never sent costs nothing."""
        sent = "SELECT number FROM pending_requests WHERE batch IS NOT NULL"
        unsent = f"batch IS NULL AND reply IS NULL AND (sharing IS NULL OR sharing NOT IN ({sent}))"
        sql.execute(f"DELETE FROM unpaid WHERE id IN (SELECT reserved FROM pending_requests WHERE {unsent})")
        sql.execute(f"DELETE FROM pending_requests WHERE {unsent}")

    def _call(self, endpoint: ServedModel, request: Callable[[], Result]) -> Result:
        try:
            return endpoint.retry.send(request, endpoint.sleep, endpoint.model)
        except StatusError as trouble:
            if trouble.status in (404, 405):  # results are there for a month
                absent = f"{endpoint.address} takes no batches, or no longer has this one ({trouble.text})"
                raise EyespotError(f"{absent}; leave out --batch") from None
            raise EyespotError(str(final(trouble, endpoint.address, endpoint.model))) from None
        except NoReply as trouble:
            raise EyespotError(f"{endpoint.address}: {trouble}; run the same line again, batches go on") from None

    def _store(
        self, sql: sqlite3.Connection, endpoint: ServedModel, number: int, reserved: int, one: BatchResult
    ) -> None:
        """Keep what came of a request and count its cost, by one commit of the caller."""
        cost = _cost(endpoint, one.status, one.reply)
        if one.status != 200 or cost.tokens:  # a server that does not count: what is reserved stays counted
            self.budget.settle(reserved, endpoint.name, cost)
        further = sql.execute("SELECT number FROM pending_requests WHERE sharing = ? ORDER BY number", (number,))
        choices = further_choices(one.reply) if one.status == 200 else []
        replies = [(number, one.reply), *zip([row[0] for row in further], choices, strict=False)]
        update = "UPDATE pending_requests SET status = ?, reply = ? WHERE number = ?"
        sql.executemany(update, [(one.status, json.dumps(reply), n) for n, reply in replies])
        sql.execute("DELETE FROM pending_requests WHERE sharing = ? AND reply IS NULL", (number,))


@dataclass
class ItemRequests:
    """The requests of one item, in their order; `draws` are items that equal it, which share one request with it."""

    store: Requests
    item: str
    draws: tuple[str, ...] = ()
    sent: int = 0
    spent: Spent = field(default_factory=Spent)  # what the replies that came with a batch cost

    def body(self, wanted: Body, adapted: Callable[[Body], Body], choices: bool) -> Body:
        """The next request: as it was sent in an earlier run, or as the server takes it, for all draws if it may."""
        body, _, _ = self.row()
        if body:
            return {**json.loads(body), **{name: wanted[name] for name in NEEDED if name in wanted}}
        draws = {"n": 1 + len(self.draws)} if choices and self.draws and body is None and not self.sent else {}
        return adapted({**wanted, **draws})

    def reply(self, endpoint: ServedModel, body: Body, send: Callable[[], Body]) -> Body:
        """The reply to the next request, from an earlier run or a batch, or else from the server now.

        Raises `Waiting` while it is not there, and what the server answered instead of a reply.
        """
        reply: Body
        _, found, stored = self.row()
        self.store.register(endpoint)
        if stored is not None:
            status, reply = found or UNANSWERED, json.loads(stored)
            self.spent = self.spent.plus(_cost(endpoint, status, reply))
        elif self.store.batched:
            self.store.enqueue(endpoint, self, body)
            raise Waiting("the reply comes with a batch")
        else:
            status, reply = 200, send()
            further = zip(self.draws, further_choices(reply), strict=False)
            rows = [(item, endpoint.name, None, 200, json.dumps(choice)) for item, choice in further]
            with self.store.database.writing() as sql:
                sql.executemany(FURTHER, rows)
        self.sent += 1
        if status == UNANSWERED:
            raise RetryableError(str(reply))
        if status != 200:
            trouble = of_status(status, json.dumps(reply), {})
            raise RetryableError(str(trouble)) if isinstance(trouble, RetryableError) else trouble
        if body.get("n", 1) > 1 and not further_choices(reply):
            endpoint.unsupported.learn(without("n"))  # the server gives one choice, whatever the request says
        return reply

    def finish(self) -> None:
        """Forget what led to an answer that is on the disk; what is at work in a batch is counted when it comes."""
        delete = "DELETE FROM pending_requests WHERE item = ? AND (batch IS NULL OR reply IS NOT NULL)"
        with self.store.database.writing() as sql:
            sql.execute(delete, (self.item,))

    def forget_error(self) -> None:
        """Forget the last reply if it is an error, which ended the run: its request is to be sent again."""
        with self.store.database.writing() as sql:
            delete = "DELETE FROM pending_requests WHERE item = ? AND nth = ? AND status <> 200"
            sql.execute(delete, (self.item, self.sent - 1))

    def row(self) -> tuple[str | None, int | None, str | None]:
        """The next request: its body but for the messages, the status of its reply, and the reply; each may lack."""
        query = "SELECT body, status, reply FROM pending_requests WHERE item = ? AND nth = ?"
        with self.store.database.reading() as sql:
            return sql.execute(query, (self.item, self.sent)).fetchone() or (None, None, None)


def further_choices(reply: Body) -> list[Body]:
    """A reply for each choice after the first; the first one has the tokens of all."""
    choices = reply.get("choices")
    rest = choices[1:] if isinstance(choices, list) else []
    return [
        {**reply, "choices": [choice], "usage": dict.fromkeys(("prompt_tokens", "completion_tokens"), 0)}
        for choice in rest
    ]


def _create_batch(endpoint: ServedModel, token: str, named: Mapping[str, Body]) -> str:
    """The id of a new batch; a server that is busy gets it again, any other trouble may have come after it began."""
    try:
        return PROTOCOLS[endpoint.dialect.path].create(endpoint, token, named)
    except RetryableError as trouble:
        if isinstance(trouble, Busy | Unreachable):
            raise
        why = f"whether {endpoint.address} took a batch is not known ({trouble})"
        raise EyespotError(f"{why}; run the same line again, which looks for it") from None


def _cost(endpoint: ServedModel, status: int, reply: Any) -> Spent:
    """What a result of a batch cost; without an answer the reply is the reason, in words."""
    if status != 200:
        return Spent(calls=1)
    usage, price = usage_of(reply), endpoint.price.in_batch if endpoint.price else None
    money = price.of(usage.tokens_in, usage.tokens_out, *cache_of(reply)) if price else 0.0
    return usage._replace(calls=1, money=money)


def _place(endpoint: ServedModel) -> str:
    """Two judges may be one model behind two addresses."""
    return f"{endpoint.name} at {endpoint.address}"
