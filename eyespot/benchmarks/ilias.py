"""ILIAS: find the one object of a picture, or of a sentence, among a hundred million photos."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from eyespot.benchmarks._benchmark import Benchmark, Group, ImageList, Needed, Official, Printed, Task
from eyespot.benchmarks._evaluating import group_of
from eyespot.benchmarks._papers import column, table
from eyespot.metrics import Scores, aligned, evaluate, preset
from eyespot.runs import ilias
from eyespot.types import Qrels, Run

HOME = "https://vrg.fel.cvut.cz/ilias/"
FILES = "https://vrg.fel.cvut.cz/ilias_data/image_ids"
EDGES = {
    "scale": (0, 0.06880213760855043, 0.13526567164179104, 0.2729876723163842, math.inf),
    "clutter": (0, 18, 33, 53, math.inf),
}
PHOTOS, MINI = 100_000_000, 5_000_000  # distractors
LISTS = {"mini": ("mini", "mini-ILIAS"), "full": ("all", "ILIAS-100M")}  # by split; "test" ranks the whole gallery
TASKS = {"i2i": "image", "t2i": "text"}
I2I, T2I = column("i2i", "AP@1000", images=PHOTOS), column("t2i", "AP@1000", images=PHOTOS)
T2I_5M = T2I._replace(images=MINI)
OFFICIAL = {
    (split, task): Official(queries, images)
    for split, images in (("mini", MINI), ("full", PHOTOS))
    for task, queries in (("i2i", 1232), ("t2i", 1000))
}
MODEL = ("model", "backbone", "resolution")
ADAPTED = "QuARI, table 1b (task adaptation)"
RERANKED = "QuARI, table 3a (re-ranked, SigLIP)"


@dataclass(frozen=True)
class ByPositives:
    """By a fact of the positives, in groups [low, high): positives outside the group leave the ranking first."""

    name: str
    ordered: ClassVar[bool] = True  # its groups are ranges, which a figure draws in their order

    def __call__(self, run: Run, task: Task, scores: Scores) -> list[Group]:
        """A group for each range; an instance that has no positive in it is passed over."""
        measures = [measure for measure in task.measures if not measure.needs_ids]
        groups, judged = [], task.judged.qrels
        for low, high in pairwise(EDGES[self.name]):
            within = {image for image, facts in task.judged.images.items() if low <= float(facts[self.name]) < high}
            inside, outside = (
                Qrels({q: {i: g for i, g in of.items() if (i in within) == is_in} for q, of in judged.items()})
                for is_in in (True, False)
            )
            found = evaluate(aligned(run, inside, removed=outside), None, measures, task.rules)
            groups.append(group_of(f"{low:.3g} to {high:.3g}" if high < math.inf else f"{low:.3g} and more", found))
        return groups


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """Image→image and text→image; a results file may hold any of the queries.

    The splits `mini` and `full` rank the positives and the distractors of their list, `test` the gallery as it is.
    """
    place = NEEDS[0].place(data).parent
    judged = ilias.read(place)
    by = (ByPositives("scale"), ByPositives("clutter"))
    pictures = list(judged.among("kind", "image").queries)
    listed = None
    if split in LISTS:  # its distractors
        which, title = LISTS[split]
        next(needed for needed in NEEDS if needed.split == split).place(data)
        listed = ImageList(title, lambda: ilias.distractors(place, which))
    task = Task.of("", judged, preset("ilias"), by=by, apart=pictures, listed=listed)
    return [replace(task, name=name, judged=_asking(data, judged, kind)) for name, kind in TASKS.items()]


def _asking(data: Path, judged: Any, kind: str) -> Any:
    """The queries of a kind, with the picture or the text that they ask with, where the core set is there."""
    found = judged.among("kind", kind)
    core = next((place for place in (data / "ilias_core", data) if place.is_dir()), data)
    for query, facts in found.queries.items():
        if kind == "image":
            facts["image"] = query
        elif (core / query).is_file():
            facts["text"] = (core / query).read_text(encoding="utf-8").strip()
    return found


MINI_LIST = Needed(
    "image_ids/mini_ilias_yfcc100m_ids.txt*|mini_ilias_yfcc100m_ids.txt*",
    "the 5 million distractors of mini-ILIAS, which --split mini ranks",
    f"{FILES}/mini_ilias_yfcc100m_ids.txt",
    split="mini",
)
FULL_LIST = Needed(
    "image_ids/distractor_ids.txt*|distractor_ids.txt*",
    "the 100 million distractors, which --split full ranks",
    f"{FILES}/distractor_ids.txt.gz",
    split="full",
)
NEEDS = (
    Needed("image_ids/positive_ids.txt*|positive_ids.txt*", "4,715 positives", f"{FILES}/positive_ids.txt"),
    Needed("image_ids/image_query_ids.txt*|image_query_ids.txt*", "1,232 queries", f"{FILES}/image_query_ids.txt"),
    Needed("image_ids/text_query_ids.txt*|text_query_ids.txt*", "1,000 queries", f"{FILES}/text_query_ids.txt"),
    Needed(
        "ilias_core",
        "the pictures of queries and positives; their checksum stands in checksums.txt there",
        "https://vrg.fel.cvut.cz/ilias_data/ilias_core.tar",
        required=False,
    ),
    MINI_LIST,
    FULL_LIST,
    MINI_LIST._replace(required=False, split="test"),
    FULL_LIST._replace(required=False, split="test"),
)


def printed() -> list[Printed]:
    """QuARI's tables 1a, 1b, 3a and 4, in percent; what was ranked among 5 million photos says so in its source."""
    rows = [
        *table("quari_ilias", "QuARI, table 1a", MODEL, {"i2i_100m": I2I, "t2i_100m": T2I}),
        *table("quari_ilias", "QuARI, table 1a (5 million photos)", MODEL, {"t2i_5m": T2I_5M}),
        *table("quari_ta", ADAPTED, MODEL, {"i2i_100m_ta": I2I}),
        *table("quari_ta", "QuARI, table 1b (QuARI on the same data)", MODEL, {"i2i_100m_quari_on_ta_data": I2I}),
        *table("quari_rerank_i2i", RERANKED, ("method",), {"ilias_map1k": I2I}, "Initial ranking"),
        *table("quari_ablation", "QuARI, table 4", ("method",), {"ilias_i2i_100m": I2I}),
        *table("quari_ablation", "QuARI, table 4 (5 million photos)", ("method",), {"ilias_t2i_5m": T2I_5M}),
    ]
    views = {}  # how ILIAS's authors show pictures to a model (ilias-vrg/ilias, feature_extraction/scripts/models.sh)
    for row in (row for row in rows if row.source == ADAPTED):
        side = {"224": 384, "336": 512, "384": 512, "512": 724}[row.method[-3:]]  # by the side that it was trained on
        views[row] = f"longer side {384 if row.method.startswith('OpenCLIP') else side}, positions interpolated"
    return [row._replace(split="mini" if row.images == MINI else "full", view=views.get(row)) for row in rows]


def load() -> Benchmark:
    """The benchmark."""
    return Benchmark(
        "ilias",
        "ILIAS",
        "1,000 objects, asked for by 1,232 pictures and 1,000 texts, among 100 million photos",
        HOME,
        "captured images CC BY 4.0; those from the internet under their own licences",
        "Kordopatis-Zilos et al.: ILIAS: Instance-Level Image retrieval At Scale. CVPR 2025",
        tasks,
        NEEDS,
        ("test", *LISTS),
        printed,
        OFFICIAL,
    )
