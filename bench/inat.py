"""How long curating takes and how much memory: a made-up export of 5 million observations, on 2 threads.

Goals: under 20 minutes and 8 GiB of memory (reading, six steps of set work, the draw, and all files of the collection;
no pictures). Three sizes show the growth, from which 33 million are extrapolated. Groups and draws of a few days and
species are compared with the slow and obvious way, and the draw's spread with that of a random draw. A second run must
end in the same collection.

    python bench/inat.py [--quick] [--json]
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import ROOT, BenchmarkError, Command, Measurement, say, timed
from bench.reference.inat import slow_groups, slow_turns
from eyespot.curate.inat.sampling import lots_of
from tests.worlds.inat_export import make

MINUTES, GIB, WHOLE, INAT24 = 20.0, 8.0, 5_000_000, 33_000_000
CAP, DAYS = 550, (18_700, 19_000, 19_300)
CHILD = """
import json, resource, sys, time
from pathlib import Path
from eyespot.curate.inat.curating import curate
from eyespot.curate.inat.settings import CollectionSettings, Species
export, out = map(Path, sys.argv[1:3])
lists = Species(export / "targets.csv", export / "mapping.csv")
since = time.monotonic()
done = curate(export, out, CollectionSettings(species=lists), lambda *_: None)
used = resource.getrusage(resource.RUSAGE_SELF)
peak, cpu = used.ru_maxrss / (1 << (30 if sys.platform == "darwin" else 20)), used.ru_utime + used.ru_stime
costs = {"seconds": time.monotonic() - since, "cpu": cpu, "gib": peak, "draw": dict(done.drawn)}
print(json.dumps(costs | {"steps": {step["step"]: step["seconds"] for step in done.steps}}))
"""


def costs_of(folder: Path, size: int) -> dict[str, Any]:
    """Make an export and curate it in its own process; seconds, peak memory, and what it drew."""
    seconds, _ = timed(lambda: make(folder / f"export-{size}", size))
    say(f"export of {size:,} made in {seconds:.0f} s of CPU time")
    costs = curate(folder / f"export-{size}", folder / str(size))
    steps = ", ".join(f"{name} {seconds:.0f}" for name, seconds in costs["steps"].items())
    say(f"{size:>9,}: {costs['seconds']:.0f} s ({steps}), {costs['cpu']:.0f} s of CPU time, {costs['gib']:.2f} GiB")
    return costs


def curate(export: Path, out: Path) -> dict[str, Any]:
    child = [sys.executable, "-c", CHILD, str(export), str(out)]
    done = subprocess.run(child, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise BenchmarkError(done.stderr)
    costs: dict[str, Any] = json.loads(done.stdout)
    return costs


# -- checks -----------------------------------------------------------------------------------------------------


def table(out: Path, stage: str, where: str) -> dict[str, Any]:
    """Columns of some rows of a stage, in a fixed order."""
    import duckdb

    (folder,) = (out / ".work").glob(f"[0-9]*-{stage}")
    rows = duckdb.connect().sql(f"SELECT * FROM '{folder / 'kept.parquet'}' WHERE {where} ORDER BY mark, row")
    return dict(rows.fetchnumpy())


def wrong_groups(out: Path) -> int:
    """Observations of three days whose group differs from that of the slow way."""
    wrong = 0
    for day in DAYS:
        rows = table(out, "grouped", f"day = {day}")
        expected = slow_groups(rows["latitude"], rows["longitude"], 10.0)
        first = np.unique(rows["group"], return_index=True, return_inverse=True)
        wrong += int((first[1][first[2]] != expected).sum())
        say(f"day {day}: {len(expected):,} observations, {len(first[0]):,} groups, {wrong} wrong so far")
    return wrong


def wrong_draws(out: Path) -> int:
    """Turns of three species that the slow way draws differently."""
    import duckdb

    (folder,) = (out / ".work").glob("[0-9]*-drawn")
    sql = f"SELECT target FROM '{folder / 'species.parquet'}' WHERE candidates > drawn ORDER BY candidates LIMIT 3"
    return sum(wrong_turns(out, folder, target) for (target,) in duckdb.connect().sql(sql).fetchall())


def wrong_turns(out: Path, folder: Path, target: int) -> int:
    """The turns of one species that the slow way draws differently."""
    import duckdb

    rows = table(out, "grouped", f"target = {target}")
    sql = f"SELECT d.* FROM '{folder / 'kept.parquet'}' d WHERE target = {target}"
    drawn = {name: values for name, values in duckdb.connect().sql(sql).fetchnumpy().items()}
    positions = {row: number for number, row in enumerate(drawn["row"].tolist())}
    order = [positions[row] for row in rows["row"].tolist()]
    cluster, turn = (np.asarray(drawn[name])[order] for name in ("cluster", "turn"))
    names = np.arange(cluster.max() + 1, dtype=np.uint64) + np.uint64(target) * np.uint64(1_000_003)
    first = np.argsort(lots_of(names, 0), kind="stable").tolist()
    expected = slow_turns((cluster, rows["group"], rows["who"]), lots_of(rows["mark"], 0), first, CAP)
    return sum(int(turn[row]) != number for number, row in enumerate(expected))


def over_cap(out: Path) -> int:
    """Species of which more than the cap was drawn, or fewer than possible below it."""
    import duckdb

    (folder,) = (out / ".work").glob("[0-9]*-drawn")
    sql = f"SELECT count(*) FROM '{folder / 'species.parquet'}' WHERE drawn <> least(candidates, {CAP})"
    return int(duckdb.connect().sql(sql).fetchall()[0][0])


def repeated(folder: Path, size: int) -> bool:
    """Whether a second run elsewhere ends in the same collection."""
    curate(folder / f"export-{size}", folder / "again")
    files = [folder / name / "train.json" for name in (str(size), "again")]
    return len({hashlib.sha256(file.read_bytes()).hexdigest() for file in files}) == 1


# -- what is measured -----------------------------------------------------------------------------------------------


def measurements(options: Namespace) -> Iterator[Measurement]:
    largest = 200_000 if options.quick else WHOLE
    sizes = {size: costs_of(options.folder, size) for size in (largest // 10, largest // 3, largest)}
    growth(sizes)
    costs, draw, out = sizes[largest], sizes[largest]["draw"], options.folder / str(largest)
    yield Measurement.from_mean("inat/minutes", costs["seconds"] / 60 / MINUTES, f"{MINUTES:g} minutes", 1.0)
    yield Measurement.from_mean("inat/memory", costs["gib"] / GIB, f"{GIB:g} GiB", 1.0)
    say(f"spread: {draw['spread_drawn']:.1f} cells drawn, {draw['spread_random']:.1f} at random")
    yield Measurement.from_mean("inat/spread", draw["spread_random"] / draw["spread_drawn"], "a random draw", 1.0)
    wrong = wrong_groups(out) + wrong_draws(out) + over_cap(out)
    yield Measurement.from_mean("inat/wrong groups, turns and caps", wrong, "the slow way", 0.0)
    differs = not repeated(options.folder, largest // 10)
    yield Measurement.from_mean("inat/second run differs", differs, "the first run", 0.0)


def growth(sizes: dict[int, dict[str, Any]]) -> None:
    """Print how time grows and what it would be for iNat24; by CPU time, which other programs change least."""
    _, middle, largest = sizes
    seconds, cpu = sizes[largest]["seconds"], sizes[largest]["cpu"]
    power = math.log(cpu / sizes[middle]["cpu"]) / math.log(largest / middle)
    hours = seconds * (INAT24 / largest) ** max(power, 1.0) / 3600
    say(f"{largest:,} observations: {seconds / 60:.1f} minutes, {cpu / 60:.1f} minutes of CPU time")
    say(f"time grows with size^{power:.2f}; 33 million, extrapolated: {hours:.1f} hours, without pictures")


if __name__ == "__main__":
    Command(__doc__, fast=True, quick="200,000 observations").run(measurements)
