"""A gallery of 100 million rows, nearly all of them links: how soon it is ready to search and serve, and its filters.

Four segments of a million rows with 18 columns, whose observations, dates and paths do not overlap, stand for all
others: hard links, each counted as rows of its own (--quick: 50,000 rows, 20 segments). Vectors are those of one
segment. Each start is a new process, after one that is not counted, so that files are in memory. What is measured is
the time of processors over the time that is wanted, for others may use the machine; wall time stands beside it. Where
`lance` is installed, its rows and its sizes stand beside ours.

    python bench/facts.py [--quick] [--json] [--folder DIR] [--segments N]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.harness import ROOT, Command, Measurement, clusters, say
from eyespot import rooms
from eyespot.gallery import disk, filters, row_store
from eyespot.gallery.view import Gallery, View
from eyespot.kernels.codes import code_files, write_codes
from eyespot.photos.places import Root
from eyespot.storage.atomic import new_folder
from eyespot.storage.digests import DIGESTS, add_digests
from eyespot.types import Mask, Space

REAL, ROWS, GROUP, SEGMENTS, PAGE, TRIALS = 4, 1_000_000, 1 << 16, 100, 60, 9
SEARCH, SERVE, MAPS = 3.0, 30.0, 1000  # seconds, seconds, mapped files
FILTER, FACTS, IDS = 0.5, 0.05, 0.5  # seconds
FILTERS = {  # what statistics decide: most segments, or most groups of rows, hold no match
    "number": "observation BETWEEN 20000100 AND 20000200",
    "no-such-id": "id = 'zz'",
    "like": "path LIKE '2015/00017/%'",
    "regexp": "regexp_matches(title, '^Zebra')",
    "label": "lower(CAST(species AS VARCHAR)) = lower('Pica pica')",
    "date": "taken >= TIMESTAMP '2026-01-01'",
}
INSIDE = "import sys, pathlib, bench.facts as f; f.say_inside(sys.argv[1], pathlib.Path(sys.argv[2]))"
GENERA = "Parus Corvus Ardea Anas Larus Turdus Sylvia Falco Buteo Fulica".split()  # noqa: SIM905
KINDS = "major minor ater rubra alba nigra viridis cinerea ferus vulgaris".split()  # noqa: SIM905


# -- the gallery ------------------------------------------------------------------------------------------------


def make_gallery(folder: Path, rows: int, segments: int) -> Path:
    """Four segments with facts of their own and one array of vectors, linked as often as it takes."""
    space: Space = rooms.load("encoders", "starter").space
    stem = disk.stem_of(space)
    for number in range(REAL):
        with new_folder(disk.shard_path(folder, number)) as shard:
            table = facts_of(number, rows)
            pq.write_table(table, shard / disk.ITEMS, row_group_size=GROUP, write_page_checksum=True)
            if number:
                for name in (f"{stem}.npy", f"{stem}.toml", *code_files(stem)):
                    os.link(disk.shard_path(folder, 0) / name, shard / name)
            else:
                vectors: Any = clusters(300, space.dim).draw(rows).astype(np.float16)
                disk.write_vectors(shard, vectors, disk.SpaceNote(space, [], vectors[:3].astype(float).tolist()))
                write_codes(disk.map_vectors(shard, stem), shard / stem)
            add_digests(shard, [place.name for place in shard.iterdir() if place.name != DIGESTS])
        row_store.write_row_store(disk.shard_path(folder, number))
    for number in range(REAL, segments):
        link(disk.shard_path(folder, number % REAL), disk.shard_path(folder, number))
    for number in range(REAL):
        os.utime(disk.shard_path(folder, number) / DIGESTS)  # a link counts as a change of the file
    disk.write_header(folder, disk.Header({0: Root("/photos", "folder")}, {stem: space}, stem, rows * segments))
    return folder


def link(shard: Path, other: Path) -> None:
    other.mkdir(parents=True)
    for place in shard.iterdir():
        os.link(place, other / place.name)


def facts_of(number: int, rows: int) -> pa.Table:
    """What a collection knows of photos: 18 columns, dates and paths in order, the rest drawn."""
    rng = np.random.default_rng(number)
    digits, ends = rng.bytes(16 * rows).hex(), pa.array(np.arange(rows + 1), pa.int32())
    species = np.minimum(rng.zipf(1.5, rows) - 1, 99)
    names = np.array([f"{genus} {kind}" for genus in GENERA for kind in KINDS])
    taken = 1_400_000_000 + number * 40_000_000 + np.sort(rng.integers(0, 40_000_000, rows))
    columns: dict[str, Any] = {
        "id": [digits[at * 32 : at * 32 + 32] for at in range(rows)],
        "live": np.ones(rows, bool),
        "roots": pa.ListArray.from_arrays(ends, pa.array(np.zeros(rows, np.int32))),
        "paths": pa.ListArray.from_arrays(
            ends, pa.array([f"{2014 + number}/{at // 1000:05d}/IMG_{at:09d}.jpg" for at in range(rows)])
        ),
        "size": rng.integers(200_000, 8_000_000, rows),
        "mtime": taken * 10**9,
        "width": rng.choice([640, 1024, 4000, 6000], rows).astype(np.int32),
        "height": rng.choice([480, 768, 3000, 4000], rows).astype(np.int32),
        "taken": pa.array(taken, mask=rng.random(rows) < 0.1).cast(pa.timestamp("s")),
        "latitude": rng.uniform(-60, 70, rows),
        "longitude": rng.uniform(-180, 180, rows),
        "camera": np.array([f"Camera {at}" for at in range(30)])[rng.integers(0, 30, rows)],
        "species": names[species],
        "family": np.array([f"Family {at}" for at in range(10)])[species // 10],
        "photographer": np.array([f"user {at}" for at in range(5000)])[np.minimum(rng.zipf(1.3, rows) - 1, 4999)],
        "observation": number * 10_000_000 + np.arange(rows),
        "quality": rng.random(rows),
        "title": [
            f"{names[at]} near stone {stone}" for at, stone in zip(species, rng.integers(0, 10**5, rows), strict=True)
        ],
    }
    return pa.table(columns)


# -- in processes of their own ----------------------------------------------------------------------------------


def started(what: str, gallery: Path) -> dict[str, float]:
    """What a new process measured: `search` or `serve`."""
    line = [sys.executable, "-c", INSIDE, what, str(gallery)]
    return dict(json.loads(subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout))


def opened(gallery: Path) -> View:
    """All that a search opens before its first scan."""
    known = Gallery(gallery)
    view = known.view(known.stem())
    _ = view.blocks, view.codes, view.live
    return view


def say_inside(what: str, gallery: Path) -> None:
    """What `started` reads."""
    sys.stdout.write(json.dumps(inside(what, gallery)))


def inside(what: str, gallery: Path) -> dict[str, float]:
    """Seconds until a search or a server is ready, mapped files, and this process' own memory in MiB."""
    found: dict[str, float] = {}
    if what == "search":
        views: list[View] = []
        found |= clock("ready", lambda: views.append(opened(gallery)))
        view = views[0]
        wanted = [row_id(gallery)]
        found |= clock("ids", lambda: view.rows_by_id(wanted))
        found |= clock("facts", lambda: view.facts(drawn_rows(int(view.starts[-1]))), TRIALS)
        for name, sql in FILTERS.items():
            find = partial(find_rows, view, sql)
            found |= clock(f"filter-{name}", find)
    else:
        found |= inside_serve(gallery)
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if str(gallery) in line}
    status = Path("/proc/self/status").read_text()
    anonymous = next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))
    return found | {"mapped": len(mapped), "memory": int(anonymous) / 1024}


