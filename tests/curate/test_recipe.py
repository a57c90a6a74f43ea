"""Recipes: what a TOML file declares, and what in it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from eyespot.pipelines import CostLimits, Declared, Keep, MapStep, Step, digest_of, read_recipe
from eyespot.types import UsageError
from tests.wording import raises

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


def test_settings_become_an_object_or_are_refused() -> None:
    assert Declared("questions", "ask", {"words": 25}).fitted(Asking) == Asking(25)
    for wrong in ({"word": 25}, {"words": "many"}):
        with raises(UsageError):
            Declared("questions", "ask", wrong).fitted(Asking)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(
            ("[budget]", "[budgets]"),
            ("money", "euros"),
            ("money = 2.5", 'money = "much"'),
            ("money = 2.5", "money = nan"),
        ),
        *(("seed = 3", 'seed = "3"'), ("seed = 3", 'strict = "yes"'), ("name =", "name"), ("[[steps]]", "[[step]]")),
        *(('model = "small"', new) for new in ('model = "large"', 'models = ["small", "small"]', "models = [1]")),
        *(('model = "small"', new) for new in ('models = "small"', "models = 3")),
        *(('prompt = "ask.md"', 'prompt = "no.md"'), ('prompt = "ask.md"', "prompt = 7")),
        *(('step = "photos"', ""), ('step = "photos"', 'step = "fotos"'), ('"photos.csv"', '"gone.csv"')),
        *(('{ list = "photos.csv" }', "{ list = 5 }"), ("temperature = 0.25", "since = 2024-02-29")),
        *(
            ("temperature = 0.25", "temperature = nan"),
            ('{ use = "openai:small", temperature = 0.25 }', '"openai:small"'),
        ),
    ],
)
def test_what_is_wrong_is_said(recipe: Path, old: str, new: str) -> None:
    recipe.write_text(GOOD.replace(old, new))
    with raises(UsageError):
        read_recipe(recipe).made({"photos": made, "questions": made})


def test_a_folder_is_another_once_a_file_in_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(b"1")
    before = digest_of(tmp_path)
    (tmp_path / "a" / "y.jpg").write_bytes(b"2")
    assert digest_of(tmp_path) != before
