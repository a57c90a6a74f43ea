"""Under which licence a photo may be handed on, and whom that licence asks to name, by what its gallery says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

# Columns in lower case without separators, the most telling first: Darwin Core, Flickr, iNaturalist, Commons.
LICENCES = ("licence", "license", "rights", "usageterms", "licenceurl", "licenseurl")
AUTHORS = (
    *("rightsholder", "copyrightholder", "author", "photographer", "artist", "creator", "ownername", "owner"),
    *("recordedby", "observer", "username", "userlogin", "uploader", "attribution", "credit"),
)
ADDRESSES = ("source", "sourceurl", "url", "pageurl", "page", "link", "references")


class Attribution(NamedTuple):
    """A photo's licence, its author and where it is from; None where the gallery does not say.

    Author and address of a photo without a licence are not told: nobody asked to be named there.
    """

    licence: str | None = None
    author: str | None = None
    url: str | None = None


def plain_name(column: str) -> str:
    """A column's name as it is compared: in lower case, without separators."""
    return re.sub(r"[^a-z0-9]", "", column.lower())


def attribution_of(facts: Mapping[str, Any]) -> Attribution:
    """What the columns of a gallery say of a photo, however they are spelled."""
    plain = {plain_name(name): str(value).strip() for name, value in facts.items() if value}
    licence, author, url = (
        next((plain[name] for name in names if plain.get(name)), None) for names in (LICENCES, AUTHORS, ADDRESSES)
    )
    return Attribution(licence, author, url) if licence else Attribution()
