"""Official numbers: what the released evaluators of the benchmarks print, to 1e-9."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot.metrics import aligned, evaluate, parse, preset
from eyespot.runs import read_qrels, read_run
from eyespot.types import Qrels, Run
from tests.worlds.rankings import conformance, ranking

EXACT = {"rel": 0, "abs": 1e-9}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_inquire_s_own_sixty_cases() -> None:
    checked = 0
    for case in read_json(conformance("inquire_metrics.json")):
        rankings = ranking(case["relevance"], case["n_relevant_total"], case["scores"])
        ap, ndcg, rr = (measure(rankings)[0] for measure in _inquire_at(case["k"]))
        precision, recall = (parse(f"{name}@{case['k']}")(rankings)[0] for name in ("P", "R"))

        assert [precision, recall, ap, ndcg] == pytest.approx(
            [case[name] for name in ("precision", "recall", "ap", "ndcg")], **EXACT
        )
        if not case["ties"]:
            assert rr == pytest.approx(case["mrr"], **EXACT)
            checked += 1
    assert checked == 40


def _inquire_at(k: int) -> list[Any]:
    return [parse(f"{measure}@{k}", "min-k", "average") for measure in ("AP", "nDCG(gain='binary')", "RR")]


def test_real_inquire_queries_with_5900_labels() -> None:
    folder = conformance("inquire_rerank_hard")
    expected = read_json(folder / "expected_metrics.json")
    run, qrels = read_run(folder / "run_given_order.txt"), read_qrels(folder / "qrels.txt")
    labels = ["P@50", "R@50", "AP@50", "nDCG@50", "RR@50"]  # in the order of the file

    scores = evaluate(run, qrels, [*preset("inquire").measures, "P@50", "R@50"])

    assert len(scores.queries) == 59
    assert scores.mean("AP@50") == pytest.approx(0.114754, abs=5e-7)
    assert scores.mean("nDCG@50") == pytest.approx(0.292405, abs=5e-7)
    assert scores.mean("RR@50") == pytest.approx(0.338977, abs=5e-7)
    assert [scores.mean(label) for label in labels] == pytest.approx(expected["mean"], **EXACT)
    for query, row in zip(scores.queries, np.column_stack([scores.values[label] for label in labels]), strict=True):
        assert row.tolist() == pytest.approx(expected["per_query"][query], **EXACT)


def test_the_same_run_by_trec_eval() -> None:
    folder = conformance("inquire_rerank_hard")
    expected = read_json(folder / "expected_trec_eval.json")
    run, qrels = read_run(folder / "run_given_order.txt"), read_qrels(folder / "qrels.txt")

    scores = evaluate(run, qrels, [_of_trec(name) for name in expected["mean"]], preset("trec").rules)

    for name, mean in expected["mean"].items():
        assert scores.mean(_of_trec(name)) == pytest.approx(mean, **EXACT)
        values = dict(zip(scores.queries, scores.values[_of_trec(name)], strict=True))
        assert values == pytest.approx({query: row[name] for query, row in expected["per_query"].items()}, **EXACT)


TREC = {"map": "AP", "recip_rank": "RR", "ndcg": "nDCG", "Rprec": "Rprec", "set_P": "P", "set_recall": "R"}
CUT = {"P": "P", "recall": "R", "ndcg_cut": "nDCG", "map_cut": "AP", "success": "Success"}


def _of_trec(name: str) -> str:
    base, _, cutoff = name.rpartition("_")
    return TREC[name] if name in TREC else f"{CUT[base]}@{cutoff}"


def _known(name: str) -> bool:
    return name in TREC or (name.rpartition("_")[0] in CUT and name.rpartition("_")[2].isdigit())


@pytest.mark.parametrize(("output", "at_least"), [("out.test", 12), ("out.test.a", 40), ("out.test.aq", 160)])
def test_trec_eval_s_own_test_to_the_printed_digits(output: str, at_least: int) -> None:
    folder = conformance("trec_eval/test")
    lines = [line.split() for line in (folder / output).read_text().splitlines()]
    wanted = [(name, query, value) for name, query, value in lines if _known(name)]
    measures = list(dict.fromkeys(_of_trec(name) for name, _, _ in wanted))

    scores = evaluate(
        read_run(folder / "results.test", "trec"),
        read_qrels(folder / "qrels.test", "trec"),
        measures,
        preset("trec").rules,
    )

    ours = {
        (label, query): value
        for label in measures
        for query, value in zip(scores.queries, scores.values[label], strict=True)
    }
    ours |= {(label, "all"): mean for label, mean in scores.means.items()}
    assert [f"{ours[_of_trec(name), query]:.4f}" for name, query, _ in wanted] == [value for _, _, value in wanted]
    assert len(wanted) >= at_least


@pytest.mark.long
def test_eccv_caption_cxc_and_coco_5k_both_ways() -> None:
    folder = conformance("eccv_caption")
    expected = read_json(folder / "expected_tfidf_metrics.json")["metrics"]
    official = {"map_at_r": "mAP@R", "rprecision": "Rprec", "r1": "Hit@1", "r5": "Hit@5", "r10": "Hit@10"}
    checked = 0
    runs = {way: _top_100(folder / "tfidf_run.npz", way) for way in ("t2i", "i2t")}
    for way, truth in product(runs, ("eccv", "cxc", "coco")):
        keys = {key: key.partition("_")[2] for key in expected if key.startswith(truth)}
        measures = {key: official[name.removeprefix("5k_")] for key, name in keys.items()}
        qrels = read_qrels(folder / "data", f"{truth}:{way}")
        scores = evaluate(runs[way], qrels, [*measures.values()])
        for key, measure in measures.items():
            assert scores.mean(measure) == pytest.approx(expected[key][way], **EXACT), (key, way)
            checked += 1
    assert checked == 18


def _top_100(path: Path, way: str) -> Run:
    arrays = np.load(path, allow_pickle=False)
    queries = arrays["caption_ids" if way == "t2i" else "image_ids"].tolist()
    orders = arrays[f"{way}_top100"].tolist()
    return Run.from_orders({str(query): list(map(str, best)) for query, best in zip(queries, orders, strict=True)})


def test_circo_s_sample_submission() -> None:
    folder = conformance("circo")
    expected = read_json(folder / "expected_submission_val.json")
    run = read_run(folder / "submission_examples" / "submission_val.json")
    annotations = read_json(folder / "annotations" / "val.json")
    targets = Qrels({str(row["id"]): {str(row["target_img_id"]): 1} for row in annotations})

    of_all = evaluate(run, read_qrels(folder / "annotations" / "val.json"), *preset("circo").scoring)
    of_target = evaluate(run, targets, [f"Hit@{k}" for k in (5, 10, 25, 50)])

    means = {k: [of_all.mean(f"AP@{k}"), of_target.mean(f"Hit@{k}")] for k in ("5", "10", "25", "50")}
    assert means == {k: pytest.approx([expected["mAP"][k], expected["Recall"][k]], **EXACT) for k in means}
    assert [f"{100 * mean:.3f}" for mean, _ in means.values()] == ["0.486", "0.518", "0.540", "0.602"]


def test_circo_by_semantic_aspect() -> None:
    folder = conformance("circo")
    expected = read_json(folder / "expected_submission_val.json")["semantic_mAP@10"]
    annotations = read_json(folder / "annotations" / "val.json")
    aspects = {str(row["id"]): row["semantic_aspects"] for row in annotations}
    run = read_run(folder / "submission_examples" / "submission_val.json")

    scores = evaluate(run, read_qrels(folder / "annotations" / "val.json"), *preset("circo").scoring)

    means = {a: scores.take([a in aspects[query] for query in scores.queries]).mean("AP@10") for a in expected}
    assert means == pytest.approx(expected, **EXACT)


GROUPS = {
    "scale": (0, 0.06880213760855043, 0.13526567164179104, 0.2729876723163842, float("inf")),
    "clutter": (0, 18, 33, 53, float("inf")),
}


@pytest.fixture(scope="module")
def ilias() -> tuple[Run, Qrels, dict[str, Any], Path]:
    folder = conformance("ilias")
    with gzip.open(folder / "similarities.json.gz", "rt", encoding="utf-8") as file:
        similarities = json.load(file)
    ranked = {q: sorted(found.items(), key=lambda hit: -hit[1]) for q, found in similarities.items()}
    from eyespot.runs.ilias import read

    judged = read(folder / "dataset")
    return Run.from_rankings(ranked), judged.qrels, judged.images, folder


@pytest.mark.parametrize("k", [100, 1000])
def test_ilias_means_and_every_query(ilias: tuple[Run, Qrels, dict[str, Any], Path], k: int) -> None:
    run, qrels, _, folder = ilias
    expected = read_json(folder / "expected.json")[str(k)]

    scores = evaluate(run, qrels, [parse(f"AP@{k}", "min-k", "average"), f"Oracle@{k}"], preset("ilias").rules)

    ours = dict(zip(scores.queries, (100 * scores.values[f"AP@{k}"]).tolist(), strict=True))
    assert ours == pytest.approx(dict(zip(expected["queries"], expected["aps"], strict=True)), **EXACT)
    assert 100 * scores.mean(f"AP@{k}") == pytest.approx(expected["map"], **EXACT)
    assert 100 * scores.mean(f"Oracle@{k}") == pytest.approx(expected["oracle"], **EXACT)


@pytest.mark.long
@pytest.mark.parametrize("column", ["scale", "clutter"])
@pytest.mark.parametrize("k", [100, 1000])
def test_ilias_by_scale_and_clutter(ilias: tuple[Run, Qrels, dict[str, Any], Path], column: str, k: int) -> None:
    """Each group's mean, under one of the orders of equal scores across the cut.

    The official evaluation sorts with numpy's unstable sort, so that its number hangs on the processor where equal
    scores stand on both sides of rank k; everywhere else there is one number.
    """
    run, qrels, images, folder = ilias
    expected = read_json(folder / "expected.json")[str(k)][column]
    edges, open_ones = GROUPS[column], 0
    for low, high in pairwise(edges):
        inside, outside = _split(qrels, {image for image, facts in images.items() if low <= facts[column] < high})
        orders = (_scored(_ties_by(run, inside, sign), inside, outside, k) for sign in (-1, 1))
        possible = np.column_stack(list(orders))  # (queries, 2)
        unsure = np.flatnonzero(possible[:, 0] != possible[:, 1])
        means = [
            possible[:, 0].sum() + sum(gains) for gains in product(*((0, np.diff(possible[row])[0]) for row in unsure))
        ]

        assert min(abs(100 * mean / len(possible) - expected[f"{low}-{high}"]) for mean in means) < 1e-9
        assert len(unsure) <= 3
        open_ones += len(unsure)
    assert open_ones == {("scale", 100): 2, ("clutter", 100): 1}.get((column, k), 0)


def _ties_by(run: Run, relevant: Qrels, sign: int) -> Run:
    """The run with the relevant ones first (-1) or last (1) of equal scores."""
    return Run({q: sorted(run[q], key=lambda hit: (-hit.score, sign * (hit.image in relevant[q]))) for q in run})


def _scored(run: Run, inside: Qrels, outside: Qrels, k: int) -> Any:
    scores = evaluate(
        aligned(run, inside, removed=outside), None, [parse(f"AP@{k}", "min-k", "average")], preset("ilias").rules
    )
    return scores.values[f"AP@{k}"]


def _split(qrels: Qrels, group: set[str]) -> tuple[Qrels, Qrels]:
    halves = (
        {q: {i: g for i, g in found.items() if (i in group) == member} for q, found in qrels.items()}
        for member in (True, False)
    )
    inside, outside = halves
    return Qrels(inside), Qrels(outside)


@pytest.mark.parametrize("k", [100, 1000])
def test_ilias_by_category(ilias: tuple[Run, Qrels, dict[str, Any], Path], k: int) -> None:
    run, qrels, _, folder = ilias
    expected = read_json(folder / "expected.json")[str(k)]
    place = {
        instance: (category, f"{category}-{subcategory}")
        for category, parts in read_json(folder / "taxonomy.json").items()
        for subcategory, names in _leaves(parts)
        for instance in names
    }

    scores = evaluate(run, qrels, [parse(f"AP@{k}", "min-k", "average")], preset("ilias").rules)

    of_instance: dict[str, list[float]] = defaultdict(list)
    for query, value in zip(scores.queries, 100 * scores.values[f"AP@{k}"], strict=True):
        of_instance[query.partition("/")[0]].append(float(value))
    for level, name in enumerate(("categories", "subcategories")):
        groups: dict[str, list[float]] = defaultdict(list)
        for instance, values in of_instance.items():
            groups[place[instance][level]].append(float(np.mean(values)))
        means = {group: float(np.mean(values)) for group, values in groups.items()}
        assert means == pytest.approx(expected[name], **EXACT)


def _leaves(parts: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [(name, _names(inside)) for name, inside in parts.items()]


def _names(inside: Any) -> list[str]:
    return inside if isinstance(inside, list) else [name for part in inside.values() for name in _names(part)]
