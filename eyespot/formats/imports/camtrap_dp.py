"""Camtrap DP packages as Agouti, TRAPPER and others export them, version 1.0 and 0.1, as facts for a gallery.

Besides what is seen: `deployment`, `location_name`, `latitude`, `longitude`, `taken` (the camera's clock), `event`,
`life_stage`, `sex`, `behavior`, `licence`, `rights_holder`, and `url` for public media.

A medium has the observations that name it; without any, those of its event: of the same sequence, or of its deployment
at its time.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

from eyespot.formats.imports.packages import ExportPackage
from eyespot.formats.imports.photo_facts import PhotoFacts
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

PACKAGE = "datapackage.json"
LARGEST = 1 << 24  # bytes of it
_KINDS = {"animal": "animal", "human": "person", "person": "person", "vehicle": "vehicle"}
_BOX = ("bboxx", "bboxy", "bboxwidth", "bboxheight")
_ABOUT = {"life_stage": ("lifestage",), "sex": ("sex",), "behavior": ("behavior", "behaviour")}


def read(place: Path) -> Iterator[PhotoFacts]:
    """Every medium of a package, a folder or a zip; `UsageError` for a table that is missing."""
    package = ExportPackage(place.parent if place.name == PACKAGE else place)
    if PACKAGE not in package.files:
        raise UsageError(f"{package.place} has no {PACKAGE}; name the folder or zip of a Camtrap DP package")
    with package.open(PACKAGE) as file:
        try:
            fields = json.loads(file.read(LARGEST).decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            refuse(package.place / PACKAGE, "", f"is not JSON ({error}); fetch the package again")
    if not isinstance(fields, dict):
        refuse(package.place / PACKAGE, "", "is not a package; expected an object with resources")
    tables = {name: _table(package, fields, name) for name in ("deployments", "media", "observations")}
    seen = _Observations(package, tables["observations"])
    rows = (row for _, row in package.rows(tables["deployments"]) if isinstance(row, dict))
    traps = {row["deploymentid"]: row for row in rows if "deploymentid" in row}
    names = Counter(_own_name(row) for _, row in package.rows(tables["media"]) if isinstance(row, dict))
    licence, holder = media_rights(place, fields)
    shared = {"licence": licence or None, "rights_holder": holder or None}
    for line, row in package.rows(tables["media"]):
        if isinstance(row, str) or "filepath" not in row:
            why = row if isinstance(row, str) else "has no filePath"
            yield PhotoFacts(f"{tables['media']}, line {line}", {}, why)
        else:
            facts = {**seen.of(row), **_where(row, traps), **shared}
            yield _photo(row, facts, unique=names[_own_name(row)] == 1)


def _table(package: ExportPackage, fields: Mapping[str, Any], name: str) -> str:
    """The file of a table: the one its resource names, else `NAME.csv`."""
    resources = [entry for entry in fields.get("resources") or () if isinstance(entry, dict)]
    named = [PurePosixPath(str(entry.get("path"))).name for entry in resources if entry.get("name") == name]
    file = next((file for file in (*named, f"{name}.csv", f"{name}.csv.gz") if file in package.files), None)
    if file is None:
        raise UsageError(f"{package.place} has no {name}.csv; a Camtrap DP has deployments, media and observations")
    return file


def media_rights(path: Path, fields: Mapping[str, Any]) -> tuple[str, str]:
    """Licence and holder of the media by a package's fields, or ""; `UsageError` for fields of another kind."""
    for name in ("licenses", "contributors"):
        listed = fields.get(name) or []
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            refuse(path, name, "is not a list of objects; write it as Camtrap DP has it, or take it out")
    licences = [licence for licence in fields.get("licenses") or [] if licence.get("scope") == "media"]
    people = fields.get("contributors") or []
    holders = [person for person in people if person.get("role") == "rightsHolder"] or people
    licence = next((str(licence.get("name") or licence.get("path") or "") for licence in licences), "")
    return licence, next((str(person.get("title") or "") for person in holders), "")


def _photo(row: Mapping[str, str], facts: dict[str, Any], unique: bool) -> PhotoFacts:
    """A medium by its path; one behind an address by its name and ids, for the path says nothing of its file."""
    path, name = row["filepath"], _own_name(row)
    in_deployment = f"{row['deploymentid']}/{name}" if "deploymentid" in row else ""
    by_id = f"{row['mediaid']}{PurePosixPath(name).suffix or '.jpg'}" if "mediaid" in row else ""
    if not path.lower().startswith(("http://", "https://")):
        return PhotoFacts(path, facts, elsewhere=(path,) if unique or "/" in path.replace("\\", "/") else ())
    if row.get("filepublic", "true").lower() in ("true", "t", "1"):
        facts["url"] = path.partition("?")[0]  # what follows may be a token
    ends = filter(None, (in_deployment, by_id, name if unique else ""))
    return PhotoFacts(name if unique else in_deployment or path, facts, elsewhere=tuple(ends))


