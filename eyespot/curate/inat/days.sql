-- The day of an observation, in the observer's own time, from texts as sources write them.

CREATE OR REPLACE TEMP MACRO clock_of(t) AS
  TRY_CAST(regexp_extract(t, '^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?') AS TIMESTAMP);

CREATE OR REPLACE TEMP MACRO zone_of(t) AS
  regexp_extract(substr(t, 12), '([+-]\d{2}:?\d{2}|[+-]\d{2}|[Zz]|UTC|GMT)$');

-- Minutes east of UTC; 0 for Z, UTC and no zone
CREATE OR REPLACE TEMP MACRO minutes_of(z) AS CASE WHEN length(z) < 3 OR z[1] NOT IN ('+', '-') THEN 0 ELSE
  (CASE WHEN z[1] = '-' THEN -1 ELSE 1 END) * (60 * CAST(z[2:3] AS INTEGER)
  + COALESCE(TRY_CAST(right(z, 2) AS INTEGER) * CAST(length(z) > 3 AS INTEGER), 0)) END;

CREATE OR REPLACE TEMP MACRO day_of(t, longitude) AS CASE
  WHEN regexp_full_match(t, '\d{4}-\d{2}-\d{2}') THEN TRY_CAST(t AS DATE)
  WHEN zone_of(t) = '' OR minutes_of(zone_of(t)) <> 0 THEN CAST(clock_of(t) AS DATE)
  ELSE CAST(clock_of(t) + to_seconds(CAST(round(COALESCE(longitude, 0) * 240) AS BIGINT)) AS DATE) END;

-- An end may leave out what it shares with the beginning: 2022-05-01T10:00Z/11:00Z; it then is of the same day
CREATE OR REPLACE TEMP MACRO local_day(t, longitude) AS CASE WHEN NOT contains(t, '/') THEN day_of(t, longitude)
  WHEN split_part(t, '/', 2) ~ '^\d{2}:' OR day_of(split_part(t, '/', 2), longitude)
    = day_of(split_part(t, '/', 1), longitude) THEN day_of(split_part(t, '/', 1), longitude) END;

-- Both ends of a span: a year, month, day or moment, and then any of them or what it does not share with the first
CREATE OR REPLACE TEMP MACRO date_fault(t, longitude) AS CASE WHEN t IS NULL OR trim(t) = '' THEN 'no date'
  WHEN local_day(t, longitude) IS NOT NULL THEN NULL
  WHEN regexp_full_match(t, '\d{4}(-\d{2}(-\d{2}([T ].*)?)?)?/(\d{4}|\d{2}(-\d{2}|:.*|T.*)?|\d{4}-.*)')
    OR regexp_full_match(t, '\d{4}(-\d{2})?') THEN 'a date of more than one day'
  ELSE 'a date that cannot be read' END;
