"""Nothing but a filter gets through: everything else is refused in one sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.gallery.filters import Condition, checked
from eyespot.types import UsageError
from tests.examples import examples

ATTACKS = [
    # more than a condition
    "1=1) LIMIT 1 --",
    "true) LIMIT (1",
    "1=1); SELECT 1; --",
    "true); DROP TABLE items; SELECT 1 FROM items WHERE (true",
    "true) GROUP BY ALL HAVING (true",
    "true) GROUP BY (1",
    "true) ORDER BY (1",
    "true) QUALIFY (true",
    "true) UNION SELECT 1 FROM items WHERE (true",
    "true) USING SAMPLE (1",
    "true\n) -- \n LIMIT 1",
    "true; true",
    ") (",
    "",
    "   ",
    "--",
    "/*",
    # other tables, files and settings
    "(SELECT true)",
    "EXISTS (SELECT 1)",
    "id IN (SELECT id FROM items)",
    "id = ANY (SELECT 1)",
    "(WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT max(x) FROM r) > 0",
    "(SELECT count(*) FROM read_text('/etc/passwd')) > 0",
    "(FROM '/etc/passwd')",
    "(COPY items TO '/tmp/x')",
    "ATTACH '/tmp/x.db'",
    "true); ATTACH '/tmp/x.db' --",
    "true); COPY items TO '/tmp/x.csv' --",
    "true); INSTALL httpfs; --",
    "true); SET memory_limit = '100GB'; --",
    "(PIVOT items ON label)",
    "read_text('/etc/passwd') IS NULL",
    "getenv('HOME') = 'x'",
    "current_setting('memory_limit') = 'x'",
    "write_log('x') IS NULL",
    "pg_sleep(10)",
    "random() > 0.5",
    "now() > taken",
    "current_date > taken",
    "current_user = 'x'",
    "version() = 'x'",
    "nextval('x') = 1",
    "in_search_path('x', 'y')",
    # large values
    "len(range(3000000000)) > 0",
    "length(repeat('x', 1000000000)) > 0",
    "length(lpad('x', 1000000000, 'y')) > 0",
    "length(rpad('x', 1000000000, 'y')) > 0",
    "label || label = 'x'",
    "concat(label, label) = 'x'",
    "replace(label, 'a', 'aaaaaaaaaaaa') = 'x'",
    "regexp_replace(label, 'a', 'aaaaaaaaaa') = 'x'",
    "format('{:1000000000}', 1) = 'x'",
    "printf('%1000000000d', 1) = 'x'",
    "bar(1, 0, 1, 1000000000) = 'x'",
    "generate_series(1, 10) IS NULL",
    "unnest([1, 2]) = 1",
    "list_value(1) IS NULL",
    "[1, 2][1] = 1",
    "[x FOR x IN [1, 2]] IS NULL",
    "list_transform([1], lambda x: x) IS NULL",
    "(x -> x + 1) IS NULL",
    "{'a': 1}.a = 1",
    "{'a': label} IS NULL",
    "MAP {1: 2} IS NULL",
    "(label, id) = ('a', 'b')",
    "row(1, 2) IS NULL",
    "label[1:2] = 'x'",
    "label[1] = 'x'",
    "label ->> 'x' = 'y'",
    "string_split(label, 'x') IS NULL",
    "20! > 1",
    "2 ** 100 > 1",
    "2 ^ 100 > 1",
    "1 << 60 > 1",
    "~width = 1",
    # aggregates, windows and odd calls
    "count(*) > 0",
    "sum(width) > 0",
    "row_number() OVER () = 1",
    "sum(width) OVER (ORDER BY id) > 1",
    "lower(DISTINCT label) = 'x'",
    "lower(label ORDER BY id) = 'x'",
    "lower(label) FILTER (WHERE true) = 'x'",
    "lower(x := label) = 'x'",
    "system.main.lower(label) = 'x'",
    "main.lower(label) = 'x'",
    "label.lower() = 'x'",
    "lower() = 'x'",
    "lower(label, label) = 'x'",
    "regexp_matches(path, label)",
    "regexp_matches(path, 'a', label)",
    "grouping(label) = 0",
    "try(label = 'x')",
    "CASE WHEN true THEN true END",
    "if(true, true, false)",
    "label COLLATE NOCASE = 'x'",
    "taken AT TIME ZONE 'UTC' > '2020-01-01'",
    "taken > '2020-01-01'::TIMESTAMP + INTERVAL 3 DAY",
    # odd casts
    "label::VARCHAR[] IS NULL",
    "label::STRUCT(a INT) IS NULL",
    "label::MAP(INT, INT) IS NULL",
    "label::JSON IS NULL",
    "label::BLOB IS NULL",
    "label::BIT IS NULL",
    "label::ENUM('x') IS NULL",
    "label::anything IS NULL",
    "label::main.VARCHAR IS NULL",
    "label::regclass IS NULL",
    "label::DECIMAL(38, 37) IS NULL",
    "label::TIMESTAMP WITH TIME ZONE IS NULL",
    "INTERVAL '3 days' IS NULL",
    # columns and references
    "*",
    "columns(*)",
    "COLUMNS('.*') = 'x'",
    "items.*",
    "items.label = 'x'",
    "main.items.label = 'x'",
    "items IS NULL",
    "live",
    "roots IS NULL",
    "paths IS NULL",
    "rowid = 1",
    "filename = 'x'",
    "file_row_number = 1",
    "#1 = 1",
    "? = 1",
    "$1 = 1",
    "$name = 1",
    "@variable = 1",
    "getvariable('x') = 1",
    "DEFAULT",
    # texts that are not what they seem
    'label = "heron"',
    "label = ‘heron’",
    "label\u00a0＝ 'heron'",
    "ｌabel = 'heron'",
    "label = 'her",
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


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: ascii(attack[:40]))
def test_what_is_no_filter_is_refused_in_one_sentence(attack: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(attack, ["id", "path", "width", "taken", "label"])
    assert "\n" not in str(caught.value)


def test_what_the_parser_forgets_never_runs() -> None:
    """A window that nothing uses leaves no trace in the parsed statement, so it cannot be refused."""
    assert checked("false) WINDOW w AS (ORDER BY nonsense", ["label"]) == Condition("false", ())


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("labl = 'x'", "no column 'labl'; did you mean 'label'? there are: id, label"),
        ("repeat('x', 3) = 'x'", "repeat is not allowed in a filter; there are: abs, "),
        ("label == ", "the filter cannot be read: syntax error at or near"),
        ('label = "heron"', "no column 'heron'; there are: id, label (text goes in 'single quotes')"),
        ("true) LIMIT (1", "a filter is one condition, such as label = 'heron'"),
        ("CASE WHEN true THEN true END", "case is not allowed in a filter; a filter is made of columns"),
        ("substring(label) = 'x'", "substring takes 2 to 3 arguments, not 1"),
    ],
)
def test_a_refusal_says_the_way_out(expression: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
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
