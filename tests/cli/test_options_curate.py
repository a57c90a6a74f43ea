"""Options of the verbs that build and label, each with a value that changes what comes out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from eyespot.cli import app
from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.progress import standing
from eyespot.curate.pair_set import CAPTIONS
from eyespot.pipelines import BudgetSpent
from eyespot.types import UsageError
from tests.worlds import annotation as world
from tests.worlds import inat, recos, rmir
from tests.worlds.pairs import cc12m, metadata
from tests.worlds.pairs import rmir as rmir_set
from tests.worlds.servers import Double


def run_cli(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def run_json(*words: object, code: int = 0) -> Any:
    shown = run_cli(*words, "--json")
    assert shown.exit_code == code, shown.output + str(shown.exception)
    return json.loads(shown.stdout)


# -- inat -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Two sparrows of a day 5.6 km apart, a tit where the first is, and a casual sparrow; a photo of each."""
    observations = [
        inat.seen("a"),
        inat.seen("tit", taxon_id=inat.TIT),
        inat.seen("far", latitude=50.05),
        inat.seen("casual", quality_grade="casual"),
    ]
    (tmp_path / "photos").mkdir()
    for at in range(4):
        (tmp_path / "photos" / f"{at}.jpg").write_bytes(inat.pictures()[at].read_bytes())
    return inat.export(tmp_path / "export", observations)


def collected(export: Path, *more: object) -> dict[str, dict[str, Any]]:
    """What a collection says of its pictures, by observation."""
    out = export.parent / "set"
    words = ("--out", out, "--photos", export.parent / "photos", "--check", "decode", "--threads", 1)
    run_json("build", "inat", export, *words, *more)
    return {one["observation"]: one for one in inat.coco(out)["images"]}


@pytest.mark.long
def test_a_collection_is_grouped_coarsened_and_made_small_as_asked(export: Path) -> None:
    (export.parent / "hidden.csv").write_text("name\nParus major\n")
    usual = collected(export)
    other = collected(
        export,
        *("--km", 1, "--groups", "species", "--side", 100, "--coarsen", export.parent / "hidden.csv"),
        *("--coarse-degrees", 3),
    )

    assert len({one["group"] for one in usual.values()}) == 1
    assert max(max(one["width"], one["height"]) for one in usual.values()) == 500
    assert len({one["group"] for one in other.values() if one["group"] is not None}) >= 2
    assert {max(one["width"], one["height"]) for one in other.values()} == {100}
    assert [name for name, one in other.items() if one["coarsened"]] == ["tit"]
    assert usual["tit"]["latitude"] == 50 and other["tit"]["latitude"] % 3 in (0, 1.5)


@pytest.mark.long
def test_what_is_less_accurate_than_asked_is_coarsened(export: Path) -> None:
    assert not any(one["coarsened"] for one in collected(export).values())
    assert all(one["coarsened"] for one in collected(export, "--accuracy", 5).values())


@pytest.mark.long
def test_photos_that_were_flagged_are_left_out(export: Path) -> None:
    (export.parent / "flagged.csv").write_text("photo\nphoto-1\n")

    assert set(collected(export, "--flagged", export.parent / "flagged.csv")) == {"a", "far"}


@pytest.mark.long
def test_another_seed_draws_another_sparrow(export: Path) -> None:
    drawn = [set(collected(export, "--cap", 1, "--seed", seed)) for seed in range(2)]

    assert drawn == [{"far", "tit"}, {"a", "tit"}]


