"""Options of the verbs that build, each with a value that changes what comes out."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.curate.pair_set import CAPTIONS, PICTURES
from eyespot.curate.pairs.published import TAXONOMY
from tests.cli.conftest import done, run_json
from tests.command import refuses, run_eyespot
from tests.pages import ROOT, run_page
from tests.worlds import inat, recos, rmir
from tests.worlds.servers import YES, Double, Response


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
def test_a_seed_draws_and_flags_and_poor_accuracy_count(export: Path) -> None:
    (export.parent / "flagged.csv").write_text("photo\nphoto-1\n")

    drawn = [set(collected(export, "--cap", 1, "--seed", seed)) for seed in range(2)]
    strict = collected(export, "--accuracy", 5, "--flagged", export.parent / "flagged.csv")

    assert drawn == [{"far", "tit"}, {"a", "tit"}]
    assert set(strict) == {"a", "far"} and all(one["coarsened"] for one in strict.values())


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "dropped"), [("--grade casual", {"another quality grade": 3}), ("--grade casual --grade research", {})]
)
def test_which_observations_are_wanted(export: Path, words: str, dropped: dict[str, int]) -> None:
    shown = run_eyespot("build", "inat", export, "--dry-run", *words.split(), "--json")

    assert json.loads(shown.stdout)["steps"][1]["dropped"] == dropped


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", 2),
        *((f"--out set {option} 0", 2) for option in ("--clusters", "--space-km", "--time-days", "--threads")),
        *((f"--out set {wrong}", 2) for wrong in ("--face 1.5", "--groups families", "--years last", "--memory nan")),
        ("--out set --mapping nowhere.csv", 1),
        ("--out set --photos nowhere", 2),
        ("--out set --years 1999", 4),
        ("--out photos", 2),
        ("--dry-run --sample 0", 2),
        ("--dry-run --licence CC0", 4),
    ],
)
def test_what_makes_no_collection_is_refused(export: Path, words: str, code: int) -> None:
    refuses("build", "inat", "export", *words.split(), code=code, cwd=export.parent)


CHECKS = ("--check", "decode", "--check", "empty")


@pytest.mark.long
def test_without_photos_it_says_what_to_fetch_and_a_missing_one_is_a_failure(export: Path) -> None:
    world = export.parent
    shown = done("build", "inat", "export", "--out", "set", cwd=world)
    (world / "photos" / "1.jpg").unlink()
    done("build", "inat", "export", "--out", "set", "--photos", "photos", *CHECKS, cwd=world, code=3)
    assert "download.csv" in shown.stderr
    assert shown.stdout.splitlines()[1] == "filtered     4 in, 3 kept; 1 another quality grade"


@pytest.mark.long
def test_a_trial_counts_only(export: Path) -> None:
    report = run_json("build", "inat", "export", "--dry-run", "--sample", "2", cwd=export.parent)
    assert (report["steps"][0]["came"], report["first"]) == (2, 2)
    assert sorted(path.name for path in export.parent.iterdir()) == ["export", "photos"]


def captions(out: Path) -> list[str]:
    return [row["caption"] for path in out.rglob(CAPTIONS) for row in pq.read_table(path).to_pylist()]


def test_pairs_of_biotrove_are_drawn_and_left_to_be_captioned(tmp_path: Path) -> None:
    ids = list(range(1, 31))
    named = {name: ["Ardea"] * 30 for name in TAXONOMY}
    pq.write_table(pa.table({"photo_id": ids, **named, "photo_url": ["https://x/1.jpg"] * 30}), tmp_path / "a.parquet")
    (tmp_path / "without.txt").write_text("".join(f"{id}\n" for id in range(1, 11)))
    line = ("build", "pairs", "biotrove", tmp_path / "a.parquet", "--images", tmp_path / "photos", "--count", 8)

    run_json(*line, "--out", tmp_path / "a", "--captioned", 3, "--without", tmp_path / "without.txt")
    run_json(*line, "--out", tmp_path / "b", "--captioned", 0, "--without", tmp_path / "without.txt", "--seed", 1)

    tables = {name: next((tmp_path / name).rglob(PICTURES)) for name in "ab"}
    drawn = {name: set(pq.read_table(path)["photo_id"].to_pylist()) for name, path in tables.items()}
    assert [len(ids) for ids in drawn.values()] == [8, 8] and drawn["a"] != drawn["b"]
    assert all(int(id) > 10 for id in drawn["a"] | drawn["b"])
    assert (len(captions(tmp_path / "a")), len(captions(tmp_path / "b"))) == (5, 8)


def test_pairs_of_another_split_of_an_rmir_set(tmp_path: Path) -> None:
    splits = {"q1": "train", "q2": "train", "q3": "test"}
    queries = [{"id": id, "image": id, "question": f"why {id}?", "split": split} for id, split in splits.items()]
    qrels = [{"query": id, "image": "x", "grade": 1} for id in splits]
    for name, rows in {"queries": queries, "qrels": qrels, "pool": [{"image": "x"}]}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "without.txt").write_text("q2\n")

    run_json("build", "pairs", "rmir", tmp_path, "--out", tmp_path / "a", "--split", "test")
    run_json("build", "pairs", "rmir", tmp_path, "--out", tmp_path / "b", "--without", tmp_path / "without.txt")

    assert captions(tmp_path / "a") == ["why q3?"] and captions(tmp_path / "b") == ["why q1?"]


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
def test_a_trial_of_rmir_asks_about_few_photos(rmir_photos: Path, tmp_path: Path) -> None:
    place = rmir.recipe(tmp_path, Path("elsewhere"))
    line = ("build", "rmir", place, "-g", rmir_photos)

    trial = run_json(*line, "--out", tmp_path / "trial", "--limit", 2)
    whole = run_json(*line, "--out", tmp_path / "whole", "--audit", 1, "--pictures")

    assert (steps(trial)["inputs"]["kept"], steps(whole)["inputs"]["kept"]) == (2, 6)
    assert max(whole["audit"].values()) <= 2
    assert b"JFIF" in b"".join(path.read_bytes() for path in (tmp_path / "whole/set/mteb").rglob("*.parquet"))
    assert b"JFIF" not in b"".join(path.read_bytes() for path in (tmp_path / "trial/set/mteb").rglob("*.parquet"))


@pytest.mark.parametrize(
    ("verb", "photos"), [("rmir", 1), *(pytest.param("recos", photos, marks=pytest.mark.long) for photos in (1, 3))]
)
def test_a_preview_shows_its_photos_and_is_paid_for_once(
    verb: str, photos: int, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Double(then=script_of(verb)) as server:
        line = line_of(verb, tmp_path, request.getfixturevalue(f"{verb}_photos"), server.url)
        preview = run_json(*line, "--preview", photos)
        paid = len(server.seen)
        whole = run_json(*line)

    assert len(preview["records"]) == photos and preview["spent"]["calls"] == paid > 0
    assert preview["spent"]["money"] is None  # at a price that nobody knows
    made = sum(map(len, whole["queries"].values())) if verb == "rmir" else whole["versions"]["v0"]["captions"]
    assert ">Preview of out<" in (tmp_path / "out" / "preview.html").read_text() and made > 0
    assert sum(step["calls"] for step in whole["steps"]) == len(server.seen)


COLLECT = '[steps.subtasks.colour]\ncount = 4\nwords = ["red", "blue", "green", "white"]'


def line_of(verb: str, place: Path, photos: Path, url: str) -> Sequence[object]:
    """The line that makes a small set with a model behind this address, asked one thing at a time."""
    if verb == "rmir":
        few = {"inputs": "count = 3", "questions": "workers = 1"}
        return "build", "rmir", rmir.recipe(place, photos, rmir.behind(url), **few), "--out", place / "out"
    settings = {"draw": "subtasks = {}", "collect": COLLECT, "caption": 'model = "writer"\nworkers = 1'}
    settings["discriminate"] = 'model = "writer"\nk = 2\ntemperature = 0.01\neta = 0.9\nrounds = 2\nat_limit = "keep"'
    named = recos.recipe(place, photos, recos.behind(url), **settings)
    return "build", "recos", named, "-g", f"own={photos}", "--out", place / "out"


def script_of(verb: str, breaks: float = 0.0) -> Any:
    """A model that fails to answer a given number of times."""
    return rmir.Scripted(rmir.Rates(breaks=breaks)) if verb == "rmir" else recos.Scripted(recos.Rates(breaks=breaks))


@pytest.mark.usefixtures("paid")
def test_captions_by_a_model_end_when_the_money_is_spent(recos_photos: Path, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 1}  # a dollar; the first request is estimated at less
    with Double(then=Response(data={**YES.data, "usage": usage})) as server:
        line = ("build", "captions", "--out", tmp_path / "c.csv", "-g", recos_photos, "--by", "openai:writer")
        more = ("--common", "title", "--ledger", tmp_path / "ledger.sqlite", "--budget-money", 2.5)
        cut = done(*line, *more, code=3, OPENAI_BASE_URL=server.url)

        assert len(server.seen) == 2 and "$2.50" in cut.stderr


@pytest.mark.long
@pytest.mark.usefixtures("paid")
def test_what_failed_is_asked_again_when_told_so(recos_photos: Path, tmp_path: Path) -> None:
    counts = []
    with Double(then=script_of("recos", breaks=1.0)) as server:
        for more in ((), (), ("--retry-failed",)):
            run_eyespot(*line_of("recos", tmp_path, recos_photos, server.url), *more)
            counts.append(len(server.seen))

    assert 0 < counts[0] == counts[1] < counts[2]


@pytest.mark.long
@pytest.mark.usefixtures("paid")
@pytest.mark.parametrize(("verb", "table"), [("rmir", "queries"), ("recos", "captions")])
def test_a_lossy_run_leaves_the_set(verb: str, table: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A whole set; then another seed, under which the model gives no answer, as of a server that is broken."""
    out, found = tmp_path / "out", []
    with Double(then=script_of(verb)) as server:
        line = line_of(verb, tmp_path, request.getfixturevalue(f"{verb}_photos"), server.url)
        recipe = Path(str(line[2]))
        done(*line)
        found.append((out / "set" / f"{table}.parquet").read_bytes())
        recipe.write_text(recipe.read_text().replace("seed = 3", "seed = 4"))
        server.then = script_of(verb, breaks=1.0)
        lost = run_eyespot(*line)
        found.append((out / "set" / f"{table}.parquet").read_bytes())
        beside = (out / "set-incomplete" / "card.html").is_file()
        replaced = run_eyespot(*line, "--replace")
        found.append((out / "set" / f"{table}.parquet").read_bytes())

    assert found[0] == found[1] != found[2] and lost.returncode != 0 and replaced.returncode != 0
    assert beside and not (out / "set-incomplete").exists()
    # Without a caption the error names the card that says why
    assert ("the earlier set stays in" if verb == "rmir" else str(out / "set-incomplete")) in lost.stderr


