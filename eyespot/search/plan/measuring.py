"""A minute's look at this machine: how fast it embeds and scans, over vectors made for the purpose.

Two sizes of a gallery give a line; both fit into memory. Vectors are clustered, of unit length, with a spectrum that
falls as a power law, in float16 on disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.kernels import compiled
from eyespot.kernels.codes import Codes, write_codes
from eyespot.kernels.rows import RowBlocks
from eyespot.search.plan.slopes import BILLION, Line, Rate, Slopes
from eyespot.search.tuning import DEPTHS
from eyespot.storage.atomic import flush
from eyespot.storage.systems import processor_name
from eyespot.storage.toml import toml_text
from eyespot.types import AdaptedQuery, Encoder

Floats = NDArray[np.float32]
Search = Callable[[Floats], object]  # one query (1, dim)
RANK, K = 64, 50
SHARE = 0.99  # of the 50 nearest, that an approximate index finds
_PIECE = 20_000
_TRIALS = 15
_SEEKS = 200


class SyntheticVectors:
    """Clusters to draw unit vectors from, any number at a time; queries are drawn with more noise."""

    def __init__(self, dim: int, clusters: int = 5000, seed: int = 0) -> None:
        self.dim, self._rng = dim, np.random.default_rng(seed)
        spectrum = np.arange(1, dim + 1, dtype=np.float32) ** -0.5
        turn = np.linalg.qr(self._rng.standard_normal((dim, dim)))[0].astype(np.float32)
        self._mix = (spectrum / np.linalg.norm(spectrum))[:, None] * turn.T  # (dim, dim)
        offset = self._rng.standard_normal(dim).astype(np.float32)
        self._centres = 0.8 * self._normal(clusters) + 0.5 * offset / np.linalg.norm(offset)

    def draw(self, count: int, noise: float = 0.6) -> Floats:
        """Unit vectors, (count, dim)."""
        vectors = noise * self._normal(count) + self._centres[self._rng.integers(0, len(self._centres), count)]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    def query(self) -> Floats:
        """One query, (1, dim)."""
        return self.draw(1, noise=0.75)

    def adapted(self) -> AdaptedQuery:
        """A query with a map of its own, in the form of the released checkpoints: identity, Frobenius norms."""
        left, right = (self._factor() for _ in range(2))
        return AdaptedQuery(self.query()[0], 0.8 * left, right, 1.0)

    def fill(self, place: Path, rows: int) -> NDArray[Any]:
        """So many vectors in float16 on disk, mapped."""
        vectors = np.lib.format.open_memmap(place, "w+", np.float16, (rows, self.dim))
        for start in range(0, rows, _PIECE):
            vectors[start : start + _PIECE] = self.draw(min(_PIECE, rows - start))
        vectors.flush()
        mapped: NDArray[Any] = np.load(place, mmap_mode="r")
        return mapped

    def _normal(self, count: int) -> Floats:
        return self._rng.standard_normal((count, self.dim), dtype=np.float32) @ self._mix

    def _factor(self) -> Floats:
        columns = self._rng.standard_normal((self.dim, RANK), dtype=np.float32)
        return columns / np.float32(np.linalg.norm(columns))


# -- one search ---------------------------------------------------------------------------------------------


def searches(vectors: NDArray[Any], codes: Codes, world: SyntheticVectors) -> dict[str, Search]:
    """The exact ways to search, each ready for one query."""
    from eyespot.adapters.quari.scoring import AdaptedIndex
    from eyespot.indexes.exact import Exact

    plain = Exact([vectors], patience=float("inf"))
    adapted = AdaptedIndex([vectors], [codes], small=0)
    ways: dict[str, Search] = {
        "float16": lambda query: plain.search(query, K),
        "quari": lambda _: adapted.search([world.adapted()], K),
    }
    if compiled():  # codes are not scanned without
        int8 = Exact([vectors], [codes], small=0)
        ways["int8"] = lambda query: int8.search(query, K)
    return ways


def approximate(vectors: NDArray[Any], codes: Codes, world: SyntheticVectors) -> tuple[Search, float] | None:
    """Product quantisation that finds `SHARE` of the nearest, and the seconds to build it; None without faiss."""
    from eyespot.indexes.exact import Exact

    if find_spec("faiss") is None:
        return None
    start = time.perf_counter()
    index = rooms.load("indexes", "faiss", [vectors], kind="pq")
    building = time.perf_counter() - start
    queries = np.concatenate([world.query() for _ in range(_TRIALS)])
    nearest = Exact([vectors], [codes], small=0).search(queries, K).scores[:, -1:]  # (queries, 1)
    for depth in DEPTHS:
        index.use = replace(index.use, depth=depth)
        if (index.search(queries, K).scores >= nearest - 1e-6).mean() >= SHARE:
            break
    return lambda query: index.search(query, K), building


def in_float32(vectors: NDArray[Any]) -> Search:
    """The plain scan over a copy in float32, in memory."""
    from eyespot.indexes.exact import Exact

    plain = Exact([vectors.astype(np.float32)], patience=float("inf"))
    return lambda query: plain.search(query, K)


def seconds_of(search: Search, world: SyntheticVectors, trials: int = _TRIALS) -> float:
    """The least time of some fresh queries: what other programs take from the machine is not the machine's."""
    search(world.query())
    return min(_timed(search, world.query()) for _ in range(trials))


