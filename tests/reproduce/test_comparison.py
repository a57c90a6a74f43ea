"""Our numbers beside the printed ones: a made-up set of the official size is comparable, a smaller one is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyespot import reproduce
from eyespot.benchmarks import Evaluation, benchmark, scored
from eyespot.reports.folder import write
from eyespot.reproduce.comparison import COMPARABLE, TableCell, cells, sample_cells
from eyespot.types import RankedImage, Run
from tests.worlds.benchmarks import official_rerank

pytestmark = pytest.mark.usefixtures("without_figures")

QUERIES, CANDIDATES = 160, 100


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return official_rerank(tmp_path_factory.mktemp("rerank"))


def cells_of(data: Path, work: Path, queries: int, images: int) -> list[TableCell]:
    """The cells of a row of INQUIRE's table 5 after a report on the first queries and images."""
    made = benchmark("inquire-rerank")
    (task,) = made.tasks(data, "test")
    candidates = task.judged.candidates
    assert candidates is not None
    names = list(candidates)[:queries]
    rng = np.random.default_rng(0)
    orders = {name: [hit.image for hit in candidates[name]][:images] for name in names}
    run = Run(
        {name: [RankedImage(one, -at) for at, one in enumerate(rng.permutation(all))] for name, all in orders.items()}
    )
    judged = replace(task.judged, candidates=candidates.only(names)).only(names)
    if images < CANDIDATES:
        judged = replace(judged, candidates=run)
    evaluation = Evaluation(made, "test", "ours", [scored(replace(task, judged=judged), run)], {"eyespot": "0"})
    write(evaluation, work / "reports" / "clip-b-32")
    return [one for one in cells(reproduce.recipe("inquire-5"), work) if one.method == "CLIP ViT-B-32"]


@pytest.mark.long
def test_a_set_of_the_official_size_is_comparable(data: Path, tmp_path: Path) -> None:
    found = cells_of(data, tmp_path, QUERIES, CANDIDATES)

    lingo = [one for one in found if one.what in ("t2i, yes", "t2i, no")]  # the released files have no such column
    of_kind = [one for one in found if one not in lingo]
    assert len(lingo) == 2 and all(one.verdict != COMPARABLE for one in lingo)
    assert len(of_kind) == 4 and {one.verdict for one in of_kind} == {COMPARABLE}
    for one in of_kind:
        assert one.printed is not None and one.measured is not None and one.interval is not None
        assert one.interval[0] <= one.measured <= one.interval[1]


@pytest.mark.long
@pytest.mark.parametrize(("queries", "images"), [(QUERIES - 1, CANDIDATES), (QUERIES, CANDIDATES // 2)])
def test_a_smaller_set_is_not(queries: int, images: int, data: Path, tmp_path: Path) -> None:
    found = cells_of(data, tmp_path, queries, images)

    assert found and COMPARABLE not in {one.verdict for one in found}
    if images < CANDIDATES:  # of another pool: not even shown
        assert all(one.measured is None for one in found)


@pytest.mark.parametrize("name", ["quari-1a", "quari-4", "inquire-3"])
def test_no_two_rows_of_a_miniature_read_alike(name: str, tmp_path: Path) -> None:
    """Reports of one system differ by the list that they rank, or by the depth of the judge."""
    recipe = reproduce.recipe(name)
    for command in recipe.commands(sample=True):
        if not command.report:
            continue
        words = command.line.split()
        given = {one.strip("-"): words[words.index(one) + 1] for one in ("--rerank", "--depth") if one in words}
        task = {"task": "i2i", "measures": {"AP": {"mean": 0.5, "interval": [0.4, 0.6]}}}
        split = words[words.index("--split") + 1] if "--split" in words else "test"
        summary = {"benchmark": words[2], "system": "ours", "split": split, "tasks": [task]}
        summary |= {"made": {"arguments": given}}
        (tmp_path / command.report).mkdir(parents=True)
        (tmp_path / command.report / "summary.json").write_text(json.dumps(summary))

    rows = [cell[:4] for cell in sample_cells(recipe, tmp_path)]

    assert len(rows) == len({*rows}) > 1
