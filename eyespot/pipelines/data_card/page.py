"""A data card as one page that needs nothing beside it: light or dark, on paper, on a telephone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from eyespot.pipelines.data_card.content import Card, CardTable, SampleRecord, StepCard
from eyespot.pipelines.data_card.datasheet import parted
from eyespot.pipelines.data_card.sankey import NARROW, WIDE, sankey
from eyespot.search.contact_sheet import img, page, safe

UNREADABLE = "unreadable"
_STYLE = """\
body { max-width: 68rem }
h1 + p, header + main > p { margin-top: .35rem }
h3 small { font-weight: 400; color: var(--soft) }
h3 { margin: 1.6rem 0 0; font-size: 1rem; line-height: 1.3; overflow-wrap: anywhere }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; line-height: 1.35 }
th, td { padding: .28rem 0 .28rem 1.4rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { padding-left: 0; min-width: 5.5rem; overflow-wrap: break-word }
th { font-weight: 600; color: var(--soft); vertical-align: bottom }
.n { text-align: right; white-space: nowrap }
.wide { overflow-x: auto; margin-top: .4rem; padding-bottom: .2rem }
.note { margin-top: .4rem; font-size: .85rem }
.warn { margin-top: .8rem; padding: .5rem .9rem; border-left: 4px solid var(--mark); background: var(--card);
  overflow-wrap: anywhere }
.stream { margin-top: 1rem } .stream svg, .drawn svg { display: block; max-width: 100%; height: auto }
.stream .narrow { display: none }
.drawn { height: auto; margin-top: 1rem; padding: .9rem }
.sample { margin-top: 1.5rem; break-inside: avoid } .sample h3 { margin: 0 }
.sample ol { margin-top: .5rem; grid-template-columns: repeat(auto-fill, minmax(min(11rem, calc(50% - .6rem)), 1fr)) }
.sample figcaption { padding: .4rem .7rem .5rem; font-size: .85rem; color: var(--soft) }
.sample p { margin-top: .5rem; max-width: 44rem; overflow-wrap: anywhere }
dl { margin: .6rem 0 0; max-width: 46rem } dt { margin-top: .8rem; font-weight: 600 }
dd { margin: .1rem 0 0; overflow-wrap: anywhere } .open { margin-top: .8rem; max-width: 46rem; color: var(--soft) }
details { margin-top: .7rem } summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere }
pre { margin: .5rem 0 0; padding: .7rem .9rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere }
@media (max-width: 46rem) { .stream .broad { display: none } .stream .narrow { display: block }
  table { font-size: .85rem } th, td { padding-left: .55rem }
  th:first-child, td:first-child { min-width: 4.6rem } }
