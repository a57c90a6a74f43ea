"""Approximate search at recall@50 of 0.99 against exact scans, ScaNN, SVS, usearch and hnswlib, on one thread.

A million clustered unit vectors of 768 dimensions (--quick: a tenth), as in exact.py. Each index is built, then its
search setting is the fastest that reaches 0.993 on 100 queries. CPU time of single queries, each between two plain
float32 scans, and recall@50 by score are measured on 200 other queries. `ours` is the fastest kind that
`eyespot tune` builds, `rabitq` that kind alone, `faiss-rabitq` faiss's flat RaBitQ index with the best scored again in
numpy. SVS has a graph over float16: its LVQ codes end the process on a processor that is not Intel's. Peers that are
not installed are left out. The goal is a tenth of the plain scan, at 0.99.

    python bench/ann.py [--quick] [--json] [--only ours,scann] [--graphs DIR]
"""

from __future__ import annotations

import resource
import sys
import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import DIM, Command, Floats, Measurement, Race, clusters, race, say, timed, vectors_on_disk
from eyespot.extras import needed
from eyespot.indexes import faiss as ours
from eyespot.indexes.exact import load, quantise

Rows = NDArray[np.int64]
Find = Callable[[Floats], Rows]  # queries (m, dim) to their rows (m, ≤ K)
K, RECALL, MARGIN = 50, 0.99, 0.003
TUNED, MEASURED, TRIALS = 100, 200, 41
PLAIN, CERTIFIED = "plain float32 scan", "certified exact search"
DEPTHS = (100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)


@dataclass(frozen=True)
class Built:
    """An index and its settings, cheapest first; `with_setting(setting)` gives the search."""

    name: str
    settings: Sequence[Any]
    with_setting: Callable[[Any], Find]
    bytes: int  # on the disk, 0 if it was not written


# -- the indexes ----------------------------------------------------------------------------------------------------


