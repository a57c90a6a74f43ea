"""Facts that other programs know of photos, such as detectors and camera-trap systems: columns for a gallery.

What is seen has the same columns everywhere:

    detected                what is seen: animal, person, vehicle, several joined by `; `; blank for nothing
    species, common_name, taxonomy      several joined; `species_confidence` where a program gives one
    count                   the individuals, where somebody counted
    detections, detection_confidence, boxes     boxes as JSON, [[kind, confidence, x, y, width, height], …] in shares
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from eyespot.formats.folders import safe_name
from eyespot.gallery.disk import FACTS, is_imported
from eyespot.gallery.items_table import read_items
from eyespot.gallery.view import Gallery
from eyespot.gallery.visits import PICTURE
from eyespot.photos.found import is_utf8
from eyespot.photos.names import NamedFiles
from eyespot.storage.atomic import make_folder, new_file

IMPORTED = "has the facts of the table that it was imported with; index the photo, or import more columns anew"
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*://[^/]*/|[A-Za-z]:/|/+)", re.IGNORECASE)


class PhotoFacts(NamedTuple):
    """A photo as a file names it, with what is known of it, or why nothing is.

    `file` leads to it from a folder; `elsewhere` are ends of paths that no other photo of the file has, the longest
    first.
    """

    file: str
    facts: dict[str, Any]
    failure: str | None = None
    elsewhere: tuple[str, ...] = ()


def joined_names(names: Iterable[tuple[str, str, str]]) -> dict[str, str | None]:
    """The columns of several species, common names and taxonomies, each sorted in one text; None for nothing."""
    found = list(names)
    joints = {"species": "; ", "common_name": "; ", "taxonomy": " | "}
    return {
        column: joint.join(sorted({one[at] for one in found} - {""})) or None
        for at, (column, joint) in enumerate(joints.items())
    }


@dataclass
class ImportedFacts:
    """What an import did: photos in the file, those of the gallery among them, the rest, and the list it wrote.

    respelled: names of known photos, and their files where these are spelled otherwise.
    """

    photos: int = 0
    known: int = 0
    respelled: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    path: Path | None = None


def take_in(gallery: Path, photos: Iterable[PhotoFacts], name: str, folder: Path) -> ImportedFacts:
    """Write the facts of photos that the gallery knows as a list in it, to be indexed; nothing if it knows none.

    folder: where paths begin; those that lead nowhere there are looked up below each root of the gallery. Two entries
    may be meant for one photo (cameras give a name again in another folder): the first stays, the others are refused.
    """
    taken = set[str]()
    places, done = _Places(Gallery(gallery), folder), ImportedFacts()
    path = gallery.absolute() / FACTS / f"{safe_name(name)}.jsonl"
    with ExitStack() as files:
        target: IO[bytes] | None = None
        for photo in photos:
            done.photos += 1
            found = [] if photo.failure else places.of(photo)
            if (refusal := _refusal(photo, found, taken, [*map(places.ids.get, found)])) is not None:
                done.failed.append((photo.file, refusal))
            elif not found:
                done.unknown.append(photo.file)
            else:
                taken.add(found[0])
                if target is None:
                    make_folder(path.parent)
                    target = files.enter_context(new_file(path))
                    done.path = path
                done.known += 1
                if not f"/{found[0]}".endswith(tuple(f"/{_end_of(name)}" for name in (photo.file, *photo.elsewhere))):
                    done.respelled.append((photo.file, found[0]))
                target.write(_line(photo, places.as_listed(found[0]), places.ids[found[0]]).encode())
    return done


def _refusal(photo: PhotoFacts, found: Sequence[str], taken: Collection[str], ids: Sequence[str | None]) -> str | None:
    """Why a photo that may lie at these places gets no facts; None if it does, or lies nowhere."""
    if photo.failure is not None or not found:
        return photo.failure
    if len(found) > 1:
        return f"{len(found)} photos of the gallery may be meant, such as {found[0]}"
    if ids[0] is None:
        return IMPORTED
    if found[0] in taken:
        return f"{found[0]} has the facts of an earlier entry"
    return (
        None if is_utf8(_line(photo, found[0])) else "its name or a fact is not UTF-8, which no list holds; rename it"
    )


def _line(photo: PhotoFacts, place: str, id: str | None = None) -> str:
    return json.dumps({**photo.facts, "file_name": place, PICTURE: id}, ensure_ascii=False) + "\n"


class _Places:
    """Where the photos of a gallery lie, looked up by the names that other programs have for them."""

    def __init__(self, opened: Gallery, folder: Path) -> None:
        view = opened.view(opened.stem())
        ids: list[str | None] = []  # None in a shard that was imported, which keeps the facts of its table
        for shard in view.shards:
            ids += [None if is_imported(shard) else str(id) for id in read_items(shard, ["id"])["id"].to_pylist()]
        self.ids = {place: ids[row] for place, row in sorted(view.places(), key=lambda one: ids[one[1]] is not None)}
        self.known = {os.path.normpath(place): place for place in self.ids}
        self.files = NamedFiles(self.known)
        self.listed_at = os.path.abspath(opened.path)
        roots = (root.path for root in opened.header.roots.values() if root.kind == "folder")
        self.bases = [str(folder.absolute()), *roots]

    def as_listed(self, place: str) -> str:
        """A place as the list names it: what lies in the gallery, from the list's folder."""
        below = place.removeprefix(f"{self.listed_at}/")
        return place if below == place else f"../{below}"

    def of(self, photo: PhotoFacts) -> list[str]:
        """The places that may be meant: the first below a base, else all that end so."""
        names = dict.fromkeys((photo.file, photo.file.replace("\\", "/")))
        inside = [os.path.normpath(os.path.join(base, name)) for name in names for base in self.bases]
        exact = ([place] for place in inside if place in self.known)
        below = (found for place in inside if len(found := self.files.called(place)) == 1)
        at_end = (self.files.called(_end_of(name), at_end=True) for name in photo.elsewhere)
        return [self.known[place] for place in next(filter(None, chain(exact, below, at_end)), [])]


def _end_of(name: str) -> str:
    """A path or address without its server or drive and what leads nowhere."""
    parts = _ADDRESS.sub("", name.replace("\\", "/")).split("/")
    return "/".join(part for part in parts if part not in ("", ".", ".."))
