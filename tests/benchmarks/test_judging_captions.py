"""A judge where pictures rank captions: each caption is the question about the picture that ranks it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.benchmarks import GallerySearcher, Jury
from eyespot.ledger.judgements import Judgements
from eyespot.photos.places import picture_of
from eyespot.runs import write_run
from eyespot.search.collection import Collection
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Answer, NothingFound, Pair, Run, Verdict
from tests.benchmarks.test_judging import ByName, gallery
from tests.command import run_eyespot
from tests.lazy_import import requires
from tests.wording import raises
from tests.worlds import benchmarks as worlds
from tests.worlds import draw, index_gallery
from tests.worlds import judge_models as tiny
from tests.worlds.benchmarks import tasks_of


class Fits(ByName):
    """A judge that knows which caption is about which picture: "about a" and a.jpg."""

    def _answers(self, pairs: Any) -> Iterator[Answer]:
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


def test_pictures_of_the_data_folder_are_judged_and_those_that_are_nowhere_counted(
    tmp_path: Path, ledger: Judgements
) -> None:
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
    assert any(note.startswith("1 queries ") for note in notes)


def test_captions_without_a_text_are_no_question(tmp_path: Path, ledger: Judgements) -> None:
    """eccv's files number captions and have none of their words."""
    task = tasks_of("eccv", worlds.eccv(tmp_path / "data"))["eccv-i2t"]
    jury, _ = sitting(ledger, gallery(tmp_path, *"123"), tmp_path / "data")

    with raises(NothingFound):
        jury.ask(task, Run.from_orders({"1": ["1"]}))


def scenes(data: Path) -> dict[str, str]:
    """Three pictures with two captions each, in a gallery beside them; the captions by id."""
    for seed, name in enumerate("abc"):
        draw(data / "photos" / f"{name}.jpg", seed)
    index_gallery(data / "g", data / "photos")
    images = [{"image": f"{name}.jpg", "subtask": "colour", "version": "v1"} for name in "abc"]
    words = ("a red frog", "two herons", "a wide pool", "an old fort", "a fish", "the owl")
    rows = [{"id": f"t{at}", "image": f"{'abc'[at // 2]}.jpg", "text": text} for at, text in enumerate(words)]
    worlds.table(data / "images.csv", images)
    worlds.table(data / "captions.csv", rows)
    return {row["id"]: row["text"] for row in rows}


@pytest.mark.long
@requires("torch", "transformers")
@pytest.mark.parametrize("head", [tiny.blip_itm, tiny.blip2_itm])
def test_a_matching_head_re_ranks_both_directions(head: Any, tmp_path: Path) -> None:
    """By hand: the head's own scores of each picture's first four captions, best first, and what is hit at 1."""
    texts, model = scenes(tmp_path / "data"), head(tmp_path / "model")
    orders = {"a.jpg": ["t0", "t1", "t2", "t3"], "b.jpg": ["t5", "t4", "t3", "t2"], "c.jpg": ["t1", "t3", "t5", "t0"]}
    run = {name: [*first, *(id for id in texts if id not in first)] for name, first in orders.items()}
    write_run(Run.from_orders(run), tmp_path / "i2t.txt")
    write_run(Run.from_orders({id: ["c.jpg", "b.jpg", "a.jpg"] for id in texts}), tmp_path / "t2i.txt")
    score = rooms.load("judges", f"blip_itm:{model}", device="cpu").scorer

    words = ["eval", "recos", "--data", tmp_path / "data", "-g", tmp_path / "data" / "g", "--depth", "4", "--json"]
    runs = [word for way in ("i2t", "t2i") for word in ("--run", f"{way}={tmp_path / way}.txt")]
    judge = ["--rerank", f"blip_itm:{model}", "--judge", "device=cpu", "--out", tmp_path / "out"]
    done = run_eyespot(*words, *runs, *judge)

    assert done.returncode == 0, done.stderr
    best = {}
    for name, first in orders.items():
        picture = picture_of(tmp_path / "data" / "photos" / name)
        scores = score([texts[id] for id in first], [picture] * 4)
        best[name] = first[int(scores.argmax())]
    own = {id: f"{'abc'[at // 2]}.jpg" for at, id in enumerate(texts)}
    tasks = {task["task"]: task for task in json.loads(done.stdout)["tasks"]}
    expected = sum(own[id] == name for name, id in best.items()) / 3
    assert tasks["i2t"]["measures"]["Hit@1"]["mean"] == pytest.approx(expected)
    first_stage = {stage["stage"]: stage["means"]["Hit@1"] for stage in tasks["i2t"]["stages"]}
    assert first_stage["first stage"] == pytest.approx(1 / 3)  # a.jpg alone has a caption of its own first
    assert tasks["t2i"]["stages"][-1]["stage"] == "re-ranked"
