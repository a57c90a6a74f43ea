"""A download of Wildlife Insights as facts for a gallery: images, sequences, deployments and projects as CSV.

Besides what is seen: `deployment`, `location_name`, `latitude`, `longitude`, `taken`, `sequence`, `project`, `age`,
`sex`, `behavior`, `individual`, `cv_confidence`, `bounding_boxes` (as they stand there), `fuzzed` where the position is
coarsened, `licence`, `rights_holder`.

An image has a row for each species in it. In projects of sequences the species are those of its sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from eyespot.formats.imports.packages import ExportPackage
from eyespot.formats.imports.photo_facts import PhotoFacts, Sighting, joined, sighting_facts
from eyespot.types import UsageError

RANKS = ("class", "order", "family", "genus", "species")
_NOBODY = ("no cv result", "blank", "unknown")  # values in place of a name
ANY = "*"  # in place of a project, for images that name none
MOST = 10**9  # individuals in a photo
_ABOUT = {name: name for name in ("age", "sex", "behavior", "cv_confidence", "bounding_boxes", "fuzzed")}
_ABOUT |= {"individual": "individual_id", "sequence": "sequence_id", "licence": "license"}

Row = Mapping[str, str]
Table = dict[tuple[str, str], list[Row]]


def read(place: Path) -> Iterator[PhotoFacts]:
    """Every image of a download, a folder or a zip; `UsageError` for a table that is missing."""
    package = ExportPackage(place.parent if place.suffix.lower() == ".csv" else place)
    tables = {name: package.tables(name) for name in ("images", "sequences", "deployments", "projects")}
    for name in ("images", "deployments"):
        if not tables[name]:
            raise UsageError(f"{place} has no {name}.csv; a download of Wildlife Insights has images and deployments")
    traps, projects = (_by(package, tables[f"{name}s"], f"{name}_id") for name in ("deployment", "project"))
    sequences = _by(package, tables["sequences"], "sequence_id")
    images: dict[tuple[str, str], list[Row]] = {}
    for line, row in package.rows(*tables["images"]):
        if isinstance(row, str) or not ("filename" in row or "location" in row):
            yield PhotoFacts(f"images, line {line}", {}, row if isinstance(row, str) else "has no filename or location")
        else:
            key = row.get("image_id") or row.get("location") or f"{row.get('deployment_id')}/{row['filename']}"
            images.setdefault((row.get("project_id", ""), key), []).append(row)
    names = Counter(_name(rows[0]) for rows in images.values())
    for rows in images.values():
        seen = [*rows, *_of(sequences, rows[0], "sequence_id")]
        (trap,) = (_of(traps, rows[0], "deployment_id") or [{}])[:1]
        (project,) = (_of(projects, rows[0], "project_id") or [{}])[:1]
        try:
            facts = _facts(seen, trap, project)
        except OverflowError:
            yield PhotoFacts(_name(rows[0]), {}, "has a number of objects that no photo shows")
        else:
            yield _photo(rows[0], facts, unique=names[_name(rows[0])] == 1)


def _by(package: ExportPackage, tables: Sequence[str], column: str) -> Table:
    """Rows by their project and a column: two projects of a download may call their cameras alike."""
    found: Table = {}
    for _, row in package.rows(*tables):
        if isinstance(row, dict) and column in row:
            for project in {row.get("project_id", ""), ANY}:
                found.setdefault((project, row[column]), []).append(row)
    return found


def _of(table: Table, image: Row, column: str) -> Sequence[Row]:
    """The rows of an image's project, or of no project, with its value of a column."""
    value = image.get(column, "")
    return table.get((image.get("project_id", ANY), value)) or table.get(("", value)) or ()


def _facts(seen: Sequence[Row], trap: Row, project: Row) -> dict[str, Any]:
    image = seen[0]
    about = {name: joined(seen, column) for name, column in _ABOUT.items()}
    holder = project.get("project_admin_organization") or project.get("project_admin")
    return sighting_facts([one for row in seen if (one := _sighting(row))]) | {
        **about,
        "deployment": image.get("deployment_id"),
        "location_name": trap.get("placename"),
        "latitude": trap.get("latitude"),
        "longitude": trap.get("longitude"),
        "taken": image.get("timestamp"),
        "project": project.get("project_name") or image.get("project_id"),
        "licence": about["licence"] or project.get("image_license"),
        "rights_holder": holder,
        "fuzzed": "true" if _is_true(trap.get("fuzzed") or image.get("fuzzed")) else None,
    }


def _sighting(row: Row) -> Sighting | None:
    """What a row says is there; None where nobody has looked."""
    ranks = [row.get(rank, "") for rank in RANKS]
    ranks = ["" if rank.lower() in _NOBODY else rank for rank in ranks]
    common = row.get("common_name", "")
    if _is_true(row.get("is_blank")) or common.lower() == "blank":
        return Sighting("blank")
    common = "" if common.lower() in _NOBODY else common
    if not any(ranks) and not common:
        return None
    species = f"{ranks[3]} {ranks[4]}" if ranks[3] and ranks[4] else ""
    kind = "person" if species.lower() == "homo sapiens" or common.lower().startswith("human") else "animal"
    return Sighting(
        kind="vehicle" if common.lower() == "vehicle" else kind,
        species=species,
        common_name=common,
        taxonomy=";".join(filter(None, ranks)),
        count=_count(row.get("number_of_objects") or row.get("group_size") or ""),
    )


def _count(text: str) -> int | None:
    """A number of individuals; `OverflowError` for one that no photo shows."""
    count = float(text) if text.replace(".", "", 1).isdecimal() else None
    if count is not None and count > MOST:
        raise OverflowError
    return None if count is None else int(count)


def _is_true(text: str | None) -> bool:
    return (text or "").lower() in ("1", "1.0", "true", "yes")


def _name(row: Row) -> str:
    return row.get("filename") or PurePosixPath(row.get("location", "")).name


def _photo(row: Row, facts: dict[str, Any], unique: bool) -> PhotoFacts:
    """An image by its place in the bucket, its deployment and name, its id, or its name alone."""
    name, location = _name(row), row.get("location", "")
    suffix = PurePosixPath(name).suffix or PurePosixPath(location).suffix or ".jpg"
    in_bucket = location.partition("://")[2].partition("/")[2] or location
    ends = [in_bucket, PurePosixPath(in_bucket).name, f"{row['image_id']}{suffix}" if "image_id" in row else ""]
    in_deployment = f"{row['deployment_id']}/{name}" if "deployment_id" in row else ""
    ends += [in_deployment, name if unique else ""]
    if PurePosixPath(in_bucket).name == name and not unique:
        ends.remove(PurePosixPath(in_bucket).name)
    return PhotoFacts(name if unique else in_deployment or location, facts, elsewhere=tuple(filter(None, ends)))
