"""Judges by the command line: what is printed, what it costs, that it is paid for once, calibration, and fusion."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms, sample
from eyespot.ledger.judgements import Judgements
from eyespot.runs import read_qrels, read_run, write_run
from eyespot.types import Judgement, Query, Spent, Term, Verdict
from tests.cli.conftest import FEW, done, gallery_of_samples, run_json
from tests.command import Done, environment, refuses, run_eyespot
from tests.worlds import benchmarks as worlds
from tests.worlds.batches import BatchServer, run_until_killed
from tests.worlds.servers import YES, Double, Response, Seen, chat, message

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Two queries, one of each split, with one relevant photo each."""
    rows = [("q", "a tower", "test"), ("r", "a bucket", "val")]
    worlds.table(tmp_path / "own/queries.csv", [dict(zip(("id", "text", "split"), row, strict=True)) for row in rows])
    relevant = "q 0 categorization__eiffelTower.jpg 1\nr 0 categorization__bucket.jpg 1\n"
    worlds.write(tmp_path / "own/qrels.txt", relevant)
    return tmp_path / "own"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def test_json_has_probability_and_judge_of_each_judged_hit(few_gallery: Path, ledger: Path) -> None:
    found = run_json(
        "search", "a tower", "-g", few_gallery, "--rerank", "encoder:starter", "--depth", 2, "--ledger", ledger, "-k", 3
    )

    first, second, third = found["items"]
    assert first["probability"] == pytest.approx(first["score"], abs=1e-6) and first["judge"] == "encoder:starter"
    assert first["probability"] > second["probability"] and third["probability"] is None and third["judge"] is None
    assert (found["judge"], found["depth"], found["verdicts"]["asked"]) == ("encoder:starter", 2, 2)


def test_a_dry_run_asks_nothing(few_gallery: Path, ledger: Path) -> None:
    words = ("search", "a tower", "-g", few_gallery, "--rerank", "encoder:starter", "--depth", 4, "--ledger", ledger)

    plan = run_json(*words, "--dry-run")
    run_eyespot(*words[:6], "--depth", 3, "--ledger", ledger)

    assert (plan["pairs"], plan["to_ask"], plan["money"]) == (4, 4, 0)
    assert run_eyespot(*words, "--dry-run").stdout == "encoder:starter: 4 pairs, 3 in the ledger, 1 to ask\n"


@pytest.mark.parametrize(
    "words",
    [
        "--rerank nobody:x",
        "--depth 3",
        "--dry-run",
        "--budget-calls 0",
        "--judge batch=2",
        "--calibrate 5",
        "--rerank encoder:nope",
        "--rerank openai",
        "--rerank person:ada",
        "--rerank person:ada --judge batch=2",
        "--rerank encoder:starter --judge batch=2",
        "--rerank encoder:starter --batch",
        "--batch",
        "--expand no-such-file.json",
        "--rerank openai:tiny --likely 0.5",
        "--rerank openai:tiny --accuracy 1,1",
        "--rerank openai:tiny --calibrate 5 --accuracy 0.9",
        "--rerank openai:tiny --calibrate 5 --accuracy 0.9,0.8,5",
        "--rerank openai:tiny --calibrate 5 --accuracy 0.5,0.5",
        "--rerank openai:tiny --calibrate 5 --blend 0.5",
        *(f"--rerank openai:tiny --calibrate 5 --likely 0.5{more}" for more in ("", " --dry-run", " --accuracy 1,1")),
        *(f"--rerank openai:tiny --judge {how}" for how in ("key=secret", "workers=many", "workers=0", "answer=songs")),
        "--rerank openai:tiny --judge requests_per_minute=0",
    ],
)
def test_what_is_wrong_is_one_sentence(words: str, few_gallery: Path, ledger: Path, server: Double) -> None:
    refuses("search", "a tower", "-g", few_gallery, "--ledger", ledger, *words.split())

    assert not server.seen


