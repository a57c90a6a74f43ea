"""Which pictures a search may find: a condition over the gallery's facts, such as `year(taken) = 2021`.

A condition comes in SQL, from `checked`, or in a plain form: `after`, `before`, `near`, `label`. Neither can read
files, change settings, or build a value much larger than what goes in, so memory stays bounded although DuckDB's own
limit can be passed; a server that filters for strangers still sets RLIMIT_AS for its process as the last wall.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime

from eyespot.gallery.filters.parsing import name_in_sql, rewritten, text_in_sql
from eyespot.gallery.filters.running import Condition, columns_of, file_masks, kinds_of, mask
from eyespot.types import UsageError

__all__ = [
    "Condition",
    "after",
    "all_of",
    "before",
    "checked",
    "columns_of",
    "file_masks",
    "fold_case",
    "kinds_of",
    "label",
    "mask",
    "near",
    "undated",
]


def checked(expression: str, columns: Sequence[str]) -> Condition:
    """A SQL condition over these columns, parsed and written again from its harmless parts.

    Column names are found in upper or lower case. Raises UsageError in one sentence for everything else.
    """
    return Condition(*rewritten(expression, columns))


# -- conditions in plain forms ------------------------------------------------------------------------------


def after(date: str) -> Condition:
    """Taken at the first moment of this time or later: `2021`, `2021-05`, `2021-05-31` or `2021-05-31T18:02`."""
    return Condition(f"\"taken\" >= TIMESTAMP '{_moment(date)}'", ("taken",))


def before(date: str) -> Condition:
    """Taken before the first moment of this time: `after` 2020 with `before` 2021 is the year 2020."""
    return Condition(f"\"taken\" < TIMESTAMP '{_moment(date)}'", ("taken",))


def undated() -> Condition:
    """Nothing says when it was taken."""
    return Condition('"taken" IS NULL', ("taken",))


def near(latitude: float, longitude: float, km: float) -> Condition:
    """Taken within `km` kilometres of a place, on a sphere of the Earth's mean radius (haversine, 6371.0088 km)."""
    if not (abs(latitude) <= 90 and abs(longitude) <= 180 and 0 <= km < math.inf):
        raise UsageError("a place is LATITUDE,LONGITUDE,KM in degrees and kilometres, such as -33.45,-70.67,25")
    where = {"lat": f"({latitude!r})", "lon": f"({longitude!r})", "km": repr(float(km))}
    return Condition(_NEAR.format(**where), ("latitude", "longitude"))


# The CASE keeps infinities and nonsense of imported tables from sin(), which would end the whole search.
_NEAR = (
    'CASE WHEN "latitude" BETWEEN -90 AND 90 AND "longitude" BETWEEN -360 AND 360 THEN'
    ' 2 * 6371.0088 * asin(sqrt(least(1.0, pow(sin(radians("latitude" - {lat}) / 2), 2)'
    ' + cos(radians({lat})) * cos(radians("latitude")) * pow(sin(radians("longitude" - {lon}) / 2), 2)))) <= {km} END'
)


def fold_case(text: str) -> str:
    """A text as `label` compares it: each letter for itself, as DuckDB's lower does, without Python's final sigma."""
    return text.lower() if text.isascii() else "".join("i" if one == "İ" else one.lower() for one in text)


def label(column: str, value: str) -> Condition:
    """A column holds this value: as a number in a column of numbers, else as text, upper and lower case alike."""
    name = name_in_sql(column)
    as_text = f"lower(CAST({name} AS VARCHAR)) = lower({text_in_sql(value)})"
    if not re.fullmatch(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", value):
        as_number = None
    else:
        same = f"TRY_CAST({name} AS DOUBLE) = {float(value)!r}"
        whole = re.fullmatch(r"[+-]?[0-9]{1,30}", value)  # beyond 2**53 neighbouring whole numbers are one double
        as_number = f"{same} AND TRY_CAST({name} AS HUGEINT) = {int(value)}" if whole else same
    either = (
        as_text if as_number is None else f"CASE WHEN typeof({name}) = 'VARCHAR' THEN {as_text} ELSE {as_number} END"
    )
    return Condition(either, (column,))


def all_of(*conditions: Condition) -> Condition:
    """Every one of these holds; without any, every picture passes."""
    columns = dict.fromkeys(column for condition in conditions for column in condition.columns)
    return Condition(" AND ".join(f"({condition.sql})" for condition in conditions) or "true", tuple(columns))


def _moment(date: str) -> str:
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?)?)?", date):
        try:
            return datetime.fromisoformat(date + "0000-01-01T00:00:00"[len(date) :]).isoformat(" ")
        except ValueError:
            pass  # the form is right and the day does not exist
    raise UsageError(
        f"{date!r} is no date; write 2021, 2021-05, 2021-05-31 or 2021-05-31T18:02, in the camera's local time"
    )
