"""One indexing run at a time in the background, with what it does; stopped or killed, the next one goes on."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Literal

from eyespot.encoders.model import chosen
from eyespot.gallery.disk import growing_encoders
from eyespot.gallery.reading import NoPictureIndex, reading
from eyespot.types import EyespotError
from eyespot.web._problems import Problem

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Summary

ENDING = 20  # seconds that the end waits for a run to stop


@dataclass
class IndexProgress:
    """How a run goes: what it does, how far that is (0 of 0: nobody knows), and in sentences what should be known."""

    state: Literal["idle", "running", "stopping", "done", "stopped", "failed"] = "idle"
    what: str = ""
    done: int = 0
    total: int = 0
    new: int = 0
    notes: list[str] = field(default_factory=list)


class _Stopping(Exception):
    """Somebody stops the run; what is finished stays."""


class Indexer:
    """The indexing runs of a server."""

    def __init__(self, gallery: Path) -> None:
        self.gallery = gallery
        self._progress, self._lock = IndexProgress(), Lock()
        self._stop, self._thread = Event(), None  # type: Event, Thread | None

    @property
    def progress(self) -> IndexProgress:
        """How the run of now or the last one goes."""
        with self._lock:
            return deepcopy(self._progress)

    def start(self, folders: Sequence[str], notes: Sequence[str] = ()) -> None:
        """Index folders, or all of the gallery's if none is named; `Problem` while another run is under way."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise Problem(409, "photos are being added already; wait until that is done, or stop it")
            self._progress = IndexProgress("running", "starting", notes=[*notes])
            self._stop.clear()
            self._thread = Thread(target=self._run, args=(list(folders),), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Let a run end soon."""
        with self._lock:
            if self._progress.state == "running":
                self._progress.state = "stopping"
        self._stop.set()

    def close(self) -> None:
        """Stop, and wait a moment for what is being written."""
        self.stop()
        if self._thread is not None:
            self._thread.join(ENDING)

    def _run(self, folders: Sequence[str]) -> None:
        from eyespot.gallery.indexing import Options, index

        try:
            encoders = chosen(None, growing_encoders(self.gallery), lambda note: self._add_notes([note]))
            self._end("done", index(self.gallery, folders, encoders, Options(progress=self._advance)))
        except _Stopping:
            self._end("stopped")
        except EyespotError as error:
            self._add_notes([str(error)])
            self._end("failed")
        except BaseException:
            self._add_notes(["something went wrong; what happened stands in the server's output"])
            self._end("failed")
            raise

    def _advance(self, what: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _Stopping
        with self._lock:
            self._progress.what, self._progress.done, self._progress.total = what, done, total

    def _add_notes(self, notes: Sequence[str]) -> None:
        with self._lock:
            self._progress.notes += [note for note in notes if note not in self._progress.notes]

    def _end(self, state: Literal["done", "stopped", "failed"], summary: Summary | None = None) -> None:
        self._add_notes(summary.notes if summary else ())
        with self._lock:
            self._progress.new = summary.embedded if summary else 0
            self._progress.state = state


def gallery_contents(gallery: Path) -> dict[str, Any]:
    """What the gallery's ledger knows: folders, pictures, what waits since a run was cut off, what could not be read.

    `failures` are pairs of a path and the reason. All is empty where there is no gallery yet.
    """
    try:
        with reading(gallery) as ledger:
            roots = ledger.roots()
            places = {number: f"{root.path}/" for number, root in roots.items()}
            return {
                "folders": [root.place for root in roots.values()],
                "pictures": ledger.counts()[0],
                "waiting": sum(ledger.planned().values()),
                "failures": [(places.get(one.root, "") + one.path, one.reason) for one in ledger.failures()],
            }
    except NoPictureIndex:
        return {"folders": [], "pictures": 0, "waiting": 0, "failures": []}
