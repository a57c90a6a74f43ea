"""Filters: what they find, and that nothing but a filter gets through."""

from __future__ import annotations

import math
import operator
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings, strategies as st

from eyespot.gallery.filters import Condition, after, all_of, before, checked, columns_of, label, mask, near
from eyespot.gallery.filters.parsing import sealed
from eyespot.types import EyespotError, UsageError
from tests.examples import examples
from tests.wording import raises

ROWS: list[tuple[str, int, datetime | None, tuple[float | None, float | None], str | None]] = [
    ("chile/heron1.jpg", 4000, datetime(2020, 1, 1), (-33.45, -70.67), "Heron"),
    ("chile/o'gull.jpg", 3000, datetime(2020, 12, 31, 23, 59, 59), (-33.0, -71.6), None),
    ("fiji/reef 100%.png", 0, datetime(2021, 5, 31, 18, 2), (-17.0, 179.9), "reef"),
    ("fiji/reef_2.png", 800, None, (-17.0, -179.9), "REEF"),
    ("alps/ibex.jpg", 4000, datetime(2022, 7, 1), (None, None), None),
    ("pole.jpg", 1, datetime(2022, 7, 2), (90.0, 12.0), "42"),
]


def table(first: int, end: int, **more: Any) -> pa.Table:
    """Some of the rows as the gallery writes them; `more` are further columns."""
    paths, widths, times, places, labels = zip(*ROWS[first:end], strict=True)
    columns: dict[str, Any] = {
        "id": pa.array([f"{number:032x}" for number in range(end - first)]),
        "live": pa.array([True] * len(paths)),
        "roots": pa.array([[0]] * len(paths), pa.list_(pa.int32())),
        "paths": pa.array([[path, "copy.jpg"] for path in paths], pa.list_(pa.string())),
        "size": pa.array([1000] * len(paths), pa.int64()),
        "width": pa.array(widths, pa.int32()),
        "taken": pa.array(times, pa.timestamp("us")),
        "latitude": pa.array([place[0] for place in places], pa.float64()),
        "longitude": pa.array([place[1] for place in places], pa.float64()),
        "label": pa.array(labels, pa.string()),
    }
    return pa.table(columns | more)


