"""The checks that open the card: nonsense comes out red, and what a person decided stands there."""

from __future__ import annotations

import random
import re
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from eyespot.benchmarks._fitting import fitted
from eyespot.benchmarks.rmir import tasks
from eyespot.curate.rmir.audit import (
    LAST,
    PANEL,
    VERDICTS,
    AuditAgreement,
    Sealed,
    agreed,
    compared,
    read_panel,
    said_in,
    welch,
)
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.making import card_content, write_set
from eyespot.curate.rmir.panel import (
    SHARED_TARGET,
    SplitSettings,
    confidence,
    negativeness,
    reliability,
    settle_votes,
    split,
)
from eyespot.curate.rmir.quality import (
    Shortcut,
    control_check,
    effective_judges,
    panel_checks,
    shortcut_check,
    shortcuts,
    unjudged_check,
    validity_check,
)
from eyespot.pipelines import Context, Record, Records
from eyespot.pipelines.data_card import QualityCheck, wilson
from eyespot.pipelines.data_card.content import worst
from eyespot.pipelines.human_review import Queue
from eyespot.pipelines.outcomes import line_of
from eyespot.runs import rmir
from eyespot.types import RankedImage, Run, UsageError, no_progress
from tests.wording import raises
from tests.worlds import disagreeing

SEATS = ["a", "b", "c", "d", "e"]


def triplets(queries: int, random: bool, alone: bool) -> list[Record]:
    """Ten hits of each query; `random` verdicts ignore their places, `alone` each judge has its own."""
    chance = Random(5)
    found: list[Record] = []
    for query in range(queries):
        for place in range(10):
            share = 0.3 if random else 0.9 - 0.09 * place
            common = chance.random() < share
            verdicts = [chance.random() < share if alone else common ^ (chance.random() < 0.03) for _ in SEATS]
            votes = [
                {"judge": seat, "verdict": "true" if yes else "false"}
                for seat, yes in zip(SEATS, verdicts, strict=True)
            ]
            found.append({"id": f"{query}/{place}", "query": str(query), "votes": votes})
    return found


def levels(found: list[Record]) -> list[str]:
    """Of the agreement of a panel, and of controls, on which it votes as it does on the last hits."""
    controls = [one for one in found if one["id"].endswith("/9")]
    checks = [*panel_checks(found, SEATS), control_check(controls, found, len(SEATS))]
    return [check.level for check in checks if check.what != "Effective number of judges"]


@pytest.mark.parametrize(
    ("random", "alone", "found"),
    [(True, True, ["red", "red"]), (True, False, ["green", "red"]), (False, False, ["green", "green"])],
)
def test_judges_that_agree_at_random_are_red(random: bool, alone: bool, found: list[str]) -> None:
    """Also where they agree with each other, as one model that sits five times does."""
    assert levels(triplets(150, random, alone)) == found


@pytest.mark.parametrize(
    ("votes", "count"),
    [
        (["tttft", "tftff", "ffftf"], None),
        (["ttttf", "fffft", "ttttf"], 2),  # four that never differ, and one
        (["ttttt", "fffff"], 1),  # nothing tells them apart
        (["ftttt", "tfttt", "ttftt", "tttft", "ttttf"], 5),
        (["ffttt", "ttfff", "tttft", "ffftf", "ttttf"], 4),  # two that err together
    ],
)
def test_effective_number_of_judges(votes: list[str], count: int | None) -> None:
    given = [dict(zip(SEATS, line, strict=True)) for line in votes]
    found = effective_judges(given, SEATS)
    assert 1 <= found <= 5 and (count is None or found == pytest.approx(count))


@pytest.mark.parametrize(("common", "level", "few"), [(0.1, "red", True), (0.02, "amber", True), (0.0, "green", False)])
def test_errors_that_all_judges_share_show_on_controls(common: float, level: str, few: bool) -> None:
    """A tenth of the candidates answers. All judges err on the same tenth, each alone, or half of each (0.5)."""
    draw = Random(3)

    def voted(id: str, answers: bool) -> Record:
        all_err = draw.random() < common
        verdicts = [str(answers ^ (all_err or draw.random() < 0.02)).lower() for _ in SEATS]
        votes = [{"judge": seat, "verdict": verdict} for seat, verdict in zip(SEATS, verdicts, strict=True)]
        return {"id": id, "votes": votes}

    found, controls = [voted(f"{n}", n % 10 == 0) for n in range(3000)], [voted(f"c{n}", False) for n in range(300)]

    check = control_check(controls, found, len(SEATS))
    judges = next(panel_checks(found, SEATS, controls))

    low, high = (int(one) / 100 for one in re.search(r"wrong \((\d+)% to (\d+)%\)", check.text).groups())  # type: ignore[union-attr]
    accepted = [one["id"] for one in found if settle_votes(one, len(SEATS)) == (True, 1.0)]
    assert check.level == level and low <= sum(not id.endswith("0") for id in accepted) / len(accepted) <= high
    assert (judges.level == "red") == few


