"""ReCoS: everyday scenes in twelve sub-tasks, captions and images, both ways, in three sizes (v0, v1, v2)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

from eyespot.benchmarks._benchmark import Benchmark, Needed, Official, Printed, Task, note_of_set
from eyespot.benchmarks._captions import BY, both_ways, official, table_2
from eyespot.benchmarks._papers import column, printed, rows
from eyespot.metrics import preset
from eyespot.runs import recos

HOME = "https://github.com/Bruce-XJChen/ReCos"
VERSIONS = ("v1", "v0", "v2")  # the usual one first
OFFICIAL = {**official("v0", 500), **official("v1", 1000), ("v2", "t2i"): Official(5000, 15_982)}
CITATION = (
    "Chen, Lou, Huang, Wan, Zhang, Yang: ReCoS: A Novel Benchmark for Cross-Modal Image-Text Retrieval in Complex "
    "Real-Life Scenarios. ACM Multimedia 2024"
)


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """Both ways over v0 or v1; over v2, whose further images have no captions, text→image alone."""
    found = recos.read(data, split)
    i2t, t2i = both_ways(found.captions, preset("recos"), BY)
    pool = t2i.pool | found.others
    wider = replace(t2i, pool=pool, size=len(pool))
    of_split = [wider] if split == "v2" else [i2t, wider]
    unofficial = () if recos.is_released(data, split) else (note_of_set(data, "the set is one of your own"),)
    return [replace(task, unofficial=unofficial) for task in of_split]


def published() -> list[Printed]:
    """ReCoS's tables 2 (v1) and 3 (CLIP on v0, v1 and v2)."""
    found = table_2("ReCoS v1")
    for row in rows("recos_table3"):
        for way, k in product(("i2t", "t2i"), (1, 5, 10)):
            if cell := row[f"{way}_r{k}"]:
                method, about = f"CLIP on {row['version']}", column(way, f"Hit@{k}")
                found.append(printed("ReCoS, table 3", method, about, float(cell), row["version"]))
    return found


def load() -> Benchmark:
    """The benchmark."""
    layout = "eyespot's layout or the released JSON (docs/research/eval.md)"
    return Benchmark(
        "recos",
        "ReCoS",
        "everyday scenes in twelve sub-tasks: 500 images (v0), 1,000 (v1), 15,982 (v2), five captions each, both ways",
        HOME,
        "not stated by its owners",
        CITATION,
        tasks,
        (
            Needed(
                "recos_v[012].json|captions_v[012].json|captions.parquet|captions.jsonl|captions.csv",
                layout,
                "https://drive.google.com/drive/folders/1TIleVTV5cx_aaitabiQ0Wbvq-huxN6Gu",
            ),
        ),
        VERSIONS,
        published,
        OFFICIAL,
    )
