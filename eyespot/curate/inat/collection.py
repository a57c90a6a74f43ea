"""A collection's files: COCO JSON, labels, attributions, the list to download, the species, and the funnel."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import eyespot
from eyespot.curate.inat.naming import SPLIT, CollectionSpecies, published_position
from eyespot.curate.inat.settings import Licence, Positions, licence_of
from eyespot.curate.inat.sources import RANKS
from eyespot.curate.set_folder import SHARE, TEXT, WHOLE, new_table, write_table
from eyespot.formats.exports.coco import write_coco
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import write_csv

COCO, LABELS, ATTRIBUTIONS, DOWNLOAD = "train.json", "metadata.parquet", "attributions.csv", "download.csv"
TAXONOMY, FUNNEL = "taxonomy.csv", "funnel.csv"
COUNTS = ("candidates", "drawn", "pictures")  # of a species
_SITE = "https://www.inaturalist.org/observations/"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class CollectionInputs:
    """The inputs of the files besides rows."""

    species: Sequence[CollectionSpecies]
    positions: Positions
    licence_version: str
    citation: str
    on_inaturalist: bool


def image_of(id: int, row: Row, inputs: CollectionInputs) -> Row:
    """The picture of a drawn row. A coarsened position has no group, whose other members would reveal it."""
    species = inputs.species[row["target"]]
    position = published_position(row["latitude"], row["longitude"], row["accuracy"], inputs.positions, species.hidden)
    licence = licence_of(row["licence"], inputs.licence_version)
    assert licence is not None  # rows without one were dropped
    return {
        "id": id,
        "file_name": row["target_file"],
        "width": row["width"],
        "height": row["height"],
        "rights_holder": " ".join((row["holder"] or "").split()),
        "date": row["day"].isoformat() if isinstance(row["day"], date) else str(row["day"]),
        "latitude": position.latitude,
        "longitude": position.longitude,
        "location_uncertainty": position.uncertainty,
        "coarsened": position.coarse,
        "observation": row["id"],
        "group": None if position.coarse else row["group"],
        "photo": row["photo"],
        "licence": licence,
        "species": species,
    }


@dataclass
class CollectionTally:
    """Counts of the pictures that are written."""

    licences: Counter[Licence] = field(default_factory=Counter)
    species: array[int] = field(default_factory=lambda: array("q"))  # of each picture, in order
    coarse: int = 0
    first: str = "9999"
    last: str = ""

    def add(self, image: Row) -> None:
        """Count a picture."""
        self.licences[image["licence"]] += 1
        self.species.append(image["species"].id)
        self.coarse += image["coarsened"]
        self.first, self.last = min(self.first, image["date"]), max(self.last, image["date"])


def write_all(images: Callable[[], Iterable[Row]], inputs: CollectionInputs, out: Path) -> CollectionTally:
    """Write COCO JSON, the labels that `eyespot index` reads, and attributions; `images` are read twice."""
    tally = CollectionTally()

    def attributions(add_label: Callable[[Any], None]) -> Iterator[tuple[Any, ...]]:
        yield "file_name", "attribution", "rights_holder", "license", "license_url", "observation", "photo"
        for image in images():
            tally.add(image)
            add_label(_label(image))
            source = _SITE + image["observation"] if inputs.on_inaturalist else image["observation"]
            holder, licence = image["rights_holder"] or "unknown", image["licence"]
            credit = f"{holder}, {licence.name}"
            yield image["file_name"], credit, holder, licence.name, licence.url, source, image["photo"]

    with new_table(out / LABELS, _LABELS, _AT_ONCE) as add_label:
        write_csv(out / ATTRIBUTIONS, attributions(add_label))

    licences = {licence: number for number, licence in enumerate(sorted(tally.licences))}
    drawn = set(tally.species)
    used = sorted((species for species in inputs.species if species.id in drawn), key=lambda species: species.id)
    info = {"description": "made by eyespot build inat", "version": eyespot.__version__, "citation": inputs.citation}
    hidden = ("photo", "licence", "species")
    lists: dict[str, Iterable[Row]] = {
        "licenses": ({"id": number, "name": one.name, "url": one.url} for one, number in licences.items()),
        "categories": (species.category() for species in used),
        "images": (
            {name: value for name, value in image.items() if name not in hidden}
            | {"license": licences[image["licence"]]}
            for image in images()
        ),
        "annotations": ({"id": id, "image_id": id, "category_id": kind} for id, kind in enumerate(tally.species)),
    }
    write_whole(out / COCO, lambda file: write_coco(file, info, lists))
    return tally


def write_labels_beside(images: Iterable[Row], out: Path) -> None:
    """Write the labels of the pictures that exist next to them, where `datasets` looks; no file without pictures."""
    there = (image for image in images if (out / image["file_name"]).is_file())
    first = next(there, None)
    if first is None:
        (out / SPLIT / LABELS).unlink(missing_ok=True)
        return
    beside = (_label(image) for image in chain([first], there))
    rows = ({**row, "file_name": row["file_name"].removeprefix(f"{SPLIT}/")} for row in beside)
    write_table(out / SPLIT / LABELS, rows, _LABELS, _AT_ONCE)


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


# -- labels -----------------------------------------------------------------------------------------------------

_AT_ONCE = 1 << 14  # rows in memory
_LABELS = {
    **dict.fromkeys(("file_name", "category"), TEXT),
    **{"category_id": WHOLE, "common_name": TEXT, "supercategory": TEXT},
    **dict.fromkeys((*RANKS, "specific_epithet", "license", "rights_holder", "taken"), TEXT),
    **dict.fromkeys(("latitude", "longitude", "location_uncertainty"), SHARE),
    **{"coarsened": TEXT, "observation": TEXT, "image_id": WHOLE},
}


def _label(image: Row) -> dict[str, Any]:
    category: dict[str, Any] = image["species"].category()
    fields = {"category_id": category.pop("id"), "category": category.pop("name"), "license": image["licence"].name}
    given = ("file_name", "rights_holder", "latitude", "longitude", "location_uncertainty", "observation")
    rest = {"taken": image["date"], "coarsened": str(image["coarsened"]).lower(), "image_id": image["id"]}
    return category | fields | {name: image[name] for name in given} | rest
