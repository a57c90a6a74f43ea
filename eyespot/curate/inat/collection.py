"""A collection's species, files and positions that may be published: COCO JSON, labels, attributions, the funnel."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import eyespot
from eyespot.curate.inat.licences import TAXA, Licence, licence_of, listed
from eyespot.curate.inat.sampling import RADIUS
from eyespot.curate.inat.sources import RANKS, ObservationSource
from eyespot.curate.inat.taxonomy import TARGETS
from eyespot.curate.set_folder import SHARE, TEXT, WHOLE, new_table, write_table
from eyespot.formats.exports.coco import write_coco
from eyespot.settings.build import InatSettings
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import write_csv

SPLIT = "train"
_FARTHEST = 1000 * math.pi * RADIUS  # metres from one end of the Earth to the other
_KM_A_DEGREE = math.radians(1) * RADIUS


@dataclass(frozen=True)
class CollectionSpecies:
    """A species of the list as the collection has it."""

    id: int
    name: str
    folder: str
    ranks: Mapping[str, str]
    common: str | None
    taxa: Mapping[str, str]
    unmapped: str | None
    hidden: bool = False

    def answers_to(self) -> set[str]:
        """The names and ids by which a list may mean it, in lower case."""
        return {" ".join(key.casefold().split()) for key in (self.name, *self.ranks.values(), *self.taxa)}

    def category(self) -> dict[str, Any]:
        """Its entry in COCO JSON, with the columns of iNat's data sets."""
        ranks = {rank: self.ranks.get(rank, "") for rank in RANKS}
        epithet = " ".join(self.name.split()[1:])
        common = {"common_name": self.common} if self.common else {}
        rest = {**ranks, "specific_epithet": epithet, "image_dir_name": self.folder}
        return {"id": self.id, "name": self.name, **common, "supercategory": ranks["class"] or ranks["kingdom"], **rest}


def species_of(aligned: Path, settings: InatSettings) -> list[CollectionSpecies]:
    """The target list of a finished step, in which species with hidden positions are marked."""
    hidden, several = {name.casefold() for name in hidden_taxa(settings)}, []
    for fields in json.loads((aligned / TARGETS).read_text(encoding="utf-8")):
        ranks, name = fields["ranks"], fields["name"]
        lineage = [f"{fields['id']:05d}", *(ranks.get(rank, "") for rank in RANKS[:-1]), name]
        # Only letters, digits and dashes, so that no list names a folder outside of the collection
        folder = re.sub(r"[^\w-]+", "_", fields["folder"] or "_".join(lineage)).strip("_")[:200] or "species"
        species = CollectionSpecies(
            fields["id"], name, folder, ranks, fields["common"], fields["taxa"], fields["unmapped"]
        )
        several.append(replace(species, hidden=bool(species.answers_to() & hidden)))
    return several


def hidden_taxa(settings: InatSettings) -> set[str]:
    """Names or ids, of any rank, of the taxa whose positions are coarsened; `UsageError` for a list that names none."""
    return listed(settings.coarsen, TAXA) if settings.coarsen else set()


def unmatched(species: Iterable[CollectionSpecies], settings: InatSettings) -> set[str]:
    """Entries of the list of hidden taxa that match no species: their positions would not be hidden."""
    known = {key for named in species for key in named.answers_to()}
    return {name for name in hidden_taxa(settings) if name.casefold() not in known}


def file_name(photo: str, folder: str) -> str:
    """The path of a photo in the collection: by its id, or by a digest of an id that is not a file name."""
    plain = photo if re.fullmatch(r"[A-Za-z0-9][\w-]{0,79}", photo) else hashlib.sha256(photo.encode()).hexdigest()[:32]
    return f"{SPLIT}/{folder}/{plain}.jpg"


def published_position(
    latitude: float, longitude: float, accuracy: float | None, how: InatSettings, hidden: bool
) -> dict[str, Any]:
    """A position as it is, or the centre of its cell (`coarse_degrees`) with an uncertainty that reaches the corners.

    latitude and longitude in degrees, location_uncertainty in metres (None: unknown), and whether it is coarsened.
    """
    names = ("latitude", "longitude", "location_uncertainty", "coarsened")
    accuracy = None if accuracy is None or not accuracy >= 0 else min(accuracy, _FARTHEST)
    if not hidden and (accuracy is None or accuracy <= how.accuracy):
        return dict(zip(names, (latitude, longitude, accuracy, False), strict=True))
    up, along = ((math.floor(value / how.coarse_degrees) + 0.5) * how.coarse_degrees for value in (latitude, longitude))
    up = min(90.0, max(-90.0, up))
    wide = math.cos(math.radians(max(0.0, abs(up) - how.coarse_degrees / 2)))
    reach = 1000 * _KM_A_DEGREE * how.coarse_degrees / 2 * math.hypot(1, wide)
    doubt = math.ceil(max(reach, accuracy or 0.0))
    cell = (round(up, 6), round((along + 180) % 360 - 180, 6), float(doubt), True)
    return dict(zip(names, cell, strict=True))


