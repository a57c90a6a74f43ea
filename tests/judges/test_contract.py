"""Every judge keeps the promises of `eyespot.types.Judge`; a new file in the room is tested by existing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tiny_models

from eyespot import rooms
from eyespot.judges import PLAIN
from eyespot.llms.budget import Budget
from eyespot.photos.places import picture_of
from eyespot.search.judge_rerank import SecondModel
from eyespot.types import Answer, EyespotError, Judge, Pair, Query
from tests.worlds.judging import judge_of
from tests.worlds.servers import YES, Double, message

ROOM = rooms.names("judges")


@contextmanager
def encoder(_folder: Path) -> Iterator[Judge]:
    yield rooms.load("judges", "encoder:starter", embedding=SecondModel("starter"))


@contextmanager
def person(_folder: Path) -> Iterator[Judge]:
    yield rooms.load("judges", "person:ada", ask=lambda _: "y\n")


@contextmanager
def openai(_folder: Path) -> Iterator[Judge]:
    with Double(then=YES) as server:
        yield judge_of(server, read=picture_of)


@contextmanager
def anthropic(_folder: Path) -> Iterator[Judge]:
    with Double(then=message('{"grade": 7}')) as server:
        yield judge_of(server, "anthropic", key="k", read=picture_of)


def local(name: str, make: str, needed: str = "transformers") -> Callable[[Path], Any]:
    @contextmanager
    def opened(folder: Path) -> Iterator[Judge]:
        pytest.importorskip("torch")
        pytest.importorskip(needed)
        from tests.worlds import judge_models as tiny

        yield rooms.load("judges", f"{name}:{getattr(tiny, make)(folder / 'model')}", device="cpu", read=picture_of)

    return opened


CASES: dict[str, Callable[[Path], Any]] = {
    **{case.__name__: case for case in (encoder, person, openai, anthropic)},
    "transformers": local("transformers", "llava"),
    "blip_itm": local("blip_itm", "blip_itm"),
    "cross_encoder": local("cross_encoder", "reranker", "sentence_transformers"),
}
BLIND = ("person",)  # who does not read the file: the person opens it
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module", params=ROOM)
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    if request.param not in CASES:
        pytest.fail(f"add a tiny case for {request.param} to CASES in {Path(__file__).name}")
    with CASES[request.param](tmp_path_factory.mktemp(request.param)) as made:
        yield made


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    """Two queries over three pictures, the second of which is none."""
    home = tmp_path_factory.mktemp("pictures")
    files = [home / f"{number}.png" for number in range(3)]
    for picture, file in zip(tiny_models.pictures(), files, strict=True):
        picture.save(file)
    files[1].write_bytes(b"this is no picture")
    return [Pair(Query.words(words, words), file.stem, file) for words in ("a heron", "a blue frog") for file in files]


def answers_of(judge: Judge, pairs: Sequence[Pair]) -> dict[tuple[str, str], Any]:
    answers = list(judge.judge(pairs))
    assert len(answers) == len(pairs)
    return {(answer.pair.query.id, answer.pair.image): answer for answer in answers}


def test_it_has_every_member_of_its_role(judge: Judge) -> None:
    kind, _, rest = judge.name.partition(":")
    assert kind in ROOM and rest
    assert judge.prompt and judge.prompt.isprintable()
    assert all(prompt.isprintable() and sentence for prompt, sentence in judge.fallbacks.items())
    assert judge.prompt not in judge.fallbacks and all(isinstance(note, str) for note in judge.notes)
    model = judge.language_model
    assert (model is None) == (kind not in ("openai", "anthropic"))
    assert model is None or (model.name, model.free, model.price) == (judge.name, True, None)


def test_answers_are_a_stream_that_can_be_stopped(judge: Judge, pairs: list[Pair]) -> None:
    answers = judge.judge(pairs[:1])
    assert isinstance(next(answers), Answer) and answers.ready() == []

    with pytest.raises(KeyboardInterrupt):
        answers.throw(KeyboardInterrupt())


def test_every_pair_is_answered_once_and_a_broken_picture_fails_alone(judge: Judge, pairs: list[Pair]) -> None:
    answers = answers_of(judge, pairs)

    assert set(answers) == {(pair.query.id, pair.image) for pair in pairs}
    broken = {key for key, answer in answers.items() if answer.verdict is None}
    blind = judge.name.partition(":")[0] in BLIND
    assert broken == (set() if blind else {(pair.query.id, "1") for pair in pairs})
    assert all("\n" not in answers[key].failure and "1.png" in answers[key].failure for key in broken)


def test_a_probability_or_a_grade_is_said_and_said_again(judge: Judge, pairs: list[Pair]) -> None:
    """Those that are there lie between 0 and 1, which a verdict itself sees to."""
    first, again = answers_of(judge, pairs[:1]), answers_of(judge, pairs[:1])

    verdicts = [answer.verdict for answers in (first, again) for answer in answers.values()]
    assert verdicts[0] is not None and verdicts[0] == verdicts[1]
    assert list(judge.judge([])) == []


@pytest.mark.parametrize("name", ROOM)
def test_what_a_search_hands_over_is_taken_or_refused_in_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline and without keys: a judge is made, or says what it lacks."""
    for variable in [f"{vendor}_{what}" for vendor in ("OPENAI", "ANTHROPIC") for what in ("API_KEY", "BASE_URL")]:
        monkeypatch.delenv(variable, raising=False)
    handed = {"embedding": SecondModel("starter")} if name == "encoder" else {"read": picture_of}

    try:
        made = rooms.load("judges", f"{name}:", budget=Budget(calls=1), wording=PLAIN, **handed)
    except EyespotError as error:
        assert "\n" not in str(error) and len(str(error)) > 20
    else:
        assert made.name and made.prompt
