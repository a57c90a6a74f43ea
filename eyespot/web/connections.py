"""Connections of `eyespot serve`: HTTP/1.1 by h11, with a limit on their number and on the time that a head takes.

uvicorn itself waits without end for the rest of a request's head, so a few hundred half-sent requests would hold every
file that the process may open.
"""

from __future__ import annotations

import asyncio
import time

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 500  # connections at once; the usual limit of open files is 1,024


class Connection(H11Protocol):
    """One connection. Above `MOST` the one that has been silent longest between two requests is closed."""

    seconds = 30.0  # that the head of a request may take
    _timer: asyncio.TimerHandle | None = None
    _heard = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._note_progress()
        if len(self.connections) > MOST:
            others = [one for one in self.connections if isinstance(one, Connection)]
            idle = [one for one in others if one.conn.their_state is h11.IDLE and not one.transport.is_closing()]
            min(idle, key=lambda one: one._heard).transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _note_progress(self) -> None:
        """A head that comes byte by byte has no more time than one that stops."""
        self._heard = time.monotonic()
        if self.conn.their_state is not h11.IDLE:  # the head is complete
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


def connections_within(seconds: float) -> type[Connection]:
    """The class of connections that close where the head of a request takes longer."""
    return type("Connection", (Connection,), {"seconds": seconds})
