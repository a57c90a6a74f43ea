"""A miniature ILIAS end to end through the command line: every row of QuARI's tables 1, 3a and 4, and both lists.

The numbers are compared with what was planted, and with formulas and an average precision that are written down here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import eyespot
from eyespot.adapters import linear, quari
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


def average_precision(ranking: list[tuple[float, str]], relevant: set[str]) -> float:
    """AP@1000 by its definition, of scores and images: all images of one score come in at once."""
    hits, total = 0, 0.0
    ordered = sorted(ranking[:CUT], key=lambda hit: -hit[0])
    for _, group in groupby(enumerate(ordered, 1), key=lambda hit: hit[1][0]):
        rank, found = 0, 0
        for at, (_, image) in group:
            rank, found = at, found + (image in relevant)
        hits += found
        total += found * hits / rank
    return total / min(CUT, len(relevant))


class Vectors:
    """The ranked pictures of a split in one space, by the names of the benchmark, in double precision."""

    def __init__(self, world: World, split: str, encoder: str) -> None:
        view = eyespot.open(world.gallery, encoder).view
        rows = np.concatenate(view.blocks).astype(np.float64)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        listed = {f"{at:08x}" for at in range(mini_ilias.LISTED if split == "mini" else mini_ilias.DISTRACTORS)}
        self.names, self.queries, taken = [], {}, []
        for at, facts in enumerate(view.facts(list(range(len(rows))))):
            path = str(facts["path"])
            name = "/".join(Path(path).parts[-3:]) if "thing_" in path else Path(path).stem
            if "/query/" in name:
                self.queries[name] = rows[at]
            elif name in listed or "/pos/" in name:
                self.names.append(name)
                taken.append(at)
        self.rows = rows[taken]

    def mean(self, scores_of: Any) -> float:
        """mAP@1000 of the pictures as queries, where scores_of(query) gives a score for each row."""
        found = []
        for query, vector in self.queries.items():
            scores = np.asarray(scores_of(vector))
            ranking = [(float(scores[at]), self.names[at]) for at in np.argsort(-scores, kind="stable").tolist()]
            relevant = {f"{query.partition('/')[0]}/pos/P{at}.jpg" for at in range(2)}
            found.append(average_precision(ranking, relevant))
        return float(np.mean(found))

    def expanded(self, n: int, alpha: float) -> Any:
        def scores(query: Any) -> Any:
            near = self.rows[np.argsort(-(self.rows @ query), kind="stable")[:n]]
            return self.rows @ (query + np.maximum(near @ query, 0) ** alpha @ near)

        return scores

    def static(self, adapter: linear.Linear) -> Any:
        weight, bias = adapter.weight.astype(np.float64), adapter.bias.astype(np.float64)
        seen = self.rows @ weight.T + bias
        seen /= np.linalg.norm(seen, axis=1, keepdims=True)
        return lambda query: seen @ (weight @ query + bias)

    def adapted(self, checkpoint: Path, depth: int | None = None) -> Any:
        """cos(q̂, xW) by the dense matrix; with a depth of the first of the plain search, and the others follow."""
        adapter = quari.load(checkpoint)

        def scores(query: Any) -> Any:
            (view,) = adapter.adapt(query[None].astype(np.float32))
            dense = view.identity * np.eye(len(query)) + view.left.astype(np.float64) @ view.right.T.astype(np.float64)
            seen = self.rows @ dense
            found = seen @ view.query / np.linalg.norm(seen, axis=1)
            if depth is not None:
                behind = np.argsort(-(self.rows @ query), kind="stable")[depth:]
                found[behind] = -2 - np.arange(len(behind))
            return found

        return scores


def task(row: Mapping[str, Any], name: str = "i2i") -> dict[str, Any]:
    return next(found for found in row["tasks"] if found["task"] == name)


def map_of(row: Mapping[str, Any], name: str = "i2i") -> float:
    return float(task(row, name)["measures"]["AP@1000"]["mean"])


def by_name(found: Mapping[str, Any]) -> dict[str, Any]:
    return {row["system"]: row for row in found["rows"]}


def test_every_row_has_its_number_with_interval_and_time(world: World, full: dict[str, Any]) -> None:
    rows = by_name(full)

    assert list(rows) == list(world.rows(world.folder)) and full["failed"] == {}
    for name, row in rows.items():
        local = name in ("CS", "SP", "AMES")
        assert [one["task"] for one in row["tasks"]] == (["i2i"] if local else ["i2i", "t2i"])
        for one in row["tasks"]:
            low, high = one["measures"]["AP@1000"]["interval"]
            assert low <= one["measures"]["AP@1000"]["mean"] <= high and one["seconds"]["search"] > 0
            assert one["queries"] == mini_ilias.OBJECTS
            assert one["pool"] == mini_ilias.DISTRACTORS + 2 * mini_ilias.OBJECTS


def test_the_rankings_score_the_same_by_hand(world: World, full: dict[str, Any]) -> None:
    """Every written ranking, read without eyespot, by the average precision of this file."""
    for name, row in by_name(full).items():
        folder = next(place for place in (world.folder / "full").iterdir() if _is_of(place, name))
        path = next(place for place in (folder / "run-i2i.parquet", folder / "run.parquet") if place.is_file())
        rankings: dict[str, list[tuple[float, str]]] = {}
        for one in pq.read_table(path).to_pylist():
            if one["query"].endswith(".jpg"):
                rankings.setdefault(one["query"], []).append((one["score"], one["image"]))
        values = []
        for query, hits in rankings.items():
            relevant = {f"{query.partition('/')[0]}/pos/P{at}.jpg" for at in range(2)}
            values.append(average_precision(hits, relevant))
        assert len(values) == mini_ilias.OBJECTS and map_of(row) == pytest.approx(np.mean(values), **EXACT), name


def _is_of(folder: Path, name: str) -> bool:
    summary = folder / "summary.json"
    return summary.is_file() and json.loads(summary.read_text())["system"] == name


@pytest.mark.parametrize("split", ["full", "mini"])
def test_rows_of_vectors_are_those_of_their_formulas(world: World, full: dict[str, Any], split: str) -> None:
    lines = {name: line for name, line in world.rows(world.folder / "full").items() if "--r" not in line}
    rows = by_name(full if split == "full" else world.evaluated(split, lines))
    plain, tuned = (Vectors(world, split, encoder) for encoder in (world.space, world.tuned))
    whole = world.folder / "whole" / "model"
    expected = {"frozen": plain.mean(lambda query: plain.rows @ query)}
    expected |= {"fine-tuned": tuned.mean(lambda query: tuned.rows @ query)}
    expected |= {f"QE-{n}": plain.mean(plain.expanded(n, 1.0)) for n in (1, 2, 5)}
    expected |= {"α-QE": plain.mean(plain.expanded(5, 3.0))}
    expected |= {"TA": plain.mean(plain.static(linear.load(world.folder / "ta")))}
    expected |= {"QuARI": plain.mean(plain.adapted(whole)), "QuARI re-ranks": plain.mean(plain.adapted(whole, DEPTH))}
    for name, what in ABLATIONS.items():
        expected[f"QuARI without {what}"] = plain.mean(plain.adapted(world.folder / name / "model"))

    assert {name: map_of(rows[name]) for name in expected} == pytest.approx(expected, **EXACT)
    assert len({round(value, 6) for value in expected.values()}) > len(expected) // 2


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
