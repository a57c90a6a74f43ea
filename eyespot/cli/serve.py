"""`eyespot serve`: the gallery in the browser, and an API for programs."""

from __future__ import annotations

import gc
import ipaddress
import secrets
import socket
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli import _answering
from eyespot.cli._ask_server import noted
from eyespot.cli._judge_options import calls_option, money_option, prices_option
from eyespot.cli._options import ENCODER, flag
from eyespot.cli._ray import ray_option, workers_option
from eyespot.cli.console import note, note_all
from eyespot.cli.settings import gallery_here, gallery_option, index_option, searched_here
from eyespot.settings.judge import DEPTH
from eyespot.types import EyespotError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from eyespot.web import ServerSettings


def run(
    gallery: Path = gallery_option("The gallery to serve."),
    encoder: str = ENCODER,
    host: str = typer.Option(
        "127.0.0.1", "--host", help="The address to listen on; any address except this machine needs tokens."
    ),
    port: int = typer.Option(8000, "--port", min=0, max=65535, help="The port to listen on; 0 takes a free one."),
    tokens: Path = typer.Option(None, "--tokens", help="A file with lines ROLE NAME TOKEN (reader, annotator, owner)."),
    always_token: bool = flag("--always-token", "Require tokens on this machine too: behind a proxy."),
    allow_host: list[str] = typer.Option(None, "--allow-host", help="A host name of the server; repeatable."),
    refuse: Path = typer.Option(None, "--refuse", help="A file of words that queries must not contain, one per line."),
    adapt: list[str] = typer.Option(
        None,
        "--adapt",
        metavar="NAME=CKPT",
        help="An adapter that people can choose: a QuARI checkpoint, or linear:FILE.",
    ),
    rerank: list[str] = typer.Option(
        None, "--rerank", metavar="NAME=JUDGE", help="A judge that people can use for re-ranking; repeatable."
    ),
    depth: int = typer.Option(DEPTH, "--depth", min=1, max=1000, help="How many of the first hits a judge looks at."),
    budget_calls: int = calls_option(),
    budget_money: float = money_option(),
    prices: Path = prices_option(),
    review: list[Path] = typer.Option(None, "--review", help="A review queue, a .jsonl file; repeatable."),
    cache: Path = typer.Option(
        None, "--cache", help="The folder for thumbnails and uploads.", show_default="GALLERY/web"
    ),
    max_upload: int = typer.Option(20, "--max-upload", min=1, max=500, help="The largest upload in MiB."),
    originals: str = typer.Option(
        "owner", "--originals", metavar="ROLE", help="From which role on people may open original files."
    ),
    index: str = index_option(),
    ray: str = ray_option(),
    workers: int = workers_option(),
    timeout: float = typer.Option(30.0, "--timeout", min=1.0, help="Seconds after which a request times out."),
) -> None:
    """Serve the gallery to a browser: search, annotation, and the API described at /docs."""
    from eyespot.rooms import needs

    here = host == "localhost"
    with needs("eyespot serve"):
        from eyespot import web

    with suppress(ValueError):  # a name
        here = ipaddress.ip_address(host).is_loopback
    # A token is made where one is needed and none is given
    fresh = secrets.token_urlsafe(24) if tokens is None and (always_token or not here) else ""
    access = web.read_access(tokens) if tokens is not None else ()
    access += (web.Access.by(fresh, "owner", web.Role.OWNER),) if fresh else ()
    own = secrets.token_urlsafe(24)  # of eyespot search on this machine
    access = (*access, web.Access.by(own, "search", web.Role.OWNER, internal=True))
    # The names of the server, also that of its own address; None: any name, because everybody needs a token
    names = tuple(map(str.lower, [*allow_host, host])) if allow_host else () if here else None
    settings = web.ServerSettings(
        searched_here(gallery, encoder) if gallery or not here else begin_gallery(gallery_here(None)),
        encoder,
        access,
        hosts=names,
        trust_loopback=not always_token,
        refused=web.read_refused(refuse) if refuse else (),
        cache=cache,
        upload_bytes=max_upload << 20,
        seconds=timeout,
        reviews=tuple(review or ()),
        originals=web.Role.from_name(originals),
        adapters=web.read_named("--adapt", adapt or ()),
        ray=ray,
        workers=workers,
        index=index,
        judging=web.Judging(web.read_named("--rerank", rerank or ()), depth, budget_calls, budget_money, prices),
    )
    _listen(settings, host, port, own=own, fresh=fresh)


def _listen(settings: ServerSettings, host: str, port: int, *, own: str, fresh: str) -> None:
    """Serve until Ctrl-C. own: the token of searches on this machine; fresh: one for people, if any was made."""
    from eyespot import web

    app = web.application(settings)
    adapters = app.state.eyespot.adapters.items()  # visitors see these beside their answers
    note_all(f"--adapt {name}: {adapter.caution}" for name, adapter in adapters if adapter.caution is not None)
    _answering.install(app)
    with listening(host, port) as listener:
        address, number = listener.getsockname()[:2]
        # Behind `#` a token stays in the browser: it is neither sent nor logged.
        page = f"{f'[{address}]' if ':' in address else address}:{number}/{f'login#token={fresh}' if fresh else ''}"
        note(f"look at http://{page}; Ctrl-C ends")
        reached = host in ("127.0.0.1", "localhost", "0.0.0.0")  # by a search on this machine, at 127.0.0.1
        with noted(str(settings.gallery), number, own) if reached else nullcontext():
            _serve(app, listener, settings.seconds)


def begin_gallery(place: Path) -> Path:
    """The gallery there; one without photos is made where there is none, for photos can be added on its page."""
    if (place / "gallery.toml").exists():
        return place
    from eyespot import rooms
    from eyespot.gallery.indexing import index

    index(place, [], [rooms.load("encoders", "starter")])
    note(f"{place} is a new gallery without photos; add some on the page")
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


def _serve(app: FastAPI, listener: socket.socket, timeout: float) -> None:
    import uvicorn
    from threadpoolctl import threadpool_limits

    from eyespot.web.connections import server_config

    # Else a thread with a lock that others need waits long behind a page that is being drawn
    sys.setswitchinterval(0.001)
    gc.freeze()  # modules stay: looking through all of them again would hold up everybody's pages
    # The threads of BLAS keep a processor busy for a while after each of the small products that a search needs.
    with threadpool_limits(1, user_api="blas"):
        uvicorn.Server(server_config(app, timeout)).run(sockets=[listener])
