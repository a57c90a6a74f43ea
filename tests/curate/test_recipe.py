"""Recipes: what a TOML file declares, and what in it is wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from eyespot.pipelines import CostLimits, Declared, Keep, MapStep, Step, digest_of, read_recipe
from eyespot.types import UsageError
from tests.pages import ROOT, blocks, tools

GOOD = """
name = "herons"
about = "Questions about herons."
seed = 3

[budget]
calls = 100
money = 2.5

[models]
small = { use = "openai:small", temperature = 0.25 }

[[steps]]
step = "photos"
inputs = { list = "photos.csv" }

[[steps]]
step = "questions"
name = "ask"
prompt = "ask.md"
model = "small"
words = 25

[card.motivation]
purpose = "To find herons."
"""


@dataclass(frozen=True)
class Asking:
    """Settings of a step."""

    words: int = 20
    kinds: tuple[str, ...] = ("causal",)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "ask.md").write_text("Ask a question of {words} words.")
    (tmp_path / "photos.csv").write_text("path\na.jpg\n")
    (tmp_path / "recipe.toml").write_text(GOOD)
    return tmp_path / "recipe.toml"


def made(declared: Declared) -> Step:
    return declared.made(MapStep(lambda record, _context: Keep(record)), version=4)


def test_all_of_a_recipe(recipe: Path) -> None:
    read = read_recipe(recipe)

    photos, ask = read.steps
    assert (read.name, read.seed, read.limits) == ("herons", 3, CostLimits(100, None, 2.5))
    assert read.card == {"motivation": {"purpose": "To find herons."}}
    assert photos.inputs == {"list": recipe.parent / "photos.csv"}
    assert ask == Declared(
        "questions",
        "ask",
        {"words": 25},
        {"prompt": "Ask a question of {words} words."},
        {"small": {"use": "openai:small", "temperature": 0.25}},
    )


def test_a_step_is_made_of_what_is_declared(recipe: Path) -> None:
    photos, ask = read_recipe(recipe).made({"photos": made, "questions": made})

    assert (ask.name, ask.version, ask.settings) == ("ask", 4, {"words": 25})
    assert photos.inputs == {"list": digest_of(recipe.parent / "photos.csv")}


def test_settings_become_an_object() -> None:
    assert Declared("questions", "ask", {"words": 25}).fitted(Asking) == Asking(25)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"word": 25}, "step ask knows no 'word'; it has: words, kinds"),
        ({"words": "many"}, "step ask, words: input should be a valid integer.*; fix the recipe"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Declared("questions", "ask", settings).fitted(Asking)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[budget]", "[budgets]", "budgets: is not a key of a recipe; there are: about, budget"),
        ("money", "euros", "euros: is not a limit; there are: calls, tokens, money"),
        ("money = 2.5", 'money = "much"', "money: is 'much'; write a number"),
        ("seed = 3", 'seed = "3"', "seed: is '3'; write a whole number"),
        ('model = "small"', 'model = "large"', "model 'large': is not described; under .models. stand: small"),
        ('prompt = "ask.md"', 'prompt = "no.md"', "there is no file .*no.md"),
        ('prompt = "ask.md"', "prompt = 7", "prompt: is 7; write the name of a file"),
        ('step = "photos"', "", "step 1: does not say which it is"),
        ('step = "photos"', 'step = "fotos"', "no step 'fotos'; there are: photos, questions"),
        ('"photos.csv"', '"gone.csv"', "gone.csv cannot be read"),
        ('{ list = "photos.csv" }', "{ list = 5 }", "step 1, inputs list: is 5; write the name of a file or a folder"),
        ('model = "small"', 'models = ["small", "small"]', "step 2, models: name 'small' twice; name it once"),
        ('{ use = "openai:small", temperature = 0.25 }', '"openai:small"', "model 'small': is 'openai:small'; write"),
        ("temperature = 0.25", "since = 2024-02-29", "model 'small', since: is 2024-02-29; write text, a number"),
        ("temperature = 0.25", "temperature = nan", "model 'small', temperature: is nan; write text, a number"),
        ("money = 2.5", "money = nan", "a budget is a number, 0 or more"),
        ("[[steps]]", "[[step]]", "step: is not a key of a recipe"),
        ("name =", "name", "cannot be read as TOML"),
    ],
)
def test_what_is_wrong_is_said(recipe: Path, old: str, new: str, sentence: str) -> None:
    recipe.write_text(GOOD.replace(old, new))

    with pytest.raises(UsageError, match=sentence):
        read_recipe(recipe).made({"photos": made, "questions": made})


def test_a_folder_is_another_once_a_file_in_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(b"1")
    before = digest_of(tmp_path)

    (tmp_path / "a" / "y.jpg").write_bytes(b"2")

    assert digest_of(tmp_path) != before


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    page, env = ROOT / "docs" / "recipes.md", tools(tmp_path)
    shell = subprocess.run(["sh", "-ec", "\n".join(blocks(page, "sh"))], cwd=tmp_path, env=env, capture_output=True)
    assert shell.returncode == 0, shell.stderr
    code = "\n".join(blocks(page, "python"))

    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert shown.stdout.splitlines() == ["[False, False]", "5 What is it made of?"], shown.stderr
    assert (tmp_path / "work" / "card.html").is_file()


@pytest.mark.parametrize("models", ["[1]", '"small"', "3"])
def test_models_of_a_step_are_a_list_of_names(recipe: Path, models: str) -> None:
    recipe.write_text(GOOD.replace('model = "small"', f"models = {models}"))

    with pytest.raises(UsageError, match=r"models: are .*; write names that stand under \[models\]"):
        read_recipe(recipe)
