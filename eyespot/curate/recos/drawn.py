"""The steps that draw: `draw` invents pictures whose answers differ, `render` works each out anew and paints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING

from eyespot.curate.recos.drawing.generator import Generator
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.curate.recos.subtasks import subtask
from eyespot.gallery.photos.pictures import id_of
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record
from eyespot.types import UsageError

if TYPE_CHECKING:
    pass

WRONG, UNDRAWN = "wrong answer", "cannot be drawn"
AMBIGUOUS = "caption of two pictures"
TRIES = 40  # for each picture that is wanted
QUALITY = 92


@dataclass(frozen=True)
class DrawnCounts:
    """How many pictures of a sub-task are drawn: those of v0, and those they are confused with in v1 and v2."""

    subtasks: Mapping[str, int] = field(default_factory=lambda: {"code": 150, "numerical": 150, "translation": 150})


def generator_of(name: str) -> Generator:
    """Who draws the pictures of a sub-task; `UsageError` if it is one of photos."""
    found = subtask(name).generator
    if found is None:
        raise UsageError(f"pictures of {name} are not drawn; collect photos for it")
    return found


def invented(context: Context, how: DrawnCounts) -> Iterator[Outcome]:
    """Pictures to be drawn. No two of a sub-task have one answer, or a caption would be true of both."""
    for name, count in how.subtasks.items():
        generator, answers = generator_of(name), set[str]()
        for number in range(count * TRIES):
            facts = generator.invent(context.chance(name, str(number)))
            if len(answers) < count and facts["answer"] not in answers:
                answers.add(facts["answer"])
                yield Added({"id": f"{name}-{number:05d}", "subtask": name, "facts": facts, "version": "v0"})


def rendered(record: Record, context: Context, sources: Sources) -> Outcome:
    """Its answer checked against what is written, and the picture on the disk."""
    generator, facts = generator_of(record["subtask"]), record["facts"]
    answer = generator.answer(facts)
    if answer != facts["answer"]:
        return Drop(record, WRONG, f"{facts['shown']!r} comes to {answer!r}, not {facts['answer']!r}")
    try:
        picture = generator.paint(facts, context.chance(record["id"]))
        kept = BytesIO()
        picture.save(kept, "JPEG", quality=QUALITY)
        data = kept.getvalue()
    except UsageError as error:
        return Failed(record, UNDRAWN, str(error))
    made = {**record, "image": id_of(data), "source": DRAWN, "path": sources.draw(record, data)}
    return Keep({**made, "stand_in": subtask(record["subtask"]).stand_in})


def wordings(pictures: Iterable[Record]) -> dict[str, set[str]]:
    """The images that each wording of drawn pictures is true of, at any level of detail; keys are `same_words`."""
    found: dict[str, set[str]] = {}
    for one in pictures:
        for text in chain(*generator_of(one["subtask"]).wording(one["facts"])):
            found.setdefault(same_words(text), set()).add(one["image"])
    return found


def same_words(text: str) -> str:
    """A caption without what makes no other caption of it: case, spaces and the mark at its end."""
    return " ".join(text.casefold().split()).rstrip(" .!?")
