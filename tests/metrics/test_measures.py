"""Measures by hand, laws that hold for all of them, and the numbers of the benchmarks' released evaluators."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from eyespot.extras import install_line
from eyespot.metrics import OUTSIDE, Aligned, aligned, evaluate, names, parse, preset
from eyespot.runs import read_qrels, read_run
from eyespot.types import Qrels, RankedImage, Run, UsageError
from tests.lazy_import import lazy_import, requires
from tests.pages import ROOT
from tests.wording import raises
from tests.worlds.runs import conformance, graded, ranking

CLOSE = 1e-12
NORMS = ("all", "min-k", "retrieved")


def value(spelling: str, rankings: Aligned, norm: str = "all", ties: str = "rank") -> float:
    return float(parse(spelling, norm, ties)(rankings)[0])


def test_one_ranking_three_times_ap() -> None:
    """200 relevant, 30 of them in the first 50: the fixture that shows why a number must name its norm."""
    grades = [1, 1, 1, 0, 0] * 10
    rankings = ranking(grades, relevant=200)
    precisions = [sum(grades[:i]) / i for i in range(1, 51) if grades[i - 1]]

    shown = {norm: value("AP@50", rankings, norm) for norm in NORMS}

    assert sum(grades) == 30
    assert shown == pytest.approx({norm: sum(precisions) / n for norm, n in zip(shown, (200, 50, 30), strict=True)})
    assert {norm: f"{ap:.2f}" for norm, ap in shown.items()} == {"all": "0.10", "min-k": "0.41", "retrieved": "0.68"}


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("AP", (1 / 2 + 2 / 4) / 3),
        ("AP@3", (1 / 2) / 3),
        ("RR", 1 / 2),
        ("RR@1", 0),
        ("R@4", 2 / 3),
        ("Hit@1", 0),
        ("Hit@2", 1),
        ("Success@2", 1),
        ("P@5", 2 / 5),
        ("P@10", 2 / 10),
        ("P", 2 / 5),
        ("Rprec", 1 / 3),
        ("mAP@R", (1 / 2) / 3),
        ("Judged@4", 3 / 4),
        ("Judged@100", 3 / 5),
        ("Oracle@2", 1 / 3),
        ("P(rel=2)@4", 1 / 4),
        ("R(rel=2)@4", 1),
        ("RR(judged_only=True)", 1 / 2),
        ("AP(judged_only=True)", (1 / 2 + 2 / 3) / 3),
        ("nDCG@2", (1 / math.log2(3)) / (2 + 1 / math.log2(3))),
        ("nDCG(dcg='exp-log2')@2", (1 / math.log2(3)) / (3 + 1 / math.log2(3))),
        ("nDCG(gain='binary')@2", (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
    ],
)
def test_by_hand(spelling: str, expected: float) -> None:
    """Grades 0, 1, unjudged, 2, unjudged; one more of grade 1 is not found."""
    assert value(spelling, ranking([0, 1, -1, 2, -1], relevant=3)) == pytest.approx(expected)


def test_equal_scores_by_hand() -> None:
    """Two of equal score at ranks 1 and 2, the second of them relevant, then another relevant one."""
    rankings = ranking([0, 1, 1], scores=[2, 2, 1])

    assert value("AP", rankings, ties="average") == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert value("RR", rankings, ties="average") == pytest.approx((1 + 1 / 2) / 2)
    discounts = [1 / math.log2(rank + 1) for rank in (1, 2, 3)]
    assert value("nDCG", rankings, ties="average") == pytest.approx(
        ((discounts[0] + discounts[1]) / 2 + discounts[2]) / (discounts[0] + discounts[1])
    )
    assert value("RR", rankings) == pytest.approx(1 / 2)
    assert value("RR@3", ranking([0, 0, 1]), ties="average") == pytest.approx(1 / 3)  # exactly at the cut
    assert value("RR@2", ranking([0, 0, 1]), ties="average") == 0
    assert value("RR@3", ranking([0, 0, 1], scores=[2, 1, 1]), ties="average") == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_nothing_ranked_and_nothing_relevant_score_zero() -> None:
    for spelling in (*(f"{name}@3" for name in names() if name not in ("mAP@R", "Rprec")), "mAP@R", "Rprec"):
        for norm, ties in itertools.product(NORMS, ("rank", "average")):
            assert value(spelling, ranking([], relevant=2), norm, ties) == 0
            assert value(spelling, ranking([-1, -1]), norm, ties) == 0


MEASURES = [
    *("AP", "AP@4", "nDCG", "nDCG@4", "nDCG(dcg='exp-log2')@4", "nDCG(gain='binary')@4", "RR", "RR@4", "R@4", "Hit@4"),
    *("Success@4", "P@4", "Rprec", "mAP@R", "Oracle@4", "P(rel=2)@4"),
]


@st.composite
def promotions(draw: st.DrawFn) -> tuple[Aligned, Aligned]:
    """A ranking, and the same after a hit changed places with a better one further down."""
    rankings = draw(graded(top=3))
    grades = rankings.grades.tolist()
    places = itertools.combinations(range(len(grades)), 2)
    better = [(above, below) for above, below in places if grades[below] > max(grades[above], 0)]
    if better:
        above, below = draw(st.sampled_from(better))
        grades[below], grades[above] = grades[above], grades[below]
    return rankings, replace(rankings, grades=np.array(grades))


@given(promotions())
def test_promoting_a_relevant_image_never_lowers(pair: tuple[Aligned, Aligned]) -> None:
    before, after = pair
    for spelling, norm in itertools.product(MEASURES, ("all", "min-k")):
        assert value(spelling, after, norm) >= value(spelling, before, norm) - CLOSE, spelling


@given(graded(top=3, ties=True))
def test_every_value_lies_between_0_and_1(rankings: Aligned) -> None:
    for spelling, norm, ties in itertools.product([*MEASURES, "Judged@4"], NORMS, ("rank", "average")):
        assert -CLOSE <= value(spelling, rankings, norm, ties) <= 1 + CLOSE, spelling


@given(graded(), st.integers(1, 12))
def test_ap_of_norm_min_k_is_1_iff_the_first_of_them_are_relevant(rankings: Aligned, k: int) -> None:
    needed = min(k, int(rankings.relevant[0]))
    first = rankings.grades[:needed]
    perfect = needed > 0 and len(first) == needed and bool((first >= 1).all())

    assert (value(f"AP@{k}", rankings, "min-k") > 1 - 1e-9) == perfect


@given(graded(top=3))
def test_without_equal_scores_ties_do_not_matter(rankings: Aligned) -> None:
    for spelling in ("AP", "AP@4", "nDCG@4", "RR@4", "mAP@R"):
        assert value(spelling, rankings, ties="average") == pytest.approx(value(spelling, rankings), abs=CLOSE)


@given(graded(top=2, ties=True))
@pytest.mark.parametrize("spelling", ["RR", "nDCG"])
def test_average_is_the_mean_over_all_orders_of_equal_scores(spelling: str, rankings: Aligned) -> None:
    assume(len(rankings.grades) <= 6)
    hits = list(zip(rankings.scores.tolist(), rankings.grades.tolist(), strict=True))
    orders = [o for o in itertools.permutations(hits) if [s for s, _ in o] == [s for s, _ in hits]]
    values = [value(spelling, replace(rankings, grades=np.array([grade for _, grade in order]))) for order in orders]

    assert value(spelling, rankings, ties="average") == pytest.approx(float(np.mean(values)))


@pytest.mark.parametrize(
    "spelling",
    [*MEASURES, "AP(norm='min-k', ties='average')@50", "P(rel=2, judged_only=True)@5", "mAP(ties='average')@R"],
)
def test_the_full_spelling_reads_back(spelling: str) -> None:
    assert parse(parse(spelling).full) == parse(spelling)


def test_other_spellings() -> None:
    others = ["MAP", "map", "MRR@10", "Recall@5", "NDCG@3", "ndcg@10", "Precision@1", "MAP@R", "map@r", "RPrec"]
    ours = ["AP", "AP", "RR@10", "R@5", "nDCG@3", "nDCG@10", "P@1", "mAP@R", "mAP@R", "Rprec"]

    assert [parse(one) for one in others] == [parse(one) for one in ours]


@pytest.mark.parametrize(
    "spelling",
    [
        *("Foo@3", "AP@0", "AP@x", "AP(norm='x')", "AP(ties='x')", "P(norm='all')@5", "P(rel=0)@5", "AP(rel)"),
        *("AP(rel=1, rel=2)", "Rprec@5", "", "P(rel='2')@5", "P(judged_only='yes')@5", "nDCG(dcg='x')@5"),
    ],
)
def test_what_is_no_measure(spelling: str) -> None:
    with raises(UsageError):
        parse(spelling)


# -- measures that ir-measures computes ---------------------------------------------------------------------------


ir_measures = lazy_import("ir_measures")
needs_it = requires("ir_measures")
HAND = Qrels({"q 1": {"a b": 1, "b": 0, "c": 0, "d": 1}, "q2": {"a b": 2}})
RUN = Run.from_orders({"q 1": ["b", "a b", "x", "d", "c"], "q2": ["x", "a b"], "odd": ["a b"]})


@needs_it
def test_bpref_and_err_by_hand_over_names_that_no_trec_file_could_hold() -> None:
    """q 1: R = 2, N = 2; one judged other stands before each relevant: (1 − 1/2) twice over 2. q2: nothing before it.

    ERR of one image of grade g at rank r, grades to 4: (2^g − 1) / 16 / r.
    """
    scores = evaluate(RUN, HAND, ["bpref", "ERR@5"])

    assert scores.values["Bpref"].tolist() == pytest.approx([0.5, 1])
    first, second = (1 / 16) / 2, (1 - 1 / 16) * (1 / 16) / 4
    assert scores.values["ERR@5"].tolist() == pytest.approx([first + second, 3 / 16 / 2], abs=1e-5)  # it prints five


@requires("ir_measures", "cwl")
def test_rbp_by_hand() -> None:
    """(1 − p) Σ p^(rank − 1) over the relevant."""
    scores = evaluate(RUN, HAND, ["RBP(p=0.5)"])

    assert scores.values["RBP(p=0.5, rel=1)"].tolist() == pytest.approx([0.5 * (0.5 + 0.5**3), 0.5 * 0.5])


@needs_it
def test_a_prefix_asks_for_another_definition_and_no_measure_is_lost() -> None:
    """Equal scores stand as given in ours, and by descending id in trec_eval's."""
    run = Run({"q": [("a", 1.0), ("b", 1.0)]})
    scores = evaluate(run, Qrels({"q": {"b": 1}}), ["AP", "map", "ir:AP", "pytrec_eval:MAP@10"])

    assert scores.means == {"AP": 0.5, "ir:AP": 1.0, "pytrec_eval:AP@10": 1.0}
    assert "pytrec_eval" in scores.measures["ir:AP"].definition["program"]
    for spelling in ("nobody:AP", "cwl_eval:nDCG", "ir:Foo"):
        with raises(UsageError):
            parse(spelling)


