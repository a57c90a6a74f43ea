"""What stands beside a gallery's ledger in `ledger/`: its digest, and copies of the tables that nothing else can tell.

The last connection that closes the file copies the tables it changed to parquet and notes the digests of all; the
first that opens it again takes the ledger's digest away. So a ledger has a digest exactly while nobody has it open and
nobody was killed with it, and then the copies hold all that it holds.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from eyespot.storage.atomic import make_folder
from eyespot.storage.digests import (
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

FOLDER = "ledger"
_CHUNK = 1 << 16  # rows that are turned into parquet at once


def tables_of(schema: str) -> frozenset[str]:
    """The names of the tables that a schema makes."""
    return frozenset(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", schema))


def why_changed(path: Path) -> str:
    """What shows at a glance that a ledger is not as it was closed; empty if nothing does."""
    names = [name_of(path)]
    if not path.exists():
        copied = any((path.parent / FOLDER).glob("*.parquet"))
        return "it is missing" if copied or names[0] in sound_digests(path.parent / FOLDER) else ""
    return damaged_at_a_glance(path.parent / FOLDER, names).get(names[0], "")


def damage(path: Path) -> str:
    """The same after reading all bytes of it, and its log."""
    digest = sound_digests(path.parent / FOLDER).get(name_of(path))
    if why := why_changed(path) or log_damage(path):
        return why
    return CHANGED if digest is not None and file_blake2b(path) != digest else ""


def name_of(path: Path) -> str:
    """A ledger's name among the digests of `ledger/`."""
    return f"../{path.name}"


def open_digest(path: Path) -> None:
    """The ledger is about to change: from now on it has no digest."""
    folder = path.parent / FOLDER
    if name_of(path) in sound_digests(folder):
        with in_turn(folder / DIGESTS), rewriting(folder, [name_of(path)]):
            pass


def close_digest(path: Path) -> None:
    """The ledger was closed: it has a digest from now on, unless somebody else has it open."""
    folder = path.parent / FOLDER
    if not (path.parent / "gallery.toml").exists() or not path.exists():
        return
    make_folder(folder)
    with in_turn(folder / DIGESTS):
        if not path.with_name(f"{path.name}-wal").exists():
            with rewriting(folder, [name_of(path)]) as digests:
                digests[name_of(path)] = file_blake2b(path)


