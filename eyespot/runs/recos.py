"""ReCoS sets: images with their sub-task, and captions; later versions hold more images.

Our layout is two tables, `.parquet`, `.jsonl` or `.csv`: images (image, subtask, version, path) and captions (id,
image, text). An image belongs to its `version` and to every later one; without that column to all. Images without
captions are there to be ranked. The released `recos_v1.json` is read as captions by image, whose sub-task is the
folder in the image's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from eyespot.runs import karpathy
from eyespot.runs.judged import Columns
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse, required
from eyespot.types import UsageError

VERSIONS = ("v0", "v1", "v2")
ENDINGS = ("parquet", "jsonl", "csv")


@dataclass(frozen=True)
class Set:
    """The captioned images of a version, and the other images to rank."""

    captions: karpathy.KarpathyCaptions
    others: dict[str, Columns]


def read(folder: Path, version: str = "v1") -> Set:
    """A version of the set: `UsageError` names what is missing, or the line that is wrong."""
    if version not in VERSIONS:
        raise UsageError(f"ReCoS has the versions {', '.join(VERSIONS)}, not {version!r}")
    released = next((place for name in _released(version) if (place := folder / name).is_file()), None)
    if released is not None:
        released_set = karpathy.read(released)
        images = {name: {**facts, "subtask": _folder(name)} for name, facts in released_set.images.items()}
        texts = {id: {**facts, "subtask": _folder(facts["image"])} for id, facts in released_set.texts.items()}
        return Set(replace(released_set, images=images, texts=texts), {})
    everyone: dict[str, Columns] = {}
    for path, line, row in _rows(folder, "images"):
        name = required(path, line, row, "image")
        if name in everyone:
            refuse(path, f"line {line}", f"has the image {name!r} a second time; keep one of the two")
        if (row.get("version") or VERSIONS[0]) not in VERSIONS:
            there = ", ".join(VERSIONS)
            raise UsageError(f"the image {name!r} has the version {row['version']!r}; there are: {there}")
        everyone[name] = row
    wanted = {None, "", *VERSIONS[: VERSIONS.index(version) + 1]}
    images = {name: facts for name, facts in everyone.items() if facts.get("version") in wanted}
    texts = {id: facts for id, facts in _texts(folder, everyone).items() if facts["image"] in images}
    captioned = {facts["image"] for facts in texts.values()}
    described = {name: facts for name, facts in images.items() if name in captioned}
    if not described:
        raise UsageError(f"{folder} has no captioned images of version {version}; check the column version")
    texts = {id: {**facts, "subtask": images[facts["image"]].get("subtask")} for id, facts in texts.items()}
    others = {name: facts for name, facts in images.items() if name not in captioned}
    return Set(karpathy.KarpathyCaptions(str(folder), described, texts), others)


def is_released(folder: Path, version: str) -> bool:
    """Whether `read` takes a version from the file that its owners released, which alone is what papers print of."""
    return any((folder / name).is_file() for name in _released(version))


def _released(version: str) -> tuple[str, str]:
    return (f"recos_{version}.json", f"captions_{version}.json")


def _folder(name: str) -> str | None:
    parts = PurePosixPath(name).parts
    return parts[-2] if len(parts) > 1 else None


def _texts(folder: Path, images: dict[str, Columns]) -> dict[str, Columns]:
    """The captions by id, each with its text and its image."""
    texts: dict[str, Columns] = {}
    for path, line, row in _rows(folder, "captions"):
        id, image = required(path, line, row, "id"), required(path, line, row, "image")
        if id in texts or image not in images:
            why = (
                f"has the id {id!r} a second time" if id in texts else f"describes {image!r}, which images do not name"
            )
            refuse(path, f"line {line}", why)
        if not isinstance(row.get("text"), str) or not row["text"].strip():
            refuse(path, f"line {line}", "has no text")
        texts[id] = {"text": row["text"], "image": image}
    return texts


def _rows(folder: Path, table: str) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    path = next((place for ending in ENDINGS if (place := folder / f"{table}.{ending}").is_file()), None)
    if path is None:
        raise UsageError(f"{folder} has no {table}.parquet, .jsonl or .csv, and no recos_*.json of this version")
    for line, row in rows_of(path):
        yield path, line, row
