"""The whole way: an export in, a collection out. Killed at any moment and run again, it ends in the same files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eyespot.curate.inat import card, collection
from eyespot.curate.inat.collection import CollectionInputs, CollectionTally, Image
from eyespot.curate.inat.coverage import covered, write_coverage
from eyespot.curate.inat.leftovers import remove_leftovers, remove_old_tables
from eyespot.curate.inat.naming import hidden_taxa, species_of, unmatched
from eyespot.curate.inat.picture_step import PICTURES, TABLES, WORK, drawn_rows, picture_step, read_rows
from eyespot.curate.inat.pictures import BAD, FLAGGED, NOT_THERE, REVIEW, flagged_photos
from eyespot.curate.inat.settings import CollectionSettings
from eyespot.curate.inat.sources import source_of
from eyespot.curate.inat.steps import ALIGNED, DRAWN, LISTED, PHOTOGRAPHED, READ, steps_of
from eyespot.curate.inat.table_step import KEPT, TITLES, folder_of, most_first, notes_of
from eyespot.curate.inat.tables import Tables, opened, parquet
from eyespot.pipelines import RunOptions, StepResult, run
from eyespot.pipelines.human_review import AWAITS, Queue
from eyespot.pipelines.input_digests import digests_of
from eyespot.storage.locks import locked
from eyespot.types import Progress, UsageError

UNSEEN = "The pictures were not at hand and nobody looked at them; fetch what download.csv lists and run again."


@dataclass(frozen=True)
class Curated:
    """What became of it: counts by step, how the draw is spread, pictures in place, those that failed, and notes."""

    steps: list[dict[str, Any]]
    drawn: Mapping[str, Any]
    pictures: int
    failed: int
    waiting: int
    notes: list[str] = field(default_factory=list)


def curate(place: Path, out: Path, settings: CollectionSettings, tell: Progress) -> Curated:
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
        remove_old_tables(work)
        inputs = digests_of(source.files, work / "inputs.json")
        lists = digests_of(settings.species.files(), work / "lists.json")
        steps = steps_of(source, settings, tables, inputs, lists)
        if settings.pictures.folder is not None:
            steps.append(picture_step(out, settings))
        done = {one.step.name: one for one in run(steps, work / TABLES, RunOptions(tell=tell))}
        species = species_of(done[ALIGNED].folder, settings.positions)
        on_inaturalist = source.kind.startswith("inat")
        making = CollectionInputs(species, settings.positions, source.licence_version, source.citation, on_inaturalist)
        return _Collecting(settings, out, tables, done, making).collect()


def foretell(place: Path, settings: CollectionSettings, first: int, tell: Progress) -> Curated:
    """The funnel of the first observations, up to the draw; nothing stays on the disk."""
    source = source_of(place)
    _refuse_bad_lists(settings)
    trial = replace(settings, first=first)
    with TemporaryDirectory(prefix="eyespot-") as folder:
        with opened(Path(folder) / "spill", settings.memory, settings.threads) as tables:
            lists = digests_of(settings.species.files(), Path(folder) / "lists.json")
            steps = steps_of(source, trial, tables, {}, lists)
            done = {one.step.name: one for one in run(steps, Path(folder) / TABLES, RunOptions(tell=tell))}
        return Curated(_steps(done), notes_of(done[DRAWN]), 0, 0, 0, _notes(done))


def _refuse_bad_lists(settings: CollectionSettings) -> None:
    """The lists that come last are read first: hours of work should not end at one that cannot be."""
    hidden_taxa(settings.positions)
    flagged_photos(settings.pictures)


def _steps(done: Mapping[str, StepResult]) -> list[dict[str, Any]]:
    """The funnel: what came to each step, what it kept, and what it dropped by reason."""
    funnel = []
    for name, one in done.items():
        counts = one.counts
        dropped = most_first(counts.dropped)
        row = {"step": name, "came": counts.came + counts.added, "kept": counts.kept, "dropped": dropped}
        funnel += [] if name == LISTED else [{**row, "ran": one.ran}]
    return funnel


def _notes(done: Mapping[str, StepResult]) -> list[str]:
    notes = []
    for name in (READ, ALIGNED, PHOTOGRAPHED, LISTED):
        if lines := notes_of(done[name])["unreadable"]:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in lines["lines"].items())
            notes.append(f"lines that are no rows, in {TITLES[name]}: {kinds}; line {lines['first']:,} the first")
    if shared := notes_of(done[LISTED])["ambiguous"]:
        name = f"keep each as {collection.DOWNLOAD} names it, by its id, or in its folder"
        notes.append(f"{shared:,} photos share a file name with others; {name}")
    if unmapped := notes_of(done[ALIGNED])["unmapped"]:
        notes.append(f"{unmapped:,} species of the target list have no taxon; {collection.TAXONOMY} says why")
    return notes


@dataclass(frozen=True)
class _Collecting:
    """From the drawn list to files; what may be millions of rows is read from the disk as often as it is needed."""

    settings: CollectionSettings
    out: Path
    tables: Tables
    done: Mapping[str, StepResult]
    making: CollectionInputs

    @property
    def pictures(self) -> Path:
        """Number, width and height of each drawn row whose picture is part of the collection."""
        return folder_of(self.done[PICTURES if PICTURES in self.done else LISTED].records) / KEPT

    def collect(self) -> Curated:
        steps = _steps(self.done)
        notes, drawn = [*_notes(self.done), *self._exposed(), *self._unheard(steps)], notes_of(self.done[DRAWN])
        tally = collection.write_all(_Images(self), self.making, self.out)
        remove_leftovers(self.out, (one.file_name for one in _Images(self)))
        collection.write_labels_beside(_Images(self), self.out)
        collection.write_download(drawn_rows(self.done[LISTED].folder, self.making.species), self.out)
        collection.write_funnel(steps, self.out)
        collection.write_taxonomy(self.making, self._counts(tally), self.out)
        # Where observations were that might have been drawn, and those of the pictures that are in place
        after = f"(SELECT * FROM {self._rows(LISTED)} WHERE number IN (SELECT number FROM {parquet(self.pictures)}))"
        cells = covered(self.tables, self._rows(PHOTOGRAPHED), after)
        write_coverage(cells, self.out)
        unseen = PICTURES not in self.done
        results = [one for name, one in self.done.items() if name != LISTED]
        facts = card.CollectionFacts(results, tally, cells, drawn, [*notes, *([UNSEEN] if unseen else [])])
        card.write(self.out, facts, self.making, self.settings)
        lost = {} if unseen else steps[-1]["dropped"]
        waiting = sum(count for reason, count in lost.items() if reason.startswith(AWAITS))
        failed = sum(lost.get(reason, 0) for reason in (NOT_THERE, BAD))
        return Curated(steps, drawn, len(tally.species), failed, waiting, notes)

    def _rows(self, step: str) -> str:
        return parquet(self.done[step].folder / KEPT)

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
        pictures = read_rows(self.of.pictures)
        picture = next(pictures, None)
        id = 0
        for row in drawn_rows(self.of.done[LISTED].folder, self.of.making.species):
            if picture is not None and picture["number"] == row["number"]:
                row |= {"width": picture["width"], "height": picture["height"]}
                yield collection.image_of(id, row, self.of.making)
                id += 1
                picture = next(pictures, None)