def written(file: Path, contents: pa.Table) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(contents, file)
    return file


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three shards in a folder with an awkward name; the last has columns that the others lack."""
    folder = tmp_path_factory.mktemp("gallery") / "it's [1] *?"
    more = {"count": pa.array([1, 2], pa.int64()), "ratio": pa.array([0.5, 2.0])}
    parts = [table(0, 3), table(3, 4), table(4, 6, **more)]
    return [written(folder / f"{number:05d}" / "items.parquet", part) for number, part in enumerate(parts)]


def rows_of(files: list[Path], condition: Condition) -> list[int]:
    return np.flatnonzero(mask(files, condition)).tolist()


def found(files: list[Path], expression: str) -> list[int]:
    return rows_of(files, checked(expression, list(columns_of(files))))


GOOD = {
    "true": [0, 1, 2, 3, 4, 5],
    "false": [],
    "NULL": [],
    "label = 'Heron'": [0],
    "LABEL = 'Heron' -- a comment": [0],
    "label = 'heron' /* another */": [],
    "lower(label) = 'reef'": [2, 3],
    "label != 'Heron'": [2, 3, 5],
    "NOT label = 'Heron'": [2, 3, 5],
    "label IS NULL": [1, 4],
    "label IS NOT NULL AND width > 0": [0, 3, 5],
    "label IN ('Heron', '42')": [0, 5],
    "label NOT IN ('Heron', '42')": [2, 3],
    "label IS DISTINCT FROM 'Heron'": [1, 2, 3, 4, 5],
    "label IS NOT DISTINCT FROM NULL": [1, 4],
    "coalesce(label, 'none') = 'none'": [1, 4],
    "path LIKE 'chile/%'": [0, 1],
    "path NOT LIKE 'chile/%'": [2, 3, 4, 5],
    "path LIKE '%_2%'": [3],
    "path LIKE '%100!%%' ESCAPE '!'": [2],
    "path ILIKE '%HERON%'": [0],
    "path = 'chile/o''gull.jpg'": [1],
    "contains(path, '''')": [1],
    "starts_with(path, 'fiji') OR ends_with(path, 'ibex.jpg')": [2, 3, 4],
    "regexp_matches(path, '[0-9]\\.(jpg|png)$')": [0, 3],
    "path ~ 'alps/.*'": [4],
    "path SIMILAR TO '.*\\.png'": [2, 3],
    "path LIKE '%copy%'": [],
    "substring(path, 1, 4) = 'fiji'": [2, 3],
    "length(trim(label)) = 2": [5],
    "width BETWEEN 1 AND 3000": [1, 3, 5],
    "width NOT BETWEEN 1 AND 3000": [0, 2, 4],
    "width * 2 + 1 >= 8001 AND width % 2 = 0": [0, 4],
    "size / width = 1000": [5],
    "size % width = 0": [5],
    "-width < -3999": [0, 4],
    "abs(latitude) < 20": [2, 3],
    "latitude < 0 AND longitude > 0": [2],
    "width > 1e3": [0, 1, 4],
    "width = 4_000": [0, 4],
    "greatest(width, 3500) = 3500": [1, 2, 3, 5],
    "year(taken) = 2020": [0, 1],
    "date_part('month', taken) IN (5, 7)": [2, 4, 5],
    "extract(year FROM taken) = 2021": [2],
    "month(taken) = 12 OR dayname(taken) = 'Friday'": [1, 4],
    "taken >= '2021-05-31'": [2, 4, 5],
    "taken >= TIMESTAMP '2022-07-02 00:00:00'": [5],
    "taken::DATE = DATE '2020-12-31'": [1],
    "CAST(width AS VARCHAR) = '800'": [3],
    "TRY_CAST(label AS INTEGER) = 42": [5],
    "(width > 1) IS TRUE": [0, 1, 3, 4],
    "count = 2": [5],
    "ratio = 0.5 OR count IS NULL AND ratio IS NULL AND width = 0": [2, 4],
    '"label" = \'Heron\' AND "width" = 4000': [0],
    "((((label = 'Heron'))))": [0],
    "label = 'Heron\u200b' OR label = E'\\x48eron'": [0],
}


@pytest.mark.parametrize("expression", GOOD)
def test_a_filter_finds(shards: list[Path], expression: str) -> None:
    assert found(shards, expression) == GOOD[expression]


def test_rows_come_in_the_order_of_the_files(shards: list[Path]) -> None:
    assert rows_of(shards[::-1], label("label", "Heron")) == [3]
    assert rows_of([shards[2], shards[0], shards[2]], label("label", "42")) == [1, 6]
    assert (mask([], all_of()).shape, columns_of([])) == ((0,), {})


def test_many_shards_keep_their_order_in_many_threads(tmp_path: Path) -> None:
    """Large enough for several row groups and for all threads to work at once."""
    values = np.random.default_rng(0).integers(0, 1000, 300_000)
    files = [tmp_path / f"{number}.parquet" for number in range(8)]
    for file, part in zip(files, np.array_split(values, 8), strict=True):
        pq.write_table(pa.table({"id": part.astype(str), "value": part}), file, row_group_size=5000)
    with_1 = np.char.count(values.astype(str), "1").astype(bool)
    found = mask(files, checked("value % 7 = 3 AND id LIKE '%1%'", ["id", "value"]))
    assert np.array_equal(found, (values % 7 == 3) & with_1)


def test_columns_and_their_types(shards: list[Path], tmp_path: Path) -> None:
    kinds = columns_of(shards)
    assert list(kinds)[:2] == ["path", "id"] and not {"live", "roots", "paths"} & set(kinds)
    seen = {name: kinds[name] for name in ("taken", "width", "count", "label")}
    assert seen == {"taken": "TIMESTAMP", "width": "INTEGER", "count": "BIGINT", "label": "VARCHAR"}
    file = written(tmp_path / "items.parquet", table(0, 2, Path=["a", "b"]))  # it gives way to the path
    assert found([file], "path = 'chile/heron1.jpg'") == [0] and "Path" not in columns_of([file])


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (after("2021"), [2, 4, 5]),
        (after("2022-07"), [4, 5]),
        (after("2022-07-02"), [5]),
        (after("2021-05-31T18:02"), [2, 4, 5]),
        (after("2021-05-31 18:02:01"), [4, 5]),
        (before("2021"), [0, 1]),
        (before("2020"), []),
        (all_of(after("2020"), before("2021")), [0, 1]),
        (all_of(), [0, 1, 2, 3, 4, 5]),
        (near(-33.45, -70.67, 1), [0]),
        (near(-33.45, -70.67, 110), [0, 1]),
        (near(-17.0, 180.0, 11), [2, 3]),  # on both sides of the 180th meridian
        (near(-17.0, -180.0, 11), [2, 3]),
        (near(-17.0, 179.9, 21), [2]),
        (near(-17.0, 179.9, 22), [2, 3]),
        (near(90.0, -168.0, 1), [5]),  # at the pole every longitude is one place
        (near(0, 0, 20016), [0, 1, 2, 3, 5]),
        (near(-33.45, -70.67, 0), [0]),
        (label("label", "REEF"), [2, 3]),
        (label("Label", "heron"), [0]),
        (label("label", "42"), [5]),
        (label("label", "42.0"), []),  # a text is a text
        (label("label", "' OR true --"), []),
        (label("count", "2"), [5]),
        (label("count", "2.0"), [5]),
        (label("count", "+2"), [5]),
        (label("count", "two"), []),
        (label("ratio", "0.50"), [4]),
        (label("ratio", "5e-1"), [4]),
        (label("ratio", "1"), []),
        (label("width", "4000"), [0, 4]),
        (label("taken", "2022-07-01 00:00:00"), [4]),
        (label("path", "chile/o'gull.jpg"), [1]),
    ],
)
def test_plain_forms_find(shards: list[Path], condition: Condition, rows: list[int]) -> None:
    assert rows_of(shards, condition) == rows


DATES = ["", "21", "2021-13", "2021-02-30", "yesterday", "2021-05-31T18:02+02:00", "0000", "٢٠٢١", "2021'"]
PLACES = [(91, 0, 1), (0, 181, 1), (0, 0, -1), (math.nan, 0, 1), (0, 0, math.inf), (0, 0, math.nan)]


@pytest.mark.parametrize(
    "make",
    [*(partial(after, date) for date in DATES), *(partial(near, *place) for place in PLACES)],
    ids=[*DATES, *map(str, PLACES)],
)
def test_what_is_no_date_or_place(make: Callable[[], Condition]) -> None:
    with raises(UsageError):
        make()


@pytest.mark.parametrize("column", ["labl", "live", "roots", "paths"])
def test_an_unknown_label_names_the_columns_that_are_not_hidden(shards: list[Path], column: str) -> None:
    with raises(UsageError):
        mask(shards, label(column, "heron"))


def test_infinite_and_missing_places_are_nowhere_and_the_antipode_is(tmp_path: Path) -> None:
    wrong = [math.inf, -math.inf, math.nan, 1000.0, None]
    columns = {"latitude": wrong + [0.0] * 5, "longitude": [0.0] * 5 + wrong}
    file = written(tmp_path / "items.parquet", pa.table(columns))
    assert not mask([file], near(0, 0, 30_000)).any()
    # Rounding takes the haversine of these two a little above 1
    file = written(tmp_path / "items.parquet", pa.table({"latitude": [1.83], "longitude": [33.3]}))
    assert [mask([file], near(-1.83, -146.7, km)).tolist() for km in (20_016, 20_015)] == [[True], [False]]


def test_whole_numbers_beyond_double_precision_are_told_apart(tmp_path: Path) -> None:
    file = written(tmp_path / "items.parquet", pa.table({"taxon": pa.array([2**53, 2**53 + 1], pa.int64())}))
    assert rows_of([file], label("taxon", str(2**53 + 1))) == [1]


ODD_NAMES = ["order", "group", "SELECT", "my label", 'a "quoted" one', "it's", "🦆", "Größe", "a.b", "42", "%s", "{0}"]
OF_DUCKDB = ["filename", "file_row_number", "file_index", "items", "_row", "current_user", "hit"]


@pytest.mark.parametrize("name", [*ODD_NAMES, *OF_DUCKDB])
def test_columns_with_odd_names(tmp_path: Path, name: str) -> None:
    file = written(tmp_path / "items.parquet", table(0, 2, **{name: ["gull", "heron"]}))
    quoted = '"' + name.replace('"', '""') + '"'
    assert found([file], f"{quoted} = 'heron'") == [1]
    assert rows_of([file], label(name, "Heron")) == [1]


RELATIONS = (operator.eq, operator.ne, operator.lt, operator.gt, operator.le, operator.ge)
SIGNS: dict[str, Callable[[Any, Any], bool]] = dict(zip(("=", "<>", "<", ">", "<=", ">="), RELATIONS, strict=True))
texts = st.one_of(st.none(), st.text("ab'\\\"é%_-;\n", max_size=3))
measures = st.one_of(st.none(), st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(-5, 5).map(float))
comparisons = st.one_of(
    st.tuples(st.sampled_from(["number", "measure"]), st.sampled_from(sorted(SIGNS)), st.integers(-5, 5)),
    st.tuples(st.just("text"), st.sampled_from(["=", "<>"]), st.text("ab'\\\"é%_-;\n", max_size=3)),
)
trees: st.SearchStrategy[Any] = st.recursive(
    comparisons,
    lambda inner: st.one_of(st.tuples(st.just("NOT"), inner), st.tuples(st.sampled_from(["AND", "OR"]), inner, inner)),
    max_leaves=6,
)


def spoken(tree: Any) -> str:
    """The tree as a user would type it."""
    if tree[0] == "NOT":
        return f"NOT ({spoken(tree[1])})"
    if tree[0] in ("AND", "OR"):
        return f"({spoken(tree[1])}) {tree[0]} ({spoken(tree[2])})"
    value = str(tree[2]) if tree[0] != "text" else "'" + tree[2].replace("'", "''") + "'"
    return f"{tree[0]} {tree[1]} {value}"


def true_of(tree: Any, row: dict[str, Any]) -> bool | None:
    """SQL's logic of three values: None is not known."""
    if tree[0] == "NOT":
        inner = true_of(tree[1], row)
        return None if inner is None else not inner
    if tree[0] in ("AND", "OR"):
        both = {true_of(tree[1], row), true_of(tree[2], row)}
        decisive = tree[0] == "OR"
        return decisive if decisive in both else None if None in both else not decisive
    value = row[tree[0]]
    return None if value is None or value != value else SIGNS[tree[1]](value, tree[2])


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(-5, 5)), measures, texts), min_size=1, max_size=8), trees)
@example([(None, math.nan, None), (None, 0.0, None)], ("OR", ("measure", "<>", 0.0), ("text", "=", "")))
def test_a_mask_is_what_python_says(tmp_path_factory: pytest.TempPathFactory, rows: list[Any], tree: Any) -> None:
    """NaN is missing, whether the file has statistics (which leave it out) or none."""
    types = {"number": pa.int64(), "measure": pa.float64(), "text": pa.string()}
    each = dict(zip(types, zip(*rows, strict=True), strict=True))
    contents = pa.table({name: pa.array(values, types[name], from_pandas=False) for name, values in each.items()})
    expected = [true_of(tree, dict(zip(types, row, strict=True))) is True for row in rows]
    for statistics in (True, False):
        file = tmp_path_factory.mktemp("law") / "items.parquet"
        pq.write_table(contents, file, row_group_size=2, write_statistics=statistics)
        assert mask([file], checked(spoken(tree), list(types))).tolist() == expected


