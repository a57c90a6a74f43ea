"""The process that speaks to Ray for a server: Ray ends it when the cluster's head dies, and the server lives on.

    python -m eyespot.cluster.driver ADDRESS WORKERS

It answers messages on stdin by messages on stdout (`eyespot.cluster.wire`), several at once, until stdin ends.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.cluster import wire
from eyespot.cluster.link import UnreadableRowsError
from eyespot.cluster.starting import connected
from eyespot.cluster.wire import Mapped, map_file
from eyespot.gallery.files import need_open
from eyespot.kernels.codes import Codes, NotFiniteVectors
from eyespot.types import AdaptedQuery, EyespotError, NearestRows, ScanRequest, UsageError

_AT_ONCE = 8  # messages
_PROBES = 3  # of the cluster's head, a second apart; so many in vain mean that it is gone
Arrays = Sequence[NDArray[Any]]
Answer = tuple[dict[str, Any], Arrays]


def main(address: str, workers: int) -> None:
    """Serve until stdin ends."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else prints
    try:
        with connected(address, workers) as cluster:
            from eyespot.cluster.ray_index import RayBackend

            _watch_head()
            with RayBackend(cluster) as backend, ThreadPoolExecutor(_AT_ONCE) as pool:
                driver = RayDriver(backend, out)
                driver.send({"ready": True, "workers": cluster.workers})
                with suppress(EOFError):
                    while True:
                        pool.submit(driver.answer, *wire.read(sys.stdin.buffer))
    except EyespotError as error:
        wire.write(out, _fault(error))
        raise SystemExit(1) from error


class RayDriver:
    """Answers messages by a backend on Ray."""

    def __init__(self, backend: Any, out: IO[bytes]) -> None:
        self._backend, self._out, self._writing = backend, out, threading.Lock()
        self._galleries = OrderedDict[str, tuple[Any, Any]]()  # an index and a scan by the name that the server gave

    def send(self, head: dict[str, Any], arrays: Arrays = ()) -> None:
        """One message to the server; when it is gone there is nobody to tell."""
        with self._writing, suppress(OSError):
            wire.write(self._out, head, arrays)

    def answer(self, head: dict[str, Any], arrays: Arrays) -> None:
        """The answer to one message, or why there is none."""
        try:
            found, more = getattr(self, f"_{head['do']}")(head, arrays)
        except EyespotError as error:
            found, more = _fault(error), ()
        except KeyError:
            found, more = {"fault": "closed", "text": "these rows are not open any more"}, ()
        except Exception as error:
            found, more = {"fault": "lost", "text": f"{type(error).__name__}: {error}"}, ()
        self.send(found | {"id": head["id"]}, more)

    def _open(self, head: dict[str, Any], _: Arrays) -> Answer:
        from eyespot.cluster.ray_worker import GALLERIES

        need_open(len(head["blocks"]))
        found = [Mapped(path, kind, tuple(shape), at, bytes.fromhex(s)) for path, kind, shape, at, s in head["blocks"]]
        try:
            blocks = [map_file(one) for one in found]
        except EyespotError as error:  # of what was removed since; the server still has it open
            raise UnreadableRowsError(str(error)) from error
        nothing: Any = np.empty(0)  # workers read codes by their place alone
        codes = [
            Codes(nothing, nothing, nothing, nothing, nothing, prefix=prefix) if prefix else None
            for prefix in head["codes"]
        ]
        index, scan = self._backend.index(blocks, codes), self._backend.scan(blocks, codes)
        index.hold()
        self._galleries[head["gallery"]] = index, scan
        while len(self._galleries) > GALLERIES:
            self._galleries.popitem(last=False)
        return {}, ()

    def _gallery(self, head: dict[str, Any]) -> tuple[Any, Any]:
        self._galleries.move_to_end(head["gallery"])
        return self._galleries[head["gallery"]]

    def _search(self, head: dict[str, Any], arrays: Arrays) -> Answer:
        queries, *masks = arrays
        return _reply_of(self._gallery(head)[0].search_each(_requests(head, list(queries), masks)))

    def _scan(self, head: dict[str, Any], arrays: Arrays) -> Answer:
        count = len(head["identities"])
        factors = [arrays[3 * at : 3 * at + 3] for at in range(count)]
        pairs = zip(factors, head["identities"], strict=True)
        views = [AdaptedQuery(query, left, right, identity) for (query, left, right), identity in pairs]
        return _reply_of(self._gallery(head)[1].search_each(_requests(head, views, arrays[3 * count :])))

    def _rescore(self, head: dict[str, Any], arrays: Arrays) -> Answer:
        query, left, right, rows = arrays
        view = AdaptedQuery(query, left, right, head["identity"])
        return {}, [self._gallery(head)[1].rescore(view, rows)]

    def _alive(self, head: dict[str, Any], _: Arrays) -> Answer:
        return {"alive": self._backend.alive(head["seconds"])}, ()


def _requests(head: dict[str, Any], queries: Sequence[Any], bits: Arrays) -> list[ScanRequest]:
    masks = {at: np.unpackbits(one, count=head["rows"]).astype(bool) for at, one in enumerate(bits)}
    given = zip(queries, head["ks"], head["masks"], strict=True)
    return [ScanRequest(query, k, masks.get(mask)) for query, k, mask in given]


def _reply_of(answers: Sequence[NearestRows]) -> Answer:
    return {}, [array for one in answers for array in (one.rows, one.scores)]


def _fault(error: EyespotError) -> dict[str, Any]:
    kinds = {NotFiniteVectors: "damage", UsageError: "usage", UnreadableRowsError: "unreadable"}
    kind = next((name for kind, name in kinds.items() if isinstance(error, kind)), "lost")
    return {"fault": kind, "text": str(error)}


def _watch_head() -> None:
    """End this process when the cluster's head is gone: Ray itself notices after a minute."""
    import ray

    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    if not _answers(host, int(port)):
        return  # reached by way of another machine, which Ray watches

    def watch() -> None:
        failed = 0
        while failed < _PROBES:
            time.sleep(1)
            failed = 0 if _answers(host, int(port)) else failed + 1
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 2).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
