"""Why a photo was found: what each term of the query adds to its score, and where in the picture that is seen.

Only for whoever asks: a search computes none of it.
"""

from __future__ import annotations

from io import BytesIO
from typing import Annotated, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import numpy as np
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from eyespot.html import decoded
from eyespot.search.why import Explanation, QueryParts
from eyespot.types import Encoder, Heat, Localizer, Note, UsageError, quantity
from eyespot.web._items import existing_row, item_of
from eyespot.web._judging import judge_key_of
from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web._search_params import Given, SearchParams, query_of, refuse
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.searching import helpers

router = APIRouter(dependencies=[Depends(needs(Role.READER))])
TermNumber = Annotated[int | None, Query(ge=0, lt=100, description="Only this term of the query, from 0.")]
KNOWN = 256  # answers that are remembered
SIDE = 192  # pixels of the longer side of the drawn heat
DARK = 0.74  # how dark the parts are that do not speak for the query
HOUR = "private, max-age=3600"


# Why a photo has its score, and where in it the query (None) or one of its terms, by number, is seen, if asked so far
Reason = tuple[Explanation, dict[int | None, Heat | None]]


@router.get("/v1/why/{id:path}", tags=["items"])
def why(request: Request, state: State, given: Given, id: str, term: TermNumber = None) -> Response:
    """Why an item has its score for a query: its terms, its words, and a grid of what each part of it adds."""
    reason = _reason(state, given, id)
    explanation, heat = reason[0], _heat(state, given, id, reason, term)
    grid = heat and {
        "rows": heat.values.shape[0],
        "columns": heat.values.shape[1],
        "box": [round(edge, 4) for edge in heat.box],
        "values": [[round(float(value), 6) for value in row] for row in heat.values],
    }
    answer = {
        "score": round(explanation.score, 6),
        "terms": [{name: _rounded(value) for name, value in one._asdict().items()} for one in explanation.terms],
        "words": [{"word": word, "without": _rounded(without)} for word, without in explanation.words],
        "moved": [{"code": note.code, "sentence": str(note)} for note in _moved(state, given, person_of(request))],
        "heat": grid,
    }
    return JSONResponse(answer)


@router.get("/v1/heat/{id:path}", tags=["items"], response_class=Response)
def heat_picture(state: State, given: Given, id: str, term: TermNumber = None) -> Response:
    """A PNG to lay over an item: dark where nothing speaks for the query, clear where most does."""
    heat = _heat(state, given, id, _reason(state, given, id), term)
    if heat is None:
        raise Problem(404, "this encoder cannot tell where in a picture it sees something")
    snapshot = state.snapshots.current(given.encoder)
    facts = item_of(snapshot.facts([existing_row(snapshot, id)])[0])
    size = (int(facts.get("width") or 4), int(facts.get("height") or 3))
    return Response(_drawn(heat, size), media_type="image/png", headers={"Cache-Control": HOUR})


@router.get("/why/{id:path}", include_in_schema=False)
def why_page(request: Request, state: State, given: Given, id: str, term: TermNumber = None) -> Response:
    """The same to read: as a page of its own, or to be laid into the large view."""
    reason = _reason(state, given, id)
    snapshot = state.snapshots.current(given.encoder)
    item = item_of(snapshot.facts([existing_row(snapshot, id)])[0])
    here = f"{quote(id, safe='')}?{given.address()}"
    most = max((abs(one.adds) for one in reason[0].terms if one.adds is not None), default=0.0) or 1.0
    heat = _heat(state, given, id, reason, term)
    shown: dict[str, Any] = {"explanation": reason[0], "most": most, "heat": heat is not None, "term": term}
    shown |= {"moved": _moved(state, given, person_of(request)), "here": here, "encoder": snapshot.view.space.encoder}
    template = "why_inside.html" if request.headers.get("hx-request") else "why.html"
    return page(request, template, params=given, item=item, **shown, **helpers(given))


# -- reasons ----------------------------------------------------------------------------------------------------


_reasons: WeakKeyDictionary[Snapshot, RecentAnswers[Reason]] = WeakKeyDictionary()


def _reason(state: AppState, given: SearchParams, id: str) -> Reason:
    """The reason, computed once; `Problem` for an item that is not there or a search without words and picture."""
    refuse(given.q, state.settings.refused)
    snapshot, query = state.snapshots.current(given.encoder), query_of(given, state.cache.uploads)
    row = existing_row(snapshot, id)
    if query is None:
        raise UsageError("a photo has its place by words or a picture; search for some, and ask why then")
    both = given.way == "both"

    def explained() -> Reason:
        read = snapshot.reworded(query) if both else query
        return snapshot.ask_encoder(lambda encoder: QueryParts.of(read, encoder).explain(snapshot.vector(row))), {}

    known = _reasons.setdefault(snapshot, RecentAnswers(KNOWN))
    return known.get((row, query.terms, both), explained)


def _moved(state: AppState, given: SearchParams, person: User) -> list[Note]:
    """What moved the ranking besides the look of the query: photos that bear its words, and verdicts on photos."""
    result = state.searches.run(given.plain, judge_key_of(person))
    notes = [note for note in result.notes if isinstance(note, Note) and note.code in ("taught", "moved")]
    verdicts = ((given.like, "like", "towards", "more like this"), (given.unlike, "unlike", "away from", "not this"))
    for photos, code, way, label in verdicts:
        if photos:
            count = quantity(len(photos), "photo")
            notes.append(Note(code, f"the search is drawn {way} {count} of which somebody said “{label}”"))
    return notes


def _heat(state: AppState, given: SearchParams, id: str, reason: Reason, term: int | None) -> Heat | None:
    """Where the query or one of its terms is seen, computed once; of that alone, for others wait for the encoder."""
    at, vector, vectors = None, reason[0].vector, reason[0].term_vectors
    if term is not None and len(reason[0].terms) > 1:
        at = min(term, len(reason[0].terms) - 1)  # past the last: the last
        vector = vectors[at]
    if at not in reason[1]:
        snapshot = state.snapshots.current(given.encoder)
        encoder, picture = snapshot.collection.encoder, None
        if isinstance(encoder, Localizer):
            picture = decoded(state.cache.thumbnails.jpeg(snapshot, id, 1600))

        def ask(encoder: Encoder) -> Heat | None:
            return encoder.heat(picture, vector) if picture is not None and isinstance(encoder, Localizer) else None

        reason[1][at] = None if picture is None else snapshot.ask_encoder(ask)
    return reason[1][at]


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _drawn(heat: Heat, size: tuple[int, int]) -> bytes:
    """The heat over a picture of this size, in small: black whose alpha falls where the heat is."""
    from PIL import Image

    values = np.maximum(heat.values, 0)
    shares = values / values.max() if values.max() > 0 else values  # (rows, columns)
    scale = SIDE / max(size)
    width, height = (max(1, round(edge * scale)) for edge in size)
    left, top, right, bottom = (round(edge * long) for edge, long in zip(heat.box, (width, height) * 2, strict=True))
    small = Image.fromarray(np.uint8(np.round(shares * 255)))
    there = small.resize((max(1, right - left), max(1, bottom - top)), Image.Resampling.BICUBIC)
    seen = Image.new("L", (width, height))
    seen.paste(there, (left, top))
    alpha = seen.point([round(255 * DARK * (1 - level / 255)) for level in range(256)])
    black = Image.new("L", (width, height))
    made = BytesIO()
    Image.merge("RGBA", (black, black, black, alpha)).save(made, "PNG")
    return made.getvalue()
