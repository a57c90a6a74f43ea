"""Licences of photos as exports spell them, and which of them allow copying."""

from __future__ import annotations

import re
from typing import NamedTuple

from eyespot.types import UsageError

_ADDRESS = "https://creativecommons.org"


class Licence(NamedTuple):
    """A licence by the name its owner gives it."""

    kind: str  # as `KINDS` has it: "CC BY-NC"
    version: str  # "4.0"; empty where the source says none

    @property
    def name(self) -> str:
        """As people write it: "CC BY-NC 4.0"."""
        return f"{self.kind} {self.version}".strip()

    @property
    def url(self) -> str:
        """Where its text stands; empty without a version."""
        if self.kind == "PD":
            return f"{_ADDRESS}/publicdomain/mark/1.0/"
        if self.kind == "CC0":
            return f"{_ADDRESS}/publicdomain/zero/1.0/"
        return f"{_ADDRESS}/licenses/{self.kind.removeprefix('CC ').lower()}/{self.version}/" if self.version else ""


COPYABLE = ("CC0", "CC BY", "CC BY-SA", "CC BY-NC", "CC BY-NC-SA", "CC BY-ND", "CC BY-NC-ND")
KINDS = (*COPYABLE, "PD")
_PARTS = re.compile(r"(?:^|\bcc-|\blicenses-|\bcommons-)((?:by|nc|nd|sa)(?:-(?:by|nc|nd|sa))*)(?=-|$)")
_ZERO = re.compile(r"\b(cc-?0|publicdomain-zero|zero)\b")
_MARK = re.compile(r"^(pd|pdm|public-domain|cc-pdm?)$|publicdomain-mark")
_WORDS = {"attribution": "by", "noncommercial": "nc", "non-commercial": "nc", "noderivatives": "nd", "noderivs": "nd",
          "sharealike": "sa", "share-alike": "sa"}  # fmt: skip


def licence_of(text: str | None, version: str = "") -> Licence | None:
    """The licence that a text, code or address names; None for none, all rights reserved, or one that is not known.

    `version` is that of texts which say none: iNaturalist's codes mean 4.0.
    """
    plain = _plain(text or "")
    if _MARK.search(plain):
        return Licence("PD", "1.0")
    if _ZERO.search(plain):
        return Licence("CC0", "1.0")
    kind = None if "all-rights-reserved" in plain else _kind(plain)
    told = re.search(r"\b([1-4]-[05])\b", plain)
    return Licence(kind, told[1].replace("-", ".") if told else version) if kind else None


def _kind(plain: str) -> str | None:
    """One of the six with BY, in whatever order its parts stand."""
    found = _PARTS.search(plain)
    parts = set(found[1].split("-")) if found else set()
    kind = "CC " + "-".join(part for part in ("by", "nc", "nd", "sa") if part in parts).upper()
    return kind if kind in KINDS else None


def why_not(text: str | None, allowed: tuple[str, ...]) -> str | None:
    """Why a photo under this licence stays out, or None."""
    if text is None or not text.strip():
        return "no licence"
    licence = licence_of(text)
    if licence is None:
        return "a licence that allows no copying, or none that is known"
    return None if licence.kind in allowed else f"licence {licence.kind} not wanted"


def checked(kinds: list[str]) -> tuple[str, ...]:
    """Licences that a user allows, by their usual names; `UsageError` for another."""
    found = [licence_of(kind) for kind in kinds]
    for kind, licence in zip(kinds, found, strict=True):
        if licence is None:
            raise UsageError(f"no licence {kind!r} is known; there are: {', '.join(KINDS)}")
    return tuple(dict.fromkeys(licence.kind for licence in found if licence)) or COPYABLE


def _plain(text: str) -> str:
    """In lower case, with dashes between the words: `CC_BY_NC_4_0` and `.../licenses/by-nc/4.0/` become alike."""
    told = text.strip().lower()
    for word, code in _WORDS.items():
        told = told.replace(word, code)
    return re.sub(r"[^a-z0-9]+", "-", told).strip("-")
