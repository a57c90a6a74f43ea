"""Licences of photos as exports spell them, and which of them allow copying."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_PARTS = r"(?:by|nc|nd|sa)(?:-(?:by|nc|nd|sa))*"
_VERSION = r"-(?:v-?|version-)?[1-4]-[05]"
_SITE = r"(?:https?-)?(?:www-)?creativecommons-org-"
_DEED = r"-(?:deed|legalcode)(?:-[a-z]{2,3})?"
# No part of a licence is taken for the country it was adapted to: a South African one is not told from "SA".
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
    """The licence that a text, code or address names; None for none, all rights reserved, or one that is not known.

    The text has to be a licence, or the same one several times, and nothing besides: "by John Smith" is none.
    `version` is that of texts which say none: iNaturalist's codes mean 4.0.
    """
    told = text or ""
    if "all-rights-reserved" in _dashed(told):
        return None
    credit = _CREDIT.search(told)  # how iNaturalist writes out whom to name
    text = credit[1] if credit else told
    # In lower case, with dashes between the words and codes for them: `CC_BY_NC_4_0` and titles become alike
    code = text.strip().lower().replace("_", "-")
    if re.fullmatch(_PARTS, code):
        plain = f"cc-{code}"  # its words alone, without dashes, may be a name, or another licence that asks for one
    else:
        told = _dashed(text)
        for words, code in _WORDS.items():
            told = re.sub(rf"\b{words}\b", code, told)
        plain = told
    found = set(_licences(plain))
    kinds, versions = {kind for kind, _ in found}, {told for _, told in found if told}
    if "" in kinds or len(kinds) != 1 or len(versions) > 1:
        return None
    return Licence(kinds.pop(), versions.pop() if versions else version)


def _licences(plain: str) -> Iterator[tuple[str, str]]:
    """Kind and version of each licence that a text consists of; an empty kind for what is none."""
    at = 0
    while at < len(plain):
        found = _ONE.match(plain, at)
        if found:
            if found["parts"] is None:
                kind_and_version = ("CC0" if found["zero"] else "PD"), "1.0"
            else:
                parts = found["parts"].split("-")
                # One of the six with BY, in whatever order its parts stand; empty for other parts
                kind = "CC " + "-".join(part for part in ("by", "nc", "nd", "sa") if part in parts).upper()
                text = kind if kind in KINDS and len(set(parts)) == len(parts) else ""
                kind_and_version = text, (found["version"] or "").replace("-", ".")
        else:
            kind_and_version = ("", "")
        yield kind_and_version
        at = found.end() if found else len(plain)


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


def _dashed(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.strip().lower()).strip("-")
