"""Judging in tests: pictures of one colour, pairs of them with a query, and a judge that asks a double."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from eyespot import rooms
from eyespot.llms.budget import Budget, ItemMeter
from eyespot.types import Answer, AnswerStream, Pair, Query, Run, SequentialAnswers, Verdict
from tests.worlds.servers import Double, Seen

HERON = Query.words("a heron", "q")
CHAT = "/v1/chat/completions"


def draw_colours(folder: Path, count: int) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:02}.png" for number in range(count)]
    for number, path in enumerate(paths):
        Image.new("RGB", (40, 30), (20 * (number % 12), 20 * (number // 12), 0)).save(path)
    return paths


def pictures_sent(seen: Seen) -> list[Image.Image]:
    """The pictures of a chat's last message, as they came."""
    urls = [part["image_url"]["url"] for part in seen.body["messages"][-1]["content"] if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in urls]


def number_of(seen: Seen) -> int:
    """Which of the drawn colours was shown last."""
    red, green, _ = pictures_sent(seen)[-1].convert("RGB").resize((1, 1)).tobytes()
    return round(red / 20) + 12 * round(green / 20)


def pairs_of(paths: Iterable[Path], query: Query | str = HERON) -> list[Pair]:
    query = Query.words(query) if isinstance(query, str) else query
    return [Pair(query, path.stem, path) for path in paths]


def run_of(paths: Iterable[Path], *queries: str) -> Run:
    """A ranking of these pictures, best first, for each query."""
    facts = {path.stem: {"id": path.stem, "path": str(path)} for path in paths}
    run = Run.from_orders({query: list(facts) for query in queries or ("q",)})
    run.facts = facts
    return run


def judge_of(server: Double, vendor: str = "openai", model: str = "tiny", **options: Any) -> Any:
    """A judge that asks this double and waits for nothing long."""
    url = server.url if vendor == "openai" else server.url.removesuffix("/v1")
    options = {"url": url, "first_rest": 0.001, "timeout": 60.0, **options}
    return rooms.load("judges", f"{vendor}:{model}", **options)


def only_answer(judge: Any, paths: Iterable[Path]) -> Answer:
    answer: Answer
    (answer,) = judge.judge(pairs_of(paths))
    return answer


@dataclass(kw_only=True)
class PlainJudge:
    """What the judges of tests share: `answers` gives one after the other."""

    name: str = "labels:test"
    prompt: str = "0123456789abcdef"
    budget: Budget = field(default_factory=Budget)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    language_model: None = None

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        return SequentialAnswers(self.answers(pairs))

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        raise NotImplementedError


@dataclass
class Labels(PlainJudge):
    """A judge that looks the answer up: {words: {image: probability}}; what it does not know has no answer."""

    said: Mapping[str, Mapping[str, float]]
    asked: list[Pair] = field(default_factory=list)

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        for pair in pairs:
            ItemMeter(self.budget).take()
            self.asked.append(pair)
            probability = self.said[str(pair.query.terms[0].text)].get(pair.image)
            if probability is None:
                yield Answer(pair, None, f"{pair.path.name} cannot be read")
            else:
                yield Answer(pair, Verdict(probability))
