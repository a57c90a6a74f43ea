"""Searches that come while a scan runs share the next one, and each gets what it would get alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server needs the extra [web]")

from fastapi.testclient import TestClient

from eyespot.indexes.exact import Exact
from eyespot.types import NearestRows, ScanRequest, UsageError
from eyespot.web import ServerSettings
from eyespot.web.found.scanning import MOST, Batcher, ScanCounts, SharedIndex
from tests.web.conftest import at_this_machine
from tests.wording import raises

ROWS = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)


class Gate:
    """An exact index whose first scan waits until it is let go; it notes how many queries each scan had."""

    def __init__(self) -> None:
        self.index, self.sizes = Exact(ROWS), list[int]()
        self.open, self.entered = threading.Event(), threading.Event()

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        self.sizes.append(len(requests))
        self.entered.set()
        assert self.open.wait(120)
        return self.index.search_each(requests)


def asked_behind_one(gate: Gate, more: Sequence[tuple[np.ndarray, int, Any]]) -> list[Future[NearestRows]]:
    """The answers to searches that came while the scan of a first one ran."""
    shared = SharedIndex(gate, threading.RLock(), ScanCounts())
    with ThreadPoolExecutor(len(more) + 1) as pool:
        first = pool.submit(shared.search, ROWS[:1], 3)
        assert gate.entered.wait(120)
        answers = [pool.submit(shared.search, *one) for one in more]
        while len(shared.batcher.waiting) < len(more):
            time.sleep(0.002)
        gate.open.set()
    assert first.result().rows.tolist() == gate.index.search(ROWS[:1], 3).rows.tolist()
    return answers


def test_who_comes_while_a_scan_runs_shares_the_next_one() -> None:
    gate, rng = Gate(), np.random.default_rng(1)
    more = [(ROWS[at : at + 1], 1 + at % 7, rng.random(500) < 0.5 if at % 2 else None) for at in range(9)]
    answers = asked_behind_one(gate, more)

    assert gate.sizes == [1, 9]
    for one, answer in zip(more, answers, strict=True):
        alone, found = gate.index.search(*one), answer.result()
        assert (found.rows.tolist(), found.scores.tobytes()) == (alone.rows.tolist(), alone.scores.tobytes())


def test_what_is_wrong_with_one_search_is_told_to_that_one_alone() -> None:
    gate, broken = Gate(), np.full((1, 8), np.nan, np.float32)
    good, bad, other = asked_behind_one(gate, [(ROWS[:1], 3, None), (broken, 3, None), (ROWS[1:2], 2, None)])

    assert good.result().rows.shape == (1, 3) and other.result().rows.shape == (1, 2)
    with raises(UsageError):
        bad.result()


def test_very_many_are_several_scans() -> None:
    gate = Gate()
    asked_behind_one(gate, [(ROWS[:1], 2, None)] * (MOST + 3))
    assert gate.sizes == [1, MOST, 3]


def test_a_search_of_several_queries_is_one_request_for_each() -> None:
    shared = SharedIndex(Exact(ROWS), threading.RLock(), counts := ScanCounts())
    assert shared.search(ROWS[:4], 3).rows.tolist() == Exact(ROWS).search(ROWS[:4], 3).rows.tolist()
    assert (counts.scans, counts.queries) == (1, 4)


def test_a_scan_that_is_broken_off_leaves_nobody_waiting() -> None:
    class Broken:
        def __enter__(self) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None: ...

    batcher = Batcher(Exact(ROWS).search_each, Broken(), ScanCounts())
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            batcher([ScanRequest(ROWS[0], 1)])


@pytest.mark.long
def test_people_who_search_at_once_get_what_they_get_one_after_the_other(
    client: TestClient, settings: ServerSettings
) -> None:
    words = [f"a photo of {kind} {number}" for number in range(6) for kind in ("stripes", "discs")]
    asked = [{"q": text, "by": "look"} | ({"label": "kind=heron"} if at % 3 else {}) for at, text in enumerate(words)]
    before = scans(client)
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda given: client.get("/v1/search", params=given).json()["items"], asked))
    with at_this_machine(settings) as other:
        assert [other.get("/v1/search", params=given).json()["items"] for given in asked] == together
        assert scans(other) == (len(asked), len(asked))
    assert scans(client)[1] - before[1] == len(asked)


def scans(client: TestClient) -> tuple[int, int]:
    lines = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[:1] != "#")
    return int(lines["eyespot_scans_total"]), int(lines["eyespot_scan_queries_total"])
