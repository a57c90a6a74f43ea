"""The sub-tasks: rows of `subtasks.toml`; each whose pictures are drawn is a file with a `load()` as well.

Other packages add theirs by entry points of the group `eyespot.recos_subtasks`. Pictures of some are drawn by a
generator: it samples their facts, draws and describes them; the record contains the facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from eyespot import rooms
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

Facts: TypeAlias = Mapping[str, Any]
"""All of a drawn picture, as JSON: `shown` (what is written on it), the `answer` to it, and how it is drawn."""

VAGUE, USUAL, DETAILED = 0, 1, 2
CAPTIONS: Mapping[str, Any] = toml_of(Path(__file__).with_name("captions.toml"))  # templates by kind of picture


class CaptionWordings(NamedTuple):
    """Five captions each of three kinds: less than is needed to find the picture, enough, and everything there is."""

    vague: Sequence[str]
    usual: Sequence[str]
    detailed: Sequence[str]


class Generator(Protocol):
    """Draws pictures of a sub-task; one file of `subtasks/` brings it."""

    def sample(self, rng: Random) -> Facts:
        """The facts of a random picture, its answer among them."""
        ...

    def draw(self, facts: Facts, rng: Random) -> Image:
        """The picture, the same for equal facts and `rng`. `UsageError` for a font that is not installed."""
        ...

    def wording(self, facts: Facts) -> CaptionWordings:
        """True captions of it; caption i of two pictures differs only in their facts."""
        ...

    def sibling(self, facts: Facts, rng: Random) -> Facts | None:
        """The facts of a picture with another answer that differs in one digit, constant or word; None for none."""
        ...


def fill_captions(name: str, fields: Mapping[str, str]) -> CaptionWordings:
    """The captions under this name in `captions.toml`, with their fields filled in."""
    templates = CAPTIONS[name]
    vague, usual = ([text.format_map(fields) for text in templates[level]] for level in ("vague", "usual"))
    detail = templates["detail"].format_map(fields)
    return CaptionWordings(vague, usual, [f"{text.removesuffix('.')}{detail}." for text in usual])


WRITTEN: Mapping[str, Any] = toml_of(Path(__file__).with_name("written.toml"))  # sums and programs by kind
WORDS = ("heron", "river", "lantern", "meadow", "copper", "violet", "harbour", "candle", "maple", "falcon")
NAMES = ("n", "x", "total", "count", "value", "result")
TRIES = 200
LISTED = range(1, 41)  # the numbers of a list
GAP = re.compile(r"\{([a-z]+|\d+-\d+)\}")


def written(what: str, rng: Random, answer_of: Callable[[str], str]) -> tuple[str, str, str]:
    """A text of `written.toml` with its gaps filled in at random: its kind, the text, and its answer."""
    while True:
        kind = rng.choice(list(WRITTEN[what]))
        numbers = str([rng.randint(LISTED[0], LISTED[-1]) for _ in range(rng.randint(4, 7))])
        fields = {"name": rng.choice(NAMES), "word": rng.choice(WORDS), "numbers": numbers}

        def fill(gap: re.Match[str], fields: Mapping[str, str] = fields) -> str:
            return fields[gap[1]] if gap[1] in fields else str(rng.randint(*map(int, gap[1].split("-"))))

        text = GAP.sub(fill, rng.choice(WRITTEN[what][kind]))
        if answer := answer_of(text):
            return kind, text, answer


@cache
def form_of(what: str, kind: str) -> re.Pattern[str]:
    """What `written` may write of a kind: a digit changed elsewhere makes nonsense of it, as in `word[::-4]`."""

    def one_of(several: Iterable[object]) -> str:
        return f"(?:{'|'.join(map(str, several))})"

    number = one_of(LISTED)
    fields = {"name": one_of(NAMES), "word": one_of(WORDS), "numbers": rf"\[{number}(?:, {number}){{3,6}}\]"}
    forms = []
    for text in WRITTEN[what][kind]:
        # Every second part is a gap
        parts = [re.escape(part) if at % 2 == 0 else part for at, part in enumerate(GAP.split(text.strip()))]
        for at in range(1, len(parts), 2):
            low, _, high = parts[at].partition("-")
            parts[at] = fields[low] if low in fields else one_of(range(int(low), int(high) + 1))
        forms.append("".join(parts))
    return re.compile(one_of(forms))


def nearly(
    text: str, rng: Random, answer_of: Callable[[str], str], form: re.Pattern[str] | None = None
) -> tuple[str, str] | None:
    """A text of this form that differs in one digit or else in one word, and its answer, which is another one.

    None where none has an answer.
    """
    answer = answer_of(text)
    digits = [(found.span(), "123456789") for found in re.finditer(r"\d", text)]
    words = [(found.span(), WORDS) for found in re.finditer("|".join(WORDS), text)]
    for places in (digits, words):
        for _ in range(TRIES if places else 0):
            (start, end), others = rng.choice(places)
            other = f"{text[:start]}{rng.choice(others)}{text[end:]}"
            if (form is None or form.fullmatch(other)) and answer_of(other) not in ("", answer):
                return other, answer_of(other)
    return None


def token_edits(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest words to insert, delete or replace that turn one text into the other (Levenshtein, over words)."""
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(second, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (word != other))
    return row[-1]


def kind_fields(kind: str) -> dict[str, str]:
    """Fields for a kind of thing: the noun alone, and with its article at the beginning and inside of a sentence."""
    article = "an" if kind[0] in "aeiou" else "a"
    return {"kind": kind, "a_kind": f"{article} {kind}", "A_kind": f"{article.capitalize()} {kind}"}