@pytest.mark.parametrize(
    ("described", "level", "text"), [(0.9, "green", "the set is hard"), (0.2, "amber", "cannot answer the set")]
)
def test_a_set_that_nobody_can_answer_is_told_from_a_hard_one(described: float, level: str, text: str) -> None:
    """Both halves find what a random order finds; the description of the target finds more, or not."""
    wobble = [0.01 * (at % 3 - 1) for at in range(30)]
    ways = {"question alone": 0.2, "picture alone": 0.2, "both": 0.2, "the target's description": described}
    found = [Shortcut(way, {20: [share + one for one in wobble]}) for way, share in ways.items()]

    check = shortcut_check([*found, Shortcut("a random order", {20: [0.2] * 30})])

    assert check.level == level and text in check.text


def test_a_target_of_the_test_may_be_no_target_in_training(per_query: FinishedSteps, tmp_path: Path) -> None:
    """The least reliable query trains, and gets a target of the most reliable one, which tests."""
    *_, first = ordered = sorted(per_query.queries, key=lambda one: float(one["tsr"]))
    queries = [first, {**ordered[0], "targets": [*ordered[0]["targets"], *first["targets"]]}]
    (tmp_path / "queries.jsonl").write_bytes(b"".join(map(line_of, queries)))
    given = Records(tmp_path / "queries.jsonl", len(queries))
    context = Context("split", 0, lambda _prompt: {}, no_progress, {"judged": per_query.records("judged")})

    def came(apart: bool) -> list[object]:
        settings = SplitSettings(ordered[0]["tsr"], apart_targets=apart)
        return [getattr(one, "reason", "") for one in split(given, context, settings, per_query.pipe.lists)]

    assert ordered[0]["tsr"] < first["tsr"]
    assert (came(False), came(True)) == (["", ""], ["", SHARED_TARGET])


def test_a_small_demonstration_is_red_and_one_query_tells_nothing_of_shortcuts(demonstrated: FinishedSteps) -> None:
    checks = card_content(demonstrated).checks
    alone = FinishedSteps(demonstrated.pipe, demonstrated.done)
    alone.__dict__["queries"] = demonstrated.queries[:1]

    assert worst(checks) == "red"
    assert {one.level for one in checks if one.what in ("Size of the pool", "A person's audit")} == {"red"}
    assert shortcut_check(shortcuts(alone, alone.queries)).level == "red"


def test_what_a_person_decided_reaches_the_card(copied: Path, demonstrated: FinishedSteps) -> None:
    """They agree with the panel but in one target, and accept every second last hit."""
    panel = {one["id"]: bool(settle_votes(one, 3)[0]) for one in demonstrated.triplets}
    unread, queue, last = audit_check(copied, demonstrated), *(Queue(copied / "audit" / n) for n in (VERDICTS, LAST))
    wrong_target = next(id for id in queue.cases if panel[id])
    refused = [case for id, case in queue.cases.items() if not panel[id]]
    queue.decide(refused[0], "drop", "ada")
    few = audit_check(copied, demonstrated)
    assert "No person" in unread.text and f"has read 1 of {len(queue.cases)} cases and no target" in few.text
    for id, case in queue.cases.items():
        queue.decide(case, "accept" if panel[id] and id != wrong_target else "drop", "ada")
    for number, case in enumerate(last.cases.values()):
        last.decide(case, "accept" if number % 2 else "drop", "ada")

    write_set(demonstrated, copied)

    check, count = audit_check(copied, demonstrated), len(queue.cases)
    assert unread.level == "red" and check.level != "red"
    wrong, accepted = 1, sum(panel[id] for id in queue.cases)
    assert f"{wrong} of {accepted} targets are wrong" in check.text and f" 0 of {count} " in check.text
    text = (copied / "set" / "README.md").read_text(encoding="utf-8")
    assert f"| accepted | all | {accepted - 1} | {accepted} |" in text and "Wilson's interval, 95%" in text
    assert "Cohen's d" in text and text.index("## Checks") < text.index("## What became of the records")


def audit_check(copied: Path, found: FinishedSteps) -> QualityCheck:
    return next(one for one in card_content(found, copied / "audit").checks if one.what == "A person's audit")


