"""`eyespot search --calibrate`: a probability for each hit, how many there are, and what that costs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eyespot import rooms, sample
from eyespot.cli import app
from eyespot.gallery.indexing import index
from eyespot.ledger.judgements import Judgements
from eyespot.types import EyespotError, NothingFound, UsageError
from tests.lazy_import import requires
from tests.worlds.servers import Double, Response, Seen, chat, error

pytestmark = requires("openai")
PHOTOS = 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty of the sample photos, indexed once."""
    home = tmp_path_factory.mktemp("made")
    (home / "photos").mkdir()
    for photo in sorted(sample.photos().glob("categorization__*.jpg"))[:PHOTOS]:
        (home / "photos" / photo.name).write_bytes(photo.read_bytes())
    index(home / "g", [str(home / "photos")], [rooms.load("encoders", "starter")])
    return home / "g"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model that sees towers everywhere, and nothing else."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Double(then=said_of) as double:
        monkeypatch.setenv("OPENAI_BASE_URL", double.url)
        yield double


def said_of(seen: Seen) -> Response:
    """Yes to "a tower", no to all else."""
    return chat(
        "x", {"Yes": 0.98, "No": 0.02} if "a tower" in str(seen.body["messages"]) else {"Yes": 0.02, "No": 0.98}
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def run_search(*words: object) -> Result:
    return CliRunner().invoke(app, ["search", *map(str, words)])


def search_report(*words: object, code: int = 0) -> Any:
    shown = run_search(*words, "--json")
    assert shown.exit_code == code, shown.output + str(shown.exception)
    return json.loads(shown.stdout)


def line(query: str, made: Path, ledger: Path, verdicts: int = 12) -> tuple[object, ...]:
    """By a model whose errors were measured."""
    return (*unverified(query, made, ledger, verdicts), "--accuracy", "0.98,0.98")


def unverified(query: str, made: Path, ledger: Path, verdicts: int = 12) -> tuple[object, ...]:
    return (query, "-g", made, "--rerank", "openai:tiny", "--ledger", ledger, "--calibrate", verdicts)


def test_each_hit_has_its_probability_and_keeps_its_place(made: Path, ledger: Path, server: Double) -> None:
    found = search_report(*line("a tower", made, ledger), "-k", 10)

    plain = search_report("a tower", "-g", made, "-k", 10)
    assert [item["id"] for item in found["items"]] == [item["id"] for item in plain["items"]]
    assert all(item["probability"] > 0.5 for item in found["items"])
    looked = [item["verdict"] for item in found["items"] if item["judge"]]
    assert looked == [0.98] * len(looked) and 0 < len(looked) < 10 and len(server.seen) == 12


def test_how_many_there_are_is_told_with_an_interval(made: Path, ledger: Path, server: Double) -> None:
    shown = run_search(*line("a tower", made, ledger))
    relevant = search_report(*line("a tower", made, ledger))["relevant"]

    assert relevant["among"] == PHOTOS >= relevant["high"] >= relevant["median"] >= relevant["low"] > 12
    (sentence,) = re.findall("eyespot: (.*) relevant pictures are expected among the first 30 .*", shown.stderr)
    assert float(sentence) == pytest.approx(relevant["expected"], abs=0.06)


def test_the_second_time_is_free(made: Path, ledger: Path, server: Double) -> None:
    first, again = run_search(*line("a tower", made, ledger)), run_search(*line("a tower", made, ledger))

    assert first.stdout == again.stdout and len(server.seen) == 12
    assert "12 verdicts from the ledger, 0 asked" in again.stderr


def test_all_that_is_likely_is_shown_down_to_the_cut(made: Path, ledger: Path, server: Double) -> None:
    every = search_report(*line("a tower", made, ledger), "--likely", 0.5)
    some = search_report(*line("a tower", made, ledger), "--likely", 0.5, "-k", 3)

    assert len(every["items"]) == every["likely"]["hits"] > 20 and len(some["items"]) == 3
    assert 0.5 <= every["likely"]["precision"] <= every["likely"]["high"]


def test_where_nothing_is_likely_nothing_is_shown(made: Path, ledger: Path, server: Double) -> None:
    shown = run_search(*line("a boat", made, ledger), "--likely", 0.9)

    assert isinstance(shown.exception, NothingFound) and shown.stdout == ""
    assert "relevant pictures are expected among" in shown.stderr


def test_the_contact_sheet_shows_probabilities(made: Path, ledger: Path, server: Double, tmp_path: Path) -> None:
    items = search_report(*line("a tower", made, ledger), "-k", 3, "--html", tmp_path / "hits.html")["items"]

    page = (tmp_path / "hits.html").read_text()
    shown = [float(number) for number in re.findall(r"</b><span>([0-9.]+)</span>", page)]
    assert shown == [pytest.approx(item["probability"], abs=6e-4) for item in items]
    assert "relevant pictures are expected among the first 30" in page


def test_a_budget_ends_it_and_the_same_line_goes_on(made: Path, ledger: Path, server: Double) -> None:
    short = run_search(*line("a tower", made, ledger), "--budget-calls", 5)
    whole = run_search(*line("a tower", made, ledger))

    assert short.exit_code == 3 and "by 5 verdicts" in short.stderr and "the budget of 5 calls" in short.stderr
    assert whole.exit_code == 0 and "5 verdicts from the ledger, 7 asked" in whole.stderr


def test_a_dry_run_counts_what_would_be_asked_at_most(made: Path, ledger: Path, server: Double) -> None:
    before = search_report(*line("a tower", made, ledger, 20), "--dry-run")
    search_report(*line("a tower", made, ledger, 20))
    after = search_report(*line("a tower", made, ledger, 20), "--dry-run")

    assert (before["pairs"], before["to_ask"], after["to_ask"]) == (20, 20, 0) and len(server.seen) == 20


def test_no_answer_at_all_is_one_sentence(made: Path, ledger: Path, server: Double) -> None:
    server.then = error(422, "no such picture")

    raised = run_search(*line("a tower", made, ledger)).exception

    assert isinstance(raised, EyespotError) and "openai:tiny@localhost has no verdict on any" in str(raised)


def test_an_accuracy_widens_the_interval(made: Path, ledger: Path, server: Double) -> None:
    believed = search_report(*line("a tower", made, ledger))["relevant"]
    doubted = search_report(*unverified("a tower", made, ledger), "--accuracy", "0.8,0.7,20,20")["relevant"]

    assert doubted["high"] - doubted["low"] > believed["high"] - believed["low"]


# -- a model that nobody has verified -----------------------------------------------------------------------------


def test_a_model_s_own_word_is_an_opinion_and_no_count(made: Path, ledger: Path, server: Double) -> None:
    found = search_report(*unverified("a tower", made, ledger), "-k", 30)
    shown = run_search(*unverified("a tower", made, ledger), "-k", 30)

    assert found["opinion"] == {"judge": "openai:tiny@localhost", "yes": 12, "looked": 12, "among": PHOTOS}
    assert "relevant" not in found and not any("probability" in item for item in found["items"])
    assert [item["verdict"] for item in found["items"] if item["judge"]] == [0.98] * 12
    assert "openai:tiny@localhost says yes (0.5 or more) to 12 of the 12 pictures it looked at" in shown.stderr
    assert "are expected" not in shown.stderr and "interval" not in shown.stderr


def test_the_table_and_the_contact_sheet_of_an_opinion_show_scores(
    made: Path, ledger: Path, server: Double, tmp_path: Path
) -> None:
    shown = run_search(*unverified("a tower", made, ledger), "-k", 3, "--html", tmp_path / "hits.html")
    plain = run_search("a tower", "-g", made, "-k", 3)

    page = (tmp_path / "hits.html").read_text()
    assert shown.stdout == plain.stdout
    assert "says yes (0.5 or more) to 12 of the 12 pictures" in page and "is a probability" not in page


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--accuracy", "1,1")])
def test_what_is_likely_is_not_asked_of_a_model_that_nobody_verified(
    made: Path, ledger: Path, server: Double, more: tuple[str, ...]
) -> None:
    raised = run_search(*unverified("a tower", made, ledger), "--likely", 0.5, *more).exception

    assert isinstance(raised, UsageError) and "nobody has verified openai:tiny" in str(raised)
    assert "person:NAME" in str(raised) and "--accuracy" in str(raised) and not server.seen


def test_an_accuracy_stands_beside_the_count_that_it_makes(made: Path, ledger: Path, server: Double) -> None:
    words = (*unverified("a tower", made, ledger), "--accuracy", "0.9,0.8,50,40")

    assert search_report(*words)["accuracy"] == {
        "sensitivity": 0.9,
        "specificity": 0.8,
        "relevant": 50,
        "irrelevant": 40,
    }
    assert (
        "12 verdicts of openai:tiny@localhost, if it is right as often as --accuracy says" in run_search(*words).stderr
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--calibrate", 5), "--calibrate is about a judge; name one with --rerank"),
        (("--rerank", "openai:tiny", "--likely", 0.5), "--likely is about a calibration"),
        (("--rerank", "openai:tiny", "--accuracy", "1,1"), "--accuracy is about a calibration"),
        (("--rerank", "openai:tiny", "--calibrate", 5, "--accuracy", "0.9"), "--accuracy takes two shares"),
        (("--rerank", "openai:tiny", "--calibrate", 5, "--accuracy", "0.9,0.8,5"), "--accuracy takes two shares"),
        (("--rerank", "openai:tiny", "--calibrate", 5, "--accuracy", "0.5,0.5"), "better than chance"),
        (("--rerank", "openai:tiny", "--calibrate", 5, "--blend", 0.5), "leave out --blend"),
    ],
)
def test_what_is_wrong_is_one_sentence(made: Path, words: tuple[object, ...], sentence: str) -> None:
    raised = run_search("a tower", "-g", made, *words).exception

    assert isinstance(raised, UsageError) and sentence in str(raised) and "\n" not in str(raised)


