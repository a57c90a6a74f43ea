"""The tables of the settings under the mark in docs/settings.md, from the models.

python scripts/settings_page.py       # writes it; tests/test_settings.py checks that it is up to date
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from eyespot.settings import option
from eyespot.settings.build import InatSettings, LabelledSettings, RecosSettings, RerankSetSettings, RmirSettings
from eyespot.settings.fields import Settings
from eyespot.settings.gallery import IndexSettings
from eyespot.settings.measure import EvalSettings, ScoringSettings
from eyespot.settings.search import BackendSettings, SearchSettings, ServeSettings
from eyespot.settings.train import BackboneSettings, LinearSettings, QuariSettings

PAGE, MARK = Path(__file__).resolve().parent.parent / "docs" / "settings.md", "<!-- settings -->\n"
MODELS: dict[str, type[Settings]] = {
    "search": SearchSettings,
    "search, where vectors are searched": BackendSettings,
    "index": IndexSettings,
    "serve": ServeSettings,
    "metrics and compare": ScoringSettings,
    "eval": EvalSettings,
    "train quari": QuariSettings,
    "train linear": LinearSettings,
    "train backbone": BackboneSettings,
    "build rerank": RerankSetSettings,
    "build inat": InatSettings,
    "build rmir": RmirSettings,
    "build recos": RecosSettings,
    "build pairs labelled": LabelledSettings,
}
_BOUNDS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}"}


def table(model: type[Settings], places: bool = False) -> str:
    """Each setting with its option, default, bounds and help; `places`: in panels, and where it is not to be had."""
    lines = ["| Setting | On the command line | Default | What it does |", "|---|---|---|---|"]
    panel = ""
    for name in sorted(model.model_fields, key=lambda one: places and model.display(one).panel):  # a stable sort
        field, shown = model.model_fields[name], model.display(name)
        if places and shown.panel != panel:
            panel = shown.panel
            lines.append(f"| **{panel}** | | | |")
        spelled = ", ".join(f"`{one}`" for one in shown.spelled or (option(name),))
        spelled = "the argument" if shown.argument else spelled
        spelled += f", `{shown.env}`" if shown.env else ""
        without = {"page and API": shown.web, "Python": shown.python}
        texts = [
            str(field.description),
            *(f"Not in {where}: {why}." for where, why in without.items() if why and places),
        ]
        default = shown.usual or ("" if field.is_required() else _default(field.get_default(call_default_factory=True)))
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
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else ", ".join(value) if isinstance(value, tuple) else f"{value}"


def _words(annotation: Any) -> str:
    """The words that a setting may be, if it is one of some."""
    words = [word for part in get_args(annotation) for word in get_args(part) if isinstance(word, str)]
    return f" ({', '.join(words)})" if words else ""


def page() -> str:
    """The page as it is, with the tables as they should be."""
    tables = (f"\n## eyespot {verb}\n\n{table(model, model is SearchSettings)}" for verb, model in MODELS.items())
    return PAGE.read_text(encoding="utf-8").partition(MARK)[0] + MARK + "".join(tables)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