def find_rows(view: View, sql: str) -> Mask:
    """As a search from a terminal does it, whose columns are read first."""
    return filters.mask(view.tables, filters.checked(sql, list(filters.columns_of(view.tables))))


def inside_serve(gallery: Path) -> dict[str, float]:
    """A snapshot with its facets, as `eyespot serve` has it when it is ready; then a page, an id, and each filter."""
    from eyespot.search.collection import Collection
    from eyespot.web.found.facets import facets_of
    from eyespot.web.found.fact_store import FactStore
    from eyespot.web.found.snapshot import Snapshot

    store = FactStore()
    snapshot = Snapshot(Collection(gallery, "starter"), store, "1")

    def prepare() -> None:
        snapshot.prepare()
        facets_of(snapshot)

    found = clock("ready", prepare)
    found |= clock("facts", lambda: snapshot.facts(drawn_rows(len(snapshot.view.live))), TRIALS)
    wanted = row_id(gallery)
    found |= clock("ids", lambda: snapshot.row_of(wanted), TRIALS)
    for name, sql in FILTERS.items():
        condition = filters.checked(sql, list(snapshot.kinds))
        found |= clock(f"filter-{name}", partial(snapshot.mask, condition))
    found |= clock("filter-again", partial(snapshot.mask, condition), TRIALS)
    again = Snapshot(Collection(gallery, "starter"), store, "2")
    again.collection.encoder = snapshot.collection.encoder
    found |= clock("facets-again", lambda: (again.fact_tables, again.view.live, facets_of(again)))
    found |= clock("label-codes", lambda: [coded.codes for coded in facets_of(again).coded.values()])
    return found


