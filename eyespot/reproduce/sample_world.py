"""Miniatures of the benchmarks in their official layouts, made of eyespot's sample photos: every command can be tried.

The queries are made up: "a windmill" for the photos of windmills. Nothing here is a number of a paper.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eyespot import sample
from eyespot.storage.atomic import make_folder, whole_folder
from eyespot.storage.tables import write_csv
from eyespot.types import UsageError

KINDS = {
    "fish": "a fish",
    "windmill": "a windmill",
    "hammer": "a hammer",
    "solar": "a solar panel",
    "measuringTape": "a measuring tape",
    "dam": "a dam",
}
EACH = 5
SUPERCATEGORIES = ("Appearance", "Behavior", "Context", "Species")
REASONING = ("functional", "temporal", "causal")
DATA, MARK = "data", "made-by-sample.txt"


def make_world(name: str, work: Path) -> None:
    """The data of a miniature below `work/data`, whole or not there; left as it is if it is there.

    `UsageError` if other data are there: those of a table, or of another miniature.
    """
    if name not in WORLDS:
        raise UsageError(f"no miniature {name!r}; there are: {', '.join(WORLDS)}")
    make_folder(work)
    if (work / DATA).exists():
        if _world_in(work) != name:
            raise UsageError(f"{work / DATA} holds other data than this miniature; choose another folder with --work")
        return
    with whole_folder(work / DATA) as data:
        make_folder(data / "photos")
        captions = [(photo, text) for kind, text in KINDS.items() for photo in photos_of(kind)]
        for photo, _ in captions:
            shutil.copy(sample.photos() / photo, data / "photos" / photo)
        write_csv(data / "photos" / "metadata.csv", [("file_name", "caption"), *captions])
        for make in WORLDS[name]:
            make(data)
        (data / MARK).write_text(name + "\n", encoding="utf-8")


def refuse_sample(work: Path) -> None:
    """`UsageError` for a folder with the made-up data of a miniature, which a table must not take for its own."""
    if _world_in(work) is not None:
        raise UsageError(f"{work} holds a miniature, whose data are made up; choose another folder with --work")


def _world_in(work: Path) -> str | None:
    mark = work / DATA / MARK
    return mark.read_text(encoding="utf-8").strip() if mark.is_file() else None


def photos_of(kind: str) -> list[str]:
    """The file names of a kind, in their order."""
    return sorted(path.name for path in sample.photos().glob(f"categorization__{kind}*.jpg"))[:EACH]


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _inquire(data: Path) -> None:
    """A query for each kind, whose relevant photos are those of the kind."""
    names = ("", "query_id", "query_text", "supercategory", "category", "iconic_group")
    rows = [(at, at, text, SUPERCATEGORIES[at % 4], "Things", "Sample") for at, text in enumerate(KINDS.values())]
    write_csv(data / "inquire_queries_test.csv", [names, *rows])
    relevant = [(at, Path(name).stem, f"photos/{name}") for at, kind in enumerate(KINDS) for name in photos_of(kind)]
    write_csv(data / "inquire_annotations.csv", [("query_id", "image_id", "image_path"), *relevant])


def _inquire_rerank(data: Path) -> None:
    """For each query all photos of its kind and of the next one as candidates, in turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds, rows = list(KINDS), []
    for at, kind in enumerate(kinds):
        other = kinds[(at + 1) % len(kinds)]
        for place, name in enumerate(sorted([*photos_of(kind), *photos_of(other)], key=lambda one: one[::-1])):
            rows.append(
                {
                    "query": KINDS[kind],
                    "relevant": int(name in photos_of(kind)),
                    "clip_score": 1 - place / 100,
                    "inat24_image_id": Path(name).stem,
                    "inat24_file_name": f"photos/{name}",
                    "supercategory": SUPERCATEGORIES[at % 4],
                    "category": "Things",
                    "iconic_group": "Sample",
                }
            )
    make_folder(data / "data")
    pq.write_table(pa.Table.from_pylist(rows), data / "data" / "test-00000-of-00001.parquet")
    shutil.copytree(data / "photos", data / "pictures")


