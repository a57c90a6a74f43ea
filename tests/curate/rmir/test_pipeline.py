"""RMIR sets made of real photos, offline: what is asked, found, voted on, kept, and written."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from eyespot import sample
from eyespot.benchmarks import rmir as benchmark
from eyespot.curate.rmir import candidates, making, panel
from eyespot.curate.rmir.audit import before_last
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.curate.rmir.questions import DOMAINS
from eyespot.pipelines import (
    BatchStep,
    Drop,
    Failed,
    Keep,
    MapStep,
    Outcome,
    Record,
    RunOptions,
    Step,
    StepResult,
    drops,
    read_recipe,
    run,
)
from eyespot.pipelines.outcomes import Added
from eyespot.runs import beir, rmir
from eyespot.types import UsageError
from tests.command import refuses, run_eyespot
from tests.wording import raises
from tests.worlds.rmir import Rates, Scripted, behind, files, made, ran, recipe
from tests.worlds.servers import Double, chat


def named(made: FinishedSteps, id: str) -> str:
    """The name of a photo's file, which tells what it shows."""
    return Path(made.seeds[id]["path"]).stem.partition("__")[2]


def test_the_rules_find_what_they_ask_for(demonstrated: FinishedSteps) -> None:
    found = {tuple(sorted(named(demonstrated, id) for id in query["targets"])) for query in demonstrated.queries}
    lost = {(named(demonstrated, one.record["image"]), one.reason) for one in drops(demonstrated.of("checked").folder)}
    assert ("erasers",) in found and {"plier1", "plier3"}.intersection(*[one for one in found if "plier1" in one])
    assert ("windmill1", "fails dependence") in lost


def test_no_candidate_is_the_input_and_the_lists_are_as_long_as_asked(demonstrated: FinishedSteps) -> None:
    for one in demonstrated.records("candidates"):
        assert one["candidate"] != one["image"]
        assert all(rank <= {"starter": 6, "descriptions": 2}[space] for space, rank in one["ranks"].items())


def test_controls_are_judged_and_reach_the_card_alone(demonstrated: FinishedSteps) -> None:
    """One or so of each query; none is a candidate of its query."""
    found = {(one["query"], one["candidate"]) for one in demonstrated.triplets}
    assert {one["control"] for one in demonstrated.controls} <= {candidates.FAR, candidates.OTHER}
    assert demonstrated.controls and all(len(one["votes"]) == 3 for one in demonstrated.controls)
    assert found.isdisjoint((one["query"], one["candidate"]) for one in demonstrated.controls)
    assert demonstrated.of("confident").counts.dropped[panel.CONTROL] == len(demonstrated.controls)
    assert not any("control" in one["triplet"] for one in demonstrated.votes())


def test_the_pool_is_the_union_of_the_targets_and_nothing_in_doubt(demonstrated: FinishedSteps) -> None:
    targets = {target for query in demonstrated.queries for target in query["targets"]}
    assert set(demonstrated.pool) == targets
    assert not targets & demonstrated.doubted


def test_each_cluster_gives_its_seeds_and_a_trial_few(tmp_path: Path, gallery: Path) -> None:
    place = recipe(tmp_path, gallery, seeds="clusters = 5\neach = 1")
    pipe = RmirPipeline(read_recipe(place), tmp_path, limit=4)

    seeds, inputs = run(pipe.steps[:2], pipe.work)

    assert seeds.counts.kept == 5 and seeds.counts.dropped == {"not drawn from its cluster": 14}
    assert inputs.counts.kept == 4
    report = json.loads((seeds.folder / "clusters.json").read_text())
    assert report["clusters"] == 5 and report["inertia"] > 0


def test_photos_are_asked_about_until_there_are_as_many_queries_as_wanted(tmp_path: Path, gallery: Path) -> None:
    """One photo at first. Of functional questions there are enough; what cannot be had is named with its setting."""
    place = recipe(tmp_path, gallery, inputs="count = 1\nwant = { test = 2 }", split="threshold = -0.1")

    def carry_out(pipe: RmirPipeline) -> list[StepResult]:
        rounds.append(pipe.count(pipe.settings("inputs")))
        return run(pipe.steps, pipe.work, pipe.running())

    rounds: list[int | None] = []
    found = making.in_rounds(RmirPipeline(read_recipe(place), tmp_path), carry_out)
    again = making.in_rounds(RmirPipeline(read_recipe(place), tmp_path), carry_out)

    kinds = Counter(one["kind"] for one in found.in_split("test"))
    assert rounds[0] == 1 and rounds == sorted(rounds[:-1]) + rounds[-1:] and rounds[-1] == rounds[-2] == 19
    assert kinds["functional"] == 2 and kinds["temporal"] < 2
    short = {kind: (wanted, there) for _, kind, wanted, there, _ in making.shortfalls(found)}
    assert short == {kind: (2, kinds[kind]) for kind in ("functional", "temporal", "causal") if kinds[kind] < 2}
    assert any("temporal: " in note and "the prompt of questions" in note for note in making.notes(found))
    assert found.of("split").counts.dropped["more than are wanted"] > 0
    assert not any(one.ran for one in again.done)


