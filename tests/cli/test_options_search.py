"""Options of the verbs that search, evaluate and count, each with a value that changes what comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from eyespot import rooms
from eyespot.cli import app
from eyespot.gallery.indexing import index
from eyespot.ledger.judgements import Judgements
from eyespot.runs import read_qrels
from eyespot.types import Judgement, Query, UsageError, Verdict
from tests.lazy_import import requires
from tests.worlds import benchmarks as worlds
from tests.worlds import draw
from tests.worlds.servers import Double, chat

DATES = {"early.jpg": "2021:04:30 23:59:59", "may.jpg": "2021:05:03 10:00:00", "late.jpg": "2022:07:01 12:00:00"}
ZURICH = {1: "N", 2: (47.0, 22.0, 0.0), 3: "E", 4: (8.0, 32.0, 0.0)}


def run_cli(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def run_json(*words: object, code: int = 0) -> Any:
    shown = run_cli(*words, "--json")
    assert shown.exit_code == code, shown.output + str(shown.exception)
    return json.loads(shown.stdout)


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos with dates, the last one taken in Zurich, and one without any."""
    folder = tmp_path_factory.mktemp("dated")
    (folder / "photos").mkdir()
    for seed, (name, when) in enumerate(DATES.items()):
        exif = Image.Exif()
        exif.get_ifd(0x8769)[36867] = when
        exif.get_ifd(0x8825).update(ZURICH if name == "late.jpg" else {})
        Image.new("RGB", (60, 40), (80 * seed, 40, 90)).save(folder / "photos" / name, exif=exif)
    draw(folder / "photos" / "undated.jpg", 9)
    index(folder / "gallery", [str(folder / "photos")], [rooms.load("encoders", "starter")])
    return folder / "gallery"


def names(found: Any) -> list[str]:
    return sorted(Path(item["path"]).name for item in found["items"])


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--after", "2021-05"), ["late.jpg", "may.jpg"]),
        (("--before", "2022"), ["early.jpg", "may.jpg"]),
        (("--after", "2021-05", "--before", "2022"), ["may.jpg"]),
        (("--before", "2021-05"), ["early.jpg"]),
        (("--near", "47.4,8.5,20"), ["late.jpg"]),
    ],
)
def test_when_and_where_photos_were_taken(dated: Path, words: tuple[str, ...], wanted: list[str]) -> None:
    """What has no date or no position is not found by it."""
    assert names(run_json("search", "a colour", "-g", dated, *words)) == wanted


# -- judges behind an endpoint ------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Double() as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        yield double


@pytest.fixture
def tenth(tmp_path: Path) -> Path:
    """A table by which each request of the double, 100 tokens in and 1 out, costs 10 cents."""
    (tmp_path / "prices.toml").write_text('["tiny"]\ninput = 1000.0\noutput = 0.0\n')
    return tmp_path / "prices.toml"


@pytest.fixture
def own(tmp_path: Path, dated: Path) -> Path:
    """One query, to which one of the photos is relevant."""
    worlds.table(tmp_path / "own/queries.csv", [{"id": "q", "text": "a colour"}])
    worlds.write(tmp_path / "own/qrels.txt", "q 0 may.jpg 1\n")
    return tmp_path / "own"


@pytest.mark.long
def test_a_search_ends_when_the_money_is_spent(dated: Path, server: Double, tenth: Path, tmp_path: Path) -> None:
    line = ("search", "a colour", "-g", dated, "--rerank", "openai:tiny", "--ledger", tmp_path / "ledger.sqlite")

    cut = run_cli(*line, "--prices", tenth, "--budget-money", 0.25, "--judge", "workers=1")

    assert cut.exit_code == 3 and len(server.seen) == 2
    assert "the budget of $0.25" in cut.stderr


def test_an_evaluation_ends_when_the_money_is_spent(
    dated: Path, own: Path, server: Double, tenth: Path, tmp_path: Path
) -> None:
    line = ("eval", "own", "--data", own, "-g", dated, "--rerank", "openai:tiny", "--ledger", tmp_path / "l.sqlite")

    cut = run_cli(*line, "--prices", tenth, "--budget-money", 0.25, "--judge", "workers=1")

    assert "the budget of $0.25" in str(cut.exception)
    assert len(server.seen) == 2