@pytest.mark.parametrize("column", ["number", "measure"])
@pytest.mark.parametrize(
    "expression", ["{0} > 10", "12.5 < {0} AND other = 0", "{0} BETWEEN 10.5 AND 11 AND NOT {0} > 15"]
)
def test_rows_that_statistics_rule_out_are_not_read(tmp_path: Path, column: str, expression: str) -> None:
    """The bytes of the first group are damaged."""
    values = np.arange(20)
    contents = pa.table({column: values.astype("f8" if column == "measure" else "i8"), "other": np.zeros(20)})
    pq.write_table(contents, file := tmp_path / "items.parquet", row_group_size=10, use_dictionary=False)
    first, data = pq.read_metadata(file).row_group(0).column(0), bytearray(file.read_bytes())
    at = first.data_page_offset
    data[at : at + first.total_compressed_size] = bytes(first.total_compressed_size)
    file.write_bytes(data)
    columns = contents.column_names
    assert mask([file], checked(expression.format(column), columns))[12:].any() == ("BETWEEN" not in expression)
    with pytest.raises(EyespotError):
        mask([file], checked(f"{column} = 5", columns))


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=20), st.lists(st.text(max_size=6), min_size=1, max_size=5))
def test_label_is_equal_text(tmp_path_factory: pytest.TempPathFactory, wanted: str, others: list[str]) -> None:
    rows = [text.replace("\0", "") for text in (wanted, *others)]
    file = written(tmp_path_factory.mktemp("law") / "items.parquet", pa.table({"text": rows}))
    flags = mask([file], label("text", rows[0]))
    assert flags[0]
    assert not any(flag for flag, text in zip(flags, rows, strict=True) if len(text) != len(rows[0]) and text.isascii())


