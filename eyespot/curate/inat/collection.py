"""A collection's files: COCO JSON, labels, attributions, what to fetch, the species, and where they were seen."""

from __future__ import annotations

import csv
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import eyespot
from eyespot.curate.inat.licences import Licence, licence_of
from eyespot.curate.inat.naming import SPLIT, Named, told_position
from eyespot.curate.inat.settings import Positions
from eyespot.curate.inat.source import RANKS
from eyespot.storage.atomic import put_file
from eyespot.storage.files import escape_cell, write_whole

COCO, LABELS, ATTRIBUTIONS, DOWNLOAD = "train.json", "metadata.parquet", "attributions.csv", "download.csv"
TAXONOMY, FUNNEL = "taxonomy.csv", "funnel.csv"
_SITE = "https://www.inaturalist.org/observations/"
Row = Mapping[str, Any]


class CollectionInputs(NamedTuple):
    """What the files need besides rows."""

    species: Sequence[Named]
    positions: Positions
    licence_version: str
    citation: str
    on_inaturalist: bool


class Image(NamedTuple):
    """A picture of the collection with all that is told of it."""

    id: int
    file_name: str
    width: int | None
    height: int | None
    licence: Licence
    rights_holder: str
    date: str
    latitude: float
    longitude: float
    location_uncertainty: float | None
    coarse: bool
    group: int | None
    observation: str
    photo: str
    species: Named


def image_of(id: int, row: Row, making: CollectionInputs) -> Image:
    """The picture of a drawn row; of a coarsened position no group is told, whose other members might give it away."""
    species = making.species[row["target"]]
    place = told_position(row["latitude"], row["longitude"], row["accuracy"], making.positions, species.hidden)
    licence = licence_of(row["licence"], making.licence_version)
    assert licence is not None  # rows without one were dropped
    day = row["day"].isoformat() if isinstance(row["day"], date) else str(row["day"])
    group = None if place.coarse else row["group"]
    told = (row["target_file"], row["width"], row["height"], licence, " ".join((row["holder"] or "").split()), day)
    return Image(id, *told, *place, group, row["id"], row["photo"], species)


@dataclass
class CollectionTally:
    """What is counted while pictures pass by."""

    licences: Counter[Licence] = field(default_factory=Counter)
    species: array[int] = field(default_factory=lambda: array("q"))  # of each picture, in order
    coarse: int = 0
    first: str = "9999"
    last: str = ""

    def add(self, one: Image) -> None:
        """Count a picture."""
        self.licences[one.licence] += 1
        self.species.append(one.species.id)
        self.coarse += one.coarse
        self.first, self.last = min(self.first, one.date), max(self.last, one.date)


def write_all(images: Iterable[Image], making: CollectionInputs, out: Path) -> CollectionTally:
    """COCO JSON, the labels that `eyespot index` takes beside pictures, and attributions; `images` pass by twice."""
    tally = CollectionTally()
    with _labels(out / LABELS) as label:

        def passing() -> Iterator[tuple[Any, ...]]:
            for one in images:
                tally.add(one)
                label(one)
                source = _SITE + one.observation if making.on_inaturalist else one.observation
                who = one.rights_holder or "unknown"
                yield (
                    one.file_name,
                    f"{who}, {one.licence.name}",
                    who,
                    one.licence.name,
                    one.licence.url,
                    source,
                    one.photo,
                )

        _write_csv(out / ATTRIBUTIONS, _ATTRIBUTED, passing())
    write_whole(out / COCO, lambda file: _write_coco(file, images, making, tally))
    return tally


def write_labels_beside(images: Iterable[Image], out: Path) -> None:
    """The labels of the pictures that are in place, among them, where `datasets` looks; no file without pictures."""
    there = (one._replace(file_name=one.file_name.removeprefix(f"{SPLIT}/")) for one in images if _is_there(one, out))
    first = next(there, None)
    if first is None:
        (out / SPLIT / LABELS).unlink(missing_ok=True)
        return
    with _labels(out / SPLIT / LABELS) as label:
        for one in chain([first], there):
            label(one)


def _is_there(one: Image, out: Path) -> bool:
    return (out / one.file_name).is_file()


def write_download(rows: Iterable[Row], out: Path) -> None:
    """What is to be fetched: an address and the name of the file to keep it as."""
    _write_csv(out / DOWNLOAD, ("url", "file"), ((row["url"], row["file"]) for row in rows if row["url"]))


def write_taxonomy(making: CollectionInputs, counts: Mapping[int, Mapping[str, int]], out: Path) -> None:
    """Every species of the list: the taxa that count as it and how, observations and pictures, or why it has none."""
    head = ("id", "name", "taxa", "how", "candidates", "drawn", "pictures", "unmapped")
    rows = (_taxon_row(one, counts.get(at, {})) for at, one in enumerate(making.species))
    _write_csv(out / TAXONOMY, head, rows)


