"""The pages as a site: `make docs` builds docs/_build/html from docs/*.md and the README; nothing is fetched."""

from __future__ import annotations

import re
from typing import Any

project = "eyespot"
author = "The eyespot authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_show_copyright = False
html_theme = "furo"
html_static_path, html_css_files = ["_static"], ["site.css"]
html_title = "eyespot"
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Links to code and to folders leave the site; tests/test_docs.py checks that each leads somewhere in the repository.
suppress_warnings = ["myst.xref_missing", "myst.header"]
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True


described: set[int] = set()


def as_restructured(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in single backticks: "name: text" is a field, what is indented is code."""
    text = "\n".join(lines).replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")
    text = re.sub(r"(?<=\w)_(?=[\s,.;:)]|$)", r"\\_", text)
    text = re.sub(r"\n\n    (?=\S)", "\n\n::\n\n    ", text)
    text = re.sub(r"^([a-z_]+): (?=\S)", r":\1: ", text, flags=re.MULTILINE)
    lines[:] = text.splitlines()


def only_once(_app: Any, _what: str, _name: str, thing: Any, skip: bool, _options: Any) -> bool | None:
    """A class that several modules re-export is described under the first of them."""
    if skip or id(thing) in described:
        return True
    if isinstance(thing, type):
        described.add(id(thing))
    return None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", as_restructured)
    app.connect("autodoc-skip-member", only_once)
