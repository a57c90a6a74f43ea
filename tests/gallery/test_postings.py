"""What is stored of posting lists has a limit, and is what was made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.gallery.postings import ENTRY, ArrayStore, KeyList


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30), st.integers(0, 4 * ENTRY))
def test_a_store_never_holds_more_than_its_limit_and_gives_what_was_made(batches: list[list[int]], limit: int) -> None:
    store = ArrayStore(limit)
    for keys in batches:
        found = store.get(keys, lambda lacking: [KeyList(np.full(key, key)) for key in lacking])

        assert [one.keys.tolist() for one in found] == [[key] * key for key in keys]
        assert store.size == sum(ENTRY + array.nbytes for array in store.arrays) <= limit


def test_what_is_needed_again_is_not_made_again_and_what_was_not_needed_for_longest_goes() -> None:
    store, made = ArrayStore(2 * (ENTRY + 8)), list[int]()

    def make(lacking: list[int]) -> list[KeyList]:
        made.extend(lacking)
        return [KeyList(np.array([key])) for key in lacking]

    for key in (1, 2, 1, 3, 1, 2):
        store.get([key], make)

    assert made == [1, 2, 3, 2]


def test_nobody_writes_into_what_others_read() -> None:
    (found,) = ArrayStore(1 << 20).get(["a"], lambda _: [KeyList(np.arange(3))])

    with pytest.raises(ValueError, match="read-only"):
        found.keys[0] = 9
