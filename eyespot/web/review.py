"""The pages for what a pipeline must ask a person: queues decided case by case, and audits that are answered blind.

Decisions are appended to the file that `eyespot build review` writes too, by any number of people at once. Queues come
from whoever starts the server; no request names a file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse

from eyespot.curate.rmir.audit import LAST, VERDICTS, Sealed, agreed, compared, read_panel
from eyespot.html import tidy
from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.places import read_again
from eyespot.pipelines.human_review import Case, Overtaken, Queue, ReviewDecision
from eyespot.types import EyespotError, UsageError, quantity
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role

annotator = needs(Role.ANNOTATOR)
router = APIRouter(prefix="/review", include_in_schema=False, dependencies=[Depends(annotator)])
SIDES = (640, 1600)  # pixels of the longer side
LONGEST = 20_000  # characters of an edited text


VIEWED = 120.0  # seconds for which a case that somebody has before them is handed to others last


@dataclass(frozen=True)
class ServedQueue:
    """A queue as it is now.

    panel: what a panel of models said of the cases, sealed until a person has answered them all; None where the queue
        is not a blind audit.
    """

    key: str
    queue: Queue
    panel: Mapping[str, Sealed] | None

    @property
    def name(self) -> str:
        """What it is called on the pages: no more of where it lies than its folder's name."""
        return f"{self.queue.path.absolute().parent.name} / {self.queue.path.stem}"

    @cached_property
    def cases(self) -> Sequence[Case]:
        """The cases in the order of the queue."""
        return list(self.queue.cases.values())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each case, from 0, by its digest."""
        return {case.digest: place for place, case in enumerate(self.cases)}

    def case(self, digest: str) -> Case:
        """A case by its digest; `Problem` if it is not in the queue any more."""
        if digest not in self.places:
            raise Problem(409, "this case has changed or is gone from the queue; load the page again")
        return self.cases[self.places[digest]]


class Shelf:
    """All queues of a server, by keys that tell nothing of where they lie."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = {blake2b(os.fsencode(os.path.abspath(path)), digest_size=6).hexdigest(): path for path in paths}
        self._queues = {key: (_version(path), _read_queue(key, path)) for key, path in self._paths.items()}
        self._views: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def __iter__(self) -> Iterator[ServedQueue]:
        return (self[key] for key in self._paths)

    def __getitem__(self, key: str) -> ServedQueue:
        """A queue as it is now; `Problem` if there is none or it cannot be read."""
        if key not in self._paths:
            raise Problem(404, "there is no such queue here; its owner starts the server with --review QUEUE.jsonl")
        version, served = self._queues[key]
        now = _version(self._paths[key])
        if now == version:
            return served
        try:
            self._queues[key] = now, _read_queue(key, self._paths[key])
        except EyespotError:  # whose words name a path of the owner
            raise Problem(503, "this queue cannot be read now; eyespot build review tells its owner why") from None
        return self._queues[key][1]

    def next_open(
        self, served: ServedQueue, standing: Mapping[str, ReviewDecision], after: int, who: str
    ) -> Case | None:
        """The next case that is open behind a place, then from the start; one that somebody else looks at only last."""
        order = [*served.cases[after:], *served.cases[:after]]
        free = [case for case in order if case.id not in standing]
        with self._lock:
            since = time.monotonic() - VIEWED
            taken = {digest for digest, (other, at) in self._views.items() if other != who and at >= since}
            chosen = next((case for case in free if case.digest not in taken), free[0] if free else None)
            if chosen is not None:
                self._views[chosen.digest] = who, time.monotonic()
        return chosen


def _read_queue(key: str, path: Path) -> ServedQueue:
    panel = read_panel(path.parent) if path.name in (VERDICTS, LAST) else {}
    return ServedQueue(key, Queue(path), panel or None)


