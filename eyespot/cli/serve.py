"""`eyespot serve`: the gallery in the browser, and an API for programs; `eyespot mcp`: for an assistant, over stdio."""

from __future__ import annotations

import gc
import ipaddress
import secrets
import socket
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eyespot.cli import _answering
from eyespot.cli.console import warn, warn_all
from eyespot.cli.settings import gallery_here
from eyespot.rooms import needs
from eyespot.settings.search import McpSettings, ServeSettings
from eyespot.types import EyespotError

if TYPE_CHECKING:
    from eyespot.web import ServerSettings


def run(settings: ServeSettings) -> None:
    """Serve the gallery to a browser: search, annotation, and the API described at /docs."""
    with needs("eyespot serve"):
        from eyespot import web

    host, here = settings.host, settings.host == "localhost"
    with suppress(ValueError):  # a name
        here = ipaddress.ip_address(host).is_loopback
    # A token is made where one is needed and none is given
    fresh = secrets.token_urlsafe(24) if settings.tokens is None and (settings.always_token or not here) else ""
    access = web.read_access(settings.tokens) if settings.tokens is not None else ()
    access += (web.Access.by(fresh, "owner", web.Role.OWNER),) if fresh else ()
    internal = secrets.token_urlsafe(24)  # of eyespot search on this machine
    judges = web.read_named("--rerank", settings.rerank)
    # The names of the server, also that of its own address; None: any name, because everybody needs a token
    names = tuple(map(str.lower, [*settings.allow_host, host])) if settings.allow_host else () if here else None
    place = gallery_here(settings.gallery)
    if here and not settings.gallery:
        place = begin_gallery(place)
    server = web.ServerSettings(
        place,
        settings.encoder,
        (*access, web.Access.by(internal, "search", web.Role.OWNER, internal=True)),
        hosts=names,
        trust_loopback=not settings.always_token,
        refused=web.read_refused(settings.refuse) if settings.refuse else (),
        cache=settings.cache,
        upload_bytes=settings.max_upload << 20,
        seconds=settings.timeout,
        reviews=settings.review,
        originals=web.Role.from_name(settings.originals),
        adapters=web.read_named("--adapt", settings.adapt),
        ray=settings.ray,
        workers=settings.workers,
        index=settings.index,
        allowed=tuple((settings.allow or "").split(",")),
        judging=web.Judging(judges, settings.depth, settings.budget_calls, settings.budget_money, settings.prices),
    )
    _listen(server, host, settings.port, internal=internal, fresh=fresh)


def mcp(settings: McpSettings) -> None:
    """Let an assistant (Claude, Cursor, …) search the gallery and look at its pictures; only reads unless allowed."""
    with needs("eyespot mcp"):
        from eyespot.web import ServerSettings
        from eyespot.web.mcp import run_stdio

    place = gallery_here(settings.gallery)
    run_stdio(ServerSettings(place, settings.encoder, allowed=tuple((settings.allow or "").split(","))))


def _listen(settings: ServerSettings, host: str, port: int, *, internal: str, fresh: str) -> None:
    """Serve until Ctrl-C. internal: the token of searches on this machine; fresh: one for people, if any was made."""
    from threadpoolctl import threadpool_limits

    from eyespot import web
    from eyespot.web.connections import Server, server_config

    app = web.application(settings)
    adapters = app.state.eyespot.adapters.items()  # visitors see these beside their answers
    warn_all(f"--adapt {name}: {adapter.caution}" for name, adapter in adapters if adapter.caution is not None)
    _answering.install(app)
    with listening(host, port) as listener:
        address, number = listener.getsockname()[:2]
        # Behind `#` a token stays in the browser: it is neither sent nor logged.
        page = f"{f'[{address}]' if ':' in address else address}:{number}/{f'login#token={fresh}' if fresh else ''}"
        warn(f"look at http://{page}; Ctrl-C ends")
        reached = host in ("127.0.0.1", "localhost", "0.0.0.0")  # by a search on this machine, at 127.0.0.1
        # Else a thread with a lock that others need waits long behind a page that is being drawn
        sys.setswitchinterval(0.001)
        gc.freeze()  # modules stay: going through all of them again would hold up everybody's pages
        # The threads of BLAS keep a processor busy for a while after each of the small products that a search needs.
        with (
            _answering.noted(str(settings.gallery), number, internal) if reached else nullcontext(),
            threadpool_limits(1, user_api="blas"),
        ):
            Server(server_config(app, settings.seconds)).run(sockets=[listener])


def begin_gallery(place: Path) -> Path:
    """The gallery there; one without photos is made where there is none, for photos can be added on its page."""
    if (place / "gallery.toml").exists():
        return place
    from eyespot import rooms
    from eyespot.gallery.indexing import index

    index(place, [], [rooms.load("encoders", "starter")])
    warn(f"{place} is a new gallery without photos; add some on the page")
    return place


def listening(host: str, port: int) -> socket.socket:
    """The socket of the server, bound first: port 0 gets a number that can be shown, a taken port gives an error."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise EyespotError(f"cannot listen on {host}:{port} ({why}); choose another --port or --host") from None
    # asyncio sets TCP_NODELAY on sockets that name their protocol alone, and `create_server` names none: every small
    # answer would wait some 40 ms for the client's delayed acknowledgement.
    return socket.socket(bound.family, bound.type, socket.IPPROTO_TCP, fileno=bound.detach())
