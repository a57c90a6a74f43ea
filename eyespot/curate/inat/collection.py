"""A collection's files: COCO JSON, labels, attributions, the list to download, the species, and the funnel."""

from __future__ import annotations

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
from eyespot.curate.inat.naming import SPLIT, CollectionSpecies, told_position
from eyespot.curate.inat.settings import Positions
from eyespot.curate.inat.source import RANKS
from eyespot.formats.exports.coco import write_coco
from eyespot.storage.atomic import new_file, write_whole
from eyespot.storage.tables import write_csv

COCO, LABELS, ATTRIBUTIONS, DOWNLOAD = "train.json", "metadata.parquet", "attributions.csv", "download.csv"
TAXONOMY, FUNNEL = "taxonomy.csv", "funnel.csv"
COUNTS = ("candidates", "drawn", "pictures")  # of a species
_SITE = "https://www.inaturalist.org/observations/"
Row = Mapping[str, Any]


class CollectionInputs(NamedTuple):
    """The inputs of the files besides rows."""

    species: Sequence[CollectionSpecies]
    positions: Positions
    licence_version: str
    citation: str
    on_inaturalist: bool


class Image(NamedTuple):
    """A picture of the collection with its fields."""

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
    species: CollectionSpecies


def image_of(id: int, row: Row, inputs: CollectionInputs) -> Image:
    """The picture of a drawn row. A coarsened position has no group, whose other members would reveal it."""
    species = inputs.species[row["target"]]
    position = told_position(row["latitude"], row["longitude"], row["accuracy"], inputs.positions, species.hidden)
    licence = licence_of(row["licence"], inputs.licence_version)
    assert licence is not None  # rows without one were dropped
    day = row["day"].isoformat() if isinstance(row["day"], date) else str(row["day"])
    holder = " ".join((row["holder"] or "").split())
    fields = (row["target_file"], row["width"], row["height"], licence, holder, day)
    group = None if position.coarse else row["group"]
    return Image(id, *fields, *position, group, row["id"], row["photo"], species)


@dataclass
class CollectionTally:
    """Counts of the pictures that are written."""

    licences: Counter[Licence] = field(default_factory=Counter)
    species: array[int] = field(default_factory=lambda: array("q"))  # of each picture, in order
    coarse: int = 0
    first: str = "9999"
    last: str = ""

    def add(self, image: Image) -> None:
        """Count a picture."""
        self.licences[image.licence] += 1
        self.species.append(image.species.id)
        self.coarse += image.coarse
        self.first, self.last = min(self.first, image.date), max(self.last, image.date)


def write_all(images: Iterable[Image], inputs: CollectionInputs, out: Path) -> CollectionTally:
    """Write COCO JSON, the labels that `eyespot index` reads, and attributions; `images` are iterated twice."""
    tally = CollectionTally()

    def attributions(label: Callable[[Image], None]) -> Iterator[tuple[Any, ...]]:
        yield "file_name", "attribution", "rights_holder", "license", "license_url", "observation", "photo"
        for image in images:
            tally.add(image)
            label(image)
            source = _SITE + image.observation if inputs.on_inaturalist else image.observation
            holder, licence = image.rights_holder or "unknown", image.licence
            credit = f"{holder}, {licence.name}"
            yield image.file_name, credit, holder, licence.name, licence.url, source, image.photo

    with _labels(out / LABELS) as label:
        write_csv(out / ATTRIBUTIONS, attributions(label))
    write_whole(out / COCO, lambda file: _write_coco(file, images, inputs, tally))
    return tally


def write_labels_beside(images: Iterable[Image], out: Path) -> None:
    """Write the labels of the pictures that exist next to them, where `datasets` looks; no file without pictures."""
    there = (image for image in images if (out / image.file_name).is_file())
    first = next(there, None)
    if first is None:
        (out / SPLIT / LABELS).unlink(missing_ok=True)
        return
    with _labels(out / SPLIT / LABELS) as label:
        for image in chain([first], there):
            label(image._replace(file_name=image.file_name.removeprefix(f"{SPLIT}/")))


def write_download(rows: Iterable[Row], out: Path) -> None:
    """Write the list to download: an address and a file name per line."""
    addresses = ((row["url"], row["file"]) for row in rows if row["url"])
    write_csv(out / DOWNLOAD, chain([("url", "file")], addresses))


