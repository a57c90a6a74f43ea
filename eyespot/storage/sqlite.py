"""SQLite files of our own: opened so that commits last and damage is one sentence.

They must lie on a local disk: SQLite's locks are not to be trusted on network file systems.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote

from eyespot.storage import copies
from eyespot.storage.atomic import make_folder
from eyespot.types import EyespotError

# What SQLite says of a disk, a right or another program, and not of the file.
_NO_DAMAGE = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT),
    sqlite3.SQLITE_PROTOCOL,
)
WAIT = 60.0  # seconds for another program to finish what it writes


class DamagedLedger(EyespotError):
    """SQLite finds the file damaged, or it is not SQLite's at all, or not as it was closed.

    reason: in a few words, what is wrong with it.
    """

    def __init__(self, sentence: str, reason: str) -> None:
        super().__init__(sentence)
        self.reason = reason


def connect(
    path: Path, schema: str = "", *, derived: bool = False, later: str = "", settles: bool = True, views: str = ""
) -> copies.CopiedLedger:
    """Open or create the file at `path` with the tables of `schema`; commits are on disk when they return.

    derived: what is in these tables can be made again from other files, so they get no copies in a gallery.
    later: the schema of tables that the first write makes; here they are made if a gallery has copies of them.
    settles: copies and digest are brought up to date when it closes; else the next connection does that. views: the
    statements that make its own. Raises `DamagedLedger` if the file is not SQLite's or not as it was closed,
    `sqlite3.OperationalError` on a full disk.
    """
    make_folder(path.parent)
    if why := copies.why_changed(path):
        raise _damaged(path, why)
    connection = sqlite3.connect(
        path, timeout=WAIT, isolation_level=None, check_same_thread=False, factory=copies.CopiedLedger
    )
    try:
        with whole(path):
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            table_names(connection)  # makes the log, by which others see that the file is open
            _refuse_code(connection, views, None if views else copies.tables_of(schema + later))
            connection.begin(path)
            copied = (path.parent / copies.FOLDER / f"{table}.parquet" for table in copies.tables_of(later))
            made = schema + later if any(copy.exists() for copy in copied) else schema
            connection.executescript(made)
            copies.restore(connection, path, copies.tables_of(made))
            connection.path, connection.tables = path, copies.tables_of(schema + later)
            connection.derived, connection.settles = derived, settles
    except UnicodeDecodeError as error:  # SQLite names what is damaged, and the name is too
        connection.close()
        raise _damaged(path, "malformed database schema") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; of programs that do so at the same moment SQLite turns away all but one."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def connect_to_read(path: Path, views: str = "") -> sqlite3.Connection:
    """Open a file that is there for questions only: on a disk that cannot be written, and while others write.

    views: the statements that made those that it may have.
    """
    uri, wal = path.absolute().as_uri(), path.with_name(f"{path.name}-wal")
    try:
        # Opened for writing, SQLite removes its own files next to it when it closes.
        return _query_only(f"{uri}?mode=rw", views)
    except sqlite3.OperationalError:
        # On a disk that cannot be written it reads what a killed run left in the log, or a file that nothing changes.
        unwritten = f"{uri}?mode=ro" if wal.exists() and wal.stat().st_size else f"{uri}?mode=ro&immutable=1"
        return _query_only(unwritten, views)


def _query_only(uri: str, views: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA query_only=ON")
        _refuse_code(connection, views)  # SQLite opens the file at the first question
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _refuse_code(connection: sqlite3.Connection, views: str = "", tables: Collection[str] | None = None) -> None:
    """`DatabaseError` for triggers and views of others, which may run without end; of views only those in `tables`."""
    views = views.replace("IF NOT EXISTS ", "")
    foreign = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"
    for kind, name, made in connection.execute(foreign):
        if made not in views and (kind == "trigger" or tables is None or name in tables):
            error = sqlite3.DatabaseError(f"it has a {kind} {name}, which eyespot did not make")
            error.sqlite_errorname = "SQLITE_CORRUPT"
            raise error


def table_names(connection: sqlite3.Connection) -> set[str]:
    """The names of the tables."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """`DamagedLedger` where SQLite finds the file itself at fault; its other errors pass."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _NO_DAMAGE:
            raise
        raise _damaged(path, str(error)) from error


def check(path: Path) -> None:
    """Read every page; `DamagedLedger` if one is not as SQLite writes it, or the file not as it was closed."""
    if why := copies.damage(path):
        raise _damaged(path, why)
    with whole(path), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (message,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if message != "ok":
        raise _damaged(path, str(message))


def _damaged(path: Path, why: str) -> DamagedLedger:
    why = "".join(sign if sign.isprintable() else " " for sign in why)  # it quotes what is damaged
    if not ((path.parent / "gallery.toml").exists() or (path.parent / "shards").exists()):
        away = f"move it away (mv {quote(str(path))} {quote(f'{path}.damaged')})"
        way_out = f"{away} and run the same line again: it is made again, without the judgements and answers it held"
    else:
        line = f"eyespot index --repair -g {quote(str(path.parent))}"
        way_out = f"repair it with: {line}"
    what = "the index of a gallery" if path.name == copies.INDEX else "a ledger"
    return DamagedLedger(f"{path} cannot be used as {what} ({why}); {way_out}", why)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of the block or none of it, also through SIGKILL."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