def clock(name: str, work: Callable[[], object], trials: int = 1) -> dict[str, float]:
    """The medians of the seconds that it takes: of processors, and of the clock on the wall."""
    seconds = []
    for _ in range(trials):
        begun = time.process_time(), time.perf_counter()
        work()
        seconds.append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
    cpu, wall = np.median(seconds, axis=0).tolist()
    return {name: cpu, f"{name}-wall": wall}


def drawn_rows(rows: int) -> list[int]:
    rows_drawn: list[int] = np.sort(np.random.default_rng().choice(rows, PAGE, replace=False)).tolist()
    return rows_drawn


def row_id(gallery: Path) -> str:
    """An id that a row of the last real segment has."""
    return str(disk.read_rows(disk.shard_path(gallery, REAL - 1), [777])["id"][0].as_py())


# -- rows of one segment, in several forms --------------------------------------------------------------------------


def forms(shard: Path, folder: Path) -> Iterator[Measurement]:
    """A page of scattered rows, and bytes a row: from parquet, from the file by rows, and from Lance."""
    place = shard / disk.ITEMS
    rows = disk.count_items(shard)
    small = folder / "small.parquet"
    pq.write_table(pq.read_table(place), small, row_group_size=2048)
    batch = row_store.open_rows(shard)
    assert batch is not None
    ways: dict[str, tuple[Callable[[list[int]], object], int]] = {
        "groups of 2,048": (groups_reader(small, 2048), small.stat().st_size),
        "groups of 65,536": (groups_reader(place, GROUP), place.stat().st_size),
        "by row": (
            lambda wanted: batch.take(pa.array(wanted)).to_pylist(),
            sum((shard / name).stat().st_size for name in disk.ROW_STORE),
        ),
    }
    if find_spec("lance"):
        ways["lance"] = lance_reader(place, folder / "lance")
    seconds = {name: clock("", partial(read_drawn, read, rows), TRIALS)[""] for name, (read, _) in ways.items()}
    for name, (_, size) in ways.items():
        say(f"{name}: {PAGE} of {rows} rows in {seconds[name] * 1000:.1f} ms, {size / rows:.0f} bytes a row")
    yield Measurement.from_mean("facts/by-row", seconds["by row"] / FACTS, f"{FACTS:g} s", 1.0)


def read_drawn(read: Callable[[list[int]], object], rows: int) -> object:
    return read(drawn_rows(rows))


def groups_reader(place: Path, rows: int) -> Callable[[list[int]], object]:
    file = pq.ParquetFile(place)

    def read(wanted: list[int]) -> object:
        groups, at = np.unique(np.array(wanted) // rows, return_inverse=True)
        table = file.read_row_groups(groups.tolist(), use_threads=False)
        return table.take(pa.array(at * rows + np.array(wanted) % rows)).to_pylist()

    return read


def lance_reader(place: Path, folder: Path) -> tuple[Callable[[list[int]], object], int]:
    table: Any = import_module("lance").write_dataset(pq.read_table(place), folder, max_rows_per_file=ROWS)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return lambda wanted: table.take(wanted).to_pylist(), size


# -- all of it ------------------------------------------------------------------------------------------------------


def measurements(options: Namespace) -> Iterator[Measurement]:
    rows, segments = (50_000, 20) if options.quick else (ROWS, options.segments)
    gallery = make_gallery(options.folder / "gallery", rows, segments)
    say(f"{rows * segments} rows in {segments} segments; load {os.getloadavg()[0]:.1f}")
    yield from forms(disk.shard_path(gallery, 0), options.folder)
    for what, goal in (("search", SEARCH), ("serve", SERVE)):
        started(what, gallery)
        found = started(what, gallery)
        say(f"{what}: {', '.join(f'{name} {value:.3g}' for name, value in found.items())}")
        yield Measurement.from_mean(f"{what}/ready", found["ready"] / goal, f"{goal:g} s", 1.0)
        yield Measurement.from_mean(f"{what}/mapped", found["mapped"] / MAPS, f"{MAPS} files", 1.0)
        yield Measurement.from_mean(f"{what}/ids", found["ids"] / IDS, f"{IDS:g} s", 1.0)
        yield Measurement.from_mean(f"{what}/facts", found["facts"] / FACTS, f"{FACTS:g} s", 1.0)
        for name, value in found.items():
            if name.startswith("filter") and not name.endswith("-wall"):
                yield Measurement.from_mean(f"{what}/{name}", value / FILTER, f"{FILTER:g} s", 1.0)


if __name__ == "__main__":
    command = Command(__doc__, quick="a hundredth of the rows")
    command.add_argument("--segments", type=int, default=SEGMENTS, help="of a million rows each")
    command.run(measurements)
