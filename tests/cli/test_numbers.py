"""Judgements and runs by the command line: `metrics`, `stats`, `compare`, `convert` and `build rerank`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot.runs import beir, read_qrels, read_run, reranking
from tests.cli.conftest import done, run_json
from tests.command import Done, refuses
from tests.worlds import benchmarks as worlds


@pytest.fixture
def qrels_and_run(tmp_path: Path) -> tuple[Path, Path]:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 c 1\n")
    run.write_text("q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.8 t\nq2 Q0 a 1 0.7 t\n")
    return qrels, run


def test_json_is_as_the_contract_has_it(qrels_and_run: tuple[Path, Path]) -> None:
    words = ("-m", "AP@50", "-m", "RR", "--norm", "min-k", "--ties", "average", "--per-query", "--json")
    shown = done("metrics", *qrels_and_run, *words)

    report = json.loads(shown.stdout)
    assert report["notes"] == ["an interval of fewer than 10 queries holds less than 95 %, and these are 2"]
    assert report["measures"]["AP@50"]["mean"] == pytest.approx(0.5)
    definition = report["measures"]["AP@50"]["definition"]
    assert definition.items() >= {"norm": "min-k", "ties": "average", "cutoff": 50}.items()
    assert report["queries"] == {"q1": {"AP@50": 0.5, "RR": 0.5}, "q2": {"AP@50": 0.5, "RR": 1.0}}


def test_lines_say_mean_interval_and_definition(qrels_and_run: tuple[Path, Path]) -> None:
    lines = done("metrics", *qrels_and_run, "--preset", "inquire").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["AP@50", "nDCG@50", "RR@50"]
    assert lines[0].split()[1] == "0.5000" and "norm=min-k" in lines[0] and "ties=average" in lines[0]


def test_without_measures_the_usual_ones(qrels_and_run: tuple[Path, Path]) -> None:
    report = run_json("metrics", *qrels_and_run)

    assert list(report["measures"]) == ["AP@50", "nDCG@50", "RR", "R@20"]
    assert "queries" not in report


def test_a_query_that_finds_itself_is_told_and_left_out_where_that_is_asked(qrels_and_run: tuple[Path, Path]) -> None:
    qrels, run = qrels_and_run
    run.write_text("q1 Q0 q1 1 0.9 t\nq1 Q0 a 2 0.8 t\nq2 Q0 a 1 0.7 t\n")

    told, left_out = (done("metrics", qrels, run, "-m", "rr", *more) for more in ((), ("--ignore-self",)))

    assert "1 of 2 queries rank an image of their own id" in told.stderr and told.stdout.split()[1] == "0.7500"
    assert "own id" not in left_out.stderr and left_out.stdout.split()[1] == "1.0000"
    compared = done("compare", run, run, "--qrels", qrels, "-m", "RR", "--ignore-self").stdout
    assert compared.splitlines()[1].split()[3:5] == ["1.0000", "1.0000"]


def test_the_list_names_every_measure_and_preset(tmp_path: Path) -> None:
    lines = done("metrics", "list", cwd=tmp_path).stdout.splitlines()
    report = run_json("metrics", "list", cwd=tmp_path)

    assert [line.split()[1] for line in lines] == [*report["measures"], *report["ir-measures"], *report["presets"]]
    assert {"AP", "Hit", "mAP@R"} <= set(report["measures"]) and {"inquire", "circo"} <= set(report["presets"])


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 1\nq1 0 c 0\nq2 0 a 1\nq3 0 c 0\n")
    (tmp_path / "queries.csv").write_text("query_id,kind\nq1,Social\nq2,social\nq3,\n")
    return tmp_path


def test_json_holds_the_whole_and_the_parts(judged: Path) -> None:
    report = run_json("stats", "qrels.txt", "--queries", "queries.csv", "--by", "kind", cwd=judged)
    assert (report["queries"], report["judged"], report["relevant"], report["without_relevant"]) == (3, 5, 3, ["q3"])
    assert report["matches"]["mean"] == 1 and report["pool"] is None
    assert list(report["by"]["kind"]) == ["", "Social"]
    assert report["by"]["kind"]["Social"]["relevant"] == 3


def test_lines_for_people(judged: Path) -> None:
    shown = done("stats", "qrels.txt", "--queries", "queries.csv", "--by", "kind", cwd=judged)
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["queries", "3"] and "images to search   not listed" in lines
    assert "matches per query  mean 1.00, median 1, quartiles 0.5 and 1.5, 0 to 2" in lines
    bars = lines[lines.index("matches   queries") + 1 :][:3]
    assert [bar.split() for bar in bars] == [["0", "1", "#" * 40], ["1", "1", "#" * 40], ["2–3", "1", "#" * 40]]
    assert lines[-2].split() == ["(none)", "1", "1", "0", "0.00", "0", "0", "0"]
    assert lines[-1].split() == ["Social", "2", "4", "3", "1.50", "1.5", "1", "2"]


def test_queries_that_differ_are_noted(judged: Path) -> None:
    (judged / "queries.csv").write_text("query_id\nq1\nnew\n")
    shown = done("stats", "qrels.txt", "--queries", "queries.csv", "--json", cwd=judged)
    assert (json.loads(shown.stdout)["queries"], json.loads(shown.stdout)["without_relevant"]) == (2, ["new"])
    assert "2 of 3 judged queries, not in queries.csv" in shown.stderr and "1 of 2 queries of" in shown.stderr


def test_a_collection_that_lists_its_images_tells_the_pool(judged: Path) -> None:
    (judged / "set" / "qrels").mkdir(parents=True)
    (judged / "set" / "queries.jsonl").write_text('{"_id": "q", "text": "a lark"}\n')
    (judged / "set" / "corpus.jsonl").write_text('{"_id": "a"}\n{"_id": "b"}\n{"_id": "c"}\n')
    (judged / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    report = run_json("stats", "set", cwd=judged)
    assert (report["pool"], report["judged"]) == (3, 1)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """By RR: q1 rises from 1/2 to 1, q2 falls from 1 to 0, q3 stays at 1."""
    qrels, first, second = (tmp_path / name for name in ("qrels.txt", "first.txt", "second.txt"))
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq3 0 a 1\n")
    first.write_text("q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.8 t\nq2 Q0 a 1 0.7 t\nq3 Q0 a 1 0.7 t\n")
    second.write_text("q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 c 1 0.7 t\nq3 Q0 a 1 0.7 t\n")
    return qrels, first, second


def compare(files: tuple[Path, Path, Path], *words: object) -> Done:
    return done("compare", files[1], files[2], "--qrels", files[0], *words)


def test_json_holds_every_test_and_the_queries_that_moved(files: tuple[Path, Path, Path]) -> None:
    shown = compare(files, "-m", "RR", "-m", "Hit@1", "--per-query", "--json")

    report = json.loads(shown.stdout)
    rr, hit = report["comparisons"]

    made = [report[name] for name in ("baseline", "samples", "seed", "correction")]
    assert made == ["first.txt", 10000, 0, "holm"]
    assert report["measures"]["Hit@1"]["cutoff"] == 1
    assert (rr["run"], rr["measure"], rr["queries"]) == ("second.txt", "RR", 3)
    assert rr["baseline"] == pytest.approx(5 / 6) and rr["mean"] == pytest.approx(2 / 3)
    assert rr["difference"] == pytest.approx(-1 / 6) and rr["interval"] == pytest.approx([-1, 0.5])
    assert (rr["p"], rr["exact"], rr["corrected_p"]) == (1, True, 1)
    assert [(each["wins"], each["losses"], each["ties"]) for each in (rr, hit)] == [(1, 1, 1), (1, 1, 1)]
    assert rr["up"] == [{"query": "q1", "baseline": 0.5, "value": 1.0, "difference": 0.5}]
    assert [move["query"] for move in rr["down"]] == ["q2"]
    assert hit["per_query"]["q1"] == {"baseline": 0.0, "value": 1.0, "difference": 1.0}


def test_lines_hold_a_table_and_the_moves_of_the_first_measure_or_all(files: tuple[Path, Path, Path]) -> None:
    table, _, moves = compare(files, "-m", "RR", "-m", "Hit@1").stdout.partition("\n\n")
    every = compare(files, "-m", "RR", "-m", "Hit@1", "--per-query").stdout.partition("\n\n")[2]

    head, rr, hit = table.splitlines()
    assert head.split()[:4] == ["measure", "run", "baseline", "mean"]
    assert rr.split()[:5] == ["RR", "second.txt", "0.8333", "0.6667", "-0.1667"] and hit.split()[0] == "Hit@1"
    assert moves.splitlines() == [
        "RR\tsecond.txt\tq2\t1.000000\t0.000000\t-1.000000",
        "RR\tsecond.txt\tq1\t0.500000\t1.000000\t+0.500000",
    ]
    listed = [tuple(line.split("\t")[::2][:2]) for line in every.splitlines()]
    assert listed == [(measure, query) for measure in ("RR", "Hit@1") for query in ("q1", "q2", "q3")]


def test_runs_of_one_file_name_are_told_by_their_paths(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    other = files[2].rename(tmp_path / "b" / "first.txt")

    report = json.loads(compare((files[0], files[1], other), "-m", "RR", "--json").stdout)

    assert [report["baseline"], report["comparisons"][0]["run"]] == [str(files[1]), str(other)]


def test_missing_queries_and_weak_tests_are_noted_on_stderr(files: tuple[Path, Path, Path]) -> None:
    files[2].write_text("q1 Q0 a 1 0.9 t\nq3 Q0 a 1 0.9 t\n")

    shown = compare(files, "--preset", "trec")

    assert "second.txt: 1 of 3 judged queries missing from the run; they are left out" in shown.stderr
    assert "second.txt: compared on the 2 queries that first.txt has values for, too" in shown.stderr
    assert "which cannot give a p below 1" in shown.stderr


def test_the_page_shows_pictures_and_links_into_a_server(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(tmp_path / "photos" / "a.png")
    (tmp_path / "queries.csv").write_text("id,text\nq1,a red door\n")
    words = ("--images", tmp_path / "photos", "--queries", tmp_path / "queries.csv", "--html", tmp_path / "page.html")

    shown = compare(files, "-m", "RR", *words, "--page", "http://127.0.0.1:8000")
    page = (tmp_path / "page.html").read_text()

    assert "2 of the page's 3 images were not found" in shown.stderr
    assert "second.txt against first.txt" in page and 'href="http://127.0.0.1:8000/?q=a+red+door"' in page
    assert page.index(">q2<") < page.index("a red door")  # losses first
    assert page.count("data:image/jpeg") == 3  # `a`: in both runs of q1 and the first of q2


QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "run.txt").write_text("q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.5 t\nq2 Q0 c 1 0.25 t\n")
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


@pytest.mark.parametrize("out", ["run.json", "run.json.gz", "run.parquet", "run.trec"])
def test_a_run_says_the_same_in_every_format(place: Path, out: str) -> None:
    assert run_json("convert", "run.txt", out, cwd=place) == {"out": out, "holds": "run", "queries": 2, "rows": 3}
    before, after = read_run(place / "run.txt"), read_run(place / out)
    assert {query: before[query] for query in before} == {query: after[query] for query in after}


@pytest.mark.parametrize("out", ["qrels.json", "qrels.parquet", "more.qrels"])
def test_judgements_are_known_by_their_lines(place: Path, out: str) -> None:
    assert run_json("convert", "qrels.txt", out, cwd=place)["holds"] == "qrels"
    assert read_qrels(place / out).grades == read_qrels(place / "qrels.txt").grades


def test_a_table_of_scores_is_a_run_and_one_of_grades_is_not(place: Path) -> None:
    (place / "hits.csv").write_text("query_id,image_id,score\nq,a,0.5\nq,b,0.75\n")
    (place / "judged.csv").write_text("query_id,image_id,grade\nq,a,0\nq,b,2\n")
    assert run_json("convert", "hits.csv", "hits.json", cwd=place)["holds"] == "run"
    assert run_json("convert", "judged.csv", "judged.json", cwd=place)["holds"] == "qrels"
    assert [hit.image for hit in read_run(place / "hits.json")["q"]] == ["b", "a"]
    assert read_qrels(place / "judged.json").grades == {"q": {"a": 0, "b": 2}}


def test_scores_in_place_of_grades_are_counted_in_one_line(place: Path) -> None:
    (place / "scores.json").write_text(json.dumps({"q": {f"i{at}": at / 16 for at in range(20)}}))
    assert "0.6875: 1, and 8 more" in done("stats", "scores.json", cwd=place).stdout


def test_judgements_and_texts_become_a_beir_folder(place: Path) -> None:
    (place / "queries.csv").write_text("id,text\nq1,a heron\n")
    shown = done("convert", "qrels.txt", "set", "--to", "beir", "--queries", "queries.csv", cwd=place)

    assert "1 query without a text" in shown.stderr
    read = beir.read(place / "set")
    assert read.qrels.grades == read_qrels(place / "qrels.txt").grades
    assert {query: facts["text"] for query, facts in read.queries.items()} == {"q1": "a heron", "q2": "q2"}
    done("convert", "set", "back.txt", cwd=place)
    assert (place / "back.txt").read_text() == QRELS


def test_a_format_that_holds_less_says_what_is_lost(place: Path) -> None:
    (place / "long.json").write_text(json.dumps({"1": [str(n) for n in range(60)], "2": []}))
    cut = done("convert", "long.json", "cut.json", "--to", "circo", cwd=place)
    lost = done("convert", "long.json", "lost.txt", cwd=place)

    assert "10 results below the depth of this format are left out" in cut.stderr
    assert "1 query without results" in lost.stderr


def test_a_file_is_replaced_with_force(place: Path) -> None:
    done("convert", "run.txt", "qrels.txt", "--force", cwd=place)

    assert read_run(place / "qrels.txt")["q2"][0].image == "c"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Five queries; q0 to q3 have one relevant image in their first two, q4 has none."""
    queries = [f"q{at}" for at in range(5)]
    (tmp_path / "run.txt").write_text(
        "".join(f"{q} Q0 {i} 1 {s} t\n" for q in queries for i, s in (("a", 2), ("b", 1)))
    )
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {'a' if q < 'q4' else 'z'} 1\n" for q in queries))
    rows = "".join(f"{q},text of {q},{'x' if q < 'q2' else 'y'},{'val' if q < 'q3' else 'test'}\n" for q in queries)
    (tmp_path / "queries.csv").write_text(f"query_id,query_text,category,split\n{rows}")
    return tmp_path


