"""Connections of `eyespot serve`: HTTP/1.1 by h11, with limits on their number and on how long a request takes to come.

What comes in pieces, as a download or a film, gives way to all that comes whole, as a page of hits.

uvicorn itself waits without end for the rest of a request, so a few hundred half-sent ones would hold every file that
the process may open.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from eyespot.web._problems import Problem, problem_json
from eyespot.web._security import LARGEST_HEAD

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SLOWEST = 1 << 12  # bytes a second
PACE = 4 << 20  # bytes a second that a download has at least, however many others are waiting
RECHECK = 0.004  # seconds after which a download asks again whether somebody waits
GRACEFUL = 5  # seconds that a request has after the signal to end, and a thread after that
MOST = 500  # connections at once; the usual limit of open files is 1,024


class Connection(H11Protocol):
    """One connection. Above `MOST` the one that has been silent longest between two requests is closed."""

    seconds = 30.0  # that a request may take to come, beside those for bytes that come no slower than SLOWEST
    _timer: asyncio.TimerHandle | None = None
    _heard = _end = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._watch(0)
        if len(self.connections) > MOST:
            others = [one for one in self.connections if isinstance(one, Connection)]
            idle = [one for one in others if one.conn.their_state is h11.IDLE and not one.transport.is_closing()]
            min(idle, key=lambda one: one._heard).transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP gets a problem as well, as the API's description promises; uvicorn sends plain text."""
        status = getattr(sys.exception(), "error_status_hint", 400)  # 431 where the head is too long
        answer = problem_json(Problem(status, f"{msg.removesuffix('.')}; send HTTP/1.1 with a shorter head"))
        head = h11.Response(status_code=status, headers=[*answer.raw_headers, (b"connection", b"close")])
        events = (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage())
        # In one piece: what the client still sends may reset the connection before a second one arrives
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def _watch(self, came: int) -> None:
        """A request that comes byte by byte has no more time than one that stops."""
        self._heard = time.monotonic()
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):  # it has come whole
            self._stop_timer()
        elif self._timer is None:
            self._end = self._heard + self.seconds
            self._timer = self.loop.call_later(self.seconds, self._give_up)
        self._end += came / SLOWEST

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if (left := self._end - time.monotonic()) > 0 or self.flow.read_paused:  # what is not read yet cannot come
            self._timer = self.loop.call_later(max(left, 1.0), self._give_up)
        elif self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            self.transport.close()


class DownloadsLast:
    """A middleware that takes the next piece of a long answer once nobody waits for a short one, or at `PACE`.

    Threads share the interpreter's lock, so a search beside a thread that makes a zip takes twice as long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.waiting = app, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        waits = scope["type"] == "http"  # and not "lifespan", which lasts as long as the server
        self.waiting += waits

        async def in_turn(message: Message) -> None:
            nonlocal waits
            await send(message)
            if message.get("more_body"):
                self.waiting -= waits
                waits = False
                latest = time.monotonic() + min(1.0, len(message["body"]) / PACE)
                while self.waiting and time.monotonic() < latest:
                    await asyncio.sleep(RECHECK)

        try:
            await self.app(scope, receive, in_turn)
        finally:
            self.waiting -= waits


class Server(uvicorn.Server):
    """uvicorn for a process of its own, which ends however slowly somebody reads and whatever threads still compute."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for one in self.server_state.connections:
            asyncio.get_running_loop().call_later(GRACEFUL - 1, one.transport.abort)
        await super().shutdown(sockets)  # logs a traceback for each who is left; then all is on the disk
        end = threading.Timer(GRACEFUL, os._exit, [143])
        end.daemon = True
        end.start()


def server_config(app: FastAPI, seconds: float) -> uvicorn.Config:
    """The settings of uvicorn for `app`, which closes a connection whose head takes more than `seconds`."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # what people search for is their own
        proxy_headers=False,  # else a client could choose its address with X-Forwarded-For
        server_header=False,
        ws="none",
        http=type("Connection", (Connection,), {"seconds": seconds}),
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACEFUL,
    )
