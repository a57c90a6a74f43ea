"""Every option of every verb is tried: by a test that names the verb and the option, or on a page that runs as a test.

That a test names both says that somebody thought of them together; what the option does, the test has to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from eyespot.cli import app
from tests.pages import ROOT, blocks

OF_TYPER = {"--help", "--install-completion", "--show-completion"}


def options(command: Any, verb: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Each option of a command and of those below it: the words of its verb, and its spellings."""
    for parameter in command.params:
        spellings = {*parameter.opts, *parameter.secondary_opts}
        if parameter.param_type_name == "option" and not spellings & OF_TYPER:
            yield verb, spellings
    for name, member in getattr(command, "commands", {}).items():
        yield from options(member, (*verb, name))


@cache
def lines() -> list[set[str]]:
    """The words of each test file, and of each line of `eyespot` on a page that a test runs."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    texts = [path.read_text(encoding="utf-8") for path in files]
    running = [text for text in texts if "blocks(" in text or "run_page" in text]  # a test names the page that it runs
    pages = {page for page in (ROOT / "docs").rglob("*.md") if any(_names(text, page) for text in running)}
    shown = [
        line
        for page in sorted(pages)
        for block in blocks(page, "sh")
        for line in block.replace("\\\n", " ").splitlines()
        if "eyespot " in line
    ]
    return [*map(words_of_strings, texts), *(words(line) for line in shown)]


def _names(text: str, page: Path) -> bool:
    return any(name in text for name in (f'"{page.name}"', f'"{page.stem}"', f"{page.parent.name}/{page.stem}"))


def words_of_strings(code: str) -> set[str]:
    """The words of its strings, and what `run_json` adds to them."""
    constants = (node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant))
    found = {word for value in constants if isinstance(value, str) for word in words(value)}
    return found | ({"--json"} if "run_json(" in code else set())


def words(text: str) -> set[str]:
    """Words as a shell has them; of `--option=value` the option."""
    return {word.partition("=")[0] for word in text.split()}


def untried(command: Any) -> list[str]:
    """Options of a command and of those below it that no file and no line names together with their verb."""
    return [
        f"{' '.join(verb)} {min(spellings, key=len)}"
        for verb, spellings in options(command)
        if not any(there.issuperset(verb) and there & spellings for there in lines())
    ]


@pytest.mark.long
def test_every_option_is_tried_through_its_verb() -> None:
    eyespot = typer.main.get_command(app)

    assert len(list(options(eyespot))) > 380 and untried(eyespot) == []


@pytest.mark.long
def test_an_option_that_no_test_names_is_found() -> None:
    made_up = typer.Typer()

    @made_up.callback()
    def verbs() -> None:
        """A group, though it has one verb."""

    @made_up.command()
    def search(_new: bool = typer.Option(False, "--no-such-option"), _k: int = typer.Option(1, "-k")) -> None:
        """A verb that tests name, with an option that they name and one that they do not."""

    assert untried(typer.main.get_command(made_up)) == ["search --no-such-option"]