@needs_it
def test_queries_that_the_run_lacks_score_0_like_everywhere() -> None:
    run = Run.from_orders({"q2": ["a b"]})

    assert evaluate(run, HAND, ["Bpref", "RR"]).means == {"Bpref": 0.5, "RR": 0.5}
    assert evaluate(run, HAND, ["Bpref"], preset("trec").rules).queries == ["q2"]


@needs_it
def test_the_definition_names_the_program() -> None:
    bpref, err = parse("BPref(rel=2)"), parse("ERR@5")

    assert (str(bpref), str(err)) == ("Bpref(rel=2)", "ERR@5")
    assert bpref.definition["rel"] == 2 and err.definition["cutoff"] == 5
    programs = f"ir-measures {version('ir-measures')} (pytrec_eval {version('pytrec-eval-terrier')})"
    assert bpref.definition["program"] == programs
    assert err.definition["program"] == f"ir-measures {version('ir-measures')} (gdeval)"


@needs_it
@pytest.mark.parametrize("spelling", ["Bpref@5", "ERR", "ERR@x", "Bpref(rel)", "Foo"])
def test_what_it_cannot_compute_is_refused_before_anything_is_read(spelling: str) -> None:
    with raises(UsageError):
        parse(spelling)


@needs_it
def test_what_its_program_refuses_is_one_sentence() -> None:
    with raises(UsageError):
        evaluate(RUN, Qrels({"q2": {"a b": 9}}), ["ERR@5"])
    with raises(UsageError):  # rankings without names
        evaluate(aligned(RUN, HAND), None, ["Bpref"])


def test_without_the_extra_each_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['ir_measures'] = None\n"
        "from eyespot.metrics import OUTSIDE, parse\n"
        "for name in [*OUTSIDE, 'bpref', 'Foo']:\n"
        "    try: parse(name)\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout

    *known, foo = output.splitlines()
    assert len(known) == len(OUTSIDE) + 1 and "'Foo'" in foo and foo.startswith("UsageError")
    assert all(one.startswith("UsageError") and one.endswith(install_line("ir")) for one in known)


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
