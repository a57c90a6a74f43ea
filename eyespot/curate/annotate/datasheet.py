"""The datasheet of a labelled set: what was asked, who looked, how far, how sure it is to be complete, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import eyespot
from eyespot.curate.annotate.agreement import Overlap
from eyespot.curate.annotate.progress import TEAM, WAGE, LabellingProgress, percent
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.curate.annotate.stopping import IN_A_ROW
from eyespot.pipelines.data_card.markdown import table


class QuerySheet(NamedTuple):
    """One query as the datasheet tells it; the first of `stands` is that of the whole team, where there is one."""

    wanted: AnnotationQuery
    stands: Sequence[LabellingProgress]
    relevant: int
    labelled: int
    overlaps: Sequence[Overlap]
    faults: Sequence[str]


def datasheet(sheets: Sequence[QuerySheet]) -> str:
    """The whole set in Markdown."""
    stands = [one for sheet in sheets for one in sheet.stands if one.who != TEAM]
    people, hours = sorted({one.who for one in stands}), sum(one.seconds for one in stands) / 3600
    labelled, relevant = sum(sheet.labelled for sheet in sheets), sum(sheet.relevant for sheet in sheets)
    overlaps = [overlap for sheet in sheets for overlap in sheet.overlaps]
    shared = sum(one.photos for one in overlaps)
    agreed = sum(one.both_yes + one.both_no for one in overlaps) / max(shared, 1)
    facts = [
        ("queries", str(len(sheets))),
        ("labelled pairs", f"{labelled}, of which {relevant} relevant"),
        ("annotators", f"{len(people)} ({', '.join(people)})"),
        ("time", f"{hours:.1f} hours, pauses left out; ${hours * WAGE:.2f} at ${WAGE:.2f} an hour"),
        ("labelled twice", f"{shared} pairs, agreement {agreed:.1%}" if shared else "none"),
    ]
    parts = ["# Datasheet", table(["", ""], facts), _HOW, "## Queries", table(_HEAD, map(_row, sheets))]
    return "\n\n".join([*parts, f"Made with eyespot {eyespot.__version__}."]) + "\n"


CONDITION = "each doubling of the depth hides no more than the one before"
_HOW = (
    "Every photo was marked relevant, not relevant, or doubtful, and doubt counts as not relevant. An annotator goes "
    f"down the list until {IN_A_ROW} photos in a row are not relevant, then audits a random draw of the rest; the "
    "interval says how many relevant photos nobody has seen (95 %). A share found holds whatever the ranking is like, "
    f"but for one that holds only if {CONDITION}: photos hidden far down were not looked for there. Where annotators "
    "differ the one who settles it has the last word, else the majority, and a tie counts as not relevant."
)
_HEAD = ["query", "text", "category", "lingo", "relevant", "labelled", "stopped at", "still unseen", "to fix"]


def _row(sheet: QuerySheet) -> list[str]:
    wanted, known = sheet.wanted, max(sheet.stands, key=lambda one: one.labelled, default=None)
    stop = None if known is None else known.descent.stopped_at
    return [
        wanted.id,
        wanted.text,
        str(wanted.facts.get("category", "")),
        str(wanted.facts.get("lingo") or "not available"),
        str(sheet.relevant),
        str(sheet.labelled),
        "the end" if known is not None and known.exhausted else str(stop or "not yet"),
        unseen(known),
        "; ".join(sheet.faults),
    ]


def unseen(known: LabellingProgress | None) -> str:
    """How many relevant photos nobody has seen, and the share that is found at least, in words."""
    if known is None or known.audit is None or known.audit.left is None:
        return "none" if known is not None and known.exhausted else "not audited"
    left, by_rank = known.audit.left, known.found_by_rank
    share = f"at least {percent(known.found_at_least or 0.0)} found"
    condition = "" if by_rank is None else f"; at least {percent(by_rank)} if {CONDITION}"
    return f"{left.expected:.0f} ({left.low} to {left.high}); {share}{condition}"
