"""A labelled set in the forms of the field: INQUIRE's CSV files, qrels, candidates as a run, and Label Studio's JSON.

INQUIRE's `annotations.csv` lists relevant pairs only, and its evaluation takes every row of it as a match. Photos that
were judged and found not relevant are in `labels.csv` and in the qrels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from eyespot.curate.annotate import queries
from eyespot.curate.annotate.agreement import MarksByPerson, everybody, labels, overlaps
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate, mark_of
from eyespot.curate.annotate.datasheet import QuerySheet, datasheet
from eyespot.curate.annotate.progress import LabellingProgress, faults, standing_of, team_standing
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.curate.rerank import Division, RerankLimits, RerankSet, divide, select
from eyespot.formats.exporting import LabelTask
from eyespot.formats.exports import label_studio
from eyespot.runs import write_qrels, write_run
from eyespot.runs.judged import JudgedQueries
from eyespot.storage.atomic import whole_folder, write_whole
from eyespot.storage.tables import write_csv
from eyespot.types import NothingFound, Qrels, Run

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
