"""Photos that come on a list after the draw of an audit: it says nothing of them, so the shares found go down."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.annotate import auditing
from eyespot.curate.annotate.annotation_store import Candidate
from eyespot.curate.annotate.progress import standing
from tests.worlds.annotation import desk


def test_photos_listed_after_the_draw_count_as_possibly_relevant_until_they_are_labelled(tmp_path: Path) -> None:
    """All of 300 photos are labelled, 10 of them relevant; then 90 come, of which the audit can say nothing."""
    with desk(tmp_path, 300) as at:
        at.mark("q", "ada", {str(n): "y" if n < 10 else "n" for n in range(200)})
        drawn = auditing.draw(at, "q", "ada", plan=auditing.Plan(100, 1))
        at.mark("q", "ada", {photo.image: "n" for photo in drawn.photos})
        before = standing(at, "q", "ada")
        at.extend("q", [Candidate(str(n), f"{n}.jpg") for n in range(300, 390)])
        after = standing(at, "q", "ada")
        at.mark("q", "ada", dict.fromkeys(map(str, range(300, 390)), "n"))
        labelled = standing(at, "q", "ada")

    assert before.audit is not None and (before.found_at_least, before.audit.later) == (1.0, 0)
    assert after.audit is not None and (after.found_at_least, after.audit.later) == (0.1, 90)
    assert labelled.audit is not None and (labelled.found_at_least, labelled.audit.later) == (1.0, 0)


def test_a_list_that_grows_by_itself_grows_within_the_rest(tmp_path: Path) -> None:
    """What is listed there was a part of the gallery that the audit was drawn from."""
    with desk(tmp_path, 300) as at:
        at.mark("q", "ada", {str(n): "y" if n < 10 else "n" for n in range(200)})
        drawn = auditing.draw(at, "q", "ada", plan=auditing.Plan(100, 1))
        at.mark("q", "ada", {photo.image: "n" for photo in drawn.photos})
        at.let_grow("q")
        at.extend("q", [Candidate(str(n), f"{n}.jpg") for n in range(300, 390)])
        found = standing(at, "q", "ada")

    assert found.audit is not None and found.audit.later == 0
