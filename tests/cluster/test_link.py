"""The process that speaks to Ray for a server: what it cannot do is done by the server, and others go on with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

from eyespot.cluster.link import DriverProcess, RayLink
from eyespot.cluster.linked import LinkedBackend
from eyespot.indexes.exact import Exact
from eyespot.types import EyespotError
from tests.cluster.conftest import mapped, unit


@pytest.fixture(scope="module")
def link() -> Iterator[RayLink]:
    made = RayLink("local", 1)
    yield made
    made.close()


@pytest.mark.parametrize("in_file", [True, False])
def test_rows_that_no_worker_opens_are_searched_here(tmp_path: Path, link: RayLink, in_file: bool) -> None:
    """Such as an old result's, whose shard was merged since: the server has it open, and nobody else can open it."""
    vectors, queries = unit(300, 8), unit(2, 8, 1)
    gone = mapped(tmp_path / "gone.npy", vectors) if in_file else vectors
    there = mapped(tmp_path / "there.npy", vectors[:200])
    (tmp_path / "gone.npy").unlink(missing_ok=True)
    backend, before = LinkedBackend(link), (link.questions, link.by_itself)

    old, new = backend.index([gone]), backend.index([there])

    for found, block in ((old, gone), (new, there)):
        assert found.search(queries, 5).rows.tolist() == Exact(np.asarray(block)).search(queries, 5).rows.tolist()
    assert (link.questions - before[0], link.by_itself - before[1]) == (2, 2)
    assert link.connections == 1 and not backend.notes


def test_a_process_that_cannot_begin_is_an_error_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EyespotError, match="can begin"):
        DriverProcess("local", 1)
