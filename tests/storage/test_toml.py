"""What is written as TOML is read back by Python's own reader, and a list on its line also as JSON."""

from __future__ import annotations

import json
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from eyespot.storage.toml import toml_lines

texts = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = texts | numbers | st.booleans() | st.lists(texts) | st.lists(st.lists(numbers))
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,9}", fullmatch=True)


@given(st.dictionaries(names, values))
def test_every_value_is_read_back(table: dict[str, object]) -> None:
    assert tomllib.loads("\n".join(toml_lines(table))) == table


@given(st.lists(st.lists(numbers)))
def test_a_list_stands_on_one_line_and_is_json(rows: list[list[float]]) -> None:
    (line,) = toml_lines({"fingerprints": rows})

    assert "\n" not in line
    assert json.loads(line.removeprefix("fingerprints = ")) == rows