@pytest.mark.parametrize("verb", ["search", "eval"])
def test_a_judge_is_asked_in_words_of_ones_own(
    verb: str, dated: Path, own: Path, server: Double, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text('question = "Siehst du {query}?"\nyes = "ja"\nno = "nein"\n')
    server.then = chat("ja", {"ja": 0.9, "nein": 0.1})
    line = {"search": ("search", "a colour"), "eval": ("eval", "own", "--data", own)}[verb]

    judged = (*line, "-g", dated, "--rerank", "openai:tiny", "--wording", tmp_path / "mine.toml")
    run_json(*judged, "--ledger", tmp_path / "ledger.sqlite")

    assert len(server.seen) == 4
    assert all("Siehst du a colour?" in json.dumps(seen.body["messages"]) for seen in server.seen)


def test_limits_by_the_minute_reach_the_judge(dated: Path, server: Double, tmp_path: Path) -> None:
    """A limit of 0 is refused under its name, before anything is asked."""
    line = ("search", "a colour", "-g", dated, "--rerank", "openai:tiny", "--ledger", tmp_path / "l.sqlite")

    for limit in ("requests_per_minute=0", "tokens_per_minute=0"):
        refused = run_cli(*line, "--judge", limit).exception
        assert limit.partition("=")[0] in str(refused) and not server.seen


# -- numbers of runs ----------------------------------------------------------------------------------------------


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


def test_a_comparison_says_with_what_it_was_made(runs: Path) -> None:
    usual, other = compared(runs), compared(runs, "--samples", 100, "--seed", 7)

    assert (usual["samples"], usual["seed"]) == (10_000, 0) and (other["samples"], other["seed"]) == (100, 7)
    assert usual["comparisons"][0]["interval"] != other["comparisons"][0]["interval"]


def test_as_many_moves_are_shown_as_asked(runs: Path) -> None:
    assert [len(compared(runs, *more)["comparisons"][0]["down"]) for more in ((), ("--moved", 3))] == [6, 3]


def test_what_ap_divides_by_and_how_ties_count(runs: Path) -> None:
    """Two of two relevant are asked for and one is found: 1 of it alone, 1/2 of all."""
    assert compared(runs, "--norm", "retrieved")["comparisons"][0]["baseline"] == 1
    assert compared(runs, "--norm", "all")["comparisons"][0]["baseline"] == 0.5
    (runs / "first.txt").write_text("q00 Q0 b 1 1 t\nq00 Q0 a 2 1 t\n")
    by_rank, by_mean = (
        run_json(
            *("compare", runs / "first.txt", runs / "second.txt", "--qrels", runs / "qrels.txt"),
            *("-m", "RR", "--ties", ties),
        )["comparisons"][0]["baseline"]
        for ties in ("rank", "average")
    )
    assert [12 * one for one in (by_rank, by_mean)] == pytest.approx([0.5, 0.75])  # eleven queries are not in it


@pytest.mark.parametrize("verb", ["compare", "fuse", "stats", "rerank", "eval"])
@pytest.mark.parametrize("option", ["--format", "--run-format"])
def test_a_format_is_taken_at_its_word(verb: str, option: str, runs: Path) -> None:
    """The right one changes nothing, and a wrong one is no longer guessed around."""
    worlds.table(runs / "own/queries.csv", [{"id": f"q{at:02}", "text": "x"} for at in range(12)])
    worlds.write(runs / "own/qrels.txt", (runs / "qrels.txt").read_text())
    both = (runs / "first.txt", runs / "second.txt")
    lines: dict[str, tuple[object, ...]] = {
        "compare": ("compare", *both, "--qrels", runs / "qrels.txt"),
        "fuse": ("fuse", *both, "--out", runs / "fused.txt"),
        "stats": ("stats", runs / "qrels.txt", "--run", runs / "first.txt"),
        "eval": ("eval", "own", "--data", runs / "own", "--run", runs / "first.txt"),
        "rerank": ("build", "rerank", both[0], runs / "qrels.txt", "--out", runs / "task", "--depth", 2, "--dry-run"),
    }
    if verb in ("fuse", "eval") and option == "--format":
        return  # they are given no judgements, or those of the benchmark

    unnamed, named, wrong = (run_cli(*lines[verb], *more) for more in ((), (option, "trec"), (option, "nope")))

    assert unnamed.exit_code == 0 and named.stdout == unnamed.stdout
    assert isinstance(wrong.exception, UsageError) and "nope" in str(wrong.exception) and "trec" in str(wrong.exception)


def test_images_of_inquire_are_known_by_another_column(tmp_path: Path) -> None:
    worlds.inquire(tmp_path / "data")
    run = worlds.write(tmp_path / "run.txt", "q1 Q0 train/x/a.jpg 1 2 t\nq1 Q0 train/x/b.jpg 2 1 t\n")
    line = ("eval", "inquire-fullrank", "--data", tmp_path / "data", "--run", run)

    (by_id,), (by_path,) = run_json(*line)["tasks"], run_json(*line, "--ids", "image_path")["tasks"]

    first = [next(iter(task["measures"].values()))["mean"] for task in (by_id, by_path)]
    assert first[0] == 0 < first[1]


# -- planning -----------------------------------------------------------------------------------------------------


def test_machines_of_more_memory_are_fewer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    line = ("plan", "--images", "100M", "--dim", 512, "--latency", "60s")

    small, large = run_json(*line, "--machines-ram", 16), run_json(*line, "--machines-ram", 256)

    needed = [{one["way"]: one["for_memory"] for one in plan["ways"]} for plan in (small, large)]
    assert all(needed[0][way] > needed[1][way] for way in needed[0])


def test_the_hours_of_embedding_follow_the_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A million images at a hundred a second are 10,000 seconds."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    (embedding, *_) = run_json("plan", "--images", "1M", "--dim", 64, "--rate", 100)["building"]

    assert embedding["hours"] == pytest.approx(10_000 / 3600)


@pytest.mark.long
def test_what_was_measured_is_kept_in_a_table_and_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    line = ("plan", "--images", "1M", "--slopes", tmp_path / "mine.toml")

    first, again = run_json(*line, "--measure"), run_json(*line)

    assert (tmp_path / "mine.toml").is_file() and first["building"] == again["building"]
    assert first["measured_on"] == again["measured_on"]


# -- what is written ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_demonstration_is_written_where_it_is_told(tmp_path: Path) -> None:
    shown = run_json("demo", "--out", tmp_path / "there")

    assert len(shown) == 5 and {path.name for path in (tmp_path / "there").iterdir()} == {"demo.html", "demo.png"}


@requires("cv2")
def test_descriptions_are_counted_whatever_the_number_of_threads(tmp_path: Path) -> None:
    draw(tmp_path / "photos" / "a.jpg", 1)
    index(tmp_path / "g", [str(tmp_path / "photos")], [rooms.load("encoders", "starter")])

    first = run_json("describe", "-g", tmp_path / "g", "--workers", 1)
    again = run_json("describe", "-g", tmp_path / "g", "--workers", 2)

    assert first != again  # nothing is left to describe
    assert run_cli("describe", "-g", tmp_path / "g", "--workers", 999).exit_code == 2


@pytest.mark.parametrize("format", ["npy", "clip-retrieval"])
def test_vectors_are_written_in_half_precision_and_columns_in_full(dated: Path, tmp_path: Path, format: str) -> None:
    plain = run_json("export", format, tmp_path / "plain", "-g", dated, "-e", "starter")
    whole = run_json("export", format, tmp_path / "whole", "-g", dated, "--float16", "--all-columns")

    arrays = {out: next((tmp_path / out).rglob("*.npy")) for out in ("plain", "whole")}
    columns = {out: pq.read_table(next((tmp_path / out).rglob("*.parquet"))).column_names for out in arrays}
    assert [str(np.load(path).dtype) for path in arrays.values()] == ["float32", "float16"]
    assert "latitude" in plain["left_out"] and whole["left_out"] == []
    assert "latitude" not in columns["plain"] and "latitude" in columns["whole"]


def test_hdf5_is_taken_in_and_copied(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    vectors = np.eye(4, 32, dtype=np.float32) * 3
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        file["features"] = vectors
        file.create_dataset("index", data=[f"{at}.jpg" for at in range(4)], dtype=h5py.string_dtype())
    line = ("import", "hdf5", tmp_path / "v.hdf5", "-e", "open_clip:tiny/none")

    refused = run_cli(*line, "-g", tmp_path / "g", "--json")
    taken = run_json(*line, "-g", tmp_path / "g", "--copy")

    assert "not of unit length" in str(refused.exception) and "--copy" in str(refused.exception)
    assert (taken["gallery"], taken["rows"], taken["added"]) == (str(tmp_path / "g"), 4, 4)


def test_grades_from_the_least_on_count_as_relevant(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with Judgements(ledger) as judgements:
        (query,) = judgements.enter([Query.words("a heron")]).values()
        judgements.record(Judgement(query, str(grade), "m", "p", Verdict(grade=grade)) for grade in range(4))

    for name, more in (("all.txt", ()), ("some.txt", ("--least-grade", 2))):
        run_json("export", "judgements", "--to", tmp_path / name, "--ledger", ledger, "--qrels", *more)

    every, some = (read_qrels(tmp_path / name).grades["a heron"] for name in ("all.txt", "some.txt"))
    assert every == {"0": 0, "1": 1, "2": 2, "3": 3} and some == {"0": 0, "1": 0, "2": 1, "3": 1}


@requires("faiss")
def test_the_space_that_is_tuned_is_the_one_named(dated: Path) -> None:
    """The named one is there, and has too few photos for an index."""
    lacking, small = (
        run_cli("tune", "-g", dated, "-e", name, "--dry-run").exception for name in ("nothing", "starter")
    )

    assert "no vectors of nothing" in str(lacking) and "has 4 pictures to search" in str(small)
