"""Judges re-rank: what their look would cost is told first, then they look in the background, and the page follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, RedirectResponse

from eyespot.search.judge_rerank import NO_PICTURE, NO_VERDICT, JudgeRerank, RerankEstimate
from eyespot.types import Note, codes_of, quantity
from eyespot.web._judges import AllowedJudge, Job, Judges
from eyespot.web._judging import judge_key_of
from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._search_params import Given, SearchParams
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.found.derived import leave_out_changed, query_to_judge, run_of
from eyespot.web.found.results import RankedResult

router = APIRouter(dependencies=[Depends(needs(Role.READER))])
BUDGET_SPENT = "budget_spent"  # the code of a note
TOGETHER = 24  # photos that a judge sees before another round has its turn


@dataclass(frozen=True)
class RerankProgress:
    """How far a judge is with a result: what it could judge, what that would cost, and whether it is at it."""

    judge: AllowedJudge
    planned: RerankEstimate
    cost: dict[str, Any]
    job: Job | None

    @property
    def judged(self) -> int:
        """On how many photos there is a verdict."""
        return self.planned.pairs - self.planned.to_ask

    @property
    def running(self) -> bool:
        """Whether it looks now."""
        return self.job is not None and self.job.state == "running"

    @property
    def notes(self) -> list[str]:
        """What should be known of its last round."""
        return self.job.notes if self.job else []

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "judge": self.judge.name,
            "paid": self.judge.paid,
            "state": self.job.state if self.job else "idle",
            "photos": self.planned.pairs,
            "judged": self.judged,
            "to_ask": self.planned.to_ask,
            "without_picture": self.planned.pictureless,
            "cost": self.cost,
            "notes": self.notes,
            "codes": codes_of(self.notes),
        }


def standing(state: AppState, result: RankedResult, name: str) -> RerankProgress:
    """How far this judge is; nothing is asked or written. `UsageError` if there is none of that name."""
    plain, allowed = result.origin or result, state.judges[name]
    job = state.jobs.get((plain.id, name))  # before the verdicts: a round that is done has all of its own among them
    stage = state.searches.judge(name)
    plan = stage.plan([query_to_judge(plain)], run_of(plain, stage.depth))
    return RerankProgress(allowed, plan, allowed.cost(plan.to_ask), job)


def may_ask(allowed: AllowedJudge, person: User) -> bool:
    """Whether somebody may have this judge look: what costs money needs the role that judges."""
    return person.role >= (Role.ANNOTATOR if allowed.paid else Role.READER)


def start_judging(state: AppState, result: RankedResult, name: str, most: int | None) -> RerankProgress:
    """Have a judge look at what the ledger lacks, in the background, if that is no more than `most` photos."""
    plain, stands = result.origin or result, standing(state, result, name)
    photos = stands.planned.to_ask
    if most is not None and photos > most and not stands.running:
        raise Problem(409, f"it would ask about {quantity(photos, 'photo')} by now, not {most}; look at the cost again")
    if not photos:
        return stands
    # An error now if nothing can be written there
    stage = replace(state.searches.judge(name), ledger=state.ledger.writable.judgements)
    state.jobs.start((plain.id, name), lambda: _rounds(plain, state.judges, stands.judge, stage))
    return standing(state, result, name)


def _rounds(plain: RankedResult, judges: Judges, allowed: AllowedJudge, stage: JudgeRerank) -> Iterator[str]:
    """A few photos at a time, in the order of their ranks; yields what should be known of each few."""
    query, run = query_to_judge(plain), run_of(plain, stage.depth)
    hits = len(run[query.id])
    for first in range(1, hits + 1, TOGETHER):
        ranks = range(first, min(first + TOGETHER, hits + 1))
        with allowed.asking:
            yield ""  # the server may have ended during another round
            leave_out_changed(run, plain, ranks)
            judge_result = stage.ask([query], run, ranks)
        if judge_result.stopped:
            calls, money = judges.budget.calls, judges.budget.money
            limits = [] if calls is None else [quantity(calls, "call")]
            limits += [] if money is None else [f"${money:g}"]
            spent = f"the budget of {' or '.join(limits)} is spent; the owner can start the server with a larger one"
            yield Note(BUDGET_SPENT, spent)
        yield from (Note(NO_VERDICT, failure) for failure in judge_result.failures)
        gone = Note(NO_PICTURE, "some photos are gone or have changed since they were indexed, and no judge saw them")
        yield gone if judge_result.pictureless else ""  # always once: a job stops between two notes
        if judge_result.stopped:
            return


# -- for programs -----------------------------------------------------------------------------------------------


class RerankRequest(BaseModel, extra="forbid"):
    """Which judge shall look."""

    judge: str = Field(max_length=300, description="Its name here, as /v1/columns lists them.")
    most: int | None = Field(None, ge=0, le=10**6, strict=True, description="At most this many photos, as announced.")


@router.post("/v1/runs/{id}/rerank", status_code=202, tags=["runs"])
def start(request: Request, state: State, id: str, wanted: RerankRequest) -> Response:
    """Have a judge look at the first hits of a result, in the background; a search with `rerank` has its order."""
    result = state.searches.results[id]
    judge = _allowed(state, wanted.judge, person_of(request))
    return JSONResponse(start_judging(state, result, judge, wanted.most).as_json(), 202)


@router.get("/v1/runs/{id}/rerank", tags=["runs"])
def progress(state: State, id: str, judge: Annotated[str, Query(max_length=300)]) -> Response:
    """How far a judge is with the first hits of a result, and what its look at the rest would cost."""
    return JSONResponse(standing(state, state.searches.results[id], judge).as_json())


@router.delete("/v1/runs/{id}/rerank", status_code=202, tags=["runs"])
def cancel(request: Request, state: State, id: str, judge: Annotated[str, Query(max_length=300)]) -> Response:
    """Have a judge stop; what it has said is kept, and it can be asked to go on."""
    name = _allowed(state, judge, person_of(request))
    result = state.searches.results[id]
    state.jobs.stop(((result.origin or result).id, name))
    return JSONResponse(standing(state, result, name).as_json(), 202)


# -- pages ------------------------------------------------------------------------------------------------------


@router.get("/judges", include_in_schema=False)
def judges(request: Request, state: State, given: Given) -> Response:
    """What each judge's look at this search would cost, without a page around it."""
    person = person_of(request)
    result = state.searches.run(given.plain, judge_key_of(person))
    stands = [standing(state, result, name) for name in state.judges.named]
    may = [may_ask(one.judge, person) for one in stands]
    return page(request, "judges.html", params=given, budget=state.judges.budget, stands=stands, may=may)


