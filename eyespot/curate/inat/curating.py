"""The whole way: an export in, a collection out. Killed at any moment and run again, it ends in the same files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eyespot.curate.inat import card, collection, stages
from eyespot.curate.inat.collection import CollectionInputs, CollectionTally, Image
from eyespot.curate.inat.coverage import covered, write_coverage
from eyespot.curate.inat.leftovers import remove_leftovers
from eyespot.curate.inat.naming import file_name, hidden_taxa, species_of, unmatched
from eyespot.curate.inat.pictures import BAD, FLAGGED, NOT_THERE, REVIEW, Looks, digest_folder, flagged_photos
from eyespot.curate.inat.settings import CollectionSettings
from eyespot.curate.inat.source import ObservationSource, source_of
from eyespot.curate.inat.stages import FinishedStage
from eyespot.curate.inat.steps import ALIGNED, DRAWN, LISTED, PHOTOGRAPHED, stages_of
from eyespot.curate.inat.tables import Tables, opened, parquet
from eyespot.pipelines.human_review import AWAITS, Queue
from eyespot.storage.atomic import put_file
from eyespot.storage.locks import locked
from eyespot.types import UsageError

WORK = ".work"
UNSEEN = "The pictures were not at hand and nobody looked at them; fetch what download.csv lists and run again."
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Curated:
    """What became of it: counts by step, how the draw is spread, pictures in place, those that failed, and notes."""

    steps: list[dict[str, Any]]
    drawn: Mapping[str, Any]
    pictures: int
    failed: int
    waiting: int
    notes: list[str] = field(default_factory=list)


def curate(place: Path, out: Path, settings: CollectionSettings, tell: Tell) -> Curated:
    """Make a collection of what lies at `place`; the work's tables stay in `out/.work`, for the next run.

    Raises `UsageError` for what is no source and for lists that cannot be read, `NothingFound` if a step leaves none.
    """
    source = source_of(place)
    _refuse_bad_lists(settings)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / WORK).is_dir())):
        raise UsageError(f"{out} holds something else; name a new folder, or the one of an earlier run")
    if settings.pictures.folder is not None:
        folder = settings.pictures.folder
        if folder is not None and not folder.is_dir():
            raise UsageError(f"there is no folder {folder}; give the one that the photos were fetched to")
        if "face" in settings.pictures.checks:
            from eyespot.curate.inat.faces import model_file

            model_file()
    work = out / WORK
    with locked(work), opened(work / "spill", settings.memory, settings.threads) as tables:
        done, inputs = _tables_made(source, work, tables, settings, tell)
        species = species_of(done[ALIGNED].folder, settings.positions)
        on_inaturalist = source.kind.startswith("inat")
        making = CollectionInputs(species, settings.positions, source.licence_version, source.citation, on_inaturalist)
        return _Collecting(settings, out, tables, done, making).collect(inputs, tell)


def foretell(place: Path, settings: CollectionSettings, first: int, tell: Tell) -> Curated:
    """The funnel of the first observations, up to the draw; nothing stays on the disk."""
    source = source_of(place)
    _refuse_bad_lists(settings)
    with TemporaryDirectory(prefix="eyespot-") as folder:
        with opened(Path(folder) / "spill", settings.memory, settings.threads) as tables:
            done, _ = _tables_made(source, Path(folder), tables, replace(settings, first=first), tell)
        return Curated(_steps(list(done.values())), done[DRAWN].told, 0, 0, 0, _notes(done))


def _tables_made(
    source: ObservationSource, work: Path, tables: Tables, settings: CollectionSettings, tell: Tell
) -> tuple[dict[str, FinishedStage], dict[str, str]]:
    inputs = {} if settings.first is not None else stages.digests(source.files, work)
    lists = stages.digests(settings.species.files(), work, "lists.json")
    done = stages.run(stages_of(source, settings, lists), work, tables, inputs, tell)
    return {one.name: one for one in done}, inputs | lists


def _refuse_bad_lists(settings: CollectionSettings) -> None:
    """The lists that come last are read first: hours of work should not end at one that cannot be."""
    hidden_taxa(settings.positions)
    flagged_photos(settings.pictures)


def _steps(done: Sequence[FinishedStage]) -> list[dict[str, Any]]:
    return [
        {"step": one.name, **asdict(one.counts), "settings": dict(one.settings), "seconds": one.seconds, "ran": one.ran}
        for one in done
        if one.name != LISTED
    ]


def _notes(done: Mapping[str, FinishedStage]) -> list[str]:
    notes = []
    for one in done.values():
        told = one.told.get("unreadable") or {}
        if told:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in told["lines"].items())
            notes.append(f"lines that are no rows, in {one.about}: {kinds}; line {told['first']:,} the first")
    if shared := done[LISTED].told["ambiguous"]:
        name = f"keep each as {collection.DOWNLOAD} names it, by its id, or in its folder"
        notes.append(f"{shared:,} photos share a file name with others; {name}")
    unmapped = done[ALIGNED].told["unmapped"]
    if unmapped:
        notes.append(f"{unmapped:,} species of the target list have no taxon; {collection.TAXONOMY} says why")
    return notes


@dataclass(frozen=True)
class _Collecting:
    """From the drawn list to files; what may be millions of rows is read from the disk as often as it is needed."""

    settings: CollectionSettings
    out: Path
    tables: Tables
    done: Mapping[str, FinishedStage]
    making: CollectionInputs

    @property
    def looked(self) -> Path:
        """Number, reason, width and height of each drawn row."""
        return self.out / WORK / "looked.parquet"

    def collect(self, inputs: Mapping[str, str], tell: Tell) -> Curated:
        steps = _steps(list(self.done.values())) + self._look(tell)
        notes, drawn = [*_notes(self.done), *self._exposed(), *self._unheard(steps)], self.done[DRAWN].told
        tally = collection.write_all(_Images(self), self.making, self.out)
        remove_leftovers(self.out, (one.file_name for one in _Images(self)))
        collection.write_labels_beside(_Images(self), self.out)
        collection.write_download(self.rows(), self.out)
        collection.write_funnel(steps, self.out)
        collection.write_taxonomy(self.making, self._counts(tally), self.out)
        # Where observations were that might have been drawn, and those of the pictures that are in place
        kept = f"(SELECT number FROM {parquet(self.looked)} WHERE reason IS NULL)"
        after = f"(SELECT * FROM {self.done[LISTED].rows} SEMI JOIN {kept} USING (number))"
        cells = covered(self.tables, self.done[PHOTOGRAPHED].rows, after)
        write_coverage(cells, self.out)
        unseen = self.settings.pictures.folder is None
        facts = card.CollectionFacts(steps, tally, cells, drawn, inputs, [*notes, *([UNSEEN] if unseen else [])])
        card.write(self.out, facts, self.making, self.settings)
        lost = {} if unseen else steps[-1]["dropped"]
        waiting = sum(count for reason, count in lost.items() if reason.startswith(AWAITS))
        failed = sum(lost.get(reason, 0) for reason in (NOT_THERE, BAD))
        return Curated(steps, drawn, len(tally.species), failed, waiting, notes)

    def _exposed(self) -> list[str]:
        """A note on listed taxa that are no species here, lest a slip of the pen tells their positions."""
        odd = sorted(unmatched(self.making.species, self.settings.positions))
        shown = ", ".join(odd[:5]) + (", …" if len(odd) > 5 else "")
        return [f"{len(odd):,} taxa to coarsen are no species of the list by name or id: {shown}"] if odd else []

    def _unheard(self, steps: Sequence[Mapping[str, Any]]) -> list[str]:
        """Notes on what people said of pictures and what was not done: of others, or of what has changed since."""
        how, notes = self.settings.pictures, []
        if how.folder is None:
            return []
        if how.flagged is not None and FLAGGED not in steps[-1]["dropped"]:
            notes.append(f"no picture is on the list {how.flagged}; attributions.csv has their photo and file_name")
        if lapsed := Queue(self.out / REVIEW).lapsed():
            notes.append(f"{len(lapsed):,} pictures have changed since they were decided on; they wait again")
        return notes

    def rows(self) -> Iterator[dict[str, Any]]:
        """The drawn rows in order, each with its place in the collection."""
        for row in _read(self.done[LISTED].folder / stages.KEPT):
            row["target_file"] = file_name(row["photo"], self.making.species[row["target"]].folder)
            yield row

    # -- pictures -----------------------------------------------------------------------------------------------

    def _look(self, tell: Tell) -> list[dict[str, Any]]:
        """What pictures turned out to be, into `looked`; the step as the funnel tells it."""
        how, since = self.settings.pictures, time.monotonic()
        if how.folder is None:
            listed = self.done[LISTED].rows
            self.tables.write(
                f"SELECT number, NULL::VARCHAR AS reason, width, height FROM {listed} ORDER BY number", self.looked
            )
            return []
        looks, total = Looks(how, self.out, digest_folder(self.out / WORK, how)), self.done[LISTED].counts.kept
        found = looks.all(self.rows(), self.settings.threads, lambda done: tell("pictures", done, total))
        _write_looked(looks.judged(found), self.looked)
        counts = asdict(stages.counted(self.tables, self.looked))
        settings = {"checks": how.checks, "side": how.side, "face": how.face}
        return [{"step": "pictures", **counts, "settings": settings, "seconds": time.monotonic() - since, "ran": True}]

    # -- counts -------------------------------------------------------------------------------------------------

    def _counts(self, tally: CollectionTally) -> dict[int, dict[str, int]]:
        """Candidates, drawn and pictures by place in the list."""
        from eyespot.curate.inat.sampling import BY_SPECIES

        pictures, ids = Counter(tally.species), [one.id for one in self.making.species]
        rows = self.tables.rows(
            f"SELECT target, candidates, drawn FROM {parquet(self.done[DRAWN].folder / BY_SPECIES)}"
        )
        return {at: {"candidates": came, "drawn": drawn, "pictures": pictures[ids[at]]} for at, came, drawn in rows}


@dataclass(frozen=True)
class _Images:
    """The pictures of the collection, numbered; read again whenever they are iterated."""

    of: _Collecting

    def __iter__(self) -> Iterator[Image]:
        id = 0
        for row, looked in zip(self.of.rows(), _read(self.of.looked), strict=True):
            if looked["reason"] is None:
                row |= {"width": looked["width"], "height": looked["height"]}
                yield collection.image_of(id, row, self.of.making)
                id += 1


def _read(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1 << 13):
            yield from batch.to_pylist()


def _write_looked(found: Iterator[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {"number": pa.int64(), "reason": pa.string(), "width": pa.int32(), "height": pa.int32()}
    schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
    temporary = path.with_name(f".{path.name}.part")
    numbered = ({**one, "number": at} for at, one in enumerate(found))
    with pq.ParquetWriter(temporary, schema) as writer:
        while rows := [{name: one[name] for name in kinds} for one in islice(numbered, 1 << 13)]:
            writer.write_table(pa.Table.from_pylist(rows, schema))
    put_file(temporary, path)
