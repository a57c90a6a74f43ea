"""Which observations a collection takes: their licences and years, and the lists that a user gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse, text_of
from eyespot.types import UsageError

_ADDRESS = "https://creativecommons.org"


@dataclass(frozen=True, order=True)
class Licence:
    """A licence by the name its owner gives it."""

    kind: str  # as `KINDS` has it: "CC BY-NC"
    version: str  # "4.0"; empty where the source says none

    @property
    def name(self) -> str:
        """As people write it: "CC BY-NC 4.0"."""
        return f"{self.kind} {self.version}".strip()

    @property
    def url(self) -> str:
        """The address of its text; empty without a version."""
        if self.kind == "PD":
            return f"{_ADDRESS}/publicdomain/mark/1.0/"
        if self.kind == "CC0":
            return f"{_ADDRESS}/publicdomain/zero/1.0/"
        return f"{_ADDRESS}/licenses/{self.kind.removeprefix('CC ').lower()}/{self.version}/" if self.version else ""


COPYABLE = ("CC0", "CC BY", "CC BY-SA", "CC BY-NC", "CC BY-NC-SA", "CC BY-ND", "CC BY-NC-ND")
KINDS = (*COPYABLE, "PD")
_PARTS = r"(?:by|nc|nd|sa)(?:-(?:by|nc|nd|sa))*"
_VERSION = r"-(?:v-?|version-)?[1-4]-[05]"
_SITE = r"(?:https?-)?(?:www-)?creativecommons-org-"
_DEED = r"-(?:deed|legalcode)(?:-[a-z]{2,3})?"
# A part of a licence is never read as a country: "sa" is ShareAlike.
_COUNTRY = r"(?:-(?!cc|by|nc|nd|sa)[a-z]{2}|-igo)?"
_ONE = re.compile(
    rf"""(?:this-work-is-)?(?:licensed-under-)?(?:the-|a-)?(?:
    (?P<zero>(?:public-domain-)?(?:{_SITE}publicdomain-zero|(?:cc-)?cc-?0|cc-zero)(?:-v?1-0)?(?:-universal)?
        (?:-public-domain-dedication)?(?:{_DEED})?)
    | (?P<mark>(?:{_SITE}publicdomain-mark|(?:cc-)?(?:pdm?|public-domain(?:-mark)?))(?:-1-0)?(?:{_DEED})?)
    | (?:{_SITE}licen[sc]es-|cc-(?:licen[sc]e-)?|(?={_PARTS}{_VERSION}))(?P<parts>{_PARTS})
        (?:-(?:v-?|version-)?(?P<version>[1-4]-[05]){_COUNTRY})?
        (?:-(?:international|unported|generic|public|licen[sc]e)|{_DEED})*
    )(?:-|$)""",
    re.VERBOSE,
)
_CREDIT = re.compile(r"\b(?:some|no) rights reserved \(([^()]+)\)(?:, uploaded by .*)?$", re.IGNORECASE)
_WORDS = {
    r"creative-?commons(?!-org)": "cc",
    r"attribution": "by",
    r"non-?commercial": "nc",
    r"no-?deriv(?:ative)?s?(?:-works)?": "nd",
    r"share-?alike": "sa",
}


def licence_of(text: str | None, version: str = "") -> Licence | None:
    """The licence that a text, code or address names; None for none, all rights reserved, or an unknown one.

    The text must be a licence, or the same one several times, and nothing else: "by John Smith" is not a licence.
    `version` is the version of texts without one: iNaturalist's codes mean 4.0.
    """
    text = text or ""
    if "all-rights-reserved" in _dashed(text):
        return None
    if credit := _CREDIT.search(text):  # how iNaturalist writes the credit line
        text = credit[1]
    # In lower case, with dashes between the words and codes for them: `CC_BY_NC_4_0` and titles become alike
    code = text.strip().lower().replace("_", "-")
    if re.fullmatch(_PARTS, code):
        plain = f"cc-{code}"  # its words alone, without dashes, may be a name or another licence
    else:
        plain = _dashed(text)
        for words, code in _WORDS.items():
            plain = re.sub(rf"\b{words}\b", code, plain)
    licences = set(_licences(plain))
    kinds, versions = {kind for kind, _ in licences}, {known for _, known in licences if known}
    if "" in kinds or len(kinds) != 1 or len(versions) > 1:
        return None
    return Licence(kinds.pop(), versions.pop() if versions else version)


def _licences(plain: str) -> Iterator[tuple[str, str]]:
    """Kind and version of each licence that a text consists of; an empty kind for anything else."""
    end = 0
    while end < len(plain):
        match = _ONE.match(plain, end)
        if match is None:
            yield "", ""
            return
        end = match.end()
        if match["parts"] is None:
            yield ("CC0" if match["zero"] else "PD"), "1.0"
            continue
        # One of the six with BY, with its parts in any order
        parts = match["parts"].split("-")
        kind = "CC " + "-".join(part for part in ("by", "nc", "nd", "sa") if part in parts).upper()
        is_known = kind in KINDS and len(set(parts)) == len(parts)
        yield kind if is_known else "", (match["version"] or "").replace("-", ".")


def why_not(text: str | None, allowed: tuple[str, ...]) -> str | None:
    """Why a photo under this licence stays out, or None."""
    if text is None or not text.strip():
        return "no licence"
    licence = licence_of(text)
    if licence is None:
        return "a licence that allows no copying, or none that is known"
    return None if licence.kind in allowed else f"licence {licence.kind} not wanted"


def checked(kinds: Sequence[str]) -> tuple[str, ...]:
    """Licences that a user allows, by their usual names; `UsageError` for another."""
    allowed = []
    for kind in kinds:
        licence = licence_of(kind)
        if licence is None:
            raise UsageError(f"no licence {kind!r} is known; there are: {', '.join(KINDS)}")
        allowed.append(licence.kind)
    return tuple(dict.fromkeys(allowed)) or COPYABLE


def _dashed(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.strip().lower()).strip("-")


TAXA = ("name", "species", "scientific_name", "taxon_name", "latin_name", "taxon", "taxon_id")
PHOTOS = ("photo", "photo_uuid", "photo_id", "file_name")


def listed(path: Path, columns: Sequence[str]) -> set[str]:
    """The names of a list: one per line (.txt), or the values of these columns of a table, in any case.

    Raises `UsageError` for a table without any of the columns, and for an empty list.
    """
    lines = path.suffix.lower() in (".txt", "")
    if lines:
        values = text_of(path).splitlines()
    else:
        rows = list(rows_of(path))
        known = {_column_key(column) for column in columns}
        there = {name: None for _, row in rows for name in row}
        if there and not any(_column_key(name) in known for name in there):
            refuse(path, "", f"has no column {columns[0]} ({', '.join(columns[1:])}); there are: {', '.join(there)}")
        cells = (value for _, row in rows for name, value in row.items() if _column_key(name) in known)
        values = [str(value) for value in cells if value is not None]
    names = {name for value in values if (name := " ".join(value.split()))}
    if not names:
        refuse(path, "", f"lists nothing; write {columns[0]}s into it, or leave the list out")
    return names


def _column_key(column: str) -> str:
    """A column's name for comparison: `Scientific Name`, `scientificName` and `scientific_name` are equal."""
    return "".join(letter for letter in column.casefold() if letter.isalnum())


@dataclass(frozen=True)
class ObservationFilter:
    """Which observations count."""

    years: tuple[int, int] | None = None
    grades: tuple[str, ...] = ()
    licences: tuple[str, ...] = COPYABLE


def years_of(text: str) -> tuple[int, int]:
    """`2021-2023` or `2021` as first and last year; `UsageError` for another text."""
    match = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        raise UsageError(f"years are written as 2021-2023 or 2022, not {text!r}")
    return first, last
