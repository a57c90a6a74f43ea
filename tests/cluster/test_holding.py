"""Search over workers gives what one process gives: rows and scores, under masks, and when workers are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.cluster.blocks import Piece, codes_of, opened, shared_out
from eyespot.cluster.link import DriverProcess, RayLink
from eyespot.cluster.linked import LinkedBackend
from eyespot.cluster.ray_index import RayBackend, merged
from eyespot.cluster.ray_worker import OpenRange, RangeActor
from eyespot.cluster.starting import Cluster
from eyespot.cluster.wire import Mapped
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import Codes, write_codes
from eyespot.kernels.rows import rank
from eyespot.types import AdaptedQuery, EyespotError, ScanRequest, UsageError
from tests.cluster.conftest import killing, mapped, unit, workers_of

DIM, ROWS = 24, 9000


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> list[np.ndarray]:
    """Three shards, of which one lies in no file and one in half precision."""
    folder, vectors = tmp_path_factory.mktemp("shards"), unit(ROWS, DIM)
    first, second = mapped(folder / "0.npy", vectors[:7900]), mapped(folder / "1.npy", vectors[7900:8600])
    return [first, second, vectors[8600:].astype(np.float16)]


@pytest.fixture(scope="module")
def holding() -> Iterator[RayBackend]:
    with RayBackend(Cluster(3)) as holding:
        yield holding


def views(count: int) -> list[AdaptedQuery]:
    rng = np.random.default_rng(5)
    factors = 0.1 * rng.standard_normal((count, 2, DIM, 3)).astype(np.float32)
    return [AdaptedQuery(query, *pair, 1.0) for query, pair in zip(unit(count, DIM, 7), factors, strict=True)]


def masks(rows: int) -> list[np.ndarray | None]:
    rng = np.random.default_rng(3)
    one = np.zeros(rows, bool)
    one[rows - 1] = True
    return [None, np.ones(rows, bool), rng.random(rows) < 0.01, one, np.zeros(rows, bool)]


def assert_same(found: Any, expected: Any) -> None:
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()


def whole(block: np.ndarray) -> Piece:
    return shared_out([block], 1)[0][0]


def test_search_is_that_of_one_process_bit_for_bit(holding: RayBackend, blocks: list[np.ndarray]) -> None:
    here, there, queries = Exact(blocks), holding.index(blocks), unit(6, DIM, 1)
    for k in (1, 30, 5000):
        for mask in masks(len(here)):
            assert_same(there.search(queries, k, mask), here.search(queries, k, mask))
    adapted_here, adapted_there = AdaptedIndex(blocks), holding.scan(blocks)
    for mask in masks(len(here)):
        assert_same(adapted_there.search(views(3), 20, mask), adapted_here.search(views(3), 20, mask))


def test_chosen_rows_are_scored_where_they_lie(holding: RayBackend, blocks: list[np.ndarray]) -> None:
    rows, (view,) = [ROWS - 1, 0, 7899, 7900, 4096, 0], views(1)
    assert np.allclose(holding.scan(blocks).rescore(view, rows), AdaptedIndex(blocks).rescore(view, rows), atol=1e-12)


@pytest.mark.parametrize(("k", "dim", "value"), [(0, DIM, 1), (5, DIM + 1, 1), (5, DIM, np.nan)])
def test_the_same_is_refused(holding: RayBackend, blocks: list[np.ndarray], k: int, dim: int, value: float) -> None:
    queries = np.full((1, dim), value, np.float32)
    with pytest.raises(UsageError) as here:
        Exact(blocks).search(queries, k)
    with pytest.raises(UsageError) as there:
        holding.index(blocks).search(queries, k)
    assert str(there.value) == str(here.value)
    with pytest.raises(UsageError, match="9000 rows"):
        holding.index(blocks).search(unit(1, DIM), 5, np.ones(7, bool))


def test_no_rows_are_no_answers(holding: RayBackend) -> None:
    assert holding.index([]).search(unit(2, DIM), 5).rows.shape == (2, 0)
    assert holding.scan([]).search(views(2), 5).rows.shape == (2, 0)


def test_queries_with_their_own_k_and_mask_are_one_question(holding: RayBackend, blocks: list[np.ndarray]) -> None:
    own = [1, 30, 5000, 7, 9]
    asked = [ScanRequest(*one) for one in zip(unit(5, DIM, 1), own, masks(ROWS), strict=True)]
    for request, found in zip(asked, holding.index(blocks).search_each(asked), strict=True):
        assert_same(found, Exact(blocks).search(request.query[None], request.k, request.mask))
    adapted = [ScanRequest(*one) for one in zip(views(5), own, masks(ROWS), strict=True)]
    for request, found in zip(adapted, holding.scan(blocks).search_each(adapted), strict=True):
        assert_same(found, AdaptedIndex(blocks).search([request.query], request.k, request.mask))


def held_by(shares: Any) -> list[dict[str, int]]:
    return [{Path(piece.source.path).name: len(piece) for piece in share} for share in shares]


def test_workers_keep_what_they_hold_and_new_blocks_go_to_those_with_the_fewest_rows(tmp_path: Path) -> None:
    first = [mapped(tmp_path / f"{at}.npy", unit(rows, 4, at)) for at, rows in enumerate((60, 40, 20))]
    before = shared_out(first, 2)
    more = [*first, *(mapped(tmp_path / f"{at}.npy", unit(5, 4, at)) for at in (3, 4))]
    after = shared_out(more, 2)

    assert held_by(before) == [{"0.npy": 60}, {"1.npy": 40, "2.npy": 20}]
    assert held_by(after) == [{"0.npy": 60, "3.npy": 5}, {"1.npy": 40, "2.npy": 20, "4.npy": 5}]


def test_a_large_new_block_is_shared_out(tmp_path: Path) -> None:
    small, large = (mapped(tmp_path / f"{at}.npy", unit(rows, 2, at)) for at, rows in enumerate((1000, 600_000)))
    shares = shared_out([small, large], 3)
    assert max(sum(its.values()) for its in held_by(shares)) <= 2**18
    assert sorted(one.first for share in shares for one in share)[-1] > 1000


def test_a_grown_gallery_is_searched_by_the_same_workers(tmp_path: Path) -> None:
    vectors, others = unit(3000, DIM), set(workers_of(RangeActor))
    blocks = [mapped(tmp_path / f"{at}.npy", vectors[at * 1000 : at * 1000 + 1000]) for at in range(3)]
    queries, mask = unit(4, DIM, 1), np.arange(3000) % 3 > 0
    with RayBackend(Cluster(2)) as holding:
        old, old_scan = holding.index(blocks[:2]), holding.scan(blocks[:2])
        old.search(queries, 9)
        crew = set(workers_of(RangeActor)) - others
        new, new_scan = holding.index(blocks), holding.scan(blocks)
        for limits in (None, mask):
            assert_same(new.search(queries, 40, limits), Exact(blocks).search(queries, 40, limits))
            assert_same(new_scan.search(views(2), 40, limits), AdaptedIndex(blocks).search(views(2), 40, limits))
        assert_same(old.search(queries, 9), Exact(blocks[:2]).search(queries, 9))
        rows = [2999, 0, 1000, 1999]
        assert new_scan.rescore(views(1)[0], rows).tolist() == AdaptedIndex(blocks).rescore(views(1)[0], rows).tolist()
        assert old_scan.search(views(1), 3).rows.shape == (1, 3)
        assert set(workers_of(RangeActor)) - others == crew and len(crew) == 2
        assert holding.alive(20) == 2


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_worker_costs_a_retry_and_no_answer(blocks: list[np.ndarray], kills: int) -> None:
    queries, mask = unit(5, DIM, 2), np.random.default_rng(1).random(ROWS) < 0.5
    expected, answers = Exact(blocks).search(queries, 9, mask), []
    with killing(RangeActor, kills, 0.4) as dead, RayBackend(Cluster(2)) as holding:
        index = holding.index(blocks)
        while len(dead) < kills or len(answers) < 3:
            answers.append(index.search(queries, 9, mask))
        answers.append(index.search(queries, 9, mask))

    assert len(dead) == kills
    for found in answers:
        assert_same(found, expected)


def test_a_worker_that_stays_away_is_said_and_never_fewer_answers(blocks: list[np.ndarray]) -> None:
    others = set(workers_of(RangeActor))
    with RayBackend(Cluster(2, patience=3)) as holding:
        index = holding.index(blocks)
        still = min(set(workers_of(RangeActor)) - others)
        os.kill(still, signal.SIGSTOP)
        with pytest.raises(EyespotError, match="are lost"):
            index.search(unit(1, DIM), 3)
        os.kill(still, signal.SIGCONT)


@pytest.fixture
def coded_block(tmp_path: Path) -> tuple[np.ndarray, Codes]:
    block = mapped(tmp_path / "v.npy", unit(900, DIM))
    write_codes(block, tmp_path / "v")
    return block, Codes.load(tmp_path / "v")


def test_a_worker_maps_the_codes_that_lie_on_disk(coded_block: tuple[np.ndarray, Codes]) -> None:
    """Its rows begin within the block. Of many vectors it would make none in memory, and scan floats for minutes."""
    block, codes = coded_block
    piece = replace(shared_out([block], 1, [codes])[0][0], start=300, stop=600, first=300)
    worker = OpenRange([piece], 1 << 30)  # of so many rows that codes are worth having

    index, queries = worker.index, unit(5, DIM, 1)
    assert [type(part.codes) for part in index.codes] == [np.memmap]
    assert_same(index.search(queries, 9), Exact([block[300:600]]).search(queries, 9))
    assert_same(worker.scan.search(views(2), 9), AdaptedIndex([block[300:600]]).search(views(2), 9))


def test_codes_older_than_their_vectors_are_not_used(coded_block: tuple[np.ndarray, Codes], tmp_path: Path) -> None:
    block, codes = coded_block
    later = os.stat(tmp_path / "v.codes.npy").st_mtime_ns + 10**9
    os.utime(tmp_path / "v.npy", ns=(later, later))
    assert [codes_of(piece) for piece in shared_out([block], 1, [codes])[0]] == [None]


def test_a_worker_without_codes_yet_scores_as_one_that_has_made_some(tmp_path: Path) -> None:
    """As one does that was killed and started again. Every picture is there twice, once at each."""
    vectors, queries = unit(3000, 128), unit(20, 128, 1)
    blocks = [mapped(tmp_path / "a.npy", vectors), mapped(tmp_path / "b.npy", vectors)]
    old, new = (OpenRange([replace(whole(block), first=3000 * at)], 1 << 30) for at, block in enumerate(blocks))
    while not old.index.codes:
        old.index.search(queries[:1], 9)
    rankings = [one.numbered(one.index.ranked(queries[:1], 9, None)) for one in (old, new)]

    assert not new.index.codes
    assert_same(merged(rankings, 9, rank), Exact(blocks).search(queries[:1], 9))


def test_a_mapped_file_is_named_and_not_copied_and_a_part_of_it_not_taken_for_the_whole(tmp_path: Path) -> None:
    block = mapped(tmp_path / "v.npy", unit(50, 4))
    piece = whole(np.asarray(block))
    assert isinstance(piece.source, Mapped)
    assert opened(piece).tobytes() == block.tobytes()
    assert opened(whole(block[10:])).tobytes() == block[10:].tobytes()


def test_a_file_that_holds_other_vectors_is_refused(tmp_path: Path) -> None:
    piece = whole(mapped(tmp_path / "v.npy", unit(50, 4)))
    (tmp_path / "v.npy").unlink()
    np.save(tmp_path / "v.npy", unit(50, 4, seed=9))
    with pytest.raises(EyespotError, match="other vectors"):
        opened(piece)


def test_a_file_that_a_machine_does_not_see_is_said_by_name(tmp_path: Path) -> None:
    block = mapped(tmp_path / "v.npy", unit(50, 4))
    (tmp_path / "v.npy").unlink()
    with pytest.raises(EyespotError, match=r"v\.npy"), RayBackend(Cluster(1)) as holding:
        holding.index([block]).search(unit(1, 4), 1)


# -- the process that speaks to Ray for a server -----------------------------------------------------------------------


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