# -- options of the judge ---------------------------------------------------------------------------------------


def test_a_judge_can_be_told_how_to_answer_and_where(made: Path, ledger: Path, server: Double) -> None:
    server.then = chat("Yes")
    words = ("a tower", "-g", made, "--rerank", "openai:tiny", "--ledger", ledger, "--depth", 3)

    run_search(*words, "--judge", "answer=votes", "--judge", "votes=2", "--judge", f"url={server.url}")

    with Judgements(ledger) as judgements:
        assert [row.judgement.verdict.reason for row in judgements.rows() if row.judgement.verdict] == [
            "2 of 2 votes"
        ] * 3
    assert len(server.seen) == 6


@pytest.mark.parametrize(
    ("judge", "setting", "sentence"),
    [
        ("openai:tiny", "colour=red", "an option of openai, not 'colour=red'; there are: url, answer"),
        ("openai:tiny", "workers", "--judge takes KEY=VALUE"),
        ("openai:tiny", "key=secret", "an option of openai"),
        ("openai:tiny", "workers=many", "--judge workers takes a number, not 'many'"),
        ("openai:tiny", "workers=0", "workers is 0; give a number above 0"),
        ("openai:tiny", "answer=songs", "openai cannot answer in 'songs'"),
        ("encoder:starter", "batch=2", "an option of encoder, not 'batch=2'; it has none"),
        ("person:ada", "batch=2", "an option of person, not 'batch=2'; it has none"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    made: Path, server: Double, judge: str, setting: str, sentence: str
) -> None:
    raised = run_search("a tower", "-g", made, "--rerank", judge, "--judge", setting).exception

    assert isinstance(raised, UsageError) and sentence in str(raised)


def test_an_option_without_a_judge_is_refused(made: Path) -> None:
    raised = run_search("a tower", "-g", made, "--judge", "batch=2").exception

    assert isinstance(raised, UsageError) and "--judge is about a judge" in str(raised)


# -- a model beside a person ------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_model_in_the_ledger_narrows_what_a_person_s_verdicts_say(sample_gallery: Path, ledger: Path) -> None:
    """Every other hit is what the person looks for, and the model saw all of them; nobody is asked here."""
    import eyespot
    from eyespot.judges import person
    from eyespot.search.calibrated import Calibrated
    from eyespot.search.judge_rerank import JudgeRerank
    from eyespot.types import Judgement, Verdict

    collection = eyespot.open(str(sample_gallery))
    query = collection.query("a tower")
    run = collection.search(query, k=200)
    relevant = {str(run.facts[hit.image]["path"]) for hit in run[query.id][::2]}
    ada = person.load("ada", ask=lambda text: "y" if any(path in text for path in relevant) else "n")
    with Judgements(ledger) as judgements:
        count = Calibrated(JudgeRerank(ada, judgements, depth=200), 30)(query, run).count
        digest, facts = judgements.enter([query])[query], [run.facts[hit.image] for hit in run[query.id]]
        said_of_all = [(one["id"], Verdict(0.4 if str(one["path"]) in relevant else 0.1)) for one in facts]
        judgements.record(Judgement(digest, id, "openai:tiny", "p", verdict) for id, verdict in said_of_all)
    words = ("a tower", "-g", sample_gallery, "--rerank", "person:ada", "--ledger", ledger, "--calibrate", 30)

    found, shown = search_report(*words, "--depth", 200), run_search(*words, "--depth", 200)

    covariate, narrow = found["covariate"], found["relevant"]
    assert (covariate["code"], covariate["judge"], covariate["answers"]) == ("helped", "openai:tiny", 200)
    assert covariate["alone"] == {"low": count.low, "high": count.high}
    assert narrow["low"] <= 100 <= narrow["high"] and narrow["high"] - narrow["low"] < count.high - count.low
    sentence = f"by 30 verdicts; 200 answers of openai:tiny narrowed the interval by {covariate['narrowed']:.0%}, from"
    assert f"{sentence} {count.low} to {count.high}" in " ".join(shown.stderr.split())