def _ilias(data: Path) -> None:
    """Each kind as an object: the first photo and its text ask, the others are positives; the rest are distractors."""
    objects = list(KINDS)[:4]
    lists: dict[str, list[str]] = {"image_query": [], "text_query": [], "positive": []}
    for kind in objects:
        first, *others = photos_of(kind)
        places = [(f"{kind}/query/Q0.jpg", first), *((f"{kind}/pos/P{at}.jpg", name) for at, name in enumerate(others))]
        for place, name in places:
            make_folder((data / "ilias_core" / place).parent)
            shutil.copy(data / "photos" / name, data / "ilias_core" / place)
        (data / "ilias_core" / kind / "query" / "T.txt").write_text(KINDS[kind], encoding="utf-8")
        lists["image_query"].append(f"{kind}/query/Q0.jpg,1")
        lists["text_query"].append(f"{kind}/query/T.txt")
        lists["positive"] += [f"{place},0.1,{20 * at}" for at, (place, _) in enumerate(places[1:])]
    make_folder(data / "image_ids")
    for name, lines in lists.items():
        (data / "image_ids" / f"{name}_ids.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for kind in KINDS:  # a folder for each, to train on labels
        make_folder(data / "labelled" / kind)
        for name in photos_of(kind):
            shutil.copy(data / "photos" / name, data / "labelled" / kind / name)
    make_folder(data / "distractors")
    apart = [name for kind in KINDS if kind not in objects for name in photos_of(kind)]
    for name in apart:
        shutil.copy(data / "photos" / name, data / "distractors" / name)
    for name, listed in (("distractor", apart), ("mini_ilias_yfcc100m", apart[::2])):
        (data / "image_ids" / f"{name}_ids.txt").write_text("\n".join(listed) + "\n", encoding="utf-8")


def _rmir(data: Path) -> None:
    """A question about the first photo of each kind, answered by the others."""
    queries, relevant = [], []
    for at, (kind, text) in enumerate(KINDS.items()):
        first, *others = photos_of(kind)
        query = {"id": f"q{at}", "image": first, "question": f"where else is {text}?"}
        queries.append({**query, "kind": REASONING[at % 3], "split": "test"})
        relevant += [{"query": f"q{at}", "image": name} for name in others]
    _lines(data / "queries.jsonl", queries)
    _lines(data / "qrels.jsonl", relevant)
    _lines(data / "pool.jsonl", [{"image": name} for kind in KINDS for name in photos_of(kind)])


def _recos(data: Path) -> None:
    """ReCoS in our layout, and two splits in Karpathy's with their fine-grained captions; captions are made up."""
    versions = ("v0", "v0", "v1", "v1", "v2")
    images = [(name, "object", versions[at]) for kind in KINDS for at, name in enumerate(photos_of(kind))]
    captions = [
        (f"{name}-{at}", name, f"{text} {more}")
        for kind, text in KINDS.items()
        for name in photos_of(kind)[:4]
        for at, more in enumerate(("in a photo", "seen from afar"))
    ]
    write_csv(data / "images.csv", [("image", "subtask", "version"), *images])
    write_csv(data / "captions.csv", [("id", "image", "text"), *captions])
    first = [(photos_of(kind)[0], text) for kind, text in KINDS.items()]
    listed = [
        {
            **{"filename": name, "filepath": "photos", "imgid": number, "cocoid": number, "split": "test"},
            "sentences": [{"sentid": 5 * number + at, "raw": f"{text}, {at} of 5"} for at in range(5)],
        }
        for number, (name, text) in enumerate(first)
    ]
    for file in ("dataset_coco.json", "dataset_flickr30k.json"):
        (data / file).write_text(json.dumps({"images": listed, "dataset": "sample"}), encoding="utf-8")
    fine = {Path(name).stem: [f"{text}, {at} of 5" for at in range(5)] for name, text in first}
    for file in ("MSCOCO_FG_ann.json", "Flickr30K_FG.json"):
        (data / file).write_text(json.dumps(fine), encoding="utf-8")


WORLDS: Mapping[str, Sequence[Callable[[Path], None]]] = {
    "inquire": [_inquire],
    "inquire-rerank": [_inquire_rerank],
    "ilias": [_ilias],
    "inquire-and-ilias": [_inquire, _ilias],
    "rmir": [_rmir],
    "recos": [_recos],
}
