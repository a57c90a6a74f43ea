"""A few real photos with captions of our own, indexed, recipes over them, and a model that is scripted to misbehave."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eyespot import sample
from eyespot.curate.recos.making import RecosSteps, write
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.pipelines import CostLimits, StepResult, read_recipe, run
from tests.worlds import index_gallery
from tests.worlds.servers import Response, Seen, chat, chat_json, digest, under

COLOURS = ("red", "blue", "green", "white")
WANTED = (
    *("windmill1", "windmill2", "windmill3", "windmill7", "windmill8", "windmill11", "windmill12", "windmill14"),
    *("fish1", "fish2", "fish4", "fish5", "fish6", "fish11", "fish15", "fish17", "dam1", "dam2", "igloo"),
)
DEMONSTRATION = 'writer = { use = "demonstration" }'
STEPS = {
    "draw": "subtasks = { numerical = 5, translation = 4 }",
    "render": "",
    "collect": "",
    "caption": 'model = "writer"',
    "discriminate": 'model = "writer"\nk = 4\ntemperature = 0.01\neta = 0.9\nrounds = 2\nat_limit = "keep"',
    "review": 'undecided = "keep"\nshare = 0.5',
    "complete": "least = 2",
    "pair": "",
    "confuse": 'model = "writer"',
    "expand": "similar = 3",
    "hash": "",
    "distinct": "",
}
SUBTASKS = """
[steps.subtasks.colour]
count = 4
words = ["red", "blue"]
[steps.subtasks.object]
count = 3
queries = ["a windmill", "a fish"]
[steps.subtasks.numerical]
count = 2
[steps.subtasks.translation]
count = 2
"""


def photos(folder: Path, names: Sequence[str] = WANTED) -> Path:
    """A gallery of some of the sample photos, each with a title and two captions of made-up colours."""
    (folder / "pictures").mkdir(parents=True)
    rows = []
    for at, name in enumerate(names):
        place = next(sample.photos().glob(f"*__{name}.jpg"))
        shutil.copy(place, folder / "pictures")
        thing, colour = name.strip("0123456789"), COLOURS[at % 4]
        captions = f"A {colour} {thing} number {at}.", f"There is a {colour} {thing} near sign {at}."
        rows.append((place.name, f"{thing} {'abcdefghijklmnopqrstuvwxyz'[at]}", *captions))
    with (folder / "pictures" / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("file_name", "title", "caption_1", "caption_2"), *rows])
    index_gallery(folder / "gallery", folder / "pictures")
    return folder / "gallery"


def recipe(folder: Path, gallery: Path, models: str = DEMONSTRATION, **settings: str) -> Path:
    """A recipe of all steps but `grammar`; `settings` take the place of a step's lines, None leaves it out."""
    lines = STEPS | {"collect": f'galleries = {{ own = "{gallery}" }}\n{SUBTASKS}'} | settings
    steps = "".join(f'[[steps]]\nstep = "{name}"\n{body}\n' for name, body in lines.items())
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "recipe.toml"
    place.write_text(f'name = "tiny"\nseed = 3\n[models]\n{models}\n{steps}', encoding="utf-8")
    return place


def ran(place: Path, out: Path, limits: CostLimits | None = None) -> tuple[RecosPipeline, list[StepResult]]:
    making = RecosPipeline(read_recipe(place), out)
    return making, run(making.steps, making.work, making.running(limits))


def made(place: Path, out: Path, limits: CostLimits | None = None) -> RecosSteps:
    making, done = ran(place, out, limits)
    return write(making, done)[0]


def files(out: Path) -> dict[str, bytes]:
    """Every file of the steps, the queues and the set's tables and pictures, bit for bit."""
    places = [
        *(out / "work" / "steps").rglob("*.*"),
        *(out / "set").rglob("*.parquet"),
        *(out / "set").rglob("*/*.jpg"),
    ]
    contents = {str(path.relative_to(out)): path.read_bytes() for path in places}
    return {name: data for name, data in contents.items() if "/card/" not in name}


# -- a model that misbehaves ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """Shares of questions: called unsuitable, answered in no form at all, and refused; and of captions said twice."""

    abstains: float = 0.0
    breaks: float = 0.0
    refuses: float = 0.0
    repeats: float = 0.0
    untrue: float = 0.0  # of captions that it checks


@dataclass(frozen=True)
class Scripted:
    """A vision–language model as a server's script: what it says hangs on what it is shown alone.

    `said` tells for each question that was put to it what it did.
    """

    rates: Rates = Rates()
    said: dict[tuple[str, str], str] = field(default_factory=dict)  # by form and what was put to it

    def __call__(self, seen: Seen) -> Response:
        form, key = seen.body["response_format"]["json_schema"]["name"], put(seen)
        what, response = self._answer(form, key, json.dumps(seen.body["messages"][0]))
        self.said[form, key] = what
        return response

    def counts(self, form: str) -> Counter[str]:
        """What it did to questions of a form."""
        return Counter(what for (its, _), what in self.said.items() if its == form)

    def _answer(self, form: str, key: str, words: str) -> tuple[str, Response]:
        if under(key, "breaks", self.rates.breaks):
            return "broken", chat("I would rather tell you a story.")
        if under(key, "refuses", self.rates.refuses):
            return "refused", chat("", refusal="not such a picture")
        if form in ("Captions", "Swaps") and under(key, "abstains", self.rates.abstains):
            return "abstained", chat_json({"captions": [], "unsuitable": "nothing of the kind is in it"})
        return getattr(self, f"_{form.lower()}")(key, words)

    def _captions(self, key: str, _words: str) -> tuple[str, Response]:
        texts = [f"A picture of the {colour} thing {key[:4]}." for colour in (*COLOURS, "black")]
        twice = under(key, "repeats", self.rates.repeats)
        return "repeated" if twice else "answered", chat_json(
            {"captions": [*texts[: 5 - twice], *texts[:twice]], "unsuitable": ""}
        )

    def _rewritten(self, key: str, _words: str) -> tuple[str, Response]:
        return "answered", chat_json({"caption": f"Another wording, {key[:6]}."})

    def _captionverdict(self, key: str, _words: str) -> tuple[str, Response]:
        false = under(key, "untrue", self.rates.untrue)
        found = {"true_of_first": not false, "true_of_second": False, "searchable": True, "fits": True}
        return "untrue" if false else "answered", chat_json({"reasoning": "looked", **found})

    def _swaps(self, key: str, words: str) -> tuple[str, Response]:
        attribute = re.search(r"one for(?:\\n| )([^,.\\]+)", words)[1]  # type: ignore[index]
        swaps = [
            {"number": n, "text": f"A picture of the pink thing {key[:4]}{n}.", "attribute": attribute}
            for n in (1, 2, 9)
        ]
        return "answered", chat_json({"captions": swaps, "unsuitable": ""})


def put(seen: Seen) -> str:
    """The pictures and words of a question, whether it is asked for the first time or to be mended."""
    return digest(json.dumps(seen.body["messages"][0]))


def behind(url: str) -> str:
    return f'writer = {{ use = "openai:writer", url = "{url}", first_rest = 0.01, attempts = 3 }}'
