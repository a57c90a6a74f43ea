"""Photos into the gallery from the browser: a folder of this machine, or photos that are dropped; for the owner.

A folder is named only by whoever sits at this machine without a token, for a path is read. Everything else goes into
one folder of the gallery. A run that was cut off goes on where it was.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from starlette.responses import RedirectResponse

from eyespot.photos.pictures import BadPicture, id_of, thumbnail
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.systems import is_inside
from eyespot.types import EyespotError
from eyespot.web._indexer import gallery_contents
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem, wants_page
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State

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
    request: Request, state: State, person: Owner, under: Annotated[str | None, Query(max_length=4000)] = None
) -> Response:
    """What is in the gallery, what can be added, and how far a run is."""
    try:
        listing = list_folders(under) if sits_here(person) else None
    except Problem as problem:
        return _page_again(request, state, problem)
    return page(request, "add.html", listing=listing, wrong="", **_state(state))


def _page_again(request: Request, state: AppState, problem: Problem) -> Response:
    """The page with what is wrong, for people; a program gets the problem."""
    if not wants_page(request.headers, request.url.path):
        raise problem
    shown = {"listing": list_folders(None), "wrong": problem.detail}
    return page(request, "add.html", problem.status, **shown, **_state(state))


@router.get("/state")
def state(request: Request, state: State) -> Response:
    """How far the run is, to be laid into a page every second."""
    return page(request, "indexing.html", **_state(state))


@router.post("/folder")
def add_folder(
    request: Request, state: State, person: Owner, path: Annotated[str, Form(max_length=4000)] = ""
) -> Response:
    """Index a folder of this machine."""
    if not sits_here(person):
        raise Problem(403, "only whoever sits at the machine that serves may name a folder of it; drop photos instead")
    try:
        state.indexer.start([str(chosen_folder(path, state.settings.gallery))])
    except Problem as problem:
        return _page_again(request, state, problem)
    return RedirectResponse("/add", 303)


@router.post("/again")
def again(state: State) -> Response:
    """Bring all folders of the gallery up to date; a run that was cut off goes on."""
    state.indexer.start([])
    return RedirectResponse("/add", 303)


@router.post("/stop")
def stop(state: State) -> Response:
    """Stop the run; what is done stays, and the next run goes on from there."""
    state.indexer.stop()
    return RedirectResponse("/add", 303)


@router.post("/photos")
def add_photos(
    state: State, photos: Annotated[list[UploadFile], File()], start: Annotated[bool, Form()] = False
) -> Response:
    """Keep photos in the gallery's folder for uploads; with `start` they are indexed, and the page comes back."""
    if len(photos) > MOST_AT_ONCE:
        raise Problem(413, f"at most {MOST_AT_ONCE} photos at once")
    folder, most = uploads_of(state.settings.gallery), state.settings.upload_bytes
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
    state.indexer.start([str(folder)], failed)
    return RedirectResponse("/add", 303)


@router.post("/uploads")
def index_uploads(state: State) -> Response:
    """Index what was brought."""
    folder = uploads_of(state.settings.gallery)
    if not folder.is_dir():
        raise Problem(422, "no photo was brought yet; drop some into the page")
    state.indexer.start([str(folder)])
    return RedirectResponse("/add", 303)


def _state(state: AppState) -> dict[str, Any]:
    run = state.indexer.progress
    try:
        contents = gallery_contents(state.settings.gallery)
    except EyespotError as error:  # the ledger is being written for the first time
        contents = None
        run.notes.append(str(error)) if run.state == "idle" else None
    failures = contents["failures"] if contents else []
    return {
        "run": run,
        "contents": contents,
        "failures": failures[:FAILURES],
        "failed": len(failures),
        "most_bytes": state.settings.upload_bytes,
    }


UPLOADS = "uploads"  # the gallery's folder of what people bring
LISTED = 300  # folders
COUNTED = 5000  # files of a folder that are looked at to count its photos
SIDE = 320  # pixels, to see whether a picture is whole
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".heic", ".heif", ".avif")
_WRITING = Lock()  # two photos of one name have one name while they are written
OF_FORMAT = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "TIFF": ".tif"}