@pytest.mark.long
def test_the_page_runs_as_it_stands(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / ".eyespot").symlink_to(sample_gallery)

    assert [line.stderr for line in run_page(ROOT / "docs" / "research" / "captions.md", tmp_path)] == [""] * 3
    with (tmp_path / "captions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "caption"] and len(rows) == 20
    assert (tmp_path / "own.parquet").stat().st_size > 0


def test_a_dry_run_of_captions_writes_nothing(sample_gallery: Path, tmp_path: Path) -> None:
    words = ("build", "captions", "--out", "c.csv", "-g", sample_gallery)

    report = run_json(*words, "--dry-run", cwd=tmp_path)

    assert not list(tmp_path.iterdir()) and report == run_json(*words, cwd=tmp_path)
    assert (report["captions"], report["without"]) == (20, {"no label to speak of": 188})


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--species taxon", 2),
        ("--templates none.txt", 2),
        ("--out c.txt", 2),
        ("--common camera --species camera", 4),
        ("-g nowhere", 2),
    ],
)
def test_what_cannot_be_captioned_is_one_sentence(words: str, code: int, sample_gallery: Path, tmp_path: Path) -> None:
    refuses("build", "captions", "--out", "c.csv", "-g", sample_gallery, *words.split(), code=code, cwd=tmp_path)

    assert not (tmp_path / "c.csv").exists()