def _timed(search: Search, query: Floats) -> float:
    start = time.perf_counter()
    search(query)
    return time.perf_counter() - start


def rechecked(codes: Codes, world: SyntheticVectors, trials: int = _TRIALS) -> float:
    """Rows that the int8 scan of a query leaves in doubt, and that are read again; the mean of some queries."""
    from eyespot.indexes import CodedProducts

    coded = CodedProducts([codes], None)
    left = [len(coded.scan(world.query(), K, None)[0].rows) for _ in range(trials)]
    return float(np.mean(left))


def line(points: Sequence[tuple[float, float]]) -> Line:
    """The line through (numbers, seconds) that is off by least; from zero where it does not rise or begins below."""
    numbers, seconds = (np.array(column, np.float64) for column in zip(*points, strict=True))
    slope = np.polyfit(numbers, seconds, 1)[0] if len(points) > 1 else seconds[0] / numbers[0]
    fixed = float(seconds.mean() - slope * numbers.mean())
    if fixed < 0 or slope <= 0:
        fixed, slope = 0.0, float((seconds * numbers).sum() / (numbers**2).sum())
    return Line(fixed, float(slope) * BILLION)


# -- this machine -------------------------------------------------------------------------------------------


def measured(known: Slopes, dim: int, folder: Path, sizes: Sequence[int]) -> Slopes:
    """What is known, with the scans of this machine in place of another's, at these numbers of rows."""
    world = SyntheticVectors(dim)
    points: dict[str, list[tuple[float, float]]] = {}
    indexing, left = list[tuple[float, float]](), 0.0
    for rows in sizes:
        for vectors, codes, seek in _made(world, folder, rows):
            known = replace(known, seek=seek or known.seek)
            left = rechecked(codes, world) if compiled() else known.rechecked
            ways = {**searches(vectors, codes, world), "float32": in_float32(vectors)}
            if found := approximate(vectors, codes, world):
                ways["approximate"], took = found
                indexing.append((float(rows * dim), took))
            for name, search in ways.items():
                points.setdefault(name, []).append((float(rows * dim), seconds_of(search, world)))
    scan = {name: line(pairs) for name, pairs in points.items()}
    if known.machine == this_machine():  # where numba has gone since, codes are no longer scanned
        scan = {name: before for name, before in known.scan.items() if name != "int8"} | scan
    return replace(
        known,
        machine=this_machine(),
        cores=os.cpu_count() or 1,
        scan=scan,
        build={**known.build, **({"approximate": line(indexing).slope} if indexing else {})},
        rechecked=left,
    )


def _made(world: SyntheticVectors, folder: Path, rows: int) -> Iterator[tuple[NDArray[Any], Codes, float | None]]:
    """Vectors and their codes on disk for as long as they are looked at, and the seconds of a seek."""
    vectors = world.fill(folder / "vectors.npy", rows)
    seek = _seek(vectors, folder / "vectors.npy")
    write_codes(vectors, folder / "vectors")
    yield vectors, Codes.load(folder / "vectors"), seek
    for place in folder.glob("vectors*.npy"):
        place.unlink()


def _seek(vectors: NDArray[Any], place: Path) -> float | None:
    """Seconds to read a row that is not in memory, with others here and there; None where that cannot be arranged."""
    if not hasattr(os, "posix_fadvise"):
        return None
    flush(place)
    with place.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    rows = np.random.default_rng(1).choice(len(vectors), min(_SEEKS, len(vectors)), replace=False)
    start = time.perf_counter()
    RowBlocks([vectors]).gather(rows)
    return (time.perf_counter() - start) / len(rows)


def with_rate(known: Slopes, encoder: Encoder, photos: Sequence[Path], seconds: float = 10) -> Slopes:
    """What is known, and how many of these photos an encoder embeds in a second, read and decoded, for so long."""
    from eyespot.photos.pictures import open_picture

    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds or not done:
        batch = [photos[(done + at) % len(photos)] for at in range(encoder.batch)]
        pixels = [encoder.read(open_picture(photo.read_bytes(), encoder.min_side).image) for photo in batch]
        encoder.encode_pixels(np.stack(pixels))
        done += len(batch)
    rate = Rate(done / (time.perf_counter() - start), encoder.space.dim, this_machine())
    encoders: Mapping[str, Rate] = {**known.encoders, encoder.space.encoder: rate}
    return replace(known, encoders=encoders)


def this_machine() -> str:
    """This machine in words: its processor and cores."""
    return f"{processor_name()}, {os.cpu_count()} cores"


def as_toml(slopes: Slopes) -> str:
    """The table that `read_slopes` reads."""
    scan = {name: line._asdict() for name, line in slopes.scan.items()}
    encoders = {name: rate._asdict() for name, rate in slopes.encoders.items()}
    machines = {name: offer._asdict() for name, offer in slopes.machines.items()}
    return toml_text({**vars(slopes), "scan": scan, "encoders": encoders, "machines": machines})