# -- what becomes of a photo on which judges disagree ------------------------------------------------------------


@pytest.fixture(scope="module")
def per_query(tmp_path_factory: pytest.TempPathFactory) -> FinishedSteps:
    """The disagreeing world with doubt per query; every query tests."""
    out = tmp_path_factory.mktemp("per-query")
    gallery = disagreeing.photos(out / "photos")
    place = disagreeing.recipe(out, gallery, confident='least = 0.75\ndoubt = "query"', split="threshold = -0.1")
    return disagreeing.made(place, out)


def test_a_photo_in_doubt_stays_for_other_queries(per_query: FinishedSteps) -> None:
    """The tie on the fish costs the query of the dam nothing, and the fish is the target of the fourth query."""

    def named(ids: list[str]) -> set[str]:
        return {disagreeing.name_of(per_query.seeds[id]["path"]) for id in ids}

    targets = {query["target"]: named(query["targets"]) for query in per_query.queries}
    unknown = {query["target"]: named(per_query.unknown.get(query["id"], [])) for query in per_query.queries}

    assert targets["water"] == {"fish1"} and len(targets) == 4
    assert not per_query.doubted and "fish1" in named(per_query.pool)
    assert unknown == {"pliers": set(), "a dam": {"fish1"}, "an igloo": set(), "water": set()}


def test_what_is_in_doubt_is_left_out_of_that_ranking_when_scored(per_query: FinishedSteps) -> None:
    folder = per_query.pipe.work.parent / "set"
    (task,) = tasks(folder, "test")
    dam, water = (next(q for q in per_query.queries if q["target"] == name) for name in ("a dam", "water"))
    fish = water["targets"][0]
    order = [fish, *(image for image in per_query.pool if image != fish)]
    run_ = Run({q["id"]: [RankedImage(image, -float(n)) for n, image in enumerate(order)] for q in (dam, water)})

    scored, _ = fitted(task, run_)

    assert rmir.read(folder).qrels.grades[dam["id"]][fish] == -1
    assert fish not in {hit.image for hit in scored[dam["id"]]} and scored[water["id"]][0].image == fish
    assert task.excluded(dam["id"]) >= {fish} and fish not in task.excluded(water["id"])


def test_unjudged_photos_are_a_share_of_those_among_the_first(tmp_path: Path, per_query: FinishedSteps) -> None:
    """Five photos answer; a query's own photo is not among its first: 5, 4, 4 and 4, of which 2, 3, 2 and 3 are judged.

    A step `pooled` that finds nothing new looks as deep as it is set to: the first photo of each query has its vote.
    """
    shallow = {"confident": 'least = 0.75\ndoubt = "query"', "split": "threshold = -0.1", "pooled": "depth = 1"}
    made = disagreeing.made(disagreeing.recipe(tmp_path, per_query.pipe.world.gallery, **shallow), tmp_path)

    assert (len(per_query.unjudged), len(per_query.nearest)) == (7, 17)
    assert unjudged_check(per_query).level == "red"  # 41 %
    assert (made.pooled, len(made.unjudged), len(made.nearest)) == ({}, 0, 4)
    assert unjudged_check(made).level == "green"


@pytest.mark.parametrize("votes", ["tttt", "ttff"])
def test_photos_of_the_pool_that_no_list_has_are_judged(
    tmp_path: Path, per_query: FinishedSteps, monkeypatch: pytest.MonkeyPatch, votes: str
) -> None:
    """Six photos answer, and lists have three. Judges accept all that is new, or doubt it for its query alone."""
    monkeypatch.setattr(disagreeing, "POOLED", votes)
    lines = {"confident": 'least = 0.75\ndoubt = "query"', "split": "threshold = -0.1", "pooled": "depth = 6"}
    made = disagreeing.made(disagreeing.recipe(tmp_path, per_query.pipe.world.gallery, **lines), tmp_path)
    before, after = ({one["id"]: one for one in found.queries} for found in (per_query, made))
    new = {(one["query"], one["candidate"]) for one in made.pooled.values()}

    assert len(per_query.unjudged) > 0 == len(made.unjudged)
    assert new == {(one["query"], one["candidate"]) for one in per_query.unjudged}
    assert after.keys() == before.keys() and all(after[id]["tsr"] == before[id]["tsr"] for id in after)
    for id, query in after.items():
        of_query = {image for query, image in new if query == id}
        answered = set(query["targets"]) if votes == "tttt" else set(made.unknown.get(id, ()))
        assert of_query <= answered and set(query["targets"]) >= set(before[id]["targets"])
    vars(made)["unjudged"] = made.nearest[:3]  # 7 of 7 judged ones answer beside 12 targets, or none beside 5
    numbers = [3, 17, 7, 100.0, 3, 12] if votes == "tttt" else [3, 17, 7, 35.4, 1, 5]
    assert [float(one) for one in re.findall(r"\d+(?:\.\d+)?", unjudged_check(made).text)] == numbers


