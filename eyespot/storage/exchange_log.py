"""What was sent to models and what came back, in a SQLite file: under each answer of a ledger or a pipeline.

A request whose words are the same for many pictures is stored once, and so is each long part that requests share: a
paragraph of the rules, the form of the answer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from eyespot.storage.digests import json_sha256
from eyespot.types import Adjustment, Exchange, Reply, Spent

# Made by the first write: a file from before them can be read on a disk that cannot be written
_TABLES = (
    "CREATE TABLE IF NOT EXISTS requests(digest TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS parts(digest TEXT PRIMARY KEY, part TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS exchanges(owner TEXT, place INTEGER, request TEXT NOT NULL, pictures TEXT NOT NULL,
    replied INTEGER NOT NULL, text TEXT NOT NULL, logprobs TEXT NOT NULL, tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL, finish TEXT NOT NULL, declined TEXT NOT NULL, served TEXT NOT NULL,
    fingerprint TEXT NOT NULL, changes TEXT NOT NULL, trouble TEXT NOT NULL, PRIMARY KEY(owner, place))
    WITHOUT ROWID""",
)
SCHEMA = ";\n".join(_TABLES)
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = 'exchanges'"
_REQUEST = "INSERT OR IGNORE INTO requests(digest, body) VALUES (?, ?)"
_PART = "INSERT OR IGNORE INTO parts(digest, part) VALUES (?, ?)"
PART = "$part"  # {PART: digest} stands in a request for a part that is stored once
GAP = "\n\n"
TEXTS = "$texts"  # {TEXTS: [paragraph, {PART: digest}, …]} for a text of several paragraphs
LONG = 200  # letters from which on a paragraph, or a field of a request, is such a part
_INSERT = f"INSERT OR IGNORE INTO exchanges VALUES ({', '.join('?' * 15)})"
_COUNT = "SELECT count(*) FROM exchanges WHERE owner = ?"
_READ = """SELECT body, pictures, replied, text, logprobs, tokens_in, tokens_out, finish, declined, served, fingerprint,
    changes, trouble FROM exchanges JOIN requests ON requests.digest = exchanges.request
    WHERE owner IN (SELECT value FROM json_each(?)) ORDER BY owner, place"""
_SERVED = """SELECT served, fingerprint, changes, count(*) FROM exchanges
    WHERE owner IN (SELECT value FROM json_each(?)) AND replied GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""


class ServedAs(NamedTuple):
    """How many replies came from one model, as the server names it, to requests changed in one way."""

    model: str
    fingerprint: str
    changes: tuple[Adjustment, ...]
    replies: int


def insert(sql: sqlite3.Connection, owner: str, exchanges: Iterable[Exchange], first: int = 0) -> None:
    """Write the exchanges of this owner, the first at this place; what stands there already stays."""
    for table in _TABLES:
        sql.execute(table)
    for place, exchange in enumerate(exchanges, first):
        body = json.loads(_json(exchange.body))
        digest = json_sha256(body)[:32]
        parts: dict[str, str] = {}
        named = {name: _parted(value, parts, whole=name != "messages") for name, value in body.items()}
        sql.execute(_REQUEST, (digest, _json(named)))
        sql.executemany(_PART, parts.items())
        reply = exchange.reply or Reply("", None, Spent(), "")
        logprobs = "" if reply.logprobs is None else _json(reply.logprobs)
        changes = _json([change._asdict() for change in reply.changes])
        usage = reply.usage.tokens_in, reply.usage.tokens_out
        words = reply.finish, reply.declined, reply.model, reply.fingerprint, changes, exchange.trouble
        facts = digest, _json(exchange.pictures), exchange.reply is not None, reply.text, logprobs, *usage, *words
        sql.execute(_INSERT, (owner, place, *map(clean, facts)))


def count(sql: sqlite3.Connection, owner: str) -> int:
    """How many exchanges this owner has."""
    return int(sql.execute(_COUNT, (owner,)).fetchone()[0]) if _is_there(sql) else 0


def read(sql: sqlite3.Connection, owners: Sequence[str]) -> Iterator[Exchange]:
    """The exchanges of these owners, those of each in order; none for one from before they were written down."""
    rows = sql.execute(_READ, (json.dumps(list(owners)),)) if _is_there(sql) else ()
    query = "SELECT part FROM parts WHERE digest = ?"
    part = lru_cache(lambda digest: json.loads(sql.execute(query, (digest,)).fetchone()[0]))
    for body, pictures, replied, text, logprobs, *usage, finish, declined, model, fingerprint, changes, trouble in rows:
        tokens = tuple((str(token), float(logprob)) for token, logprob in json.loads(logprobs)) if logprobs else None
        reply = Reply(text, tokens, Spent(0, *usage), finish, declined, model, _changes(changes), fingerprint)
        request = {name: _joined(value, part) for name, value in json.loads(body).items()}
        yield Exchange(request, tuple(json.loads(pictures)), reply if replied else None, trouble)


def served(sql: sqlite3.Connection, owners: Sequence[str]) -> list[ServedAs]:
    """By which models these owners' replies were given, and what these models did not accept."""
    rows = sql.execute(_SERVED, (json.dumps(list(owners)),)).fetchall() if _is_there(sql) else []
    return [ServedAs(model, fingerprint, _changes(changes), replies) for model, fingerprint, changes, replies in rows]


def _parted(value: Any, parts: dict[str, str], whole: bool) -> Any:
    """The value, with references in place of its long texts; a long one that stays whole is such a part itself."""
    text = _json(value)
    alike = isinstance(value, dict) and value.keys() & {PART, TEXTS}  # such a request would be read as a reference
    if len(text) < LONG and PART not in text and TEXTS not in text:
        return value
    if not whole and isinstance(value, str) and GAP in value:
        return {TEXTS: [_parted(paragraph, parts, False) for paragraph in value.split(GAP)]}
    if whole or alike or isinstance(value, str):
        digest = json_sha256(value)[:16]
        parts[digest] = text
        return {PART: digest}
    if isinstance(value, list):
        return [_parted(one, parts, False) for one in value]
    return {name: _parted(one, parts, False) for name, one in value.items()}


def _joined(value: Any, part: Callable[[str], Any]) -> Any:
    """The value that was stored in parts."""
    if isinstance(value, list):
        return [_joined(one, part) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {TEXTS}:
        return GAP.join(_joined(paragraph, part) for paragraph in value[TEXTS])
    return part(value[PART]) if value.keys() == {PART} else {name: _joined(one, part) for name, one in value.items()}


def _is_there(sql: sqlite3.Connection) -> bool:
    return sql.execute(_IS_THERE).fetchone() is not None


def _changes(text: str) -> tuple[Adjustment, ...]:
    return tuple(Adjustment(**change) for change in json.loads(text))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def clean(value: Any) -> Any:
    """Models answer with halves of characters now and then, which no UTF-8 holds."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