def _taxon_row(one: Named, counts: Mapping[str, int]) -> tuple[Any, ...]:
    told = (counts.get(name, 0) for name in ("candidates", "drawn", "pictures"))
    how = "; ".join(sorted(set(one.taxa.values())))
    return one.id, one.name, "; ".join(one.taxa), how, *told, one.unmapped or ""


def write_funnel(steps: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Observations by step and reason."""
    rows = [(one["step"], "kept", one["kept"]) for one in steps[:1]]
    for one in steps:
        rows += [(one["step"], reason, count) for reason, count in one["dropped"].items()]
        rows += [(one["step"], "kept", one["kept"])] if one is not steps[0] else []
    _write_csv(out / FUNNEL, ("step", "what", "observations"), rows)


# -- COCO JSON --------------------------------------------------------------------------------------------------


def _write_coco(file: IO[bytes], images: Iterable[Image], making: CollectionInputs, tally: CollectionTally) -> None:
    licences = {name: at for at, name in enumerate(sorted(tally.licences))}
    drawn = set(tally.species)
    used = {one.id: one for one in making.species if one.id in drawn}
    info = {"description": "made by eyespot build inat", "version": eyespot.__version__, "citation": making.citation}
    listed = [{"id": at, "name": one.name, "url": one.url} for one, at in licences.items()]
    file.write(b'{"info": ' + _json(info) + b',\n"licenses": ' + _json(listed))
    _write_list(file, "categories", (used[id].category() for id in sorted(used)))
    _write_list(file, "images", (_entry(one, licences) for one in images))
    pairs = ({"id": id, "image_id": id, "category_id": species} for id, species in enumerate(tally.species))
    _write_list(file, "annotations", pairs)
    file.write(b"}\n")


def _entry(one: Image, licences: Mapping[Licence, int]) -> dict[str, Any]:
    told = one._asdict()
    names = ("id", "file_name", "width", "height", "rights_holder", "date", "latitude", "longitude")
    rest = {"location_uncertainty": one.location_uncertainty, "coarsened": one.coarse, "observation": one.observation}
    return {name: told[name] for name in names} | {"license": licences[one.licence]} | rest | {"group": one.group}


def _write_list(file: IO[bytes], name: str, values: Iterable[Mapping[str, Any]]) -> None:
    file.write(b',\n"' + name.encode() + b'": [')
    for at, value in enumerate(values):
        file.write((b",\n" if at else b"\n") + _json(value))
    file.write(b"]")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


# -- labels and attributions ------------------------------------------------------------------------------------


@contextmanager
def _labels(path: Path) -> Iterator[Callable[[Image], None]]:
    """A parquet table that takes pictures one by one; in place once it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.part")
    kinds: dict[str, Any] = dict.fromkeys(("latitude", "longitude", "location_uncertainty"), pa.float64())
    kinds |= dict.fromkeys(("category_id", "image_id"), pa.int64())
    schema = pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in _LABELS])
    held: list[dict[str, Any]] = []
    with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:

        def take(one: Image) -> None:
            held.append(_label(one))
            if len(held) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(held, schema))
                held.clear()

        yield take
        writer.write_table(pa.Table.from_pylist(held, schema))
    put_file(temporary, path)


_AT_ONCE = 1 << 14
_LABELS = (
    *("file_name", "category", "category_id", "common_name", "supercategory", *RANKS, "specific_epithet"),
    *("license", "rights_holder", "taken", "latitude", "longitude", "location_uncertainty"),
    *("coarsened", "observation", "image_id"),
)


def _label(one: Image) -> dict[str, Any]:
    category = {("category_id" if name == "id" else name): value for name, value in one.species.category().items()}
    told = {"file_name": one.file_name, "category": category.pop("name"), **category}
    told |= {"license": one.licence.name, "rights_holder": one.rights_holder, "taken": one.date}
    told |= {"latitude": one.latitude, "longitude": one.longitude, "location_uncertainty": one.location_uncertainty}
    return told | {"coarsened": str(one.coarse).lower(), "observation": one.observation, "image_id": one.id}


_ATTRIBUTED = ("file_name", "attribution", "rights_holder", "license", "license_url", "observation", "photo")


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    def write(file: IO[bytes]) -> None:
        lines_rows = [head, *rows]
        writer = csv.writer(_Line(), lineterminator="\n")
        for row in lines_rows:
            line = writer.writerow([escape_cell(value) for value in row])
            file.write(line)

    write_whole(path, write)


class _Line:
    """What the csv writer writes to: keeps the line."""

    def write(self, text: str) -> bytes:
        return text.encode("utf-8", "replace")