def _version(path: Path) -> tuple[int, ...]:
    """What changes whenever the queue is written; nothing while it is gone."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def install(app: FastAPI, queues: Iterable[Path]) -> None:
    """Put queues on the pages, with a link in the bar if there are any; `UsageError` for what is not a queue."""
    app.state.shelf = Shelf(queues)
    if list(app.state.shelf):
        app.state.links.append(Link("Review", "/review", Role.ANNOTATOR))


def shelf_of(request: Request) -> Shelf:
    """All queues of this server, as a dependency."""
    shelf: Shelf = request.app.state.shelf
    return shelf


def served_queue(request: Request, key: str) -> ServedQueue:
    """The queue of an address, as a dependency."""
    return shelf_of(request)[key]


def reviewer_name(request: Request) -> str:
    """Who decides, as a dependency; `Problem` if nobody knows."""
    if not (who := person_of(request).name):
        raise Problem(422, "nobody knows who you are here; say your name on the page /review first")
    return who


Shelves = Annotated[Shelf, Depends(shelf_of)]
Chosen = Annotated[ServedQueue, Depends(served_queue)]
Who = Annotated[str, Depends(reviewer_name)]


# -- pages ----------------------------------------------------------------------------------------------------------


@router.get("")
def overview(request: Request, shelf: Shelves) -> Response:
    """All queues, and how far each is."""
    rows = [(one, counts(one, one.queue.standing())) for one in shelf]
    return page(request, "review.html", who=person_of(request).name, rows=rows)


@router.get("/{key}")
def work(request: Request, served: Chosen, place: int | None = None) -> Response:
    """Where one case after the other is decided, from a `place` on; the way to where one says one's name first."""
    if not (who := person_of(request).name):
        return RedirectResponse("/review", 303)
    return page(request, "review_case.html", served=served, who=who, blind=served.panel is not None)


@router.get("/{key}/agreement")
def agreement(request: Request, served: Chosen) -> Response:
    """What person and panel agree on; `Problem` while a case is open, for it would lead whoever answers it."""
    if served.panel is None:
        raise Problem(404, "nobody judged these cases before; only an audit has an agreement")
    standing = served.queue.standing()
    if left := counts(served, standing)["open"]:
        waiting = quantity(left, "case is", "cases are")
        raise Problem(409, f"{waiting} still to be answered; the panel's verdicts are shown when all are")
    answers = {id: one.choice != "drop" for id, one in standing.items()}
    panel, is_last = served.panel, served.queue.path.name == LAST
    groups = compared(panel, answers) if is_last else None
    # The cases on which person and panel differ, with what each judge gave as its reason
    differing = [
        {"case": case, "sealed": panel[case.id], "said": answers[case.id], "why": case_question(served, case)}
        for case in served.cases
        if case.id in panel and panel[case.id].answers is not answers[case.id]
    ]
    content: dict[str, Any] = {"rows": agreed(panel, answers), "groups": groups, "differing": differing}
    return page(request, "review_agreement.html", served=served, is_last=is_last, **content)


# -- what the page asks ---------------------------------------------------------------------------------------------


class CaseRequest(BaseModel):
    """Which case is asked for: one by its place, else the next open one behind a place."""

    place: int | None = Field(None, ge=1, le=10**9)
    after: int = Field(0, ge=0, le=10**9)


@router.get("/{key}/case")
def case(shelf: Shelves, served: Chosen, who: Who, wish: Annotated[CaseRequest, Query()]) -> Response:
    """A case, or none where all are decided, and how far the queue is."""
    standing = served.queue.standing()
    if wish.place is None or not served.cases:
        chosen = shelf.next_open(served, standing, wish.after, who)
    else:
        chosen = served.cases[min(wish.place, len(served.cases)) - 1]
    shown = None if chosen is None else case_fields(served, chosen, standing.get(chosen.id), who)
    return _json({**counts(served, standing), "case": shown})


class DecisionRequest(BaseModel):
    """What somebody chose for a case: its digest, the decision that they saw stand, texts that they edited."""

    case: str = Field(max_length=32)
    choice: Literal["accept", "mend", "drop", "withdraw"]
    seen: str | None = Field(None, max_length=32)
    texts: dict[str, Annotated[str, Field(max_length=LONGEST)]] = Field(default_factory=dict, max_length=50)
    note: str = Field("", max_length=1000)