def test_the_same_recipe_makes_the_same_files(tmp_path: Path, gallery: Path, demonstrated: FinishedSteps) -> None:
    made(recipe(tmp_path, gallery), tmp_path)
    assert files(tmp_path) == files(demonstrated.pipe.work.parent)


def test_the_benchmark_and_mtebs_tables_hold_the_judgements(demonstrated: FinishedSteps) -> None:
    folder = demonstrated.pipe.work.parent / "set"
    read, test = rmir.read(folder), beir.read(folder / "mteb", "test")

    targets = {query["id"]: set(query["targets"]) for query in demonstrated.queries}
    tested = {query["id"] for query in demonstrated.in_split("test")}
    assert set(read.images) == set(demonstrated.pool) and "test" in benchmark.load().splits
    assert {id: read.qrels.relevant(id) for id in read.queries} == targets
    assert {id: test.qrels.relevant(id) for id in test.queries} == {id: targets[id] for id in tested}


def test_photos_tell_under_which_licence_they_may_be_handed_on(demonstrated: FinishedSteps) -> None:
    """And whom it asks to name, as the gallery's columns `licence`, `author` and `source` have it."""
    place = demonstrated.pipe.work.parent / "set"
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        known = {row["file_name"]: (row["licence"], row["author"], row["source"]) for row in csv.DictReader(file)}

    for table in ("pool", "queries"):
        rows = [json.loads(line) for line in (place / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()]
        assert rows == pq.read_table(place / f"{table}.parquet").to_pylist()
        assert [(row["licence"], row["author"], row["url"]) for row in rows] == [known[row["file"]] for row in rows]


def test_every_vote_is_told_and_no_path_of_this_machine(demonstrated: FinishedSteps) -> None:
    out = demonstrated.pipe.work.parent / "set"
    texts = {path.name: path.read_text(encoding="utf-8") for path in [*out.rglob("*.jsonl"), out / "README.md"]}

    assert texts["judgements.jsonl"].count("\n") == 3 * len(demonstrated.triplets)
    assert not [name for name, text in texts.items() if str(demonstrated.pipe.world.gallery.parent) in text]
    for part in ("This is a demonstration", "How far the panel agrees", "Shortcuts"):
        assert part in texts["README.md"]


def test_an_empty_set_says_that_no_query_is_left(tmp_path: Path, gallery: Path) -> None:
    """And not that none is reliable enough."""
    found = made(recipe(tmp_path, gallery, confident="least = 2.0"), tmp_path)
    _, note = making.notes(found)
    assert not found.queries and note.startswith("No query is left")


PROMPTED = ('step = "questions"', 'step = "checked"', 'step = "judged"')
FIRST = 'use = "demonstration:first"'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('step = "queries"', 'step = "query"'),
        ('step = "queries"', 'step = "queries"\nname = "mine"'),
        ('step = "split"', 'step = "split"\nthreshhold = 1'),
        ("votes = { second = 2 }", "votes = { third = 2 }"),
        ('models = ["first", "second"]\nvotes = { second = 2 }', ""),
        ('model = "teacher"', ""),
        (FIRST, 'use = "nobody:m"'),
        *((FIRST, f'use = "openai:m", {more}') for more in ('side = "x"', "url = 5", "attempts = 2.5")),
        *((FIRST, f'use = "openai:m", {more}') for more in ("timeout = true", 'key = "secret"')),
        *((name, f'{name}\nprompts = {{ question = "recipe.toml" }}') for name in PROMPTED),
    ],
)
def test_a_wrong_recipe_is_refused(tmp_path: Path, gallery: Path, old: str, new: str) -> None:
    place = recipe(tmp_path, gallery)
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    with raises(UsageError):
        pipeline = RmirPipeline(read_recipe(place), tmp_path)
        assert pipeline.steps
        pipeline.check()


# -- the panel ----------------------------------------------------------------------------------------------------


def test_two_servers_of_one_model_are_two_judges(tmp_path: Path, gallery: Path) -> None:
    vote = {"target_description": "b", "input_description": "a", "reasoning": "r"}
    yes, no = (Double(then=chat(json.dumps(vote | {"verdict": verdict}))) for verdict in ("true", "false"))
    with Double(then=Scripted(Rates())) as other, yes, no:
        models = behind(other.url).splitlines()[0] + "".join(
            f'\n{name} = {{ use = "openai:local", url = "{server.url}" }}'
            for name, server in (("first", yes), ("second", no))
        )
        place = recipe(tmp_path, gallery, models, inputs="count = 1", candidates="images = 2")
        place.write_text(place.read_text().replace("images = 6\ntexts = 2\n", "").replace("second = 2", "second = 1"))
        found = ran(place, tmp_path)

    votes = {(vote["judge"], vote["verdict"]) for vote in found.votes()}
    assert votes == {("first", "true"), ("second", "false")} and len(yes.seen) == len(no.seen) > 0


