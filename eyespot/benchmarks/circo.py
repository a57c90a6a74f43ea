"""CIRCO: a picture and a sentence on how the wanted one differs, with all pictures that fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath

from eyespot.benchmarks._benchmark import Benchmark, Needed, Task
from eyespot.benchmarks._evaluating import columns
from eyespot.metrics import parse, preset
from eyespot.runs import circo
from eyespot.types import Qrels

HOME = "https://github.com/miccunifi/CIRCO"
PHOTOS = 123_403  # COCO 2017 unlabeled
CUTS = (5, 10, 25, 50)
ANNOTATIONS = {
    "val": Needed(
        "annotations/val.json|val.json|*/annotations/val.json",
        "220 queries with their truths",
        f"{HOME}/tree/main/annotations",
        111_978,
        "6b31a1dbc3c85627501d9a250f87708f24a27d74d6a65360b6ddd2537a154d04",
        split="val",
    ),
    "test": Needed(
        "annotations/test.json|test.json|*/annotations/test.json",
        "800 queries; their truths are with CIRCO's server (--out writes what to send)",
        f"{HOME}/tree/main/annotations",
        167_660,
        "2f7c37e89220c990b6b0525d6f3ed63d3fc02e03ce336aa42a3b822841b14886",
        split="test",
    ),
}
IMAGES = Needed(
    "COCO2017_unlabeled/unlabeled2017|unlabeled2017",
    "the 123,403 photos (19 GB), for a gallery",
    "http://images.cocodataset.org/zips/unlabeled2017.zip",
    required=False,
)


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """All truths (mAP@K), and the target alone, where what CIRCO calls Recall@K is Hit@K."""
    read = circo.read(ANNOTATIONS[split].place(data))
    asking = (str(facts["image"]) for facts in read.queries.values() if facts.get("image"))
    target_images = list(dict.fromkeys([*read.qrels.images.tolist(), *asking]))
    judged = replace(read, images={image: {"path": f"unlabeled2017/{image:0>12}.jpg"} for image in target_images})
    by = columns("semantic_aspects")
    every = Task.of("it2i", judged, preset("circo"), by=by, size=PHOTOS, composed=True, called=number_of)
    targets = {query: facts.get("target") for query, facts in judged.queries.items()}
    if not any(targets.values()):
        return [every]
    qrels = Qrels({query: {str(target): 1} for query, target in targets.items() if target}, judged.qrels.header)
    hits = tuple(parse(f"Hit@{k}") for k in CUTS)
    return [every, replace(every, name="target", judged=replace(judged, qrels=qrels), measures=hits, by=())]


def number_of(path: str) -> str | None:
    """COCO's number of a photo, which is its name: 000000243611.jpg is 243611."""
    name = PurePath(path).stem
    return str(int(name)) if name.isascii() and name.isdigit() else None


def load() -> Benchmark:
    """The benchmark."""
    return Benchmark(
        "circo",
        "CIRCO",
        "a picture and how the wanted one differs; 220 validation and 800 test queries over 123,403 photos",
        HOME,
        "CC BY-NC 4.0",
        "Baldrati, Agnolucci, Bertini, Del Bimbo: Zero-Shot Composed Image Retrieval with Textual Inversion. ICCV 2023",
        tasks,
        (*ANNOTATIONS.values(), IMAGES),
        ("val", "test"),
        submission="circo",
    )
