"""The table of the settings of a search under the mark in docs/settings.md, from the model.

python scripts/settings_page.py       # writes it; tests/test_settings.py checks that it is up to date
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from eyespot.settings.fields import Settings, option
from eyespot.settings.search import SearchSettings

PAGE, MARK = Path(__file__).resolve().parent.parent / "docs" / "settings.md", "<!-- settings -->\n"
_BOUNDS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}"}


def table(model: type[Settings]) -> str:
    """Each setting with its option, default, bounds, help, and where it is not to be had; everyday ones first."""
    lines = ["| Setting | On the command line | Default | What it does |", "|---|---|---|---|"]
    panel = ""
    for name in sorted(model.model_fields, key=lambda one: model.display(one).panel):  # a stable sort
        field, shown = model.model_fields[name], model.display(name)
        if shown.panel != panel:
            panel = shown.panel
            lines.append(f"| **{panel}** | | | |")
        spelled = ", ".join(f"`{one}`" for one in shown.spelled or (option(name),))
        spelled += f", `{shown.env}`" if shown.env else ""
        without = {"page and API": shown.web, "Python": shown.python}
        texts = [str(field.description), *(f"Not in {where}: {why}." for where, why in without.items() if why)]
        default = shown.usual or _default(field.get_default(call_default_factory=True))
        bounds = ", ".join(
            text.format(getattr(more, end))
            for more in field.metadata
            for end, text in _BOUNDS.items()
            if hasattr(more, end)
        )
        kind = f" ({bounds})" if bounds else _words(field.annotation)
        cells = [f"`{name}`", spelled + kind, default, " ".join(texts)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    return "" if value is None or value == () else {True: "on", False: "off"}.get(value, f"{value}")


def _words(annotation: Any) -> str:
    """The words that a setting may be, if it is one of some."""
    words = [word for part in get_args(annotation) for word in get_args(part) if isinstance(word, str)]
    return f" ({', '.join(words)})" if words else ""


def page() -> str:
    """The page as it is, with the table as it should be."""
    return PAGE.read_text(encoding="utf-8").partition(MARK)[0] + MARK + table(SearchSettings)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
