"""A map in the making: a process of its own, and what it last said of how far it is."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any, Literal
from weakref import WeakKeyDictionary

from eyespot.extras import needed
from eyespot.gallery.view import View
from eyespot.web._problems import Problem
from eyespot.web._state import AppState

Work = Literal["compute", "place"]


@dataclass
class Making:
    """How far a map is: `running`, `done` or `failed`; what is being done, how much of it, and of how much."""

    work: Work
    state: Literal["running", "done", "failed"] = "running"
    what: str = "starting"
    done: int = 0
    total: int = 0
    problem: str | None = None

    def fields(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


_MAKING: WeakKeyDictionary[AppState, Making] = WeakKeyDictionary()
_STARTING = Lock()


def making_of(house: AppState) -> Making | None:
    """The map that this server made last, or makes now."""
    return _MAKING.get(house)


def start(house: AppState, view: View, work: Work) -> Making:
    """Begin to make a map, unless one is in the making; `Problem` where the library for it is missing."""
    if work == "compute" and find_spec("openTSNE") is None:
        raise Problem(422, needed("the map", "openTSNE"))
    with _STARTING:
        known = _MAKING.get(house)
        if known is not None and known.state == "running":
            return known
        making = _MAKING[house] = Making(work)
        line = [sys.executable, "-P", "-m", "eyespot.gallery.layout.worker", str(view.gallery.path), view.stem, work]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    Thread(target=_follow, args=(making, process), daemon=True).start()
    return making


def _follow(making: Making, process: subprocess.Popen[str]) -> None:
    """Keep what the process says until it ends."""
    with process:
        for line in process.stdout or ():
            with suppress(ValueError):
                progress = json.loads(line)
                making.problem = progress.get("problem", making.problem)
                making.what = progress.get("what", making.what)
                making.done, making.total = progress.get("done", making.done), progress.get("total", making.total)
    if process.returncode and making.problem is None:
        making.problem = "the process that makes the map ended before its time; what it said is in the server's output"
    making.state = "failed" if making.problem else "done"
