"""A team at one list: shares and leases, what counts for all, the tenth labelled twice, groups, and who may settle."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.curate.annotate import agreement, auditing, export, shared_list
from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.progress import TEAM, Descent, descent, standing
from eyespot.curate.annotate.team_store import OWN_DISPUTES, Unit, is_twice, write_flags
from eyespot.curate.inat.licences import PHOTOS, listed
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds.annotation import desk

Q = "q"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[AnnotationStore]:
    """The query `q` over 300 photos, of which the first ten are relevant."""
    with desk(tmp_path, 300, visible="yes", feasible="yes", of_interest="yes") as made:
        yield made


def truth(image: str) -> str:
    return "y" if int(image) < 10 else "n"


def unmarked(at: AnnotationStore, who: str) -> list[str]:
    judgements = at.last_judgements(Q, who)
    return [photo.image for photo in shared_list.photos_of(at, Q, who) if photo.image not in judgements]


def work(at: AnnotationStore, who: str) -> int:
    """Label what is handed out until there is no more."""
    marked = 0
    while True:
        while images := unmarked(at, who)[:6]:
            at.mark(Q, who, {image: truth(image) for image in images})
            marked += len(images)
        if not shared_list.hand_out(at, Q, who):
            return marked


def wait(at: AnnotationStore, seconds: int) -> None:
    """Let so much time pass for what is handed out."""
    with closing(sqlite3.connect(at.judgements.path)) as ledger, ledger:
        ledger.execute("UPDATE list_leases SET at = at - ?", (seconds,))


def lapsed(at: AnnotationStore) -> list[str]:
    return [one.image for one in at.team.leases(Q) if one.lapsed]


def team_of(at: AnnotationStore) -> export.Labelled:
    return export.labelled(at, Q)


def test_two_finish_one_list_and_label_only_a_tenth_twice(at: AnnotationStore) -> None:
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda who: work(at, who), ("ada", "bo")))
    found = team_of(at)
    twice = shared_list.labelled_twice(at, Q, found.marks)

    assert found.team is not None and found.team.who == TEAM
    assert (found.team.descent.stopped_at, found.team.relevant) == (110, 10)
    assert all(standing(at, Q, who).descent.stopped_at is None for who in ("ada", "bo"))
    assert twice is not None and twice["photos"] == twice["labelled"] > 0
    both = sum(image in found.marks["ada"] and image in found.marks["bo"] for image in found.labels)
    assert sum(counts) == len(found.labels) + both and len(found.labels) < 110 + 3 * 24
    assert twice["agreement"]["krippendorff_alpha"].observed == 1


def test_one_who_works_alone_is_held_up_by_no_second_label(at: AnnotationStore) -> None:
    """And what others label completes the list, though nobody has finished it."""
    work(at, "ada")
    found = team_of(at)
    twice = shared_list.labelled_twice(at, Q, found.marks)
    assert found.together is not None and found.together.stopped
    assert twice is not None and twice["labelled"] == 0 < twice["photos"]

    at.mark(Q, "bo", {str(n): truth(str(n)) for n in range(300) if str(n) not in found.labels})
    whole = team_of(at)
    assert whole.team is not None and whole.team.exhausted and whole.faults == []


def test_what_a_killed_client_held_goes_to_the_others_and_its_marks_stay(at: AnnotationStore) -> None:
    shared_list.hand_out(at, Q, "ada")
    first = unmarked(at, "ada")
    at.mark(Q, "ada", {image: truth(image) for image in first[:5]})
    wait(at, 1000)
    work(at, "bo")

    assert set(first[5:]) <= at.last_judgements(Q, "bo").keys() and unmarked(at, "ada") == []
    assert len(at.last_judgements(Q, "ada")) == 5 and team_of(at).faults == ["no audit of the rest"]


def test_a_clock_that_goes_back_locks_no_photo(at: AnnotationStore) -> None:
    shared_list.hand_out(at, Q, "ada")
    before = unmarked(at, "ada")
    wait(at, -86_400)
    assert lapsed(at) == before
    at.team.renew(Q, "ada", ())  # who is at work holds them again
    assert lapsed(at) == [] and unmarked(at, "ada") == before


def test_a_photo_is_skipped_once_a_page_that_came_later_is_labelled(at: AnnotationStore) -> None:
    shared_list.hand_out(at, Q, "ada")
    shared_list.hand_out(at, Q, "ada", most=10)
    first, *rest = unmarked(at, "ada")
    skipped = []
    for count in (23, 24):
        at.mark(Q, "ada", {image: truth(image) for image in rest[:count]})
        at.team.renew(Q, "ada", at.last_judgements(Q, "ada"))
        skipped.append(lapsed(at))

    assert skipped == [[], [first]] and first in unmarked(at, "ada")


def test_a_burst_that_is_marked_at_once_skips_nothing(at: AnnotationStore) -> None:
    """24 frames behind one tile are one look: what was open before them stays with whoever holds it."""
    groups = [["0"], [str(n) for n in range(1, 31)], *([str(n)] for n in range(31, 300))]
    for _ in range(2):
        shared_list.hand_out(at, Q, "ada", groups)
    skipped = []
    for some in (groups[1], *groups[2:25]):
        mark_group(at, "ada", some, "n")
        shared_list.renew(at, Q, "ada", at.last_judgements(Q, "ada"))
        skipped.append(lapsed(at))

    assert skipped == [[]] * 23 + [["0"]]


STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 9), st.booleans()), max_size=12)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, sizes=st.lists(st.integers(1, 4), min_size=1, max_size=8), number=st.uuids())
def test_whoever_asks_in_whatever_order_no_photo_goes_to_too_many(
    at: AnnotationStore, steps: list[tuple[str, int, bool]], sizes: list[int], number: UUID
) -> None:
    """Of each unit as many people hold or have labelled a photo as are to label it, and nobody holds half a unit."""
    units = [Unit(tuple(f"{place}-{each}" for each in range(size)), 1 + place % 2) for place, size in enumerate(sizes)]
    query, labelled = str(number), set[tuple[str, str]]()
    at.team.forget(query)  # of an earlier example with the same number
    for who, most, works in steps:
        at.team.hand_out(query, who, units, labelled, most)
        held = {(one.image, one.person) for one in at.team.leases(query)}
        if works:
            labelled |= {pair for pair in held if pair[1] == who}
        for unit in units:
            people = [{person for image, person in held | labelled if image == each} for each in unit.images]
            assert all(one == people[0] and len(one) <= unit.people for one in people)


def test_the_tenth_is_a_tenth_and_does_not_change_as_the_list_grows() -> None:
    chosen = [image for image in map(str, range(20_000)) if is_twice("seed", image)]
    assert len(chosen) == pytest.approx(2000, abs=150) and chosen != [*map(str, range(2000))]
    assert chosen == [image for image in map(str, range(20_000)) if is_twice("seed", image)]


def test_the_next_audit_of_a_shared_list_leaves_out_what_anybody_labelled(at: AnnotationStore) -> None:
    for who in ("ada", "bo"):
        shared_list.hand_out(at, Q, who)
        at.mark(Q, who, {image: truth(image) for image in unmarked(at, who)})
    drawn = auditing.draw(at, Q, "ada")

    assert not {photo.image for photo in drawn.photos} & team_of(at).labels.keys()
    assert auditing.standing(at, Q) is not None and drawn.rest == 300 - len(team_of(at).labels)


def mark_group(at: AnnotationStore, who: str, images: list[str], mark: str | None) -> None:
    at.team.note_marks(Q, who, images, images[1:] if mark else [])
    at.mark(Q, who, dict.fromkeys(images, mark))


def grouped(at: AnnotationStore, who: str) -> set[str]:
    return at.team.marked_by_group(Q, who, at.last_judgements(Q, who))


def test_a_group_is_marked_at_once_and_undone_at_once(at: AnnotationStore) -> None:
    """A member that is marked by itself is no mark of the group, nor one of which a kill left the note alone."""
    burst = [str(n) for n in range(20, 25)]
    mark_group(at, "ada", burst, "n")
    marked = len(at.last_judgements(Q, "ada")), grouped(at, "ada")
    at.team.note_marks(Q, "ada", ["22"], [])
    at.mark(Q, "ada", {"22": "y"})
    alone = grouped(at, "ada")
    mark_group(at, "ada", burst, None)

    assert marked == (5, set(burst[1:])) and alone == {"21", "23", "24"}
    assert (at.last_judgements(Q, "ada"), grouped(at, "ada")) == ({}, set())
    at.mark(Q, "bo", {"20": "n", "21": "n"})
    at.team.note_marks(Q, "bo", ["20", "21"], ["21"])  # killed here, before the mark
    assert grouped(at, "bo") == set()


def test_a_burst_that_was_marked_at_once_counts_once_in_the_row(at: AnnotationStore) -> None:
    """A page sends marks again after a lost answer: one look at 110 frames fires no stop."""
    for _ in range(2):
        mark_group(at, "ada", [str(n) for n in range(10, 120)], "n")
    at.mark(Q, "ada", {str(n): "y" for n in range(10)})
    found = standing(at, Q, "ada")

    assert (found.labelled, found.descent) == (120, Descent(120, 1, None))
    assert descent([False] * 100).stopped_at == 100 and team_of(at).labels["50"] is False


@pytest.mark.parametrize(("burst", "tiles"), [(1, 24), (9, 24), (60, 4)])
def test_a_long_burst_is_one_of_the_24_that_somebody_gets_at_once(at: AnnotationStore, burst: int, tiles: int) -> None:
    """A page of looks, not of frames; but no more photos than the page loads at once."""
    groups = [[str(n) for n in range(start, start + burst)] for start in range(0, 300, burst)]
    count = shared_list.hand_out(at, Q, "ada", groups)
    assert set(unmarked(at, "ada")) == {image for group in groups[:tiles] for image in group}
    assert count == tiles * burst


@pytest.fixture
def disputed(at: AnnotationStore) -> AnnotationStore:
    at.mark(Q, "ada", {"0": "y", "1": "y"})
    at.mark(Q, "bo", {"0": "n", "1": "y"})
    return at


def test_nobody_settles_their_own_dispute_unless_the_lead_allows_it(disputed: AnnotationStore) -> None:
    agreement.check_settling(disputed, Q, "cy", "0")
    for allowed in (False, True, False):
        disputed.team.let(OWN_DISPUTES, allowed, "lea")
        with nullcontext() if allowed else raises(UsageError):
            agreement.check_settling(disputed, Q, "ada", "0")


def test_a_dispute_tells_who_said_what_and_when_and_what_was_written(disputed: AnnotationStore) -> None:
    disputed.team.write_note(Q, "0", "cy", "  the beak\n is visible ")
    disputed.team.write_note(Q, "0", "cy", " ")
    agreement.settle(disputed, Q, "cy", "0", "d")
    (one,) = agreement.differences(disputed, Q)

    assert one.marks == {"ada": "y", "bo": "n"} and one.word is not None and one.word.mark == "d"
    assert one.times["ada"] <= one.times["bo"] <= one.word.at
    assert [(note["person"], note["note"]) for note in one.notes] == [("cy", "the beak is visible")]
    with raises(UsageError):
        disputed.team.write_note(Q, "0", "cy", "x" * 1001)


def test_queries_are_given_to_people_and_taken_away(at: AnnotationStore) -> None:
    """Who is given a query twice has it from the first lead."""
    at.team.assign([Q, "r"], "bo", "lea")
    at.team.assign([Q], "ada", "lea")
    at.team.assign([Q], "ada", "max")
    before = at.team.assigned()
    at.team.unassign([Q], "bo")

    assert before == {Q: ["ada", "bo"], "r": ["bo"]} and at.team.assigned() == {Q: ["ada"], "r": ["bo"]}
    with closing(sqlite3.connect(at.judgements.path)) as ledger:
        rows = ledger.execute("SELECT query, person, lead FROM assignments ORDER BY query").fetchall()
    assert rows == [(Q, "ada", "lea"), ("r", "bo", "lea")]


def test_a_query_that_is_removed_leaves_no_notes_behind(at: AnnotationStore) -> None:
    at.team.assign([Q], "ada", "lea")
    shared_list.hand_out(at, Q, "ada")
    at.team.flags.put("3", "face", "ada")
    at.remove(Q)

    assert (at.team.assigned(), at.team.seed(Q), at.team.leases(Q)) == ({}, None, [])
    assert at.team.flags.images() == {"3"}


def test_flags_are_facts_with_a_person_and_a_time(at: AnnotationStore) -> None:
    flags = at.team.flags
    additions = [flags.put("3", "face", "ada"), flags.put("3", "face", "ada"), flags.put("3", "face", "bo")]
    flags.put("4", "other", "bo", " a   ruler ")
    taken = [flags.take_down("3", "face", "ada"), flags.take_down("3", "face", "ada")]
    for kind, reason in (("ugly", ""), ("other", " "), ("face", "x" * 301), ("face", "a\x07b")):
        with raises(UsageError):
            flags.put("3", kind, "ada", reason)

    assert (additions, taken) == ([True, False, True], [True, False])
    assert [one[:4] for one in flags.all()] == [("3", "face", "", "bo"), ("4", "other", "a ruler", "bo")]
    assert flags.of(["4"])[0].words == "another reason: a ruler" and flags.images() == {"3", "4"}


def test_the_build_takes_the_file_of_flags(disputed: AnnotationStore, tmp_path: Path) -> None:
    disputed.team.flags.put("1", "other", "ada", "=cmd|x")
    disputed.team.flags.put("4", "face", "ada")
    names = {"1": "photos/aves/0a1b.jpg", "4": ""}

    count = write_flags(tmp_path / "flags.csv", disputed.team.flags.all(), names.__getitem__)
    rest = export.without_photos(export.every(disputed), disputed.team.flags.images())

    assert count == 2 and listed(tmp_path / "flags.csv", PHOTOS) == {"0a1b", "0a1b.jpg", "4"}
    with (tmp_path / "flags.csv").open() as file:
        assert [row["reason"] for row in csv.DictReader(file)] == ["'=cmd|x", ""]
    assert [list(one.labels) for one in rest] == [["0"]]
