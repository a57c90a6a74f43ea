"""INQUIRE-Rerank: put the 100 candidates of each query, found by CLIP ViT-H-14, into a better order."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

from eyespot.benchmarks._benchmark import Benchmark, Needed, Official, Printed, Task
from eyespot.benchmarks._evaluating import columns
from eyespot.benchmarks._papers import column, prompted, rows, table
from eyespot.benchmarks.inquire_fullrank import BREAKDOWNS, CITATION
from eyespot.metrics import preset
from eyespot.runs import PARQUETS, inquire
from eyespot.types import UsageError

OTHER_NAMES = "[!tv]*.parquet"  # neither of the hub's splits
HUB_SPLITS = ("test", "val", "train")
HUB = "https://huggingface.co/datasets/evendrow/INQUIRE-Rerank"
TABLE = {"ap": column("t2i", "AP"), "ndcg": column("t2i", "nDCG"), "mrr": column("t2i", "RR", percent=False)}
GROUPS = {
    **{
        name: column("t2i", "AP", "supercategory", name.capitalize())
        for name in ("appearance", "behavior", "context", "species")
    },
    "lingo": column("t2i", "AP", "lingo", "yes"),
    "no_lingo": column("t2i", "AP", "lingo", "no"),
}


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """One task; R is the relevant among the candidates, and a query may rank nothing else."""
    # The hub names its files by split; a folder that does not is taken whole. Its train-* are an older release.
    found = [file for pattern in PARQUETS for file in sorted(data.glob(pattern))]
    of_split = [file for file in found if file.name.startswith(split)]
    named = any(file.name.startswith(HUB_SPLITS) for file in found)
    if not found or (named and not of_split):
        raise UsageError(f"there are no parquet files of the {split} split in {data}; get them: {HUB}/tree/main/data")
    chosen = of_split if named else found
    for file in chosen:
        names = {each.name for each in chosen}
        # Of test-00001-of-00004.parquet all four must be there: a part would score without a word
        parts = re.fullmatch(r"(.*-)\d{5}(-of-(\d{5})\.parquet)", file.name)
        wanted = [f"{parts[1]}{at:05}{parts[2]}" for at in range(int(parts[3]))] if parts else []
        lacking = [name for name in wanted if name not in names]
        if lacking:
            raise UsageError(f"{len(lacking)} of {len(wanted)} files are not in {data} ({lacking[0]}, …); get: {HUB}")
    judged = inquire.read_rerank(chosen)
    return [Task.of("t2i", judged, preset("inquire-rerank"), by=columns(*BREAKDOWNS))]


def printed() -> list[Printed]:
    """INQUIRE's tables 4 and 5."""
    models = {row["method"] for row in rows("inquire_rerank") if row["group"] in ("proprietary", "open")}
    tables = chain(
        table("inquire_rerank", "INQUIRE, table 4", ("method",), TABLE),
        table("inquire_rerank_groups", "INQUIRE, table 5", ("method",), GROUPS),
    )
    return list(prompted(tables, models))


def _needed(split: str, files: str, size: str) -> Needed:
    places = f"data/{files}|{files}|data/{OTHER_NAMES}|{OTHER_NAMES}"
    return Needed(places, f"the {split} split with its pictures, {size}", f"{HUB}/tree/main/data", split=split)


def load() -> Benchmark:
    """The benchmark."""
    return Benchmark(
        "inquire-rerank",
        "INQUIRE-Rerank",
        "160 test and 40 validation queries of experts with 100 candidates each, 1 to 50 of them relevant",
        HUB,
        "CC BY-NC 4.0; each photo under its own licence",
        CITATION,
        tasks,
        (_needed("test", "test-*.parquet", "1.5 GB"), _needed("val", "val*.parquet", "0.4 GB")),
        ("test", "val"),
        printed,
        {("test", "t2i"): Official(160, 100)},
    )