@pytest.mark.long
def test_a_picture_that_is_gone_fails_alone_with_exit_code_3(tmp_path: Path) -> None:
    photos = [sample.photos() / f"categorization__{name}.jpg" for name in FEW[:3]]
    gallery = gallery_of_samples(tmp_path, photos)
    (tmp_path / "photos" / "categorization__cup.jpg").unlink()
    words = ("search", "a cup", "-g", gallery, "--rerank", "encoder:starter")

    found, shown = run_json(*words, code=3), run_eyespot(*words)

    assert [item["probability"] is None for item in found["items"]] == [False, False, True]
    assert "1 hit without a verdict (cannot read the picture" in shown.stderr


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Double() as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", double.url.removesuffix("/v1"))
        yield double


@pytest.mark.parametrize("batch", [False, True])
def test_a_budget_stops_it_and_the_next_run_goes_on(
    batch: bool, few_gallery: Path, ledger: Path, server: Double
) -> None:
    words = ("search", "a tower", "-g", few_gallery, "--rerank", "openai:tiny", "--ledger", ledger, "--depth", 5)
    batches = BatchServer(lambda _seen: YES)
    if batch:
        words, server.offers = (*words, "--batch"), batches

    first = run_eyespot(*words, "--budget-calls", 2)
    again = run_eyespot(*words)

    assert first.returncode == 3 and "the budget of 2 calls is spent" in first.stderr
    assert again.returncode == 0 and "2 verdicts from the ledger, 3 asked, 3 calls" in again.stderr
    assert (batches.sent.total() if batch else len(server.answered)) == 5 and len(first.stdout.splitlines()) == 6
    doubtful = [run_eyespot("search", "a harp", *words[2:4], *more).stderr for more in ((), words[4:])]
    assert ["no good match" in told for told in doubtful] == [True, False]  # the judge says Yes


@pytest.mark.parametrize("verb", ["search", "eval"])
def test_it_ends_with_the_money(verb: str, few_gallery: Path, own: Path, server: Double, tmp_path: Path) -> None:
    """Each request of the double, 1000 tokens in and 1 out, costs a dollar; the first is estimated at less."""
    server.then = Response(data={**YES.data, "usage": {"prompt_tokens": 1000, "completion_tokens": 1}})
    (tmp_path / "prices.toml").write_text('["tiny"]\ninput = 1000.0\noutput = 0.0\n')
    line = {"search": ("search", "a tower"), "eval": ("eval", "own", "--data", own)}[verb]
    judge = ("--rerank", "openai:tiny", "--judge", "workers=1", "--ledger", tmp_path / "ledger.sqlite")

    cut = done(*line, "-g", few_gallery, *judge, "--prices", tmp_path / "prices.toml", "--budget-money", 2.5, code=3)

    assert "$2.50" in cut.stderr and len(server.seen) == 2


