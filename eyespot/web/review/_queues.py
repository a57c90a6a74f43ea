"""The queues that the owner put on the pages: read anew when a pipeline has written them; who looks at which case."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Lock

from eyespot.curate.rmir.audit import LAST, VERDICTS, Sealed, read_panel
from eyespot.pipelines.human_review import Case, Queue, ReviewDecision
from eyespot.types import EyespotError
from eyespot.web._problems import Problem

LOOKS = 120.0  # seconds for which a case that somebody has before them is handed to others last


@dataclass(frozen=True)
class Shelved:
    """A queue as it is now.

    panel: what a panel of models said of the cases, sealed until a person has answered them all; None where the queue
        is no blind audit.
    """

    key: str
    queue: Queue
    panel: Mapping[str, Sealed] | None

    @property
    def name(self) -> str:
        """What it is called on the pages: no more of where it lies than its folder's name."""
        return f"{self.queue.path.absolute().parent.name} / {self.queue.path.stem}"

    @cached_property
    def cases(self) -> Sequence[Case]:
        """The cases in the order of the queue."""
        return list(self.queue.cases.values())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each case, from 0, by its digest."""
        return {case.digest: place for place, case in enumerate(self.cases)}

    def case(self, digest: str) -> Case:
        """A case by its digest; `Problem` if it is not in the queue any more."""
        if digest not in self.places:
            raise Problem(409, "this case has changed or is gone from the queue; load the page again")
        return self.cases[self.places[digest]]


class Shelf:
    """All queues of a server, by keys that tell nothing of where they lie."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = {blake2b(os.fsencode(os.path.abspath(path)), digest_size=6).hexdigest(): path for path in paths}
        self._shelved = {key: (_version(path), _shelved(key, path)) for key, path in self._paths.items()}
        self._looks: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def __iter__(self) -> Iterator[Shelved]:
        return (self[key] for key in self._paths)

    def __getitem__(self, key: str) -> Shelved:
        """A queue as it is now; `Problem` if there is none or it cannot be read."""
        if key not in self._paths:
            raise Problem(404, "there is no such queue here; its owner starts the server with --review QUEUE.jsonl")
        version, shelved = self._shelved[key]
        now = _version(self._paths[key])
        if now == version:
            return shelved
        try:
            self._shelved[key] = now, _shelved(key, self._paths[key])
        except EyespotError:  # whose words name a path of the owner
            raise Problem(503, "this queue cannot be read now; eyespot build review tells its owner why") from None
        return self._shelved[key][1]

    def next_open(self, shelved: Shelved, standing: Mapping[str, ReviewDecision], after: int, who: str) -> Case | None:
        """The next case that is open behind a place, then from the start; one that somebody else looks at only last."""
        order = [*shelved.cases[after:], *shelved.cases[:after]]
        free = [case for case in order if case.id not in standing]
        with self._lock:
            since = time.monotonic() - LOOKS
            taken = {digest for digest, (other, at) in self._looks.items() if other != who and at >= since}
            chosen = next((case for case in free if case.digest not in taken), free[0] if free else None)
            if chosen is not None:
                self._looks[chosen.digest] = who, time.monotonic()
        return chosen


def _shelved(key: str, path: Path) -> Shelved:
    panel = read_panel(path.parent) if path.name in (VERDICTS, LAST) else {}
    return Shelved(key, Queue(path), panel or None)


def _version(path: Path) -> tuple[int, ...]:
    """What changes whenever the queue is written; nothing while it is gone."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino
