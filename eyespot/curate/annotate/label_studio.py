"""Label Studio and the annotation store: tasks out, and what people said there in.

Both of Label Studio's exports are read, JSON and JSON-MIN, of tasks that `eyespot export label-studio` made: their data
names the query and the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.annotate.agreement import everybody
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate, mark_of
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.formats.exporting import LabelTask
from eyespot.formats.exports.label_studio import CHOICES
from eyespot.storage.ids import id_of
from eyespot.storage.json_files import json_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

MARKS = {choice: mark for mark, choice in CHOICES.items()}


class ImportedMarks(NamedTuple):
    """What an import changed: tasks read, new queries, photos put on lists, marks that are new or others now."""

    tasks: int
    queries: int
    listed: int
    marks: int


def tasks_of(store: AnnotationStore) -> list[LabelTask]:
    """A task for each photo of each query's list, with what everybody said of it."""
    made = []
    for id, wanted in store.queries().items():
        by_person = everybody(store, id)
        for photo in store.all_candidates(id):
            marks = {who: mark_of(words[photo.image]) for who, words in by_person.items() if photo.image in words}
            made.append(LabelTask(id, wanted.text, photo.image, marks))
    return made


def read(path: Path) -> list[LabelTask]:
    """The tasks of Label Studio's export, with one mark for each person; `UsageError` names what cannot be read."""
    listed = json_of(path)
    if not isinstance(listed, list):
        refuse(path, "", "holds no list of tasks; export the project as JSON or JSON-MIN")
    found = []
    for at, task in enumerate(listed, 1):
        if not isinstance(task, dict):
            refuse(path, f"task {at}", "is no JSON object")
        data = task.get("data", task)
        query, image = (id_of(data.get(name)) if isinstance(data, dict) else None for name in ("query_id", "image_id"))
        if query is None or image is None:
            refuse(path, f"task {at}", "has no query_id or image_id in its data; import tasks of: eyespot export")
        marks = _whole(path, at, task) if "data" in task else _short(path, at, task)
        found.append(LabelTask(query, str(data.get("query") or query), image, dict(marks)))
    return found


def _whole(path: Path, at: int, task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of JSON: an annotation of each person, with results."""
    for one in task.get("annotations") or []:
        if one.get("was_cancelled"):
            continue
        for result in one.get("result") or []:
            if result.get("type") == "choices":
                choices = result.get("value", {}).get("choices") or [None]
                yield _person(one.get("completed_by")), _mark(path, at, choices[0])


def _short(path: Path, at: int, task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of JSON-MIN: a task for each annotation, without results."""
    if "relevance" in task:
        choice = task["relevance"]
        choices = choice.get("choices") if isinstance(choice, dict) else choice
        yield _person(task.get("annotator")), _mark(path, at, choices[0] if isinstance(choices, list) else choices)


def _person(annotator: Any) -> str:
    """Whoever said it: a name or address as we wrote it, else Label Studio's number."""
    if isinstance(annotator, dict):
        annotator = annotator.get("first_name") or annotator.get("email") or annotator.get("id")
    return annotator.strip() if isinstance(annotator, str) and annotator.strip() else f"label-studio {annotator}"


def _mark(path: Path, at: int, choice: Any) -> str:
    if choice not in MARKS:
        refuse(path, f"task {at}", f"has the choice {choice!r}; expected one of: {', '.join(MARKS)}")
    return MARKS[choice]


def take_in(store: AnnotationStore, tasks: Iterable[LabelTask], known: set[str]) -> ImportedMarks:
    """Keep what was said; queries and photos that are new to the store are added, photos of no gallery refused.

    known: the ids of the gallery's photos. What is kept already is not kept twice.
    """
    tasks = list(tasks)
    strange = sorted({task.image for task in tasks} - known)
    if strange:
        raise UsageError(f"{len(strange)} photos are not in the gallery, such as {strange[0]}; name another with -g")
    there = store.queries()
    new = {task.query: task.text for task in tasks if task.query not in there}
    store.take_in([AnnotationQuery(id, text, {}) for id, text in new.items()])
    listed = marks = 0
    for query in dict.fromkeys(task.query for task in tasks):
        of_query = [task for task in tasks if task.query == query]
        listed += store.extend(query, [Candidate(task.image) for task in of_query])
        by_person: dict[str, dict[str, str | None]] = {}
        for task in of_query:
            for who, mark in task.marks.items():
                by_person.setdefault(who, {})[task.image] = mark
        marks += sum(store.mark(query, who, image_marks) for who, image_marks in by_person.items())
    return ImportedMarks(len(tasks), len(new), listed, marks)
