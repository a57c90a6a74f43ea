"""Exact search under adapted queries against a plain scan, the formula in numpy, in bfloat16, and the dense map.

A million clustered unit vectors of 768 dimensions (--quick: a tenth), maps of rank 64. `paper` maps, without identity,
in three scenarios: near-orthonormal factors, the principal directions of the query's neighbours, Gaussian factors.
`released` maps, with identity and Frobenius norms, in three: columns that share a direction as trained ones do, that
half share it, that share none. A ratio is the median over the scenarios of a preset; CPU time on one thread, wall time
on two. Last the growth, from a tenth of the rows to twice as many. The bfloat16 peer, torch's product with all columns
at once over a copy of the vectors, scores the likeliest 4 k again. A tenth of the rows has goals of its own: what a
query costs whatever the gallery is, its map and the bounds, weighs more there.

On a card, ours and the peers keep the vectors there; peers give the rows alone, and round to what a card rounds to.

    python bench/quari.py [--quick] [--json] [--only races|growth|card]
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import (
    DIM,
    BenchmarkError,
    Command,
    Floats,
    Measurement,
    Race,
    Reals,
    SyntheticVectors,
    clusters,
    say,
    timed,
    vectors_on_disk,
)
from eyespot.adapters.quari._formula import Formula
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.kernels.codes import quantise
from eyespot.types import AdaptedQuery

Search = Callable[[AdaptedQuery, int], object]

RANK, TRIALS, SLOW_TRIALS, CHECKED = 64, 11, 3, 2
PAPER = ("near-orthonormal", "principal", "gaussian")
RELEASED = ("shared", "half shared", "not shared")
CHUNK = 50_000  # rows the peers take at a time


# -- the maps -----------------------------------------------------------------------------------------------------


@dataclass
class Maps:
    """Fresh queries and maps of every scenario."""

    world: SyntheticVectors
    sample: Floats  # (n, dim), rows of the gallery
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2))
    rank: int = RANK

    def draw(self, scenario: str) -> AdaptedQuery:
        query = self.world.draw(1, noise=0.75)[0].astype(np.float64)
        if scenario in RELEASED:
            return self._released(query, RELEASED.index(scenario) / 2)
        if scenario == "gaussian":
            return adapted(query, self._noise(1), self._noise(1), 0.0)
        left, right = self._orthonormal() if scenario == "near-orthonormal" else self._principal(query)
        mapped = query @ left @ right.T
        return adapted(unit(mapped) + query * (scenario == "near-orthonormal"), left, right, 0.0)

    def _orthonormal(self) -> tuple[Reals, Reals]:
        left, right = (np.linalg.qr(self.rng.standard_normal((DIM, self.rank)))[0] for _ in range(2))
        return np.asarray(left + self._noise(0.3)), np.asarray(right + self._noise(0.3))

    def _principal(self, query: Reals) -> tuple[Reals, Reals]:
        near = self.sample[np.argsort(-(self.sample @ query.astype(np.float32)))[:1000]].astype(np.float64)
        left = np.linalg.svd(near - near.mean(axis=0), full_matrices=False)[2][: self.rank].T + self._noise(0.05)
        return left, left + self._noise(0.05)

    def _released(self, query: Reals, own: float) -> AdaptedQuery:
        """Each column is a direction that all share and one of its own."""
        left, right = (self._columns(own) for _ in range(2))
        target = self.world.draw(1, noise=0.75)[0].astype(np.float64)
        return adapted(query + target, 0.8 * left, right, 1.0)

    def _columns(self, own: float) -> Reals:
        shared = unit(self.world.draw(1)[0].astype(np.float64))[:, None]
        columns = (1 - own) * shared + self._noise(0.15 + own * 0.85)
        return np.asarray(columns / np.linalg.norm(columns))

    def _noise(self, length: float) -> Reals:
        return np.asarray(self.rng.standard_normal((DIM, self.rank)) * (length / DIM**0.5))


def unit(vector: Reals) -> Reals:
    return np.asarray(vector / np.linalg.norm(vector))


def adapted(query: Reals, left: Reals, right: Reals, identity: float) -> AdaptedQuery:
    query32, left32, right32 = (np.asarray(part, np.float32) for part in (unit(query), left, right))
    return AdaptedQuery(query32, left32, right32, identity)


# -- the peers ----------------------------------------------------------------------------------------------------


def best(scores: Floats, k: int) -> NDArray[np.int64]:
    return np.argpartition(-scores, k)[:k]


def plain(vectors: Floats) -> Search:
    return lambda view, k: best(vectors @ view.query, k)


def rewritten(vectors: Floats) -> Search:
    """Without the dense map: one product for the numerator, those with the factors for the length."""

    def search(view: AdaptedQuery, k: int) -> object:
        direction = view.identity * view.query + view.left @ (view.right.T @ view.query)
        spread = view.right.T @ view.right
        scores = np.empty(len(vectors), np.float32)
        for start in range(0, len(vectors), CHUNK):
            rows = vectors[start : start + CHUNK]
            inner = rows @ view.left  # (n, r)
            squares = np.einsum("ij,ij->i", inner @ spread, inner)
            if view.identity:
                squares += np.einsum("ij,ij->i", rows, rows) + 2 * np.einsum("ij,ij->i", inner, rows @ view.right)
            scores[start : start + CHUNK] = rows @ direction / np.sqrt(squares)
        return best(scores, k)

    return search


def bfloat16(vectors: Floats) -> Search:
    """The same with all columns in one product of bfloat16, over a copy of the vectors; the likeliest score again."""
    import torch

    half = torch.empty(vectors.shape, dtype=torch.bfloat16)
    for start in range(0, len(vectors), CHUNK):
        half[start : start + CHUNK] = torch.from_numpy(np.array(vectors[start : start + CHUNK]))
    squares = torch.from_numpy(np.einsum("ij,ij->i", vectors, vectors))

    def search(view: AdaptedQuery, k: int) -> object:
        direction = view.identity * view.query + view.left @ (view.right.T @ view.query)
        columns = [direction[:, None], view.left, *([view.right] if view.identity else [])]
        matrix = torch.from_numpy(np.concatenate(columns, axis=1)).bfloat16()
        spread, scores = torch.from_numpy(view.right.T @ view.right), torch.empty(len(half))
        with torch.inference_mode():
            for start in range(0, len(half), CHUNK):
                products = (half[start : start + CHUNK] @ matrix).float()  # (n, 1 + r or 1 + 2 r)
                inner, other = products[:, 1 : 1 + RANK], products[:, 1 + RANK :]
                lengths = ((inner @ spread) * inner).sum(dim=1)
                if view.identity:
                    lengths += squares[start : start + CHUNK] + 2 * (inner * other).sum(dim=1)
                scores[start : start + CHUNK] = products[:, 0] / lengths.clamp(min=1e-12).sqrt()
            rows = np.sort(scores.topk(4 * k).indices.numpy())
        return rows[best(Formula.of(view, vectors.shape[1]).scores(vectors[rows]).astype(np.float32), k)]

    return search


def dense(vectors: Floats) -> Search:
    """As the released code scores: x @ W, each row to unit length, times the query."""
    import torch

    def search(view: AdaptedQuery, k: int) -> object:
        query, left, right = (torch.from_numpy(part) for part in view[:3])
        matrix = view.identity * torch.eye(DIM) + left @ right.T
        parts = (torch.from_numpy(vectors[start : start + CHUNK]) for start in range(0, len(vectors), CHUNK))
        with torch.inference_mode():
            mapped = (torch.nn.functional.normalize(part @ matrix, dim=1) @ query for part in parts)
            return torch.cat(list(mapped)).topk(k)

    return search


@dataclass
class CardPeers:
    """What one writes for a card in torch, over vectors that lie there."""

    vectors: Any

    def plain(self, view: AdaptedQuery, k: int) -> object:
        return (self.vectors @ self._there(view.query)).topk(k).indices.cpu()

    def dense(self, view: AdaptedQuery, k: int) -> object:
        """As the released code scores, in float32."""
        import torch

        query, left, right = (self._there(part) for part in view[:3])
        matrix = left @ right.T + view.identity * torch.eye(DIM, device=query.device)
        parts = (torch.nn.functional.normalize(part @ matrix, dim=1) @ query for part in self.vectors.split(1 << 17))
        return torch.cat(list(parts)).topk(k).indices.cpu()

    def bfloat16(self, view: AdaptedQuery, k: int) -> object:
        """All columns in one product of bfloat16, over a copy of the vectors; nothing is scored again."""
        import torch

        query, left, right = (self._there(part) for part in view[:3])
        direction = view.identity * query + left @ (right.T @ query)
        columns = [direction[:, None], left, *([right] if view.identity else [])]
        matrix, spread, scores = torch.cat(columns, dim=1).bfloat16(), right.T @ right, []
        for part, squares in zip(self.half.split(1 << 17), self.squares.split(1 << 17), strict=True):
            products = (part @ matrix).float()
            inner, other = products[:, 1 : 1 + RANK], products[:, 1 + RANK :]
            lengths = ((inner @ spread) * inner).sum(dim=1)
            if view.identity:
                lengths += squares + 2 * (inner * other).sum(dim=1)
            scores.append(products[:, 0] / lengths.clamp(min=1e-12).sqrt())
        return torch.cat(scores).topk(k).indices.cpu()

    @cached_property
    def half(self) -> Any:
        return self.vectors.bfloat16()

    @cached_property
    def squares(self) -> Any:
        return (self.vectors**2).sum(dim=1)

    def _there(self, part: Floats) -> Any:
        import torch

        return torch.from_numpy(part).to(self.vectors.device)


# -- timing -------------------------------------------------------------------------------------------------------


@dataclass
class ScenarioRace:
    """Ours against a peer in the scenarios of one preset, a fresh map each time."""

    name: str
    scenarios: Sequence[str]
    peer: str
    goal: float | None
    theirs: Search
    ours: Search
    k: int = 50
    threads: int = 1
    trials: int = TRIALS

    def run(self, maps: Maps) -> Measurement:
        """The median over the scenarios of their medians."""
        from threadpoolctl import threadpool_limits

        order = np.repeat(self.scenarios, self.trials)
        maps.rng.shuffle(order)
        timing = self._race()
        with threadpool_limits(self.threads or None):
            timing.warm(maps.draw(self.scenarios[0]))
            for scenario in order:
                timing.run(maps.draw(scenario))
        ratios = {scenario: float(np.median(timing.ratios[order == scenario])) for scenario in self.scenarios}
        say(", ".join(f"{scenario} {ratio:.3f}" for scenario, ratio in ratios.items()))
        return replace(timing.measurement(), ratio=float(np.median(list(ratios.values()))))

    def _race(self) -> Race:
        clock = time.process_time if self.threads == 1 else time.perf_counter
        ours, theirs = (lambda view, search=search: search(view, self.k) for search in (self.ours, self.theirs))
        return Race(self.name, self.peer, ours, theirs, self.goal, clock)


# At most so much of the peer: the 50 best on one thread and on two, the 1,000 best, of the rewritten formula, of the
# dense map. At a tenth of the rows the first three have room for a processor that reads codes no faster than floats
# (1.27 of a plain scan at 200,000 rows on an Intel Xeon with AMX).
GOALS = {1_000_000: (1.4, 1.1, 2.0, 0.2, 0.025), 100_000: (2.0, 2.0, 3.0, 0.3, 0.05)}


@dataclass
class PresetRaces:
    """The gallery, our index over it on one thread and on two, and what is compared."""

    vectors: Floats
    maps: Maps

    @cached_property
    def indexes(self) -> dict[int, AdaptedIndex]:
        seconds, codes = timed(lambda: quantise(self.vectors, threads=1))
        say(f"codes made in {seconds:.1f} s of CPU time (compiling included if never done before)")
        indexes = {threads: AdaptedIndex(self.vectors, [codes], threads=threads, small=0) for threads in (1, 2)}
        for index in indexes.values():
            index.prepare()
        return indexes

    def ours(self, threads: int = 1) -> Search:
        index = self.indexes[threads]
        return lambda view, k: index.search([view], k)

    def measurements(self) -> Iterator[Measurement]:
        codes = sum(codes.nbytes for codes in self.indexes[1].codes if codes is not None)
        yield Measurement.from_mean("memory beside the vectors", codes / self.vectors.nbytes, "float32 vectors", 0.3)
        yield self.disagreement()
        for scenario_race in self.races():
            yield scenario_race.run(self.maps)

    def races(self) -> Iterator[ScenarioRace]:
        scan, numpy, one, two = plain(self.vectors), rewritten(self.vectors), self.ours(1), self.ours(2)
        half, goals = bfloat16(self.vectors), GOALS[len(self.vectors)]
        for preset, scenarios in (("paper", PAPER), ("released", RELEASED)):
            against = scenarios, "plain float32 scan in numpy"
            yield ScenarioRace(f"{preset}, top 50, one thread", *against, goals[0], scan, one)
            yield ScenarioRace(f"{preset}, top 50, two threads", *against, goals[1], scan, two, threads=2)
            yield ScenarioRace(f"{preset}, top 1000, one thread", *against, goals[2], scan, one, k=1000)
            peer = "the formula without the dense map, numpy"
            yield ScenarioRace(
                f"{preset}, top 50, rewritten", scenarios, peer, goals[3], numpy, one, trials=SLOW_TRIALS
            )
            peer = "the formula in one product of bfloat16, torch"
            for k in (50, 1000):
                name = f"{preset}, top {k}, bfloat16"
                yield ScenarioRace(name, scenarios, peer, None, half, one, k=k, trials=SLOW_TRIALS)
            peer = "x @ W, normalised, times the query, torch"
            yield ScenarioRace(
                f"{preset}, top 50, dense", scenarios[:1], peer, goals[4], dense(self.vectors), one, trials=2
            )

    def disagreement(self) -> Measurement:
        """The share of searches whose top 50 differs from the formula in float64 by more than 1e-6."""
        wrong = [self._wrong(self.maps.draw(scenario)) for scenario in (*PAPER, *RELEASED) for _ in range(CHECKED)]
        return Measurement.from_mean("answers unlike float64", wrong, "the formula in float64", 0.0)

    def _wrong(self, view: AdaptedQuery) -> bool:
        formula = Formula.of(view, self.vectors.shape[1])
        results, chunks = self.indexes[2].search([view], 50), range(0, len(self.vectors), CHUNK)
        true = np.concatenate([formula.scores(self.vectors[start : start + CHUNK]) for start in chunks])
        errors = (
            np.abs(true[results.rows[0]] - -np.sort(-true)[:50]).max(),
            np.abs(true[results.rows[0]] - results.scores[0]).max(),
        )
        return bool(max(errors) > 1e-6)


SIZES = (1, 5, 10, 20)  # tenths of the rows of the races


def growth(vectors: Floats, maps: Maps) -> Iterator[Measurement]:
    """CPU time a row over all sizes: 1 where it grows with the rows and no faster."""
    from threadpoolctl import threadpool_limits

    tenth = len(vectors) // SIZES[-1]
    sizes = {size * tenth: AdaptedIndex(vectors[: size * tenth], threads=1, small=0, patience=0) for size in SIZES}
    times: dict[int, list[float]] = {rows: [] for rows in sizes}
    for index in sizes.values():
        index.prepare()
    with threadpool_limits(1):
        for scenario in (*PAPER, *RELEASED) * 4:
            view = maps.draw(scenario)
            for rows, index in sizes.items():
                times[rows].append(timed(partial(index.search, [view], 50))[0])
    say("; ".join(f"{rows} rows: {1e3 * np.median(seconds):.1f} ms" for rows, seconds in times.items()))
    few, all_rows, twice = (SIZES[at] * tenth for at in (0, 2, 3))
    for more, less in ((all_rows, few), (twice, all_rows)):
        ratios = (np.array(times[more]) / more) / (np.array(times[less]) / less)
        yield Measurement.from_trials(f"CPU time of a row of {more}", ratios, f"of a row of {less}", 1.1)


def card_measurements(vectors: Floats, maps: Maps) -> Iterator[Measurement]:
    """On a card, of the same answers as on this processor. In wall time; `threads` are those of the processor."""
    import torch

    if not torch.cuda.is_available():
        raise BenchmarkError("there is no CUDA card here")
    say(torch.cuda.get_device_name())
    seconds, index = timed(lambda: AdaptedIndex(vectors, patience=0).on(torch.device("cuda")), time.perf_counter)
    seconds += timed(index.prepare, time.perf_counter)[0]
    if index._placed is None:
        raise BenchmarkError("the card has no room for these vectors")
    say(f"{len(vectors)} vectors on the card in {seconds:.1f} s")
    here = AdaptedIndex(vectors)
    here.prepare()
    for scenario in (*PAPER, *RELEASED):
        view = maps.draw(scenario)
        same = np.array_equal(index.search([view], 50).rows, here.search([view], 50).rows)
        yield Measurement.from_mean(f"card, {scenario}: answers unlike the processor's", [not same], "codes", 0.0)
    peers = CardPeers(torch.tensor(np.asarray(vectors), device="cuda"))
    for preset, scenarios in (("paper", PAPER), ("released", RELEASED)):
        for k in (50, 1000):
            for peer, search, goal in (
                ("plain float32 scan in torch, on the card", peers.plain, None),
                ("x @ W, normalised, times the query, torch, on the card", peers.dense, 0.5),
                ("the formula in one product of bfloat16, torch, on the card", peers.bfloat16, None),
                ("codes on the processor, all threads", lambda view, k: here.search([view], k), None),
            ):
                name = f"card, {preset}, top {k}, {peer.split(',')[0]}"
                ours = lambda view, k: index.search([view], k)  # noqa: E731
                yield ScenarioRace(name, scenarios, peer, goal, search, ours, k=k, threads=0, trials=5).run(maps)


def measurements(options: Namespace) -> Iterator[Measurement]:
    world, rows = clusters(), 100_000 if options.quick else 1_000_000
    vectors = vectors_on_disk(world, options.folder / "vectors.npy", rows * (1 if options.only == "card" else 2))
    say(f"{len(vectors)} vectors made, of which races have {rows}")
    maps = Maps(world, np.array(vectors[: rows : max(1, rows // 20_000)]))
    if options.only == "card":
        yield from card_measurements(vectors[:rows], maps)
        return
    if options.only != "growth":
        yield from PresetRaces(vectors[:rows], maps).measurements()
    if options.only != "races":
        yield from growth(vectors, maps)


if __name__ == "__main__":
    command = Command(__doc__, fast=True, threads=None if any(word.endswith("card") for word in sys.argv[1:]) else 2)
    command.add_argument("--only", choices=("races", "growth", "card"), help="one part")
    command.run(measurements)
