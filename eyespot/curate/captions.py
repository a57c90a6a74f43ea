"""Synthetic captions: for every picture that has labels only, one sentence that somebody might type to find it.

QuARI trains on BioTrove's pictures with such captions (appendix A). Who writes them is a `Captioner`: sentences made
from labels (`eyespot.curate.templates`), a vision-language model (`Seeing`), or whatever else makes a sentence of a
record and its picture.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from eyespot.gallery import disk, items_table
from eyespot.gallery.files import whole
from eyespot.gallery.view import Gallery, place_of
from eyespot.llms import Declined, JpegEncoder, NoReply, image_message, text_message
from eyespot.llms.fences import DATA, filled, one_line
from eyespot.parallel import batches
from eyespot.photos.found import reason
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again
from eyespot.storage import sqlite
from eyespot.storage.atomic import write_whole
from eyespot.storage.digests import text_digest
from eyespot.types import LanguageModel, NothingFound, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image


Facts: TypeAlias = Mapping[str, Any]
AT_ONCE = 4096  # rows that are written together
METADATA = b"eyespot"
UNSAID = "no label to speak of"  # the reason of a picture of whom a captioner says nothing: nothing failed


class Captioner(Protocol):
    """A record and its picture to one sentence."""

    @property
    def name(self) -> str:
        """Who writes: "templates", the name of a model."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All else that decides what is said, as JSON has it."""
        ...

    def caption(self, facts: Facts, picture: Callable[[], Image]) -> str | None:
        """One plain sentence; None where there is nothing to say. `facts` are `id` and the gallery's columns.

        `picture` reads the picture, upright in RGB, when it is called; the errors that it raises for one that cannot be
        read may pass through: that picture goes without a caption and is listed.
        """
        ...


class Caption(NamedTuple):
    """What is said of a picture."""

    id: str
    caption: str


@dataclass(frozen=True, slots=True)
class Uncaptioned:
    """A picture of which nothing is said, and why."""

    id: str
    path: str
    reason: str


@dataclass
class Written:
    """What a file of captions holds: how many, how many different ones, and the pictures left out."""

    captions: int = 0
    different: set[str] = field(default_factory=set)
    without: Counter[str] = field(default_factory=Counter)  # reason → pictures
    failures: list[Uncaptioned] = field(default_factory=list)


def columns(gallery: Path) -> list[str]:
    """What a gallery's shards say of their pictures: the names of their columns, each once."""
    import pyarrow.parquet as pq

    Gallery(gallery)  # a folder that is none is told here
    tables = [shard / "items.parquet" for shard in disk.shard_paths(gallery)]
    names: dict[str, None] = {}
    for table in tables:
        with whole(table, "restore it from a copy or index into a new gallery with -g"):
            names |= dict.fromkeys(pq.read_schema(table).names)
    return [name for name in names if name not in ("live", "roots", "paths")]


def captioned(gallery: Path, captioner: Captioner) -> Iterator[Caption | Uncaptioned]:
    """Each picture of a gallery that is still there, in the order of its rows, with its sentence or without."""
    opened = Gallery(gallery)
    for shard in disk.shard_paths(gallery):
        for batch in items_table.read_items(shard).to_batches(max_chunksize=AT_ONCE):
            for row in batch.to_pylist():
                if row.pop("live"):
                    # Where the picture lies; of rows that were imported without pictures there
                    # may be no place
                    pairs = zip(row.pop("roots"), row.pop("paths"), strict=True)
                    places = [place_of(opened.root(root), path) for root, path in pairs]
                    yield _one(row | {"path": places[0] if places else None}, places, captioner)


def write(found: Iterable[Caption | Uncaptioned], out: Path, captioner: Captioner) -> Written:
    """Columns id and caption, as .parquet (how they were made in the metadata) or .csv; whole or not at all.

    Raises `UsageError` for another kind of file and `NothingFound`, and writes nothing, if no picture has a caption.
    """
    writer = writer_of(out)
    written = Written()
    captions = _counted(found, written)
    write_whole(out, lambda file: writer(captions, file, {"by": captioner.name, **captioner.settings}))
    return written


def count(found: Iterable[Caption | Uncaptioned]) -> Written:
    """What `write` would write."""
    written = Written()
    deque(_counted(found, written), maxlen=0)
    return written


# -- one picture --------------------------------------------------------------------------------------------


def _one(facts: Facts, places: Sequence[str], captioner: Captioner) -> Caption | Uncaptioned:
    try:
        text = captioner.caption(facts, partial(_picture, places))
    except BadPicture as bad:
        return Uncaptioned(facts["id"], facts["path"] or "", bad.reason)
    except OSError as error:
        return Uncaptioned(facts["id"], facts["path"] or "", reason(error))
    sentence = " ".join((text or "").split())
    return Caption(facts["id"], sentence) if sentence else Uncaptioned(facts["id"], facts["path"] or "", UNSAID)