def write_taxonomy(inputs: CollectionInputs, counts: Mapping[int, Mapping[str, int]], out: Path) -> None:
    """Write every species of the list: the taxa that count as it and how, its counts, or why it has none."""
    rows: list[tuple[Any, ...]] = [("id", "name", "taxa", "how", *COUNTS, "unmapped")]
    for place, species in enumerate(inputs.species):
        how, numbers = "; ".join(sorted(set(species.taxa.values()))), counts.get(place, {})
        taxa = "; ".join(species.taxa)
        numbered = (numbers.get(name, 0) for name in COUNTS)
        rows.append((species.id, species.name, taxa, how, *numbered, species.unmapped or ""))
    write_csv(out / TAXONOMY, rows)


def write_funnel(steps: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write the observations by step and reason."""
    rows: list[tuple[Any, ...]] = [("step", "what", "observations")]
    for number, step in enumerate(steps):
        survivors = (step["step"], "kept", step["kept"])
        dropped = [(step["step"], reason, count) for reason, count in step["dropped"].items()]
        rows += [*dropped, survivors] if number else [survivors, *dropped]
    write_csv(out / FUNNEL, rows)


# -- COCO JSON --------------------------------------------------------------------------------------------------


def _write_coco(file: IO[bytes], images: Iterable[Image], inputs: CollectionInputs, tally: CollectionTally) -> None:
    licences = {licence: number for number, licence in enumerate(sorted(tally.licences))}
    drawn = set(tally.species)
    used = sorted((species for species in inputs.species if species.id in drawn), key=lambda species: species.id)
    info = {"description": "made by eyespot build inat", "version": eyespot.__version__, "citation": inputs.citation}
    lists: dict[str, Iterable[Mapping[str, Any]]] = {
        "licenses": ({"id": number, "name": one.name, "url": one.url} for one, number in licences.items()),
        "categories": (species.category() for species in used),
        "images": (_coco_image(image, licences[image.licence]) for image in images),
        "annotations": ({"id": id, "image_id": id, "category_id": kind} for id, kind in enumerate(tally.species)),
    }
    write_coco(file, info, lists)


def _coco_image(image: Image, licence: int) -> dict[str, Any]:
    fields = image._asdict()
    names = ("id", "file_name", "width", "height", "rights_holder", "date", "latitude", "longitude")
    rest: dict[str, Any] = {"location_uncertainty": image.location_uncertainty, "coarsened": image.coarse}
    rest |= {"observation": image.observation, "group": image.group}
    return {name: fields[name] for name in names} | {"license": licence} | rest


# -- labels -----------------------------------------------------------------------------------------------------

_AT_ONCE = 1 << 14  # rows in memory
_LABELS = (
    *("file_name", "category", "category_id", "common_name", "supercategory", *RANKS, "specific_epithet"),
    *("license", "rights_holder", "taken", "latitude", "longitude", "location_uncertainty"),
    *("coarsened", "observation", "image_id"),
)


@contextmanager
def _labels(path: Path) -> Iterator[Callable[[Image], None]]:
    """Writes pictures to a parquet table, which is in place once it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = dict.fromkeys(("latitude", "longitude", "location_uncertainty"), pa.float64())
    kinds |= dict.fromkeys(("category_id", "image_id"), pa.int64())
    schema = pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in _LABELS])
    rows: list[dict[str, Any]] = []
    with new_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:

        def label(image: Image) -> None:
            rows.append(_label(image))
            if len(rows) == _AT_ONCE:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows.clear()

        yield label
        writer.write_table(pa.Table.from_pylist(rows, schema))


def _label(image: Image) -> dict[str, Any]:
    category = image.species.category()
    fields = {"file_name": image.file_name, "category_id": category.pop("id"), "category": category.pop("name")}
    fields |= {"license": image.licence.name, "rights_holder": image.rights_holder, "taken": image.date}
    position = {name: getattr(image, name) for name in ("latitude", "longitude", "location_uncertainty")}
    rest = {"coarsened": str(image.coarse).lower(), "observation": image.observation, "image_id": image.id}
    return category | fields | position | rest
