"""INQUIRE-Fullrank: rank 4.8 million photos of nature for each query of an expert."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eyespot.benchmarks._benchmark import Benchmark, Needed, Official, Printed, Task, unofficial
from eyespot.benchmarks._evaluating import columns
from eyespot.benchmarks._papers import column, prompted, rows, table
from eyespot.metrics import preset
from eyespot.runs import inquire
from eyespot.types import Note

HOME = "https://github.com/inquire-benchmark/INQUIRE"
PHOTOS = 4_813_543
RELEVANT = 32_696  # pairs of all 250 queries
CLOSE = 0.02  # of them: a release may mend a few
CITATION = (
    "Vendrow, Pantazis, Shepard, Brostow, Jones, Mac Aodha, Beery, Van Horn: INQUIRE: A Natural World Text-to-Image "
    "Retrieval Benchmark. NeurIPS Datasets and Benchmarks, 2024"
)
BREAKDOWNS = ("supercategory", "category", "iconic_group", "lingo")
TABLE = {
    "map50": column("t2i", "AP@50"),
    "ndcg50": column("t2i", "nDCG@50"),
    "mrr": column("t2i", "RR@50", percent=False),
}
TWO_STAGES = {f"top{depth}_{name}": about._replace(depth=depth) for depth in (50, 100) for name, about in TABLE.items()}
FIRST = "Initial ranking (ViT-H/14)"
ANSWERING = frozenset(row["method"] for row in rows("inquire_two_stage") if row["open"])  # a prompt
RAW = "https://raw.githubusercontent.com/inquire-benchmark/INQUIRE/main/data/inquire"
PHOTO_FILES = "https://ml-inat-competition-datasets.s3.amazonaws.com/2024"
MODELS = "https://drive.google.com/drive/folders/1remNGZdc08B7i-Xg3oAaY68fnJ3QXyWm"


def _needed(
    name: str, what: str, size: int | None = None, sha256: str | None = None, split: str | None = None
) -> Needed:
    return Needed(f"{name}|*/{name}|data/inquire/{name}", what, f"{RAW}/{name}", size, sha256, split=split)


QUERIES = {
    "test": _needed(
        "inquire_queries_test.csv",
        "200 queries",
        16_990,
        "06989b5be5a3ef4496fb7d59193bdf1960360920b03035b42cf1a1ada8c7b2db",
        "test",
    ),
    "val": _needed(
        "inquire_queries_val.csv",
        "50 queries",
        4_275,
        "fdd47796521c584891d1a1d01f9b04697e1b386bbcc9b77696bedeaf77780650",
        "val",
    ),
}
ANNOTATIONS = _needed("inquire_annotations.csv", "the relevant photos of each query, about 4 MB")
FOR_A_GALLERY = (
    Needed(
        "train.json|*/train.json",
        "what is known of the photos of iNat24 (438 MB packed), for a gallery: eyespot index train.json",
        f"{PHOTO_FILES}/train.json.tar.gz",
        required=False,
    ),
    Needed("train|*/train", "photos of iNat24 (441 GB), for a gallery", f"{PHOTO_FILES}/train.tar.gz", required=False),
    Needed(
        "embs/*/img_emb|*/embs/*/img_emb|img_emb",
        "released vectors of a model (4 to 8 GB), for a gallery without photos: eyespot import clip-retrieval",
        MODELS,
        required=False,
    ),
)


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """One task; R is all relevant photos of the collection. `ids`: image_id (the default) or image_path."""
    queries, annotations = QUERIES[split].place(data), ANNOTATIONS.place(data)
    judged = inquire.read(queries, annotations, ids or "image_id")
    other = unofficial(QUERIES[split], data)
    verified = () if other else (queries.name,)
    relevant = int((inquire.read_qrels(annotations, ids or "image_id").grade >= 1).sum())
    if abs(relevant - RELEVANT) > CLOSE * RELEVANT:
        text = f"{annotations.name} has {relevant:,} relevant pairs and not the paper's {RELEVANT:,}"
        other.append(Note("judgements", text))
    task = Task.of("t2i", judged, preset("inquire"), by=columns(*BREAKDOWNS), size=PHOTOS)
    return [replace(task, unofficial=other, verified=verified)]


def printed() -> list[Printed]:
    """INQUIRE's tables 2 and 3 and QuARI's tables 2, 3b and 4."""
    return [
        *table("inquire_fullrank", "INQUIRE, table 2", ("training_data", "method"), TABLE),
        *prompted(table("inquire_two_stage", "INQUIRE, table 3", ("method",), TWO_STAGES, FIRST), ANSWERING),
        *table("quari_inquire", "QuARI, table 2", ("model", "backbone", "resolution"), TABLE),
        *table("quari_inquire_rerank", "QuARI, table 3b", ("method",), TABLE, "Initial ranking (CLIP ViT-H-14)"),
        *table("quari_ablation", "QuARI, table 4", ("method",), {f"inquire_{k}": v for k, v in TABLE.items()}),
    ]


def load() -> Benchmark:
    """The benchmark."""
    return Benchmark(
        "inquire-fullrank",
        "INQUIRE-Fullrank",
        "200 test and 50 validation queries of experts over 4.8 million photos (iNat24)",
        HOME,
        "annotations CC BY-NC 4.0; each photo under its own licence",
        CITATION,
        tasks,
        (*QUERIES.values(), ANNOTATIONS, *FOR_A_GALLERY),
        ("test", "val"),
        printed,
        {("test", "t2i"): Official(200, PHOTOS)},
    )
