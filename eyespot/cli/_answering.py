"""What `eyespot serve` says to `eyespot search` on the same machine: the very bytes that it would print by itself."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli.console import printed_to

if TYPE_CHECKING:
    from fastapi import FastAPI

    from eyespot.search.collection import Collection

Opener = Callable[[Path, "str | None", str], "Collection"]
_OPENER: ContextVar[Opener | None] = ContextVar("_OPENER", default=None)
MOST_WORDS = 1000


def open_collection(gallery: Path, encoder: str | None, index: str) -> Collection:
    """The collection to search: of a server that runs this search, the one that it has open; else a new one."""
    opener = _OPENER.get()
    if opener is not None:
        return opener(gallery, encoder, index)
    import eyespot

    return eyespot.open(gallery, encoder, index)


def install(app: FastAPI) -> None:
    """Add the route to a server; only a search on this machine that has the token of the server's note is answered.

    Lines are limited here once more to those that write and read no file: whoever has the token may send any.
    """
    from fastapi import HTTPException, Request
    from pydantic import BaseModel

    from eyespot.cli._ask_server import PATH, plain_line

    state = app.state.eyespot

    class CommandLine(BaseModel):
        words: list[str]

    def route(request: Request, line: CommandLine) -> dict[str, Any]:
        words = line.words
        plain = plain_line(words[1:]) if words[:1] == ["search"] else None
        if not request.scope["person"].internal or plain is None:
            raise HTTPException(403, "this is for plain lines of eyespot search on the same machine")
        if not state.snapshots.ready or len(words) > MOST_WORDS:
            raise HTTPException(503, "not yet")
        try:
            return _run(state, ["search", *plain[1], f"--gallery={plain[0]}"])
        except BaseException as error:  # whatever it is, the search itself says it best
            if isinstance(error, KeyboardInterrupt | GeneratorExit):
                raise
            raise HTTPException(409, "search without the server") from None

    # Types are given here, for those of a nested function are not found by their names
    route.__annotations__ = {"request": Request, "line": CommandLine, "return": dict[str, Any]}
    app.post(PATH, include_in_schema=False)(route)


def _run(state: Any, words: list[str]) -> dict[str, Any]:
    """What `eyespot WORDS…` prints, over the gallery as the server has it open."""
    import typer

    from eyespot.cli._verbs import app
    from eyespot.gallery.view import Gallery

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=how) for how in ("strict", "backslashreplace"))

    def opener(path: Path, encoder: str | None, index: str) -> Collection:
        if index != "exact" or not path.samefile(state.settings.gallery):
            raise LookupError(path)
        return _under(path, encoder, snapshot.collection)

    command = typer.main.get_command(app)
    # The encoder whose space this line searches: that of -e, else the gallery's own, whatever the server's
    named = [word for at, word in enumerate(words) if at and words[at - 1] in ("-e", "--encoder")]
    named += [word.partition("=")[2] for word in words if word.startswith("--encoder=")]
    gallery = Gallery(state.settings.gallery)
    space = gallery.header.spaces[gallery.stem(named[-1] if named else None)]
    snapshot = state.snapshots.current(str(space.encoder))
    token = _OPENER.set(opener)
    try:
        with snapshot.alone(), printed_to(out, err):
            code = command.main(args=words, prog_name="eyespot", standalone_mode=False)
    finally:
        _OPENER.reset(token)
    out.flush()
    err.flush()
    stdout, stderr = (stream.buffer.getvalue() for stream in (out, err))
    return {
        "code": code if isinstance(code, int) else 0,
        "stdout": stdout.decode("utf-8", "surrogateescape"),
        "stderr": stderr.decode(),
    }


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
