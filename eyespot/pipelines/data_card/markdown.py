"""A data card as Markdown, its thumbnails as files beside it; and tables of cells that anyone wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from eyespot.html import tidy
from eyespot.pipelines.data_card.content import Card, CardTable
from eyespot.pipelines.data_card.datasheet import parted


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; nothing for no rows."""
    lines = [[cell(value) for value in row] for row in rows]
    names = [cell(value) for value in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (names, ["---"] * len(names), *lines)) if lines else ""


def cell(value: Any) -> str:
    """A value as text that ends no cell, no row, and opens no tag."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def as_markdown(card: Card, pictures: list[list[str]]) -> str:
    """The card; `pictures` are the files of each sample's thumbnails, "" where one cannot be read."""
    texts = [f"# {cell(card.content.title)}", _plain_text(card.content.about), card.standing]
    if card.verdict:
        checks = [[check.level, check.what, _plain_text(check.text)] for check in card.content.checks]
        texts += [f"## Checks\n\n**{card.verdict}**", table(["", "check", "found"], checks)]
    texts += (f"> {_plain_text(note)}" for note in card.content.notes)
    records = ["## What became of the records"]
    for rows in (card.balance, card.losses, card.cost, card.requests):
        records += _rows(rows)
    samples = ["## Samples"] if card.content.samples else []
    for sample, files in zip(card.content.samples, pictures, strict=True):
        samples.append(f"### {_plain_text(sample.heading)}")
        shown = [(_bare(label), file) for (label, _), file in zip(sample.pictures, files, strict=True)]
        samples.append(" ".join(f"![{label}]({file})" if file else f"({label}: unreadable)" for label, file in shown))
        samples.append("\n".join(f"* {_plain_text(line)}" for line in sample.lines))
    tables = [row for rows in (card.reading, *card.content.tables) for row in _rows(rows)]
    parts = [*texts, *records, *samples, *tables, *_sheet(card), *_made(card)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows(rows: CardTable) -> Iterator[str]:
    if rows.rows:
        yield f"### {cell(rows.title)}"
        yield table(rows.columns, rows.rows)
        yield cell(rows.note)


def _plain_text(text: str) -> str:
    """Words of a model or of people, which make no link, picture or code."""
    return re.sub(r"([\[\]`])", r"\\\1", cell(text))


def _bare(label: str) -> str:
    return re.sub(r"[\[\]\\]", "", cell(label))


def _sheet(card: Card) -> Iterator[str]:
    yield "## Datasheet"
    for section, answers in groupby(card.datasheet, key=lambda one: one.section):
        yield f"### {section.capitalize()}"
        entries, unanswered = parted(answers)
        yield "\n\n".join(f"**{one.question}**  \n{_plain_text(one.answer)}" for one in entries)
        yield f"Open: {' '.join(unanswered)}" if unanswered else ""


def _made(card: Card) -> Iterator[str]:
    yield "## Steps, prompts and models"
    yield f"{card.versions}. Seed {card.content.seed}."
    for step in card.steps:
        yield f"### {cell(step.name)}"
        yield f"Version {step.version}. {cell(step.about)}"
        yield _fenced(step.settings, "json") if step.settings else ""
        for name, text in step.prompts.items():
            yield f"Prompt `{tidy(name)}`:"
            yield _fenced(text, "text")
    yield cell(f"Licence: {card.content.licence}") if card.content.licence else ""
    yield cell(f"Cite: {card.content.citation}") if card.content.citation else ""


def _fenced(text: str, language: str) -> str:
    """A block of code that no line of its own can end."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
