"""The disagreeing world: reliability under both rules of votes, the split, and every number of the card, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.curate.rmir import making
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.curate.rmir.quality import shortcuts
from eyespot.pipelines import plan as plan_of, read_recipe
from tests.command import refuses, run_eyespot
from tests.worlds import rmir as worlds
from tests.worlds.disagreeing import VOTES, made, name_of, photos, recipe

SURE = "least = 0.75"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven photos."""
    return photos(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def retrieved(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> FinishedSteps:
    """The set by the votes of every hit that was found; over 0.6 a query tests."""
    out = tmp_path_factory.mktemp("retrieved")
    return made(recipe(out, gallery, confident=SURE, split="threshold = 0.6"), out)


@pytest.fixture(scope="module")
def confident(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> FinishedSteps:
    """The set by the votes of what the panel is sure of alone, over the pool of all photos that nobody doubts."""
    out = tmp_path_factory.mktemp("confident")
    settings = 'threshold = 0.6\nvotes = "confident"\npool = "seeds"'
    return made(recipe(out, gallery, confident=SURE, split=settings), out)


def named(ids: list[str], found: FinishedSteps) -> list[str]:
    return [name_of(found.seeds[id]["path"]) for id in ids]


def table(found: FinishedSteps, title: str) -> making.CardTable:
    shown = shortcuts(found, found.in_split("test") or found.queries)
    return next(one for one in making.tables(found, shown) if one.title == title)


def test_reliability_by_every_hit_that_was_found(retrieved: FinishedSteps) -> None:
    """Refused by 0, 3 of 3 that answered, 3 of 4; by 0, 4 of 4, 2 of 4; by 0, 0, and 1, which is under half.

    (1.75/3 + 1.75/2 + .75)/3 = .7361; (1.5/3 + 1.5/2 + .5)/3 = .5833; 0.
    """
    lists: dict[str, list[str]] = {target: [] for target in VOTES}
    for one in sorted(retrieved.records("candidates"), key=lambda one: one["ranks"]["starter"]):
        lists[one["target"]].append(name_of(one["candidate_path"]))

    assert lists == {target: list(votes) for target, votes in VOTES.items()}
    wanted = {"pliers": 0.736111, "a dam": 0.583333, "an igloo": 0.0}
    assert {query["target"]: query["tsr"] for query in retrieved.queries} == pytest.approx(wanted, abs=1e-6)


def test_reliability_by_what_the_panel_is_sure_of(confident: FinishedSteps) -> None:
    """The silence, the tie and the abstentions make room for artificial negatives.

    0, .75, 1: (1.75/3 + 1.75/2 + 1)/3 = .8194; 0, 1, 1: (2/3 + 1 + 1)/3 = .8889; 0, 0, 1: (1/3 + 1/2 + 1)/3 = .6111.
    """
    wanted = {"pliers": 0.819444, "a dam": 0.888889, "an igloo": 0.611111}
    assert {query["target"]: query["tsr"] for query in confident.queries} == pytest.approx(wanted, abs=1e-6)


def test_what_is_in_doubt_anywhere_leaves_everywhere(retrieved: FinishedSteps, confident: FinishedSteps) -> None:
    """Judges are silent or abstain on the pencil and tie on the fish, which the fourth query loses its target by."""
    targets = {query["target"]: named(query["targets"], retrieved) for query in retrieved.queries}

    assert set(named(sorted(retrieved.doubted), retrieved)) == {"pencil", "fish1"}
    assert targets == {"pliers": ["plier1"], "a dam": ["dam1"], "an igloo": ["igloo", "windmill1"]}
    assert set(named(retrieved.pool, retrieved)) == {"plier1", "dam1", "igloo", "windmill1"}
    assert set(named(confident.pool, confident)) == {"plier1", "dam1", "igloo", "windmill1", "hammer1"}
    test, train = {"functional": 1, "temporal": 0, "causal": 0}, {"functional": 0, "temporal": 1, "causal": 1}
    found = {"queries": {"test": test, "train": train}, "missing": [], "pool": 4, "seeds": 7, "left": 2}
    assert making.summary(retrieved) == found


def test_what_each_setting_leaves(retrieved: FinishedSteps) -> None:
    """Of seven photos: the hook and the nail break rules, and the water has a sure target, whose photo left."""
    left = {kind: list(making.left_after(retrieved, kind).values()) for kind in retrieved.kinds}
    assert left == {"functional": [7, 2, *[1] * 5], "temporal": [7, 2, *[1] * 5], "causal": [7, 2, 2, 2, 2, 1, 1]}


def test_reasons_of_losses(retrieved: FinishedSteps) -> None:
    losses = {name: retrieved.of(name).counts.dropped for name in ("checked", "judged", "confident", "queries")}

    assert losses == {
        "checked": {"fails inference": 1, "the check contradicts itself": 1},
        "judged": {"a judge gives no answer": 1},
        "confident": {"confidence below 1": 1, "most judges abstain": 1, "its photo left the seed set": 1},
        "queries": {"a further target of its query": 1, "a judged negative": 2, "its query has no target": 2},
    }


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("Queries", [["functional", 1, 0, "1.0"], ["temporal", 0, 1, "1.0"], ["causal", 0, 1, "2.0"]]),
        ("Queries from stage to stage", [["functional", 2, 1, 1, 1], ["temporal", 2, 1, 1, 1], ["causal", 2, 2, 1, 1]]),
        (
            "Rules that questions break",
            [["dependence", 0, "0.0%"], ["inference", 1, "16.7%"], ["specificity", 0, "0.0%"], ["wording", 1, "16.7%"]],
        ),
        (
            "How the panel votes",
            [
                ["strict", "12", "50.0%", "41.7%", "8.3%", "90.9%"],
                ["mild", "12", "50.0%", "41.7%", "8.3%", "90.9%"],
                ["odd/1", "12", "41.7%", "50.0%", "8.3%", "90.9%"],
                ["odd/2", "11", "45.5%", "45.5%", "9.1%", "60.0%"],
            ],
        ),
        (  # a query whose reliability is 0 is over no threshold
            "Queries over a threshold of reliability",
            [[f"{at / 10:.1f}", 2 if at < 6 else 1 if at < 8 else 0] for at in range(10)],
        ),
    ],
)
def test_tables_of_the_card(retrieved: FinishedSteps, title: str, wanted: list[list[object]]) -> None:
    assert [list(row) for row in table(retrieved, title).rows] == wanted


def test_how_far_the_panel_agrees(retrieved: FinishedSteps) -> None:
    """22 votes are true, 18 false and 4 abstain on the eleven triplets with four votes; with the twelfth 21 are false.

    Krippendorff: 1 − 46 · 10.6667/1268; 1 − 41 · 6.6667/880 without the abstentions and the vote that is then alone.
    """
    cells = [(row[1].partition(" ")[0], *row[2:]) for row in table(retrieved, "How far the panel agrees").rows]
    assert cells == [("0.613", "12", "47"), ("0.689", "11", "42")]


def test_numbers_in_the_sentences_of_the_card(retrieved: FinishedSteps) -> None:
    place = retrieved.pipe.work.parent / "set" / "README.md"
    text = " ".join(place.read_text(encoding="utf-8").split())

    for part in (
        *(
            "1 records failed",
            "The pool holds 4 photos; 2 of 7 left",
            "Of 6 questions",
            "In 1 the check",
        ),
        *("half of all 4", "On 1 hits", "over the pool of 4, on 1 queries (test)", "pool of 4 photos is shared"),
        *("over 0.6, 1 queries to report on; train: the others, 2 to train", "Of 7 photos 7 were drawn"),
        *("7 of these were asked", "judged by strict (world:strict), mild (world:mild), odd (world:odd)"),
        *("first 3 of each index", "(TSR) of 3 queries; those over 0.6"),
    ):
        assert part in text
    assert "demonstration" not in text and "No query" not in text


@pytest.mark.parametrize(("threshold", "splits"), [(0.9, (0, 3)), (0.6, (3, 0))])
def test_empty_and_full_test_split(gallery: Path, tmp_path: Path, threshold: float, splits: tuple[int, int]) -> None:
    settings = f'threshold = {threshold}\nvotes = "confident"'
    found = made(recipe(tmp_path, gallery, confident=SURE, split=settings), tmp_path)
    assert (len(found.in_split("test")), len(found.in_split("train"))) == splits
    assert [note.startswith("No query") for note in making.notes(found)].count(True) == (splits[0] == 0)
    assert f"on {3} queries ({'test' if splits[0] else 'all'})" in table(found, "Shortcuts: targets found by").note


def test_a_dry_run_counts_the_photos_of_clusters(gallery: Path, tmp_path: Path) -> None:
    """Two of each of two clusters: 4 photos, 12 questions, 8 candidates of each and a control, 3 votes on each."""

    def planned(seeds: str) -> dict[str, tuple[int, int]]:
        place = worlds.recipe(tmp_path, gallery, worlds.behind("http://127.0.0.1:9"), seeds=seeds)
        job = RmirPipeline(read_recipe(place), tmp_path)
        return {one.name: (one.records, one.spent.calls) for one in plan_of(job.steps, job.work, job.running())}

    few = planned("clusters = 2\neach = 2")
    assert few["inputs"] == (4, 0)
    assert few["questions"] == (4, 4) and few["checked"] == (12, 12) and few["judged"] == (108, 324)
    assert planned("clusters = 5\neach = 10")["inputs"] == (7, 0)


def test_photos_are_needed(gallery: Path, tmp_path: Path) -> None:
    place = worlds.recipe(tmp_path, gallery)
    text = place.read_text(encoding="utf-8").replace(f'inputs = {{ gallery = "{gallery}" }}', "")
    place.write_text(text, encoding="utf-8")
    line = ("build", "rmir", place, "--out", tmp_path / "out", "--dry-run")

    refuses(*line)
    given = run_eyespot(*line, "-g", gallery)

    assert (given.returncode, given.stderr) == (0, "")
