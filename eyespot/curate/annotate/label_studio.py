"""Label Studio and the annotation store: tasks out, and what people said there in.

Both of Label Studio's exports are read, JSON and JSON-MIN, of tasks that `eyespot export label-studio` made: their data
names the query and the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from eyespot.curate.annotate.agreement import everybody
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate, mark_of
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.formats.exporting import LabelTask
from eyespot.formats.exports.label_studio import CHOICES, CONTROL
from eyespot.storage.text_files import id_of, json_of, refuse
from eyespot.types import UsageError

MARKS = {choice: mark for mark, choice in CHOICES.items()}
UNDATED = datetime.min.replace(tzinfo=UTC)
# By query and photo the marks of each person, with their dates
_Marks = dict[tuple[str, str], dict[str, list[tuple[datetime, str | None]]]]


@dataclass
class LabelExport:
    """Tasks with one mark of each person, notes on what is left out, and (task, reason) of what cannot be read."""

    tasks: list[LabelTask] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


def tasks_of(store: AnnotationStore) -> list[LabelTask]:
    """A task for each photo of each query's list, with what everybody said of it."""
    made = []
    for id, wanted in store.queries().items():
        by_person = everybody(store, id)
        for photo in store.all_candidates(id):
            last = {who: words[photo.image] for who, words in by_person.items() if photo.image in words}
            dates = {who: judgement.at for who, judgement in last.items()}
            marks = {who: mark_of(judgement) for who, judgement in last.items()}
            made.append(LabelTask(id, wanted.text, photo.image, marks, dates))
    return made


def read(path: Path) -> LabelExport:
    """The tasks of an export; `UsageError` if it is none, or has tasks that eyespot did not make.

    Only the control of `labels.xml` is read. Of several marks of one person on one photo the newest counts by its date,
    of equal dates the last; a cancelled annotation takes the mark back.
    """
    listed = json_of(path)
    if not isinstance(listed, list):
        refuse(path, "", "holds no list of tasks; export the project as JSON or JSON-MIN")
    found, others = LabelExport(), Counter[str]()
    tasks: dict[tuple[str, str], LabelTask] = {}
    marks: _Marks = {}
    for at, entry in enumerate(listed, 1):
        task = _task(path, at, entry)
        tasks.setdefault((task.query, task.image), task)
        by_person = marks.setdefault((task.query, task.image), {})
        for annotation, control, choices in _results(entry):
            if control != CONTROL:
                others[control] += 1
            elif annotation.get("was_cancelled"):
                by_person.setdefault(_person(annotation), []).append((_date(annotation), None))
            elif len(choices) == 1 and choices[0] in MARKS:
                by_person.setdefault(_person(annotation), []).append((_date(annotation), MARKS[choices[0]]))
            else:
                reason = f"has the choice {choices!r}; expected one of: {', '.join(MARKS)}"
                found.failed.append((f"task {at}", reason))
    for key, task in tasks.items():
        newest = {who: max(reversed(dated), key=itemgetter(0)) for who, dated in marks[key].items()}
        dates = {who: date.timestamp() for who, (date, _) in newest.items() if date > UNDATED}
        found.tasks.append(replace(task, marks={who: mark for who, (_, mark) in newest.items()}, dates=dates))
    found.notes += _notes(marks, others)
    return found


def _notes(marks: _Marks, others: Mapping[str, int]) -> Iterator[str]:
    if several := [f"{who} on {key[1]}" for key, people in marks.items() for who in people if people[who][1:]]:
        kind = "photos with several marks of one person, or of two with one name"
        yield f"{kind}: {len(several)}, such as {several[0]}; the newest counts"
    if others:
        names = ", ".join(f"{name} ({count})" for name, count in others.items())
        yield f"results of controls that labels.xml does not declare are left out: {names}"


def _task(path: Path, at: int, entry: Any) -> LabelTask:
    data = entry.get("data", entry) if isinstance(entry, dict) else {}
    data = data if isinstance(data, dict) else {}
    query, image = id_of(data.get("query_id")), id_of(data.get("image_id"))
    if query is None or image is None:
        refuse(path, f"task {at}", "has no query_id or image_id in its data; import tasks of: eyespot export")
    return LabelTask(query, str(data.get("query") or query), image)


def _results(entry: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, list[Any]]]:
    """Each annotation with a control and what was chosen there, nothing if it was cancelled.

    JSON-MIN has a task for each annotation, and of a control only its value.
    """
    for annotation in (entry.get("annotations") or []) if "data" in entry else [entry]:
        results = annotation.get("result") or []
        if annotation.get("was_cancelled"):
            results = [{}]
        elif CONTROL in annotation:
            value = annotation[CONTROL]
            results = [{"value": value if isinstance(value, dict) else {"choices": value}}]
        for result in results:
            choices = result.get("value", {}).get("choices") or []
            yield annotation, result.get("from_name", CONTROL), choices if isinstance(choices, list) else [choices]


def _person(annotation: Mapping[str, Any]) -> str:
    """Who said it: an address, or Label Studio's number; a first name may be that of several people."""
    person = annotation.get("completed_by", annotation.get("annotator"))
    if isinstance(person, dict):
        person = person.get("email") or person.get("id")
    if isinstance(person, str) and person.strip():
        return person.strip()
    return f"label-studio {'unknown' if person is None else person}"


def _date(annotation: Mapping[str, Any]) -> datetime:
    """When an annotation was last changed, in UTC where no zone is given; the first of all dates if it has none."""
    for name in ("updated_at", "created_at"):
        try:
            time = datetime.fromisoformat(str(annotation.get(name)))
        except ValueError:
            continue
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return UNDATED


def take_in(store: AnnotationStore, tasks: Iterable[LabelTask], known: set[str]) -> dict[str, int]:
    """Store the marks; queries and photos that are new to the store are added, photos of no gallery refused.

    known: the ids of the gallery's photos. Nothing is stored twice, and of two marks of one person on a
    photo the newest counts by its own date. Gives how many tasks were read, how many queries, photos on lists and marks
    are new, or marks others now, and how many marks are older than what is known and left alone.
    """
    tasks = list(tasks)
    strange = sorted({task.image for task in tasks} - known)
    if strange:
        raise UsageError(f"{len(strange)} photos are not in the gallery, such as {strange[0]}; name another with -g")
    there = store.queries()
    new = {task.query: task.text for task in tasks if task.query not in there}
    store.take_in([AnnotationQuery(id, text, {}) for id, text in new.items()])
    listed = marks = older = 0
    for query in dict.fromkeys(task.query for task in tasks):
        of_query = [task for task in tasks if task.query == query]
        listed += store.extend(query, [Candidate(task.image) for task in of_query])
        for who in dict.fromkeys(who for task in of_query for who in task.marks):
            of_person = {task.image: task for task in of_query if who in task.marks}
            dates = {image: task.dates[who] for image, task in of_person.items() if who in task.dates}
            marks += store.mark(query, who, {image: task.marks[who] for image, task in of_person.items()}, dates=dates)
            now = {image: mark_of(last) for image, last in store.last_judgements(query, who).items()}
            older += sum(now.get(image) != task.marks[who] for image, task in of_person.items())
    return {"tasks": len(tasks), "queries": len(new), "listed": listed, "marks": marks, "older": older}
