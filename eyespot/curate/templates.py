"""Captions out of labels: sentences with gaps, of which each picture gets one by lot. Works offline.

A sentence says what the labels say and no more: nothing of pose, place or light, which only the picture knows.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

_TABLE = toml_of(Path(__file__).with_name("templates.toml"))
SENTENCES, COARSE = tuple(_TABLE["sentences"]), tuple(_TABLE["coarse"])
USUAL: Mapping[str, Sequence[str]] = _TABLE["columns"]
GAP = re.compile(r"\{(a )?([^{}]+)\}")
# Letters that are vowels to the eye and not to the ear, and the other way round.
AN = re.compile(r"(?!eu|ewe|uni(?!n)|use|uro|uto|uk|one\b|once)[aeiou]|hour|heir|honest", re.IGNORECASE)


@dataclass(frozen=True)
class Templates:
    """A captioner of sentences with gaps: `{name}`, and `{a name}` with an article, which `columns` fill.

    columns: gap → column. Which sentence a picture gets depends on `seed` and its id alone, so it is the same in every
    gallery; only those whose gaps its labels all fill can be drawn, of `otherwise` if there is none.
    """

    columns: Mapping[str, str]
    sentences: Sequence[str] = SENTENCES
    otherwise: Sequence[str] = COARSE
    seed: int = 0
    name: str = "templates"

    @classmethod
    def over(
        cls, columns: Sequence[str], named: Mapping[str, str], sentences: Sequence[str] | None = None, *, seed: int = 0
    ) -> Templates:
        """The sentences of this file over a gallery's columns, or the user's `sentences` in their place.

        named: gap → the column that the user says fills it. Raises `UsageError` for a named column that is not there, a
        gap of the user's that no column fills, and if no sentence has all its gaps filled.
        """
        filled = _filled(columns, named)
        for sentence in sentences or ():
            if lacking := _gaps(sentence) - filled.keys():
                raise UsageError(f"no column fills {{{min(lacking)}}} of the template {sentence!r}; {_there(columns)}")
        usual, otherwise = (SENTENCES, COARSE) if sentences is None else (sentences, ())
        known, coarse = (_with_columns(some, filled) for some in (usual, otherwise))
        if not known and not coarse:
            raise UsageError(f"no column names a species; name one with --species or --common; {_there(columns)}")
        gaps = sorted({gap for sentence in known + coarse for gap in _gaps(sentence)})
        return cls({gap: filled[gap] for gap in gaps}, known, coarse, seed)

    @property
    def settings(self) -> dict[str, Any]:
        """Seed, sentences and columns."""
        sentences = {"sentences": list(self.sentences), "otherwise": list(self.otherwise)}
        return {"seed": self.seed, **sentences, "columns": dict(self.columns)}

    def caption(self, facts: Mapping[str, Any], picture: Callable[[], Image] | None = None) -> str | None:
        """The sentence drawn for the picture, with its labels; the picture is not looked at."""
        values = {gap: value for gap, column in self.columns.items() if (value := _values(facts, gap, column))}
        fitting = _with_columns(self.sentences, values) or _with_columns(self.otherwise, values)
        if not fitting:
            return None
        # No generator, whose draws a new release may change
        lot = int(hashlib.sha256(f"{self.seed}\x1f{facts['id']}".encode("utf-8", "surrogatepass")).hexdigest(), 16)

        def enumeration(gap: re.Match[str]) -> str:
            *others, last = map(with_article if gap[1] else str, values[gap[2].strip()])
            return f"{', '.join(others)} and {last}" if others else last

        return GAP.sub(enumeration, fitting[lot % len(fitting)])


def parsed(text: str) -> tuple[str, ...]:
    """Sentences from a file, one a line; blank lines and those that begin with # are none.

    Raises `UsageError` if there is none, and for a sentence without a gap or with a brace that is not part of one.
    """
    lines = dict.fromkeys(line.strip() for line in text.splitlines())
    sentences = tuple(line for line in lines if line and not line.startswith("#"))
    if not sentences:
        raise UsageError("the file of templates has none; write one a line, such as: a photo of {a common}")
    for sentence in sentences:
        if not _gaps(sentence) or re.search("[{}]", GAP.sub("", sentence)):
            raise UsageError(f"the template {sentence!r} needs gaps such as {{common}}, each in one pair of braces")
    return sentences


def with_article(noun: str) -> str:
    """`a heron`, `an owl`, `a European robin`."""
    return f"an {noun}" if AN.match(noun) else f"a {noun}"


def _gaps(sentence: str) -> set[str]:
    return {name.strip() for _, name in GAP.findall(sentence)}


def _with_columns(sentences: Sequence[str], filled: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sentence for sentence in sentences if _gaps(sentence) <= filled.keys())


def _there(columns: Sequence[str]) -> str:
    return f"there are: {', '.join(columns) or 'none'}"


def _filled(columns: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """Every gap that can be filled, with its column: what the user says, the usual names, the columns' own."""
    plain = {re.sub(r"[\s_-]", "", column.casefold()): column for column in reversed(columns)}
    for column in named.values():
        if column not in columns:
            raise UsageError(f"no column {column!r}; {_there(columns)}")
    usual = {gap: next((plain[name] for name in names if name in plain), None) for gap, names in USUAL.items()}
    return (
        {column: column for column in columns}
        | {gap: column for gap, column in usual.items() if column is not None}
        | dict(named)
    )


def _values(facts: Mapping[str, Any], gap: str, column: str) -> list[str]:
    """What a label says, one or several things (`Ardea cocoi; Egretta thula`), each once."""
    value = facts.get(column)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return []
    parts = dict.fromkeys(" ".join(part.split()) for part in str(value).split(";"))
    genus = str(next((facts[name] for name in facts if name.casefold() == "genus"), None) or "")
    if gap != "species" or not genus or ";" in genus:
        return [part for part in parts if part]
    # Some data sets keep `Ardea` and `cocoi` in two columns
    return [f"{genus} {part}" if part.islower() and " " not in part else part for part in parts if part]
