"""What builders lay out alike: tables, pictures with their licences, cards, and the folder of a finished set.

A set goes to `OUT/set`, or beside it where a run lost what the set there has: a server that fails in the middle of a
run leaves records without an answer. The run still ends, with a smaller set, and must not cost the user the larger one
that an earlier run made.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.formats.pictures import PictureBytes
from eyespot.photos.pictures import BadPicture
from eyespot.photos.places import read_again
from eyespot.photos.provenance import Attribution, attribution_of
from eyespot.pipelines import StepResult
from eyespot.storage.atomic import make_folder, new_file, write_whole
from eyespot.storage.text_files import toml_of
from eyespot.types import EyespotError

if TYPE_CHECKING:
    from eyespot.curate._world import PhotoWorld
    from eyespot.pipelines.data_card import Card, Tables

# -- tables -----------------------------------------------------------------------------------------------------

TEXT, WHOLE, SHARE = "string", "int64", "float64"  # of columns, by Arrow's names
IMAGE, TEXTS = "image", "texts"
RIGHTS = Attribution._fields  # the columns of a photo's licence
AT_ONCE = 4096  # rows in memory


def schema_of(columns: Mapping[str, str]) -> Any:
    """Arrow's schema of columns; with an `IMAGE`, `datasets` reads in its metadata which columns hold pictures."""
    import pyarrow as pa

    ours = {IMAGE: pa.struct([("bytes", pa.binary()), ("path", pa.string())]), TEXTS: pa.list_(pa.string())}
    fields = [(name, ours[kind] if kind in ours else getattr(pa, kind)()) for name, kind in columns.items()]
    if IMAGE not in columns.values():
        return pa.schema(fields)
    kinds = {name: {"_type": "Value", "dtype": kind} for name, kind in columns.items()}
    kinds |= {name: {"_type": "Image"} for name, kind in columns.items() if kind == IMAGE}
    return pa.schema(fields, {"huggingface": json.dumps({"info": {"features": kinds}})})


@contextmanager
def new_table(path: Path, columns: Mapping[str, str], at_once: int = AT_ONCE) -> Iterator[Callable[[Any], None]]:
    """A parquet table that takes rows one by one, whole or not at all; `at_once` of them are in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, waiting = schema_of(columns), list[Mapping[str, Any]]()
    with new_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:

        def add(row: Mapping[str, Any]) -> None:
            waiting.append(row)
            if len(waiting) == at_once:
                writer.write_table(pa.Table.from_pylist(waiting, schema))
                waiting.clear()

        yield add
        writer.write_table(pa.Table.from_pylist(waiting, schema))


def write_table(
    path: Path, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], at_once: int = AT_ONCE
) -> None:
    """These rows as a parquet table, whole or not at all."""
    with new_table(path, columns, at_once) as add:
        for row in rows:
            add(row)


# -- pictures ---------------------------------------------------------------------------------------------------

SharePicture: TypeAlias = Callable[[bytes, str], PictureBytes]
"""What becomes of a picture's bytes: `without_position`, or `as_it_is`."""


def shared_picture(place: Path, suffix: str, share: SharePicture) -> tuple[bytes, PictureBytes]:
    """The bytes of a picture's file, and those that a set may hold; `EyespotError` if it cannot be read."""
    try:
        data = read_again(str(place))
        return data, share(data, suffix)
    except (OSError, BadPicture) as error:
        why = error.reason if isinstance(error, BadPicture) else str(error.strerror)
        raise EyespotError(f"the picture {place} cannot be read ({why}); restore it and run again") from None


def attributions(world: PhotoWorld, images: Iterable[str], encoder: str | None) -> dict[str, dict[str, str | None]]:
    """By image the columns `licence`, `author` and `url`; images that left the gallery are left out."""
    rows = world.rows(encoder)
    at_hand = [image for image in images if image in rows]
    facts = world.view(encoder).facts([rows[image] for image in at_hand])
    return {image: attribution_of(known)._asdict() for image, known in zip(at_hand, facts, strict=True)}


# -- cards ------------------------------------------------------------------------------------------------------


def write_cards(card: Card, folder: Path, tables: Tables, described: Tables | None = None) -> None:
    """`card.md`, `card.html`, a README for `datasets` over `tables`, and `croissant.json` over these or `described`."""
    from eyespot.pipelines.data_card import write_card, write_croissant, write_readme

    write_card(card, folder)
    write_readme(card, tables, folder)
    write_croissant(card, described or tables, folder)


def datasheet(builder: Path, **fields: object) -> dict[str, dict[str, str]]:
    """A builder's answers to a datasheet, by section and question: its `datasheet.toml` with the fields filled in."""
    sections = toml_of(builder.with_name("datasheet.toml")).items()
    return {name: {question: text.format_map(fields) for question, text in of.items()} for name, of in sections}


# -- the folder -------------------------------------------------------------------------------------------------

SET, INCOMPLETE = "set", "set-incomplete"
STATE = Path("work") / "set.json"  # how many records had failed when the set was written


@dataclass(frozen=True)
class SetFolder:
    """Where the set of a run goes: its main table with its rows, and how many records of the run failed.

    With `replace` an earlier set that is the better one is overwritten all the same.
    """

    out: Path
    table: str
    rows: int
    failed: int
    replace: bool = False

    @classmethod
    def of(cls, out: Path, table: str, rows: int, done: Sequence[StepResult], *, replace: bool = False) -> SetFolder:
        """The folder for the set that these steps made."""
        return cls(out, table, rows, sum(one.counts.failed for one in done), replace)

    @cached_property
    def place(self) -> Path:
        """`out/set`, or `out/set-incomplete` where the set in place is the better one when this is first asked.

        It is where the new one is empty, or where more records failed and the new one has fewer rows.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            there: int = pq.read_metadata(self.out / SET / self.table).num_rows
        except (OSError, pa.ArrowException):
            there = 0
        if self.replace or not there:
            return self.out / SET
        try:
            failed_before = int(json.loads((self.out / STATE).read_text(encoding="utf-8"))["failed"])
        except (OSError, ValueError, KeyError, TypeError):  # nobody noted it
            failed_before = 0
        lost = self.failed > failed_before and self.rows < there
        return self.out / (INCOMPLETE if lost or not self.rows else SET)

    def settle(self) -> None:
        """Note the state of a set that was written in place, and remove an incomplete one beside it."""
        if self.place == self.out / SET:
            make_folder((self.out / STATE).parent)
            write_whole(self.out / STATE, lambda file: file.write(json.dumps({"failed": self.failed}).encode()))
            shutil.rmtree(self.out / INCOMPLETE, ignore_errors=True)

    @property
    def note(self) -> str:
        """What a user should know of a set that was not put in place; empty for another."""
        if self.place == self.out / SET:
            return ""
        return (
            f"the earlier set stays in {self.out / SET}, because this run lost records that it has; the new one is in "
            f"{self.place}; retry what failed with --retry-failed, or overwrite the earlier set with --replace"
        )
