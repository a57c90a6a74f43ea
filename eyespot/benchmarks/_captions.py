"""Captions and images, scored both ways: what the four caption benchmarks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from eyespot.benchmarks._benchmark import Benchmark, Breakdown, Needed, Official, Printed, Task
from eyespot.benchmarks._evaluating import columns
from eyespot.benchmarks._papers import column, printed, rows
from eyespot.metrics import Preset, preset
from eyespot.runs import karpathy
from eyespot.runs.judged import JudgedQueries
from eyespot.storage.text_files import toml_of

BY = columns("subtask")
COCO = "Lin et al.: Microsoft COCO: Common Objects in Context. ECCV 2014"


def both_ways(captions: karpathy.KarpathyCaptions, scoring: Preset, by: tuple[Breakdown, ...] = ()) -> list[Task]:
    """Image→text and text→image, each ranking all of the other side."""
    ways = {"i2t": karpathy.image_to_text(captions), "t2i": karpathy.text_to_image(captions)}
    return [one_way(way, judged, scoring, by) for way, judged in ways.items()]


def one_way(way: str, judged: JudgedQueries, scoring: Preset, by: tuple[Breakdown, ...] = ()) -> Task:
    """One direction; the images (or captions) that the files name are the pool."""
    return Task.of(way, judged, scoring, by=by, pool=judged.images, size=len(judged.images), way=way)


def caption_tasks(needs: Sequence[Needed], scoring: str, data: Path, split: str, ids: str | None = None) -> list[Task]:
    """The tasks of a split JSON, or of FG captions; a list of images beside these widens the pool of text→image."""
    captions, *pools = needs
    i2t, t2i = both_ways(karpathy.read(captions.place(data), split), preset(scoring))
    listed = pools[0].find(data) if pools else None
    if listed is None:
        return [i2t, t2i]
    wider = t2i.pool | {image: {"path": image} for image in karpathy.images_of(listed)}
    return [i2t, replace(t2i, pool=wider, size=len(wider))]


def table_2(benchmark: str) -> list[Printed]:
    """What ReCoS prints of a benchmark in its table 2: Recall@K in both directions."""
    printeds: list[Printed] = []
    for row in rows("recos_table2"):
        about = column(row["direction"], f"Hit@{row['k']}")
        methods = row.items() if row["benchmark"] == benchmark else ()
        for method, value in methods:
            if method not in ("direction", "benchmark", "k") and value:
                printeds.append(printed(f"ReCoS, table 2 ({benchmark})", method, about, float(value)))
    return printeds


def caption_benchmark(name: str) -> Benchmark:
    """A benchmark of a split JSON, or of FG captions with the list of the images to rank besides."""
    about = toml_of(Path(__file__).with_name("captions.toml"))[name]
    needs, found = [Needed(**one) for one in about["needs"]], official("test", about["images"])
    if len(needs) > 1:  # nobody prints how many images there are besides
        found["test", "t2i"] = found["test", "t2i"]._replace(images=None)
    tasks, printed = partial(caption_tasks, needs, about["scoring"]), partial(table_2, about["printed"])
    splits = ("test",) if len(needs) > 1 else ("test", "val")
    texts = {part: about[part] for part in ("title", "about", "home", "licence", "citation")}
    return Benchmark(name, **texts, tasks=tasks, needs=needs, splits=splits, printed=printed, official=found)


def official(split: str, images: int) -> dict[tuple[str, str], Official]:
    """Both ways between `images` images and their captions, five of each."""
    captions = karpathy.CAPTIONS * images
    return {(split, "i2t"): Official(images, captions), (split, "t2i"): Official(captions, images)}
