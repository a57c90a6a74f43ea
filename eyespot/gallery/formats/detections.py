"""What detectors found in photos: MegaDetector's JSON, and SpeciesNet's predictions, as facts for a gallery.

    detected                what was found above the threshold: animal, person, vehicle; blank for nothing
    detections, detection_confidence      how many of these, and the highest confidence
    boxes                   JSON, [[kind, confidence, x, y, width, height], …] in shares of the picture
    species, common_name, taxonomy, species_confidence     the classifier's answer, empty where it has none

Formats: https://lila.science/megadetector-output-format, and the `predictions` of SpeciesNet's `run_model`. The file is
read twice, a photo at a time, because MegaDetector writes the names of its categories below the photos.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eyespot.gallery.formats.photo_facts import PhotoFacts
from eyespot.gallery.photos.json_lists import lists_of, values_of
from eyespot.storage.files import refuse
from eyespot.types import UsageError

THRESHOLD = 0.2  # below it MegaDetector's findings are mostly nothing
SPECIESNET = {"1": "animal", "2": "person", "3": "vehicle"}
_LISTS = ("images", "predictions")  # MegaDetector's and SpeciesNet's
_NAMES = ("detection_categories", "classification_categories")


def read(path: Path, threshold: float = THRESHOLD) -> Iterator[PhotoFacts]:
    """Every photo of a file of either kind; `UsageError` if the file as a whole is neither."""
    try:
        named = values_of(path, _NAMES)
        kinds, classes = (_names(named.get(name)) for name in _NAMES)
        rows = (row for key, part in lists_of(path) if key in _LISTS for row in _listed(path, part))
        number = 0
        for number, row in enumerate(rows, 1):
            yield _photo(row, number, kinds or SPECIESNET, classes, threshold)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error}); fetch it again") from None
    except ValueError as error:
        refuse(path, "", f"is not the JSON of MegaDetector or SpeciesNet ({error}); fetch it again")
    if not number:
        refuse(path, "", "has no photos in a list `images` (MegaDetector) or `predictions` (SpeciesNet)")


def _listed(path: Path, part: Iterator[Any] | None) -> Iterator[Any]:
    if part is None:
        refuse(path, "", "has no list `images` (MegaDetector) or `predictions` (SpeciesNet)")
    return part


def _names(value: Any) -> dict[str, str]:
    return {str(key): str(name) for key, name in value.items()} if isinstance(value, dict) else {}


def _photo(row: Any, number: int, kinds: Mapping[str, str], classes: Mapping[str, str], threshold: float) -> PhotoFacts:
    file = (row.get("file") or row.get("filepath")) if isinstance(row, dict) else None
    if not isinstance(file, str):
        return PhotoFacts(f"image {number}", {}, "has no file or filepath")
    failure = row.get("failure") or row.get("failures")
    if failure:
        return PhotoFacts(file, {}, f"the detector failed: {failure}")
    try:
        return PhotoFacts(file, _facts(row, kinds, classes, threshold))
    except (TypeError, ValueError, LookupError, AttributeError):
        return PhotoFacts(file, {}, "has detections of another shape; expected category, conf and bbox of four")


def _facts(
    row: Mapping[str, Any], kinds: Mapping[str, str], classes: Mapping[str, str], threshold: float
) -> dict[str, Any]:
    sure = [one for one in row.get("detections") or [] if float(one["conf"]) >= threshold]
    boxes: list[list[Any]] = []
    for one in sure:
        x, y, width, height = (round(float(share), 4) for share in one["bbox"])
        if not math.isfinite(x + y + width + height):
            raise ValueError("a box that is nowhere")
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
