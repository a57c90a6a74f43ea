"""A world in which little goes well: judges quarrel, abstain and fall silent, and every number is worked out by hand.

Seven photos. The panel is `strict`, `mild` and twice `odd`: four judges. A query's list is its three nearest photos.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.making import write_set
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.pipelines import CallMeter, NoAnswer, Prompt, RunOptions, read_recipe, run
from eyespot.pipelines.prompts import Models
from tests.worlds import rmir as worlds

PHOTOS = ("hammer1", "plier1", "windmill1", "dam1", "fish1", "igloo", "pencil")
MODELS = "\n".join(f'{name} = {{ use = "world:{name}" }}' for name in ("teacher", "strict", "mild", "odd"))
ASKED = {  # photo → kind → the description of the target
    "hammer1": {"functional": "pliers", "temporal": "a nail"},
    "windmill1": {"temporal": "a dam"},
    "fish1": {"causal": "an igloo", "functional": "a hook"},
    "dam1": {"causal": "water"},
}
"""The nail breaks two rules, and the check of the hook contradicts itself."""
VOTES = {  # target → candidate, in the order of the list → the letters of strict, mild and odd's two; - is silence
    "pliers": {"plier1": "tttt", "pencil": "fff-", "igloo": "fffa"},
    "a dam": {"dam1": "tttf", "igloo": "ffff", "fish1": "ttff"},
    "an igloo": {"igloo": "tttt", "windmill1": "tttt", "pencil": "aaaf"},
    "water": {"windmill1": "ffff", "igloo": "ffft", "fish1": "tttt"},
}
POOLED = "tttt"  # on what no list has


def name_of(path: str) -> str:
    return Path(path).stem.partition("__")[2]


def client(prompt: Prompt, _meter: CallMeter) -> Mapping[str, Any]:
    """What teacher and judges of this world say."""
    about = prompt["_about"]
    if prompt["_task"] == "question":
        mine = ASKED.get(name_of(about["path"]), {})
        none = {"abstain": "nothing to ask", "reasoning": "", "question": "", "target": ""}
        kinds = {
            kind: {"abstain": "", "reasoning": "so it is", "question": f"What is {kind} here?", "target": mine[kind]}
            if kind in mine
            else none
            for kind in worlds.KINDS
        }
        return {"description": "a thing", "unsuitable": "", **kinds}
    if prompt["_task"] == "check":
        rules = {name: {"why": "", "holds": True} for name in ("dependence", "inference", "specificity", "wording")}
        if about["target"] == "a nail":
            rules["inference"] = rules["wording"] = {"why": "it does not", "holds": False}
        return {"description": "", **rules, "fits": about["target"] not in ("a nail", "a hook")}
    letter = VOTES[about["target"]].get(name_of(about["candidate_path"]), POOLED)[_seat(prompt)]
    if letter == "-":
        raise NoAnswer("it says nothing")
    verdict = {"t": "true", "f": "false", "a": "abstain"}[letter]
    return {"target_description": "", "input_description": "", "reasoning": "", "verdict": verdict}


def _seat(prompt: Prompt) -> int:
    """The place of a judge in the letters of a vote."""
    return {"strict": 0, "mild": 1, "odd": 1 + prompt["draw"]}[prompt["judge"]]


def photos(folder: Path) -> Path:
    return worlds.photos(folder, PHOTOS)


def recipe(folder: Path, gallery: Path, **settings: str) -> Path:
    """The recipe of this world; `settings` are further lines of steps."""
    place = worlds.recipe(folder, gallery, MODELS, **settings)
    text = place.read_text(encoding="utf-8")
    panel = 'models = ["strict", "mild", "odd"]\nvotes = { odd = 2 }'
    text = text.replace('models = ["first", "second"]\nvotes = { second = 2 }', panel)
    text = text.replace('images = 6\ntexts = 2\ntext_encoder = "starter"', "images = 3\ncontrols = 0.0")
    place.write_text(text, encoding="utf-8")
    return place


def made(place: Path, out: Path) -> FinishedSteps:
    """The set that a recipe makes in this world, written."""
    job = RmirPipeline(read_recipe(place), out)
    how = RunOptions(3, job.recipe.limits, Models({"world": client}))
    finished = FinishedSteps(job, run(job.steps, job.work, how))
    write_set(finished, out)
    return finished
