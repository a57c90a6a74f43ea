"""From a recipe to a set in a folder: the steps are run, then the tables, the pictures and the card are written.

OUT/work     the steps with what they kept and dropped, drawn pictures, answers, cost
OUT/review   what a person is to look at, and their decisions
OUT/set      the set, replaced as a whole: images.parquet, captions.parquet, images/, README.md, card.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from eyespot.curate.recos import demonstration
from eyespot.curate.recos.card import RecosSteps
from eyespot.curate.recos.files import TABLES, write_set
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.pipelines import CostLimits, Recipe, RunOptions, Step, StepResult, read_recipe
from eyespot.pipelines.data_card import card_of, write_card, write_readme
from eyespot.pipelines.prompts import Models
from eyespot.types import NothingFound, UsageError

SET = "set"
SHIPPED = Path(__file__).parent / "demonstration.toml"


def recipe_at(place: Path) -> Recipe:
    """The recipe in a file, or the one of the package under the name `demonstration`; `UsageError` if there is none."""
    return read_recipe(place_of(place))


def place_of(recipe: Path) -> Path:
    """Where a recipe lies: there, or in the package."""
    return SHIPPED if str(recipe) == demonstration.NAME and not recipe.exists() else recipe


@dataclass(frozen=True)
class RecosJob:
    """A recipe and the folder in which the set is made; `galleries` go before the recipe's, `limit` is for a trial."""

    recipe: Recipe
    out: Path
    galleries: Mapping[str, Path] = field(default_factory=dict)
    limit: int | None = None

    @cached_property
    def pipeline(self) -> RecosPipeline:
        """Its steps."""
        return RecosPipeline(self.recipe, self.out, self.galleries, self.limit)

    @property
    def steps(self) -> list[Step]:
        """The steps in their order; `UsageError` for what is wrong with the recipe or a gallery."""
        return self.pipeline.steps

    def running(self, limits: CostLimits | None = None, retry_failed: bool = False) -> RunOptions:
        """How they are run: by the recipe's models, within its budget or another."""
        strict = self.recipe.strict
        models = Models({demonstration.NAME: demonstration.writer}, strict=strict)
        limits = limits or self.recipe.limits
        return RunOptions(self.recipe.seed, limits, models, retry_failed=retry_failed, strict=strict)

    def check(self, limits: CostLimits | None = None) -> None:
        """`UsageError` for a model that cannot be asked within its budget or another, before anything is done."""
        models = {name: model for step in self.recipe.steps for name, model in step.models.items()}
        Models({demonstration.NAME: demonstration.writer}).check(models, limits or self.recipe.limits)

    def write(self, done: Sequence[StepResult]) -> tuple[RecosSteps, dict[str, dict[str, int]]]:
        """The set and its card under `out`; what was made, and how much each version holds.

        `NothingFound` if there is no caption; the card, which says why, is there all the same.
        """
        made, folder = RecosSteps(self.pipeline, done), self.out / SET
        counts, card = write_set(made.records, self.pipeline.sources, folder), card_of(done, made.told())
        write_card(card, folder)
        write_readme(card, TABLES, folder)
        if not made.captions("v0"):
            raise NothingFound(f"no caption came through all steps; {folder / 'card.html'} says where they went")
        return made, counts


def galleries_of(given: Sequence[str]) -> dict[str, Path]:
    """Galleries as they are named on a command line: `NAME=FOLDER`, or `FOLDER`, whose own name it has then."""
    found: dict[str, Path] = {}
    for one in given:
        name, equals, path = one.partition("=")
        place = Path(path if equals else one)
        name = name if equals else place.resolve().name
        if not name or name in found:
            raise UsageError(f"two galleries are called {name!r}; name them apart, as in -g birds=FOLDER")
        found[name] = place
    return found
