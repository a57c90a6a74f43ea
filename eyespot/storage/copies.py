"""What stands beside a gallery's ledger in `ledger/`: its digest, and copies of tables that nothing else can tell.

The last connection that closes the file copies the tables it changed to parquet and notes the digests of all; the
first that opens it again takes the ledger's digest away. So a ledger has a digest exactly while nobody has it open and
nobody was killed with it, and then the copies hold all that it holds. The index of pictures, which can be made again
from the shards, has a digest there too, and no copies.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from eyespot.storage.atomic import make_folder
from eyespot.storage.digests import (
    BLAKE2B,
    CHANGED,
    DIGESTS,
    add_digests,
    damaged_at_a_glance,
    damaged_files,
    file_blake2b,
    new_digested,
    rewriting,
    sound_digests,
)
from eyespot.storage.locks import in_turn
from eyespot.storage.write_ahead_log import log_damage

LEDGER = "ledger.sqlite"  # a gallery's own; other files in its folder have neither copies nor a digest
INDEX = "index.sqlite"  # of its pictures
FOLDER = "ledger"
_CHUNK = 1 << 16  # rows that are turned into parquet at once
_WITH_DIGEST = (LEDGER, INDEX)
NOTHING = BLAKE2B(b"").hexdigest()
_SMALL, _GROWTH = 20_000, 20  # a copy of more rows is written again when a twentieth of them is new


def tables_of(schema: str) -> frozenset[str]:
    """The names of the tables that a schema makes."""
    return frozenset(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", schema))


def why_changed(path: Path) -> str:
    """What shows at a glance that a ledger is not as it was closed; empty if nothing does."""
    names = [name_of(path)]
    if path.name not in _WITH_DIGEST:
        return ""
    if not path.exists():
        copied = path.name == LEDGER and any((path.parent / FOLDER).glob("*.parquet"))
        return "it is missing" if copied or names[0] in sound_digests(path.parent / FOLDER) else ""
    why = damaged_at_a_glance(path.parent / FOLDER, names).get(names[0], "")
    return "" if why == CHANGED and _is_intact(path) else why


def is_foreign(path: Path) -> bool:
    """Whether another program wrote to a closed ledger, which is sound all the same."""
    changed = damaged_at_a_glance(path.parent / FOLDER, [name_of(path)]).get(name_of(path))
    return changed == CHANGED and _is_intact(path)


def _is_intact(path: Path) -> bool:
    """Whether a ledger of other bytes passes SQLite's own check, has every row of its copies, and was written to.

    One of the same date and rows was not: what changed there is a bit on the disk.
    """
    if path.name != LEDGER or log_damage(path) or [*_rows(path, "PRAGMA integrity_check(1)")] != [("ok",)]:
        return False
    folder = path.parent / FOLDER
    written = _is_newer(path, folder / DIGESTS)
    for place in folder.glob("*.parquet"):
        rows = set(_rows(path, f"SELECT * FROM {place.stem}"))
        if not _is_sound(place) or not rows.issuperset(known := {row for batch in _batches(place) for row in batch}):
            return False
        written = written or (rows != known and not (folder / _behind(place.stem)).exists())
    return written


def damage(path: Path) -> str:
    """The same after reading all bytes of it, and its log."""
    digest = sound_digests(path.parent / FOLDER).get(name_of(path))
    if why := why_changed(path) or log_damage(path):
        return why
    return CHANGED if digest is not None and file_blake2b(path) != digest and not _is_intact(path) else ""


def name_of(path: Path) -> str:
    """A ledger's name among the digests of `ledger/`."""
    return f"../{path.name}"


def open_digest(path: Path) -> str:
    """The ledger is about to change: from now on it has no digest. The one it had, "" if it had none.

    The connection must have read from the file: its log is then there, and nobody takes the ledger for closed.
    """
    folder = path.parent / FOLDER
    if not _is_of_gallery(path):
        return ""
    make_folder(folder)
    with in_turn(folder / DIGESTS):
        digest = sound_digests(folder).get(name_of(path), "")
        if digest:
            with rewriting(folder, [name_of(path)]):
                pass
    return digest


def close_digest(path: Path, digest: str = "") -> None:
    """The ledger was closed: it has a digest from now on, unless somebody else has it open.

    digest: of a ledger that nobody changed; without it every byte is read.
    """
    folder = path.parent / FOLDER
    if not path.exists():
        return
    make_folder(folder)
    with in_turn(folder / DIGESTS):
        if not _log_of(path).exists():
            with rewriting(folder, [name_of(path)]) as digests:
                digests[name_of(path)] = digest or file_blake2b(path)


