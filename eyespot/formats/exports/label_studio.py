"""Label Studio: `tasks.json` with what people said, `labels.xml` that shows it, and the pictures in `images/`.

    LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=OUT label-studio start

shows the pictures; with `images_at` they stay where they are, and tasks name addresses below that one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from eyespot.formats.folders import FileNames
from eyespot.storage.atomic import write_whole

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows, LabelTask

ABOUT = "Write tasks for Label Studio, with the labels that people gave, the labelling interface, and the pictures."
OPTIONS = ("images_at", "tasks")
TASKS, CONFIG_FILE = "tasks.json", "labels.xml"
CONTROL = "relevance"  # the one control of labels.xml
CHOICES = {"y": "relevant", "n": "not relevant", "d": "doubt"}
CONFIG = f"""<View>
  <Header value="$query"/>
  <Image name="image" value="$image"/>
  <Choices name="{CONTROL}" toName="image" choice="single" required="true">
{chr(10).join(f'    <Choice value="{choice}"/>' for choice in CHOICES.values())}
  </Choices>
</View>
"""


def write(rows: ExportRows, folder: Path) -> int:
    """A task for each query and picture of its list; without a labelled query one for each picture."""
    from eyespot.formats.exporting import LabelTask, known_facts

    wanted: dict[str, list[LabelTask]] = {}
    for task in rows.options.tasks:
        wanted.setdefault(task.image, []).append(task)
    pictures = 0
    made: list[tuple[LabelTask, dict[str, Any]]] = []
    for row, address in _addresses(rows, folder, set(wanted)):
        pictures += 1
        for task in wanted.get(row.id, [LabelTask("", "", row.id)]):
            made.append((task, {**known_facts(row.facts), "image": address}))
    order = {id(task): at for at, task in enumerate(rows.options.tasks)}
    made.sort(key=lambda pair: order.get(id(pair[0]), 0))
    if lost := len(rows.options.tasks) - sum(task.query != "" for task, _ in made):
        rows.notes.append(f"{lost} tasks are about pictures that are not exported, and are left out")
    if not rows.options.tasks:
        rows.notes.append("the tasks name no query, and answers cannot be imported; first: eyespot annotate add")
    write_tasks(folder / TASKS, made)
    write_whole(folder / CONFIG_FILE, lambda file: file.write(CONFIG.encode()))
    return pictures


def _addresses(rows: ExportRows, folder: Path, wanted: set[str]) -> Iterator[tuple[Any, str]]:
    """The wanted pictures, all if none is named, with where Label Studio finds them."""
    names, base = FileNames(), rows.options.images_at
    if base is None:
        (folder / "images").mkdir()
        for row, picture in rows.pictures(wanted):
            name = f"images/{names.take(picture.name, picture.suffix)}"
            (folder / name).write_bytes(picture.data)
            yield row, f"/data/local-files/?d={quote(name)}"
        return
    for row in rows:
        if not wanted or row.id in wanted:
            yield row, f"{base.rstrip('/')}/{quote(row.relative or row.id)}"


def write_tasks(path: Path, tasks: Iterable[tuple[LabelTask, Mapping[str, Any]]]) -> None:
    """Label Studio's JSON of tasks, each with its data; `query`, `query_id` and `image_id` say what it is about."""
    people: dict[str, int] = {}
    listed, annotations = [], 0
    for number, (task, data) in enumerate(tasks, 1):
        entries = []
        for who, mark in task.marks.items():
            annotations += 1
            result = {
                "id": f"r{annotations}",
                "from_name": CONTROL,
                "to_name": "image",
                "type": "choices",
                "value": {"choices": [CHOICES[mark]] if mark else []},
                "meta": {"text": [who]},
            }
            person = {"id": people.setdefault(who, len(people) + 1), "email": who, "first_name": who, "last_name": ""}
            entry = {"id": annotations, "completed_by": person, "was_cancelled": mark is None, "result": [result]}
            if who in task.dates:
                date = datetime.fromtimestamp(task.dates[who], UTC).isoformat()
                entry |= {"created_at": date, "updated_at": date}
            entries.append(entry)
        own = {"image_id": task.image, "query_id": task.query, "query": task.text}
        listed.append({"id": number, "data": {**data, **own}, "annotations": entries, "predictions": []})
    text = json.dumps(listed, ensure_ascii=False, indent=1)
    write_whole(path, lambda file: file.write(text.encode("utf-8", "surrogatepass")))
