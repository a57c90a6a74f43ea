"""Named lists of photos: made, joined, renamed, found, linked and forgotten, and there after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot.ledger.photo_lists import LONGEST_NAME, ListQuery, PhotoLists
from eyespot.types import NothingFound, UsageError

HERON = ListQuery("d" * 32, "a heron", "q=a+heron")


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[PhotoLists]:
    with PhotoLists(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_a_list_is_there_after_a_restart(tmp_path: Path) -> None:
    with PhotoLists(tmp_path / "ledger.sqlite") as before:
        id = before.make(" Herons\nat dawn ", "ada", ["b", "a", "b"], [HERON]).id
    with PhotoLists(tmp_path / "ledger.sqlite") as after:
        one = after.find("herons AT dawn")
        assert (one.id, one.name, one.maker, one.photos) == (id, "Herons at dawn", "ada", 2)
        assert (after.photos(id), after.queries(id)) == (["b", "a"], [HERON])


def test_photos_come_behind_and_go_and_a_joined_list_has_those_and_queries_of_both(lists: PhotoLists) -> None:
    one, other = lists.make("x", "ada", ["a", "b"]), lists.make("y", "ada", ["b", "d"], [HERON])
    lists.add(one.id, ["b", "c"])
    changed = lists.remove(one.id, ["a", "not there"])
    assert lists.photos(one.id) == ["b", "c"] and changed.changed > one.changed

    lists.join(one.id, other.id)

    assert (lists.photos(one.id), lists.queries(one.id)) == (["b", "c", "d"], [HERON])
    assert lists.photos(other.id) == ["b", "d"]


def test_no_two_lists_have_one_name(lists: PhotoLists) -> None:
    lists.make("Herons", "ada", ["a"])
    other = lists.make("Egrets", "ada", ["a"])
    for wrong in (lambda: lists.make("herons", "bo", []), lambda: lists.set_name(other.id, "HERONS")):
        with pytest.raises(UsageError, match="already"):
            wrong()

    assert lists.set_name(other.id, "egrets").name == "egrets"  # its own name in another case
    assert [one.name for one in lists.all()] == ["egrets", "Herons"]


@pytest.mark.parametrize("name", ["", " \n", "x" * (LONGEST_NAME + 1), "\x00"])
def test_a_name_that_nobody_could_read_is_refused(lists: PhotoLists, name: str) -> None:
    with pytest.raises(UsageError, match="visible"):
        lists.make(name, "ada", ["a"])
    assert lists.all() == []


def test_lists_are_found_by_a_part_of_their_name_or_words(lists: PhotoLists) -> None:
    lists.make("Dawn", "ada", ["a"], [HERON])
    lists.make("Noon", "ada", ["a"])

    assert [[one.name for one in lists.all(part)] for part in ("daw", "HERON", "owl")] == [["Dawn"], ["Dawn"], []]


def test_a_link_leads_to_its_list_until_it_is_taken_back_or_replaced(lists: PhotoLists) -> None:
    one = lists.make("x", "ada", ["a"])
    first = lists.link(one.id)
    assert lists.by_token(first).id == one.id and lists.find(one.id).linked
    assert first.encode() not in b"".join(file.read_bytes() for file in lists.path.parent.iterdir())
    second = lists.link(one.id)
    with pytest.raises(NothingFound):
        lists.by_token(first)
    lists.unlink(one.id)

    assert first != second and not lists.find(one.id).linked
    with pytest.raises(NothingFound):
        lists.by_token(second)


def test_a_deleted_list_leaves_nothing_behind(lists: PhotoLists) -> None:
    one = lists.make("x", "ada", ["a"], [HERON])
    token = lists.link(one.id)
    lists.delete(one.id)
    again = lists.make("x", "ada", ["b"])

    assert (lists.photos(again.id), lists.queries(again.id)) == (["b"], [])
    with pytest.raises(NothingFound):
        lists.by_token(token)
