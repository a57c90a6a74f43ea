"""A judge as the second stage of a benchmark: which pictures it is shown, and what becomes of its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.benchmarks import Evaluation, GallerySearcher, Jury, Rescored, Task, benchmark, scored
from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import BudgetSpent
from eyespot.metrics import names, parse
from eyespot.runs import read_run, write_run
from eyespot.runs.judged import JudgedQueries as Collected
from eyespot.search.collection import Collection
from eyespot.search.judge_rerank import NO_VERDICT, JudgeRerank
from eyespot.types import (
    Answer,
    EyespotError,
    NothingFound,
    Pair,
    Qrels,
    RankedImage,
    Run,
    UsageError,
    Verdict,
    codes_of,
)
from tests.wording import raises
from tests.worlds import benchmarks as worlds, draw, index_gallery
from tests.worlds.benchmarks import tasks_of
from tests.worlds.judging import PlainJudge


@dataclass
class ByName(PlainJudge):
    """A judge that goes by the file's name, and keeps what it was shown."""

    says: Callable[[str], float | None]
    name: str = field(default="names:test", kw_only=True)
    shown: list[Pair] = field(default_factory=list)

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        for pair in pairs:
            self.shown.append(pair)
            probability = self.says(pair.path.stem)
            yield Answer(pair, None, "no idea") if probability is None else Answer(pair, Verdict(probability))


def gallery(home: Path, *names: str) -> Collection:
    for seed, name in enumerate(names):
        draw(home / "photos" / f"{name}.jpg", seed)
    index_gallery(home / "g", home / "photos")
    return Collection(home / "g")


def jury(judge: ByName, ledger: Judgements, collection: Collection, data: Path, depth: int = 4) -> Jury:
    return Jury(
        JudgeRerank(judge, ledger, depth), GallerySearcher(collection, data, allow_missing=True, looked_at=depth)
    )


def test_candidates_of_a_re_ranking_set_are_judged(tmp_path: Path, ledger: Judgements) -> None:
    """Of each query the second candidate is relevant, and of Q the last as well: 801, 811 and 813."""
    task = tasks_of("inquire-rerank", worlds.inquire_rerank(tmp_path / "data"))["t2i"]
    photos = gallery(tmp_path, *(str(10 * ord(query) + at) for query in "PQ" for at in range(4)))
    judge = ByName(lambda name: float(name in ("801", "811", "813")))
    sitting = jury(judge, ledger, photos, tmp_path / "data")
    run = sitting.searcher(task)

    result = sitting.result(task, run, sitting.ask(task, run))

    assert len(judge.shown) == 8 and set(result.scores.means.values()) == {1.0}
    assert result.run.header["judge"] == "names:test"
    assert sitting.learned(task, run).stage.blend == 1.0  # a judge that knows the answers counts alone
    assert scored(task, run).scores.mean("AP") < 1
    others = sitting.ask(task, task.judged.candidates)  # the same pictures, ranked by another system
    assert (others.stats.known, others.stats.answers) == (8, 0)


def test_pictures_that_only_their_path_names_are_shown_too(tmp_path: Path, ledger: Judgements) -> None:
    """CIRCO asks with a picture and words; 555 is judged for no query."""
    task = tasks_of("circo", worlds.circo(tmp_path / "data"))["it2i"]
    photos = gallery(tmp_path, *(f"{number:012}" for number in (100, 101, 200, 201, 300, 555)))
    judge = ByName(lambda name: float(int(name) == 555))
    sitting = jury(judge, ledger, photos, tmp_path / "data", 6)
    run = sitting.searcher(task)

    result = sitting.result(task, run, sitting.ask(task, run))

    assert all(hits[0].image == "555" for hits in result.run.values())
    (words, picture) = [term for term in judge.shown[0].query.terms][::-1]
    assert words.text == "is black" and picture.image is not None and picture.image.stem.endswith("100")


def test_what_failed_is_told_with_its_reason_once(tmp_path: Path, ledger: Judgements) -> None:
    task = tasks_of("own", worlds.own(tmp_path / "data"))["own"]
    sitting = jury(ByName(lambda n: None if n == "d" else 0.5), ledger, gallery(tmp_path, *"abcd"), tmp_path / "data")
    run = sitting.searcher(task)

    result = sitting.result(task, run, sitting.ask(task, run))

    assert codes_of(result.notes) == [NO_VERDICT] and any("(no idea)" in note for note in result.notes)
    both = Evaluation(benchmark("own"), "test", "ours", [result, replace(result, notes=[])])
    assert codes_of(both.notes) == [NO_VERDICT] and "own: " in both.notes[0]


