"""The local day of an observation, of dates as exports, Darwin Core and Camtrap DP write them.

A date alone is the observer's. A time counts on the day of its own UTC offset; a time in UTC (`Z`, `+00:00`, `UTC`) is
first converted to the mean solar time of its longitude, or evenings in America would count as the next day.
"""

from __future__ import annotations

from datetime import date

from eyespot.curate.inat.tables import Tables, quoted

NO_DATE, BAD_DATE, LONG_DATE = "no date", "a date that cannot be read", "a date of more than one day"

_STAMP = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
_ZONE = r"([+-]\d{2}:?\d{2}|[+-]\d{2}|[Zz]|UTC|GMT)$"
# both ends of a span: a year, month, day or moment, and then any of them or what it does not share with the first
_SPAN = r"\d{4}(-\d{2}(-\d{2}([T ].*)?)?)?/(\d{4}|\d{2}(-\d{2}|:.*|T.*)?|\d{4}-.*)"

MACROS = (
    rf"CREATE OR REPLACE TEMP MACRO clock_of(t) AS TRY_CAST(regexp_extract(t, '{_STAMP}') AS TIMESTAMP)",
    rf"CREATE OR REPLACE TEMP MACRO zone_of(t) AS regexp_extract(substr(t, 12), '{_ZONE}')",
    # minutes east of UTC; 0 for Z, UTC and no zone
    """CREATE OR REPLACE TEMP MACRO minutes_of(z) AS CASE WHEN length(z) < 3 OR z[1] NOT IN ('+', '-') THEN 0 ELSE
        (CASE WHEN z[1] = '-' THEN -1 ELSE 1 END) * (60 * CAST(z[2:3] AS INTEGER)
        + COALESCE(TRY_CAST(right(z, 2) AS INTEGER) * CAST(length(z) > 3 AS INTEGER), 0)) END""",
    "CREATE OR REPLACE TEMP MACRO utc_of(t) AS clock_of(t) - to_minutes(minutes_of(zone_of(t)))",
    """CREATE OR REPLACE TEMP MACRO day_of(t, longitude) AS CASE
        WHEN regexp_full_match(t, '\\d{4}-\\d{2}-\\d{2}') THEN TRY_CAST(t AS DATE)
        WHEN zone_of(t) = '' OR minutes_of(zone_of(t)) <> 0 THEN CAST(clock_of(t) AS DATE)
        ELSE CAST(clock_of(t) + to_seconds(CAST(round(COALESCE(longitude, 0) * 240) AS BIGINT)) AS DATE) END""",
    # an end may leave out what it shares with the beginning: 2022-05-01T10:00Z/11:00Z; it then is of the same day
    """CREATE OR REPLACE TEMP MACRO local_day(t, longitude) AS CASE WHEN NOT contains(t, '/') THEN day_of(t, longitude)
        WHEN split_part(t, '/', 2) ~ '^\\d{2}:' OR day_of(split_part(t, '/', 2), longitude)
            = day_of(split_part(t, '/', 1), longitude) THEN day_of(split_part(t, '/', 1), longitude) END""",
    f"""CREATE OR REPLACE TEMP MACRO date_fault(t, longitude) AS CASE WHEN t IS NULL OR trim(t) = '' THEN '{NO_DATE}'
        WHEN local_day(t, longitude) IS NOT NULL THEN NULL
        WHEN regexp_full_match(t, '{_SPAN}') OR regexp_full_match(t, '\\d{{4}}(-\\d{{2}})?') THEN '{LONG_DATE}'
        ELSE '{BAD_DATE}' END""",
)


def know_days(tables: Tables) -> None:
    """Make `local_day(text, longitude)` and `date_fault(text, longitude)` known to SQL."""
    for macro in MACROS:
        tables.run(macro)


def local_day(tables: Tables, text: str, longitude: float) -> date | str:
    """The day of a date at a longitude, or why there is none."""
    arguments = f"{quoted(text)}, CAST({longitude} AS DOUBLE)"
    ((day, fault),) = tables.rows(f"SELECT local_day({arguments}), date_fault({arguments})")
    return fault or day  # type: ignore[no-any-return]
