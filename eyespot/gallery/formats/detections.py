"""What detectors found in photos: MegaDetector's JSON, and SpeciesNet's predictions, as facts for a gallery.

    detected                what was found above the threshold: animal, person, vehicle; blank for nothing
    detections, detection_confidence      how many of these, and the highest confidence
    boxes                   JSON, [[kind, confidence, x, y, width, height], …] in shares of the picture
    species, common_name, taxonomy, species_confidence     the classifier's answer, empty where it has none

Formats: https://lila.science/megadetector-output-format, and the `predictions` of SpeciesNet's `run_model`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.gallery.disk import read_items
from eyespot.gallery.view import Gallery, place_of
from eyespot.storage.atomic import make_folder
from eyespot.storage.files import json_of, refuse, write_whole

FOLDER = "facts"  # of a gallery, for lists that imports leave
THRESHOLD = 0.2  # below it MegaDetector's findings are mostly nothing
SPECIESNET = {"1": "animal", "2": "person", "3": "vehicle"}


class DetectedPhoto(NamedTuple):
    """A photo as the file names it, with what was found, or why nothing could be."""

    file: str
    facts: dict[str, Any]
    failure: str | None


@dataclass
class ImportedFacts:
    """What an import did: photos in the file, photos of the gallery among them, and the list it wrote."""

    photos: int = 0
    known: int = 0
    failed: int = 0
    path: Path | None = None
    unknown: list[str] = field(default_factory=list)


def read(path: Path, threshold: float = THRESHOLD) -> list[DetectedPhoto]:
    """Every photo of a file of either kind; `UsageError` says what is not as it should be."""
    told = json_of(path)
    rows = (told.get("images") or told.get("predictions")) if isinstance(told, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        refuse(path, "", "has no list `images` (MegaDetector) or `predictions` (SpeciesNet)")
    kinds = told.get("detection_categories") or SPECIESNET
    classes = told.get("classification_categories") or {}
    found = []
    for at, row in enumerate(rows, 1):
        file = row.get("file") or row.get("filepath")
        if not isinstance(file, str):
            refuse(path, f"image {at}", "has no file or filepath")
        failure = row.get("failure") or row.get("failures")
        try:
            facts = {} if failure else _facts(row, kinds, classes, threshold)
        except (TypeError, ValueError, LookupError, AttributeError):
            refuse(path, f"image {at}", "has detections of another shape; expected category, conf and bbox of four")
        found.append(DetectedPhoto(file, facts, None if not failure else str(failure)))
    return found


def _facts(
    row: Mapping[str, Any], kinds: Mapping[str, str], classes: Mapping[str, str], threshold: float
) -> dict[str, Any]:
    sure = [one for one in row.get("detections") or [] if float(one["conf"]) >= threshold]
    boxes: list[list[Any]] = []
    for one in sure:
        x, y, width, height = (round(float(share), 4) for share in one["bbox"])
        kind = str(kinds.get(str(one["category"]), one.get("label") or one["category"]))
        boxes.append([kind, round(float(one["conf"]), 4), x, y, width, height])
    facts: dict[str, Any] = {
        "detected": "; ".join(sorted({box[0] for box in boxes})) or "blank",
        "detections": len(boxes),
        "boxes": json.dumps(boxes, ensure_ascii=False) if boxes else None,
        "detection_confidence": max((box[1] for box in boxes), default=None),
    }
    return facts | (_predicted(row) if "prediction" in row else _classified(sure, classes))


def _predicted(row: Mapping[str, Any]) -> dict[str, Any]:
    """SpeciesNet's `id;class;order;family;genus;species;common name`."""
    _, *ranks, common = (str(row["prediction"]) + ";" * 6).split(";")[:7]
    species = f"{ranks[3]} {ranks[4]}".strip().capitalize() if ranks[3] and ranks[4] else None
    named = {"species": species, "common_name": common or None, "taxonomy": ";".join(filter(None, ranks)) or None}
    return named | {"species_confidence": row.get("prediction_score")}


def _classified(sure: Iterable[Mapping[str, Any]], classes: Mapping[str, str]) -> dict[str, Any]:
    """The surest class of all boxes."""
    answers = [(float(score), str(key)) for one in sure for key, score in one.get("classifications") or []]
    if not answers:
        return {}
    score, key = max(answers)
    return {"species": classes.get(key, key), "species_confidence": score}


def take_in(gallery: Path, photos: Iterable[DetectedPhoto], name: str, folder: Path) -> ImportedFacts:
    """Write the facts of photos that the gallery knows as a list in it, to be indexed; nothing if it knows none.

    folder: where relative paths begin; those that lead nowhere there are looked up below each root of the gallery.
    """
    opened = Gallery(gallery)
    known = set(_paths(opened))
    bases = [str(folder.absolute()), *(root.path for root in opened.header.roots.values() if root.kind == "folder")]
    done, lines = ImportedFacts(), list[str]()
    for photo in photos:
        done.photos += 1
        places = (os.path.normpath(os.path.join(base, photo.file)) for base in bases)
        place = next((place for place in places if place in known), None)
        if photo.failure is not None:
            done.failed += 1
        elif place is None:
            done.unknown.append(photo.file)
        else:
            done.known += 1
            lines.append(json.dumps({"file_name": place, **photo.facts}, ensure_ascii=False))
    if lines:
        done.path = gallery.absolute() / FOLDER / f"{name}.jsonl"
        make_folder(done.path.parent)
        text = "\n".join(lines) + "\n"
        write_whole(done.path, lambda file: file.write(text.encode("utf-8", "surrogatepass")))
    return done


def _paths(opened: Gallery) -> Iterator[str]:
    """Where the photos of a gallery lie."""
    view = opened.view(opened.stem())
    for shard in view.shards:
        for row in read_items(shard, ["roots", "paths"]).to_pylist():
            for number, path in zip(row["roots"], row["paths"], strict=True):
                yield place_of(opened.root(number), path)
