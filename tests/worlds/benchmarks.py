"""Tiny benchmarks in their official layouts, rankings of them, and evaluations that can be checked by hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eyespot.benchmarks import Benchmark, ByColumn, Evaluation, Printed, Task, benchmark, scored
from eyespot.metrics import parse
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, Run

SHARED = Path(__file__).resolve().parents[3] / "shared"


def tasks_of(name: str, data: Path, split: str | None = None, **options: Any) -> dict[str, Task]:
    """The tasks of a benchmark by their names."""
    found = benchmark(name)
    return {task.name: task for task in found.tasks(data, split or found.splits[0], **options)}


def table(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A csv file of these rows."""
    listed = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)
    return path


def own_set(folder: Path, queries: list[dict[str, str]], truth: Mapping[str, list[str]]) -> Path:
    """A benchmark of one's own: its queries, and the images that are relevant to each."""
    table(folder / "queries.csv", queries)
    write(folder / "qrels.json", truth)
    return folder


def write(path: Path, found: Any) -> Path:
    """A JSON file, or the lines of a text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found if isinstance(found, str) else json.dumps(found), encoding="utf-8")
    return path


def matrix(path: Path, queries: list[Any], images: list[Any], scores: list[list[float]]) -> Path:
    """A similarity matrix (queries, images)."""
    np.savez(path, queries=np.array(queries), images=np.array(images), scores=np.array(scores))
    return path


def orders(**rankings: str) -> Run:
    """A run of images whose names are letters: orders(q1="ab") ranks a before b."""
    return Run.from_orders({query: list(images) for query, images in rankings.items()})


INQUIRE = [  # relevant: q1 a b, q2 c, q3 d e f
    ("q1", "a heron", "Behavior", "Feeding", "Birds"),
    ("q2", "a wasp", "behavior", "Feeding", ""),
    ("q3", "a moss", "Species", "Combo", ""),
]


def inquire(data: Path) -> Path:
    """Three queries of the test split, with six relevant photos."""
    names = ("query_id", "query_text", "supercategory", "category", "iconic_group")
    rows = [{"": at, **dict(zip(names, row, strict=True))} for at, row in enumerate(INQUIRE)]
    table(data / "inquire_queries_test.csv", rows)
    pairs = [("q1", "a"), ("q1", "b"), ("q2", "c"), ("q3", "d"), ("q3", "e"), ("q3", "f")]
    notes = [{"query_id": q, "image_id": i, "image_path": f"train/x/{i}.jpg"} for q, i in pairs]
    table(data / "inquire_annotations.csv", notes)
    return data


def inquire_rerank(data: Path, name: str = "test-00000-of-00001.parquet", queries: str = "PQ") -> Path:
    """Queries with four candidates each, as on the hub; relevant are the second one, and for Q the last one too."""
    rows = [
        {
            "query": query,
            "relevant": int(at == 1 or (query == "Q" and at == 3)),
            "clip_score": 0.9 - at / 10,
            "inat24_image_id": number,
            "inat24_file_name": f"train/x/{number}.jpg",
            "supercategory": "Species",
            "category": "Life",
            "iconic_group": "Birds",
        }
        for query in queries
        for at, number in enumerate(range(10 * ord(query), 10 * ord(query) + 4))
    ]
    (data / "data").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), data / "data" / name)
    return data


def official_rerank(data: Path, candidates: int = 100) -> Path:
    """INQUIRE-Rerank in its official layout and size, 160 queries in four groups, with made-up words and images."""
    groups = ("Appearance", "Behavior", "Context", "Species")
    rows = [
        {
            "query": f"bird number {query}",
            "relevant": int(at % 10 == query % 10),
            "clip_score": 1 - at / candidates,
            "inat24_image_id": f"{query}-{at}",
            "inat24_file_name": f"train/{query}-{at}.jpg",
            "supercategory": groups[query % 4],
            "category": "Things",
            "iconic_group": "Birds",
        }
        for query in range(160)
        for at in range(candidates)
    ]
    (data / "data").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), data / "data" / "test-00000-of-00001.parquet")
    return data


def ilias(data: Path) -> Path:
    """Two objects, three pictures and two texts that ask for them, and three positives."""
    write(data / "image_ids/image_query_ids.txt", "o1/query/Q0.jpg,1\no1/query/Q1.jpg,1\no2/query/Q0.jpg,1\n")
    write(data / "image_ids/text_query_ids.txt", "o1/query/T.txt\no2/query/T.txt\n")
    positives = ["o1/pos/P0.jpg,0.05,10", "o1/pos/P1.jpg,0.5,40", "o2/pos/P0.jpg,0.5,60"]
    write(data / "image_ids/positive_ids.txt", "\n".join(positives))
    return data


def karpathy(data: Path, name: str = "dataset_coco.json", ids: bool = True, count: int = 3) -> Path:
    """`count` images of the test split with five captions each, one of the validation split; numbers coincide."""
    images = []
    for image in range(count + 1):
        sentences = [{"sentid": 5 * image + at, "raw": f"caption {at} of {image}"} for at in range(5)]
        known = {"cocoid": image} if ids else {}
        split = "val" if image == count else "test"
        facts = {"filename": f"COCO_{image:012}.jpg", "filepath": "val2014", "imgid": image, "split": split}
        images.append({**facts, **known, "sentences": sentences})
    write(data / name, {"images": images, "dataset": "coco"})
    return data


def fine_grained(data: Path, name: str = "MSCOCO_FG_ann.json") -> Path:
    """Two images with five captions each."""
    write(data / name, {image: [f"caption {at} of {image}" for at in range(5)] for image in ("one", "two")})
    return data


def circo(data: Path) -> Path:
    """Two queries of the validation split and two of the test split."""
    asking = {"shared_concept": "a dog", "relative_caption": "is black"}
    aspects = [["addition", "negation"], ["Addition", "addition"]]
    rows = [
        {**asking, "id": at, "reference_img_id": 100 + at, "target_img_id": 200 + at, "gt_img_ids": [200 + at, 300]}
        for at in range(2)
    ]
    write(data / "annotations/val.json", [{**row, "semantic_aspects": aspects[row["id"]]} for row in rows])
    write(data / "annotations/test.json", [{**asking, "id": at, "reference_img_id": 100 + at} for at in range(2)])
    return data


def rmir(data: Path) -> Path:
    """Three functional queries, one temporal and one of the training split; pool a to f."""
    kinds = {"q1": "functional", "q2": "functional", "q3": "functional", "q4": "temporal", "q5": "causal"}
    lines = [
        {"id": q, "image": "f", "question": "why?", "kind": kind, "split": "train" if q == "q5" else "test"}
        for q, kind in kinds.items()
    ]
    write(data / "queries.jsonl", "\n".join(map(json.dumps, lines)))
    relevant = {"q1": "ab", "q2": "a", "q3": "c", "q4": "d", "q5": "e"}
    pairs = [{"query": q, "image": image} for q, images in relevant.items() for image in images]
    write(data / "qrels.jsonl", "\n".join(map(json.dumps, pairs)))
    write(data / "pool.jsonl", "\n".join(json.dumps({"image": image}) for image in "abcdef"))
    return data


def recos(data: Path) -> Path:
    """Image a of v0, b of v1 and c of v2; a and b have a caption each."""
    images = [("a", "colour", "v0"), ("b", "count", "v1"), ("c", "count", "v2")]
    table(data / "images.csv", [dict(zip(("image", "subtask", "version"), row, strict=True)) for row in images])
    table(data / "captions.csv", [{"id": f"t{image}", "image": image, "text": f"about {image}"} for image in "ab"])
    return data


def eccv(data: Path) -> Path:
    """Captions 1, 2, 3 of images 1, 2, 3: the numbers coincide; image 2 fits caption 1 too, which COCO does not say."""
    own = {str(at): [at] for at in (1, 2, 3)}
    more = {**own, "1": [1, 2]}
    for truth, pairs in (("original", own), ("cxc", own), ("eccv", more)):
        write(data / f"{truth}_caption_to_image.json", pairs)
    for truth in ("original", "cxc", "eccv"):
        write(data / f"{truth}_image_to_caption.json", own)
    np.save(data / "coco_test_ids.npy", np.array([1, 2, 3]))
    return data


def own(data: Path) -> Path:
    """Four queries in two groups, images a to d."""
    rows = [("q1", "x", "low"), ("q2", "y", "low"), ("q3", "z", "high"), ("q4", "w", "high")]
    table(data / "queries.csv", [dict(zip(("id", "text", "place"), row, strict=True)) for row in rows])
    write(data / "qrels.txt", "q1 0 a 1\nq1 0 b 0\nq2 0 b 1\nq3 0 c 1\n")
    return data


PAPER = "Heron, table 2"
# ranks of the one relevant image of q1 … q4: RR is 1, 1/2, 1/4, 0 and Hit@1 is 1, 0, 0, 0
GOOD = {"q1": "abcd", "q2": "bacd", "q3": "bcda", "q4": "bcd"}
POOR = {"q1": "bacd", "q2": "bcda", "q3": "bcda", "q4": "bcd"}
KINDS = {"q1": "functional", "q2": "functional", "q3": "causal", "q4": "functional"}
PRINTED = (
    Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.342),
    Printed(PAPER, "CLIP", "t2i", "RR", 0.47, percent=False),
    Printed(PAPER, "BLIP", "t2i", "Hit@1", 0.2),
)


def task(name: str = "t2i", column: str = "category", size: int | None = None) -> Task:
    """Four queries, each with the relevant image `a`; a column that breaks them down."""
    queries = {query: {"text": f"find {query}", column: kind} for query, kind in KINDS.items()}
    judged = JudgedQueries(queries, Qrels({query: {"a": 1} for query in queries}))
    return Task(name, judged, [parse("Hit@1"), parse("RR")], by=(ByColumn(column),), size=size)


def evaluation(
    orders: dict[str, str] | None = None,
    system: str = "ours",
    printed: Sequence[Printed] = PRINTED,
    tasks: Sequence[Task] | None = None,
    made: dict[str, object] | None = None,
) -> Evaluation:
    """A system's rankings of a benchmark that papers print numbers of."""
    run = Run.from_orders({query: list(images) for query, images in (orders or GOOD).items()})
    results = [scored(one, run) for one in (tasks if tasks is not None else [task()])]
    return Evaluation(heron(printed), "test", system, results, made or {"eyespot": "0"})


def heron(printed: Sequence[Printed] = PRINTED) -> Benchmark:
    return Benchmark("heron", "Heron", "birds", "", "CC0", "Nobody", lambda *_: [], printed=lambda: list(printed))


def timed(made: Evaluation, seconds: float) -> Evaluation:
    """The same evaluation, by a system that took so long for each query."""
    for result in made.results:
        result.run.header["seconds"] = {"search": seconds}
    return made
