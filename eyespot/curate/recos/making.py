"""From a recipe to a set in a folder: the steps run, then the tables, the pictures and the card are written.

OUT/work     the steps with their records and dropped records, drawn pictures, answers, cost
OUT/review   the captions that a person checks, and their decisions
OUT/set      the set: images.parquet, captions.parquet, images/, README.md, card.html; replaced as a whole, unless the
             new one has lost records
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyespot.curate.recos.captions import DEMONSTRATION
from eyespot.curate.recos.card import RecosSteps
from eyespot.curate.recos.files import TABLES, write_set
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.curate.set_folder import SetFolder, SharePicture, write_cards
from eyespot.formats.pictures import without_position
from eyespot.pipelines import Recipe, StepResult, read_recipe
from eyespot.pipelines.data_card import card_of
from eyespot.types import NothingFound, UsageError

SHIPPED = Path(__file__).parent / "demonstration.toml"


def recipe_at(place: Path) -> Recipe:
    """The recipe in a file, or the package's under the name `demonstration`; `UsageError` if there is none."""
    return read_recipe(place_of(place))


def place_of(recipe: Path) -> Path:
    """The file of a recipe: this one, or the package's."""
    return SHIPPED if str(recipe) == DEMONSTRATION and not recipe.exists() else recipe


def set_of(pipe: RecosPipeline, done: Sequence[StepResult], *, replace: bool = False) -> SetFolder:
    """The folder of the set that these steps made; `replace` overwrites an earlier set that is the better one."""
    return SetFolder.of(pipe.out, "captions.parquet", len(RecosSteps(pipe, done).captions()), done, replace=replace)


def write(
    pipe: RecosPipeline,
    done: Sequence[StepResult],
    *,
    share: SharePicture = without_position,
    target: SetFolder | None = None,
) -> tuple[RecosSteps, dict[str, dict[str, int]]]:
    """Write the set and its card; the finished steps, and the size of each version.

    `share` decides what of a picture's metadata stays. `NothingFound` if there is no caption; the card, which says why,
    is written all the same.
    """
    made, folder = RecosSteps(pipe, done), target or set_of(pipe, done)
    counts = write_set(made.records, pipe.sources, folder.place, share)
    write_cards(card_of(done, made.card_content()), folder.place, TABLES)
    folder.settle()
    if not made.captions("v0"):
        raise NothingFound(f"no caption came through all steps; {folder.place / 'card.html'} says where they went")
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
