"""The history of searches: each person's own, bounded, deleted for good, there after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot.ledger.search_history import RECENT, SearchHistory
from eyespot.types import NothingFound, UsageError


@pytest.fixture
def history(tmp_path: Path) -> Iterator[SearchHistory]:
    with SearchHistory(tmp_path / "history.sqlite") as opened:
        yield opened


def test_searches_are_there_after_a_restart_the_latest_first(tmp_path: Path) -> None:
    with SearchHistory(tmp_path / "history.sqlite") as before:
        for words in ("a", "b", "a"):
            before.record("ada", f"q={words}", words, 7)
    with SearchHistory(tmp_path / "history.sqlite") as after:
        assert [(one.heading, one.address, one.photos) for one in after.recent("ada")] == [
            ("a", "q=a", 7),
            ("b", "q=b", 7),
        ]


def test_each_person_sees_and_changes_their_own_alone(history: SearchHistory) -> None:
    history.record("ada", "q=a", "a", 1)
    (mine,) = history.recent("ada")
    for change in (
        lambda: history.forget("bo", mine.number),
        lambda: history.save("bo", mine.number, "theirs"),
        lambda: history.unsave("bo", mine.number),
    ):
        with pytest.raises(NothingFound):
            change()
    history.clear("bo")

    assert history.recent("bo") == [] and history.recent("ada") == [mine]


def test_a_saved_search_outlives_all_others(history: SearchHistory) -> None:
    history.record("ada", "q=first", "first", 1)
    history.save("ada", history.recent("ada")[0].number, " My\nfirst ")
    for number in range(RECENT + 20):
        history.record("ada", f"q={number}", str(number), 1)
    assert len(history.recent("ada", 1000)) == RECENT + 1
    history.clear("ada")

    assert [(one.name, one.heading) for one in history.recent("ada")] == [("My first", "first")]
    history.unsave("ada", history.saved("ada")[0].number)
    assert history.saved("ada") == [] and len(history.recent("ada")) == 1
    with pytest.raises(UsageError, match="visible"):
        history.save("ada", history.recent("ada")[0].number, "\n")


def test_what_is_deleted_is_on_the_disk_no_more(history: SearchHistory) -> None:
    history.record("ada", "q=something+private", "something private", 1)
    history.clear("ada")
    held = b"".join(file.read_bytes() for file in history.path.parent.iterdir() if file.is_file())

    assert b"private" not in held


def test_whoever_does_not_want_it_is_not_remembered(history: SearchHistory) -> None:
    history.stop("ada")
    history.record("ada", "q=a", "a", 1)
    history.record("bo", "q=a", "a", 1)
    assert (history.recent("ada"), len(history.recent("bo")), history.wanted("ada")) == ([], 1, False)
    history.go_on("ada")
    history.record("ada", "q=a", "a", 1)

    assert len(history.recent("ada")) == 1
