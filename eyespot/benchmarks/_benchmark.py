"""What a benchmark is: the files it needs, the tasks it sets, and the numbers that papers print for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol
from weakref import ref

from eyespot.gallery.view import View
from eyespot.metrics import Measure, Preset, Rules, Scores
from eyespot.runs.judged import JudgedQueries
from eyespot.search.matching import ListedRows, listed_rows, stems_of
from eyespot.storage.digests import file_sha256
from eyespot.storage.text_files import holds_something, json_of
from eyespot.types import Note, Run, UsageError, quantity


@dataclass(frozen=True, eq=False)
class ImageList:
    """Names of images, read anew from their file by `names`; `title` is what people call the set."""

    title: str
    names: Callable[[], Iterator[str]]
    _known: dict[str | None, tuple[ref[View], ListedRows]] = field(default_factory=dict, repr=False)

    @cached_property
    def count(self) -> int:
        """How many images it names."""
        return sum(len(texts) for texts in stems_of(self.names()))

    def rows(self, view: View, column: str | None, lacks: bool = False) -> ListedRows:
        """The rows of a gallery that it names; read once for every system that searches the same view.

        `UsageError` if the gallery lacks some, unless `lacks` allows that, if it has none, and for a list of nothing.
        """
        known = self._known.get(column)
        if known is None or known[0]() is not view:
            known = self._known[column] = (ref(view), listed_rows(view, self.names(), column))
        found = known[1]
        if not found.total:
            raise UsageError(f"the list of {self.title} names no image; eyespot eval --check says where to get it")
        if found.there < found.total and not (lacks and found.there):
            way_out = "name the column of their ids with --match, index the rest, or add --allow-missing"
            raise UsageError(f"{self.sentence(found)}; {way_out}")
        return found

    def sentence(self, found: ListedRows) -> str:
        """How many of its images a gallery lacks."""
        lacking = f"{found.total - found.there:,} of {quantity(found.total, 'image')} of {self.title}"
        return f"{lacking} are not in the gallery (such as {found.lacking!r})"

    def outside(self, images: Iterable[str]) -> int:
        """How many of these images it does not name."""
        left = {text for texts in stems_of(images) for text in texts.to_pylist()}
        for texts in stems_of(self.names()) if left else ():
            left.difference_update(texts.to_pylist())
            if not left:
                break
        return len(left)


class Needed(NamedTuple):
    """A file or folder of a benchmark, and where its owners keep it.

    `path` is relative to the data folder, with `|` between the places where it may lie, each a name or a pattern.
    `size` in bytes and `sha256` only where they are known; of our own copy where the owners publish none. What is not
    `required` makes more possible (`what` says so); what has a `split` is needed for that one only.
    """

    path: str
    what: str
    where: str
    size: int | None = None
    sha256: str | None = None
    required: bool = True
    split: str | None = None

    def find(self, data: Path) -> Path | None:
        """Where it lies in the data folder, or None."""
        return next((place for pattern in self.path.split("|") for place in sorted(data.glob(pattern))), None)

    def place(self, data: Path) -> Path:
        """Where it lies; `UsageError` says where to get it."""
        found = self.find(data)
        if found is None:
            raise UsageError(f"there is no {self.path.partition('|')[0]} in {data} ({self.what}); get it: {self.where}")
        return found


class Printed(NamedTuple):
    """One number of a paper: whose, in which task, which measure, over which queries; `value` as printed."""

    source: str  # "INQUIRE, table 2"
    method: str
    task: str
    measure: str
    value: float  # as a fraction where the paper prints percent
    percent: bool = True
    column: str | None = None  # of a breakdown
    group: str | None = None
    depth: int | None = None  # of a two-stage search
    split: str | None = None  # None: the benchmark's first
    images: int | None = None  # that each query ranked; None: those of the official set
    wording: str | None = None  # of the prompt that its model answers
    first_stage: str | None = None  # the row of the same table with the ranking that it re-ranks
    view: str | None = None  # how its encoder saw pictures, as `Space.picture_view`; None: not known


class Official(NamedTuple):
    """What papers measured in one task: how many queries, and how many images each ranked (None: not known)."""

    queries: int
    images: int | None = None


class Group(NamedTuple):
    """The queries with one value: how many, and of each measure the mean and the 95% interval."""

    value: str
    queries: int
    means: dict[str, float]
    intervals: dict[str, tuple[float, float]]


class Breakdown(Protocol):
    """Results by something that is known of queries or images."""

    @property
    def name(self) -> str:
        """What the results are broken down by."""
        ...

    def __call__(self, run: Run, task: Task, scores: Scores) -> list[Group]:
        """The groups in the order to show them; none where the data do not say."""
        ...


@dataclass(frozen=True)
class Task:
    """Queries of one kind against one pool, and the measures that count there.

    `judged.candidates` is what a query may rank, where it may rank only that.

    `pool` names what is ranked, with what is known of each (`text` for captions), where the benchmark says; `size` is
    how many images its full collection has. `composed`: a query asks with its picture and its text together;
    `exclude_input`: its own picture is no answer to it, unless it is judged relevant; `exclude_unknown`: pictures of a
    negative grade are left out of its ranking.

    Of a gallery: pictures in `apart` are not part of the collection, and `called` names those that the files do not
    name, by their path (None: it cannot). With `listed` only the images of that list and those of `judged.images` are.

    `unofficial` is why the data are not those that papers print numbers of, where that is known; `verified` names the
    files of queries that are the official ones by their SHA-256.
    """

    name: str
    judged: JudgedQueries
    measures: Sequence[Measure]
    rules: Rules = field(default_factory=Rules)
    by: Sequence[Breakdown] = ()
    pool: dict[str, dict[str, object]] = field(default_factory=dict)
    size: int | None = None
    way: str = "t2i"  # which way a similarity matrix is read for it
    composed: bool = False
    exclude_input: bool = False
    exclude_unknown: bool = False
    apart: Sequence[str] = ()
    called: Callable[[str], str | None] | None = None
    listed: ImageList | None = None
    unofficial: Sequence[Note] = ()
    verified: Sequence[str] = ()

    def excluded(self, query: str) -> set[str]:
        """The pictures that a query's ranking leaves out."""
        if not (self.exclude_input or self.exclude_unknown):
            return set()
        grades = self.judged.qrels.grades.get(query, {})
        left = {image for image, grade in grades.items() if grade < 0} if self.exclude_unknown else set()
        input_picture = self.judged.queries.get(query, {}).get("image") if self.exclude_input else None
        return left if input_picture is None or grades.get(str(input_picture), 0) > 0 else left | {str(input_picture)}

    @property
    def image_facts(self) -> Mapping[str, Mapping[str, object]]:
        """What is known of images. Captions may have numbers that images have too, so their facts are not among it."""
        return self.judged.queries if self.way == "i2t" else {**self.judged.images, **self.pool}

    @classmethod
    def of(cls, name: str, judged: JudgedQueries, preset: Preset, **rest: object) -> Task:
        """A task with a preset's measures and rules."""
        return cls(name, judged, preset.measures, preset.rules, **rest)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: `tasks(data folder, split, column that names images)` reads its official layout as it is.

    `official` says what papers measured, by split and task: `printed` numbers stand beside a result of the same alone.
    `submission` is the format of rankings that its server takes, where the truths of a split are not public.
    """

    name: str
    title: str
    about: str
    home: str
    licence: str
    citation: str
    tasks: Callable[..., list[Task]]
    needs: Sequence[Needed] = ()
    splits: Sequence[str] = ("test",)
    printed: Callable[[], list[Printed]] = list
    official: Mapping[tuple[str, str], Official] = field(default_factory=dict)
    submission: str | None = None


@dataclass(frozen=True)
class FileStatus:
    """One needed file: `state` is ok, missing, other (not the copy known to eyespot) or absent (not required)."""

    needed: Needed
    place: Path | None
    state: str
    reason: str = ""

    @property
    def stops(self) -> bool:
        """Whether the benchmark cannot be run like this."""
        return self.state == "missing"


def check(benchmark: Benchmark, data: Path, split: str) -> list[FileStatus]:
    """Every file that this split needs, looked for in the data folder and compared where its copy is known."""
    wanted = (needed for needed in benchmark.needs if needed.split in (None, split))
    return [_status(needed, data) for needed in wanted]


def unofficial(needed: Needed, data: Path) -> list[Note]:
    """Why a file of queries is not the one that papers measured on, where its digest is known."""
    status = _status(needed, data)
    if status.place is None or status.state != "other":
        return []
    return [Note("queries", f"{status.place.name} is not the official file (SHA-256)")]


def note_of_set(data: Path, otherwise: str) -> Note:
    """Which built set it is: its name and, of a published one, the version and the SHA-256 of its list of checksums.

    Where a table is no longer the one on that list, it says so instead of the digest.
    """
    about, sums = data / "croissant.json", data / "SHA256SUMS"
    found = json_of(about) if about.is_file() else None
    if not isinstance(found, dict) or not found.get("name"):
        return Note("set", otherwise)
    if not sums.is_file():
        return Note("set", f"the set is {found['name']}")
    listed = sums.read_text("utf-8", "replace").splitlines()
    same = all(f"{file_sha256(table)}  {table.name}" in listed for table in data.glob("*.parquet"))
    standing = f"sha256:{file_sha256(sums)[:16]} of {sums.name}" if same else "changed since it was published"
    return Note("set", f"the set is {found['name']} {found.get('version')}, {standing}")


def _status(needed: Needed, data: Path) -> FileStatus:
    place = needed.find(data) if data.is_dir() else None
    if place is None or not holds_something(place):
        reason = "" if place is None else "is empty, as a download that was cut leaves it"
        return FileStatus(needed, place, "missing" if needed.required else "absent", reason)
    differences: list[str] = []
    # A differing file may be a newer release, so this is a note and does not stop
    if place.is_file():
        if needed.size is not None and place.stat().st_size != needed.size:
            differences.append(f"has {place.stat().st_size:,} bytes, the copy known to eyespot {needed.size:,}")
        elif needed.sha256 is not None and file_sha256(place) != needed.sha256:
            differences.append("differs from the copy known to eyespot")
    reason = "; ".join(differences)
    return FileStatus(needed, place, "other" if reason else "ok", reason)