def test_a_query_without_candidates_is_dropped_and_told(tmp_path: Path, gallery: Path) -> None:
    """No photo is wanted, and nothing is said of any that could be searched."""
    making = RmirPipeline(read_recipe(recipe(tmp_path, gallery)), tmp_path)
    query = {"id": "q", "kind": "causal", "labels": "", "question": "Why?", "target": "a hammer"}
    query |= {"image": "x", "path": "x.jpg"}
    settings = candidates.CandidateSettings(images=0)
    work = BatchStep(partial(candidates.retrieve, making.world, settings))

    asked = BatchStep(lambda seeds, _context: [*(Drop(one, "a seed") for one in seeds), Added(query)])
    steps = [making.steps[0], Step("queries", asked), Step("candidates", work, needs=("seeds",))]
    done = run(steps, tmp_path / "work")[-1]

    assert [(one.record["id"], one.reason) for one in drops(done.folder)] == [("q", candidates.NOTHING)]


# -- reliability (TSR) --------------------------------------------------------------------------------------------


LISTS = panel.Lists("starter", 4, 3)
VOTES = st.lists(st.sampled_from(["true", "false", "abstain"]), max_size=LISTS.judges)  # who has no vote has failed
TABLES = st.lists(st.lists(VOTES, max_size=LISTS.depth), min_size=1, max_size=12)


def triplets(query: int, table: list[list[str]]) -> list[Record]:
    ballots = ([{"judge": str(at), "verdict": verdict} for at, verdict in enumerate(votes)] for votes in table)
    return [
        {"id": f"{query}/{rank}", "query": str(query), "ranks": {"starter": rank}, "votes": votes}
        for rank, votes in enumerate(ballots, 1)
    ]


def of_the_split(tables: list[list[list[str]]], work: Path, how: RunOptions = RunOptions()) -> dict[str, float]:
    """What the step says of lists whose hits have these votes."""
    found = {one["id"]: one for query, table in enumerate(tables) for one in triplets(query, table)}
    queries = [{"id": str(query), "image": str(query)} for query in range(len(tables))]
    steps = [
        Step("candidates", BatchStep(lambda _records, _context: (Added({"id": id}) for id in found))),
        Step("judged", MapStep(lambda one, _context: judged(found[one["id"]]))),
        Step(
            "confident", BatchStep(lambda records, _: [*(Drop(one, "gone") for one in records), *map(Added, queries)])
        ),
        Step(
            "split",
            BatchStep(lambda records, context: panel.split(records, context, panel.SplitSettings(), LISTS)),
            needs=("judged", "confident"),
            needs_drops=("judged",),
        ),
    ]
    return {one["id"]: one["tsr"] for one in run(steps, work, how)[-1].records}


def judged(triplet: Record) -> Outcome:
    return Keep(triplet) if len(triplet["votes"]) == LISTS.judges else Failed(triplet, "a judge is silent")


@settings(max_examples=12, deadline=None)
@given(TABLES)
def test_the_audit_and_the_split_agree_on_hits_before_the_last(tables: list[list[list[str]]]) -> None:
    with TemporaryDirectory() as work:
        scores = of_the_split(tables, Path(work))
    longer = {str(query): triplets(query, [*table, ["true"]]) for query, table in enumerate(tables)}
    voted = {one["id"] for hits in longer.values() for one in hits}

    audited = before_last(longer, voted, replace(LISTS, depth=LISTS.depth + 1))

    assert {hits[-1]["id"]: scores[query] for query, hits in longer.items()} == audited


def test_the_split_is_told_anew_when_a_judge_that_failed_answers(tmp_path: Path) -> None:
    """Two of three judges fail, then one: nothing that the step `judged` keeps is another, and reliability is."""
    before = of_the_split([[["false"]]], tmp_path)
    after = of_the_split([[["false", "false"]]], tmp_path, RunOptions(retry_failed=True))
    assert before["0"] < after["0"] == 1.0


def test_a_domain_is_shown_with_its_prompts_and_can_be_read(tmp_path: Path) -> None:
    shown = run_eyespot("build", "rmir", "plants", "--show", cwd=tmp_path)
    (tmp_path / "mine.toml").write_text(shown.stdout, encoding="utf-8")
    mine, ours = (read_recipe(place).steps for place in (tmp_path / "mine.toml", DOMAINS / "plants.toml"))
    assert [(one.settings, one.prompts) for one in mine] == [(one.settings, one.prompts) for one in ours]
    assert "{kinds}" in mine[2].prompts["prompt"]
    refuses("build", "rmir", "plants")
