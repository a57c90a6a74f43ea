"""What is written as TOML is read back by Python's own reader."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from eyespot.storage.toml import toml_text

texts = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
plain = texts | numbers | st.booleans()
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))


@given(st.dictionaries(texts, values))
def test_every_value_is_read_back(table: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(table)) == table


def test_what_is_none_is_left_out() -> None:
    table = {"a": None, "b": {"c": None, "d": 1}, "e": [1, None, {"f": None}]}

    assert tomllib.loads(toml_text(table)) == {"b": {"d": 1}, "e": [1, {}]}