def _is_of_gallery(path: Path) -> bool:
    """Whether this is a gallery's own ledger or index, which have a digest."""
    return path.name in _WITH_DIGEST and (path.parent / "gallery.toml").exists()


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


class CopiedLedger(sqlite3.Connection):
    """A connection to a ledger that has copies and a digest; `path` is set once it is open."""

    path: Path | None = None
    tables: frozenset[str] = frozenset()  # those of its own schema
    derived: bool = False  # its tables can be made again from other files
    settles: bool = True  # at its end, copies and digest are brought up to date
    _digest: str = ""  # the ledger's when it was opened
    _opened: tuple[int, int] = (0, 0)  # its size and date then

    def begin(self, path: Path) -> None:
        """From here on the ledger may change."""
        self._digest, self._opened = open_digest(path), _state(path)

    def close(self) -> None:
        """Copy what this connection changed; the last one to close gives the ledger its digest."""
        path, self.path = self.path, None
        if path is not None and self.settles and _is_of_gallery(path):
            with suppress(OSError, sqlite3.Error):  # without a digest the ledger counts as one that is still open
                if path.name == LEDGER:
                    self._copy(path.parent / FOLDER)
                changes = self.total_changes
                super().close()
                close_digest(path, "" if changes or _state(path) != self._opened else self._digest)
        super().close()

    def _copy(self, folder: Path) -> None:
        there = {name for (name,) in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        copied = {place.stem for place in folder.glob("*.parquet")} & there
        bare = {name for name in there - copied if not name.startswith("sqlite_")}
        wanted = {table for table in copied if _count(self, table) not in (0, _copied_count(folder, table))}
        if not self._digest:  # somebody who changed it was killed before it could copy
            wanted |= copied
        wanted |= bare - self.tables if self.derived else bare & self.tables
        if self.total_changes and not self.derived:
            wanted |= self.tables & there
        for table in sorted(wanted):
            rows, copied_rows = _count(self, table), _copied_count(folder, table)
            if rows <= _SMALL or copied_rows < 0 or abs(rows - copied_rows) * _GROWTH >= rows:
                write_copy(self, table, folder)
            else:  # a large copy is not worth writing again for a few rows
                with in_turn(folder / DIGESTS), rewriting(folder, [_behind(table)]) as digests:
                    digests[_behind(table)] = NOTHING
                (folder / _behind(table)).touch()


def _behind(table: str) -> str:
    """The name of the empty file that says that a copy lacks rows or changes; its line among the digests counts."""
    return f"{table}.behind"


def _count(sql: sqlite3.Connection, table: str) -> int:
    return int(sql.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _copied_count(folder: Path, table: str) -> int:
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(folder / f"{table}.parquet").num_rows)
    except Exception:  # a damaged file can end in nearly any of Python's own errors
        return -1


def write_copy(sql: sqlite3.Connection, table: str, folder: Path) -> None:
    """All rows of a table, in place of its old copy; nothing for an empty table that has none."""
    if (folder / f"{table}.parquet").exists() or sql.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
        columns = {name: kind for _, name, kind, *_ in sql.execute(f"PRAGMA table_info({table})")}
        _write_rows(folder / f"{table}.parquet", columns, sql.execute(f"SELECT * FROM {table}"))


def _write_rows(path: Path, columns: Mapping[str, str], rows: Iterator[tuple[Any, ...]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, pa.DataType] = {"INTEGER": pa.int64(), "REAL": pa.float64()}
    schema = pa.schema([(name, kinds.get(kind, pa.string())) for name, kind in columns.items()])
    make_folder(path.parent)
    with (
        in_turn(path.with_name(DIGESTS)),
        new_digested(path, [_behind(path.stem)]) as file,
        pq.ParquetWriter(file.io, schema, write_page_checksum=True) as writer,
    ):
        while chunk := [*islice(rows, _CHUNK)]:
            columns_of = dict(zip(schema.names, zip(*chunk, strict=True), strict=True))
            writer.write_table(pa.table(columns_of, schema=schema))
    path.with_name(_behind(path.stem)).unlink(missing_ok=True)


def restore(sql: sqlite3.Connection, path: Path, tables: Iterable[str]) -> None:
    """Fill empty tables from their copies: those of a ledger that was made again.

    Raises `sqlite3.DatabaseError` for a copy that is damaged: what it holds would be lost.
    """
    for table in sorted(tables) if path.name == LEDGER else []:
        place = path.parent / FOLDER / f"{table}.parquet"
        if not place.exists() or sql.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            continue
        if not _is_sound(place):
            raise sqlite3.DatabaseError(f"it has nothing in {table}, and the copy {place} is damaged")
        sql.execute("BEGIN IMMEDIATE")
        for rows in _batches(place):
            sql.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        sql.execute("COMMIT")


# -- after damage -------------------------------------------------------------------------------------------


def rescue(path: Path) -> bool:
    """Copies of all that is left of a damaged ledger's tables; whether that is sure to be all that it held.

    A ledger that was closed, and that nobody wrote since, has copies of all: its pages may lie, and are not read. Else
    pages count before copies, for they may be newer.
    """
    folder, all_there = path.parent / FOLDER, True
    digests = sound_digests(folder)
    copied = {place.stem for place in folder.glob("*.parquet")}
    named = {name for (name,) in _rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    closed = name_of(path) in digests and not _is_newer(path, folder / DIGESTS)
    for table in sorted(copied | named):
        place = folder / f"{table}.parquet"
        sound = place.exists() and _is_sound(place)
        if not re.fullmatch(r"\w+", table) or (sound and closed and _behind(table) not in digests):
            continue
        rows = [row for batch in _batches(place) for row in batch] if sound else []
        found, columns, at = _readable(path, table)
        if closed and not found and not place.exists() and place.name not in digests:
            continue  # an empty table has no copy
        all_there = False
        if distinct := {tuple(row[key] for key in at): row for row in [*rows, *found]} if columns else {}:
            _write_rows(place, columns, iter(distinct.values()))
        elif not sound:
            place.unlink(missing_ok=True)
    return all_there


def _is_newer(path: Path, digests: Path) -> bool:
    """Whether somebody wrote to a ledger after it got its digest."""
    log = _log_of(path)
    return (log.exists() and log.stat().st_size > 0) or path.stat().st_mtime_ns > digests.stat().st_mtime_ns


def _readable(path: Path, table: str) -> tuple[list[tuple[Any, ...]], dict[str, str], Iterable[int]]:
    """The rows on readable pages whose values are of their columns' types, the columns, and which are the key."""
    columns = dict(_rows(path, f"SELECT name, type FROM pragma_table_info('{table}')"))
    keys = [key for (key,) in _rows(path, f"SELECT name FROM pragma_table_info('{table}') WHERE pk ORDER BY pk")]
    at = [[*columns].index(key) for key in keys] or range(len(columns))
    kinds = [{"INTEGER": int, "REAL": float}.get(kind, str) for kind in columns.values()]
    # The rows before the first damaged page and after the last one
    orders = [", ".join(f"{name} {order}" for name in keys) for order in ("ASC", "DESC")] if keys else []
    rows = dict.fromkeys(row for order in orders for row in _rows(path, f"SELECT * FROM {table} ORDER BY {order}"))
    typed = (all(v is None or isinstance(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in rows)
    return [row for row, is_typed in zip(rows, typed, strict=True) if is_typed], columns, at


def _is_sound(place: Path) -> bool:
    """Whether a copy is as it was written: by its digest, without one by the checksums of its pages."""
    import pyarrow.parquet as pq

    digest = sound_digests(place.parent).get(place.name)
    if digest is not None:
        return digest == file_blake2b(place)
    try:
        with pq.ParquetFile(place, page_checksum_verification=True) as file:
            for _ in file.iter_batches(_CHUNK):
                pass
    except Exception:  # a damaged file can end in nearly any of Python's own errors
        return False
    return True


def _batches(place: Path) -> Iterator[list[tuple[Any, ...]]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(place) as file:
        for batch in file.iter_batches(_CHUNK):
            yield [*zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def _rows(path: Path, query: str) -> Iterator[tuple[Any, ...]]:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with (
        suppress(sqlite3.Error, UnicodeDecodeError, OverflowError),
        closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as sql,
    ):
        yield from sql.execute(query)


def repair_copies(path: Path) -> list[str]:
    """Drop copies of a sound ledger that are damaged: the next connection that closes writes them again; notes.

    The digests are made again if need be.
    """
    folder = path.parent / FOLDER
    damaged = damaged_files(folder)
    if DIGESTS in damaged or (folder.is_dir() and not (folder / DIGESTS).exists()):
        (folder / DIGESTS).unlink(missing_ok=True)
        broken = [place.name for place in folder.glob("*.parquet") if not _is_sound(place)]
        add_digests(folder, [place.name for place in folder.glob("*.parquet") if place.name not in broken])
    else:
        broken = [name for name in damaged if name not in map(name_of, map(path.with_name, _WITH_DIGEST))]
    if broken:
        with in_turn(folder / DIGESTS), rewriting(folder, broken):
            for name in broken:
                (folder / name).unlink(missing_ok=True)
    tables = [name.removesuffix(".parquet") for name in broken if name.endswith(".parquet")]
    empty = [table for table in tables if not [*_rows(path, f"SELECT 1 FROM {table} LIMIT 1")]]
    return [f"lost for good with a damaged copy: what was recorded in {table}" for table in empty]