@pytest.mark.parametrize(
    "expression",
    [
        "taken > 'yesterday'",
        "year(label) = 2020",
        "regexp_matches(path, '(')",
        "date_part('era of birds', taken) = 1",
        "label",
    ],
)
def test_a_filter_that_does_not_fit_the_data(shards: list[Path], expression: str) -> None:
    with raises(UsageError):
        found(shards, expression)


@pytest.mark.long
def test_a_slow_filter_is_stopped(tmp_path: Path) -> None:
    file = written(tmp_path / "items.parquet", pa.table({"text": [f"{n}{'ab' * 40}" for n in range(100_000)]}))
    slow = checked(" OR ".join(f"regexp_matches(text, '(a|b){{{n}}}c')" for n in range(2, 40)), ["text"])
    with raises(UsageError):
        mask([file], slow, seconds=0.05)


ENDLESS = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
from eyespot.gallery.filters import checked, mask
slow = checked(" OR ".join(f"regexp_matches(text, '(a|b){{{n}}}c')" for n in range(2, 40)), ["text"])
mask([Path(sys.argv[1])], slow, progress=lambda what, *_: print(what, flush=True))
print("ended by itself")
"""


@pytest.mark.long
def test_ctrl_c_ends_a_slow_filter(tmp_path: Path) -> None:
    file = written(tmp_path / "items.parquet", pa.table({"text": [f"{n}{'ab' * 40}" for n in range(1_000_000)]}))
    line = [sys.executable, "-c", ENDLESS, str(file)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "filtering\n"
        child.send_signal(signal.SIGINT)
        out, complaints = child.communicate(timeout=120)
    assert "KeyboardInterrupt" in complaints and "ended by itself" not in out


@pytest.mark.parametrize("name", ["file_index", "File_Row_Number"])
def test_a_column_may_have_the_name_of_a_number_of_rows(tmp_path: Path, name: str) -> None:
    files = [written(tmp_path / f"{n}.parquet", pa.table({name: [7, n, 7], "x": [n, n, 3]})) for n in range(2)]
    assert mask(files, checked(f'"{name}" = 7 AND x = 3', [name, "x"])).tolist() == [False, False, True] * 2


def test_a_missing_or_broken_file_is_not_the_filters_fault(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    for name in ("broken", "missing"):
        with raises(EyespotError):
            mask([tmp_path / f"{name}.parquet"], all_of())


def test_whoever_got_past_the_parser_cannot_open_the_connection_again() -> None:
    duckdb = pytest.importorskip("duckdb")
    with sealed() as connection:
        for statement in ("SET memory_limit = '8GB'", "SET enable_external_access = true", "RESET threads"):
            with pytest.raises(duckdb.Error, match=r"locked|external access"):
                connection.execute(statement)


MORE_THAN_A_CONDITION = """
1=1) LIMIT 1 --
true) LIMIT (1
1=1); SELECT 1; --
true); DROP TABLE items; SELECT 1 FROM items WHERE (true
true) ORDER BY (1
true) UNION SELECT 1 FROM items WHERE (true
true) USING SAMPLE (1
--
/*
"""
OTHER_TABLES_FILES_AND_SETTINGS = """
(SELECT true)
id IN (SELECT id FROM items)
(WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT max(x) FROM r) > 0
(FROM '/etc/passwd')
(COPY items TO '/tmp/x')
true); ATTACH '/tmp/x.db' --
current_date > taken
"""
LARGE_VALUES = """
len(range(3000000000)) > 0
label || label = 'x'
unnest([1, 2]) = 1
[1, 2][1] = 1
[x FOR x IN [1, 2]] IS NULL
list_transform([1], lambda x: x) IS NULL
{'a': label} IS NULL
MAP {1: 2} IS NULL
(label, id) = ('a', 'b')
label[1:2] = 'x'
label ->> 'x' = 'y'
20! > 1
~width = 1
"""
AGGREGATES_WINDOWS_AND_ODD_CALLS = """
count(*) > 0
row_number() OVER () = 1
lower(DISTINCT label) = 'x'
lower(label ORDER BY id) = 'x'
lower(label) FILTER (WHERE true) = 'x'
lower(x := label) = 'x'
system.main.lower(label) = 'x'
label.lower() = 'x'
lower(label, label) = 'x'
regexp_matches(path, label)
regexp_matches(path, 'a', label)
grouping(label) = 0
try(label = 'x')
if(true, true, false)
label COLLATE NOCASE = 'x'
taken AT TIME ZONE 'UTC' > '2020-01-01'
taken > '2020-01-01'::TIMESTAMP + INTERVAL 3 DAY
"""
ODD_CASTS = """
label::VARCHAR[] IS NULL
label::JSON IS NULL
label::main.VARCHAR IS NULL
label::DECIMAL(38, 37) IS NULL
label::TIMESTAMP WITH TIME ZONE IS NULL
"""
COLUMNS_AND_REFERENCES = """
*
COLUMNS('.*') = 'x'
items.*
items.label = 'x'
live
paths IS NULL
rowid = 1
#1 = 1
? = 1
$name = 1
@variable = 1
DEFAULT
"""
NOT_WHAT_THEY_SEEM = [
    "",
    "true\n) -- \n LIMIT 1",
    "label = ‘heron’",
    "label\u00a0＝ 'heron'",
    "label == ",
    "x'AB' = 'x'",
    "label = '\0'",
    "label = '\ud800'",
    "1" * 41 + " = 1",
    "label = '" + "x" * 2000 + "'",
    "(" * 800 + "true" + ")" * 800,
    "NOT " * 300 + "true",
    "- " * 900 + "width = 1",
    "+".join(["width"] * 300) + " = 1",
    "lower(" * 60 + "label" + ")" * 60 + " = 'x'",
    "true) GROUP BY (" + "- " * 900 + "1",
    "label" + "::VARCHAR" * 100 + " = 'x'",
]
FUNCTIONS = """read_text getenv current_setting getvariable write_log pg_sleep random now nextval range repeat lpad
concat replace regexp_replace format printf bar list_value"""
LINES = MORE_THAN_A_CONDITION + OTHER_TABLES_FILES_AND_SETTINGS + LARGE_VALUES + AGGREGATES_WINDOWS_AND_ODD_CALLS
LINES += ODD_CASTS + COLUMNS_AND_REFERENCES + "\n".join(f"{name}(label) = 'x'" for name in FUNCTIONS.split())


@pytest.mark.parametrize("attack", [*NOT_WHAT_THEY_SEEM, *filter(None, LINES.splitlines())])
def test_what_is_no_filter_is_refused_in_one_sentence(attack: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(attack, ["id", "path", "width", "taken", "label"])
    assert "\n" not in str(caught.value)


def test_what_the_parser_forgets_never_runs() -> None:
    """A window that nothing uses leaves no trace in the parsed statement, so it cannot be refused."""
    assert checked("false) WINDOW w AS (ORDER BY nonsense", ["label"]) == Condition("false", ())


@pytest.mark.parametrize(
    "expression",
    [
        "labl = 'x'",
        "repeat('x', 3) = 'x'",
        'label = "heron"',
        "true) LIMIT (1",
        "CASE WHEN true THEN true END",
        "substring(label) = 'x'",
    ],
)
def test_a_refusal_says_the_way_out(expression: str) -> None:
    with raises(UsageError):
        checked(expression, ["id", "label"])


@pytest.mark.long
@settings(max_examples=examples(200), deadline=None)
@given(st.text("abdeilnrw'\"()[]{}<>=!~|,;:.*+-/%$?#@\\ \n\t10", max_size=40))
def test_random_text_is_a_filter_or_refused(expression: str) -> None:
    try:
        condition = checked(expression, ["label", "id"])
    except UsageError as refused:
        assert "\n" not in str(refused)
    else:
        assert set(condition.columns) <= {"label", "id"}
