"""Measures that ir-measures computes: its values for our runs and qrels, and a sentence where it cannot."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from eyespot.extras import install_line
from eyespot.metrics import OUTSIDE, aligned, evaluate, parse, preset
from eyespot.types import Qrels, Run, UsageError
from tests.lazy_import import lazy_import, requires
from tests.metrics.test_agreement import ranked, world
from tests.pages import ROOT
from tests.wording import raises

ir_measures = lazy_import("ir_measures")
needs_it = requires("ir_measures")
HAND = Qrels({"q 1": {"a b": 1, "b": 0, "c": 0, "d": 1}, "q2": {"a b": 2}})
RUN = Run.from_orders({"q 1": ["b", "a b", "x", "d", "c"], "q2": ["x", "a b"], "odd": ["a b"]})


@needs_it
@pytest.mark.parametrize("ties", [False, True])
def test_values_are_those_of_ir_measures(ties: bool) -> None:
    run, qrels = world(1, ties)
    names = ["Bpref", "infAP", "Bpref(rel=2)", "SetF", "NumRet", "ERR@10"]
    numbered = [{query[1:]: found for query, found in every.items()} for every in (qrels, run)]  # as gdeval wants them
    theirs = {
        (str(found.measure), f"q{found.query_id}"): found.value
        for found in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], *numbered)
    }

    scores = evaluate(ranked(run), Qrels(qrels), names, preset("trec").rules)

    for name, label in zip(names, scores.values, strict=True):
        spelled = str(ir_measures.parse_measure(name))
        expected = [theirs[spelled, query] for query in scores.queries]
        assert scores.values[label].tolist() == pytest.approx(expected, abs=1e-9) and sum(expected) > 0
    assert set(OUTSIDE) <= set(ir_measures.measures.registry)


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
    run = Run.from_rankings({"q": [("a", 1.0), ("b", 1.0)]})
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
