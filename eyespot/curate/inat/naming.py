"""The list of species, the names of files, the positions that may be published, and what earlier runs left."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.inat.sampling import RADIUS
from eyespot.curate.inat.settings import TAXA, Positions, listed
from eyespot.curate.inat.sources import RANKS
from eyespot.curate.inat.taxonomy import TARGETS

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


def species_of(aligned: Path, positions: Positions) -> list[CollectionSpecies]:
    """The target list of a finished step, in which species with hidden positions are marked."""
    hidden, several = {name.casefold() for name in hidden_taxa(positions)}, []
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


def hidden_taxa(positions: Positions) -> set[str]:
    """Names or ids, of any rank, of the taxa whose positions are coarsened; `UsageError` for a list that names none."""
    return listed(positions.taxa, TAXA) if positions.taxa else set()


def unmatched(species: Iterable[CollectionSpecies], positions: Positions) -> set[str]:
    """Entries of the list of hidden taxa that match no species: their positions would not be hidden."""
    known = {key for named in species for key in named.answers_to()}
    return {name for name in hidden_taxa(positions) if name.casefold() not in known}


def file_name(photo: str, folder: str) -> str:
    """The path of a photo in the collection: by its id, or by a digest of an id that is not a file name."""
    plain = photo if re.fullmatch(r"[A-Za-z0-9][\w-]{0,79}", photo) else hashlib.sha256(photo.encode()).hexdigest()[:32]
    return f"{SPLIT}/{folder}/{plain}.jpg"


class Position(NamedTuple):
    """A published position: degrees, metres of uncertainty, and whether it was coarsened."""

    latitude: float
    longitude: float
    uncertainty: float | None
    coarse: bool


def published_position(
    latitude: float, longitude: float, accuracy: float | None, how: Positions, hidden: bool
) -> Position:
    """A position as it is, or the centre of its cell of `how.degrees` with an uncertainty that reaches the corners."""
    accuracy = None if accuracy is None or not accuracy >= 0 else min(accuracy, _FARTHEST)
    if not hidden and (accuracy is None or accuracy <= how.limit):
        return Position(latitude, longitude, accuracy, False)
    up, along = ((math.floor(value / how.degrees) + 0.5) * how.degrees for value in (latitude, longitude))
    up = min(90.0, max(-90.0, up))
    wide = math.cos(math.radians(max(0.0, abs(up) - how.degrees / 2)))
    reach = 1000 * _KM_A_DEGREE * how.degrees / 2 * math.hypot(1, wide)
    doubt = math.ceil(max(reach, accuracy or 0.0))
    return Position(round(up, 6), round((along + 180) % 360 - 180, 6), float(doubt), True)


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