def find(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that exists inside the folder."""
    root = folder.resolve()
    for name in names:
        place = (root / name).resolve()
        if place.is_relative_to(root) and place.is_file():
            return place
    return None


def places_of(file: str, photo: str, ambiguous: bool = False) -> list[str]:
    """Paths at which a photo may be: as it is named, or as the export's own store names it.

    An `ambiguous` name belongs to several photos: without its folders it identifies none of them.
    """
    stem, _, extension = file.rpartition(".")
    last = [] if ambiguous and "/" in file else [file.rpartition("/")[2]]
    sizes = [f"{stem}/{size}.{extension}" for size in ("original", "large", "medium")] if stem else []
    return [file, *last, *sizes, f"{photo}.{extension}" if stem and "/" not in photo else file]


def remove_leftovers(out: Path, named: Iterable[str]) -> int:
    """Remove pictures below `train/` that are not among these, and folders left empty; the number of pictures.

    Only files that a run puts there are removed, `SPECIES/PHOTO.jpg`; links are not followed.
    """
    train = out / SPLIT
    there = sorted(train.iterdir()) if train.is_dir() else []
    folders = [folder for folder in there if folder.is_dir() and not folder.is_symlink()]
    if not folders:
        return 0
    marks = array("Q", sorted(array("Q", map(_mark, named))))  # eight bytes each: there may be millions
    removed = 0
    for species in folders:
        for name in sorted(os.listdir(species)):
            picture, mark = species / name, _mark(f"{SPLIT}/{species.name}/{name}")
            place = bisect_left(marks, mark)
            is_named = place < len(marks) and marks[place] == mark
            # A picture, or what a kill left of one that was being written
            if name.endswith((".jpg", ".jpg.part")) and not picture.is_symlink() and not is_named:
                picture.unlink()
                removed += name.endswith(".jpg")
        if not any(species.iterdir()):
            species.rmdir()
    return removed


def _mark(file: str) -> int:
    return int.from_bytes(hashlib.blake2b(file.encode("utf-8", "surrogateescape"), digest_size=8).digest())


COCO, LABELS, ATTRIBUTIONS, DOWNLOAD = "train.json", "metadata.parquet", "attributions.csv", "download.csv"
TAXONOMY, FUNNEL = "taxonomy.csv", "funnel.csv"
COUNTS = ("candidates", "drawn", "pictures")  # of a species
_SITE = "https://www.inaturalist.org/observations/"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class CollectionInputs:
    """The inputs of the files besides rows."""

    species: Sequence[CollectionSpecies]
    settings: InatSettings
    source: ObservationSource


def image_of(id: int, row: Row, inputs: CollectionInputs) -> Row:
    """The picture of a drawn row. A coarsened position has no group, whose other members would reveal it."""
    species = inputs.species[row["target"]]
    position = published_position(row["latitude"], row["longitude"], row["accuracy"], inputs.settings, species.hidden)
    licence = licence_of(row["licence"], inputs.source.licence_version)
    assert licence is not None  # rows without one were dropped
    return {
        "id": id,
        "file_name": row["target_file"],
        "width": row["width"],
        "height": row["height"],
        "rights_holder": " ".join((row["holder"] or "").split()),
        "date": row["day"].isoformat() if isinstance(row["day"], date) else str(row["day"]),
        **position,
        "observation": row["id"],
        "group": None if position["coarsened"] else row["group"],
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
            source = _SITE + image["observation"] if inputs.source.kind.startswith("inat") else image["observation"]
            holder, licence = image["rights_holder"] or "unknown", image["licence"]
            credit = f"{holder}, {licence.name}"
            yield image["file_name"], credit, holder, licence.name, licence.url, source, image["photo"]

    with new_table(out / LABELS, _LABELS, _AT_ONCE) as add_label:
        write_csv(out / ATTRIBUTIONS, attributions(add_label))

    licences = {licence: number for number, licence in enumerate(sorted(tally.licences))}
    drawn = set(tally.species)
    used = sorted((species for species in inputs.species if species.id in drawn), key=lambda species: species.id)
    info = {
        "description": "made by eyespot build inat",
        "version": eyespot.__version__,
        "citation": inputs.source.citation,
    }
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
