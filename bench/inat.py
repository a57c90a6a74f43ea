"""How long curating takes and how much memory: a made-up export of 5 million observations, on 2 threads.

Goals: under 20 minutes and 8 GiB of memory (reading, six steps of set work, the draw, and all files of the collection;
no pictures). Three sizes show the growth, from which 33 million are extrapolated. Groups and draws are compared with
the slow and obvious way on a few days and species, and the draw's spread with that of a random draw.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from eyespot.curate.inat.checking import slow_groups, slow_turns
from eyespot.curate.inat.drawing import lots_of
from eyespot.curate.inat.synthetic import make

MINUTES, GIB, WHOLE, INAT24 = 20.0, 8.0, 5_000_000, 33_000_000
_RUN = """
import json, resource, sys, time
from pathlib import Path
from eyespot.curate.inat.curating import curate
from eyespot.curate.inat.settings import Settings, Species
export, out = map(Path, sys.argv[1:3])
lists = Species(export / "targets.csv", export / "mapping.csv")
since = time.monotonic()
done = curate(export, out, Settings(species=lists), lambda *_: None)
used = resource.getrusage(resource.RUSAGE_SELF)
peak, cpu = used.ru_maxrss / (1 << (30 if sys.platform == "darwin" else 20)), used.ru_utime + used.ru_stime
told = {"seconds": time.monotonic() - since, "cpu": cpu, "gib": peak, "draw": dict(done.drawn)}
print(json.dumps(told | {"steps": {one["step"]: one["seconds"] for one in done.steps}}))
"""


def main() -> int:
    """Measure, check, print, and tell by the exit code whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON line per result")
    parser.add_argument("--quick", action="store_true", help="200,000 observations")
    options = parser.parse_args()
    largest = 200_000 if options.quick else WHOLE
    with tempfile.TemporaryDirectory(prefix="eyespot-bench-") as folder:
        told = {size: measure(Path(folder), size) for size in (largest // 10, largest // 3, largest)}
        place = Path(folder) / str(largest)
        wrong = wrong_groups(place) + wrong_draws(place) + over_cap(place)
        same = repeated(Path(folder), largest // 10)
    return report(told, wrong, same, options.json)


def measure(folder: Path, size: int) -> dict[str, Any]:
    """Make an export and curate it in a process of its own; seconds, peak memory, and what it drew."""
    since = time.monotonic()
    make(folder / f"export-{size}", size)
    print(f"export of {size:,} made in {time.monotonic() - since:.0f} s", file=sys.stderr)
    told = curated(folder / f"export-{size}", folder / str(size))
    steps = ", ".join(f"{name} {seconds:.0f}" for name, seconds in told["steps"].items())
    print(
        f"{size:>9,}: {told['seconds']:.0f} s ({steps}), {told['cpu']:.0f} s of CPU, {told['gib']:.2f} GiB",
        file=sys.stderr,
    )
    return told


def curated(export: Path, out: Path) -> dict[str, Any]:
    """What curating tells of itself."""
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, str(export), str(out)], capture_output=True, text=True, env=os.environ
    )
    if ran.returncode:
        raise SystemExit(ran.stderr)
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


# -- checks -----------------------------------------------------------------------------------------------------


def table(out: Path, stage: str, where: str) -> dict[str, Any]:
    """Columns of a stage's rows that were kept or dropped."""
    import duckdb

    (place,) = (out / ".work").glob(f"[0-9]*-{stage}")
    found = duckdb.connect().sql(f"SELECT * FROM '{place / 'kept.parquet'}' WHERE {where} ORDER BY mark, row")
    return dict(found.fetchnumpy())


def wrong_groups(out: Path) -> int:
    """Observations of three days whose group is not that of the slow way."""
    wrong = 0
    for day in (18_700, 19_000, 19_300):
        rows = table(out, "grouped", f"day = {day}")
        expected = slow_groups(rows["latitude"], rows["longitude"], 10.0)
        first = np.unique(rows["group"], return_index=True, return_inverse=True)
        wrong += int((first[1][first[2]] != expected).sum())
        print(f"day {day}: {len(expected):,} observations, {len(first[0]):,} groups, {wrong} wrong", file=sys.stderr)
    return wrong


def wrong_draws(out: Path) -> int:
    """Turns of three species that the slow way draws otherwise."""
    import duckdb

    (place,) = (out / ".work").glob("[0-9]*-drawn")
    sql = f"SELECT target FROM '{place / 'species.parquet'}' WHERE candidates > drawn ORDER BY candidates LIMIT 3"
    return sum(wrong_turns(out, place, target) for (target,) in duckdb.connect().sql(sql).fetchall())


def wrong_turns(out: Path, place: Path, target: int) -> int:
    """The same of one species."""
    import duckdb

    rows = table(out, "grouped", f"target = {target}")
    sql = f"SELECT d.* FROM '{place / 'kept.parquet'}' d WHERE target = {target}"
    drawn = {name: values for name, values in duckdb.connect().sql(sql).fetchnumpy().items()}
    at = {row: number for number, row in enumerate(drawn["row"].tolist())}
    order = [at[row] for row in rows["row"].tolist()]
    cluster, turn = (np.asarray(drawn[name])[order] for name in ("cluster", "turn"))
    names = np.arange(cluster.max() + 1, dtype=np.uint64) + np.uint64(target) * np.uint64(1_000_003)
    first = np.argsort(lots_of(names, 0), kind="stable").tolist()
    expected = slow_turns((cluster, rows["group"], rows["who"]), lots_of(rows["mark"], 0), first, 550)
    return sum(int(turn[row]) != number for number, row in enumerate(expected))


def over_cap(out: Path) -> int:
    """Species of which more than the cap was drawn, or fewer than there were below it."""
    import duckdb

    (place,) = (out / ".work").glob("[0-9]*-drawn")
    sql = f"SELECT count(*) FROM '{place / 'species.parquet'}' WHERE drawn <> least(candidates, 550)"
    return int(duckdb.connect().sql(sql).fetchall()[0][0])


def repeated(folder: Path, size: int) -> bool:
    """Whether a second run elsewhere ends in the same collection."""
    curated(folder / f"export-{size}", folder / "again")
    files = [folder / name / "train.json" for name in (str(size), "again")]
    return len({hashlib.sha256(file.read_bytes()).hexdigest() for file in files}) == 1


# -- report -----------------------------------------------------------------------------------------------------


def report(told: dict[int, dict[str, Any]], wrong: int, same: bool, as_json: bool) -> int:
    """Print the growth, the goals and the checks."""
    sizes, largest = list(told), max(told)
    # by processor time, which tells the growth also on a machine that others use
    power = math.log(told[largest]["cpu"] / told[sizes[1]]["cpu"]) / math.log(largest / sizes[1])
    minutes, gib = told[largest]["seconds"] / 60, told[largest]["gib"]
    hours = told[largest]["seconds"] * (INAT24 / largest) ** max(power, 1.0) / 3600
    drawn = told[largest]["draw"]
    spread = drawn["spread_random"] / drawn["spread_drawn"]
    results = [
        {"name": "inat/minutes", "ratio": round(minutes / MINUTES, 3), "peer": f"{MINUTES:g} minutes", "n": largest},
        {"name": "inat/memory", "ratio": round(gib / GIB, 3), "peer": f"{GIB:g} GiB", "n": largest},
        {"name": "inat/spread", "ratio": round(spread, 3), "peer": "a random draw", "n": drawn["over_cap"]},
    ]
    for one in results:
        print(json.dumps(one | {"goal": 1.0}) if as_json else f"{one['name']}: {one['ratio']} of {one['peer']}")
    if not as_json:
        print(f"{largest:,} observations: {minutes:.1f} minutes, {gib:.2f} GiB; time grows with size^{power:.2f}")
        print(f"{told[largest]['cpu'] / 60:.1f} minutes of CPU, which a busy machine does not change")
        print(f"33 million, extrapolated: {hours:.1f} hours (pictures apart)")
        print(f"spread: {drawn['spread_drawn']:.1f} cells drawn, {drawn['spread_random']:.1f} by lot")
        print(f"wrong groups, turns and caps: {wrong}; a second run draws the same: {same}")
    return 0 if not wrong and same and all(float(str(one["ratio"])) <= 1 for one in results) else 4


if __name__ == "__main__":
    sys.exit(main())
