"""Photos into the gallery from the browser: a folder of this machine, or photos that are dropped; for the owner.

A folder is named only by whoever sits at this machine without a token, for a path is read. Everything else goes into
one folder of the gallery. A run that was cut off goes on where it was.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from starlette.responses import RedirectResponse

from eyespot.types import EyespotError
from eyespot.web._indexer import gallery_contents
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem, wants_page
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, Served
from eyespot.web.indexing._places import chosen_folder, list_folders, uploads_of, write_photo

router = APIRouter(prefix="/add", include_in_schema=False, dependencies=[Depends(needs(Role.OWNER))])
LINKS = (Link("Add photos", "/add", Role.OWNER),)
Owner = Annotated[User, Depends(needs(Role.OWNER))]
FAILURES = 200  # that the page lists
MOST_AT_ONCE = 500  # files of one form


def sits_here(person: User) -> bool:
    """Whether somebody sits at this machine: who comes from afar is an owner by a token alone."""
    return person.role >= Role.OWNER and not person.proven


@router.get("")
def add_page(
    request: Request, house: Served, person: Owner, under: Annotated[str | None, Query(max_length=4000)] = None
) -> Response:
    """What is in the gallery, what can be added, and how far a run is."""
    try:
        listing = list_folders(under) if sits_here(person) else None
    except Problem as problem:
        return _page_again(request, house, problem)
    return page(request, "add.html", listing=listing, wrong="", **_state(house))


def _page_again(request: Request, house: AppState, problem: Problem) -> Response:
    """The page with what is wrong, for people; a program gets the problem."""
    if not wants_page(request.headers, request.url.path):
        raise problem
    shown = {"listing": list_folders(None), "wrong": problem.detail}
    return page(request, "add.html", problem.status, **shown, **_state(house))


@router.get("/state")
def state(request: Request, house: Served) -> Response:
    """How far the run is, to be laid into a page every second."""
    return page(request, "indexing.html", **_state(house))


@router.post("/folder")
def add_folder(
    request: Request, house: Served, person: Owner, path: Annotated[str, Form(max_length=4000)] = ""
) -> Response:
    """Index a folder of this machine."""
    if not sits_here(person):
        raise Problem(403, "only whoever sits at the machine that serves may name a folder of it; drop photos instead")
    try:
        house.indexer.start([str(chosen_folder(path, house.settings.gallery))])
    except Problem as problem:
        return _page_again(request, house, problem)
    return _back()


@router.post("/again")
def again(house: Served) -> Response:
    """Bring all folders of the gallery up to date; a run that was cut off goes on."""
    house.indexer.start([])
    return _back()


@router.post("/stop")
def stop(house: Served) -> Response:
    """Stop the run; what is done stays, and the next run goes on from there."""
    house.indexer.stop()
    return _back()


@router.post("/photos")
def add_photos(
    house: Served, photos: Annotated[list[UploadFile], File()], start: Annotated[bool, Form()] = False
) -> Response:
    """Keep photos in the gallery's folder for uploads; with `start` they are indexed, and the page comes back."""
    if len(photos) > MOST_AT_ONCE:
        raise Problem(413, f"at most {MOST_AT_ONCE} photos at once")
    folder, most = uploads_of(house.settings.gallery), house.settings.upload_bytes
    added, failed = [], []
    for photo in photos:
        try:
            added.append(write_photo(folder, photo.filename or "", photo.file.read(most + 1), most))
        except (Problem, EyespotError) as error:  # the others are stored and indexed
            failed.append(f"{photo.filename}: {error}")
    if not added:
        raise Problem(422, "; ".join(failed[:10]) or "there is no photo")
    if not start:
        return JSONResponse({"added": added, "failed": failed}, 201)
    house.indexer.start([str(folder)], failed)
    return _back()


@router.post("/uploads")
def index_uploads(house: Served) -> Response:
    """Index what was brought."""
    folder = uploads_of(house.settings.gallery)
    if not folder.is_dir():
        raise Problem(422, "no photo was brought yet; drop some into the page")
    house.indexer.start([str(folder)])
    return _back()


def _back() -> Response:
    return RedirectResponse("/add", 303)


def _state(house: AppState) -> dict[str, Any]:
    run = house.indexer.progress
    try:
        contents = gallery_contents(house.settings.gallery)
    except EyespotError as error:  # the ledger is being written for the first time
        contents = None
        run.notes.append(str(error)) if run.state == "idle" else None
    failures = contents.failures if contents else []
    return {
        "run": run,
        "contents": contents,
        "failures": failures[:FAILURES],
        "failed": len(failures),
        "most_bytes": house.settings.upload_bytes,
    }
