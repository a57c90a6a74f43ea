"""Every line of every recipe, not of its sample: on tiny models under the real names, to the table at the end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eyespot import reproduce
from eyespot.reproduce.comparison import cells
from eyespot.reproduce.recipes import TableRecipe
from eyespot.reproduce.running import WELL, WorkState, words_of
from tests.command import run_eyespot
from tests.examples import drawn
from tests.lazy_import import requires
from tests.worlds import tables
from tests.worlds.servers import Double, chat

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("without_figures"),
    requires("torch", "transformers", "open_clip"),
]
DATA: dict[str, Sequence[Callable[[Path], None]]] = {
    "inquire-2": [tables.inquire, tables.wildclip],
    "inquire-3": [tables.inquire],
    "inquire-4": [tables.inquire],
    "inquire-5": [tables.inquire, tables.wildclip],
    "inquire-e": [tables.inquire],
    "quari-2": [tables.inquire],
    "quari-3b": [tables.inquire],
    "ilias": [tables.ilias],
    "quari-1a": [tables.ilias],
    "quari-1b": [tables.ilias, tables.labelled],
    "quari-3a": [tables.ilias, tables.captioned],
    "quari-4": [tables.inquire, tables.ilias, tables.captioned],
    "rmir-2": [tables.rmir],
    "recos-2": [tables.recos],
    "recos-3": [tables.recos],
}
# Tables whose lines are the same for the most part, in one folder: what one has run, the next does not run again.
TOGETHER: list[tuple[str, ...]] = [("inquire-5", "inquire-4"), ("inquire-e", "inquire-3")]
TOGETHER += [(name,) for name in reproduce.names() if name not in sum(TOGETHER, ())]


@pytest.fixture(scope="module")
def tiny_hub(hub_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    from open_clip import factory

    before = list(factory._MODEL_CONFIG_PATHS)
    tables.models(hub_cache, tmp_path_factory.mktemp("models"))
    yield
    factory._MODEL_CONFIG_PATHS[:] = before
    factory._rescan_model_configs()


# Tables whose rows differ in nothing but the model: how many of them are made, but in `make test-all`.
FEW = {"quari-1b": 4, "rmir-2": 5}


def rows_of(recipe: TableRecipe) -> list[str]:
    return [one.name for one in drawn(recipe.systems, FEW.get(recipe.name, len(recipe.systems)))]


def run(recipe: TableRecipe, work: Path, **env: str) -> None:
    """What `eyespot reproduce` does, in this process; what somebody put there is not downloaded."""
    state, rows = WorkState(work), {*rows_of(recipe)}
    for command in recipe.every_command(False):
        if command.systems and not rows & {*command.systems}:
            continue
        if state.is_finished(command) or command.line.startswith("git "):
            continue
        words = words_of(command.line, work)
        if command.line.startswith("eyespot "):
            done = run_eyespot(*words[3:], cwd=work, **env)
        else:
            done = subprocess.run(words, cwd=work, capture_output=True, text=True)
        assert done.returncode in WELL, f"{command.line}\n{done.stderr}"
        state.finish(command, done.returncode, 0.0)


@pytest.mark.parametrize("names", TOGETHER, ids="-".join)
def test_every_line_of_a_table_runs_and_each_row_is_in_it(
    names: tuple[str, ...], tiny_hub: None, tmp_path: Path
) -> None:
    for name in names:
        check_table(name, tmp_path)


def check_table(name: str, work: Path) -> None:
    recipe = reproduce.recipe(name)
    small = {key: recipe.sample_values[key] for key in ("training", "draw", "width", "epochs") if key in recipe.values}
    if not (work / "data").exists():
        (work / "data").mkdir()
        for make in DATA[name]:
            make(work / "data")
    with Double(then=chat("Yes", {"Yes": 0.7, "No": 0.2})) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "EYESPOT_DEVICE": "cpu"}
        run(replace(recipe, values={**recipe.values, **small}), work, **env)

    found = cells(recipe, work)

    made = rows_of(recipe)
    for system in (one for one in recipe.systems if one.name in made):
        fits = [one for one in found if one.method == system.method and system.source in ("", one.source)]
        assert "no report" not in fits[0].verdict, fits[0]
    wanting = [one for one in found if "there is no report" in one.verdict or "it is not run" in one.verdict]
    expected = {*recipe.missing, *(one.method for one in recipe.systems if one.name not in made)}
    assert "*" in recipe.missing or {one.method for one in wanting} <= expected  # *: all others
    if name == "quari-3b":  # the ranking that is re-ranked, and what comes of it
        reports = {row: work / "reports" / row / "run.parquet" for row in ("first", "quari")}
        assert reports["first"].read_bytes() != reports["quari"].read_bytes()
