"""Nothing but a filter gets through: everything else is refused in one sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery.filters import Condition, checked
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises

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