@router.post("/{key}/decisions")
def decide(shelf: Shelves, served: Chosen, who: Who, body: DecisionRequest) -> Response:
    """Keep a decision, or withdraw one; it is on the disk when the answer comes, which brings the next open case."""
    case = served.case(body.case)
    try:
        if body.choice == "withdraw":
            if body.seen is None:
                raise UsageError("say which decision is withdrawn; load the page again")
            served.queue.withdraw_seeing(body.seen, case, who)
            seen = None
        else:
            if served.panel is not None and body.choice == "mend":
                raise UsageError("an audit is answered with yes or no; accept or drop the case")
            more: dict[str, Any] = {"texts": body.texts, "note": body.note, "blind": served.panel is not None}
            seen = served.queue.decide_seeing(body.seen, case, body.choice, who, **more).digest
    except Overtaken as error:
        blind = "this case was answered or opened again since you saw it; look again and answer again"
        stands = None if error.stands is None else decision_fields(served, error.stands, who)
        overtaken = {"detail": str(error) if served.panel is None else blind, "stands": stands}
        return _json(overtaken, 409)
    standing = served.queue.standing()
    upcoming = shelf.next_open(served, standing, served.places[case.digest] + 1, who)
    shown = None if upcoming is None else case_fields(served, upcoming, None, who)
    return _json({**counts(served, standing), "seen": seen, "next": shown})


@router.get("/{key}/pictures/{digest}/{at}")
def picture(served: Chosen, digest: str, at: int, side: Annotated[int, Query()] = SIDES[0]) -> Response:
    """A picture of a case, as a JPEG at most so many pixels wide and high."""
    pictures = served.case(digest).pictures
    if not 0 <= at < len(pictures) or side not in SIDES:
        raise Problem(404, "this case has no such picture, or not in this size")
    for place in (pictures[at], str(served.queue.path.parent / pictures[at])):  # from here, or from the queue's folder
        with suppress(OSError, BadPicture):
            return Response(thumbnail(read_again(place), side), media_type="image/jpeg")
    raise Problem(404, "the picture is gone or cannot be read; its owner finds it in the queue")


def _json(value: Any, status: int = 200) -> Response:
    """Written in ASCII: an id may hold halves of characters, which no UTF-8 has."""
    return Response(json.dumps(value).encode(), status, media_type="application/json")


def case_fields(served: ServedQueue, case: Case, stands: ReviewDecision | None, who: str) -> dict[str, Any]:
    """All of a case: its pictures' addresses, why it is here, its texts, and what stands."""
    return {
        "case": case.digest,
        "id": tidy(case.id),
        "place": served.places[case.digest] + 1,
        "why": tidy(case_question(served, case)),
        "pictures": [f"/review/{served.key}/pictures/{case.digest}/{at}" for at in range(len(case.pictures))],
        "texts": dict(case.texts),
        "stands": None if stands is None else decision_fields(served, stands, who),
    }


def case_question(served: ServedQueue, case: Case) -> str:
    """Why a person is to look: in a blind audit the bare question, for its page has keys of its own."""
    sealed = None if served.panel is None else served.panel.get(case.id)
    return case.why if sealed is None else sealed.question


def decision_fields(served: ServedQueue, stands: ReviewDecision, who: str) -> dict[str, Any]:
    """A decision that stands; what another said in an audit is left out, for it would lead whoever answers blind."""
    content: dict[str, Any] = {"choice": stands.choice, "texts": dict(stands.texts), "note": stands.note}
    if served.panel is not None and stands.who != who:
        content = {"choice": None, "texts": {}, "note": ""}
    return {"seen": stands.digest, "who": stands.who, "mine": stands.who == who, **content}


def counts(served: ServedQueue, standing: Mapping[str, ReviewDecision]) -> dict[str, int]:
    """How many cases there are and how many are open."""
    return {"cases": len(served.cases), "open": len(served.cases) - len(standing)}
