"""From a recipe to a set in a folder: the steps run, then the tables, the pictures and the card are written.

OUT/work     the steps with their records and dropped records, drawn pictures, answers, cost
OUT/review   the captions that a person checks, and their decisions
OUT/set      the set: images.parquet, captions.parquet, images/, README.md, card.html; replaced as a whole, unless the
             new one has lost records
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from eyespot.curate.recos import demonstration
from eyespot.curate.recos.card import RecosSteps
from eyespot.curate.recos.files import TABLES, Share, write_set
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.curate.set_folder import SetSize, set_folder, settle
from eyespot.formats.positions import without_position
from eyespot.pipelines import CostLimits, Recipe, RunOptions, Step, StepResult, read_recipe
from eyespot.pipelines.data_card import card_of, write_card, write_croissant, write_readme
from eyespot.pipelines.prompts import Models
from eyespot.types import NothingFound, UsageError

SHIPPED = Path(__file__).parent / "demonstration.toml"


def recipe_at(place: Path) -> Recipe:
    """The recipe in a file, or the package's under the name `demonstration`; `UsageError` if there is none."""
    return read_recipe(place_of(place))


def place_of(recipe: Path) -> Path:
    """The file of a recipe: this one, or the package's."""
    return SHIPPED if str(recipe) == demonstration.NAME and not recipe.exists() else recipe


@dataclass(frozen=True)
class RecosJob:
    """A recipe and the output folder; `galleries` override the recipe's, `limit` is for a trial.

    `share` decides what of a picture's metadata stays; `replace` overwrites an earlier set that is the better one.
    """

    recipe: Recipe
    out: Path
    galleries: Mapping[str, Path] = field(default_factory=dict)
    limit: int | None = None
    share: Share = without_position
    replace: bool = False

    @cached_property
    def pipeline(self) -> RecosPipeline:
        """Its steps."""
        return RecosPipeline(self.recipe, self.out, self.galleries, self.limit)

    @property
    def steps(self) -> list[Step]:
        """The steps in their order; `UsageError` for what is wrong with the recipe or a gallery."""
        return self.pipeline.steps

    def running(self, limits: CostLimits | None = None, retry_failed: bool = False) -> RunOptions:
        """Options to run them: the recipe's models, its budget or another one."""
        strict = self.recipe.strict
        models = Models({demonstration.NAME: demonstration.writer}, strict=strict)
        limits = limits or self.recipe.limits
        return RunOptions(self.recipe.seed, limits, models, retry_failed=retry_failed, strict=strict)

    def check(self, limits: CostLimits | None = None) -> None:
        """`UsageError` for a model that cannot be used within the budget, before anything is done."""
        models = {name: model for step in self.recipe.steps for name, model in step.models.items()}
        Models({demonstration.NAME: demonstration.writer}).check(models, limits or self.recipe.limits)

    def place(self, done: Sequence[StepResult]) -> Path:
        """The folder for the set that these steps made."""
        return set_folder(self.out, self._size(done), self.replace)

    def _size(self, done: Sequence[StepResult]) -> SetSize:
        return SetSize.of("captions.parquet", len(RecosSteps(self.pipeline, done).captions()), done)

    def write(self, done: Sequence[StepResult]) -> tuple[RecosSteps, dict[str, dict[str, int]]]:
        """Write the set and its card under `out`; the finished steps, and the size of each version.

        `NothingFound` if there is no caption; the card, which says why, is written all the same.
        """
        made, folder = RecosSteps(self.pipeline, done), self.place(done)
        counts, card = (
            write_set(made.records, self.pipeline.sources, folder, self.share),
            card_of(done, made.card_content()),
        )
        write_card(card, folder)
        write_readme(card, TABLES, folder)
        write_croissant(card, TABLES, folder)
        settle(self.out, folder, self._size(done))
        if not made.captions("v0"):
            raise NothingFound(f"no caption came through all steps; {folder / 'card.html'} says where they went")
        return made, counts


def galleries_of(given: Sequence[str]) -> dict[str, Path]:
    """Galleries as they are named on a command line: `NAME=FOLDER`, or `FOLDER` with the folder's name."""
    galleries: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        place = Path(path if equals else text)
        name = name if equals else place.resolve().name
        if not name or name in galleries:
            raise UsageError(f"two galleries are called {name!r}; name them apart, as in -g birds=FOLDER")
        galleries[name] = place
    return galleries
