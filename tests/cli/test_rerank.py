"""Re-ranking, wordings and fusion by the command line: what is printed, what it costs, and that it is paid for once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eyespot import rooms, sample
from eyespot.cli import app
from eyespot.gallery.indexing import index
from eyespot.ledger.judgements import Judgements
from eyespot.runs import read_run, write_run
from eyespot.types import EyespotError, Run, UsageError
from tests.command import run_eyespot
from tests.pages import ROOT, blocks, run_page, tools
from tests.worlds import benchmarks as worlds
from tests.worlds.servers import Double, chat, error

NAMES = ("eiffelTower", "bucket", "cup", "chair", "bulb", "dam1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six of the sample photos, indexed once."""
    home = tmp_path_factory.mktemp("made")
    (home / "photos").mkdir()
    for name in NAMES:
        file = f"categorization__{name}.jpg"
        (home / "photos" / file).write_bytes((sample.photos() / file).read_bytes())
    index(home / "g", [str(home / "photos")], [rooms.load("encoders", "starter")])
    return home / "g"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Two queries, one of each split, with one relevant photo each."""
    rows = [("q", "a tower", "test", "plain"), ("r", "a bucket", "val", "plain")]
    worlds.table(
        tmp_path / "own/queries.csv", [dict(zip(("id", "text", "split", "kind"), row, strict=True)) for row in rows]
    )
    relevant = "q 0 categorization__eiffelTower.jpg 1\nr 0 categorization__bucket.jpg 1\n"
    worlds.write(tmp_path / "own/qrels.txt", relevant)
    return tmp_path / "own"


def run_cli(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def run_json(*words: object, code: int = 0) -> Any:
    shown = run_cli(*words, "--json")
    assert shown.exit_code == code, shown.output + str(shown.exception)
    return json.loads(shown.stdout)


def of(path: str) -> str:
    return Path(path).stem.removeprefix("categorization__")


# -- search -----------------------------------------------------------------------------------------------------


def test_json_has_probability_and_judge_of_each_judged_hit(made: Path, ledger: Path) -> None:
    found = run_json(
        "search", "a tower", "-g", made, "--rerank", "encoder:starter", "--depth", 2, "--ledger", ledger, "-k", 3
    )

    first, second, third = found["items"]
    assert first["probability"] == pytest.approx(first["score"], abs=1e-6) and first["judge"] == "encoder:starter"
    assert first["probability"] > second["probability"] and third["probability"] is None and third["judge"] is None
    assert (found["judge"], found["depth"], found["verdicts"]["asked"]) == ("encoder:starter", 2, 2)


def test_the_second_time_is_free_and_one_line_says_so(made: Path, ledger: Path) -> None:
    words = ("search", "a tower", "-g", made, "--rerank", "encoder:starter", "--depth", 4, "--ledger", ledger)

    first, again = run_cli(*words), run_cli(*words)

    assert "eyespot: encoder:starter: 0 verdicts from the ledger, 4 asked" in first.stderr.splitlines()
    assert "eyespot: encoder:starter: 4 verdicts from the ledger, 0 asked" in again.stderr.splitlines()
    assert first.stdout == again.stdout


def test_without_a_ledger_named_it_is_the_gallerys(made: Path) -> None:
    run_cli("search", "a chair", "-g", made, "--rerank", "encoder:starter", "--depth", 3)

    with Judgements(made / "ledger.sqlite") as judgements:
        chair = next(digest for digest, query in judgements.queries().items() if query.terms[0].text == "a chair")
        assert sum(row.judgement.query == chair for row in judgements.rows()) == 3


def test_a_dry_run_asks_nothing(made: Path, ledger: Path) -> None:
    words = ("search", "a tower", "-g", made, "--rerank", "encoder:starter", "--depth", 4, "--ledger", ledger)

    plan = run_json(*words, "--dry-run")
    run_cli(*words[:6], "--depth", 3, "--ledger", ledger)

    assert (plan["pairs"], plan["to_ask"], plan["money"]) == (4, 4, 0)
    assert run_cli(*words, "--dry-run").stdout == "encoder:starter: 4 pairs, 3 in the ledger, 1 to ask\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rerank", "nobody:x"), "no judge 'nobody:x'; there are: "),
        (("--depth", 3), "--depth is about a judge; name one with --rerank"),
        (("--dry-run",), "--dry-run is about a judge"),
        (("--budget-calls", 0), "--budget-calls is about a judge"),
        (("--rerank", "encoder:nope"), "no 'nope' in encoders"),
        (("--rerank", "openai"), "OPENAI_API_KEY|name the model"),
        (("--expand", "no-such-file.json"), "neither a file of terms nor a model"),
    ],
)
def test_what_is_wrong_is_one_sentence(made: Path, words: tuple[object, ...], sentence: str) -> None:
    raised = run_cli("search", "a tower", "-g", made, *words).exception

    assert isinstance(raised, UsageError) and "\n" not in str(raised)
    assert any(part in str(raised) for part in sentence.split("|"))


def test_a_person_needs_a_terminal(made: Path, ledger: Path) -> None:
    shown = run_eyespot("search", "a tower", "-g", made, "--rerank", "person:ada", "--ledger", ledger)

    assert shown.returncode == 2 and shown.stdout == ""
    assert shown.stderr == (
        "eyespot: a person can only be asked on a terminal; run this line in one, or choose another judge\n"
    )


@pytest.mark.long
def test_a_picture_that_is_gone_fails_alone_with_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for name in NAMES[:3]:
        file = f"categorization__{name}.jpg"
        (tmp_path / "photos" / file).write_bytes((sample.photos() / file).read_bytes())
    index(tmp_path / "g", [str(tmp_path / "photos")], [rooms.load("encoders", "starter")])
    (tmp_path / "photos" / "categorization__cup.jpg").unlink()
    words = ("search", "a cup", "-g", tmp_path / "g", "--rerank", "encoder:starter")

    found, shown = run_json(*words, code=3), run_cli(*words)

    assert [item["probability"] is None for item in found["items"]] == [False, False, True]
    assert "1 hits have no verdict (cannot read the picture" in shown.stderr


# -- behind an endpoint -----------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Double() as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        yield double


def test_a_budget_stops_it_and_the_next_run_goes_on(made: Path, ledger: Path, server: Double) -> None:
    words = ("search", "a tower", "-g", made, "--rerank", "openai:tiny", "--ledger", ledger, "--depth", 5)

    first = run_cli(*words, "--budget-calls", 2)
    again = run_cli(*words)

    assert first.exit_code == 3 and "the budget of 2 calls is spent" in first.stderr
    assert again.exit_code == 0 and "2 verdicts from the ledger, 3 asked, 3 calls" in again.stderr
    assert len(server.answered) == 5 and len(first.stdout.splitlines()) == 6


def test_all_calls_are_counted_where_a_budget_cuts_pairs_short(made: Path, ledger: Path, server: Double) -> None:
    words = ("search", "a tower", "-g", made, "--rerank", "openai:tiny", "--ledger", ledger, "--depth", 6)

    found = run_json(*words, "--judge", "answer=votes", "--judge", "votes=3", "--budget-calls", 7, code=3)

    with Judgements(ledger) as judgements:
        recorded = [row.judgement.spent for row in judgements.rows()]
    assert len(server.seen) == found["verdicts"]["calls"] == sum(spent.calls for spent in recorded) == 7
    assert found["verdicts"]["tokens_in"] == sum(spent.tokens_in for spent in recorded) == 700


@pytest.mark.long
def test_a_word_among_probabilities_is_told_and_its_way_out_works(made: Path, ledger: Path, server: Double) -> None:
    server.script = [chat("Yes")]
    words = ("search", "a tower", "-g", made, "--rerank", "openai:tiny", "--ledger", ledger, "--depth", 6)

    first, again = run_json(*words, code=3), run_json(*words, code=3)
    in_words, shown = run_json(*words, "--judge", "answer=words"), run_cli(*words)

    assert first["verdicts"]["unscored"] == 1 and first["items"] == again["items"]
    assert first["items"][-1]["probability"] is None and again["verdicts"]["calls"] == 0
    assert {item["probability"] for item in in_words["items"]} == {1.0} and in_words["verdicts"]["unscored"] == 0
    assert "1 hits were answered on another scale" in shown.stderr and "--judge answer=words" in shown.stderr


def test_the_price_of_a_dry_run_is_that_of_the_table(made: Path, ledger: Path, server: Double, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["tiny"]\ninput = 1000.0\noutput = 0.0\n')
    words = ("search", "a tower", "-g", made, "--rerank", "openai:tiny", "--ledger", ledger, "--dry-run")

    free, paid = run_json(*words), run_json(*words, "--prices", prices)

    assert free["money"] is None and free["to_ask"] == 6
    assert paid["money"] == pytest.approx(paid["tokens"] / 1000, rel=0.01) and not server.seen


def test_a_model_that_fails_for_all_still_shows_the_first_stage(made: Path, ledger: Path, server: Double) -> None:
    server.then = error(422, "no such picture")
    words = ("search", "a tower", "-g", made, "-k", 6)

    plain, judged = run_json(*words), run_json(*words, "--rerank", "openai:tiny", "--ledger", ledger, code=3)

    assert [item["id"] for item in judged["items"]] == [item["id"] for item in plain["items"]]
    assert judged["verdicts"]["failed"] == 6


def test_wordings_of_a_model_are_searched_and_asked_for_once(made: Path, ledger: Path, server: Double) -> None:
    server.then = chat("1. a wall that holds a lake\n2. a bucket\n")
    words = ("search", "a barrage", "-g", made, "--expand", "openai:tiny", "--ledger", ledger)

    first, again = run_cli(*words), run_cli(*words)

    assert "searched as well: a wall that holds a lake; a bucket" in first.stderr
    assert first.stdout == again.stdout and len(server.seen) == 1


# -- wordings ---------------------------------------------------------------------------------------------------


def test_a_table_of_terms_is_searched_as_well(made: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.json"
    terms.write_text(json.dumps({"pail": ["a bucket", "a metal bucket"]}))
    words = ("search", "zzpail pail", "-g", made, "-k", 1)

    expanded = run_json(*words, "--expand", terms)

    assert of(expanded["items"][0]["path"]) == "bucket" and expanded["query"] == "zzpail pail"


# -- eval -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_benchmark_shows_both_stages_and_the_bound(made: Path, own: Path, ledger: Path) -> None:
    words = ("eval", "own", "--data", own, "-g", made, "--rerank", "encoder:starter", "--depth", 3, "--ledger", ledger)

    (task,) = run_json(*words)["tasks"]

    assert [stage["stage"] for stage in task["stages"]] == ["first stage", "best possible of the first 3", "re-ranked"]
    assert "encoder:starter: 0 verdicts from the ledger, 3 asked" in run_cli(*words[:-1], f"{ledger}.other").stderr
    assert "3 verdicts from the ledger, 0 asked" in run_cli(*words).stderr


@pytest.mark.long
def test_a_run_of_files_is_judged_by_the_gallerys_pictures(made: Path, own: Path, ledger: Path, tmp_path: Path) -> None:
    """The run is upside down; a judge of all six puts them as the encoder alone does."""
    words = ("eval", "own", "--data", own, "-g", made)
    run_json(*words, "--out", tmp_path / "first")
    first = read_run(tmp_path / "first/run.parquet")
    write_run(Run.from_orders({"q": [hit.image for hit in reversed(first["q"])]}), tmp_path / "run.txt")
    judge = ("--rerank", "encoder:starter", "--ledger", ledger, "--out", tmp_path / "again")

    run_json(*words, "--run", tmp_path / "run.txt", *judge)

    again = read_run(tmp_path / "again/run.parquet")
    assert [hit.image for hit in again["q"]] == [hit.image for hit in first["q"]]
    assert again.header["judge"] == "encoder:starter" and again.header["verdicts"]["asked"] == 6


@pytest.mark.long
def test_the_same_numbers_again_from_their_summary(made: Path, own: Path, ledger: Path, tmp_path: Path) -> None:
    words = ("eval", "own", "--data", own, "-g", made, "--rerank", "encoder:starter", "--depth", 3, "--ledger", ledger)
    first = run_json(*words)
    worlds.write(tmp_path / "summary.json", first)

    again = run_json("eval", "--from", tmp_path / "summary.json")

    assert [task["measures"] for task in again["tasks"]] == [task["measures"] for task in first["tasks"]]
    assert again["made"]["judge"] == "encoder:starter"


@pytest.mark.long
def test_a_dry_run_of_a_benchmark_counts_all_queries(made: Path, own: Path, ledger: Path) -> None:
    words = ("eval", "own", "--data", own, "-g", made, "--rerank", "encoder:starter", "--depth", 4, "--ledger", ledger)

    assert run_json(*words, "--dry-run")["to_ask"] == 4
    run_json(*words)
    assert run_json(*words, "--dry-run")["to_ask"] == 0


@pytest.mark.long
def test_how_much_the_judge_counts_is_learned_on_the_other_split(made: Path, own: Path, ledger: Path) -> None:
    words = ("eval", "own", "--data", own, "-g", made, "--rerank", "encoder:starter", "--ledger", ledger)

    shown = run_cli(*words, "--blend-from", "val")

    assert shown.exit_code == 0 and "learned on the 1 queries of val by AP" in shown.stderr
    refused = run_cli(*words, "--blend-from", "test").exception
    assert isinstance(refused, UsageError) and "a split other than" in str(refused)


@pytest.mark.long
def test_half_judged_numbers_are_not_shown(made: Path, own: Path, ledger: Path, server: Double) -> None:
    words = ("eval", "own", "--data", own, "-g", made, "--rerank", "openai:tiny", "--ledger", ledger)

    stopped, again = run_cli(*words, "--budget-calls", 2), run_cli(*words)

    assert isinstance(stopped.exception, EyespotError) and stopped.exception.exit_code == 3
    assert stopped.stdout == "" and "2 asked" in str(stopped.exception) and again.exit_code == 0
    with Judgements(ledger) as judgements:
        assert sum(row.judgement.spent.calls for row in judgements.rows()) == len(server.answered) == 6


@pytest.mark.long
def test_a_judge_in_words_scores_as_its_verdicts_in_a_file_do(
    made: Path, own: Path, ledger: Path, server: Double, tmp_path: Path
) -> None:
    """Yes to half of the photos: 1 and 0, whose ties the measures see by either way, and again in the saved run."""
    server.script = [chat(word) for word in ("No", "Yes", "Yes", "No", "Yes")]
    words = ("eval", "own", "--data", own, "-g", made, "--depth", 5)
    judge = ("--rerank", "openai:tiny", "--judge", "answer=words", "--judge", "workers=1", "--ledger", ledger)
    run_json(*words, "--out", tmp_path / "first")

    judged = run_json(*words, *judge, "--out", tmp_path / "second")

    first = [hit.image for hit in read_run(tmp_path / "first/run.parquet")["q"][:5]]
    write_run(Run.from_columns(["q"] * 5, first, (0, 1, 1, 0, 1)), tmp_path / "second.txt")
    by_file = run_json(*words, "--rerank", tmp_path / "second.txt")
    saved = run_json(*words[:4], "--run", tmp_path / "second/run.parquet")
    ((task,), (other,), (again,)) = judged["tasks"], by_file["tasks"], saved["tasks"]
    assert task["measures"] == other["measures"] and task["stages"] == other["stages"]
    assert _means(again) == _means(task) and task["measures"]["AP@50"]["definition"]["ties"] == "average"
    assert task["measures"]["AP@50"]["mean"] in (1 / 3, 1 / 5)  # one of three yes, or one of two no behind them


def _means(task: Any) -> dict[str, float]:
    return {label: found["mean"] for label, found in task["measures"].items()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rerank", "no-such-scores.txt"), "no file no-such-scores.txt of scores, and no judge"),
        (("--dry-run",), "name one with --rerank"),
        (("--blend", 0.5), "--blend is about a judge"),
        (("--run", "run.txt", "--expand", "terms.json"), "--expand changes how a gallery is searched"),
    ],
)
def test_what_is_wrong_with_a_benchmark_is_one_sentence(
    made: Path, own: Path, words: tuple[object, ...], sentence: str
) -> None:
    raised = run_cli("eval", "own", "--data", own, "-g", made, *words).exception

    assert isinstance(raised, UsageError) and sentence in str(raised)


def test_wordings_of_a_benchmarks_queries_are_counted(made: Path, own: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.json"
    terms.write_text(json.dumps({"tower": ["a spire"]}))

    shown = run_cli("eval", "own", "--data", own, "-g", made, "--expand", terms)

    assert shown.exit_code == 0 and f"1 of 1 queries have further wordings by {terms}" in shown.stderr


def test_what_further_wordings_do_for_lingo_is_broken_down(made: Path, own: Path, tmp_path: Path) -> None:
    """Four queries, half of them in words that the encoder has never read."""
    queries = {"eiffelTower": ("zzturris", "yes"), "cup": ("zzpoculum", "yes")}
    queries |= {"bucket": ("a bucket", "no"), "chair": ("a chair", "no")}
    rows = [{"id": name, "text": text, "lingo": lingo} for name, (text, lingo) in queries.items()]
    worlds.table(own / "queries.csv", rows)
    worlds.write(own / "qrels.txt", "".join(f"{name} 0 categorization__{name}.jpg 1\n" for name in queries))
    (tmp_path / "terms.json").write_text(
        json.dumps({"zzturris": ["the eiffel tower"], "zzpoculum": ["a cup", "a coffee cup"]})
    )
    words = ("eval", "own", "--data", own, "-g", made)

    before, after = _by_lingo(run_json(*words)), _by_lingo(run_json(*words, "--expand", tmp_path / "terms.json"))

    assert before["no"] == after["no"] == 1.0 and before["yes"] < after["yes"]


def _by_lingo(found: Any) -> dict[str, float]:
    (task,) = found["tasks"]
    return {group["value"]: group["means"]["AP@50"] for group in task["groups"]["lingo"]}


# -- fuse -------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.txt", tmp_path / "b.txt"
    for path, order in zip(paths, ("xyz", "zyw"), strict=True):
        write_run(worlds.orders(q=order), path)
    return paths


def test_runs_are_fused_into_a_file(two: tuple[Path, Path], tmp_path: Path) -> None:
    """By RRF: z 1/63 + 1/61, y 2/62, x 1/61, w 1/63."""
    shown = run_cli("fuse", *two, "--out", tmp_path / "fused.parquet")

    fused = read_run(tmp_path / "fused.parquet")
    assert "1 queries, 4 hits, by rrf with weights 1, 1" in shown.stdout
    assert [hit.image for hit in fused["q"]] == ["z", "y", "x", "w"] and fused.header["fused"] == "rrf"


def test_weights_are_learned_on_judgements(two: tuple[Path, Path], tmp_path: Path) -> None:
    qrels = worlds.write(tmp_path / "qrels.txt", "q 0 x 1\n")
    words = ("fuse", *two, "--by", "combsum", "--learn", qrels, "-m", "RR", "--out", tmp_path / "fused.txt")

    found = run_json(*words)

    assert found["learned"] == {"measure": "RR", "value": 1.0, "alone": [1.0, pytest.approx(0)]}
    assert read_run(tmp_path / "fused.txt")["q"][0].image == "x"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("{a}", "--out", "{out}"), "two runs or more"),
        (("{a}", "{b}", "--weights", "1,x", "--out", "{out}"), "a number for each run"),
        (("{a}", "{b}", "--weights", "1", "--out", "{out}"), "2 runs need as many weights, not 1"),
        (("{a}", "{b}", "--by", "best", "--out", "{out}"), "no 'best' among the ways to fuse"),
        (("{a}", "{b}", "--weights", "1,1", "--learn", "{a}", "--out", "{out}"), "given or learned, not both"),
    ],
)
def test_what_cannot_be_fused_is_one_sentence(
    two: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    out = tmp_path / "out.txt"

    raised = run_cli("fuse", *(word.format(a=two[0], b=two[1], out=out) for word in words)).exception

    assert isinstance(raised, UsageError) and sentence in str(raised) and not out.exists()


# -- the page -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_page_on_judges_runs_as_it_stands(
    tmp_path: Path, sample_gallery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The photos are indexed before, which spares the page's first line its work."""
    page, env = ROOT / "docs" / "judges.md", tools(tmp_path)
    shutil.copytree(sample_gallery, tmp_path / "photos")

    run_page(page, tmp_path, env, monkeypatch)
    (code,) = blocks(page, "python")
    python = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert "'from_ledger': 20, 'asked': 0" in python.stdout and "indmill" in python.stdout.splitlines()[-1]


@pytest.mark.long
def test_the_page_on_calibration_runs_as_it_stands(
    tmp_path: Path, sample_gallery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, env = ROOT / "docs" / "calibration.md", tools(tmp_path)
    shutil.copytree(sample_gallery, tmp_path / "photos")

    plan, *_ = run_page(page, tmp_path, env, monkeypatch)[1:]
    python = [sys.executable, "-c", "\n".join(blocks(page, "python"))]
    made = subprocess.run(python, cwd=tmp_path, env=env, capture_output=True, text=True)

    assert plan == "encoder:starter: 30 pairs, 0 in the ledger, 30 to ask\n"
    assert "42 verdicts from the ledger, 0 asked" in made.stdout, made.stdout
    assert "expected calibration error" in made.stdout and "windmill" in (tmp_path / "hits.html").read_text()


def test_every_judge_is_on_the_page() -> None:
    text = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")

    assert [name for name in rooms.names("judges") if f"`{name}:" not in text] == []
