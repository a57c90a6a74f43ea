"""A recipe: one readable TOML file that says what a collection is, what is done to make it, and what it may cost."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from eyespot.llms.budget import CostLimits
from eyespot.pipelines.step import BatchStep, MapStep, SqlStep, Step, digest_of
from eyespot.storage.text_files import SMALL, refuse, text_of, toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Form = TypeVar("Form", bound=DataclassInstance)


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


def read_recipe(path: Path | str) -> Recipe:
    """The recipe in a file; `UsageError` says what in it is wrong."""
    path = Path(path)
    try:
        read = _RecipeFile.model_validate(toml_of(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part + 1) if isinstance(part, int) else part for part in first["loc"]]
        why = f"{first['msg'].lower()}; fix the recipe"
        if first["type"] == "extra_forbidden":
            why = f"is not known; there are: {', '.join((_Budget if place[1:] else _RecipeFile).model_fields)}"
        refuse(path, " ".join(place), why)
    steps = tuple(_declared(path, number, step, read.models) for number, step in enumerate(read.steps, 1))
    limits = CostLimits(**read.budget.model_dump())
    return Recipe(read.name or path.stem, read.about, steps, read.seed, limits, read.card, path.parent, read.strict)


# -- as the file has it -----------------------------------------------------------------------------------------


class _Budget(BaseModel, extra="forbid", strict=True):
    calls: int | None = None
    tokens: int | None = None
    money: float | None = None


class _StepTable(BaseModel, extra="allow", strict=True):
    """A step; what has no field here is one of its settings."""

    step: str = Field(min_length=1)
    name: str = ""
    prompt: str | None = None  # a file, or a text of several lines; several under names: `prompts = {ask = "FILE", …}`
    prompts: dict[str, str] = {}
    model: str | None = None  # `model = "NAME"`, or a list of names
    models: list[str] = []
    inputs: dict[str, str] = {}


class _RecipeFile(BaseModel, extra="forbid", strict=True):
    name: str = ""
    about: str = ""
    seed: int = 0
    strict: bool = False
    budget: _Budget = _Budget()
    models: dict[str, dict[str, Any]] = {}
    steps: list[_StepTable] = Field(min_length=1)
    card: dict[str, Any] = {}


def _declared(path: Path, number: int, read: _StepTable, models: Mapping[str, Any]) -> Declared:
    prompts = read.prompts | ({} if read.prompt is None else {"prompt": read.prompt})
    names = read.models if read.model is None else [read.model]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        refuse(path, f"steps {number} models", f"name {twice!r} twice; name it once")
    for file in [one for one in prompts.values() if "\n" not in one]:  # they go to models, so none may name a secret
        if "\0" in file or not (path.parent / file).resolve().is_relative_to(path.parent.resolve()):
            refuse(path, f"prompt {file!r}", "is not a file beside the recipe; copy it there")
    return Declared(
        read.step,
        read.name or read.step,
        read.model_extra or {},
        {name: file if "\n" in file else text_of(path.parent / file, SMALL) for name, file in prompts.items()},
        {name: _model(path, name, models) for name in names},
        {name: path.parent / place for name, place in read.inputs.items()},
    )


def _model(path: Path, name: str, models: Mapping[str, Any]) -> Any:
    if name not in models:
        refuse(path, f"model {name!r}", f"is not described; under [models] stand: {', '.join(models) or 'none'}")
    for key, value in models[name].items():
        try:
            json.dumps(value, allow_nan=False)  # models are asked in JSON, which has no dates and no NaN
        except (TypeError, ValueError):
            refuse(path, f"model {name!r}, {key}", f"is {value}; write text, a number, true or false")
    return models[name]
