"""A few real photos with their labels, indexed, recipes over them, and a model that is scripted to misbehave."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from eyespot import sample
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.making import write_set
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.pipelines import CostLimits, read_recipe, run
from tests.worlds import index_gallery
from tests.worlds.servers import Response, Seen, chat, chat_json, digest, under

WANTED = (
    *("hammer1", "hammer5", "plier1", "plier3", "dam1", "dam2", "windmill1", "windmill11", "pencil", "erasers", "bulb"),
    *("multimeter1", "igloo", "spoons", "fish1", "fish2", "baseball", "scissors1", "measuringTape1"),
)
KINDS = ("functional", "temporal", "causal")

DEMONSTRATION = """
teacher = { use = "demonstration:teacher" }
first = { use = "demonstration:first" }
second = { use = "demonstration:second" }
"""


def photos(folder: Path, names: tuple[str, ...] = WANTED) -> Path:
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if Path(row["file_name"]).stem.partition("__")[2] in names]
    (folder / "pictures").mkdir(parents=True)
    for row in rows:
        shutil.copy(sample.photos() / row["file_name"], folder / "pictures")
    with (folder / "pictures" / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    index_gallery(folder / "gallery", folder / "pictures")
    return folder / "gallery"


def recipe(folder: Path, gallery: Path, models: str = DEMONSTRATION, **settings: str) -> Path:
    """A recipe whose panel is `first` and twice `second`; `settings` are further lines of steps."""
    more = {"judged": 'models = ["first", "second"]\nvotes = { second = 2 }\n' + settings.pop("judged", "")}
    own = {
        "seeds": f'inputs = {{ gallery = "{gallery}" }}\nlabels = ["category", "title"]',
        "questions": 'model = "teacher"',
        "checked": 'model = "teacher"',
        "candidates": 'images = 6\ntexts = 2\ntext_encoder = "starter"',
    } | more
    optional = ("pooled",) if "pooled" in settings else ()
    names = (
        "seeds",
        "inputs",
        "questions",
        "checked",
        "candidates",
        "judged",
        "confident",
        *optional,
        "queries",
        "split",
    )
    steps = (f'[[steps]]\nstep = "{name}"\n{own.get(name, "")}\n{settings.get(name, "")}\n' for name in names)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "recipe.toml"
    place.write_text(f'name = "tiny"\nseed = 3\n[models]\n{models}\n' + "".join(steps), encoding="utf-8")
    return place


def ran(place: Path, out: Path, limits: CostLimits | None = None) -> FinishedSteps:
    pipe = RmirPipeline(read_recipe(place), out)
    return FinishedSteps(pipe, run(pipe.steps, pipe.work, pipe.running(limits)))


def made(place: Path, out: Path, limits: CostLimits | None = None) -> FinishedSteps:
    finished = ran(place, out, limits)
    write_set(finished, out)
    return finished


def files(out: Path) -> dict[str, bytes]:
    """Every file of the steps and of the set, bit for bit, without what tells of time and cost."""
    places = [*(out / "work" / "steps").rglob("*.*"), *(out / "set").rglob("*.parquet"), *(out / "audit").glob("*")]
    contents = {str(path.relative_to(out)): path.read_bytes() for path in places}
    return {name: data for name, data in contents.items() if not name.endswith("losses.parquet")}


# -- a model that misbehaves ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """Shares of its answers, from 0 to 1."""

    abstains: float = 0.0  # of kinds, and of votes
    contradicts: float = 0.0  # of checks
    breaks: float = 0.0  # of all answers: no JSON, also when asked again
    refuses: float = 0.0  # of all answers
    doubts: float = 0.0  # of votes that are not those of the others


Did = tuple[str, Response]  # what it did, in a word, and what it sends


@dataclass(frozen=True)
class Scripted:
    """A vision–language model as a server's script: what it says hangs on what it is shown alone.

    `said` counts what it did, once for each question that was put to it, however often.
    """

    rates: Rates
    said: dict[tuple[str, str, str], str] = field(default_factory=dict)  # by form, model and what was put to it

    def __call__(self, seen: Seen) -> Response:
        form = seen.body["response_format"]["json_schema"]["name"]
        model = seen.body["model"]
        key = digest(model, *shown_and_asked(seen))
        what, response = self._answer(form, key, seen)
        self.said[form, model, key] = what
        return response

    def counts(self, form: str, *models: str) -> Counter[str]:
        """What it did to questions of a form, as one of these models or any."""
        return Counter(
            what for (its, model, _), what in self.said.items() if its == form and model in (models or [model])
        )

    def _answer(self, form: str, key: str, seen: Seen) -> Did:
        if under(key, "breaks", self.rates.breaks):
            return "broken", chat("I would rather tell you a story.")
        if under(key, "refuses", self.rates.refuses):
            plain = chat("I'm sorry, but I can't help with that picture.")
            return "refused", plain if under(key, "plainly", 0.5) else chat("", refusal="not such a picture")
        answers: dict[str, Callable[[str, Seen], Did]] = {
            "Questions": self._questions,
            "Checked": self._checked,
            "Vote": self._vote,
        }
        return answers[form](key, seen)

    def _questions(self, key: str, seen: Seen) -> Did:
        kinds = {kind: self._proposed(key, kind) for kind in fields(seen) if kind not in ("description", "unsuitable")}
        left = sum(bool(one["abstain"]) for one in kinds.values())
        return f"left out {left}", chat_json({"description": "a thing", "unsuitable": "", **kinds})

    def _proposed(self, key: str, kind: str) -> dict[str, str]:
        if under(key, kind, self.rates.abstains):
            return {"abstain": "no", "reasoning": "", "question": "", "target": ""}
        target = ("a hammer", "a windmill", "a fish", "pliers")[int(digest(key, kind), 16) % 4]
        return {"abstain": "", "reasoning": "so it is", "question": f"What is {kind} here?", "target": target}

    def _checked(self, key: str, seen: Seen) -> Did:
        at_odds = under(key, "contradicts", self.rates.contradicts)
        rule = {"why": "it does", "holds": True}
        rules = dict.fromkeys((name for name in fields(seen) if name not in ("description", "fits")), rule)
        payload = {"description": "a thing", **rules, "fits": not at_odds}
        return "at odds" if at_odds else "fits", chat_json(payload)

    def _vote(self, key: str, seen: Seen) -> Did:
        both = digest(*shown_and_asked(seen))  # what judges agree on hangs on no judge
        verdict = "true" if under(both, "answers", 0.4) else "false"
        if under(key, "abstains", self.rates.abstains):
            verdict = "abstain"
        elif under(key, "doubts", self.rates.doubts):
            verdict = "false" if verdict == "true" else "true"
        payload = {"target_description": "b", "input_description": "a", "reasoning": "r", "verdict": verdict}
        return verdict, chat_json(payload)


def fields(seen: Seen) -> list[str]:
    """The fields of the answer that is asked for, in their order."""
    return list(seen.body["response_format"]["json_schema"]["schema"]["properties"])


def shown_and_asked(seen: Seen) -> list[str]:
    """The pictures and words of a question, whether it is asked for the first time or to be mended."""
    return [json.dumps(seen.body["messages"][0])]


def behind(url: str) -> str:
    way = f'url = "{url}", first_rest = 0.01, attempts = 3'
    return "\n".join(f'{name} = {{ use = "openai:{name}", {way} }}' for name in ("teacher", "first", "second"))
