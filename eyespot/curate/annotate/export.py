"""A labelled set in the forms of the field: INQUIRE's CSV files, qrels, and candidates as a run.

INQUIRE's `annotations.csv` lists relevant pairs only, and its evaluation takes every row of it as a match. Photos that
were judged and found not relevant are in `labels.csv` and in the qrels. The datasheet says what was asked, who looked,
how far, how sure it is to be complete, and what it cost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import eyespot
from eyespot.curate.annotate import queries
from eyespot.curate.annotate.agreement import MarksByPerson, everybody, labels, overlaps
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.curate.annotate.progress import (
    IN_A_ROW,
    WAGE,
    LabellingProgress,
    faults,
    percent,
    standing_of,
    team_standing,
)
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.pipelines.data_card.markdown import table
from eyespot.runs import write_qrels, write_run
from eyespot.storage.atomic import whole_folder, write_whole
from eyespot.storage.tables import write_csv
from eyespot.types import NothingFound, Qrels, Run, quantity


def datasheet(entries: Sequence[Labelled]) -> str:
    """The whole set in Markdown."""
    stands = [stands for one in entries for stands in one.stands]
    people, times = sorted({one.who for one in stands}), [one.seconds for one in stands if one.seconds is not None]
    hours, untimed = sum(times) / 3600, len(stands) - len(times)
    labelled, relevant = sum(len(one.labels) for one in entries), sum(sum(one.labels.values()) for one in entries)
    shared_by_two = [overlap for one in entries for overlap in overlaps(one.marks)]
    shared = sum(one.photos for one in shared_by_two)
    agreed = sum(one.both_yes + one.both_no for one in shared_by_two) / max(shared, 1)
    time = f"{hours:.1f} hours, pauses left out; ${hours * WAGE:.2f} at ${WAGE:.2f} an hour" if times else "unknown"
    time += f"; unknown of {untimed:,} of {quantity(len(stands), 'list')}" if untimed and times else ""
    facts = [
        ("queries", str(len(entries))),
        ("labelled pairs", f"{labelled}, of which {relevant} relevant"),
        ("annotators", f"{len(people)} ({', '.join(people)})"),
        ("time", time),
        ("labelled twice", f"{quantity(shared, 'pair')}, agreement {agreed:.1%}" if shared else "none"),
    ]
    rows = []
    for one in entries:
        known = max(one.everybody, key=lambda stands: stands.labelled, default=None)
        stop = None if known is None else known.descent.stopped_at
        end = "the end" if known is not None and known.exhausted else str(stop or "not yet")
        about = [str(one.wanted.facts.get("category", "")), str(one.wanted.facts.get("lingo") or "not available")]
        counts = [str(sum(one.labels.values())), str(len(one.labels)), end, unseen(known)]
        rows.append([one.wanted.id, one.wanted.text, *about, *counts, "; ".join(one.faults)])
    parts = ["# Datasheet", table(["", ""], facts), _HOW, "## Queries", table(_HEAD, rows)]
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


def unseen(known: LabellingProgress | None) -> str:
    """How many relevant photos nobody has seen, and the share that is found at least, in words."""
    if known is None or known.audit is None or known.audit.left is None:
        return "none" if known is not None and known.exhausted else "not audited"
    audit, by_rank = known.audit, known.found_by_rank
    share = f"at least {percent(known.found_at_least or 0.0)} found"
    condition = "" if by_rank is None else f"; at least {percent(by_rank)} if {CONDITION}"
    return f"{audit.left}; the audit found {audit.relevant} of {audit.size}; {share}{condition}"


QUERIES, ANNOTATIONS, LABELS = "queries.csv", "annotations.csv", "labels.csv"
QRELS, RUN, SHEET = "qrels.json", "candidates.json", "datasheet.md"


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
    def everybody(self) -> list[LabellingProgress]:
        """How the team stands, where there is one, and each of its people."""
        return [*([self.team] if self.team else []), *self.stands]

    @property
    def faults(self) -> list[str]:
        """Why it should not go into a benchmark, by the labelling that has the fewest such reasons."""
        listed = [photo.image for photo in self.photos]
        reasons = [faults(self.wanted, stands, self.labels, listed) for stands in self.everybody]
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
    rest = []
    for one in found:
        photos = [photo for photo in one.photos if photo.image not in images]
        marks = {who: {i: mark for i, mark in given.items() if i not in images} for who, given in one.marks.items()}
        labels = {image: label for image, label in one.labels.items() if image not in images}
        rest.append(replace(one, photos=photos, marks=marks, labels=labels))
    return rest


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
        # The relevant pairs, with the columns of INQUIRE's own file, and every judged pair, with 1 or 0
        judged = [(one.wanted.id, id, paths[id], int(label)) for one in entries for id, label in one.labels.items()]
        head = "query_id", "image_id", "image_path"
        write_csv(folder / ANNOTATIONS, chain([head], (row[:3] for row in judged if row[3])))
        write_csv(folder / LABELS, chain([(*head, "relevant")], judged))
        grades = {one.wanted.id: {image: int(label) for image, label in one.labels.items()} for one in entries}
        write_qrels(Qrels(grades), folder / QRELS)
        orders = {one.wanted.id: [photo.image for photo in one.photos] for one in entries}
        write_run(Run.from_orders(orders), folder / RUN)
        text = datasheet(entries).encode("utf-8", "surrogatepass")
        write_whole(folder / SHEET, lambda file: file.write(text))