BUILD = ("build", "rerank", "run.txt", "qrels.txt", "--depth", "2")


def test_a_set_split_by_category(world: Path) -> None:
    shown = done(*BUILD, "--queries", "queries.csv", "--val", "2", "--out", "set", "--json", cwd=world)
    report = json.loads(shown.stdout)
    assert report["queries"] == 4
    assert report["splits"]["val"] == {"queries": 2, "candidates": 4, "relevant": 2, "unjudged": 2}
    assert report["by"] == {"category": {"x": {"val": 1, "test": 1}, "y": {"val": 1, "test": 1}}}
    assert report["dropped"] == {"none relevant among the candidates": 1}
    assert len(reranking.read(world / "set", "val").queries) == 2
    assert "--keep-split keeps theirs" in shown.stderr and "4 of 8 candidates are unjudged" in shown.stderr


def test_lines_for_people_and_the_split_of_the_queries(world: Path) -> None:
    shown = done(*BUILD, "--queries", "queries.csv", "--keep-split", "--out", "set", cwd=world)
    assert shown.stdout.splitlines() == [
        "val    3 queries  6 candidates  3 relevant  3 unjudged",
        "test   1 queries  2 candidates  1 relevant  1 unjudged",
        "out    1 query: none relevant among the candidates",
    ]
    assert sorted(reranking.read(world / "set", "val").queries) == ["q0", "q1", "q2"]