def test_mteb_gets_no_grade_that_it_would_take_for_a_wrong_picture(per_query: FinishedSteps) -> None:
    rows = pq.read_table(per_query.pipe.work.parent / "set" / "mteb" / "qrels" / "test.parquet").to_pylist()
    assert rows and {row["score"] for row in rows} == {0, 1}
    ranked = pq.read_table(per_query.pipe.work.parent / "set" / "mteb" / "top_ranked" / "test.parquet").to_pylist()
    for row, query in zip(ranked, per_query.in_split("test"), strict=True):
        assert set(row["corpus-ids"]) == set(per_query.pool) - per_query.barred(query)
    assert any(len(row["corpus-ids"]) < len(per_query.pool) for row in ranked)


def test_shortcuts_do_not_rank_what_is_in_doubt(per_query: FinishedSteps) -> None:
    """By chance: the pool has 6 photos; inputs and photos in doubt leave."""
    chance = next(one for one in shortcuts(per_query, per_query.queries) if one.way == "a random order").by_query[1]
    pool = set(per_query.pool)
    left = [len(pool & {q["image"], *per_query.unknown.get(q["id"], [])}) for q in per_query.queries]
    assert (
        sum(chance) / len(chance) == pytest.approx(sum(1 / (len(pool) - count) for count in left) / len(left))
        and max(left) == 2
    )


# -- confidence and reliability of votes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "judges", "outcome"),
    [
        ("ttttt", 5, (True, 1.0)),
        ("ttttf", 5, (True, 0.8)),
        ("fffff", 5, (False, 1.0)),
        ("tttaa", 5, (True, 0.6)),
        ("taaaa", 5, (None, 0.0)),  # most abstain
        ("ttffa", 5, (None, 0.4)),
        ("ttaa", 4, (True, 0.5)),  # no more abstain than say true
        ("tttt", 5, (True, 0.8)),  # a judge that gave no vote is a judge nevertheless
        ("", 5, (None, 0.0)),
    ],
)
def test_confidence_by_hand(votes: str, judges: int, outcome: tuple[bool | None, float]) -> None:
    assert confidence(spelled(votes), judges) == outcome


@pytest.mark.parametrize(
    ("votes", "share"),
    [
        ("fffff", 1.0),
        ("ffftt", 0.6),
        ("fftta", 0.0),
        ("fffaa", 0.6),  # who abstains has answered
        ("ttttt", 0.0),
        ("ffff", 1.0),  # a judge that failed has not
        ("ffft", 0.75),
        ("ff", 0.0),  # under half of the panel
        ("", 0.0),
    ],
)
def test_negativeness_by_hand(votes: str, share: float) -> None:
    assert negativeness(spelled(votes), 5) == share


def test_reliability_is_that_of_the_formula_on_a_thousand_random_tables() -> None:
    draw = random.Random(0)
    for _ in range(1000):
        judges, depth = draw.randint(1, 7), draw.randint(1, 16)
        found = draw.randint(0, depth)
        answered = [draw.randint(0, judges) for _ in range(found)]
        table = [[draw.choice(["true", "false", "abstain"]) for _ in range(votes)] for votes in answered]

        score = reliability([negativeness(votes, judges) for votes in table], depth)

        assert score == pytest.approx(by_the_formula(table, judges, depth), abs=1e-12)


def by_the_formula(table: list[list[str]], judges: int, depth: int) -> float:
    places = []
    for i in range(depth):
        refused = table[i].count("false") if i < len(table) else 0
        places.append(1.0 if i >= len(table) else refused / len(table[i]) if refused / judges >= 0.5 else 0.0)
    return sum(sum(places[i:]) / len(places[i:]) for i in range(depth)) / depth


def spelled(votes: str) -> list[str]:
    return [{"t": "true", "f": "false", "a": "abstain"}[letter] for letter in votes]


@pytest.fixture
def audit(copied: Path) -> Path:
    """The folder of the queues."""
    return copied / "audit"


def decided(queue: Path, verdicts: dict[str, bool]) -> None:
    opened = Queue(queue)
    for id, case in opened.cases.items():
        opened.decide(case, "accept" if verdicts[id] else "drop", "ada")


def decisions(audit: Path) -> list[AuditAgreement]:
    return agreed(read_panel(audit), said_in(audit / VERDICTS))


