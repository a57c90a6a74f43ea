"""What a step may say of a record: kept, dropped with a reason, failed, or added out of nothing."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from datetime import date
from os import fspath
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from eyespot.types import EyespotError

Record: TypeAlias = Mapping[str, Any]
"""Fields of JSON under names; the field `id` is text and stands once in a step's records."""


class Keep(NamedTuple):
    """A record that goes on. `of` is the id of the record it was made from where that is another than its own."""

    record: Record
    of: str | None = None


class Drop(NamedTuple):
    """A record that goes no further. `reason` is one of few, for they are counted; `detail` is this record's own."""

    record: Record
    reason: str
    detail: str = ""
    of: str | None = None


class Failed(NamedTuple):
    """A record that could not be worked on: it counts as dropped, and is tried again when that is asked for."""

    record: Record
    reason: str
    detail: str = ""
    of: str | None = None


class Added(NamedTuple):
    """A new record, made from none that the step was given: what a source gives, or a distractor of a pool."""

    record: Record


Outcome: TypeAlias = Keep | Drop | Failed | Added


class Unaccounted(EyespotError):
    """A step lost a record, gave one twice, or gave one that came from nowhere."""


class NoAnswer(EyespotError):
    """A client has no answer to this one prompt; its record fails and the others go on."""


# -- as lines of JSON -------------------------------------------------------------------------------------------


_JSON = json.JSONEncoder(  # dates and paths as text; of all else `fspath` raises TypeError
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    default=lambda one: one.isoformat() if isinstance(one, date) else fspath(one),
)


def line_of(value: Any) -> bytes:
    """One line of UTF-8 JSON; dates as ISO 8601. `EyespotError` for what JSON does not hold, NaN among it."""
    try:
        text = _JSON.encode(value)
    except (TypeError, ValueError) as error:
        raise EyespotError(f"a step gave a record that is not JSON ({error}); give text, numbers and lists") from None
    # A file name that is not UTF-8 holds halves of characters, which JSON writes as \udcXX and reads back.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def packed(outcomes: list[Outcome], line: bytes) -> bytes:
    """Outcomes as JSON for the disk, deflated after the record's own line: most of one is what its record has.

    Nothing says that the record goes on as it came.
    """
    only = outcomes[0] if len(outcomes) == 1 else None
    if isinstance(only, Keep) and only.of is None and line_of(only.record) == line:
        return b""
    deflating = zlib.compressobj(6, zdict=line[-WINDOW:])
    return deflating.compress(line_of([[_NAMES[type(one)], *one] for one in outcomes])) + deflating.flush()


def unpacked(data: bytes | str, line: bytes) -> list[Outcome]:
    """The same outcomes again; those of earlier versions are text, or deflated alone."""
    if not data:
        return [Keep(json.loads(line))]
    text = data if isinstance(data, str) else zlib.decompressobj(zdict=line[-WINDOW:]).decompress(data)
    return [_KINDS[kind](*fields) for kind, *fields in json.loads(text)]


WINDOW = 32_768  # bytes that deflate looks back
# The names that stand in files and work databases since the first version of the format.
_KINDS: dict[str, Any] = {"Kept": Keep, "Dropped": Drop, "Failed": Failed, "Added": Added}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Records:
    """The records a step gets: read from the disk as often as they are iterated, never all in memory at once.

    `path` is the file they lie in (JSONL or parquet; None before the first step), `digest` the SHA-256 of it.
    """

    def __init__(self, path: Path | None = None, count: int = 0, digest: str = "") -> None:
        self.path, self.digest = path, digest
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        seen = 0
        for record in () if self.path is None else rows(self.path):
            seen += 1
            yield record
        if seen != self._count:
            raise _damaged(self.path, f"holds {seen:,} records where {self._count:,} were kept")


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a step's file, JSONL or parquet, one after the other."""
    if path.suffix == ".parquet":
        from eyespot.storage.tables import rows_of

        yield from (json.loads(line_of(row)) for _, row in rows_of(path))
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError:
                raise _damaged(path, f"is cut or changed in line {number:,}") from None


def _damaged(path: Path | None, how: str) -> Unaccounted:
    return Unaccounted(f"{path} {how}; remove its folder and run the same line again, the step is done anew")
