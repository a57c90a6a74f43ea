"""What it takes on this machine until vectors can be searched: a gallery made for it is imported, coded and merged."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from eyespot.search.plan.measuring import SyntheticVectors
from eyespot.search.plan.slopes import BILLION, Slopes

_PARTS = 4


def with_building(known: Slopes, dim: int, folder: Path, rows: int) -> Slopes:
    """What is known, and the seconds for 10⁹ numbers of `import --copy`, `index --codes` and `compact` on this machine.

    Measured with `rows` rows in parts, in an empty folder that is empty again afterwards.
    """
    from eyespot.formats.imports import clip_retrieval
    from eyespot.formats.imports.registered import Copied, take_in
    from eyespot.gallery.indexing import Options, index
    from eyespot.gallery.segments import compact

    clip, gallery = folder / "clip", folder / "gallery"
    _make_source(clip, SyntheticVectors(dim), rows // _PARTS)
    steps: dict[str, Callable[[], object]] = {
        "import": lambda: take_in(gallery, clip_retrieval.source([clip]), "measured", Copied()),
        "codes": lambda: index(gallery, [], [], Options(codes=True)),
        "merging": lambda: compact(gallery, rows, grace=0),
    }
    seconds: dict[str, float] = {}
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        seconds[name] = (time.perf_counter() - start) * BILLION / (rows * dim)
    for made in (clip, gallery):
        shutil.rmtree(made)
    return replace(known, build={**known.build, **seconds})


def _make_source(folder: Path, world: SyntheticVectors, rows: int) -> None:
    """What clip-retrieval would have written: vectors, and for each image an address, a caption and its size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True)
    for part in range(_PARTS):
        world.fill(folder / "img_emb" / f"img_emb_{part}.npy", rows)
        numbers = range(part * rows, (part + 1) * rows)
        columns = {
            "url": [f"https://pictures.example.org/{number:09d}.jpg" for number in numbers],
            "caption": [f"a picture of the thing with the number {number}" for number in numbers],
            "width": np.resize(np.arange(494, 501), rows),
            "height": np.resize(np.arange(375, 386), rows),
        }
        pq.write_table(pa.table(columns), folder / "metadata" / f"metadata_{part}.parquet")
