"""What the pipeline itself can answer of a datasheet; a recipe's own answers go before these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eyespot.curate.recos.files import COLUMNS
from eyespot.runs.recos import VERSIONS

if TYPE_CHECKING:
    from eyespot.curate.recos.card import RecosSteps


def answers(made: RecosSteps) -> dict[str, dict[str, str]]:
    """Answers by section and question."""
    first, second, third = VERSIONS
    pictures: dict[str, str] = {}
    for one in made.records:
        pictures.setdefault(one["image"], one["version"])
    told = []
    for at, version in enumerate(VERSIONS):
        images = sum(VERSIONS.index(one) <= at for one in pictures.values())
        captions = sum(len(made.captions(one)) for one in VERSIONS[: at + 1])
        told.append(f"{version}: {images:,} pictures, {captions:,} captions")
    composition = {
        "items": "A record is a caption with its picture, or, in the largest version, a picture without captions. Each "
        "picture serves one sub-task.",
        "count": "; ".join(told) + ".",
        "fields": " ".join(f"{name}: {', '.join(columns)}." for name, columns in COLUMNS.items()),
        "labels": f"A caption is said to be true of its picture, and of no other, by {_writers(made)}; of a drawn "
        "picture by the rules that drew it.",
        "missing": f"The pictures that {third} adds bear no captions. Nobody looked at every caption beside every "
        "other picture: one may fit two.",
        "relations": f"A picture that {second} adds is like one of {first}, and its captions are those with words "
        f'changed; one that {third} adds is like either. The column "of" names which.',
        "splits": f"There is nothing to train on: {first}, {second} and {third} are one test in three sizes.",
        "elsewhere": "Nothing; the pictures lie in images/.",
    }
    return {"composition": composition, "collection": _collection(made), "uses": _uses()}


def _collection(made: RecosSteps) -> dict[str, str]:
    how = made.pipe.collecting
    places = ", ".join(made.pipe.sources.galleries) or "none"
    return {
        "means": f"Photos were searched for, or chosen by their labels, in these galleries: {places}. Captions by "
        f"{_writers(made)}. Drawn pictures by rules, each answer worked out anew from what is written.",
        "sampling": f"So many pictures of each of {len(how.wanted())} sub-tasks as the recipe says, a photo for one "
        "sub-task alone; then what is most like them, of the same source.",
    }


def _uses() -> dict[str, str]:
    return {
        "caution": "Captions are a model's unless a person confirmed or mended them; the column review says which.",
        "unfit": "To tell who people are, or what is true of those who can be seen in the pictures.",
    }


def _writers(made: RecosSteps) -> str:
    models = {name: model for step in made.pipe.recipe.steps for name, model in step.models.items()}
    found = [f"{name} ({model.get('use')})" for name, model in models.items() if isinstance(model, Mapping)]
    return ", ".join(found) or "nobody"
