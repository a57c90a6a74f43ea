"""What a data card holds: checks, losses, cost, samples, how the texts read, the datasheet, and how it was made."""

from __future__ import annotations

import json
import math
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, TypeAlias

import eyespot
from eyespot.llms.budget import total_of
from eyespot.llms.fences import commanding
from eyespot.llms.settings import unpriced
from eyespot.pipelines import Provenance, Recipe, Spent, Step, StepResult
from eyespot.pipelines.data_card.datasheet import Answered, datasheet_answers
from eyespot.pipelines.outcomes import line_of
from eyespot.types import quantity

INSTEAD = {"temperature": "model's own was used", "response_format": "the form was asked for in words alone"}
UNPRICED = "no price"
PACKAGES = ("numpy", "pillow", "duckdb", "pyarrow", "onnxruntime", "torch", "transformers", "open-clip-torch")


Level: TypeAlias = Literal["green", "amber", "red"]
LEVELS: tuple[Level, ...] = ("green", "amber", "red")


class QualityCheck(NamedTuple):
    """What was looked at, how it stands, and the numbers that say so."""

    what: str
    level: Level
    text: str


def worst(checks: Iterable[QualityCheck]) -> Level:
    """The level of a set: that of its worst check."""
    return max((check.level for check in checks), key=LEVELS.index, default="green")


def level_of(value: float, amber: float, green: float) -> Level:
    """Green from a number on, amber from a smaller one on."""
    return "green" if value >= green else "amber" if value >= amber else "red"


_NO_LICENCE = {
    "unclear": r"\W*(unclear|unknown|unspecified|undetermined|not \w+ed\b|not known|none\b|n/?a\b|null\b|\?|$)",
    "all rights reserved": r".*all rights reserved|copyrighted\b",
}
_FORBIDS = {  # also of a URL, of CC_BY_NC, and of a licence written out
    "NC": r".*((?<![a-z])nc(?![a-z])|non[- ]?commercial)",
    "ND": r".*((?<![a-z])nd(?![a-z])|no[- ]?deriv)",
}


def licence_check(licences: Sequence[str | None]) -> QualityCheck:
    """Whether every photo has a licence, and how many licences forbid commercial use (NC) or changes (ND).

    A text that says "unclear", "unknown" or "all rights reserved" is not a licence.
    """
    given = [licence.casefold() for licence in licences if licence and licence.strip()]
    named = [licence for licence in given if not any(re.match(one, licence) for one in _NO_LICENCE.values())]
    parts = [f"{len(named):,} of {len(licences):,} photos have a licence"]
    for what, pattern in {**_NO_LICENCE, **_FORBIDS}.items():
        count = sum(re.match(pattern, licence) is not None for licence in (named if what in _FORBIDS else given))
        parts += [f"{quantity(count, 'is', 'are')} {what}"] if count else []
    whole = len(named) == len(licences)
    rest = "" if whole else "; photos without one may be shared by their owner only"
    return QualityCheck("Licences", "green" if whole else "amber", f"{'; '.join(parts)}{rest}.")


def wilson(hits: int, cases: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share (Wilson 1927); 0 to 1 of no cases."""
    if not cases:
        return 0.0, 1.0
    share, spread = hits / cases, z * z / cases
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / cases + spread / (4 * cases))
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class CardTable:
    """A table: `title` above it, `note` below.

    The numbers of the column `drawn` are also drawn as bars; a `band` of the height (from, to) in 0 to 1 is shaded.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    drawn: int | None = None
    band: tuple[float, float] | None = None


@dataclass(frozen=True)
class SampleRecord:
    """A record to be looked at: its pictures with what each is, and lines that stand under them."""

    heading: str
    pictures: Sequence[tuple[str, Path]]
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class CardContent:
    """What a card cannot count from the steps. `answers` are those of the datasheet, `texts` by what they are.

    `tables` are the pipeline's own: a histogram, the licences. `checks` open the card, `notes` follow.
    """

    title: str
    about: str = ""
    seed: int = 0
    answers: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, Iterable[str]] = field(default_factory=dict)
    samples: Sequence[SampleRecord] = ()
    tables: Sequence[CardTable] = ()
    notes: Sequence[str] = ()
    citation: str = ""
    licence: str = ""
    checks: Sequence[QualityCheck] = ()


