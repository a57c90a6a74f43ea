"""Judgements: what any judge said of any pair, kept for good. It is the cache of paid answers and the store of votes.

A model's verdict on a pair stands once for each wording and turn; whoever asks the same again finds it here. A person
may change their mind: the last word counts and the earlier ones stay. Failures are kept for what they cost and why,
and are asked again.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from eyespot.storage import exchange_log, sqlite
from eyespot.storage.atomic import trouble
from eyespot.storage.digests import file_sha256, json_sha256
from eyespot.storage.exchange_log import ServedAs, clean
from eyespot.types import Exchange, EyespotError, Judgement, Query, Spent, Term, UsageError, Verdict

SCHEMA = """
CREATE TABLE IF NOT EXISTS asked(number INTEGER PRIMARY KEY, query TEXT UNIQUE NOT NULL, terms TEXT);
CREATE TABLE IF NOT EXISTS judges(number INTEGER PRIMARY KEY, judge TEXT NOT NULL, prompt TEXT NOT NULL,
    UNIQUE(judge, prompt));
CREATE TABLE IF NOT EXISTS judgements(number INTEGER PRIMARY KEY, asked INTEGER NOT NULL, judge INTEGER NOT NULL,
    turn INTEGER NOT NULL, image TEXT NOT NULL, settled INTEGER NOT NULL, probability REAL, grade INTEGER,
    reason TEXT NOT NULL, confidence REAL, failure TEXT NOT NULL, refused INTEGER NOT NULL, rank INTEGER,
    at REAL NOT NULL, calls INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
    money REAL NOT NULL);