def test_a_judge_without_one_verdict_is_no_number(tmp_path: Path, ledger: Judgements) -> None:
    task = tasks_of("own", worlds.own(tmp_path / "data"))["own"]
    sitting = jury(ByName(lambda _: None), ledger, gallery(tmp_path, *"abcd"), tmp_path / "data")

    with raises(EyespotError):
        sitting.ask(task, sitting.searcher(task))


def test_a_stopped_judge_is_no_number_either(tmp_path: Path, ledger: Judgements) -> None:
    def enough(_: str) -> float:
        if len(judge.shown) > 3:
            raise BudgetSpent("the budget of 3 calls is spent; raise it")
        return 1.0

    judge = ByName(enough)
    task = tasks_of("own", worlds.own(tmp_path / "data"))["own"]
    sitting = jury(judge, ledger, gallery(tmp_path, *"abcd"), tmp_path / "data")

    with raises(BudgetSpent):
        sitting.ask(task, sitting.searcher(task))


NAMES = "abcdefghij"
VERDICTS = {"a": 0.0, "b": 1.0, "c": 0.0, "d": None, "e": 1.0, "f": 1 / 3, "g": 1 / 3, "h": None, "i": 1.0, "j": 0.0}


def measures() -> list[str]:
    """Every measure there is, with each rule on ties that it knows, over all of a ranking and cut in its middle."""
    every = [f"{name}({ties}){cut}" for name in names() for ties in ("", "ties='average'") for cut in ("", "@3")]
    return [spelling for spelling in (one.replace("()", "") for one in every) if _is_measure(spelling)]


def _is_measure(spelling: str) -> bool:
    try:
        parse(spelling)
    except UsageError:
        return False
    return True


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Ten photos."""
    return gallery(tmp_path_factory.mktemp("ten"), *NAMES)


def graded() -> Task:
    """Two queries over ten photos, of which each has five relevant ones."""
    qrels = {query: {name: (at + first) % 4 % 3 for at, name in enumerate(NAMES)} for first, query in enumerate("pq")}
    queries = {"p": {"text": "a heron"}, "q": {"text": "a pool"}}
    return Task("own", Collected(queries, Qrels(qrels)), [parse(one) for one in measures()])


@pytest.mark.parametrize("depth", [3, 7, 10])
def test_verdicts_of_judge_and_file_are_alike(depth: int, tmp_path: Path, ledger: Judgements, ten: Collection) -> None:
    """To the last bit, for every measure and rule on ties: two photos have no verdict, some lie below the depth."""
    task = graded()
    sitting = jury(ByName(VERDICTS.__getitem__), ledger, ten, tmp_path, depth)
    run = sitting.searcher(task)
    rankings = {query: [RankedImage(name, its) for name, its in VERDICTS.items() if its is not None] for query in run}
    file = tmp_path / "second.txt"
    write_run(Run({query: sorted(hits, key=lambda hit: -hit.score) for query, hits in rankings.items()}), file)

    by_judge = sitting.result(task, run, sitting.ask(task, run))
    by_file = scored(task, run, Rescored(read_run(file), depth))

    assert len(task.measures) > 20
    assert {label: its.tolist() for label, its in by_judge.scores.values.items()} == {
        label: its.tolist() for label, its in by_file.scores.values.items()
    }
    assert dict(by_judge.run) == dict(by_file.run)


# -- a judge where pictures rank captions -------------------------------------------------------------------------


class Fits(ByName):
    """A judge that knows which caption is about which picture: "about a" and a.jpg."""

    def answers(self, pairs: Any) -> Iterator[Answer]:
        for pair in pairs:
            self.shown.append(pair)
            yield Answer(pair, Verdict(float(str(pair.query.terms[0].text)[-1] == pair.path.stem)))


def caption_pairs(pairs: list[Pair]) -> set[tuple[str | None, str]]:
    return {(pair.query.terms[0].text, pair.path.stem) for pair in pairs}


def sitting(ledger: Judgements, photos: Collection, data: Path, depth: int = 4) -> tuple[Jury, Fits]:
    judge = Fits(lambda _: None)
    return Jury(JudgeRerank(judge, ledger, depth), GallerySearcher(photos, data, allow_missing=True)), judge


def test_each_picture_has_its_captions_in_the_judges_order(tmp_path: Path, ledger: Judgements) -> None:
    """The first stage has both pictures' captions the wrong way round; the judge turns them, and only them."""
    task = tasks_of("recos", worlds.recos(tmp_path / "data"))["i2t"]
    jury, judge = sitting(ledger, gallery(tmp_path, *"ab"), tmp_path / "data")
    run = Run.from_orders({"a": ["tb", "ta"], "b": ["ta", "tb"]})

    result = jury.result(task, run, jury.ask(task, run))

    assert {name: [(hit.image, hit.score) for hit in hits] for name, hits in result.run.items()} == {
        "a": [("ta", 1.0), ("tb", 0.0)],
        "b": [("tb", 1.0), ("ta", 0.0)],
    }
    assert caption_pairs(judge.shown) == {("about a", "a"), ("about b", "a"), ("about a", "b"), ("about b", "b")}
    first, best, again = result.stages
    assert [stage.scores.mean("Hit@1") for stage in (first, best, again)] == [0.0, 1.0, 1.0]
    assert result.run.header["judge"] == "names:test" and not result.task.pool.keys() & {"a", "b"}