class CopiedLedger(sqlite3.Connection):
    """A connection to a ledger that has copies and a digest; `path` is set once it is open."""

    path: Path | None = None
    tables: frozenset[str] = frozenset()  # those of its own schema
    derived: bool = False  # its tables can be made again from other files

    def close(self) -> None:
        """Copy what this connection changed; the last one to close gives the ledger its digest."""
        path, self.path = self.path, None
        if path is not None and (path.parent / "gallery.toml").exists():
            with suppress(OSError, sqlite3.Error):  # without a digest the ledger counts as one that is still open
                self._copy(path.parent / FOLDER)
                super().close()
                close_digest(path)
        super().close()

    def _copy(self, folder: Path) -> None:
        there = {name for (name,) in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        copied = {place.stem for place in folder.glob("*.parquet")} & there
        bare = {name for name in there - copied if not name.startswith("sqlite_")}
        # A copy that lacks rows: who added them was killed before it could copy them
        wanted = {table for table in copied if _count(self, table) not in (0, _copied_count(folder, table))}
        wanted |= bare - self.tables if self.derived else bare & self.tables
        if self.total_changes and not self.derived:
            wanted |= self.tables & there
        for table in sorted(wanted):
            write_copy(self, table, folder)


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
        new_digested(path) as file,
        pq.ParquetWriter(file.io, schema, write_page_checksum=True) as writer,
    ):
        while chunk := [*islice(rows, _CHUNK)]:
            arrays = [
                pa.array(column, kind) for column, kind in zip(zip(*chunk, strict=True), schema.types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def has_copies(path: Path, tables: Iterable[str]) -> bool:
    """Whether `ledger/` has a copy of one of these tables."""
    return any((path.parent / FOLDER / f"{table}.parquet").exists() for table in tables)


def restore(sql: sqlite3.Connection, path: Path, tables: Iterable[str]) -> None:
    """Fill empty tables from their copies: those of a ledger that was made again."""
    for table in sorted(tables):
        name = f"{table}.parquet"
        if not (path.parent / FOLDER / name).exists() or sql.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            continue
        if rows := _copied_rows(path.parent / FOLDER, name):
            sql.execute("BEGIN IMMEDIATE")
            sql.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            sql.execute("COMMIT")


# -- after damage -------------------------------------------------------------------------------------------


def rescue(path: Path, derived: Iterable[str]) -> list[str]:
    """Copies of all that is left of a damaged ledger's tables but those that are derived; in words, what is lost.

    Copies count before pages, which have no checksums. A ledger that was closed before the damage has them of all.
    """
    folder = path.parent / FOLDER
    copied = {place.stem for place in folder.glob("*.parquet")}
    named = {name for (name,) in _rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    closed, lost = name_of(path) in sound_digests(folder), []
    for table in sorted((copied | named) - set(derived)):
        rows = _copied_rows(folder, f"{table}.parquet")
        if not re.fullmatch(r"\w+", table) or (rows is not None and closed):
            continue
        columns = dict(_rows(path, f"SELECT name, type FROM pragma_table_info('{table}')"))
        keys = [key for (key,) in _rows(path, f"SELECT name FROM pragma_table_info('{table}') WHERE pk ORDER BY pk")]
        if not columns:
            lost.append(f"what was recorded in {table} since its last copy")
            continue
        at = [[*columns].index(key) for key in keys] or range(len(columns))
        kinds = [{"INTEGER": int, "REAL": float}.get(kind, str) for kind in columns.values()]
        paged = [
            row
            for row in _both_ways(path, f"SELECT * FROM {table}", keys)
            if all(value is None or isinstance(value, kind) for value, kind in zip(row, kinds, strict=True))
        ]
        distinct = {tuple(row[key] for key in at): row for row in [*paged, *(rows or [])]}
        if distinct:
            _write_rows(folder / f"{table}.parquet", columns, iter(distinct.values()))
        lost += [f"{table} {what}" for what in _lost_rows(path, table, {key[0] for key in distinct})]
    return lost


def _lost_rows(path: Path, table: str, there: set[Any]) -> list[str]:
    """Rows that have numbers and are gone, each with what an index still says of it; no number is ever given up."""
    if not any(name == "number" for (name,) in _rows(path, f"SELECT name FROM pragma_table_info('{table}') WHERE pk")):
        return []
    lost = {number: f"{number}" for number in range(1, max(there, default=0)) if number not in there}
    for (index,) in _rows(path, f"SELECT name FROM pragma_index_list('{table}') WHERE NOT partial"):
        columns = [name for (name,) in _rows(path, f"SELECT name FROM pragma_index_info('{index}')")]
        for number, *values in _both_ways(
            path, f"SELECT number, {', '.join(columns)} FROM {table} INDEXED BY {index}", columns
        ):
            if number not in there:
                words = ", ".join(f"{name} {value}" for name, value in zip(columns, values, strict=True))
                lost[number] = f"{number} ({words})"
    return [lost[number] for number in sorted(lost)]


def _copied_rows(folder: Path, name: str) -> list[tuple[Any, ...]] | None:
    import pyarrow.parquet as pq

    place = folder / name
    if not place.exists() or sound_digests(folder).get(name) != file_blake2b(place):
        return None
    with pq.ParquetFile(place) as file:
        return [*zip(*(column.to_pylist() for column in file.read().columns), strict=True)]


def _both_ways(path: Path, query: str, columns: Iterable[str]) -> list[tuple[Any, ...]]:
    """The rows before the first damaged page and after the last one."""
    forwards, backwards = (", ".join(f"{name} {order}" for name in columns) for order in ("ASC", "DESC"))
    if not forwards:
        return []
    return [
        *dict.fromkeys([*_rows(path, f"{query} ORDER BY {forwards}"), *_rows(path, f"{query} ORDER BY {backwards}")])
    ]


def _rows(path: Path, query: str) -> Iterator[tuple[Any, ...]]:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with (
        suppress(sqlite3.Error, UnicodeDecodeError, OverflowError),
        closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as sql,
    ):
        yield from sql.execute(query)


def repair_copies(folder: Path) -> None:
    """Drop copies that are damaged: the next connection that closes writes them again; the digests too, if need be."""
    import pyarrow.parquet as pq

    damaged = damaged_files(folder)
    if DIGESTS in damaged or (folder.is_dir() and not (folder / DIGESTS).exists()):
        (folder / DIGESTS).unlink(missing_ok=True)
        for place in folder.glob("*.parquet"):
            try:
                pq.ParquetFile(place, page_checksum_verification=True).read()
            except Exception:  # a damaged file can end in nearly any of Python's own errors
                place.unlink()
        add_digests(folder, [place.name for place in folder.glob("*.parquet")])
    elif names := [name for name in damaged if name.endswith(".parquet")]:
        with in_turn(folder / DIGESTS), rewriting(folder, names):
            for name in names:
                (folder / name).unlink(missing_ok=True)


def log_damage(path: Path) -> str:
    """What is wrong with the write-ahead log that a killed run left; empty if nothing is, or there is none."""
    log = path.with_name(f"{path.name}-wal")
    data = log.read_bytes() if log.exists() else b""
    if not data:
        return ""
    order, size, salts = "big" if data[3:4] == b"\x83" else "little", int.from_bytes(data[8:12], "big"), data[16:24]
    sums = _sums(data[:24], (0, 0), order)
    if data[24:32] != _packed(sums) or data[:3] != b"\x37\x7f\x06":
        return "the head of its log is damaged"
    for start in range(32, len(data) - size - 23, size + 24):
        frame = data[start : start + size + 24]
        if frame[8:16] != salts:  # of an earlier round
            return ""
        sums = _sums(frame[:8] + frame[24:], sums, order)
        if frame[16:24] != _packed(sums):
            return "its log is damaged, and what was recorded last is lost"
    return ""


def _sums(data: bytes, start: tuple[int, int], order: Any) -> tuple[int, int]:
    """SQLite's checksum, which goes on from one frame to the next."""
    one, two = start
    words = (
        memoryview(data).cast("I")
        if order == sys.byteorder
        else [int.from_bytes(data[at : at + 4], order) for at in range(0, len(data), 4)]
    )
    for at in range(0, len(words), 2):
        one = (one + words[at] + two) & 0xFFFFFFFF
        two = (two + words[at + 1] + one) & 0xFFFFFFFF
    return one, two


def _packed(sums: tuple[int, int]) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in sums)
