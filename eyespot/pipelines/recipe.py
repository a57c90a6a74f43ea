"""A recipe: one readable TOML file that says what a collection is, what is done to make it, and what it may cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eyespot.llms.budget import CostLimits
from eyespot.pipelines.step import BatchStep, MapStep, SqlStep, Step, digest_of
from eyespot.storage.text_files import refuse, text_of, toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Form = TypeVar("Form", bound=DataclassInstance)

_TOP = {"name", "about", "seed", "strict", "budget", "models", "steps", "card"}
_OWN = {"step", "name", "prompt", "prompts", "model", "models", "inputs"}  # keys of a step that are no settings


@dataclass(frozen=True)
class Declared:
    """A step as a recipe declares it; `step` says which of the pipeline's it is, `name` what it is called here.

    `prompts` are texts by name, of files beside the recipe; `models` what is said of each under `[models]`; `inputs`
    are files and folders beside the recipe.
    """

    step: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)

    def fitted(self, form: type[Form]) -> Form:
        """Its settings as a dataclass; `UsageError` names a key that is unknown, missing, or of another kind."""
        from pydantic import TypeAdapter, ValidationError

        known = [one.name for one in dataclasses.fields(form)]
        unknown = [name for name in self.settings if name not in known]
        if unknown:
            raise UsageError(f"step {self.name} knows no {unknown[0]!r}; it has: {', '.join(known) or 'no settings'}")
        try:
            return TypeAdapter(form).validate_python(dict(self.settings))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "its settings"
            raise UsageError(f"step {self.name}, {where}: {first['msg'].lower()}; fix the recipe") from None

    def made(self, work: MapStep | BatchStep | SqlStep, version: int = 1, **more: Any) -> Step:
        """The step that does this work, with all that is declared; `more` fields take the place of what is declared."""
        inputs = {name: digest_of(path) for name, path in self.inputs.items()}
        declared = {"settings": self.settings, "prompts": self.prompts, "models": self.models, "inputs": inputs}
        return Step(self.name, work, version, **(declared | more))


@dataclass(frozen=True)
class Recipe:
    """What a recipe says. `card` answers questions of the data card, `folder` is where the recipe lies.

    `strict`: models are asked as it says, or not at all.
    """

    name: str
    about: str
    steps: tuple[Declared, ...]
    seed: int = 0
    limits: CostLimits = field(default_factory=CostLimits)
    card: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    strict: bool = False

    @property
    def models(self) -> dict[str, Any]:
        """The models that its steps ask, by their names."""
        return {name: model for one in self.steps for name, model in one.models.items()}

    def made(self, makers: Mapping[str, Callable[[Declared], Step]]) -> list[Step]:
        """Its steps; `makers` are those of the pipeline by their names in recipes. `UsageError` for another."""
        unknown = next((one.step for one in self.steps if one.step not in makers), None)
        if unknown is not None:
            raise UsageError(f"no step {unknown!r}; there are: {', '.join(makers)}")
        return [makers[one.step](one) for one in self.steps]


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file; `UsageError` says what in it is wrong."""
    fields = toml_of(path)
    if unknown := sorted(set(fields) - _TOP):
        refuse(path, unknown[0], f"is not a key of a recipe; there are: {', '.join(sorted(_TOP))}")
    steps = fields.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(one, dict) for one in steps):
        refuse(path, "", 'declares no steps; write [[steps]] and below it step = "…"')
    models = _table(path, fields, "models")
    declared = tuple(_declared(path, number, one, models) for number, one in enumerate(steps, 1))
    name, about = (_text(path, fields, name) for name in ("name", "about"))
    card, limits = _table(path, fields, "card"), _table(path, fields, "budget")
    known = [one.name for one in dataclasses.fields(CostLimits)]
    for limit, value in limits.items():
        if limit not in known:
            refuse(path, f"[budget] {limit}", f"is not a limit; there are: {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(path, f"[budget] {limit}", f"is {value!r}; write a number")
    strict, seed = fields.get("strict", False), fields.get("seed", 0)
    if not isinstance(strict, bool):
        refuse(path, "strict", f"is {strict!r}; write true or false")
    if not isinstance(seed, int) or isinstance(seed, bool):
        refuse(path, "seed", f"is {seed!r}; write a whole number")
    return Recipe(name or path.stem, about, declared, seed, CostLimits(**limits), card, path.parent, strict)


def _text(path: Path, fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        refuse(path, name, f"is {value!r}; write it in quotes")
    return value


def _table(path: Path, fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = fields.get(name, {})
    if not isinstance(table, dict):
        refuse(path, name, f"is {table!r}; write [{name}] and its keys below")
    return table


# -- one step ---------------------------------------------------------------------------------------------------


def _declared(path: Path, number: int, fields: Mapping[str, Any], models: Mapping[str, Any]) -> Declared:
    where = f"step {number}"
    step = _text(path, fields, "step")
    if not step:
        refuse(path, where, 'does not say which it is; write step = "…"')
    # `prompt = "FILE"`, or several under names: `prompts = {ask = "FILE", …}`
    prompts = _table(path, fields, "prompts") | ({"prompt": fields["prompt"]} if "prompt" in fields else {})
    inputs = _table(path, fields, "inputs")
    for kind, places in (("prompt", prompts), ("inputs", inputs)):
        for name, place in places.items():
            if not isinstance(place, str):
                what = "a file or a folder" if kind == "inputs" else "a file"
                refuse(path, f"{where}, {kind} {name}", f"is {place!r}; write the name of {what}")
    names = [fields["model"]] if "model" in fields else fields.get("models", [])  # `model = "NAME"`, or a list of names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        refuse(path, f"{where}, models", f"are {names!r}; write names that stand under [models]")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        refuse(path, f"{where}, models", f"name {twice!r} twice; name it once (a step may let it answer several times)")
    return Declared(
        step,
        _text(path, fields, "name") or step,
        {name: value for name, value in fields.items() if name not in _OWN},
        {name: text_of(path.parent / file) for name, file in prompts.items()},
        {name: _model(path, name, models) for name in names},
        {name: path.parent / place for name, place in inputs.items()},
    )


def _model(path: Path, name: str, models: Mapping[str, Any]) -> Any:
    if name not in models:
        refuse(path, f"model {name!r}", f"is not described; under [models] stand: {', '.join(models) or 'none'}")
    model = models[name]
    if not isinstance(model, dict):
        refuse(path, f"model {name!r}", f'is {model!r}; write {{ use = "openai:MODEL" }} and what else is said of it')
    for key, value in model.items():
        if not _is_plain(value):
            refuse(path, f"model {name!r}, {key}", f"is {value}; write text, a number, true or false")
    return model


def _is_plain(value: Any) -> bool:
    """Whether a value of TOML has a form in JSON, in which models are asked: dates and NaN have none."""
    if isinstance(value, list | dict):
        return all(_is_plain(one) for one in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