@pytest.mark.parametrize(
    ("words", "dropped"),
    [
        (("--grade", "casual"), {"another quality grade": 3}),
        (("--grade", "casual", "--grade", "research"), {}),
        (("--licence", "CC0"), None),
    ],
)
def test_which_observations_are_wanted(export: Path, words: tuple[str, ...], dropped: dict[str, int] | None) -> None:
    shown = run_cli("build", "inat", export, "--dry-run", *words, "--json")

    if dropped is None:
        assert "licence CC BY not wanted" in str(shown.exception)
    else:
        assert json.loads(shown.stdout)["steps"][1]["dropped"] == dropped


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--clusters", 0), "cap, clusters and the units of distance are more than 0"),
        (("--space-km", 0), "cap, clusters and the units of distance are more than 0"),
        (("--time-days", 0), "cap, clusters and the units of distance are more than 0"),
        (("--face", 1.5), "how sure a face is goes from 0 to 1, not 1.5; give another --face"),
        (("--threads", 0), "0.25 GiB of memory or more and a thread, not 3 and 0"),
        (("--groups", "families"), "not 'families'"),
        (("--ranges", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_what_makes_no_collection_is_refused(export: Path, words: tuple[object, ...], sentence: str) -> None:
    refused = run_cli("build", "inat", export, "--out", export.parent / "set", *words)

    assert refused.exit_code != 0 and sentence in str(refused.exception)


# -- pairs ----------------------------------------------------------------------------------------------------------


def captions(out: Path) -> list[str]:
    return [row["caption"] for path in out.rglob(CAPTIONS) for row in pq.read_table(path).to_pylist()]


def test_pairs_of_cc12m_without_those_of_a_list(tmp_path: Path) -> None:
    file = cc12m(tmp_path / "0.tar")
    (tmp_path / "without.txt").write_text("000\n")

    every = run_json("build", "pairs", "cc12m", file, "--out", tmp_path / "all")
    some = run_json("build", "pairs", "cc12m", file, "--out", tmp_path / "some", "--without", tmp_path / "without.txt")

    assert len(captions(tmp_path / "all")) == len(captions(tmp_path / "some")) + 1
    assert some["left_out"]["is left out by --without"] == 1 and every["out"] == str(tmp_path / "all")


def test_pairs_of_biotrove_are_drawn_and_left_to_be_captioned(tmp_path: Path) -> None:
    file = metadata(tmp_path / "all.parquet", range(1, 31))
    (tmp_path / "without.txt").write_text("".join(f"{id}\n" for id in range(1, 11)))
    line = ("build", "pairs", "biotrove", file, "--images", tmp_path / "photos", "--count", 8)

    run_json(*line, "--out", tmp_path / "a", "--captioned", 3, "--without", tmp_path / "without.txt")
    run_json(*line, "--out", tmp_path / "b", "--captioned", 0, "--without", tmp_path / "without.txt", "--seed", 1)

    drawn = {
        name: {row["photo_id"] for row in pq.read_table(tmp_path / name / "all" / "pictures.parquet").to_pylist()}
        for name in "ab"
    }
    assert [len(ids) for ids in drawn.values()] == [8, 8] and drawn["a"] != drawn["b"]
    assert all(int(id) > 10 for id in drawn["a"] | drawn["b"])
    assert (len(captions(tmp_path / "a")), len(captions(tmp_path / "b"))) == (5, 8)


def test_pairs_of_another_split_of_an_rmir_set(tmp_path: Path) -> None:
    folder = rmir_set(tmp_path / "set")
    (tmp_path / "without.txt").write_text("q2\n")

    run_json("build", "pairs", "rmir", folder, "--out", tmp_path / "test", "--split", "test")
    run_json("build", "pairs", "rmir", folder, "--out", tmp_path / "train", "--without", tmp_path / "without.txt")

    assert captions(tmp_path / "test") == ["why q3?"] and captions(tmp_path / "train") == ["why q1?", "why q1?"]


# -- rerank ---------------------------------------------------------------------------------------------------------


def test_a_reranking_set_is_split_by_lot_and_of_judged_hits_alone(tmp_path: Path) -> None:
    """Each of ten queries has two candidates; in a run of judged hits alone the unjudged one makes room."""
    (tmp_path / "qrels.txt").write_text("".join(f"q{at} 0 a 1\nq{at} 0 b 0\nq{at} 0 c 0\n" for at in range(10)))
    lines = [f"q{at} Q0 {image} {rank} {9 - rank} t\n" for at in range(10) for rank, image in enumerate("axbc", 1)]
    (tmp_path / "run.txt").write_text("".join(lines))
    line = ("build", "rerank", tmp_path / "run.txt", tmp_path / "qrels.txt", "--depth", 3, "--val", 5)

    for name, more in {"usual": (), "other": ("--seed", 1), "judged": ("--judged-only",)}.items():
        run_json(*line, "--out", tmp_path / name, *more)

    names = ("usual", "other", "judged")
    splits = {name: (tmp_path / name / "queries.csv").read_text() for name in names}
    qrels = {name: pq.read_table(tmp_path / name / "qrels.parquet").to_pylist() for name in names}
    images = {name: {row["image"] for row in qrels[name]} for name in names}
    assert splits["usual"] == splits["judged"] != splits["other"]
    assert images["usual"] == {"a", "x", "b"} and images["judged"] == {"a", "b", "c"}


# -- annotate -------------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(tmp_path: Path) -> tuple[str, Path]:
    """Thirty photos on the list of query 1; Ada marked all, the first ten as herons, and Bo the second otherwise."""
    where = ("-g", str(world.gallery(tmp_path, 30, 10)))
    ids = [f"clip-retrieval:pictures/{number:04d}.jpg" for number in range(30)]
    (tmp_path / "q.csv").write_text("query_id,query_text,visible,feasible,of_interest\n1,a heron,yes,yes,yes\n")
    run_json("annotate", "add", tmp_path / "q.csv", *where)
    run_json("annotate", "list", "1", "--label", "kind=heron", "--label", "kind=other", *where)
    for who, marks in {"Ada": ["y"] * 10 + ["n"] * 20, "Bo": ["y", "n"]}.items():
        table = [f"{id},{mark}\n" for id, mark in zip(ids, marks, strict=False)]
        (tmp_path / "marks.csv").write_text("image,mark\n" + "".join(table))
        run_json("annotate", "mark", "1", tmp_path / "marks.csv", "--as", who, *where)
    return where


@pytest.mark.long
def test_an_hour_costs_what_is_paid_for_it(labelled: tuple[str, Path], tmp_path: Path) -> None:
    """Thirty marks came at once, and one a moment later; at a billion an hour the moment costs something."""
    (tmp_path / "later.csv").write_text("image,mark\nclip-retrieval:pictures/0029.jpg,d\n")
    run_json("annotate", "mark", "1", tmp_path / "later.csv", "--as", "Ada", *labelled)
    costs = [
        run_json("annotate", "status", "1", *labelled, "--wage", wage)["1"]["annotators"]["Ada"]["cost"]
        for wage in (0, 10**9, 2 * 10**9)
    ]

    assert costs[0] == 0 < costs[1] and costs[2] == pytest.approx(2 * costs[1], abs=0.011)


@pytest.mark.long
def test_two_who_labelled_the_same_differ_until_it_is_settled(labelled: tuple[str, Path]) -> None:
    (pair,) = run_json("annotate", "agreement", *labelled)["1"]["pairs"]
    (dispute,) = run_json("annotate", "disputes", *labelled)["1"]
    settled = run_cli("annotate", "settle", "1", dispute["image"], "n", "--as", "Cy", *labelled)

    assert (pair["photos"], pair["agreed"]) == (2, 0.5)
    assert dispute["image"].endswith("0001.jpg") and dispute["marks"] == {"Ada": "y", "Bo": "n"}
    assert settled.exit_code == 0 and run_json("annotate", "disputes", *labelled) == {"1": []}


@pytest.mark.long
def test_what_nobody_disputes_is_not_settled(labelled: tuple[str, Path]) -> None:
    (dispute,) = run_json("annotate", "disputes", *labelled)["1"]
    agreed = dispute["image"].replace("0001.jpg", "0000.jpg")
    refused = run_cli("annotate", "settle", "1", agreed, "n", "--as", "Cy", *labelled)

    assert isinstance(refused.exception, UsageError) and "nothing to settle" in str(refused.exception)


def test_who_disagrees_settles_their_own_dispute_only_when_they_say_so(labelled: tuple[str, Path]) -> None:
    (dispute,) = run_json("annotate", "disputes", *labelled)["1"]
    word = ("annotate", "settle", "1", dispute["image"], "n", "--as", "Bo", "--note", "a stork", *labelled)
    refused, settled = run_cli(*word), run_cli(*word, "--own")

    assert isinstance(refused.exception, UsageError) and "their own dispute" in str(refused.exception)
    assert settled.exit_code == 0 and run_json("annotate", "disputes", *labelled) == {"1": []}
    with AnnotationStore(Path(labelled[1]) / "ledger.sqlite") as store:
        assert [note[:2] for note in store.team.notes("1")[dispute["image"]]] == [("Bo", "a stork")]


@pytest.mark.long
def test_flags_are_raised_listed_and_leave_the_set(labelled: tuple[str, Path], tmp_path: Path) -> None:
    photo = "clip-retrieval:pictures/0003.jpg"
    for kind, reason in (("face", ""), ("other", "a drawing")):
        assert run_cli("annotate", "flag", photo, kind, "--as", "Ada", "--reason", reason, *labelled).exit_code == 0
    wrong = [
        run_cli("annotate", "flag", *what, "--as", "Ada", *labelled) for what in (("none", "face"), (photo, "ugly"))
    ]
    flags = run_json("annotate", "flags", "--out", tmp_path / "flags.csv", *labelled)["flags"]
    counts = run_json("annotate", "export", tmp_path / "set", "--without-flagged", *labelled)["queries"]["1"]

    assert [(one["kind"], one["reason"], one["person"]) for one in flags] == [
        ("face", "", "Ada"),
        ("other", "a drawing", "Ada"),
    ]
    assert all(isinstance(one.exception, UsageError) for one in wrong) and counts["labelled"] == 29
    assert "0003,0003.jpg,face,,Ada," in (tmp_path / "flags.csv").read_text()


@pytest.mark.long
def test_queries_are_given_and_taken_and_a_team_has_a_line_of_its_own(labelled: tuple[str, Path]) -> None:
    given = run_cli("annotate", "assign", "Bo", "1", "--as", "Lea", *labelled)
    with AnnotationStore(Path(labelled[1]) / "ledger.sqlite") as store:
        assigned = store.team.assigned()
    run_cli("annotate", "assign", "Bo", "1", "--as", "Lea", "--take", *labelled)
    with AnnotationStore(Path(labelled[1]) / "ledger.sqlite") as store:
        left = store.team.assigned()

    assert given.exit_code == 0 and (assigned, left) == ({"1": ["Bo"]}, {})
    assert run_json("annotate", "status", *labelled)["1"]["together"]["labelled"] == 30
    assert "all together: 9 relevant of 30" in run_cli("annotate", "status", *labelled).stdout


@pytest.mark.long
def test_an_audit_draws_as_many_as_asked_and_the_same_by_the_same_seed(tmp_path: Path) -> None:
    where = ("-g", world.gallery(tmp_path, 40, 5))
    drawn = []
    for id, seed in (("1", 7), ("2", 7), ("3", 8)):
        run_json("annotate", "add", "--id", id, "--text", f"a heron {id}", *where)
        run_json("annotate", "list", id, "--nearest", 3, "-e", "starter", *where)
        audit = run_json("annotate", "audit", id, "--as", "Ada", "--size", 6, "--seed", seed, *where)
        drawn.append([photo["image"] for photo in audit["photos"]])

    assert [len(photos) for photos in drawn] == [6, 6, 6] and drawn[0] != drawn[2]


@pytest.mark.long
def test_a_second_person_joins_an_audit_of_which_a_share_is_labelled_twice(tmp_path: Path) -> None:
    where = ("-g", world.gallery(tmp_path, 12, 3))
    lines = [f"1 Q0 pictures/{photo:04d}.jpg {photo + 1} {-photo} t" for photo in range(12)]
    (tmp_path / "run.txt").write_text("\n".join(lines))
    run_json("annotate", "add", "--id", "1", "--text", "a heron", *where)
    run_json("annotate", "list", "1", "--run", tmp_path / "run.txt", *where)

    drawn = run_json("annotate", "audit", "1", "--as", "Ada", "--size", 10, "--twice", 0.2, *where)
    joined = run_json("annotate", "audit", "1", "--as", "Bo", "--join", *where)
    alone = run_cli("annotate", "audit", "1", "--as", "Cy", *where)

    assert joined == drawn and len(drawn["photos"]) == 10
    assert isinstance(alone.exception, UsageError) and "10 photos of the audit are still" in str(alone.exception)
    with AnnotationStore(where[1] / "ledger.sqlite") as store:
        number = store.audit_number("1", "Bo")
        assert number is not None and store.auditors(number) == ["Ada", "Bo"] and len(store.shares.twice(number)) == 2
        early = run_cli("annotate", "audit", "1", "--as", "Ada", "--release", *where)
        store.mark("1", "Ada", {photo["image"]: "n" for photo in drawn["photos"]})
        released = run_json("annotate", "audit", "1", "--as", "Ada", "--release", *where)
        audit = standing(store, "1", "Ada").audit

    assert isinstance(early.exception, UsageError) and "waits for the label of a second person" in str(early.exception)
    assert released == {"query": "1", "released": 2} and audit is not None and audit.done == audit.size == 10


def test_the_photos_of_a_ranking_are_listed(tmp_path: Path) -> None:
    where = ("-g", world.gallery(tmp_path, 12, 3))
    (tmp_path / "run.txt").write_text("1 Q0 pictures/0004.jpg 1 2 t\n1 Q0 pictures/0002.jpg 2 1 t\n")
    run_json("annotate", "add", "--id", "1", "--text", "a heron", *where)

    assert run_json("annotate", "list", "1", "--run", tmp_path / "run.txt", *where) == {
        "query": "1",
        "new": 2,
        "listed": 2,
    }


@pytest.mark.long
def test_only_sets_without_problems_are_exported_and_reranked_as_deep_as_asked(
    labelled: tuple[str, Path], tmp_path: Path
) -> None:
    (dispute,) = run_json("annotate", "disputes", *labelled)["1"]
    run_cli("annotate", "settle", "1", dispute["image"], "y", "--as", "Cy", *labelled)
    run_json("annotate", "add", "--id", "2", "--text", "another heron", *labelled)
    run_json("annotate", "list", "2", "--nearest", 4, *labelled)
    (tmp_path / "run.txt").write_text("2 Q0 clip-retrieval:pictures/0000.jpg 1 2 t\n")
    (tmp_path / "marks.csv").write_text("image,mark\nclip-retrieval:pictures/0000.jpg,d\n")
    run_json("annotate", "list", "2", "--run", tmp_path / "run.txt", *labelled)
    run_json("annotate", "mark", "2", tmp_path / "marks.csv", "--as", "Ada", *labelled)
    subset = ("--rerank", tmp_path / "deep", "--depth", 15, "--layout", "inquire-rerank")

    every = run_json("annotate", "export", tmp_path / "all", *labelled)["queries"]
    survivors = run_json("annotate", "export", tmp_path / "kept", "--kept", *labelled, *subset)["queries"]

    rows = [row for path in (tmp_path / "deep").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert set(survivors) < set(every) == {"1", "2"}
    assert Counter(row["query"] for row in rows) == {"a heron": 15}


# -- builders that ask a model --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rmir_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rmir.photos(tmp_path_factory.mktemp("rmir"), ("hammer1", "plier1", "dam1", "windmill1", "pencil", "erasers"))


@pytest.fixture(scope="module")
def recos_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recos.photos(tmp_path_factory.mktemp("recos"), ("windmill1", "windmill2", "fish1", "fish2", "dam1", "dam2"))


@pytest.fixture
def paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and a table by which each request of the doubles, 100 tokens in, costs 10 cents."""
    pytest.importorskip("openai")
    models = "".join(f'["{name}"]\ninput = 1000\noutput = 0\n' for name in ("teacher", "first", "second", "writer"))
    (tmp_path / "eyespot").mkdir()
    (tmp_path / "eyespot" / "prices.toml").write_text(models)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def steps(found: Any) -> dict[str, Any]:
    return {one["name"]: one for one in found["steps"]}


@pytest.mark.long
def test_a_trial_of_rmir_asks_about_few_photos_and_its_audit_is_as_large_as_asked(
    rmir_photos: Path, tmp_path: Path
) -> None:
    place = rmir.recipe(tmp_path, Path("elsewhere"))
    line = ("build", "rmir", place, "-g", rmir_photos)

    trial = run_json(*line, "--out", tmp_path / "trial", "--limit", 2)
    whole = run_json(*line, "--out", tmp_path / "whole", "--audit", 1, "--pictures")

    assert (steps(trial)["inputs"]["kept"], steps(whole)["inputs"]["kept"]) == (2, 6)
    assert max(whole["audit"].values()) <= 2
    assert b"JFIF" in b"".join(path.read_bytes() for path in (tmp_path / "whole/set/mteb").rglob("*.parquet"))
    assert b"JFIF" not in b"".join(path.read_bytes() for path in (tmp_path / "trial/set/mteb").rglob("*.parquet"))
    agreement = run_json("build", "rmir-audit", place, "--out", tmp_path / "whole", "-g", rmir_photos)
    assert [one["cases"] for one in agreement["agreement"]] == [0] * len(agreement["agreement"])


def test_a_trial_of_recos_has_few_pictures_of_the_gallery_named(recos_photos: Path, tmp_path: Path) -> None:
    place = recos.recipe(tmp_path, Path("elsewhere"), draw="subtasks = {}", collect=COLLECT)
    line = ("build", "recos", place, "-g", f"own={recos_photos}", "--dry-run", "--out", tmp_path / "out")

    whole, trial = steps(run_json(*line)), steps(run_json(*line, "--limit", 2))

    assert (whole["caption"]["records"], trial["caption"]["records"]) == (4, 2)


COLLECT = '[steps.subtasks.colour]\ncount = 4\nwords = ["red", "blue", "green", "white"]'


@pytest.fixture
def photographed(rmir_photos: Path, recos_photos: Path) -> dict[str, Path]:
    return {"rmir": rmir_photos, "recos": recos_photos}


def line_of(verb: str, place: Path, photos: Path, url: str) -> Sequence[object]:
    """The line that makes a small set with a model behind this address, asked one thing at a time."""
    if verb == "rmir":
        few = {"inputs": "count = 3", "questions": "workers = 1"}
        return "build", "rmir", rmir.recipe(place, photos, rmir.behind(url), **few), "--out", place / "out"
    settings = {"draw": "subtasks = {}", "collect": COLLECT, "caption": 'model = "writer"\nworkers = 1'}
    named = recos.recipe(place, photos, recos.behind(url), **settings)
    return "build", "recos", named, "-g", f"own={photos}", "--out", place / "out"


def script_of(verb: str, breaks: float = 0.0) -> Any:
    """A model that fails to answer a given number of times."""
    return rmir.Scripted(rmir.Rates(breaks=breaks)) if verb == "rmir" else recos.Scripted(recos.Rates(breaks=breaks))


@pytest.mark.usefixtures("paid")
@pytest.mark.parametrize("verb", ["rmir", "recos"])
@pytest.mark.parametrize("option", ["--budget-calls", "--budget-money"])
def test_building_ends_when_the_budget_is_spent(
    verb: str, option: str, photographed: dict[str, Path], tmp_path: Path
) -> None:
    """Of money there is enough for the first request, as dear as it may become, and not for another beside it."""
    limit = 2 if option == "--budget-calls" else {"rmir": 1.8, "recos": 1.2}[verb]
    with Double(then=script_of(verb)) as server:
        cut = run_cli(*line_of(verb, tmp_path, photographed[verb], server.url), option, limit)
        calls = len(server.seen)

    assert isinstance(cut.exception, BudgetSpent) and calls == (2 if limit == 2 else 1)


@pytest.mark.long
@pytest.mark.usefixtures("paid")
@pytest.mark.parametrize("verb", ["rmir", "recos"])
def test_what_failed_is_asked_again_when_told_so(verb: str, photographed: dict[str, Path], tmp_path: Path) -> None:
    counts = []
    with Double(then=script_of(verb, breaks=1.0)) as server:
        for more in ((), (), ("--retry-failed",)):
            run_cli(*line_of(verb, tmp_path, photographed[verb], server.url), *more)
            counts.append(len(server.seen))

    assert 0 < counts[0] == counts[1] < counts[2]


def table_of(verb: str) -> str:
    return {"rmir": "queries", "recos": "captions"}[verb]


@pytest.mark.long
@pytest.mark.usefixtures("paid")
@pytest.mark.parametrize("verb", ["rmir", "recos"])
def test_a_run_that_lost_records_leaves_the_earlier_set_unless_told_to_replace_it(
    verb: str, photographed: dict[str, Path], tmp_path: Path
) -> None:
    """A whole set; then another seed, under which the model gives no answer, as of a server that is broken."""
    out = tmp_path / "out"
    with Double(then=script_of(verb)) as server:
        line = line_of(verb, tmp_path, photographed[verb], server.url)
        recipe = Path(str(line[2]))
        recipe.write_text(recipe.read_text().replace("k = 4", "k = 2"))
        run_json(*line)
        before = (out / "set" / f"{table_of(verb)}.parquet").read_bytes()
        recipe.write_text(recipe.read_text().replace("seed = 3", "seed = 4"))
        server.then = script_of(verb, breaks=1.0)
        lost = run_cli(*line, "--json")
        between = (out / "set" / f"{table_of(verb)}.parquet").read_bytes()
        beside = (out / "set-incomplete" / "card.html").is_file()
        replaced = run_cli(*line, "--replace", "--json")
        after = (out / "set" / f"{table_of(verb)}.parquet").read_bytes()

    assert between == before != after and lost.exit_code != 0 and replaced.exit_code != 0
    assert beside and not (out / "set-incomplete").exists()
    # Without a caption the error names the card that says why
    says = "the earlier set stays in" if verb == "rmir" else str(out / "set-incomplete")
    assert says in lost.stderr + str(lost.exception)


@pytest.mark.usefixtures("paid")
def test_captions_by_a_model_end_when_the_money_is_spent(
    recos_photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Double() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        line = ("build", "captions", "--out", tmp_path / "c.csv", "-g", recos_photos, "--by", "openai:writer")
        cut = run_cli(*line, "--common", "title", "--ledger", tmp_path / "ledger.sqlite", "--budget-money", 0.25)
        calls = len(server.seen)

    assert calls == 2 and "$0.25" in str(cut.exception) + cut.stderr