@media print {
  :root { color-scheme: light; --page: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --mark: #0b6b57 }
  body { max-width: none; padding: 0; font-size: 10pt } tr, h2, h3 { break-inside: avoid } h2, h3 { break-after: avoid }
  .wide { overflow: visible } details::details-content { content-visibility: visible; height: auto }
}
"""


def as_page(card: Card, thumbnails: Sequence[Sequence[bytes | None]]) -> str:
    """The card; `thumbnails` are JPEGs of each sample's pictures, None where one cannot be read."""
    samples = zip(card.told.samples, thumbnails, strict=True)
    drawings = "".join(
        f'<figure class="drawn"><div>{one.svg}</div><figcaption>{safe(one.caption)}</figcaption></figure>\n'
        for one in card.told.drawings
    )
    broad, narrow = sankey(card.stages, WIDE), sankey(card.stages, NARROW)
    stream = f'<div class="stream"><div class="broad">{broad}</div><div class="narrow">{narrow}</div></div>\n'
    counts = _tables(card.balance, card.losses, card.cost, card.requests)
    versions = f'<p class="note">{safe(card.versions)}. Seed {card.told.seed}.</p>\n'
    body = [
        f'<p dir="auto">{safe(card.told.about)}</p>\n' if card.told.about else "",
        f'<p class="note">{safe(card.standing)}</p>\n',
        *(f'<p class="warn" dir="auto">{safe(note)}</p>\n' for note in card.told.notes),
        _section("What became of the records", stream + counts),
        _section("Samples", "".join(_sample(*one) for one in samples)),
        _section("What it holds", _tables(card.reading, *card.told.tables) + drawings),
        _section("Datasheet", "".join(_sheet(card))),
        _section("Steps, prompts and models", versions + "".join(map(_step, card.steps))),
    ]
    closing = (("Cite", card.told.citation), ("Licence", card.told.licence))
    return page(card.told.title, "".join(body), " ".join(f"{what}: {text}." for what, text in closing if text), _STYLE)


def _section(heading: str, inside: str) -> str:
    return f"<section><h2>{safe(heading)}</h2>\n{inside}</section>\n" if inside else ""


# -- tables -----------------------------------------------------------------------------------------------------


def _tables(*tables: CardTable) -> str:
    """Those that have rows; a column of numbers alone is set to the right."""
    texts = []
    for table in (table for table in tables if table.rows):
        numbers = [
            all(str(row[at]).lstrip("+-")[:1].isdigit() for row in table.rows) for at in range(len(table.columns))
        ]
        head = "".join(_cell("th", name, right) for name, right in zip(table.columns, numbers, strict=True))
        body = "".join(f"<tr>{''.join(map(_cell, ['td'] * len(row), row, numbers))}</tr>\n" for row in table.rows)
        note = f'<p class="note" dir="auto">{safe(table.note)}</p>\n' if table.note else ""
        whole = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n'
        texts.append(f"<h3>{safe(table.title)}</h3>{whole}{note}")
    return "".join(texts)


def _cell(tag: str, value: object, right: bool) -> str:
    return f'<{tag} class="n">{safe(str(value))}</{tag}>' if right else f'<{tag} dir="auto">{safe(str(value))}</{tag}>'


# -- samples, questions, prompts --------------------------------------------------------------------------------


def _sample(sample: SampleRecord, thumbnails: Sequence[bytes | None]) -> str:
    shown = zip(sample.pictures, thumbnails, strict=True)
    items = "".join(
        f'<li><figure><div class="mat">{img(jpeg, label) or UNREADABLE}</div><figcaption dir="auto">{safe(label)}'
        "</figcaption></figure></li>\n"
        for (label, _), jpeg in shown
    )
    lines = "".join(f'<p dir="auto">{safe(line)}</p>' for line in sample.lines)
    pictures = f"<ol>\n{items}</ol>" if items else ""
    return f'<div class="sample"><h3 dir="auto">{safe(sample.heading)}</h3>{pictures}{lines}</div>\n'


def _sheet(card: Card) -> Iterator[str]:
    for section, answers in groupby(card.datasheet, key=lambda one: one.section):
        told, unanswered = parted(answers)
        items = "".join(f'<dt>{safe(one.question)}</dt><dd dir="auto">{safe(one.answer)}</dd>\n' for one in told)
        asked = f'<p class="open">Open: {safe(" ".join(unanswered))}</p>\n' if unanswered else ""
        yield f"<h3>{safe(section.capitalize())}</h3>{f'<dl>{items}</dl>' if items else ''}{asked}\n"


def _step(step: StepCard) -> str:
    about = f'<p dir="auto">{safe(step.about)}</p>' if step.about else ""
    settings = f"<pre>{_lines(step.settings)}</pre>\n" if step.settings else ""
    prompts = "".join(
        f"<details><summary>Prompt {safe(name)}</summary><pre>{_lines(text)}</pre></details>\n"
        for name, text in step.prompts.items()
    )
    return f"<h3>{safe(step.name)} <small>version {step.version}</small></h3>{about}{settings}{prompts}"


def _lines(text: str) -> str:
    """Text of several lines, each escaped, indentation kept."""
    return "\n".join(" " * (len(line) - len(line.lstrip())) + safe(line.lstrip()) for line in text.splitlines())