def test_a_verdict_serves_both_directions_and_a_plan_counts_it_once(tmp_path: Path, ledger: Judgements) -> None:
    """Two captions and two pictures are four pairs, whichever side ranks."""
    both = tasks_of("recos", worlds.recos(tmp_path / "data"))
    jury, judge = sitting(ledger, gallery(tmp_path, *"ab"), tmp_path / "data")
    runs = {name: jury.searcher(task) for name, task in both.items()}

    planned = jury.plan([jury.pairs(task, runs[name]) for name, task in both.items()])
    jury.ask(both["i2t"], runs["i2t"])
    again = jury.ask(both["t2i"], runs["t2i"])

    assert (planned.pairs, planned.to_ask) == (4, 4)
    assert (again.stats.known, again.stats.answers, len(judge.shown)) == (4, 0, 4)


def test_captions_below_the_depth_stay_behind_unjudged(tmp_path: Path, ledger: Judgements) -> None:
    task = tasks_of("recos", worlds.recos(tmp_path / "data"))["i2t"]
    jury, judge = sitting(ledger, gallery(tmp_path, *"ab"), tmp_path / "data", depth=1)
    run = Run.from_orders({"a": ["tb", "ta"], "b": ["tb", "ta"]})

    result = jury.result(task, run, jury.ask(task, run))

    assert caption_pairs(judge.shown) == {("about b", "a"), ("about b", "b")}
    assert [hit.image for hit in result.run["a"]] == ["tb", "ta"]
    seen = [judgement for its in jury.ask(task, run).answers.values() for judgement in its.values()]
    assert [judgement.rank for judgement in seen] == [None, None]  # among captions a picture has no rank


def test_pictures_of_the_data_folder_are_judged_and_lost_ones_counted(tmp_path: Path, ledger: Judgements) -> None:
    """The gallery has a, the data folder b."""
    data = worlds.recos(tmp_path / "data")
    (data / "images").mkdir()
    draw(tmp_path / "b.jpg", 5).rename(data / "images" / "b")
    task = tasks_of("recos", data)["i2t"]
    photos = gallery(tmp_path, "a")
    run = Run.from_orders({"a": ["ta"], "b": ["tb"]})

    jury, judge = sitting(ledger, photos, data)
    jury.ask(task, run)
    assert {pair.path.parent.name for pair in judge.shown} == {"photos", "images"}

    (data / "images" / "b").unlink()
    jury, _ = sitting(ledger, photos, data)
    notes = jury.result(task, run, jury.ask(task, run)).notes
    assert any(note.startswith("queries whose picture") and note.endswith(": 1") for note in notes)


def test_captions_without_a_text_are_no_question(tmp_path: Path, ledger: Judgements) -> None:
    """eccv's files number captions and have none of their words."""
    task = tasks_of("eccv", worlds.eccv(tmp_path / "data"))["eccv-i2t"]
    jury, _ = sitting(ledger, gallery(tmp_path, *"123"), tmp_path / "data")

    with raises(NothingFound):
        jury.ask(task, Run.from_orders({"1": ["1"]}))
