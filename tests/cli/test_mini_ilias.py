"""A miniature ILIAS end to end through the command line: every row of QuARI's tables 1, 3a and 4, and both lists.

The numbers are compared with what was planted, and with each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests import tiny_models
from tests.cli.conftest import done, run_json
from tests.lazy_import import requires, without
from tests.search.test_local import ranker
from tests.worlds import mini_ilias

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    requires("cv2"),
    requires("torch"),
    requires("transformers"),
    requires("onnx"),
]
ABLATIONS = {"one-step": "iterative generation", "no-semi-positives": "semi-positives", "no-noise": "noise"}
CUT, DEPTH = 1000, 100
EXACT = {"rel": 0, "abs": 1e-9}


class World:
    """The data, a gallery in two spaces with descriptors, and the trained adapters."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.gallery = folder, folder / "ILIAS", folder / "gallery"
        self.data.mkdir()
        mini_ilias.core(self.data)
        mini_ilias.distractors(self.data)
        self.space = f"hf:{tiny_models.hf_clip(folder / 'clip')}"
        self.tuned = f"hf:{folder / 'tuned' / 'model'}"
        self.ames = ranker(folder / "ames.onnx")

    def train(self) -> None:
        """TA, QuARI with its ablations, and a fine-tuned backbone, on pictures of other objects."""
        pairs = self.folder / "train"
        done("index", mini_ilias.training(self.folder / "others"), "-g", pairs, "-e", self.space)
        given = (pairs, "--captions", "caption")
        done("train", "linear", *given, "--out", self.folder / "ta", "--width", 12, "--epochs", 3)
        sizes = ("--rank", 2, "--hidden", 16, "--heads", 2, "--layers", 1, "--batch", 16, "--epochs", 4)
        for name in ("whole", *ABLATIONS):
            more = () if name == "whole" else ("--without", name)
            out = ("--out", self.folder / name, "--held-out-share", 0, "--rate", 0.001, "--keep-anyway")
            done("train", "quari", *given, *out, *sizes, *more)
        tuning = ("--out", self.folder / "tuned", "--blocks", 0, "--epochs", 2, "--batch", 16, "--rate", 0.01)
        done("train", "backbone", *given, *tuning)

    def index(self) -> None:
        done("index", self.data / "ilias_core", self.data / "yfcc100m", "-g", self.gallery, "-e", self.space)
        done("index", "-g", self.gallery, "-e", self.tuned)
        done("describe", "-g", self.gallery)

    def rows(self, out: Path) -> dict[str, str]:
        """The options of every row of the three tables."""
        whole, frozen = self.folder / "whole" / "model", out / "frozen"
        rows = {"frozen": "", "fine-tuned": f"-e {self.tuned}", "TA": f"--adapt linear:{self.folder / 'ta'}"}
        rows |= {f"QE-{n}": f"--neighbours {n}" for n in (1, 2, 5)} | {"α-QE": "--neighbours 5 --alpha 3"}
        rows |= {"CS": "--rerank-local chamfer", "SP": "--rerank-local spatial"}
        rows |= {"AMES": f"--rerank-local onnx:{self.ames}", "QuARI": f"--adapt {whole}"}
        rows |= {"QuARI re-ranks": f"--adapt {whole} --adapt-depth {DEPTH}"}
        runs = f"--run i2i={frozen}/run-i2i.parquet --run t2i={frozen}/run-t2i.parquet"
        rows |= {"QuARI re-ranks a run": f"{runs} --adapt {whole} --adapt-depth {DEPTH}"}
        return rows | {
            f"QuARI without {what}": f"--adapt {self.folder / name}/model" for name, what in ABLATIONS.items()
        }

    def evaluated(self, split: str, rows: Mapping[str, str], *more: object) -> dict[str, Any]:
        line = (word for name, options in rows.items() for word in ("--row", f"{name} = {options}"))
        # Two spaces: the one that is not named with -e is the first
        base = ("--data", self.data, "-g", self.gallery, "-e", self.space, "--split", split)
        with without("matplotlib"):
            found: dict[str, Any] = run_json("eval", "ilias", *base, *line, *more)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("ilias"))
    made.train()
    made.index()
    return made


@pytest.fixture(scope="module")
def full(world: World) -> dict[str, Any]:
    out = world.folder / "full"
    return world.evaluated("full", world.rows(out), "--out", out)


def task(row: Mapping[str, Any], name: str = "i2i") -> dict[str, Any]:
    return next(found for found in row["tasks"] if found["task"] == name)


def map_of(row: Mapping[str, Any], name: str = "i2i") -> float:
    return float(task(row, name)["measures"]["AP@1000"]["mean"])


def by_name(found: Mapping[str, Any]) -> dict[str, Any]:
    return {row["system"]: row for row in found["rows"]}


def test_every_row_has_its_number_with_interval_and_time(world: World, full: dict[str, Any]) -> None:
    rows = by_name(full)

    assert list(rows) == list(world.rows(world.folder)) and full["failed"] == {}
    assert len({map_of(row) for row in rows.values()}) > len(rows) // 2
    assert map_of(rows["fine-tuned"]) != map_of(rows["frozen"])
    for name, row in rows.items():
        local = name in ("CS", "SP", "AMES")
        assert [one["task"] for one in row["tasks"]] == (["i2i"] if local else ["i2i", "t2i"])
        for one in row["tasks"]:
            low, high = one["measures"]["AP@1000"]["interval"]
            assert low <= one["measures"]["AP@1000"]["mean"] <= high and one["seconds"]["search"] > 0
            assert one["queries"] == mini_ilias.OBJECTS
            assert one["pool"] == mini_ilias.DISTRACTORS + 2 * mini_ilias.OBJECTS


def test_a_run_re_ranked_is_the_plain_search_re_ranked(full: dict[str, Any]) -> None:
    rows = by_name(full)

    for name in ("i2i", "t2i"):
        again = map_of(rows["QuARI re-ranks a run"], name)
        assert again == pytest.approx(map_of(rows["QuARI re-ranks"], name), **EXACT)


def test_a_network_that_computes_chamfer_re_ranks_as_chamfer_does(full: dict[str, Any]) -> None:
    rows = by_name(full)

    assert map_of(rows["AMES"]) == pytest.approx(map_of(rows["CS"]), abs=1e-3)
    assert map_of(rows["SP"]) != map_of(rows["frozen"]) != map_of(rows["CS"])


# -- what was planted, and the lists ------------------------------------------------------------------------------


def values(folder: Path, name: str) -> dict[str, float]:
    rows = pq.read_table(folder / "per_query.parquet").to_pylist()
    return {row["query"]: row["AP@1000"] for row in rows if row["task"] == name}


def test_decoys_that_mini_ilias_has_not_count_among_all_distractors_only(world: World, full: dict[str, Any]) -> None:
    """Three copies of the query come first, then its two positives; without the copies these come first."""
    small = by_name(world.evaluated("mini", {"frozen": ""}, "--out", world.folder / "mini"))
    first = "thing_0/query/Q0.jpg"

    assert values(world.folder / "full" / "frozen", "i2i")[first] == pytest.approx((1 / 4 + 2 / 5) / 2)
    assert values(world.folder / "mini" / "frozen", "i2i")[first] == 1
    assert task(small["frozen"])["pool"] == mini_ilias.LISTED + 2 * mini_ilias.OBJECTS
