"""The HTML kit: one Jinja environment for all pages, and the templates of those that eyespot writes as files.

Every text is escaped, and free of characters that would turn it around. A page that is written needs nothing beside it:
no script, no font, no address. Pages that `eyespot serve` answers with have their templates in `web/templates`.
"""

from __future__ import annotations

import unicodedata
from base64 import b64encode
from functools import cache
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from PIL.Image import Image

WORLD = Path(__file__).with_name("world.json")  # outlines of countries in twentieths of a degree, east and south
JOINERS = frozenset("\u200c\u200d")  # they shape the letters beside them and draw nothing
_UNSEEN = frozenset({"Cc", "Cf"})


@cache
def environment(folder: Path = Path(__file__).parent / "templates") -> Environment:
    """Templates of a folder, each compiled when it is first used; a name that is not given is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        auto_reload=False,  # no look at each file for each page
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A path may hold halves of characters and marks that turn text around; plain text keeps its spaces
        finalize=lambda one: tidy(one) if type(one) is str and not (one.isascii() and one.isprintable()) else one,
    )
    made.globals["img"], made.filters["lines"], made.filters["quantity"] = img, _lines, quantity
    return made


def render(template: str, **content: Any) -> str:
    """A page that stands for itself."""
    return environment().get_template(template).render(content)


def tidy(text: str) -> str:
    """One line that reads as it is written: without control characters, such as those that turn `gpj.exe` around."""
    whole = text.encode("utf-8", "replace").decode()  # a file name that is not UTF-8 holds halves of characters
    shown = (char for char in whole if char.isspace() or char in JOINERS or unicodedata.category(char) not in _UNSEEN)
    return " ".join("".join(shown).split())


def safe(raw: str) -> str:
    """What may stand in a page or a drawing, between tags and as an attribute."""
    return escape(tidy(raw))


def img(jpeg: bytes | None, alt: str) -> Markup:
    """The picture within the page, or nothing where there is none or it cannot be read."""
    from markupsafe import Markup

    if jpeg is None or decoded(jpeg) is None:
        return Markup()
    return Markup('<img src="data:image/jpeg;base64,{}" alt="{}">').format(b64encode(jpeg).decode(), tidy(alt))


def checked_address(page: str | None) -> str:
    """The address of a running page without its last slash; "" for none. `UsageError` for anything else."""
    parts = urlsplit(page or "")
    if page and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
        raise UsageError(f"--page (EYESPOT_PAGE) is an eyespot serve, as http://127.0.0.1:8000, not {page!r}")
    return (page or "").rstrip("/")


def photo_address(page: str, id: str) -> str:
    """Where a running page shows a photo large; "" without a page."""
    return page and f"{page}/photo/{quote(id, safe='')}"


def decoded(jpeg: bytes) -> Image | None:
    """The picture in RGB; None if the bytes are not a JPEG that can be read."""
    from PIL import Image

    try:
        return Image.open(BytesIO(jpeg), formats=["JPEG"]).convert("RGB")
    except (OSError, SyntaxError, ValueError):
        return None


def _lines(text: str) -> Markup:
    """Text of several lines, each escaped, indentation kept."""
    from markupsafe import Markup

    rows = (" " * (len(line) - len(line.lstrip())) + safe(line.lstrip()) for line in text.splitlines())
    return Markup("\n".join(rows))