def content_of(recipe: Recipe, defaults: Mapping[str, Mapping[str, str]], citation: str, **parts: Any) -> CardContent:
    """What a card tells of a recipe, whose `[card]` has licence, citation, and answers that replace the `defaults`."""
    answers: dict[str, Any] = dict(defaults)
    for section, part in recipe.card.items():
        if section not in ("citation", "licence"):  # anything but answers is handed on, to be refused
            answers[section] = {**defaults.get(section, {}), **part} if isinstance(part, Mapping) else part
    terms = answers.get("distribution", {})
    licence = str(recipe.card.get("licence") or (isinstance(terms, Mapping) and terms.get("licence")) or "")
    if licence and isinstance(terms, Mapping):  # card, datasheet and Croissant have the same
        answers["distribution"] = {"licence": licence, **terms}
    parts |= {"citation": str(recipe.card.get("citation") or citation), "licence": licence}
    return CardContent(recipe.name, recipe.about, recipe.seed, answers, **parts)


@dataclass(frozen=True)
class StepCard:
    """A step as the card tells it: what it does; settings, models and inputs as JSON; its prompts by name."""

    name: str
    version: int
    about: str
    settings: str
    prompts: Mapping[str, str]

    @classmethod
    def of(cls, step: Step) -> StepCard:
        """As the recipe declares it."""
        parts = {"settings": step.settings, "models": step.models, "inputs": step.inputs}
        declared = json.loads(line_of({name: part for name, part in parts.items() if part}))
        settings = json.dumps(declared, indent=2, ensure_ascii=False) if declared else ""
        return cls(step.name, step.version, step.about, settings, step.prompts)


@dataclass(frozen=True)
class Card:
    """All of a card, ready to be laid out."""

    content: CardContent
    records: int
    losses: CardTable
    balance: CardTable
    cost: CardTable
    requests: CardTable
    reading: CardTable
    datasheet: list[Answered]
    steps: list[StepCard]
    versions: str

    @property
    def standing(self) -> str:
        """How many records there are, and how many questions of the datasheet nobody answered."""
        unanswered = sum(not one.answer for one in self.datasheet)
        rest = f"{unanswered} of the datasheet's {len(self.datasheet)} questions are open"
        return f"{self.records:,} records; {rest if unanswered else 'the datasheet is complete'}."

    @property
    def weakest(self) -> str:
        """The first of the worst checks with what it found; "" if all are green."""
        level = worst(self.content.checks)
        bad = (check for check in self.content.checks if check.level == level != "green")
        return next((f"{check.what}: {check.text}" for check in bad), "")

    @property
    def verdict(self) -> str:
        """How the checks stand, in a line; empty without any."""
        levels = [check.level for check in self.content.checks]
        counts = ", ".join(f"{levels.count(name)} {name}" for name in ("red", "amber", "green") if name in levels)
        return f"{worst(self.content.checks).capitalize()}: {counts}." if levels else ""