@router.get("/looking", include_in_schema=False)
def looking(request: Request, state: State, given: Given) -> Response:
    """How far the judge of this search is, without a page around it; once it has ended, the page is to come anew."""
    person = person_of(request)
    shown = judging_of(state, state.searches.run(given.plain, judge_key_of(person)), given, person)
    answer: HTMLResponse = page(request, "looking.html", params=given, **shown)
    if not shown["stands"].running:
        answer.headers["HX-Refresh"] = "true"
    return answer


def judging_of(state: AppState, result: RankedResult, given: SearchParams, person: User) -> dict[str, Any]:
    """What the page tells of the judge in whose order it stands."""
    stands = standing(state, result, given.rerank or "")
    return {"stands": stands, "may": may_ask(stands.judge, person), "budget": state.judges.budget}


@router.post("/look", include_in_schema=False)
def begin_judging(
    request: Request, state: State, given: Given, most: Annotated[int | None, Form(ge=0)] = None
) -> Response:
    """Have the judge look, and back to the page, which follows it."""
    person = person_of(request)
    result = state.searches.run(given.plain, judge_key_of(person))
    start_judging(state, result, _allowed(state, given.rerank, person), most)
    return RedirectResponse(f"/?{given.address()}", 303)


@router.post("/stop", include_in_schema=False)
def stop(request: Request, state: State, given: Given) -> Response:
    """Have the judge stop, and back to the page."""
    person = person_of(request)
    result = state.searches.run(given.plain, judge_key_of(person))
    state.jobs.stop(((result.origin or result).id, _allowed(state, given.rerank, person)))
    return RedirectResponse(f"/?{given.address()}", 303)


def _allowed(state: AppState, name: str | None, person: User) -> str:
    """The name of a judge that this person may ask; `UsageError` for none, `Problem` without the role."""
    name = name or ""
    if not may_ask(state.judges[name], person):
        raise Problem(403, "this judge costs money, so it takes a token of the role annotator; ask the owner for one")
    return name