def test_a_dry_run_writes_nothing(world: Path) -> None:
    before = sorted(world.iterdir())
    shown = done(*BUILD, "--out", "set", "--dry-run", cwd=world)
    assert shown.stdout.startswith("val    1 queries") and sorted(world.iterdir()) == before


REFUSED = {
    "metrics qrels.txt run.txt -m Foo@3": 2,
    "metrics qrels.txt run.txt --preset foo": 2,
    "metrics qrels.txt run.txt --preset inquire --norm all": 2,
    "metrics qrels.txt run.txt --norm foo": 2,
    "metrics qrels.txt": 2,
    "metrics qrels.txt others.txt": 4,
    "stats qrels.txt --by kind": 2,
    "stats qrels.txt --queries queries.csv --by foo": 2,
    "stats qrels.txt --queries none.csv": 2,
    "stats empty.txt": 4,
    "stats qrels.txt --queries others.csv": 4,
    "compare run.txt run.txt --qrels qrels.txt --correction sidak": 2,
    "compare run.txt run.txt --qrels qrels.txt --html page.html -g none": 2,
    "compare run.txt run.txt --qrels qrels.txt --queries none.csv --html page.html": 2,
    "compare run.txt run.txt --qrels qrels.txt --html page.html --page here": 2,
    "compare run.txt --qrels qrels.txt": 2,
    "compare run.txt damaged.txt --qrels qrels.txt": 2,
    "compare run.txt others.txt --qrels qrels.txt": 4,
    "convert run.txt qrels.txt": 2,
    "convert run.txt .": 2,
    "convert run.txt out.txt --to ilias": 2,
    "convert run.txt out.txt --queries q.csv": 2,
    "convert none.txt out.txt": 2,
    "convert run.txt out.jsonl": 2,
    "convert qrels.txt out.csv": 2,
    "compare run.txt run.txt --qrels qrels.txt --html qrels.txt": 2,
    "compare run.txt run.txt --qrels qrels.txt --images .": 2,
    "build rerank run.txt qrels.txt --depth 2 --out set --val 9": 2,
    "build rerank run.txt qrels.txt --depth 2 --out set --val 1 --val-share 0.5": 2,
    "build rerank run.txt qrels.txt --depth 2 --out set --by category": 2,
    "build rerank run.txt qrels.txt --depth 2 --out set --least 2 --most 2": 4,
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(world: Path, words: str) -> None:
    texts = {
        "others.txt": "Q1 Q0 a 1 0.8 t\n",
        "empty.txt": "",
        "others.csv": "query_id\nQ1\n",
        "damaged.txt": "q1 Q0\n",
    }
    for name, text in texts.items():
        (world / name).write_text(text)
    before = sorted(world.iterdir())

    refuses(*words.split(), code=REFUSED[words], cwd=world)

    assert sorted(world.iterdir()) == before


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of twelve queries with one relevant image each: the second finds the first eight one rank later.

    In files whose endings tell nothing, so that formats have to be named.
    """
    relevant = "".join(f"q{at:02} 0 a 2\nq{at:02} 0 b 0\nq{at:02} 0 z 1\n" for at in range(12))
    first = "".join(f"q{at:02} Q0 a 1 2 t\nq{at:02} Q0 b 2 1 t\n" for at in range(12))
    later = "".join(f"q{at:02} Q0 {'ba' if at < 8 else 'ab'}"[:-1] + " 1 2 t\n" for at in range(12))
    seconds = "".join(f"q{at:02} Q0 {'ab' if at < 8 else 'ba'}"[:-1] + " 2 1 t\n" for at in range(12))
    (tmp_path / "qrels.txt").write_text(relevant)
    (tmp_path / "first.txt").write_text(first)
    (tmp_path / "second.txt").write_text(later + seconds)
    return tmp_path


def compared(runs: Path, *more: object) -> Any:
    line = ("compare", runs / "first.txt", runs / "second.txt", "--qrels", runs / "qrels.txt", "-m", "AP")
    return run_json(*line, *more)


def test_a_run_of_a_report_has_the_name_of_its_system(runs: Path) -> None:
    """In the table, in JSON and in the title of the page; files of one report are told apart by their paths."""
    (runs / "queries.csv").write_text("query_id,query_text\n" + "".join(f"q{at:02},birds {at}\n" for at in range(12)))
    done(
        "eval", "own", "--data", runs, "--run", runs / "second.txt", "--pool", 9, "--name", "ours", "--out", runs / "o"
    )
    again = ("compare", runs / "first.txt", runs / "o" / "run.parquet", "--qrels", runs / "qrels.txt", "-m", "AP")

    report = run_json(*again, "--html", runs / "moved.html")

    assert report["comparisons"][0]["run"] == "ours" and report["baseline"] == "first.txt"
    assert "ours against first.txt" in (runs / "moved.html").read_text()


def test_what_a_comparison_is_made_with_changes_it(runs: Path) -> None:
    """Two of two relevant are asked for and one is found: 1 of it alone, 1/2 of all."""
    usual, other = (
        compared(runs, *more) for more in ((), ("--samples", 100, "--seed", 7, "--moved", 3, "--norm", "retrieved"))
    )

    assert (usual["samples"], usual["seed"]) == (10_000, 0) and (other["samples"], other["seed"]) == (100, 7)
    first, second = (report["comparisons"][0] for report in (usual, other))
    assert first["interval"] != second["interval"] and (first["baseline"], second["baseline"]) == (0.5, 1)
    assert (len(first["down"]), len(second["down"])) == (6, 3)


@pytest.mark.parametrize("verb", ["compare", "fuse", "stats", "rerank", "eval"])
def test_a_format_is_taken_at_its_word(verb: str, runs: Path) -> None:
    """The right one changes nothing, and a wrong one is no longer guessed around."""
    worlds.table(runs / "own/queries.csv", [{"id": f"q{at:02}", "text": "x"} for at in range(12)])
    worlds.write(runs / "own/qrels.txt", (runs / "qrels.txt").read_text())
    both = (runs / "first.txt", runs / "second.txt")
    lines: dict[str, tuple[object, ...]] = {
        "compare": ("compare", *both, "--qrels", runs / "qrels.txt"),
        "fuse": ("fuse", *both, "--out", runs / "fused.txt"),
        "stats": ("stats", runs / "qrels.txt"),
        "eval": ("eval", "own", "--data", runs / "own", "--run", runs / "first.txt"),
        "rerank": ("build", "rerank", both[0], runs / "qrels.txt", "--out", runs / "task", "--depth", 2, "--dry-run"),
    }
    unnamed = done(*lines[verb]).stdout

    # some are given no judgements, or those of the benchmark; some no run
    named = {"fuse": ["--run-format"], "eval": ["--run-format"], "stats": ["--format"]}
    for option in named.get(verb, ["--format", "--run-format"]):
        assert done(*lines[verb], option, "trec").stdout == unnamed
        refuses(*lines[verb], option, "nope")


def test_images_of_inquire_are_known_by_another_column(tmp_path: Path) -> None:
    worlds.inquire(tmp_path / "data")
    run = worlds.write(tmp_path / "run.txt", "q1 Q0 train/x/a.jpg 1 2 t\nq1 Q0 train/x/b.jpg 2 1 t\n")
    line = ("eval", "inquire-fullrank", "--data", tmp_path / "data", "--run", run)

    (by_id,), (by_path,) = run_json(*line)["tasks"], run_json(*line, "--ids", "image_path")["tasks"]

    first = [next(iter(task["measures"].values()))["mean"] for task in (by_id, by_path)]
    assert first[0] == 0 < first[1]
