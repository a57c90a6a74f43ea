"""Bulk in: a clip-retrieval folder of 5 million rows imported where it lies, against a plain read of its vectors.

The folder is made as clip-retrieval writes it: five parts of float16 vectors (512 dimensions; --dim for others) with
paths, keys, addresses, captions and sizes in parquet (--quick: a tenth). The import runs in its own process; its peak
of anonymous memory, without the mapped vectors, comes from the system. Goals: two minutes and 2 GiB.

    python bench/bulk.py [--quick] [--json] [--dim N] [--folder DIR]
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import ROOT, Command, Measurement, say, timed

PARTS, ROWS = 5, 1_000_000
MINUTES, GIB = 2.0, 2.0
CHILD = """
import json, sys, threading, time
from pathlib import Path
from eyespot.formats.imports import clip_retrieval
from eyespot.formats.imports.registered import InPlace, take_in
most, over = [0], threading.Event()
def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
def watch():
    while not over.wait(0.02):
        most[0] = max(most[0], anonymous())
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
done = take_in(Path(sys.argv[2]), clip_retrieval.source([Path(sys.argv[1])]), "open_clip:ViT-B-32/openai", InPlace())
seconds = time.perf_counter() - start
over.set()
watcher.join()
tables = sum(path.stat().st_size for path in Path(sys.argv[2]).rglob("items.parquet"))
print(json.dumps({"seconds": seconds, "memory": most[0], "rows": done.added, "facts": tables / done.added}))
"""


def make(folder: Path, rows: int, dim: int) -> None:
    """A folder as clip-retrieval's inference writes it."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part in range(PARTS):
        vectors = rng.standard_normal((rows // PARTS, dim), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", vectors.astype(np.float16))
        write_table(folder / "metadata" / f"metadata_{part}.parquet", part * len(vectors), len(vectors))


def write_table(path: Path, first: int, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = range(first, first + rows)
    columns = {
        "image_path": [f"{number // 10_000:05d}/{number:09d}.jpg" for number in numbers],
        "key": [f"{number:09d}" for number in numbers],
        "url": [f"https://pictures.example.org/{number:x}.jpg" for number in numbers],
        "caption": [f"a picture of the thing with the number {number}" for number in numbers],
        "width": [500 - number % 7 for number in numbers],
        "height": [375 + number % 11 for number in numbers],
        "similarity": [0.3 + (number % 100) / 1000 for number in numbers],
    }
    pq.write_table(pa.table(columns), path)


def read_all(folder: Path) -> None:
    """Look at every vector once, as floats: no import that checks them can do less."""
    for path in sorted((folder / "img_emb").iterdir()):
        array = np.load(path, mmap_mode="r")
        for start in range(0, len(array), 16_384):
            np.square(array[start : start + 16_384].astype(np.float32)).sum()


def measurements(options: Namespace) -> Iterator[Measurement]:
    clip, rows = options.folder / "clip", PARTS * ROWS // (10 if options.quick else 1)
    make(clip, rows, options.dim)
    say(f"{rows} rows of {options.dim} made")
    reading, _ = timed(lambda: read_all(clip), time.perf_counter)
    child = [sys.executable, "-c", CHILD, str(clip), str(options.folder / "gallery")]
    done = json.loads(subprocess.run(child, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    say(f"{done['rows']} rows imported in {done['seconds']:.1f} s; a plain read of the vectors {reading:.1f} s")
    say(f"{done['facts']:.1f} bytes of facts an image, {done['memory'] / (1 << 20):.0f} MiB of anonymous memory")
    share = done["seconds"] / (60 * MINUTES) * (PARTS * ROWS / rows)
    yield Measurement.from_mean("seconds for five million rows", share, "two minutes", 1.0)
    yield Measurement.from_mean("anonymous memory while importing", done["memory"] / (GIB * (1 << 30)), "2 GiB", 1.0)


if __name__ == "__main__":
    command = Command(__doc__)
    command.add_argument("--dim", type=int, default=512, help="numbers of a vector")
    command.run(measurements)
