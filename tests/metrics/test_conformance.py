"""Official numbers: what the released evaluators of the benchmarks print, to 1e-9."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot.metrics import evaluate, parse, preset
from eyespot.runs import read_qrels, read_run
from eyespot.types import Qrels, RankedImage, Run
from tests.lazy_import import lazy_import, requires
from tests.worlds.runs import conformance, ranking

ir_measures = lazy_import("ir_measures")
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


@pytest.fixture(scope="module")
def ilias() -> tuple[Run, Qrels, dict[str, Any], Path]:
    folder = conformance("ilias")
    with gzip.open(folder / "similarities.json.gz", "rt", encoding="utf-8") as file:
        similarities = json.load(file)
    ranked = {q: sorted(found.items(), key=lambda hit: -hit[1]) for q, found in similarities.items()}
    from eyespot.runs.ilias import read

    judged = read(folder / "dataset")
    return Run(ranked), judged.qrels, judged.images, folder


@pytest.mark.parametrize("k", [100, 1000])
def test_ilias_means_and_every_query(ilias: tuple[Run, Qrels, dict[str, Any], Path], k: int) -> None:
    run, qrels, _, folder = ilias
    expected = read_json(folder / "expected.json")[str(k)]

    scores = evaluate(run, qrels, [parse(f"AP@{k}", "min-k", "average"), f"Oracle@{k}"], preset("ilias").rules)

    ours = dict(zip(scores.queries, (100 * scores.values[f"AP@{k}"]).tolist(), strict=True))
    assert ours == pytest.approx(dict(zip(expected["queries"], expected["aps"], strict=True)), **EXACT)
    assert 100 * scores.mean(f"AP@{k}") == pytest.approx(expected["map"], **EXACT)
    assert 100 * scores.mean(f"Oracle@{k}") == pytest.approx(expected["oracle"], **EXACT)


# -- ir-measures (pytrec_eval), wherever its definitions are the same ------------------------------------------------


SHARED = [
    *("AP", "AP@5", "nDCG", "nDCG@5", "nDCG@20", "RR", "R@5", "P@5", "P@50", "Rprec", "Success@3", "P(rel=2)@5"),
    *("AP(rel=2)@5", "R(rel=2)@5", "RR@3", "Judged@5"),
]


def world(seed: int, ties: bool) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """20 queries that rank up to 30 of 60 images, of which some are judged; ids as text, some scores equal."""
    rng = random.Random(seed)
    images = [f"d{number}" for number in range(60)]
    run = {
        f"q{q}": {i: float(rng.randint(0, 6) if ties else rng.random()) for i in rng.sample(images, rng.randint(1, 30))}
        for q in range(20)
    }
    qrels = {
        f"q{q}": {i: rng.choice((0, 0, 0, 1, 2, 3)) for i in rng.sample(images, rng.randint(5, 40))} for q in range(20)
    }
    return run, {query: {**found, "always": 1} for query, found in qrels.items()}


def ranked(scores: dict[str, dict[str, float]]) -> Run:
    return Run(
        {
            query: [RankedImage(*hit) for hit in sorted(found.items(), key=lambda hit: -hit[1])]
            for query, found in scores.items()
        }
    )


@requires("ir_measures", "sklearn")
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_ir_measures(seed: int, ties: bool) -> None:
    run, qrels = world(seed, ties)
    shared = [
        name for name in SHARED if not (ties and name.startswith(("Judged", "RR@")))
    ]  # it sorts ties otherwise there
    theirs = {
        (str(found.measure), found.query_id): found.value
        for found in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in shared], qrels, run)
    }

    scores = evaluate(ranked(run), Qrels(qrels), shared, preset("trec").rules)

    ours = {
        (label, query): value
        for label in scores.values
        for query, value in zip(scores.queries, scores.values[label].tolist(), strict=True)
    }
    assert len(ours) == 20 * len(shared)
    assert ours == pytest.approx(
        {(str(parse(name)), query): value for (name, query), value in theirs.items()}, abs=1e-9
    )
