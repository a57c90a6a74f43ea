"""ILIAS: the lists of ids in its folder `image_ids/`. An id's part before the first `/` is its instance.

All positives of an instance are relevant to all its queries, images and texts alike.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from pathlib import Path

from eyespot.runs.judged import Columns, JudgedQueries
from eyespot.storage.text_files import refuse, text_of
from eyespot.types import Qrels, UsageError

QUERIES = {"image": "image_query_ids.txt", "text": "text_query_ids.txt"}
POSITIVES = "positive_ids.txt"
DISTRACTORS = {"all": "distractor_ids.txt", "mini": "mini_ilias_yfcc100m_ids.txt"}


def is_layout(folder: Path) -> bool:
    """Whether a folder is ILIAS's."""
    return _place(_ids(folder), POSITIVES) is not None


def read(folder: Path) -> JudgedQueries:
    """Queries with `kind` (image or text) and `instance`; the positives with `instance`, `scale` and `clutter`."""
    lists = _ids(folder)
    positives: list[tuple[str, Columns]] = []
    path = _list_file(lists, POSITIVES)
    for line, id, fields in _rows(path):
        try:
            scale, clutter = (float(field) for field in fields)
        except ValueError:
            scale = math.nan
        if not (fields and math.isfinite(scale) and math.isfinite(clutter)):
            refuse(path, f"line {line}", f"has {','.join([id, *fields])[:60]!r}; expected: id,scale,clutter")
        positives.append((id, {"instance": id.partition("/")[0], "scale": scale, "clutter": clutter}))
    images = dict(positives)
    of_instance: dict[str, dict[str, int]] = {}
    for image, facts in images.items():
        of_instance.setdefault(facts["instance"], {})[image] = 1
    places = [(kind, _place(lists, name)) for kind, name in QUERIES.items()]
    if not any(place for _, place in places):
        _list_file(lists, QUERIES["image"])  # refuses
    rows = ((kind, id) for kind, place in places if place for _, id, _ in _rows(place))
    queries = {id: {"kind": kind, "instance": id.partition("/")[0]} for kind, id in rows}
    grades = {query: of_instance.get(facts["instance"], {}) for query, facts in queries.items()}
    return JudgedQueries(queries, Qrels(grades, {"source": str(folder)}), images)


def distractors(folder: Path, which: str = "mini") -> Iterator[str]:
    """The ids of the distractors, one by one: `mini` for the 5 million, `all` for the 100 million."""
    place = _list_file(_ids(folder), DISTRACTORS[which])
    with gzip.open(place) if place.suffix == ".gz" else place.open("rb") as lines:
        for line in lines:
            if id := line.decode().partition(",")[0].strip():
                yield id


def _ids(folder: Path) -> Path:
    return folder / "image_ids" if (folder / "image_ids").is_dir() else folder


def _place(lists: Path, name: str) -> Path | None:
    return next((place for place in (lists / name, lists / f"{name}.gz") if place.is_file()), None)


def _list_file(lists: Path, name: str) -> Path:
    place = _place(lists, name)
    if place is None:
        raise UsageError(f"there is no {name} in {lists}; give the folder that holds ILIAS's image_ids")
    return place


def _rows(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    seen: set[str] = set()
    for line, text in enumerate(text_of(path).split("\n"), 1):
        if not text.strip():
            continue
        id, *fields = (field.strip() for field in text.split(","))
        if not id.partition("/")[0] or "/" not in id:
            refuse(path, f"line {line}", f"has the id {id!r}; expected: instance/folder/file")
        if id in seen:
            refuse(path, f"line {line}", f"has the id {id!r} a second time; keep one of the two")
        seen.add(id)
        yield line, id, fields
