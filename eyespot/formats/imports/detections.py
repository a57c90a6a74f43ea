"""What detectors found in photos: MegaDetector's JSON, and SpeciesNet's predictions, as facts for a gallery.

    detected                what was found above the threshold: animal, person, vehicle; blank for nothing
    detections, detection_confidence      how many of these, and the highest confidence
    boxes                   JSON, [[kind, confidence, x, y, width, height], …] in shares of the picture
    species, common_name, taxonomy, species_confidence     the classes of these, empty where there are none

Formats: https://lila.science/megadetector-output-format, and the `predictions` of SpeciesNet's `run_model`, of 5.0
(a class for each box) and before (one for the photo). The file is read twice, a photo at a time, because MegaDetector
writes the names of its categories below the photos.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eyespot.formats.imports.photo_facts import PhotoFacts, joined_names
from eyespot.photos.json_lists import lists_of, values_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

THRESHOLD = 0.2  # below it MegaDetector's findings are mostly nothing
SPECIESNET = {"1": "animal", "2": "person", "3": "vehicle"}
WHOLE = "whole_image_classification"  # SpeciesNet: a class of the whole photo, without a box
_LISTS = ("images", "predictions")  # MegaDetector's and SpeciesNet's
_KINDS, _CLASSES, _DESCRIBED = _NAMES = (  # what stands for the numbers of kinds and classes; SpeciesNet's long names
    *("detection_categories", "classification_categories", "classification_category_descriptions"),
)
Names = Mapping[str, Mapping[str, str]]


def read(path: Path, threshold: float = THRESHOLD) -> Iterator[PhotoFacts]:
    """Every photo of a file of either kind; `UsageError` if the file as a whole is neither."""
    number = 0
    try:
        found = values_of(path, _NAMES)
        tables = {name: found[name] if isinstance(found.get(name), dict) else {} for name in _NAMES}
        names = {name: {str(key): str(value) for key, value in table.items()} for name, table in tables.items()}
        for key, part in lists_of(path):
            if key in _LISTS and part is None:
                refuse(path, "", "has no list `images` (MegaDetector) or `predictions` (SpeciesNet)")
            for number, row in enumerate(part or () if key in _LISTS else (), number + 1):  # noqa: B020
                yield _photo(row, number, names, threshold)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error}); fetch it again") from None
    except ValueError as error:
        refuse(path, "", f"is not the JSON of MegaDetector or SpeciesNet ({error}); fetch it again")
    if not number:
        refuse(path, "", "has no photos in a list `images` (MegaDetector) or `predictions` (SpeciesNet)")


def _photo(row: Any, number: int, names: Names, threshold: float) -> PhotoFacts:
    file = (row.get("file") or row.get("filepath")) if isinstance(row, dict) else None
    if not isinstance(file, str):
        return PhotoFacts(f"image {number}", {}, "has no file or filepath")
    failure = row.get("failure") or (row.get("failures") if row.get("detections") is None else None)
    if failure:
        parts = failure if isinstance(failure, list) else [failure]
        return PhotoFacts(file, {}, f"the detector failed: {', '.join(map(str, parts))}")
    try:
        return PhotoFacts(file, _facts(row, names, threshold))
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
        expected = "a list of category, conf from 0 to 1 and bbox of four, in categories that the file or a label names"
        return PhotoFacts(file, {}, f"has detections of another shape; expected {expected}")


def _facts(row: Mapping[str, Any], names: Names, threshold: float) -> dict[str, Any]:
    # What nobody looked for is not blank: a photo without the list fails
    sure = [one for one in [*row["detections"]] if _confidence(one["conf"]) >= threshold]
    boxes: list[list[Any]] = []
    for one in sure:
        x, y, width, height = (round(float(share), 4) for share in one["bbox"])
        if not math.isfinite(x + y + width + height):
            raise ValueError("a box that is nowhere")
        kinds = names[_KINDS] or SPECIESNET
        kind = str(kinds.get(str(one["category"])) or one["label"])
        if kind != WHOLE:
            boxes.append([kind, round(float(one["conf"]), 4), x, y, width, height])
    facts: dict[str, Any] = {
        "detected": "; ".join(sorted({box[0] for box in boxes})) or "blank",
        "detections": len(boxes),
        "boxes": json.dumps(boxes, ensure_ascii=False) if boxes else None,
        "detection_confidence": max((box[1] for box in boxes), default=None),
    }
    whole = [(row["prediction"], row.get("prediction_score"))] if "prediction" in row else []  # until SpeciesNet 5.0
    return facts | _classified(whole or [answer for one in sure if (answer := _answer(one, names))])


def _confidence(value: Any) -> float:
    """A confidence from 0 to 1; `ValueError` for any other, also NaN."""
    confidence = float(value)
    if not 0 <= confidence <= 1:
        raise ValueError("no confidence")
    return confidence


def _answer(detection: Mapping[str, Any], names: Names) -> tuple[str, Any] | None:
    """The class of a box and its score: SpeciesNet's final one, else the surest."""
    if final := detection.get("processed_classification"):
        return str(final["class"]), final["score"]
    raw = detection.get("raw_classifications")  # a list where MegaDetector's tools put it beside the final class
    listed = zip(raw["scores"], raw["classes"], strict=True) if isinstance(raw, dict) else ()
    answers = [(_confidence(score), str(name)) for score, name in listed]
    for key, score in detection.get("classifications") or []:
        answers.append((_confidence(score), names[_DESCRIBED].get(str(key)) or names[_CLASSES].get(str(key), str(key))))
    return max(answers)[::-1] if answers else None


def _classified(answers: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The columns of classes: names, or SpeciesNet's `id;class;order;family;genus;species;common name`."""
    found: list[tuple[str, str, str]] = []
    for text, _ in answers:
        _, *ranks, common = text.split(";") if text.count(";") == 6 else ("", *[""] * 5, "")
        ranks = ["" if rank == "no cv result" else rank for rank in ranks]
        species = f"{ranks[3]} {ranks[4]}".capitalize() if ranks[3] and ranks[4] else ""
        taxonomy = ";".join(filter(None, ranks))
        found.append((species if ";" in text else text, "" if common == "no cv result" else common, taxonomy))
    facts: dict[str, Any] = dict(joined_names(found))
    scores = [_confidence(score) for _, score in answers if score is not None]
    return facts | {"species_confidence": max(scores, default=None)}
