"""A labelled set in the forms of the field: INQUIRE's CSV files, qrels, candidates as a run, and Label Studio's JSON.

INQUIRE's `annotations.csv` lists relevant pairs only, and its evaluation takes every row of it as a match. Photos that
were judged and found not relevant are in `labels.csv` and in the qrels. The datasheet says what was asked, who looked,
how far, how sure it is to be complete, and what it cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import eyespot
from eyespot.curate.annotate import queries
from eyespot.curate.annotate.agreement import MarksByPerson, Overlap, everybody, labels, overlaps
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate, mark_of
from eyespot.curate.annotate.progress import (
    IN_A_ROW,
    TEAM,
    WAGE,
    LabellingProgress,
    faults,
    percent,
    standing_of,
    team_standing,
)
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.curate.rerank import Division, RerankLimits, RerankSet, divide, select
from eyespot.formats.exporting import LabelTask
from eyespot.formats.exports import label_studio
from eyespot.pipelines.data_card.markdown import table
from eyespot.runs import write_qrels, write_run
from eyespot.runs.judged import JudgedQueries
from eyespot.storage.atomic import whole_folder, write_whole
from eyespot.storage.tables import write_csv
from eyespot.types import NothingFound, Qrels, Run


@dataclass(frozen=True)
class QuerySheet:
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


QUERIES, ANNOTATIONS, LABELS = "queries.csv", "annotations.csv", "labels.csv"
QRELS, RUN = "qrels.json", "candidates.json"
LABEL_STUDIO, LABEL_STUDIO_CONFIG, SHEET = "label-studio.json", "label-studio.xml", "datasheet.md"
Fact = TypeVar("Fact")


@dataclass(frozen=True)
class Labelled:
    """A query with all that was said of it: by whom, what counts in the end, and what is wrong with it.

    team: how all of its people together stand; None where fewer than two have labelled.
    """

    wanted: AnnotationQuery
    photos: list[Candidate]
    marks: MarksByPerson
    labels: dict[str, bool]
    stands: list[LabellingProgress] = field(default_factory=list)
    team: LabellingProgress | None = None

    @property
    def together(self) -> LabellingProgress | None:
        """How the labelling stands, by all of its people or the only one; None before the first mark."""
        return self.team or (self.stands[0] if self.stands else None)

    @property
    def faults(self) -> list[str]:
        """Why it should not go into a benchmark, by the labelling that has the fewest such reasons."""
        listed = [photo.image for photo in self.photos]
        every = [*([self.team] if self.team else []), *self.stands]
        reasons = [faults(self.wanted, stands, self.labels, listed) for stands in every]
        return min(reasons, key=len) if reasons else ["not labelled"]


def labelled(store: AnnotationStore, id: str) -> Labelled:
    """All of one query."""
    by_person = everybody(store, id)
    wanted, listed = store.query(id), store.candidates(id)
    stands = [standing_of(store, id, who, (listed, one)) for who, one in by_person.items()]
    final = labels(store, id, by_person)
    team = team_standing(store, id, by_person, final) if len(stands) > 1 else None
    return Labelled(wanted, listed, by_person, final, stands, team)


def every(store: AnnotationStore) -> list[Labelled]:
    """All queries that somebody has labelled; `NothingFound` if there are none."""
    found = [labelled(store, id) for id in store.queries()]
    if not any(one.labels for one in found):
        raise NothingFound("no query is labelled yet; begin with: eyespot annotate add FILE.csv")
    return [one for one in found if one.labels]


def without_photos(found: list[Labelled], images: Collection[str]) -> list[Labelled]:
    """The same queries without some photos, such as those that were flagged."""
    return [
        replace(
            one,
            photos=[photo for photo in one.photos if photo.image not in images],
            marks={who: _without(marks, images) for who, marks in one.marks.items()},
            labels=_without(one.labels, images),
        )
        for one in found
    ]


def _without(facts: Mapping[str, Fact], images: Collection[str]) -> dict[str, Fact]:
    return {image: fact for image, fact in facts.items() if image not in images}


def flawless(found: list[Labelled]) -> list[Labelled]:
    """Those with nothing to fix; `NothingFound`, with what is to be fixed, if there are none."""
    if all(one.faults for one in found):
        raise NothingFound(f"every query has something to fix, such as {found[0].wanted.id}: {found[0].faults[0]}")
    return [one for one in found if not one.faults]


def write(store: AnnotationStore, entries: list[Labelled], out: Path) -> None:
    """Labelled queries in a new folder, whole or not at all; `UsageError` if the folder holds something."""
    # Where each photo lies; the list of another query may know what one made of a ranking does not
    paths: dict[str, str] = {}
    for photo in (photo for one in entries for photo in store.all_candidates(one.wanted.id)):
        paths[photo.image] = paths.get(photo.image) or photo.path
    with whole_folder(out) as folder:
        queries.write(folder / QUERIES, (one.wanted for one in entries))
        # The relevant pairs, with the columns of INQUIRE's own file
        relevant = ((one.wanted.id, image) for one in entries for image, label in one.labels.items() if label)
        rows = ((query, image, paths[image]) for query, image in relevant)
        write_csv(folder / ANNOTATIONS, chain([("query_id", "image_id", "image_path")], rows))
        # Every judged pair, with 1 or 0
        judged = ((one.wanted.id, image, int(label)) for one in entries for image, label in one.labels.items())
        labels_rows = ((query, image, paths[image], label) for query, image, label in judged)
        write_csv(folder / LABELS, chain([("query_id", "image_id", "image_path", "relevant")], labels_rows))
        write_qrels(qrels(entries), folder / QRELS)
        write_run(run(entries), folder / RUN)
        label_studio.write_tasks(folder / LABEL_STUDIO, _tasks(entries, paths))
        sheets = [_sheet(one) for one in entries]
        for name, text in {LABEL_STUDIO_CONFIG: label_studio.CONFIG, SHEET: datasheet(sheets)}.items():
            write_whole(folder / name, methodcaller("write", text.encode("utf-8", "surrogatepass")))


def qrels(entries: list[Labelled]) -> Qrels:
    """What counts in the end, 1 and 0, for each query."""
    return Qrels({one.wanted.id: {image: int(label) for image, label in one.labels.items()} for one in entries})


def run(entries: list[Labelled]) -> Run:
    """The lists of candidates, in the order in which they were handed out."""
    return Run.from_orders({one.wanted.id: [photo.image for photo in one.photos] for one in entries})


def rerank_set(entries: list[Labelled], limits: RerankLimits, division: Division) -> RerankSet:
    """The RERANK subset of the labelled queries; `NothingFound` if none fits the limits."""
    facts = {one.wanted.id: {"text": one.wanted.text, **one.wanted.facts} for one in entries}
    made = select(run(entries), JudgedQueries(facts, qrels(entries)), limits)
    return divide(made, division, "category" if any(one.wanted.facts.get("category") for one in entries) else None)


# -- files ----------------------------------------------------------------------------------------------------------


def _sheet(one: Labelled) -> QuerySheet:
    stands = [*([one.team] if one.team else []), *one.stands]
    return QuerySheet(one.wanted, stands, sum(one.labels.values()), len(one.labels), overlaps(one.marks), one.faults)


def _tasks(entries: list[Labelled], paths: dict[str, str]) -> Iterator[tuple[LabelTask, dict[str, str]]]:
    """Label Studio's tasks: a photo with its query, and an annotation of each person."""
    for one in entries:
        for image in one.labels:
            marks = {who: mark_of(records[image]) for who, records in one.marks.items() if image in records}
            address = {"image": f"/data/local-files/?d={quote(paths[image])}"}
            yield LabelTask(one.wanted.id, one.wanted.text, image, marks), address
