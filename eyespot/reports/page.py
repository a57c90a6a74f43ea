"""An evaluation as one page to read: the numbers, the figures, what papers print, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from eyespot.benchmarks import Evaluation
from eyespot.reports.tables import Table, tables_of
from eyespot.search.contact_sheet import page, safe

_STYLE = """\
body { max-width: 72rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; margin-top: .75rem }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { font-weight: 600; color: var(--soft) }
td:not(:first-child) { white-space: nowrap }
tr.measured td { font-weight: 700; color: var(--mark) }
.wide { overflow-x: auto }
.drawn { height: auto; margin-top: 2.25rem; padding: 1rem; background: #fff; color: #1d1c1a; max-width: 60rem;
  border: 1px solid var(--line); border-radius: .75rem }
.drawn svg { display: block; width: 100%; height: auto }
.drawn figcaption { padding: .5rem 0 0; color: #55524c; font-size: .9rem }
.warn { margin-top: 1rem; padding: .6rem .9rem; border-left: 4px solid var(--mark); background: var(--card) }
details { margin-top: 2.25rem } pre { overflow-x: auto; font-size: .8rem; white-space: pre-wrap }
"""


def page_of(evaluation: Evaluation, drawn: Sequence[tuple[str, str]], why_not: str = "") -> str:
    """One self-contained page; `drawn` are captions with their SVG, `why_not` says why there are no figures."""
    benchmark = evaluation.benchmark
    main, *rest = tables_of(evaluation)
    notes = "".join(f'<p class="warn" dir="auto">{safe(note)}</p>\n' for note in evaluation.notes)
    figures = "".join(map(_figure, drawn)) or (f'<p class="note">{safe(why_not)}</p>\n' if why_not else "")
    source = " · ".join(part for part in (benchmark.about, benchmark.home) if part)
    body = (
        f'<p class="note">{safe(source)}</p>\n{notes}{_table(main._replace(title="Results"))}{figures}'
        + "".join(map(_table, rest))
        + _made(evaluation.made)
    )
    licence = f"licence of the data: {benchmark.licence}" if benchmark.licence else ""
    return page(main.title, body, " · ".join(part for part in (benchmark.citation, licence) if part), _STYLE)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{safe(name)}</th>' for name in table.columns)
    rows = "".join(map(_row, table.rows))
    note = f'<p class="note">{safe(table.note)}</p>' if table.note else ""
    return (
        f'<section><h2 dir="auto">{safe(table.title)}</h2>{note}<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>\n"
    )


def _row(row: Sequence[str]) -> str:
    kind = ' class="measured"' if row[0].endswith("(measured)") else ""
    return f"<tr{kind}>" + "".join(f'<td dir="auto">{safe(cell)}</td>' for cell in row) + "</tr>"


def _figure(drawn: tuple[str, str]) -> str:
    caption, svg = drawn
    return f'<figure class="drawn">{svg}<figcaption>{safe(caption)}</figcaption></figure>\n'


def _made(made: dict[str, Any]) -> str:
    told = json.dumps(made, indent=2, ensure_ascii=False, default=str)
    return f"<details><summary>How these numbers were made</summary><pre>{safe_lines(told)}</pre></details>\n"


def safe_lines(text: str) -> str:
    """Text of several lines, each escaped."""
    return "\n".join(" " * (len(line) - len(line.lstrip())) + safe(line.lstrip()) for line in text.splitlines())
