"""The steps that draw: `draw` invents pictures whose answers differ, `render` checks each answer and paints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain

from eyespot.curate.recos.drawing.generator import Generator
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.curate.recos.subtasks import subtask
from eyespot.photos.pictures import id_of
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record
from eyespot.types import UsageError

WRONG, UNDRAWN = "wrong answer", "cannot be drawn"
AMBIGUOUS = "caption of two pictures"
TRIES = 40  # for each picture that is wanted
QUALITY = 92


@dataclass(frozen=True)
class DrawnCounts:
    """How many pictures of a sub-task are drawn: those of v0, and those they are confused with in v1 and v2."""

    subtasks: Mapping[str, int] = field(default_factory=lambda: {"code": 150, "numerical": 150, "translation": 150})


def generator_of(name: str) -> Generator:
    """The generator of a sub-task's pictures; `UsageError` if it is a sub-task of photos."""
    generator = subtask(name).generator
    if generator is None:
        raise UsageError(f"pictures of {name} are not drawn; collect photos for it")
    return generator


def invented(context: Context, how: DrawnCounts) -> Iterator[Outcome]:
    """Pictures to draw. No two of a sub-task have the same answer, or a caption would be true of both."""
    for name, count in how.subtasks.items():
        generator, answers = generator_of(name), set[str]()
        for number in range(count * TRIES):
            facts = generator.invent(context.chance(name, str(number)))
            if len(answers) < count and facts["answer"] not in answers:
                answers.add(facts["answer"])
                yield Added({"id": f"{name}-{number:05d}", "subtask": name, "facts": facts, "version": "v0"})


def rendered(record: Record, context: Context, sources: Sources) -> Outcome:
    """The record with its picture on the disk, if its answer is that of the written text."""
    generator, facts = generator_of(record["subtask"]), record["facts"]
    answer = generator.answer(facts)
    if answer != facts["answer"]:
        return Drop(record, WRONG, f"{facts['shown']!r} comes to {answer!r}, not {facts['answer']!r}")
    try:
        picture = generator.paint(facts, context.chance(record["id"]))
    except UsageError as error:
        return Failed(record, UNDRAWN, str(error))
    jpeg = BytesIO()
    picture.save(jpeg, "JPEG", quality=QUALITY)
    path = sources.draw(record, jpeg.getvalue())
    made = {**record, "image": id_of(jpeg.getvalue()), "source": DRAWN, "path": path}
    return Keep({**made, "stand_in": subtask(record["subtask"]).stand_in})


def wordings(pictures: Iterable[Record]) -> dict[str, set[str]]:
    """The images that each wording of drawn pictures is true of, at any level of detail; keys are `same_words`."""
    images: dict[str, set[str]] = {}
    for record in pictures:
        for text in chain(*generator_of(record["subtask"]).wording(record["facts"])):
            images.setdefault(same_words(text), set()).add(record["image"])
    return images


def same_words(text: str) -> str:
    """A caption without differences that do not count: case, spaces and the mark at its end."""
    return " ".join(text.casefold().split()).rstrip(" .!?")
