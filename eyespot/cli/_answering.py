"""What `eyespot serve` says to `eyespot search` on the same machine: the very bytes that it would print by itself."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli._ask_server import PATH, identity, note_place, plain_line
from eyespot.cli._searching import OPENER, search_plainly
from eyespot.cli.console import printed_to
from eyespot.storage.flock import lock_now

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

    from eyespot.search.collection import Collection

MOST_WORDS = 1000


def install(app: FastAPI) -> None:
    """Add the route to a server; only a search on this machine that has the token of the server's note is answered.

    Lines are limited here once more to those that write and read no file: whoever has the token may send any.
    """
    from asyncio import CancelledError

    from fastapi import HTTPException
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import Response

    state = app.state.eyespot

    async def route(request: Request) -> Response:
        words = (await request.body()).decode("utf-8", "surrogateescape").split("\0")
        plain = plain_line(words[1:]) if words[:1] == ["search"] else None
        if not request.scope["person"].internal or plain is None:
            raise HTTPException(403, "this is for plain lines of eyespot search on the same machine")
        if not state.snapshots.ready or len(words) > MOST_WORDS:
            raise HTTPException(503, "not yet")
        try:
            out, err = await run_in_threadpool(_run, state, *plain)
        except BaseException as error:  # whatever it is, the search itself says it best
            if isinstance(error, KeyboardInterrupt | GeneratorExit | CancelledError):
                raise
            raise HTTPException(409, "search without the server") from None
        return Response(b"%d %d\n%b%b" % (len(err), len(out), err, out))

    app.add_route(PATH, route, ["POST"], include_in_schema=False)


def _run(state: Any, place: str, words: list[str]) -> tuple[bytes, bytes]:
    """Stdout and stderr of `eyespot search WORDS…`, over the gallery as the server has it open."""
    from eyespot.gallery.view import Gallery

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=how) for how in ("strict", "backslashreplace"))

    def opener(path: Path, encoder: str | None, index: str) -> Collection:
        if index != "exact" or not path.samefile(state.settings.gallery):
            raise LookupError(path)
        return _under(path, encoder, snapshot.collection)

    # The encoder whose space this line searches: that of -e, else the gallery's own, whatever the server's
    named = [word for at, word in enumerate(words) if at and words[at - 1] in ("-e", "--encoder")]
    gallery = Gallery(state.settings.gallery)
    space = gallery.header.spaces[gallery.stem(named[-1] if named else None)]
    snapshot = state.snapshots.current(str(space.encoder))
    token = OPENER.set(opener)
    try:
        with snapshot.alone(), printed_to(out, err):
            if not search_plainly(place, words):
                raise LookupError(words)
    finally:
        OPENER.reset(token)
    out.flush()
    err.flush()
    return out.buffer.getvalue(), err.buffer.getvalue()


def _under(path: Path, encoder: str | None, collection: Collection) -> Collection:
    """The same collection under the name by which the search calls its gallery: notes have it."""
    for name in ("words", "index", "encoder", "contrast"):  # opened under the server's own name
        getattr(collection, name)
    gallery = copy(collection.gallery)
    gallery.path = path
    if gallery.stem(encoder) != collection.view.stem:
        raise LookupError(encoder)
    made = copy(collection)
    made.gallery = gallery
    return made


# -- the note -------------------------------------------------------------------------------------------------------


@contextmanager
def noted(gallery: str, port: int, token: str) -> Iterator[bool]:
    """A block during which searches on this machine find the server; False where they do not.

    They do not where another server runs, settings in the environment would change it, or nothing may be written.
    """
    settings = {name for name in os.environ if name.startswith("EYESPOT_")} - {"EYESPOT_GALLERY"}
    handle, place = None, ""
    with suppress(OSError):
        place = note_place(gallery)
        if not settings:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if handle is None:
        yield False
        return
    # Only this user may read the file, locked as long as this process lives; a search sees whether the lock is free by
    # holding it for a moment
    attempt = 0
    while not lock_now(handle):
        attempt += 1
        if attempt == 5:
            os.close(handle)
            yield False
            return
        time.sleep(0.02 * attempt)
    try:
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 0)
        os.write(handle, os.fsencode(f"{port}\n{token}\n{identity(gallery)}"))
        yield True
    finally:
        with suppress(OSError):
            os.unlink(place)
        os.close(handle)
