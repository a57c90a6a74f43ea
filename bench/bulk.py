"""Bulk in: a clip-retrieval folder of 5 million rows imported where it lies, against a plain read of its vectors.

The folder is made as clip-retrieval writes it: five parts of float16 vectors (512 dimensions; --dim for others) with
paths, keys, addresses, captions and sizes in parquet (--quick: a tenth). The import runs in a process of its own; its
most resident memory is taken from the system, less the mapped vectors. Goals: two minutes and 2 GiB. Exit code 4 if a
goal is missed.

    python bench/bulk.py [--quick] [--json] [--dim N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.exact import Result, say, show

PARTS, ROWS = 5, 1_000_000
MINUTES, GIB = 2.0, 2.0
CHILD = """
import json, sys, threading, time
from pathlib import Path
from eyespot.gallery.formats import clip_retrieval
from eyespot.gallery.formats.registered import InPlace, take_in
most, over = [0], threading.Event()
def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
def look():
    while not over.wait(0.02):
        most[0] = max(most[0], anonymous())
watch = threading.Thread(target=look)
watch.start()
start = time.perf_counter()
done = take_in(Path(sys.argv[2]), clip_retrieval.source([Path(sys.argv[1])]), "open_clip:ViT-B-32/openai", InPlace())
seconds = time.perf_counter() - start
over.set()
watch.join()
tables = sum(place.stat().st_size for place in Path(sys.argv[2]).rglob("items.parquet"))
print(json.dumps({"seconds": seconds, "memory": most[0], "rows": done.added, "facts": tables / done.added}))
"""


def make(folder: Path, rows: int, dim: int) -> None:
    """A folder as clip-retrieval's inference leaves it."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part in range(PARTS):
        vectors = rng.standard_normal((rows // PARTS, dim), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        np.save(folder / "img_emb" / f"img_emb_{part}.npy", vectors.astype(np.float16))
        write_table(folder / "metadata" / f"metadata_{part}.parquet", part * len(vectors), len(vectors))


def write_table(place: Path, first: int, rows: int) -> None:
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
    pq.write_table(pa.table(columns), place)


def read_all(folder: Path) -> float:
    """Seconds to look at every vector once, as floats: what nobody who checks them can do without."""
    start = time.perf_counter()
    for place in sorted((folder / "img_emb").iterdir()):
        array = np.load(place, mmap_mode="r")
        for at in range(0, len(array), 16_384):
            np.square(array[at : at + 16_384].astype(np.float32)).sum()
    return time.perf_counter() - start


def results(folder: Path, rows: int, dim: int) -> Iterator[Result]:
    make(folder / "clip", rows, dim)
    say(f"{rows} rows of {dim} made")
    before = read_all(folder / "clip")
    child = [sys.executable, "-c", CHILD, str(folder / "clip"), str(folder / "gallery")]
    root = str(Path(__file__).resolve().parent.parent)
    done = json.loads(subprocess.run(child, capture_output=True, text=True, check=True, cwd=root).stdout)
    say(f"{done['rows']} rows imported in {done['seconds']:.1f} s; a plain read of the vectors {before:.1f} s")
    say(f"{done['facts']:.1f} bytes of facts an image, {done['memory'] / (1 << 20):.0f} MiB of anonymous memory")
    share = done["seconds"] / (60 * MINUTES) * (PARTS * ROWS / rows)
    yield Result("seconds for five million rows", share, "two minutes", share, share, 1, 1.0)
    share = done["memory"] / (GIB * (1 << 30))
    yield Result("anonymous memory while importing", share, "2 GiB", share, share, 1, 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    parser.add_argument("--dim", type=int, default=512, help="numbers of a vector")
    parser.add_argument("--folder", type=Path, help="where there is room; default: the system's temporary folder")
    options, met = parser.parse_args(), True
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="eyespot-bulk-") as folder:
        for result in results(Path(folder), PARTS * ROWS // (10 if options.quick else 1), options.dim):
            show(result, options)
            met &= result.met
    return 0 if met else 4


if __name__ == "__main__":
    sys.exit(main())
