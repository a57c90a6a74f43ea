"""From an export to a collection. Killed at any moment and run again, it ends in the same files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eyespot.curate.inat import card, collection
from eyespot.curate.inat.collection import (
    CollectionInputs,
    CollectionTally,
    hidden_taxa,
    remove_leftovers,
    species_of,
    unmatched,
)
from eyespot.curate.inat.pictures import (
    BAD,
    NOT_THERE,
    PICTURES,
    REVIEW,
    TABLES,
    WORK,
    drawn_rows,
    flagged_photos,
    names_of,
    picture_step,
    read_rows,
)
from eyespot.curate.inat.sources import ObservationSource, source_of
from eyespot.curate.inat.steps import ALIGNED, DRAWN, LISTED, PHOTOGRAPHED, READ, filter_of, steps_of
from eyespot.curate.inat.tables import KEPT_ROWS, TITLES, Tables, folder_of, most_first, notes_of, opened, parquet
from eyespot.pipelines import RunOptions, StepResult, run
from eyespot.pipelines.human_review import AWAITS, Queue
from eyespot.pipelines.step import digests_of
from eyespot.settings.build import InatSettings
from eyespot.storage.locks import locked
from eyespot.storage.tables import write_csv
from eyespot.types import Progress, UsageError, quantity

UNSEEN = "The pictures were missing and nobody checked them; fetch what download.csv lists and run again."


@dataclass(frozen=True)
class Curated:
    """The result: counts by step, the spread of the draw, pictures in place, failed and waiting ones, and notes."""

    steps: list[dict[str, Any]]
    drawn: Mapping[str, Any]
    pictures: int
    failed: int
    waiting: int
    notes: list[str] = field(default_factory=list)


def curate(settings: InatSettings, out: Path, tell: Progress) -> Curated:
    """Make a collection in `out`; the tables stay in `out/.work`, for the next run.

    Raises `UsageError` for an unknown source and for lists that cannot be read, `NothingFound` if a step keeps none.
    """
    source = source_of(settings.export)
    _refuse_bad(settings, source)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / WORK).is_dir())):
        raise UsageError(f"{out} holds something else; name a new folder, or the one of an earlier run")
    folder = settings.photos
    if folder is not None:
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}; give the one that the photos were fetched to")
        if "face" in settings.check:
            from eyespot.curate.inat.pictures import model_file

            model_file()
    work = out / WORK
    with locked(work), opened(work / "spill", settings.memory, settings.threads) as tables:
        inputs = digests_of(source.files, work / "inputs.json")
        lists = digests_of(_lists(settings), work / "lists.json")
        steps = steps_of(source, settings, tables, inputs, lists)
        if folder is not None or settings.flagged is not None:
            steps.append(picture_step(out, settings))
        done = {result.step.name: result for result in run(steps, work / TABLES, RunOptions(tell=tell))}
        species = species_of(done[ALIGNED].folder, settings)
        return _Collecting(out, tables, done, CollectionInputs(species, settings, source)).collect()


def foretell(settings: InatSettings, tell: Progress) -> Curated:
    """The funnel of the first observations, up to the draw; nothing remains on the disk."""
    source = source_of(settings.export)
    _refuse_bad(settings, source)
    with TemporaryDirectory(prefix="eyespot-") as folder:
        with opened(Path(folder) / "spill", settings.memory, settings.threads) as tables:
            lists = digests_of(_lists(settings), Path(folder) / "lists.json")
            steps = steps_of(source, settings, tables, {}, lists, first=settings.sample)
            done = {result.step.name: result for result in run(steps, Path(folder) / TABLES, RunOptions(tell=tell))}
        return Curated(_steps(done), notes_of(done[DRAWN]), 0, 0, 0, _notes(done))


def _refuse_bad(settings: InatSettings, source: ObservationSource) -> None:
    """Read the filter and the lists of the last steps first, so that hours of work do not end at a bad one."""
    filter_of(settings, source)
    hidden_taxa(settings)
    flagged_photos(settings)


def _lists(settings: InatSettings) -> dict[str, Path]:
    files = {"target list": settings.targets, "mapping": settings.mapping}
    return {name: path for name, path in files.items() if path is not None}


def _steps(done: Mapping[str, StepResult]) -> list[dict[str, Any]]:
    """The funnel: how many observations came to each step, how many it kept, and dropped by reason."""
    funnel = []
    for name, result in done.items():
        if name != LISTED:
            counts = result.counts
            row = {"step": name, "came": counts.came + counts.added, "kept": counts.kept}
            funnel.append({**row, "dropped": most_first(counts.dropped), "ran": result.ran})
    return funnel


def _notes(done: Mapping[str, StepResult]) -> list[str]:
    notes = []
    for name in (READ, ALIGNED, PHOTOGRAPHED, LISTED):
        if lines := notes_of(done[name])["unreadable"]:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in lines["lines"].items())
            notes.append(f"lines that are not rows, in {TITLES[name]}: {kinds}; line {lines['first']:,} the first")
    if shared := notes_of(done[LISTED])["ambiguous"]:
        name = f"keep each as {collection.DOWNLOAD} names it, by its id, or in its folder"
        notes.append(f"{quantity(shared, 'photo shares', 'photos share')} a file name with others; {name}")
    if unmapped := notes_of(done[ALIGNED])["unmapped"]:
        notes.append(f"{unmapped:,} species of the target list have no taxon; {collection.TAXONOMY} says why")
    return notes


@dataclass(frozen=True)
class _Collecting:
    """From the drawn list to files; millions of rows are read from the disk as often as they are needed."""

    out: Path
    tables: Tables
    done: Mapping[str, StepResult]
    inputs: CollectionInputs

    @property
    def pictures(self) -> Path:
        """Number, width and height of each drawn row whose picture is part of the collection."""
        return folder_of(self.done[PICTURES if PICTURES in self.done else LISTED].records) / KEPT_ROWS

    def collect(self) -> Curated:
        steps, drawn = _steps(self.done), notes_of(self.done[DRAWN])
        notes = [*_notes(self.done), *self._list_notes()]
        tally = collection.write_all(self.images, self.inputs, self.out)
        remove_leftovers(self.out, (image["file_name"] for image in self.images()))
        collection.write_labels_beside(self.images(), self.out)
        flagged = flagged_photos(self.inputs.settings)
        wanted = ((row["url"], row["file"]) for row in self.drawn_rows() if row["url"] and not flagged & names_of(row))
        write_csv(self.out / collection.DOWNLOAD, chain([("url", "file")], wanted))
        collection.write_funnel(steps, self.out)
        collection.write_taxonomy(self.inputs, self._counts(tally), self.out)
        listed = parquet(self.done[LISTED].folder / KEPT_ROWS)
        after = f"(SELECT * FROM {listed} WHERE number IN (SELECT number FROM {parquet(self.pictures)}))"
        unseen = self.inputs.settings.photos is None
        lost = steps[-1]["dropped"] if PICTURES in self.done else {}
        waiting = sum(count for reason, count in lost.items() if reason.startswith(AWAITS))
        # Photos of the collection that are not the first of their observation
        ((later, unknown),) = self.tables.rows(
            "SELECT count(*) FILTER (position > 0), count(*) FILTER (position IS NULL) FROM " + after
        )
        standing = {"drawn": drawn, "waiting": waiting, "checked": not unseen, "later": later, "unknown": unknown}
        standing |= {"drawn_rows": self.tables.number(f"SELECT count(*) FROM {listed}")}
        card.write(
            self.out,
            self.inputs,
            steps=[result for name, result in self.done.items() if name != LISTED],
            tally=tally,
            notes=[*notes, UNSEEN] if unseen else notes,
            standing=standing,
        )
        failed = sum(lost.get(reason, 0) for reason in (NOT_THERE, BAD))
        if note := card.substitutes(later, unknown, len(tally.species)):
            notes.append(note)
        return Curated(steps, drawn, len(tally.species), failed, waiting, notes)

    def images(self) -> Iterator[Mapping[str, Any]]:
        """The pictures of the collection, numbered; read from the disk."""
        pictures = read_rows(self.pictures)
        picture, id = next(pictures, None), 0
        for row in self.drawn_rows():
            if picture is not None and picture["number"] == row["number"]:
                row |= {"width": picture["width"], "height": picture["height"]}
                yield collection.image_of(id, row, self.inputs)
                picture, id = next(pictures, None), id + 1

    def drawn_rows(self) -> Iterator[dict[str, Any]]:
        """The drawn rows, read from the disk."""
        return drawn_rows(self.done[LISTED].folder, self.inputs.species)

    def _list_notes(self) -> Iterator[str]:
        """Notes on lists and decisions without an effect: they name something else, or it has changed since."""
        how, odd = self.inputs.settings, sorted(unmatched(self.inputs.species, self.inputs.settings))
        if odd:  # a typing error would reveal their positions
            names = ", ".join(odd[:5]) + (", …" if len(odd) > 5 else "")
            yield f"{len(odd):,} taxa to coarsen are not species of the list by name or id: {names}"
        strange = flagged_photos(how)
        for row in self.drawn_rows() if strange else ():
            strange -= names_of(row)
        if strange:
            names = ", ".join(sorted(strange)[:5]) + (", …" if len(strange) > 5 else "")
            yield f"{len(strange):,} entries of {how.flagged} are not drawn photos: {names}; download.csv names these"
        if how.photos is not None and (lapsed := Queue(self.out / REVIEW).lapsed()):
            yield f"{len(lapsed):,} pictures have changed since their decision; they wait again"

    def _counts(self, tally: CollectionTally) -> dict[int, dict[str, int]]:
        """Candidates, drawn and pictures by place in the list."""
        from eyespot.curate.inat.steps import BY_SPECIES

        pictures, facts = Counter(tally.species), parquet(self.done[DRAWN].folder / BY_SPECIES)
        rows = self.tables.rows(f"SELECT target, candidates, drawn FROM {facts}")
        counts = {}
        for place, candidates, drawn in rows:
            numbers = (candidates, drawn, pictures[self.inputs.species[place].id])
            counts[place] = dict(zip(collection.COUNTS, numbers, strict=True))
        return counts