COARSE, FINE, COGNITIVE, CUSTOM = "coarse", "fine", "cognitive", "custom"  # the last are of a recipe
TABLE: Mapping[str, Any] = toml_of(Path(__file__).with_name("subtasks.toml"))
FILES, GUESTS = "curate.recos.subtasks", "recos_subtasks"  # rooms: this folder, and what other packages add


@dataclass(frozen=True)
class Subtask:
    """One of the kinds of retrieval.

    `about` tells a writer what captions must depend on, `attributes` what a confusing caption may change. `count` is
    the number of its pictures in v0, `queries` are the searches for photos unless the recipe has others. Pictures of
    a `generator` are drawn; `stand_in` says which missing photos they replace. Photos `of_writing` are those in which
    OCR read some, from galleries that were indexed with it.
    """

    name: str
    family: str
    count: int
    about: str
    attributes: tuple[str, ...]
    queries: tuple[str, ...] = ()
    generator: Generator | None = None
    stand_in: str = ""
    opt_in: bool = False
    of_writing: bool = False


def described(name: str, generator: Generator | None = None) -> Subtask:
    """A row of `subtasks.toml`, whose pictures a generator draws, or which are photos."""
    lists = {key: tuple(TABLE[name].get(key, ())) for key in ("attributes", "queries")}
    row = {key: value for key, value in TABLE[name].items() if key != "drawn"}
    return Subtask(name, **row | lists, generator=generator)


def names() -> list[str]:
    """All sub-tasks, by families: coarse, fine, cognitive; nothing is drawn or read."""
    order = (COARSE, FINE, COGNITIVE)
    return sorted(subtasks(), key=lambda name: (order.index(subtasks()[name].family), name))


def subtask(name: str) -> Subtask:
    """The sub-task of this name; `UsageError` if there is none."""
    if name not in subtasks():
        raise UsageError(f"no sub-task {name!r}; there are {', '.join(names())}, or give it about and attributes")
    return subtasks()[name]


@cache
def subtasks() -> Mapping[str, Subtask]:
    """Every sub-task by its name: those of the table, of the files of this folder, and of other packages."""
    photos = [described(name) for name, row in TABLE.items() if "drawn" not in row]
    members = [rooms.load(room, name) for room in (FILES, GUESTS) for name in rooms.names(room)]
    return {member.name: member for member in [*photos, *members]}


@dataclass(frozen=True)
class SubtaskPictures:
    """Pictures of a sub-task: `count` of them, from these galleries (none named: all), for which `where` is true.

    `want` is how many the set has: while there are fewer, captions are replaced and further pictures taken, until none
    is left. `count` is then how many are taken at first. `about` and `attributes` say what captions
    tell and what a confusing one may change; with both a sub-task may be the recipe's own.
    With `words` those whose labels contain one of the words (of the sub-task `ocr`: or whose writing does), else the
    results of `queries`. Without both, photos of `ocr` are those in which OCR read something, where a gallery has any.
    `stand_in` says what these pictures stand in for, if they are not what the sub-task means.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    count: int | None = None
    want: int | None = None
    about: str = ""
    attributes: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    where: str | None = None
    galleries: tuple[str, ...] = ()
    stand_in: str = ""


@dataclass(frozen=True)
class Collecting:
    """Galleries by name, their encoder, and the wanted pictures; the default is every sub-task that is not opt-in."""

    galleries: Mapping[str, str] = field(default_factory=dict)
    encoder: str | None = None
    subtasks: Mapping[str, SubtaskPictures] = field(default_factory=dict)

    def wanted(self) -> dict[str, SubtaskPictures]:
        """The pictures of each sub-task, with their count; `UsageError` for an unknown sub-task."""
        found = dict(self.subtasks) or {name: SubtaskPictures() for name in names() if not subtask(name).opt_in}
        counts = {name: (it.count, it.want, self.described(name).count) for name, it in found.items()}
        return {name: replace(it, count=next(n for n in counts[name] if n is not None)) for name, it in found.items()}

    def described(self, name: str) -> Subtask:
        """A sub-task as the recipe has it; `UsageError` for an unknown one that the recipe does not describe."""
        it = self.subtasks.get(name, SubtaskPictures())
        texts: dict[str, Any] = {"about": it.about, "attributes": it.attributes}
        if name not in subtasks() and all(texts.values()):
            return Subtask(name, CUSTOM, 50, it.about, it.attributes)
        return replace(subtask(name), **{key: value for key, value in texts.items() if value})

    def counts(self) -> dict[str, int]:
        """How many pictures of each sub-task are taken."""
        return {name: it.count or 0 for name, it in self.wanted().items()}

    def goals(self) -> dict[str, int]:
        """How many pictures of each sub-task the set is to have."""
        return {name: (it.count or 0) if it.want is None else it.want for name, it in self.wanted().items()}

    def taking(self, counts: Mapping[str, int]) -> Collecting:
        """The same with as many pictures of some sub-tasks."""
        wanted = {name: replace(it, count=counts.get(name, it.count)) for name, it in self.wanted().items()}
        return replace(self, subtasks=wanted)

    def shared(self, limit: int) -> Collecting:
        """The same with at most `limit` pictures in all, a share for every sub-task and, of few, for the first."""
        counts = self.counts()
        while sum(counts.values()) > limit:
            most = max(reversed(counts), key=lambda name: counts[name])
            counts[most] -= 1
        return self.taking(counts)
