"""Search by workers on Ray for a server that outlives the cluster: what is lost is searched here meanwhile.

Ray ends a process whose cluster is gone. So a process of its own speaks to Ray (`eyespot.cluster.driver`). When that
ends, or the workers do not answer, the server searches by itself, with the same answers, says so, and connects again.
This module needs no Ray.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from numpy.typing import NDArray

import eyespot
from eyespot.cluster import wire
from eyespot.kernels.codes import NotFiniteVectors
from eyespot.types import EyespotError, UsageError

_GONE = "the Ray cluster is gone"
_ENDING = 20.0  # seconds in which the process ends by itself
_LONGEST = 30.0  # seconds between two attempts to connect


class LinkLostError(EyespotError):
    """The workers do not answer; why, in a few words."""


class RowsClosedError(EyespotError):
    """The process that speaks to Ray has closed these rows, for it opened others since; open them again."""


class UnreadableRowsError(EyespotError):
    """The workers cannot open these rows, such as those of shards that were merged since; others they can."""


class DriverProcess:
    """One process that speaks to Ray, from its beginning to its end."""

    def __init__(self, address: str, workers: int) -> None:
        """Returns when the cluster answers; `EyespotError` says why it does not."""
        line = [sys.executable, "-P", "-m", "eyespot.cluster.driver", address, str(workers)]
        place = str(Path(eyespot.__file__).resolve().parent.parent)  # where Python finds the same eyespot
        path = os.pathsep.join(filter(None, [place, os.environ.get("PYTHONPATH")]))
        # A session of its own: Ctrl-C is for the server, which then ends this
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path},
            )
        except OSError as error:  # no memory, or too many processes or open files; later there may be room
            raise EyespotError(f"no process that speaks to Ray can begin ({error}); see what else runs here") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._writing, self._waiting, self._ids = threading.Lock(), dict[int, Future[wire.Message]](), count()
        self.opened: set[str] = set()  # galleries that it knows
        self.ended = False
        try:
            head, _ = wire.read(self._from)
        except EOFError:
            head = {"fault": "lost", "text": f"Ray does not begin at {address}; try eyespot search --ray {address}"}
        if "fault" in head:
            self.close()
            _raise(head)
        self.workers = int(head["workers"])
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self) -> None:
        """Return when it has ended."""
        self._reader.join()

    def ask(self, head: dict[str, Any], arrays: Sequence[NDArray[Any]] = ()) -> Sequence[NDArray[Any]]:
        """The arrays of the answer; `LinkLostError` if none comes."""
        return self.answer(head, arrays)[1]

    def answer(
        self, head: dict[str, Any], arrays: Sequence[NDArray[Any]] = (), seconds: float | None = None
    ) -> wire.Message:
        """The whole answer."""
        future: Future[wire.Message] = Future()
        with self._writing:
            if self.ended:
                raise LinkLostError(_GONE)
            number = next(self._ids)
            self._waiting[number] = future
            try:
                wire.write(self._to, head | {"id": number}, arrays)
            except OSError as error:
                raise LinkLostError(_GONE) from error
        try:
            found, more = future.result(seconds)
        except TimeoutError as error:
            raise LinkLostError("the workers are silent") from error
        if "fault" in found:
            _raise(found)
        return found, more

    def close(self) -> None:
        """End it; its workers end with it."""
        with suppress(OSError):
            self._to.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        with suppress(EOFError, OSError, ValueError):
            while True:
                head, arrays = wire.read(self._from)
                if (waiting := self._waiting.pop(head["id"], None)) is not None:
                    waiting.set_result((head, arrays))
        with self._writing:
            self.ended, lost = True, list(self._waiting.values())
        for waiting in lost:
            waiting.set_exception(LinkLostError(_GONE))


class RayLink:
    """Workers on Ray, as long as a server runs: `driver` is None while the cluster is gone, and comes back."""

    def __init__(self, address: str, workers: int = 0) -> None:
        """Connects; `EyespotError` or `UsageError` if the cluster does not answer or has no room."""
        self._address, self._wanted = address, workers
        self._state, self._closing, self._failures = threading.Lock(), threading.Event(), 0
        self.reason, self.questions, self.by_itself, self.connections = "", 0, 0, 1
        self.on_connect: Callable[[], object] = lambda: None  # when the cluster is back
        self.driver: DriverProcess | None = DriverProcess(address, workers)
        self.workers = self.driver.workers
        self._watch(self.driver)

    @property
    def notes(self) -> Sequence[str]:
        """What readers of an answer should know while the workers are away."""
        if self.driver is not None:
            return ()
        return (f"the workers on Ray do not answer ({self.reason}), so this server searches alone, which takes longer",)

    def alive(self, seconds: float = 2.0) -> int:
        """How many workers give a sign of life within some seconds."""
        driver, question = self.driver, {"do": "alive", "seconds": seconds}
        with suppress(EyespotError):
            return int(driver.answer(question, seconds=2 * seconds)[0]["alive"]) if driver else 0
        return 0

    def ask(self, work: Callable[[DriverProcess], Any], instead: Callable[[], Any]) -> Any:
        """What the workers answer; what this process finds `instead` where they do not."""
        driver = self.driver
        try:
            if driver is not None:
                found = work(driver)
                self.questions, self._failures = self.questions + 1, 0
                return found
        except LinkLostError as error:
            self.lost(driver, str(error))
        except (RowsClosedError, UnreadableRowsError):
            pass  # of these rows alone: the workers go on with others
        self.by_itself += 1
        return instead()

    def lost(self, driver: DriverProcess | None, reason: str) -> None:
        """Give a driver up, and connect anew in the background."""
        with self._state:
            if driver is None or driver is not self.driver:
                return  # somebody else noticed first
            self.driver, self.reason, self._failures = None, reason, self._failures + 1
        threading.Thread(target=self._connect_again, args=(driver,), daemon=True).start()

    def _watch(self, driver: DriverProcess) -> None:
        """Notice the end of a driver also while nobody searches."""

        def watch() -> None:
            driver.wait()
            self.lost(driver, _GONE)

        threading.Thread(target=watch, daemon=True).start()

    def close(self) -> None:
        """End the workers."""
        self._closing.set()
        with self._state:
            driver, self.driver, self.reason = self.driver, None, "the server ends"
        if driver is not None:
            driver.close()

    def _connect_again(self, old: DriverProcess) -> None:
        old.kill()
        pause = min(_LONGEST, 0.5 * 2**self._failures)
        while not self._closing.wait(pause):
            try:
                fresh = DriverProcess(self._address, self._wanted)
            except EyespotError as error:
                self.reason, pause = str(error), min(_LONGEST, 2 * pause)
                continue
            with self._state:
                taken = not self._closing.is_set()
                if taken:
                    self.driver, self.workers, self.connections = fresh, fresh.workers, self.connections + 1
            if not taken:
                return fresh.close()
            self._watch(fresh)
            self.on_connect()
            return


_FAULTS = {
    "usage": UsageError,
    "damage": NotFiniteVectors,
    "closed": RowsClosedError,
    "unreadable": UnreadableRowsError,
}


def _raise(head: dict[str, Any]) -> NoReturn:
    """What the process on the other side ran into, as it would have been here."""
    kind: type[EyespotError] = _FAULTS.get(head["fault"], LinkLostError)
    raise kind(head["text"])
