"""An evaluation as one page to read: numbers, figures, other systems and papers, breakdowns, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from eyespot.benchmarks import Benchmark, Evaluation
from eyespot.reports.tables import (
    MEASURED,
    ReportTable,
    Summary,
    breakdowns_of,
    comparisons_of,
    halves,
    numeric,
    results_of,
)
from eyespot.search.contact_sheet import page, safe

LONG = 20  # rows; a longer table is folded
WIDE = 56  # characters; a wider table does not stand in a column
# The figures are drawn for white paper; in the dark their lightness is turned around and their hues are kept.
_STYLE = """\
body { max-width: 78rem }
h1 + p, header + main > p { margin-top: .35rem }
a { color: var(--mark) }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; line-height: 1.35 }
th, td { padding: .28rem 0 .28rem 1.4rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  white-space: nowrap }
th:first-child, td:first-child { padding-left: 0; max-width: 24rem; white-space: normal; overflow-wrap: break-word }
.side td:first-child { min-width: min(11.5rem, 38vw) }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; overflow-wrap: normal }
.n { text-align: right }
.behind { padding-left: .45rem; color: var(--soft) }
tr.measured td { font-weight: 600; color: var(--mark) }
.wide { overflow-x: auto; margin-top: .6rem; padding-bottom: .2rem }
.wide + .note, h2 + .note, summary + .note { margin-top: .4rem; font-size: .85rem }
.side { columns: 2 30rem; column-gap: 2.5rem; margin-top: .5rem }
.side > * { break-inside: avoid; padding-bottom: 1.4rem }
.across { column-span: all }
h3 { margin: 0; font-size: 1rem; line-height: 1.3; overflow-wrap: anywhere }
.drawn { height: auto; margin-bottom: 1.25rem; padding: .9rem; background: #fff; color: #1d1c1a }
.side > .drawn { padding-bottom: .6rem }
.drawn div { overflow-x: auto }
.drawn svg { display: block; width: 100%; min-width: 27rem; height: auto }
.drawn figcaption { padding: .5rem 0 0; color: #55524c; font-size: .85rem }
.warn { margin-top: .8rem; padding: .5rem .9rem; border-left: 4px solid var(--mark); background: var(--card);
  overflow-wrap: anywhere }
details { margin-top: .7rem }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere } summary small { color: var(--soft) }
pre { overflow-x: auto; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) {
  .drawn { background: var(--card) } .drawn figcaption { color: var(--soft) }
  .drawn svg { filter: invert(.879) hue-rotate(180deg) }
}
@media print {
  :root { color-scheme: light; --page: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --mark: #0b6b57 }
  body { max-width: none; padding: 0; font-size: 10pt } .drawn { border: 0; background: #fff }
  .drawn svg { filter: none } .drawn, tr, h2, h3 { break-inside: avoid } h2, h3, summary { break-after: avoid }
  .wide { overflow: visible } details::details-content { content-visibility: visible; height: auto }
}
"""


class Pictured(NamedTuple):
    """The figures of a page, captions with their SVG, and why some were not drawn."""

    drawn: Sequence[tuple[str, str]] = ()
    why_not: str = ""


def page_of(evaluation: Evaluation, pictured: Pictured, beside: Sequence[Summary] = ()) -> str:
    """One self-contained page; `beside` are the summaries of other systems."""
    benchmark, main = evaluation.benchmark, results_of(evaluation)
    body = [
        _about(benchmark),
        *(f'<p class="warn" dir="auto">{safe(note)}</p>\n' for note in evaluation.notes),
        _section("Results", f"{_laid_out(main)}{_note(main.note)}"),
        _figures(pictured),
        _section("Beside other systems and papers", _side(map(_titled, comparisons_of(evaluation, beside)))),
        _section("Broken down", "".join(_folded(table) for table in breakdowns_of(evaluation))),
        _section("How these numbers were made", _made(evaluation.made)),
    ]
    licence = f"Licence of the data: {benchmark.licence}." if benchmark.licence else ""
    cite = f"Cite: {benchmark.citation}." if benchmark.citation else ""
    return page(main.title, "".join(body), " ".join(part for part in (cite, licence) if part), _STYLE)


def page_of_table(table: ReportTable, pictured: Pictured, footer: str = "") -> str:
    """One self-contained page of a drawing and the numbers that it shows."""
    return page(
        table.title, f"{_note(table.note)}{_figures(pictured)}{_section('Numbers', _laid_out(table))}", footer, _STYLE
    )


def _about(benchmark: Benchmark) -> str:
    home = f' · <a href="{safe(benchmark.home)}" rel="noreferrer">{safe(benchmark.home)}</a>' if benchmark.home else ""
    return f'<p class="note">{safe(benchmark.about[:1].upper() + benchmark.about[1:])}{home}</p>\n'


def _section(heading: str, inside: str) -> str:
    """A section; nothing where it would be empty."""
    return f"<section><h2>{safe(heading)}</h2>\n{inside}</section>\n" if inside else ""


def _side(blocks: Iterator[str]) -> str:
    """Blocks in two columns where the window is wide enough."""
    inside = "".join(blocks)
    return f'<div class="side">\n{inside}</div>\n' if inside else ""


def _note(text: str) -> str:
    return f'<p class="note" dir="auto">{safe(text)}</p>\n' if text else ""


# -- tables -----------------------------------------------------------------------------------------------------


def _titled(table: ReportTable) -> str:
    if len(table.rows) > LONG:
        return f"<div>{_folded(table)}</div>\n"
    width = sum(max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True))
    kind = ' class="across"' if width > WIDE else ""
    return f'<div{kind}><h3 dir="auto">{safe(table.title)}</h3>{_laid_out(table)}{_note(table.note)}</div>\n'


def _folded(table: ReportTable) -> str:
    return (
        f'<details><summary dir="auto">{safe(table.title)} <small>({len(table.rows)} rows)</small></summary>'
        f"{_laid_out(table)}{_note(table.note)}</details>\n"
    )


def _laid_out(table: ReportTable) -> str:
    """Numbers under numbers: what stands behind a number is a column of its own."""
    right = numeric(table)
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    parted = [flag and any(halves(cell)[1] for cell in column) for flag, column in zip(right, columns, strict=True)]
    kinds = list(zip(right, parted, strict=True))
    head = "".join(_heading(name, *kind) for name, kind in zip(table.columns, kinds, strict=True))
    rows = "".join(_row(row, kinds) for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>\n'


def _heading(name: str, right: bool, parted: bool) -> str:
    return f'<th scope="col"{_RIGHT * right}>{safe(name)}</th>' + "<td></td>" * parted


def _row(row: Sequence[str], kinds: Sequence[tuple[bool, bool]]) -> str:
    kind = ' class="measured"' if row[0].endswith(f"({MEASURED})") else ""
    cells = "".join(_cell(cell, *each) for cell, each in zip(row, kinds, strict=True))
    return f"<tr{kind}>{cells}</tr>\n"


_RIGHT = ' class="n"'


def _cell(cell: str, right: bool, parted: bool) -> str:
    if not parted:
        return f"<td{_RIGHT}>{safe(cell)}</td>" if right else f'<td dir="auto">{safe(cell)}</td>'
    number, behind = halves(cell)
    return f'<td{_RIGHT}>{safe(number)}</td><td class="behind">{safe(behind)}</td>'


# -- the rest ---------------------------------------------------------------------------------------------------


def _figures(pictured: Pictured) -> str:
    return _section("Figures", _note(pictured.why_not) + _side(map(_figure, pictured.drawn)))


def _figure(drawn: tuple[str, str]) -> str:
    caption, svg = drawn
    told = f"<figcaption>{safe(caption)}</figcaption>"
    return f'<figure class="drawn"><div>{svg}</div>{told}</figure>\n'


def _made(made: dict[str, Any]) -> str:
    if not made:
        return ""
    told = json.dumps(made, indent=2, ensure_ascii=False, default=str)
    return f"<details><summary>Arguments, versions, inputs, machine</summary><pre>{safe_lines(told)}</pre></details>\n"


def safe_lines(text: str) -> str:
    """Text of several lines, each escaped."""
    return "\n".join(" " * (len(line) - len(line.lstrip())) + safe(line.lstrip()) for line in text.splitlines())