def card_of(done: Sequence[StepResult], content: CardContent) -> Card:
    """The card of a pipeline that has run; `UsageError` for answers to questions that nobody asks."""
    lost = [
        [step.name, reason, _number(count), f"{count / (counts.came + counts.added):.1%}"]
        for step, counts in ((one.step, one.counts) for one in done)
        for reason, count in sorted(counts.dropped.items(), key=lambda item: (-item[1], item[0]))
    ]
    steps = [[one.step.name, *map(_number, (*one.counts[:3], sum(one.counts.dropped.values())))] for one in done]
    columns = ["step", "in", "added", "kept", "left out"]
    reading = [
        [name, _number(one.texts), f"{one.words:.1f}", f"{one.middle:g}", f"{one.least}–{one.most}", f"{one.grade:.1f}"]
        for name, several in content.texts.items()
        if (one := wording(several)) is not None
    ]
    reading_columns = ["texts", "number", "words, mean", "median", "range", "Flesch–Kincaid grade, median"]
    texts = [text for several in content.texts.values() for text in several]
    note = (
        "The grade is that of a United States school, and for English. Texts that read like an instruction to a model: "
        f"{sum(map(commanding, texts)):,} of {len(texts):,}."
    )
    found = {"eyespot": eyespot.__version__, "Python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    versions = ", ".join(f"{name} {number}" for name, number in found.items())
    return Card(
        content,
        done[-1].counts.kept if done else 0,
        CardTable("Why records were left out", ["step", "reason", "records", "of its step"], lost),
        CardTable("Step by step", columns, steps, "in + added = kept + left out."),
        _cost(done),
        _requests(done),
        CardTable("How the texts read", reading_columns, reading, note),
        datasheet_answers(done, content.answers),
        [StepCard.of(one.step) for one in done],
        versions,
    )


# -- counts -----------------------------------------------------------------------------------------------------


def _cost(done: Sequence[StepResult]) -> CardTable:
    unknown = [unpriced(one.step.models) if one.cost.spent.tokens else [] for one in done]
    rows = [
        [one.step.name, _seconds(one.cost.seconds), *_spent(one.cost.spent, bool(names))]
        for one, names in zip(done, unknown, strict=True)
    ]
    total = total_of(one.cost.spent for one in done)
    if len(done) > 1:
        rows.append(["together", _seconds(sum(one.cost.seconds for one in done)), *_spent(total, any(unknown))])
    note = "Over all runs, those before a step was changed among them; an answer that was there cost nothing again."
    if names := sorted(set(chain.from_iterable(unknown))):
        note += f" No price is known for {', '.join(names)}, so no sum with its requests is given."
    columns = ["step", "time", "calls", "tokens in", "tokens out", "US dollars"]
    if not any(total):
        return CardTable("What it cost", columns[:2], [row[:2] for row in rows], "No model was asked.")
    return CardTable("What it cost", columns, rows, note)


def _requests(done: Sequence[StepResult]) -> CardTable:
    """What became of settings of the recipe on the way to models, counted from the answers."""
    rows = []
    for one in done:
        answers: Counter[str] = Counter()
        changed: Counter[tuple[str, str]] = Counter()
        for model, provenance, count in one.origins:
            answers[model] += count
            changed.update(dict.fromkeys(((model, what) for what in _differences(model, provenance)), count))
        rows += [
            [one.step.name, model, what, f"{count:,} of {answers[model]:,}"] for (model, what), count in changed.items()
        ]
    title, columns = "Where models were asked otherwise than the recipe says", ["step", "model", "what", "answers"]
    note = "Counted from the answers that each step uses; all other settings were sent as the recipe has them."
    return CardTable(title, columns, rows, note)


def _differences(model: str, provenance: Provenance | None) -> Iterator[str]:
    if provenance is None:
        yield "whether its settings were accepted is not recorded"
        return
    if provenance.served and provenance.served != model.partition(":")[2]:
        yield f"answered as {provenance.served}"
    for one in provenance.changes:
        setting = f"{one.field} {one.asked}"
        if not one.sent_as:
            yield f"{setting} not accepted: {INSTEAD.get(one.field, 'asked without')}"
        else:
            yield f"{setting} sent as {one.sent_as}" + (f" {one.sent}" if one.sent != one.asked else "")


def _spent(spent: Spent, unknown: bool) -> list[str]:
    money = spent.dollars.removeprefix("$") if spent.money else "0"
    return [*map(_number, spent[:3]), UNPRICED if unknown else money]


_number = "{:,}".format


def _seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = round(seconds / 60), int(seconds // 3600)
    return f"{minutes} min" if hours < 2 else f"{hours} h {minutes - 60 * hours} min"


# -- how texts read -------------------------------------------------------------------------------------------------


_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+(?:[.,]\d+)*")
_SENTENCE = re.compile(r"[.!?…]+(?=\s|$)")
_VOWELS = re.compile(r"[aeiouy]+")
_PARTED = re.compile(r"[aeiouy]ing|(?<![cstgx])io|(?<![cstl])ia|(?<![gq])ua|creat(?!ur)")  # vowels of two syllables
_SILENT = re.compile(r"(?<=[^aeiouyl])e$|(?<=[aeiouy]l)e$|(?<=[^aeiouylsxzcgh])es$|(?<=[^aeioutdy])ed$")


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """Texts, words in each (mean, median, fewest, most), and the median of their Flesch–Kincaid grades."""

    texts: int
    words: float
    middle: float
    least: int
    most: int
    grade: float  # of a United States school


def wording(texts: Iterable[str]) -> TextStatistics | None:
    """How some texts read; None of none that has a word. The grade is for English, and rough for single words."""
    found = [text for text in texts if _WORD.search(text)]
    if not found:
        return None
    counts = [len(words(text)) for text in found]
    sentences = (max(1, len(_SENTENCE.findall(text.strip()))) for text in found)
    spoken = (sum(map(syllables, words(text))) for text in found)
    grade = median(map(flesch_kincaid, counts, sentences, spoken))
    return TextStatistics(len(found), fmean(counts), median(counts), min(counts), max(counts), grade)


def flesch_kincaid(words: int, sentences: int, syllables: int) -> float:
    """The grade: 0.39 words per sentence + 11.8 syllables per word - 15.59 (Kincaid and others, 1975)."""
    return 0.39 * words / sentences + 11.8 * syllables / words - 15.59


def words(text: str) -> list[str]:
    """The words of a text; a number is one, and so is what a hyphen or an apostrophe joins."""
    return _WORD.findall(text)


def syllables(word: str) -> int:
    """About how many syllables an English word has: groups of vowels without a silent ending, at least one.

    Right for 97 of 100 words of running text, by the CMU Pronouncing Dictionary.
    """
    count = 0
    for part in re.split(r"[-’']", word.lower()):
        groups = len(_VOWELS.findall(_SILENT.sub("", part)))
        count += max(groups, bool(_VOWELS.search(part))) + len(_PARTED.findall(part))
    return max(1, count)
