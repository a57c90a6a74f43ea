"""What the grid of photos asks for and sends: photos, marks, how the query stands, and audits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from eyespot.curate.annotate import agreement, auditing, candidates, shared_list
from eyespot.curate.annotate.annotation_store import AuditSample, Candidate, mark_of, relevant
from eyespot.curate.annotate.auditing import share_of
from eyespot.curate.annotate.candidates import learned_order
from eyespot.curate.annotate.progress import IN_A_ROW, standing, team_standing
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.curate.annotate.team_store import name_of
from eyespot.settings.search import RankingSettings
from eyespot.types import Mask
from eyespot.web._items import thumbnail_address
from eyespot.web._problems import Problem
from eyespot.web._search_params import refuse
from eyespot.web._snapshots import Snapshots
from eyespot.web._state import AppState, State
from eyespot.web.annotate._session import LONGEST_ID, AnnotationSession, Id, Session, check_listed, units
from eyespot.web.found.snapshot import Snapshot

router = APIRouter(include_in_schema=False)
What = Literal["list", "team", "audit", "likely", "telling"]
MOST = 500  # marks or photos at once
BACK = 24  # marked photos that are shown before the first one that is not


class Marks(BaseModel):
    """What somebody says of photos: y, n, d for doubt, null to take it back.

    `opened`, with the first marks of a page, is how many seconds ago the page was opened. `by_group` are the photos
    among them that were marked as members of a group.
    """

    marks: dict[str, Literal["y", "n", "d"] | None] = Field(max_length=MOST)
    opened: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)
    by_group: list[str] = Field(default_factory=list, max_length=MOST)
    what: What = "list"


class Stretch(BaseModel):
    """Which photos of a query are asked for; `unmarked` are those alone that one has no mark on."""

    query: str = Field(max_length=LONGEST_ID)
    what: What = "list"
    first: int = Field(0, ge=0, le=10**9)
    count: int = Field(120, ge=1, le=MOST)
    unmarked: bool = False
    resume: bool = False  # begin shortly before the first photo without a mark


@router.get("/photos")
def photos(at: Session, state: State, stretch: Annotated[Stretch, Query()]) -> Response:
    """A stretch of the photos to label, with what was said of them, and how many there are."""
    query, who = stretch.query, at.annotator_name()
    verdicts = at.store.last_judgements(query, who)
    listed = photos_shown(at, state.snapshots, query, stretch.what)
    if stretch.unmarked:
        listed = [photo for photo in listed if photo.image not in verdicts]
    first = stretch.first
    if stretch.resume:
        open_photos = (place for place, photo in enumerate(listed) if photo.image not in verdicts)
        first = max(0, next(open_photos, len(listed)) - BACK)
    by_group = at.store.team.marked_by_group(query, name_of(who), verdicts)
    groups: dict[str, int] = {}
    if stretch.what != "audit":  # its photos were drawn one by one, and are looked at one by one
        groups = at.groups_of(query, at.store.candidates(query), state.snapshots.current())
    flags: dict[str, list[str]] = {}
    for flag in at.store.team.flags.all():
        flags.setdefault(flag.image, []).append(flag.words)
    fields = []
    for image in (photo.image for photo in listed[first : first + stretch.count]):
        places = {"thumbnail": thumbnail_address(image), "large": thumbnail_address(image, 1600)}
        mark = mark_of(verdicts[image]) if image in verdicts else None
        more = {"group": groups.get(image), "by_group": image in by_group, "flags": flags.get(image, [])}
        fields.append({"image": image, **places, "mark": mark, **more})
    # An audit or a shared list may have photos that nobody was handed
    grows = stretch.what in ("audit", "team") or (stretch.what == "list" and at.store.grows(query))
    return JSONResponse({"photos": fields, "first": first, "total": len(listed), "grows": grows})


@router.post("/marks")
def mark(at: Session, state: State, query: Id, given: Marks) -> Response:
    """Keep marks; they are on the disk when the answer comes, which says how the query stands."""
    check_listed(at, query, given.marks)
    who = at.annotator_name()
    if given.opened is not None:
        at.store.open_page(query, who, given.opened)
    at.store.team.note_marks(query, name_of(who), given.marks, set(given.by_group) & given.marks.keys())
    changed = at.store.mark(query, who, given.marks)
    shared_list.renew(at.store, query, who, at.store.last_judgements(query, who))
    return JSONResponse({"changed": changed, **_stands(at, state.snapshots, query, given.what)})


@router.get("/standing")
def stands(at: Session, state: State, query: Id, what: What = "list") -> Response:
    """How the query stands for whoever asks, or on a shared list for all."""
    return JSONResponse(_stands(at, state.snapshots, query, what))


@router.post("/grow")
def grow(at: Session, state: State, query: Id, what: What = "list") -> Response:
    """Let the list of a search go on, or hand out further photos of an audit or a shared list."""
    who = at.annotator_name()
    if what == "audit":
        return JSONResponse({"new": auditing.hand_out(at.store, query, who)})
    if what == "team":
        return JSONResponse({"new": hand_out(at, state.snapshots, query)})
    return JSONResponse({"new": grow_list(at, state.snapshots, query) if at.store.grows(query) else 0})


def hand_out(at: AnnotationSession, snapshots: Snapshots, query: str) -> int:
    """Hand somebody the next photos of a shared list, which goes on where it is a search."""
    who = at.annotator_name()
    while True:
        listed = at.store.candidates(query)
        groups = units(listed, at.groups_of(query, listed, snapshots.current()))
        handed = shared_list.hand_out(at.store, query, who, groups)
        verdicts = agreement.everybody(at.store, query)
        stopped = team_standing(at.store, query, verdicts, agreement.labels(at.store, query, verdicts)).stopped
        if handed or stopped:
            return handed
        if at.store.goes_on(query):
            grow_list(at, snapshots, query)
        # Two people may come to the end at the same moment: then the list grew for both, whoever let it grow
        if len(at.store.candidates(query)) == len(listed):
            return 0


@router.post("/audit")
def audit(
    at: Session,
    state: State,
    query: Id,
    size: Annotated[int, Query(ge=1, le=100_000, description="Photos to draw.")] = auditing.SIZE,
) -> Response:
    """Draw an audit of the rest."""
    drawn = draw_audit(at, state, query, size)
    return JSONResponse({"drawn": len(drawn.photos), "rest": drawn.rest}, 201)


def draw_audit(at: AnnotationSession, state: AppState, query: str, size: int) -> AuditSample:
    """Draw an audit of what somebody has not labelled, and hand out its first photos."""
    who = at.annotator_name()
    collection = state.snapshots.current().collection if at.store.grows(query) else None
    drawn = auditing.draw(at.store, query, who, collection, auditing.Plan(size))
    auditing.hand_out(at.store, query, who)
    return drawn


@router.post("/audit/join")
def join(at: Session, query: Id) -> Response:
    """Work at the audit that somebody else drew: its photos are shared out, and it ends for all at once."""
    who = at.annotator_name()
    drawn = auditing.join(at.store, query, who)
    auditing.hand_out(at.store, query, who)
    return JSONResponse({"drawn": len(drawn.photos), "rest": drawn.rest})


def _stands(at: AnnotationSession, snapshots: Snapshots, query: str, what: str) -> dict[str, Any]:
    who, store = at.annotator_name(), at.store
    shared = what == "team" or store.team.seed(query) is not None
    verdicts = agreement.everybody(store, query) if shared else {}
    found = standing(store, query, who)
    if what == "team":
        found = team_standing(store, query, verdicts, agreement.labels(store, query, verdicts))
    seen = set(store.last_judgements(query, who)).union(*verdicts.values())
    every = int(snapshots.current().view.live.sum()) if store.grows(query) else found.listed
    running, last = auditing.under_way(store, query), store.last_audit(query)
    people, joinable = [] if last is None else store.auditors(last[0]), None
    if running is not None and who not in people:  # an audit that is under way without this person
        joinable = {"people": people, "size": running.size, "done": running.done}
    return {**found.as_json(), "in_a_row": IN_A_ROW, "joinable": joinable, "rest": max(every - len(seen), 0)}


def query_of_words(at: AnnotationSession, refused: Sequence[str], text: str) -> str:
    """The id of the query with these words, taken in if it is new.

    `Problem` for words that the owner refuses, `UsageError` for none.
    """
    words = " ".join(text.split())
    known = next((id for id, one in at.store.queries().items() if one.text == words), None)
    if known is not None:
        return known
    refuse(words, refused)
    at.store.take_in([AnnotationQuery(words, words, {})])
    return words


def grow_list(at: AnnotationSession, snapshots: Snapshots, query: str) -> int:
    """Let the list of a search go on; gives how many photos are new."""
    snapshot = snapshots.current()
    wanted = len(at.store.candidates(query)) + candidates.STEP
    rows = _nearest(at, query, snapshot, snapshot.view.live, wanted)
    return candidates.grow_by_rows(at.store, query, snapshot.view, rows)


def list_all(at: AnnotationSession, query: str, snapshot: Snapshot, mask: Mask) -> int:
    """Put all photos that a mask lets through on the list, the nearest first; gives how many are new."""
    rows = _nearest(at, query, snapshot, mask, int(mask.sum()))
    return candidates.list_rows(at.store, query, snapshot.view, rows)


def _nearest(at: AnnotationSession, query: str, snapshot: Snapshot, mask: Mask, count: int) -> list[int]:
    words = at.store.query(query).query
    run = snapshot.ranked(words, snapshot.embedded(words), RankingSettings(by="look"), k=count, mask=mask)
    return [int(id) for id in run.image]


def photos_shown(at: AnnotationSession, snapshots: Snapshots, query: str, what: str) -> list[Candidate]:
    """The photos of one of the ways to look."""
    if what == "team":
        return shared_list.photos_of(at.store, query, at.annotator_name())
    if what == "audit":
        share = share_of(at.store, query, at.annotator_name())
        if share is None:
            raise Problem(404, "no audit was drawn yet; draw one from the page of the query")
        return share
    listed = at.store.candidates(query)
    if what == "list":
        return listed
    labels = {image: relevant(label) for image, label in at.store.last_judgements(query, at.annotator_name()).items()}
    snapshot = snapshots.current()
    rows = snapshot.rows_by_id([photo.image for photo in listed])
    there = [photo for photo, row in zip(listed, rows.tolist(), strict=True) if row >= 0]
    if not there:
        return []
    vectors = snapshot.view.vectors(rows[rows >= 0].tolist())
    order = learned_order(vectors, [labels.get(photo.image) for photo in there], what == "telling")
    return [there[at_row] for at_row in order.tolist()]