@pytest.mark.long
@pytest.mark.parametrize(("vendor", "reply"), [("openai", YES), ("anthropic", message("7"))])
def test_a_judge_in_batches_says_the_same_and_is_paid_once_whatever_kills_it(
    vendor: str, reply: Response, few_gallery: Path, server: Double, tmp_path: Path
) -> None:
    server.then = reply
    (tmp_path / "prices.toml").write_text('["tiny"]\ninput = 1000.0\noutput = 0.0\nbatch = 0.5\n')
    line = ("search", "a tower", "-g", few_gallery, "--rerank", f"{vendor}:tiny")
    line = (*line, "--prices", tmp_path / "prices.toml", "--ledger")

    at_once = run_json(*line, tmp_path / "at_once.sqlite")
    server.offers = batches = BatchServer(lambda _seen: reply)
    line = (*line, tmp_path / "ledger.sqlite", "--batch")
    assert all(run_until_killed(batches, turn // 2 + 1, bool(turn % 2), *line) for turn in range(4))
    whole, again = run_json(*line), run_json(*line)

    assert [batches.sent.total(), *set(batches.sent.values())] == [6, 1] and len(server.seen) > 6
    assert whole["items"] == at_once["items"] == again["items"]
    counts = [
        {name: found["verdicts"][name] for name in ("calls", "money", "from_ledger")}
        for found in (at_once, whole, again)
    ]
    half = {"calls": 6, "money": pytest.approx(at_once["verdicts"]["money"] / 2), "from_ledger": 0}
    assert at_once["verdicts"]["money"] == pytest.approx(0.6) and counts[1:] == [
        half,
        {"calls": 0, "money": 0, "from_ledger": 6},
    ]


@pytest.mark.long
def test_an_evaluation_in_batches_is_the_same_whatever_kills_it_and_a_terminal_shows_how_far_it_is(
    few_gallery: Path, own: Path, server: Double, tmp_path: Path
) -> None:
    line = ("eval", "own", "--data", own, "-g", few_gallery, "--rerank", "openai:tiny", "--ledger")
    done(*line, tmp_path / "once.sqlite", "--out", tmp_path / "once")
    server.offers = batches = BatchServer(lambda _seen: YES, polls=1)
    line = (*line, tmp_path / "ledger.sqlite", "--batch", "--json", "--out", tmp_path / "batched")
    assert all(run_until_killed(batches, turn // 2 + 1, bool(turn % 2), *line) for turn in range(4))
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    words = [sys.executable, "-m", "eyespot", *map(str, line)]
    made = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, env=environment(), timeout=120, check=True)
    shown = os.read(ours, 1 << 16).decode()
    for end in (ours, theirs):
        os.close(end)

    moment = r"\w{3} \d\d:\d\d"
    assert re.search(rf"batch of tiny, sent {moment}, ends {moment} at the latest: .*2/6", shown), shown
    assert [batches.sent.total(), *set(batches.sent.values())] == [6, 1]
    for name in ("per_query.parquet", "run.parquet", "tables.md", "tables.tex"):
        assert (tmp_path / "batched" / name).read_bytes() == (tmp_path / "once" / name).read_bytes(), name
    once, batched = (json.loads((tmp_path / name / "summary.json").read_bytes()) for name in ("once", "batched"))
    for one in (once, batched):  # what may differ: when, how long, and the note of the cost
        part = one["tasks"][0]
        del one["made"], part["seconds"], one["notes"][-1], part["notes"][-1]
    assert once == batched and json.loads(made.stdout)["tasks"]


@pytest.mark.parametrize("verb", ["search", "eval"])
def test_a_judge_takes_own_words(verb: str, few_gallery: Path, own: Path, server: Double, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('question = "Siehst du {query}?"\nyes = "ja"\nno = "nein"\n')
    server.then = chat("ja", {"ja": 0.9, "nein": 0.1})
    line = {"search": ("search", "a tower"), "eval": ("eval", "own", "--data", own)}[verb]

    judged = (*line, "-g", few_gallery, "--rerank", "openai:tiny", "--wording", tmp_path / "mine.toml")
    run_json(*judged, "--ledger", tmp_path / "ledger.sqlite")

    assert len(server.seen) == 6
    asked = [json.dumps(seen.body["messages"]) for seen in server.seen]
    assert all(json.dumps('Siehst du "a tower"?')[1:-1] in text for text in asked)


@pytest.mark.long
def test_a_benchmark_shows_both_stages_and_the_bound_and_pays_once(few_gallery: Path, own: Path, ledger: Path) -> None:
    line = ("eval", "own", "--data", own, "-g", few_gallery, "--rerank", "encoder:starter", "--ledger", ledger)
    words = (*line, "--depth", 3)

    planned = run_json(*words, "--dry-run")["to_ask"]
    found = run_json(*words)
    worlds.write(own / "summary.json", found)
    again, shown = run_json("eval", "--from", own / "summary.json"), done(*line, "--blend-from", "val")

    (task,), (other,) = found["tasks"], again["tasks"]
    stages = ["first stage", "best possible of the first 3", "re-ranked"]
    assert [stage["stage"] for stage in task["stages"]] == stages and task["measures"] == other["measures"]
    assert (planned, run_json(*words, "--dry-run")["to_ask"]) == (3, 0)
    assert "learned on the 1 query of val by AP" in shown.stderr


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.txt", tmp_path / "b.txt"
    for path, order in zip(paths, ("xyz", "zyw"), strict=True):
        write_run(worlds.orders(q=order), path)
    return paths


def test_runs_are_fused_into_a_file(two: tuple[Path, Path], tmp_path: Path) -> None:
    """By RRF: z 1/63 + 1/61, y 2/62, x 1/61, w 1/63."""
    shown = run_eyespot("fuse", *two, "--out", tmp_path / "fused.parquet")

    fused = read_run(tmp_path / "fused.parquet")
    assert "1 query, 4 hits, by rrf with weights 1, 1" in shown.stdout
    assert [hit.image for hit in fused["q"]] == ["z", "y", "x", "w"] and fused.header["fused"] == "rrf"


def test_a_fused_ranking_replaces_none_of_its_inputs(two: tuple[Path, Path]) -> None:
    before = [path.read_bytes() for path in two]
    refuses("fuse", *two, "--out", two[0].parent / "." / two[0].name)
    assert [path.read_bytes() for path in two] == before


def test_what_a_search_and_metrics_call_k_and_norm_is_not_that_of_fuse(two: tuple[Path, Path], tmp_path: Path) -> None:
    worlds.write(tmp_path / "eyespot.toml", 'k = 5\nnorm = "min-k"\nmeasure = ["RR"]\n')
    assert run_json("fuse", *two, "--out", "fused.json", cwd=tmp_path)["k"] == 60
    worlds.write(tmp_path / "eyespot.toml", "[fuse]\nk = 5\n")
    assert run_json("fuse", *two, "--out", "fused.json", cwd=tmp_path)["k"] == 5


def test_a_run_that_lacks_queries_is_named(two: tuple[Path, Path], tmp_path: Path) -> None:
    write_run(worlds.orders(q="x", p="yz"), tmp_path / "c.txt")
    shown = run_eyespot("fuse", *two, tmp_path / "c.txt", "--out", tmp_path / "fused.json")
    assert [f"{path} ranks nothing for 1 of 2 queries" in shown.stderr for path in two] == [True, True]
    assert "c.txt ranks" not in shown.stderr and list(read_run(tmp_path / "fused.json")) == ["q", "p"]


def test_weights_are_learned_on_judgements(two: tuple[Path, Path], tmp_path: Path) -> None:
    qrels = worlds.write(tmp_path / "qrels.txt", "q 0 x 1\n")
    words = ("fuse", *two, "--by", "combsum", "--learn", qrels, "-m", "RR", "--out", tmp_path / "fused.txt")

    found = run_json(*words)

    assert found["learned"] == {"measure": "RR", "value": 1.0, "alone": [1.0, pytest.approx(0)]}
    assert read_run(tmp_path / "fused.txt")["q"][0].image == "x"


@pytest.mark.parametrize(
    "words",
    [
        "{a} --out {out}",
        "{a} {b} --weights 1,x --out {out}",
        "{a} {b} --weights 1 --out {out}",
        "{a} {b} --by best --out {out}",
        "{a} {b} --weights 1,1 --learn {a} --out {out}",
        "{a} {b} --run-format nope --out {out}",
        "{a} {b} --norm z --out {out}",
        "{a} {b} --by combsum -k 5 --out {out}",
        "{a} {b} --measure RR --out {out}",
        "{a} {b} --out {a}.csv",
    ],
)
def test_what_cannot_be_fused_is_one_sentence(words: str, two: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.txt"

    refuses("fuse", *words.format(a=two[0], b=two[1], out=out).split())

    assert not out.exists() and not Path(f"{two[0]}.csv").exists()


PHOTOS = 30


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = sorted(sample.photos().glob("categorization__*.jpg"))[:PHOTOS]
    return gallery_of_samples(tmp_path_factory.mktemp("thirty") / "thirty", photos)


@pytest.fixture
def towers(server: Double) -> Double:
    """A model that sees towers everywhere, and nothing else."""
    server.then = said_of
    return server


def said_of(seen: Seen) -> Response:
    return chat(
        "x", {"Yes": 0.98, "No": 0.02} if "a tower" in str(seen.body["messages"]) else {"Yes": 0.02, "No": 0.98}
    )


def run_search(*words: object) -> Done:
    return run_eyespot("search", *words)


def search_report(*words: object) -> Any:
    return run_json("search", *words)


def line(query: str, thirty: Path, ledger: Path, verdicts: int = 12) -> tuple[object, ...]:
    """By a model whose errors were measured."""
    return (*unverified(query, thirty, ledger, verdicts), "--accuracy", "0.98,0.98")


def unverified(query: str, thirty: Path, ledger: Path, verdicts: int = 12) -> tuple[object, ...]:
    return (query, "-g", thirty, "--rerank", "openai:tiny", "--ledger", ledger, "--calibrate", verdicts)


def test_all_that_is_likely_is_shown_down_to_the_cut(thirty: Path, ledger: Path, towers: Double) -> None:
    every = search_report(*line("a tower", thirty, ledger), "--likely", 0.5)
    some = search_report(*line("a tower", thirty, ledger), "--likely", 0.5, "-k", 3)

    assert len(every["items"]) == every["likely"]["hits"] > 20 and len(some["items"]) == 3
    assert 0.5 <= every["likely"]["precision"] <= every["likely"]["high"]


def test_where_nothing_is_likely_nothing_is_shown(thirty: Path, ledger: Path, towers: Double) -> None:
    shown = done("search", *line("a boat", thirty, ledger), "--likely", 0.9, code=4)

    assert shown.stdout == "" and "relevant pictures are expected among" in shown.stderr


# -- a model that nobody has verified -----------------------------------------------------------------------------


def test_a_model_alone_has_an_opinion_and_no_count(thirty: Path, ledger: Path, towers: Double, tmp_path: Path) -> None:
    found = search_report(*unverified("a tower", thirty, ledger), "-k", 30)
    shown = run_search(*unverified("a tower", thirty, ledger), "-k", 30, "--html", tmp_path / "hits.html")

    assert found["opinion"] == {"judge": "openai:tiny@localhost", "yes": 12, "looked": 12, "among": PHOTOS}
    assert "relevant" not in found and not any("probability" in item for item in found["items"])
    assert [item["verdict"] for item in found["items"] if item["judge"]] == [0.98] * 12
    assert shown.stdout == run_search("a tower", "-g", thirty, "-k", 30).stdout
    for text in (shown.stderr, (tmp_path / "hits.html").read_text()):
        assert "12 of the 12 pictures" in text and "are expected" not in text and "is a probability" not in text


def test_a_judge_can_be_told_how_to_answer_and_where(thirty: Path, ledger: Path, towers: Double) -> None:
    towers.then = chat("Yes")
    words = ("a tower", "-g", thirty, "--rerank", "openai:tiny", "--ledger", ledger, "--depth", 3)

    run_search(*words, "--judge", "answer=words", "--judge", f"url={towers.url}")

    with Judgements(ledger) as judgements:
        assert [row.judgement.verdict.reason for row in judgements.rows() if row.judgement.verdict] == [
            "said 'Yes'"
        ] * 3
    assert len(towers.seen) == 3


# -- a model beside a person ------------------------------------------------------------------------------------


HERON = Query.words("a heron")
OWL = Query("q", (Term(1.0, "an owl"), Term(-2.0, "snow")))


@pytest.fixture
def verdicts(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    with Judgements(path) as judgements:
        heron, owl = judgements.enter([HERON, OWL]).values()
        judgements.record(
            [
                Judgement(heron, "a", "m", "p", Verdict(0.9), spent=Spent(1, 100, 1, 0.01)),
                Judgement(heron, "b", "m", "p", Verdict(0.2)),
                Judgement(heron, "c", "m", "p", None, "hung up"),
                Judgement(owl, "a", "m", "p", Verdict(0.6)),
            ]
        )
    return path


def test_every_judge_is_listed_with_what_it_is() -> None:
    listed = run_json("judges", "list")

    assert [row["name"] for row in listed] == rooms.names("judges")
    assert all(row["spelling"].startswith(row["name"]) for row in listed)
    assert [row["name"] for row in listed if not (row["kind"] and row["needs"] and row["offline"] is not None)] == []


def test_prices_are_shown_with_the_file_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('["mine"]\ninput = 0.5\noutput = 2\ndate = "2026-11"\n')
    line = ("judges", "prices")

    (mine,) = run_json(*line, "mine", "--prices", tmp_path / "p.toml")
    lines = done(*line).stdout.splitlines()

    source = str(tmp_path / "p.toml")
    per_million = {"input": 0.5, "output": 2.0, "cached": None, "batch": 1.0, "cached_in_batch": None}
    assert mine == {"model": "mine", **per_million, "date": "2026-11", "source": source}
    assert [line.split()[1:5] for line in lines if line.startswith("gpt-4o ")] == [["2.500", "in", "10.000", "out"]]
    refuses(*line, "no-such", code=4, XDG_CONFIG_HOME=str(tmp_path))


@pytest.mark.parametrize("to", ["q.txt", "q.parquet"])
def test_qrels_name_queries_by_their_words_and_a_threshold_moves_the_line(verdicts: Path, to: str) -> None:
    line = ("export", "judgements", "--ledger", verdicts, "--to", verdicts.parent / to, "--qrels")

    assert run_json(*line) == {"out": str(verdicts.parent / to), "queries": 2, "judgements": 3}
    assert read_qrels(verdicts.parent / to).grades == {"a heron": {"a": 1, "b": 0}, "an owl - 2:snow": {"a": 1}}
    done(*line, "--threshold", "0.7")
    assert read_qrels(verdicts.parent / to).grades["an owl - 2:snow"] == {"a": 0}


def test_a_file_of_queries_gives_their_ids_and_leaves_the_others_out(verdicts: Path) -> None:
    (verdicts.parent / "queries.csv").write_text("query_id,query_text\n17,a heron\n18,a stork\n")

    line = ("export", "judgements", "--ledger", verdicts, "--to", verdicts.parent / "q.txt")
    shown = done(*line, "--queries", verdicts.parent / "queries.csv")

    assert (verdicts.parent / "q.txt").read_text() == "17 0 a 1\n17 0 b 0\n"
    assert shown.stderr == "eyespot: left out: 1 judged query not among those named\n"


def test_a_table_has_failures_too_and_for_qrels_one_of_several_judges_must_be_named(verdicts: Path) -> None:
    with Judgements(verdicts) as judgements:
        (digest,) = judgements.enter([HERON]).values()
        judgements.record([Judgement(digest, "a", "person:ada", "p", Verdict(0.0))])
    line = ("export", "judgements", "--ledger", verdicts, "--to")

    refuses(*line, verdicts.parent / "q.txt")
    done(*line, verdicts.parent / "q.txt", "--by", "person:ada")

    assert (verdicts.parent / "q.txt").read_text() == "a heron\t0\ta\t0\n"
    assert run_json(*line, verdicts.parent / "j.jsonl")["judgements"] == 5


@pytest.mark.parametrize(
    ("words", "code"), [("--to q.xls", 2), ("--to q.txt -g nowhere", 4), ("--to q.txt --ledger empty.sqlite", 4)]
)
def test_what_is_wrong_is_said(words: str, code: int, tmp_path: Path) -> None:
    Judgements(tmp_path / "empty.sqlite").close()

    refuses("export", "judgements", *words.split(), code=code, cwd=tmp_path)


def test_grades_from_the_least_on_count_as_relevant(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with Judgements(ledger) as judgements:
        (query,) = judgements.enter([Query.words("a heron")]).values()
        judgements.record(Judgement(query, str(grade), "m", "p", Verdict(grade=grade)) for grade in range(4))

    for name, more in (("all.txt", ()), ("some.txt", ("--least-grade", 2))):
        run_json("export", "judgements", "--to", tmp_path / name, "--ledger", ledger, "--qrels", *more)

    every, some = (read_qrels(tmp_path / name).grades["a heron"] for name in ("all.txt", "some.txt"))
    assert every == {"0": 0, "1": 1, "2": 2, "3": 3} and some == {"0": 0, "1": 0, "2": 1, "3": 1}