def test_a_case_does_not_tell_what_the_panel_said(audit: Path, demonstrated: FinishedSteps) -> None:
    words = {one["verdict"] for one in demonstrated.votes()} | {"confidence", "split"}
    assert all(not words & set(case.why.split()) and not case.texts for case in Queue(audit / VERDICTS).cases.values())


def test_who_agrees_with_the_panel_agrees_always(audit: Path, demonstrated: FinishedSteps) -> None:
    panel = {one["id"]: bool(settle_votes(one, 3)[0]) for one in demonstrated.triplets}
    cases = Queue(audit / VERDICTS).cases
    right = {one["id"] for one in demonstrated.records("confident") if one["answers"]}

    decided(audit / VERDICTS, panel)
    found = {(one.verdict, one.kind): one for one in decisions(audit)}
    decided(audit / VERDICTS, dict.fromkeys(cases, True))
    yes = {one.verdict: one for one in decisions(audit) if one.kind == "all"}

    assert all(one.agreed == one.cases for one in found.values())
    assert found["accepted", "all"].cases + found["refused", "all"].cases == len(cases)
    assert yes["accepted"].agreed == yes["accepted"].cases == len(right.intersection(cases)) > 0
    assert yes["refused"].agreed == 0 < yes["refused"].cases


@pytest.mark.parametrize(
    ("wrong", "missed", "level", "text"),
    [
        (
            40,
            6,
            "red",
            "About 40 of 100 targets are wrong (31% to 50%)",
        ),  # the pooled share, 154 of 200, is that of the paper
        (8, 0, "green", "About 8 of 100 targets are wrong (4% to 15%); about 0% of the answers"),
        (8, 20, "red", "about 66% of the answers among judged photos are missed"),  # 0.2 * 900 beside 0.92 * 100
    ],
)
def test_the_audit_speaks_of_wrong_targets_and_missed_answers(wrong: int, missed: int, level: str, text: str) -> None:
    panel = {f"{yes}{n}": Sealed(f"{yes}{n}", "causal", "", yes, None, []) for yes in (True, False) for n in range(100)}
    people = {f"True{n}": n >= wrong for n in range(100)} | {f"False{n}": n < missed for n in range(100)}

    check = validity_check(agreed(panel, people), {True: 100, False: 900}, {"cases": 200, "open": 0})

    assert check is not None and check.level == level and text in check.text


def test_last_hits_are_grouped_by_what_the_person_says(audit: Path, demonstrated: FinishedSteps) -> None:
    cases = list(Queue(audit / LAST).cases)
    decided(audit / LAST, {id: at % 2 == 0 for at, id in enumerate(cases)})

    found = compared(read_panel(audit), said_in(audit / LAST))

    assert set(cases) <= {hits[-1]["id"] for hits in demonstrated.hits.values()}
    assert found is not None
    assert (found.accepted, found.rejected) == ((len(cases) + 1) // 2, len(cases) // 2)


def test_without_sealed_verdicts_there_are_none_and_a_line_that_is_none_is_refused(tmp_path: Path) -> None:
    assert read_panel(tmp_path) == {}
    (tmp_path / PANEL).write_text('{"id": "x"}\n')
    with raises(UsageError):
        read_panel(tmp_path)


def test_welch_by_hand() -> None:
    """Means 2 and 5, variances 1 and 4, 3 of each: t = -3 / sqrt(5/3), ν = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.9412.

    The chances are those of scipy.stats.ttest_ind(…, equal_var=False).
    """
    found = welch([1, 2, 3], [3, 5, 7])

    assert (found.difference, found.t) == (-3, pytest.approx(-2.323790))
    assert (found.freedom, found.effect) == (pytest.approx(2.941176), pytest.approx(-3 / 2.5**0.5))
    assert found.p == pytest.approx(0.10447888668472192, rel=1e-9)
    other = welch([0.9, 0.8, 0.95, 0.4, 0.7, 0.99], [0.2, 0.5, 0.1, 0.6])
    assert other.p == pytest.approx(0.024585320896303012, rel=1e-9)


def test_no_spread_at_all_is_no_error() -> None:
    assert welch([1, 1], [1, 1]).p == 1
    assert welch([1, 1], [0, 0]).p == 0


def test_wilsons_interval() -> None:
    """81 of 100: the middle is (0.81 + 0.019207) / 1.038415 = 0.798532, half the width 0.076320."""
    assert wilson(81, 100) == (pytest.approx(0.722212, abs=1e-6), pytest.approx(0.874852, abs=1e-6))
    assert wilson(0, 0) == (0, 1)