CREATE INDEX IF NOT EXISTS judgements_pair ON judgements(asked, judge, turn, image);
CREATE UNIQUE INDEX IF NOT EXISTS judgements_settled ON judgements(asked, judge, turn, image) WHERE settled;
"""
# Where two programs paid for one pair at a time, the verdict that came first stands, and what the other one cost is
# added to it; the very same answer, recorded once more, adds nothing.
_INSERT = """INSERT INTO judgements(asked, judge, turn, image, settled, probability, grade, reason, confidence, failure,
    refused, rank, at, calls, tokens_in, tokens_out, money) VALUES ((SELECT number FROM asked WHERE query = ?),
    (SELECT number FROM judges WHERE judge = ? AND prompt = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(asked, judge, turn, image) WHERE settled DO UPDATE SET calls = calls + excluded.calls,
    tokens_in = tokens_in + excluded.tokens_in, tokens_out = tokens_out + excluded.tokens_out,
    money = money + excluded.money WHERE at <> excluded.at"""
WITHDRAWN = "withdrawn"  # the failure with which a person takes back what they said of a pair
_FACTS = """image, probability, grade, reason, confidence, failure, refused, rank, at, calls, tokens_in, tokens_out,
    money"""
_OF_JUDGE = f"""SELECT {_FACTS} FROM judgements WHERE asked = (SELECT number FROM asked WHERE query = ?)
    AND judge = (SELECT number FROM judges WHERE judge = ? AND prompt = ?) AND turn = ?
    AND image IN (SELECT value FROM json_each(?))"""
_KNOWN = f"{_OF_JUDGE} AND (probability IS NOT NULL OR grade IS NOT NULL OR failure = '{WITHDRAWN}') ORDER BY number"
_FAILED = f"{_OF_JUDGE} AND probability IS NULL AND grade IS NULL AND failure <> '{WITHDRAWN}' ORDER BY number"
_ROWS = f"""SELECT query, judges.judge, prompt, turn, {_FACTS} FROM judgements
    JOIN asked ON asked.number = judgements.asked JOIN judges ON judges.number = judgements.judge
    ORDER BY judgements.number"""
_JUDGE_COUNTS = f"""SELECT judges.judge, prompt,
    count(DISTINCT CASE WHEN (probability IS NOT NULL OR grade IS NOT NULL) AND NOT EXISTS (SELECT 1
        FROM judgements AS later WHERE later.asked = judgements.asked AND later.judge = judgements.judge
        AND later.turn = judgements.turn AND later.image = judgements.image AND later.number > judgements.number
        AND later.failure = '{WITHDRAWN}') THEN image END), max(judgements.number)
    FROM judgements JOIN judges ON judges.number = judgements.judge
    WHERE asked = (SELECT number FROM asked WHERE query = ?) AND turn = 0
    GROUP BY judges.number ORDER BY judges.number"""
_SAID = f"""SELECT judges.judge, {_FACTS} FROM judgements JOIN judges ON judges.number = judgements.judge
    WHERE asked = (SELECT number FROM asked WHERE query = ?) AND turn = 0
    AND (? IS NULL OR prompt = ? AND judges.judge GLOB 'person:*')
    AND (? IS NULL OR image IN (SELECT value FROM json_each(?)))
    ORDER BY judgements.number"""
_LAST = """SELECT ifnull(max(number), 0) FROM judgements
    WHERE asked = (SELECT number FROM asked WHERE query = ?)"""
PERSON = "person:"  # whose verdicts may change


@dataclass(frozen=True)
class JudgementRow:
    """A judgement as it stands in the ledger, and which time it was that its judge was asked the same."""

    judgement: Judgement
    turn: int


class JudgeCount(NamedTuple):
    """A judge, asked in one way: on how many images it gave a verdict, and a number that grows with each word of it."""

    judge: str
    prompt: str
    images: int
    last: int


def query_digest(query: Query) -> str:
    """Thirty-two hex digits over the query's terms: weight, words, and the bytes of a picture; its id has no part.

    Raises `UsageError` for a picture that is not there.
    """
    parts = []
    for term in query.terms:
        try:
            picture = None if term.image is None else file_sha256(term.image)
        except OSError as error:
            raise UsageError(
                f"the query's picture {term.image} cannot be read ({error.strerror}); name one that is there"
            ) from None
        parts.append([float(term.weight), term.text, picture])
    return json_sha256(parts)[:32]


class Judgements:
    """The judgements in a ledger; any number of threads and processes may read and record at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = _opened(path)
        self._reading = _opened(path, settles=False)
        self._looking = Lock()
        self._waiting: deque[_WriteBatch] = deque()
        self._writer = ThreadPoolExecutor(1, "judgements")

    def close(self) -> None:
        """Finish what is being written and let go of the file."""
        self._writer.shutdown()
        self._reading.close()
        self._writing.close()

    def __enter__(self) -> Judgements:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- writing --------------------------------------------------------------------------------------------

    def enter(self, queries: Iterable[Query]) -> dict[Query, str]:
        """The digest of each query; from now on the ledger can also say in words what it stands for."""
        digests = {query: query_digest(query) for query in dict.fromkeys(queries)}
        spelled = []
        for query, digest in digests.items():
            terms = [[term.weight, term.text, None if term.image is None else str(term.image)] for term in query.terms]
            spelled.append((digest, json.dumps(terms)))
        self._submit(_WriteBatch(spelled, [])).result()
        return digests

    def record(self, judgements: Iterable[Judgement], turn: int = 0) -> None:
        """Keep judgements; they are on the disk when this returns. Threads that record at once share one commit.

        A judge who is asked the same thing several times takes `turn` 0, 1, 2, … Raises `EyespotError` where the disk
        is full or another program holds the file; what was recorded before stays.
        """
        batch = _WriteBatch([], [])
        for judgement in judgements:
            batch.rows.append(_row(judgement, turn))
            if judgement.exchanges:
                batch.exchanges.append((_owner(judgement, turn), judgement.exchanges))
        self._submit(batch).result()

    def _submit(self, batch: _WriteBatch) -> Future[None]:
        self._waiting.append(batch)
        self._writer.submit(self._write_waiting)
        return batch.done

    def _write_waiting(self) -> None:
        """All that waits, in one commit: while the disk is busy with it, the next ones gather."""
        batches = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            with sqlite.whole(self.path):
                if batches:
                    self._write(batches)
        except BaseException as error:
            for batch in batches:
                batch.done.set_exception(_unwritable(self.path, error) if isinstance(error, sqlite3.Error) else error)
        else:
            for batch in batches:
                batch.done.set_result(None)

    def _write(self, batches: Sequence[_WriteBatch]) -> None:
        queries = [query for batch in batches for query in batch.queries]
        rows = [row for batch in batches for row in batch.rows]
        with sqlite.transaction(self._writing):
            self._writing.executemany(
                "INSERT INTO asked(query, terms) VALUES (?, ?) ON CONFLICT DO UPDATE SET terms = excluded.terms"
                " WHERE terms IS NULL",
                queries,
            )
            self._writing.executemany(
                "INSERT OR IGNORE INTO asked(query) VALUES (?)", dict.fromkeys((row[0],) for row in rows)
            )
            self._writing.executemany(
                "INSERT OR IGNORE INTO judges(judge, prompt) VALUES (?, ?)",
                dict.fromkeys((row[1], row[2]) for row in rows),
            )
            self._writing.executemany(_INSERT, rows)
            for batch in batches:
                for owner, several in batch.exchanges:
                    exchange_log.insert(self._writing, owner, several)

    # -- reading --------------------------------------------------------------------------------------------

    def _select(self, statement: str, *values: object) -> list[Any]:
        with self._looking, sqlite.whole(self.path):
            return self._reading.execute(statement, values).fetchall()

    def known(self, query: str, images: Iterable[str], judge: str, prompt: str, turn: int = 0) -> dict[str, Judgement]:
        """What this judge, asked in this way, said of these images for the query of this digest; failures left out."""
        last = self.known_or_withdrawn(query, images, judge, prompt, turn)
        return {image: judgement for image, judgement in last.items() if judgement.verdict is not None}

    def known_or_withdrawn(
        self, query: str, images: Iterable[str], judge: str, prompt: str, turn: int = 0
    ) -> dict[str, Judgement]:
        """The same with what a person took back, which has no verdict but a date."""
        rows = self._select(_KNOWN, query, judge, prompt, turn, json.dumps(list(images)))
        return {row[0]: _judgement(query, judge, prompt, row) for row in rows}

    def people(
        self, query: str, prompt: str | None, images: Sequence[str] | None = None
    ) -> dict[str, dict[str, Judgement]]:
        """The last verdicts of all people on the query of this digest: judge → image → judgement.

        With `images` on these alone. What somebody took back is not among them. Without a prompt those of all judges,
        models too, however they were prompted.
        """
        among = None if images is None else json.dumps(list(images))
        rows = self._select(_SAID, query, prompt, prompt, among, among)
        last: dict[str, dict[str, Judgement]] = {}
        for judge, *facts in rows:
            one = _judgement(query, judge, prompt or "", facts)
            if one.verdict is not None:
                last.setdefault(judge, {})[one.image] = one
            elif one.failure == WITHDRAWN:
                last.get(judge, {}).pop(one.image, None)
        return last

    def judged_images(self, query: str, prompt: str) -> dict[str, set[str]]:
        """The images on which people ever gave a verdict for the query of this digest, also one they took back.

        judge → images.
        """
        found: dict[str, set[str]] = {}
        for judge, image, *_ in self._select(_SAID, query, prompt, prompt, None, None):
            found.setdefault(judge, set()).add(image)
        return found

    def failures(self, query: str, images: Iterable[str], judge: str, prompt: str) -> list[Judgement]:
        """How this judge, asked in this way, ever failed on these images, in the order in which that came."""
        rows = self._select(_FAILED, query, judge, prompt, 0, json.dumps(list(images)))
        return [_judgement(query, judge, prompt, row) for row in rows]

    def exchanges(self, judgements: Iterable[Judgement], turn: int = 0) -> list[Exchange]:
        """What was sent for these judgements and what came back, also of failures."""
        owners = [_owner(judgement, turn) for judgement in judgements]
        with self._looking, sqlite.whole(self.path):
            return list(exchange_log.read(self._reading, owners))

    def served(self, judgements: Iterable[Judgement]) -> list[ServedAs]:
        """By which models these judgements were made, as their servers say, and what these did not accept."""
        owners = [_owner(judgement, 0) for judgement in judgements]
        with self._looking, sqlite.whole(self.path):
            return exchange_log.served(self._reading, owners)

    def judge_counts(self, query: str) -> list[JudgeCount]:
        """Who judged for the query of this digest, in the order in which they came."""
        return [JudgeCount(*row) for row in self._select(_JUDGE_COUNTS, query)]

    def last(self, query: str) -> int:
        """A number that grows with each word said for the query of this digest, by whomever; 0 before the first."""
        return int(self._select(_LAST, query)[0][0])

    def rows(self) -> Iterator[JudgementRow]:
        """Every judgement in the order in which they came, as of the moment of the first."""
        # A connection of its own: a long reader holds nobody up
        with sqlite.whole(self.path), closing(_opened(self.path)) as sql:
            for query, judge, prompt, turn, *facts in sql.execute(_ROWS):
                yield JudgementRow(_judgement(query, judge, prompt, facts), turn)

    def queries(self) -> dict[str, Query | None]:
        """What each digest stands for, under the digest as its id; None where nobody ever said."""
        queries: dict[str, Query | None] = {}
        for digest, terms in self._select("SELECT query, terms FROM asked ORDER BY number"):
            fields = [] if terms is None else json.loads(terms)
            parts = [Term(weight, text, None if image is None else Path(image)) for weight, text, image in fields]
            queries[digest] = None if terms is None else Query(digest, tuple(parts))
        return queries

    def judges(self) -> list[str]:
        """Who has judged, in the order in which they came."""
        return [judge for (judge,) in self._select("SELECT judge FROM judges GROUP BY judge ORDER BY min(number)")]


def _opened(path: Path, settles: bool = True) -> sqlite3.Connection:
    try:
        return sqlite.connect(path, SCHEMA, later=exchange_log.SCHEMA, settles=settles)
    except (sqlite3.Error, OSError) as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: Exception) -> EyespotError:
    way_out = trouble(error, elsewhere="name another file with --ledger")
    unwritable = EyespotError(f"cannot write judgements to {path} {way_out}")
    unwritable.__context__ = error  # it is raised in another thread
    return unwritable


# -- rows ---------------------------------------------------------------------------------------------------


class _WriteBatch:
    """What one caller waits for."""

    def __init__(self, queries: list[tuple[str, str]], rows: list[tuple[Any, ...]]) -> None:
        self.queries, self.rows = queries, rows
        self.exchanges: list[tuple[str, Sequence[Exchange]]] = []  # by their owner
        self.done: Future[None] = Future()


def _owner(judgement: Judgement, turn: int) -> str:
    """Under which name the exchanges of a judgement stand."""
    facts = judgement.query, judgement.image, judgement.judge, judgement.prompt, turn, judgement.at
    return json_sha256(facts)[:32]


def _row(judgement: Judgement, turn: int) -> tuple[Any, ...]:
    one, verdict = judgement, judgement.verdict
    settled = verdict is not None and not one.judge.startswith(PERSON)
    opinion = verdict and (verdict.probability, verdict.grade, clean(verdict.reason), verdict.confidence)
    return (
        *(one.query, one.judge, one.prompt, turn, one.image, settled),
        *(opinion or (None, None, "", None)),
        *(clean(one.failure), one.refused, one.rank, one.at),
        *one.spent,
    )


def _judgement(query: str, judge: str, prompt: str, row: Sequence[Any]) -> Judgement:
    image, probability, grade, reason, confidence, failure, refused, rank, at, *spent = row
    unsaid = probability is None and grade is None
    verdict = None if unsaid else Verdict(probability, grade, reason, confidence)
    return Judgement(query, image, judge, prompt, verdict, failure, bool(refused), rank, at, Spent(*spent))