def _own_name(row: Mapping[str, str]) -> str:
    path = row.get("filepath", "").partition("?")[0].replace("\\", "/")
    return row.get("filename") or PurePosixPath(path).name


def _where(row: Mapping[str, str], traps: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """A medium's deployment, place and time."""
    trap = traps.get(row.get("deploymentid", ""), {})
    time = _time(row.get("timestamp"))
    return {
        "deployment": row.get("deploymentid"),
        "location_name": trap.get("locationname"),
        "latitude": trap.get("latitude"),
        "longitude": trap.get("longitude"),
        "taken": time and time.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds"),
    }


class _Observations:
    """Observations by their medium, and those of events by sequence and by deployment."""

    def __init__(self, package: ExportPackage, table: str) -> None:
        self.media: dict[str, list[dict[str, str]]] = {}
        self.sequences: dict[str, list[dict[str, str]]] = {}
        # Of each deployment, in the order of their starts: start, end, observation
        self.events: dict[str, list[tuple[datetime, datetime, dict[str, str]]]] = {}
        for _, row in package.rows(table):
            if isinstance(row, str):
                continue
            start = _time(row.get("eventstart") or row.get("timestamp"))
            if "mediaid" in row:
                self.media.setdefault(row["mediaid"], []).append(row)
            elif "sequenceid" in row:
                self.sequences.setdefault(row["sequenceid"], []).append(row)
            elif start is not None:
                end = _time(row.get("eventend")) or start
                self.events.setdefault(row.get("deploymentid", ""), []).append((start, end, row))
        for events in self.events.values():
            events.sort(key=itemgetter(0))
        spans = {name: [end - start for start, end, _ in events] for name, events in self.events.items()}
        self.longest = {name: max(lengths) for name, lengths in spans.items()}

    def of(self, medium: Mapping[str, str]) -> dict[str, Any]:
        """What is seen in a medium."""
        rows = self.media.get(medium.get("mediaid", "")) or self.sequences.get(medium.get("sequenceid", ""))
        time = _time(medium.get("timestamp"))
        if not rows and time is not None:
            deployment = medium.get("deploymentid", "")
            events, longest = self.events.get(deployment, []), self.longest.get(deployment, timedelta())
            first = bisect_left(events, time - longest, key=itemgetter(0))
            some = events[first : bisect_right(events, time, key=itemgetter(0))]
            rows = [row for _, end, row in some if time <= end]
        rows = rows or []
        facts = _seen(rows)
        for column, names in _ABOUT.items():
            facts[column] = _joined(rows, *names)
        ids = {row.get("eventid") or row.get("sequenceid") for row in rows} - {None}
        return facts | {"event": "; ".join(sorted(map(str, ids))) or None}


def _seen(rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The columns of what observations say is there."""
    kinds = [row.get("observationtype", "animal").lower() for row in rows]
    counts: list[int] = []
    boxes: list[list[Any]] = []
    for kind, row in zip(kinds, rows, strict=True):
        count, sure = _number(row.get("count")), _number(row.get("classificationprobability"))
        counts += [] if count is None or kind == "blank" else [int(count)]
        box = [value for name in _BOX if (value := _number(row.get(name))) is not None]
        if len(box) == len(_BOX):
            known = sure if sure is not None and 0 <= sure <= 1 else None
            boxes.append([_KINDS.get(kind, kind if kind == "blank" else ""), known, *box])
    named = "; ".join(sorted({_KINDS[kind] for kind in kinds if kind in _KINDS}))
    facts: dict[str, Any] = {"detected": named or ("blank" if "blank" in kinds else None)}
    facts |= {"count": sum(counts) if counts else None}
    facts |= {"species": _joined(rows, "scientificname"), "common_name": _joined(rows, "vernacularname")}
    if boxes:
        confidence = max((box[1] for box in boxes if box[1] is not None), default=None)
        facts |= {"detections": len(boxes), "detection_confidence": confidence}
        facts["boxes"] = json.dumps(boxes, ensure_ascii=False)
    return facts


def _joined(rows: Sequence[Mapping[str, str]], *columns: str) -> str | None:
    """All that rows say in these columns, sorted in one text; None where they say nothing."""
    return "; ".join(sorted({row[column] for row in rows for column in columns if column in row})) or None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value - value == 0 else None


def _time(text: str | None) -> datetime | None:
    """A moment; one without a zone counts as UTC."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