CODES = [ours.FaissShape(kind, parts) for kind, parts in (("pq", DIM // 4), ("pq", DIM // 8), ("ivf", DIM // 4))]
SIGNS = [ours.FaissShape("rabitq", bits=bits) for bits in (1, 2)]


def eyespot(shapes: Sequence[ours.FaissShape], vectors: Floats, folder: Path) -> Iterator[Built]:
    """Ours, as `eyespot tune` builds them; vectors stay where they are."""
    for shape in shapes:
        size = f"{shape.bits} bits" if shape.kind == "rabitq" else f"{shape.parts} parts"
        path, lists = folder / f"{shape.kind}{size}", shape.settled(len(vectors), DIM).lists
        ours.load([vectors], folder=path, kind=shape.kind, parts=shape.parts, bits=shape.bits)
        stored = sum(file.stat().st_size for file in path.iterdir())
        for probes in dict.fromkeys(max(1, lists // share) for share in (64, 32, 16, 8, 4)):
            opened = reopened(vectors, path, probes)
            yield Built(f"eyespot {shape.kind} {size}, {probes} probes", DEPTHS, opened, stored)


def reopened(vectors: Floats, path: Path, probes: int) -> Callable[[int], Find]:
    def with_depth(depth: int) -> Find:
        index = ours.load([vectors], folder=path, probes=probes, depth=depth)
        return lambda queries: index.search(queries, K).rows

    return with_depth


def faiss_rabitq(vectors: Floats, _folder: Path) -> Iterator[Built]:
    """faiss's own flat index of RaBitQ codes; what it names is scored again in numpy."""
    import faiss

    faiss.omp_set_num_threads(1)
    for bits in (1, 2):
        index = faiss.IndexRaBitQFastScan(DIM, faiss.METRIC_INNER_PRODUCT, 32, bits)
        index.train(np.ascontiguousarray(vectors[:65_536]))
        for start in range(0, len(vectors), 65_536):
            index.add(np.ascontiguousarray(vectors[start : start + 65_536]))
        yield Built(f"faiss RaBitQ fast scan, {bits} bits", DEPTHS, refined(vectors, index), 0)


def refined(vectors: Floats, index: Any) -> Callable[[int], Find]:
    def best(query: Floats, rows: Rows) -> Rows:
        rows = np.sort(rows)
        return rows[np.argsort(-(vectors[rows] @ query))[:K]]

    def with_depth(depth: int) -> Find:
        return lambda queries: np.stack([best(query, index.search(query[None], depth)[1][0]) for query in queries])

    return with_depth


def scann(vectors: Floats, _folder: Path) -> Iterator[Built]:
    """ScaNN with a tree, and without: then it reads the codes of all rows, as our pq does."""
    import scann

    leaves = round(2 * len(vectors) ** 0.5)
    builder = scann.scann_ops_pybind.builder(vectors, K, "dot_product").set_n_training_threads(1)
    tree = builder.tree(leaves, leaves // 10, training_sample_size=min(len(vectors), 100_000))
    index = scann_codes(tree)
    for share in (40, 20, 10, 5, 3):
        settings = [{"leaves_to_search": max(1, leaves // share), "pre_reorder_num_neighbors": n} for n in DEPTHS]
        yield Built(f"ScaNN {leaves} leaves, {leaves // share} searched", settings, index, 0)
    builder = scann.scann_ops_pybind.builder(vectors, K, "dot_product").set_n_training_threads(1)
    yield Built("ScaNN, all codes", [{"pre_reorder_num_neighbors": n} for n in DEPTHS], scann_codes(builder), 0)


def scann_codes(builder: Any) -> Callable[[Any], Find]:
    index = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(1000).build()

    def with_setting(setting: dict[str, int]) -> Find:
        return lambda queries: np.stack([index.search(query, **setting)[0] for query in queries]).astype(np.int64)

    return with_setting


def hnswlib(vectors: Floats, folder: Path) -> Iterator[Built]:
    import hnswlib

    index, file = hnswlib.Index("ip", DIM), folder / f"hnswlib{len(vectors)}"
    if file.exists():
        index.load_index(str(file))
    else:
        index.init_index(len(vectors), M=32, ef_construction=300)
        index.set_num_threads(1)
        grow("hnswlib", vectors, lambda keys, rows: index.add_items(rows, keys))
        index.save_index(str(file))

    def with_ef(ef: int) -> Find:
        index.set_ef(ef)
        return lambda queries: index.knn_query(queries, K, num_threads=1)[0].astype(np.int64)

    yield Built("hnswlib M 32, efc 300", DEPTHS, with_ef, file.stat().st_size)


def usearch(vectors: Floats, folder: Path) -> Iterator[Built]:
    from usearch.index import Index

    index: Any = Index(ndim=DIM, metric="ip", dtype="bf16", connectivity=32, expansion_add=300)
    file = folder / f"usearch{len(vectors)}"
    if file.exists():
        index.load(str(file))
    else:
        grow("usearch", vectors, lambda keys, rows: index.add(keys, rows, threads=1))
        index.save(str(file))

    def with_ef(ef: int) -> Find:
        index.expansion_search = ef
        return lambda queries: np.stack([index.search(query, K, threads=1).keys for query in queries]).astype(np.int64)

    yield Built("usearch bf16 M 32, efc 300", DEPTHS, with_ef, file.stat().st_size)


def svs(vectors: Floats, folder: Path) -> Iterator[Built]:
    """SVS's Vamana graph over float16."""
    import svs

    metric, places = svs.DistanceType.MIP, [folder / f"svs{len(vectors)}" / part for part in ("set", "graph", "data")]
    if places[0].exists():
        graph, data = svs.GraphLoader(str(places[1])), svs.VectorDataLoader(str(places[2]), svs.DataType.float16)
        index = svs.Vamana(str(places[0]), graph, data, metric, num_threads=1)
    else:
        shape = svs.VamanaBuildParameters(graph_max_degree=64, window_size=300)
        index = svs.Vamana.build(shape, np.asarray(vectors, np.float16), metric, num_threads=1)
        index.save(*map(str, places))

    def with_window(window: int) -> Find:
        index.search_window_size = window
        return lambda queries: index.search(queries, K)[0].astype(np.int64)

    size = sum(file.stat().st_size for file in places[0].parent.rglob("*") if file.is_file())
    yield Built("SVS Vamana float16, degree 64, window 300", DEPTHS, with_window, size)


def grow(name: str, vectors: Floats, add: Callable[[Rows, Floats], Any], step: int = 10_000) -> None:
    """Add rows to a graph in steps and print the time, since a stored graph is not built again."""
    started = time.process_time()
    for start in range(0, len(vectors), step):
        add(np.arange(start, start + step), np.ascontiguousarray(vectors[start : start + step]))
        if (start + step) % (10 * step) == 0:
            say(f"{name}: {start + step} rows in the graph, {time.process_time() - started:.0f} s of CPU time")


BUILDERS: dict[
    str, tuple[str, Callable[[Floats, Path], Iterator[Built]]]
] = {  # name → the package it needs, and what builds it
    "ours": ("faiss", partial(eyespot, [*CODES, *SIGNS])),
    "rabitq": ("faiss", partial(eyespot, SIGNS)),
    "faiss-rabitq": ("faiss", faiss_rabitq),
    "scann": ("scann", scann),
    "hnswlib": ("hnswlib", hnswlib),
    "usearch": ("usearch", usearch),
    "svs": ("svs", svs),
}
ON_PYPI = {"svs": "scalable-vs"}  # where a package has another name there
GRAPHS = ("hnswlib", "usearch", "svs")  # an hour of one core for a million rows


# -- what is measured -----------------------------------------------------------------------------------------------


def plain(vectors: Floats) -> Find:
    """All products by BLAS in float32, and the best of them: as plain as exact search gets."""

    def best(query: Floats) -> Rows:
        scores = vectors @ query
        rows = np.argpartition(scores, -K)[-K:]
        return rows[np.argsort(-scores[rows])]

    return lambda queries: np.stack([best(query) for query in queries])


class Truth:
    """Queries and the score of their 50th row: a row with at least this score counts as found."""

    def __init__(self, exact: Any, vectors: Floats, queries: Floats) -> None:
        self.queries, self._vectors = queries, vectors
        self._floors = exact.search(queries, K).scores[:, -1] - 1e-5

    def missed(self, find: Find) -> NDArray[np.bool_]:
        """Which of the 50 of each query were missed, (m, K)."""
        scores = np.einsum("mkd,md->mk", self._vectors[find(self.queries)], self.queries)
        return np.asarray(scores < self._floors[:, None])


def cheapest(built: Built, tuned: Truth) -> tuple[float, Any] | None:
    """CPU time and setting of the first setting, by bisection, that reaches the recall and a margin; None if none."""
    low, high = 0, len(built.settings)
    while low < high:
        middle = (low + high) // 2
        enough = 1 - tuned.missed(built.with_setting(built.settings[middle])).mean() >= RECALL + MARGIN
        low, high = (low, middle) if enough else (middle + 1, high)
    if low == len(built.settings):
        say(f"{built.name}: no setting finds {RECALL + MARGIN:.3f}")
        return None
    find = built.with_setting(built.settings[low])
    seconds = [timed(partial(find, query[None]))[0] for query in tuned.queries[:30]]
    return float(np.median(seconds)), built.settings[low]


def fastest(indexes: Iterator[Built], tuned: Truth) -> tuple[Built, Any] | None:
    """The index that is fastest on the first queries, with its setting."""
    candidates = [(setting, built) for built in indexes if (setting := cheapest(built, tuned)) is not None]
    if not candidates:
        return None
    (_, setting), built = min(candidates, key=lambda candidate: candidate[0][0])
    return built, setting


@dataclass(frozen=True)
class ExactScans:
    """Queries with their truth, and the two exact scans that every index is compared with."""

    measured: Truth
    plain: Find
    certified: Find

    def race(self, name: str, find: Find, peer: str, goal: float | None = None) -> Iterator[Measurement]:
        """CPU time of single queries over that of a scan."""
        scan = self.plain if peer == PLAIN else self.certified
        inputs = [query[None] for query in self.measured.queries[: TRIALS + 1]]
        return race([(Race(name, peer, find, scan, goal), inputs)])

    def compare(self, built: Built, setting: Any, goals: tuple[float | None, float | None]) -> Iterator[Measurement]:
        """Speed against both scans, and what the index misses."""
        find, name = built.with_setting(setting), f"{built.name}, setting {setting}"
        yield from self.race(name, find, PLAIN, goals[0])
        missed = self.measured.missed(find).mean(axis=1)
        yield Measurement.from_mean(f"{name}: missed of the 50", missed, "all", goals[1])
        yield from self.race(name, find, CERTIFIED)


def measurements(options: Namespace) -> Iterator[Measurement]:
    rows, world = 100_000 if options.quick else 1_000_000, clusters()
    vectors = vectors_on_disk(world, options.folder / "vectors.npy", rows)
    index = load([vectors], codes=[quantise(vectors, threads=1)], threads=1, small=0)
    tuned, measured = (Truth(index, vectors, world.draw(count, noise=0.75)) for count in (TUNED, MEASURED))
    exact = ExactScans(measured, plain(vectors), lambda queries: index.search(queries, K).rows)
    say(f"{rows} vectors made and searched exactly")
    yield from exact.race(CERTIFIED, exact.certified, PLAIN)
    for name in options.only:
        package, build = BUILDERS[name]
        if find_spec(package) is None:
            say(f"{name} is left out: {needed(name, ON_PYPI.get(package, package))}")
        elif best := best_of(build(vectors, folder_of(name, options)), tuned):
            yield from exact.compare(*best, (0.1, 1 - RECALL) if name == "ours" else (None, None))


def folder_of(name: str, options: Namespace) -> Path:
    """Where an index is written: graphs are kept if the user says where."""
    folder = Path(options.graphs if options.graphs and name in GRAPHS else options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def best_of(indexes: Iterator[Built], tuned: Truth) -> tuple[Built, Any] | None:
    """The fastest index and its setting; prints what building all of them took."""
    memory = peak_memory()
    seconds, best = timed(lambda: fastest(indexes, tuned))
    if best is not None:
        costs = f"memory up by {peak_memory() - memory:.0f} MB, {best[0].bytes / 1e6:.0f} MB on disk"
        say(f"{best[0].name}: {seconds:.0f} s of CPU time to build and tune, {costs}")
    return best


def peak_memory() -> float:
    """The most this process held so far, in MB; mapped files count."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def names(text: str) -> list[str]:
    """The indexes of `--only`."""
    if unknown := set(text.split(",")) - set(BUILDERS):
        raise ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(BUILDERS)}")
    return text.split(",")


if __name__ == "__main__":
    command = Command(__doc__, threads=1)
    command.add_argument(
        "--graphs", type=Path, help="keep the graphs of hnswlib, usearch and svs here, and use those here"
    )
    command.add_argument("--only", type=names, default=list(BUILDERS), help="some of: " + ", ".join(BUILDERS))
    command.run(measurements)