def list_folders(under: str | None) -> dict[str, Any]:
    """A folder of the home (`here`), the one `above` it in the home, and its `folders`; `Problem` for any other."""
    home = os.path.realpath(Path.home())
    here = os.path.realpath(under) if under and "\0" not in under else home
    if "\0" in (under or "") or not is_inside(here, home) or not os.path.isdir(here):
        raise Problem(422, "this folder is not in your home; type its whole path")
    above = os.path.dirname(here) if here != home else None
    found: list[os.DirEntry[str]] = []
    with suppress(OSError), os.scandir(here) as entries:
        for entry in entries:
            with suppress(OSError):
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    found.append(entry)
        found.sort(key=lambda one: one.name.casefold())
    folders = [_folder(entry.path, entry.name) for entry in found[:LISTED]]
    return {"here": _folder(here, os.path.basename(here) or here), "above": above, "folders": folders}


def _folder(path: str, name: str) -> dict[str, Any]:
    """A folder to choose, with how many photos lie right in it, of its first files."""
    photos = 0
    with suppress(OSError), os.scandir(path) as entries:
        names = (entry.name for entry, _ in zip(entries, range(COUNTED), strict=False))
        photos = sum(name.lower().endswith(SUFFIXES) for name in names)
    return {"path": path, "name": name, "photos": photos}


def chosen_folder(path: str, gallery: Path) -> Path:
    """A folder that somebody typed or chose; `Problem` for what is none."""
    text = path.strip()
    if not text or "\0" in text:
        raise Problem(422, "type the path of a folder, such as /home/ada/Pictures")
    with suppress(RuntimeError):  # of a user that does not exist
        folder = Path(text).expanduser()
        if folder.is_absolute() and folder.is_dir():
            if is_inside(os.path.realpath(folder), os.path.realpath(gallery)):
                raise Problem(422, "this folder is of the gallery itself; choose the folder of your photos")
            return folder
    raise Problem(422, f"there is no folder {text}; type its whole path, such as /home/ada/Pictures")


# -- what people bring ----------------------------------------------------------------------------------------


def uploads_of(gallery: Path) -> Path:
    """The gallery's folder for what people bring."""
    return (gallery / UPLOADS).absolute()


def write_photo(folder: Path, name: str, data: bytes, most: int) -> str:
    """Keep a photo under a name of its own, which is returned; `Problem` for what is too large or no whole picture."""
    if len(data) > most:
        raise Problem(413, f"the photo has more than {most >> 20} MiB; raise the limit with --max-upload")
    try:
        thumbnail(data, SIDE)
    except BadPicture as bad:
        raise Problem(422, bad.reason) from None
    place = folder / safe_name(name, data)
    try:
        with _WRITING:
            if place.exists() and place.read_bytes() != data:
                place = place.with_name(f"{place.stem}-{id_of(data)[:8]}{place.suffix}")
            make_folder(folder)
            write_whole(place, lambda file: file.write(data))
    except OSError as error:
        raise Problem(507, f"the photo cannot be stored ({(error.strerror or str(error)).lower()})") from None
    return place.name


def safe_name(name: str, data: bytes) -> str:
    """A file name without a path, a hidden start or signs that systems refuse, and with the suffix of a picture."""
    from PIL import Image

    base = PurePosixPath(name.replace("\\", "/")).name.lstrip(". ")
    stem, dot, suffix = base.rpartition(".")
    plain = re.sub(r"[^\w .()-]", "_", stem if dot else base).strip(" .")[:80]
    suffix = f".{suffix.lower()}"
    if suffix not in SUFFIXES:
        suffix = ".jpg"
        with suppress(Exception), Image.open(BytesIO(data)) as image:
            suffix = OF_FORMAT.get(image.format or "", suffix)
    return f"{plain or 'photo'}{suffix}"