def _picture(places: Sequence[str]) -> Image:
    """From the first place that still holds it."""
    for place in places[:-1]:
        with suppress(OSError, BadPicture):
            return open_picture(read_again(place)).image
    if not places:
        raise BadPicture("has no file; it was imported without one")
    return open_picture(read_again(places[-1])).image


# -- the file -----------------------------------------------------------------------------------------------


def _counted(found: Iterable[Caption | Uncaptioned], written: Written) -> Iterator[Caption]:
    """The captions, while what is read is counted; `NothingFound` at the end if there was none."""
    for one in found:
        if isinstance(one, Caption):
            written.captions += 1
            written.different.add(one.caption)
            yield one
        else:
            written.without[one.reason] += 1
            written.failures += [one] if one.reason != UNSAID else []
    if not written.captions:
        raise NothingFound("no picture has a caption; name the columns of its labels with --common and --species")


Writer: TypeAlias = Callable[[Iterator[Caption], IO[bytes], Mapping[str, Any]], None]


def writer_of(out: Path) -> Writer:
    """What writes a file of this name; `UsageError` if nothing does."""
    writer = {".parquet": _parquet, ".csv": _csv}.get(out.suffix.lower())
    if writer is None:
        raise UsageError(f"captions are written as .parquet or .csv, not {out.name}; name such a file with --out")
    return writer


def _parquet(captions: Iterator[Caption], file: IO[bytes], metadata: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    note = json.dumps({"format": 1, **metadata}, ensure_ascii=False)
    schema = pa.schema([("id", pa.string()), ("caption", pa.string())], {METADATA: note.encode()})
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in batches(captions, AT_ONCE):
            writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=schema))


def _csv(captions: Iterator[Caption], file: IO[bytes], _said: Mapping[str, Any]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(Caption._fields)
    rows.writerows(captions)
    text.detach()


# -- by a vision-language model -------------------------------------------------------------------------------------


SCHEMA = """CREATE TABLE IF NOT EXISTS captions(model TEXT, prompt TEXT, image TEXT, named TEXT, said TEXT, at REAL,
    PRIMARY KEY(model, prompt, image, named)) WITHOUT ROWID;"""
SYSTEM = "You write search queries for a collection of nature photographs."
ASKED = """The photograph shows {named}. Write one short sentence that somebody could type to find just this photograph.
Name the species as given, then what can be seen: what it does, its colours or stage of life, where it is, the light.
Say nothing that cannot be seen. Answer with the sentence alone, at most {words} words."""
UNNAMED = "something that its label does not name"
WORDS, TOKENS = 25, 1000  # models that think need some of the tokens for that


@dataclass(frozen=True)
class Seeing:
    """A captioner that asks a vision-language model; the values of `columns` name what the picture shows.

    The ledger keeps captions under `name`.
    """

    name: str
    model: LanguageModel
    ledger: Path
    columns: tuple[str, ...]
    words: int = WORDS

    @property
    def settings(self) -> Mapping[str, Any]:
        """The prompt's digest and the columns whose values it holds."""
        return {"prompt": self.prompt, "columns": list(self.columns), "words": self.words}

    @property
    def prompt(self) -> str:
        """A digest of how the model is asked: sixteen hex digits."""
        return text_digest(SYSTEM, ASKED, DATA, str(self.words))

    def caption(self, facts: Mapping[str, Any], picture: Callable[[], Image]) -> str | None:
        """One sentence, from the ledger if it has one; None where the model declines.

        Raises `BadPicture` for a picture that cannot be read or got no answer, and `BudgetSpent`.
        """
        values = (facts.get(column) for column in self.columns)
        named = ", ".join(dict.fromkeys(str(value) for value in values if value)) or UNNAMED
        key = (self.name, self.prompt, str(facts["id"]), named)
        with closing(sqlite.connect(self.ledger, SCHEMA, settles=False)) as sql:
            where = "model = ? AND prompt = ? AND image = ? AND named = ?"
            row = sql.execute(f"SELECT said FROM captions WHERE {where}", key).fetchone()
            if row is None:
                data = JpegEncoder(read=lambda _: picture())(Path())
                question = filled(ASKED, {"named": named}, words=self.words)
                messages = [text_message("system", SYSTEM), image_message([data], question)]
                caption = ""
                try:
                    with suppress(Declined):
                        caption = sentence_of(self.model.chat(messages, max_tokens=TOKENS).text)
                except NoReply as why:
                    raise BadPicture(f"{self.name} gave no caption: {why}") from None
                sql.execute("INSERT OR REPLACE INTO captions VALUES (?, ?, ?, ?, ?, ?)", (*key, caption, time.time()))
                return caption
        return str(row[0]) or None


def sentence_of(reply: str) -> str:
    """The first line of a reply that is not empty, without quotes around it."""
    lines = (one_line(line).strip("\"'“”*").strip() for line in reply.splitlines())
    return next((line for line in lines if line), "")
