"""Indexing: from photos where they lie to a gallery, again and again, each time only what is new or changed.

Killed at any moment and run again, it ends in the same gallery as a run that was left alone: the plan of shards is
written first, a shard appears whole or not at all, and a shard that was cut is done again from its plan.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from eyespot.gallery import disk, integrity, items_table, recovery, segments, texts, word_table
from eyespot.gallery.groups.near_duplicates import HASHES, lacks_hashes, write_hashes
from eyespot.gallery.groups.stored import write_links
from eyespot.gallery.making import Batches, ShardInMaking, fingerprints, hashes_again, write_codes_of_spaces
from eyespot.gallery.picture_index import Failure, PictureIndex, StoredRow
from eyespot.gallery.reading import KnownInIndex
from eyespot.gallery.survey import RootCounts
from eyespot.gallery.video_frames import video_counts
from eyespot.models.installed import in_known_space, remember_gallery
from eyespot.photos.found import KnownPictures, PlannedPicture
from eyespot.photos.names import shown_name
from eyespot.photos.places import Root, numbers_of
from eyespot.photos.sources import is_there, roots_of
from eyespot.photos.videos.addresses import VIDEO
from eyespot.storage import sqlite
from eyespot.storage.atomic import ELSEWHERE, make_folder, new_folder, trouble
from eyespot.storage.copies import INDEX
from eyespot.storage.digests import DIGESTS, LookAtFiles, damaged_at_a_glance, damaged_files
from eyespot.storage.locks import locked
from eyespot.storage.systems import usable_cores
from eyespot.types import Encoder, EncoderWithNotes, EyespotError, Mask, Progress, Vectors, no_progress, quantity

if TYPE_CHECKING:  # a run that finds nothing new reads no picture
    from eyespot.photos.decode_workers import Reader
    from eyespot.types import TextReader

_STRETCH = 1 << 16  # pictures whose vectors are written at once where an encoder is added
GONE_LIMIT = 0.2  # more than this share of a root gone at once is kept until --forget


@dataclass(frozen=True)
class Options:
    """How to index; the defaults are what most people want."""

    workers: int = field(default_factory=usable_cores)
    retry_failed: bool = False
    forget: bool = False
    remove: Sequence[str] = ()  # roots to take out of the gallery first, by their paths
    shard_rows: int | None = None  # None: by the size of the job
    half: bool = False  # new vectors in float16; a space whose newest are goes on so
    repair: bool = False  # read all that is there and make again what is damaged, not only what is visibly so
    codes: bool = False  # int8 codes next to the vectors; a space that has some gets the rest anyway
    progress: Progress = no_progress
    reader_factory: Callable[[Mapping[str, Encoder]], Reader] | None = None  # reads and embeds in place of this process
    text_reader: TextReader | None = None  # of the text in pictures


@dataclass
class Summary:
    """What an indexing run did; `notes` are sentences for the user, `failures` are those of earlier runs too."""

    pictures: int = 0
    paths: int = 0
    embedded: int = 0
    failures: list[Failure] = field(default_factory=list)
    new_failures: int = 0
    notes: list[str] = field(default_factory=list)
    damaged: list[integrity.Fault] = field(default_factory=list)  # what a repair could not fix here
    found: RootCounts = field(default_factory=RootCounts)  # in the roots that were visited
    texts: texts.TextSummary | None = None


def index(
    gallery: Path | str, paths: Sequence[str | Path], encoders: Sequence[Encoder], options: Options | None = None
) -> Summary:
    """Bring the gallery up to date with the photos under `paths` (all its roots if none are named).

    Every encoder gives the gallery one space. Raises `UsageError` for paths that cannot be indexed, `EyespotError` when
    another run holds the gallery or the disk is full; whatever was finished by then stays.
    """
    options, gallery = options or Options(), Path(gallery).expanduser()
    try:
        with ExitStack() as open_things:
            open_things.enter_context(locked(gallery))
            open_things.enter_context(sqlite.whole(gallery / INDEX))
            notes = recovery.ready_ledger(gallery, options.repair)
            spaces = disk.read_or_rebuild_header(gallery).spaces.values()
            job = _IndexJob(gallery, [in_known_space(one, spaces) for one in encoders], options)
            open_things.callback(job.index.close)
            open_things.callback(job.words.close)
            job.summary.notes += notes
            remember_gallery(gallery, [encoder.space.encoder for encoder in encoders])
            summary = job.run([root for path in paths for root in roots_of(str(path))])
        if options.repair:
            summary.damaged = integrity.faults(gallery, options.progress)
        return summary
    except (OSError, sqlite3.OperationalError) as error:
        raise EyespotError(f"cannot write to {gallery} {trouble(error, elsewhere=ELSEWHERE)}") from error
    except (TypeError, ValueError, LookupError):  # as values of another kind end, which a damaged index gives
        sqlite.check(gallery / INDEX)
        raise


class _IndexJob:
    """One run of `index` over one gallery."""

    def __init__(self, gallery: Path, encoders: Sequence[Encoder], options: Options) -> None:
        self.gallery = gallery
        self.index = PictureIndex(gallery)
        self.words = word_table.WordMaker(gallery)
        self.encoders = {disk.stem_of(encoder.space): encoder for encoder in encoders}
        self.options = options
        self.summary = Summary()
        self.fingerprints: dict[str, list[list[float]]] = {}
        self.dtypes: dict[str, str] = {}  # of new vectors, by space
        self.gone: set[int] = set()  # shards whose folder was away and is made again
        self.complete: set[tuple[str, int]] = set()  # space and shard of vectors that this run wrote for every row

    def run(self, roots: list[Root]) -> Summary:
        segments.settle(self.gallery, self.index)
        if recovery.recover(self.gallery, self.index):
            self.summary.notes.append("the index did not know all shards; it was made again from them")
        known = set(self.index.failures())
        recovery.drop_damaged_digests(self.gallery)
        look = damaged_files if self.options.repair else damaged_at_a_glance
        self.index.name_from_here()
        self._repair_facts()
        self.summary.notes += recovery.repair_members(self.gallery, self.index, look)
        roots_before = self.index.roots()
        for number in dict.fromkeys(one for path in self.options.remove for one in numbers_of(path, roots_before)):
            alone = self.index.remove_root(number)
            place = roots_before[number].place
            self.summary.notes.append(f"{place} was taken out, and {quantity(alone, 'picture')} that lay only there")
        self._refresh_facts()  # of what this run or a killed one removed: no table names a root that is not there
        self._write_header()
        self._embed_planned()  # what a killed run left
        if self.options.repair:
            self.index.forget_unsourced()
        visited = self._visit(roots or [root for root in self.index.roots().values() if root.kind != "import"])
        self.index.make_plan(self.options.shard_rows, self.options.retry_failed, self.encoders)
        self._write_header()
        self._embed_planned()
        self._forget_gone(visited)
        self._refresh_facts()
        self._fill_spaces()
        if reader := self.options.text_reader:
            before = texts.summary(self.index, 0).read
            for _ in texts.read_texts(self.index, reader, self.options.retry_failed, self.options.progress):
                self._refresh_facts()  # of a shard when its pictures are read, so that what is read is found early
            self.summary.texts = texts.summary(self.index, before)
        self._write_header(anyhow=True)  # who serves it looks at its date
        self.summary.notes += write_codes_of_spaces(self.gallery, self.options.codes, self.options.progress, look)
        self._fill_hashes(look)
        integrity.add_missing_digests(self.gallery)
        self.summary.notes += write_links(self.gallery, self.options.progress, look)
        self.summary.notes += segments.merge_many(self.gallery, self.index, self.options.progress)
        self.summary.notes += word_table.complete_if_room(self.gallery, self.options.progress, look)
        self._count(visited, known)
        return self.summary

    def _count(self, visited: Mapping[int, Root], known: set[Failure]) -> None:
        """What the gallery has now; `known` are the failures of earlier runs."""
        self.summary.pictures, self.summary.paths = self.index.counts()
        self.summary.failures = self.index.failures()
        self.summary.new_failures = len(set(self.summary.failures) - known)
        self.summary.found.pictures, self.summary.found.paths = self.index.counts_in(visited)
        self.summary.notes += self.summary.found.count_unknown(disk.shard_paths(self.gallery))
        self.summary.found.videos = video_counts(self.index.sql, visited)
        self.summary.found.failures = self.index.failed_files(visited)
        for encoder in self.encoders.values():
            self.summary.notes += encoder.notes if isinstance(encoder, EncoderWithNotes) else ()

    def _visit(self, roots: Sequence[Root]) -> dict[int, Root]:
        """Scan the roots that are there; those scanned, by number."""
        self.index.begin_visits()
        visited = {}
        for root in roots:
            if not is_there(root):
                advice = f"its pictures are kept; if you moved them, index the new place first; {self._without(root)}"
                tail = advice if root in self.index.roots().values() else "nothing to index there"
                self.summary.notes.append(f"{root.place} is missing or empty (an unplugged disk?); {tail}")
                continue
            number = self.index.add_root(root)
            root = visited[number] = self.index.roots()[number]
            self.options.progress(f"looking through {root.place}", 0, 0)
            comparison = self.index.visit(number, root, self.summary.found.skipped)
            self.summary.found.respelled += comparison.respelled
            self.summary.found.relabelled += comparison.relabelled
        for name, path in (respelled := self.summary.found.respelled)[:1]:
            matches = quantity(len(respelled), "label or sidecar matches", "labels and sidecars match")
            why = "by another spelling (accents, upper and lower case, a name cut short), such as"
            self.summary.notes.append(f"{matches} {why} {shown_name(name)} for {shown_name(path)}; --json lists them")
        return visited

    def _without(self, root: Root) -> str:
        """How a root is taken out of the gallery."""
        line = f"eyespot index --remove {quote(root.place)} -g {quote(str(self.gallery))}"
        return f"if {root.place} is gone for good, take it out with: {line}"

    def _note_moved(self, root: Root, moved: int, advice: str = "") -> None:
        if moved:
            note = f"the pictures of {quantity(moved, 'file')} that {root.place} had lie elsewhere (moved, or copies)"
            self.summary.notes.append(f"{note}; nothing is embedded again, and vectors, judgements, lists stay{advice}")

    def _forget_gone(self, visited: Mapping[int, Root]) -> None:
        """After embedding, when it is known which of the missing files have only moved."""
        for number, root in self.index.roots().items():
            if number not in visited and root.kind != "import" and not is_there(root):
                self._note_moved(root, self.index.seen_elsewhere(number), f"; {self._without(root)}")
        for number, root in visited.items():
            known, not_seen, lost = self.index.gone(number)
            self._note_moved(root, not_seen - lost)
            if not_seen and (self.options.forget or lost <= GONE_LIMIT * known):
                self.index.forget_gone(number)
                gone = quantity(lost, "picture is", "pictures are")
                self.summary.notes += [f"{gone} gone from {root.place}"] if lost else []
            elif not_seen:
                self.summary.found.away += not_seen
                gone = f"{lost} of {quantity(known, 'picture')} are gone from {root.place}"
                self.summary.notes.append(f"{gone}; they are kept until you run with --forget")

    def _write_header(self, *, anyhow: bool = False) -> None:
        """Put `gallery.toml` in place if it says something new, or anyhow."""
        before = disk.read_or_rebuild_header(self.gallery)
        spaces = before.spaces | {stem: encoder.space for stem, encoder in self.encoders.items()}
        # What is searched by default: the first space there was, in its encoder's present revision
        default, chosen = spaces.get(before.default), before.default
        if default is None:
            chosen = next(iter(self.encoders), "")
        elif default.revision != "imported":  # which no encoder installed here gives, and most pictures are there
            same = (stem for stem, encoder in self.encoders.items() if encoder.space.encoder == default.encoder)
            chosen = next(same, chosen)
        header = disk.Header(self.index.roots(), spaces, chosen, self.index.counts()[0])
        if anyhow or header != before:
            disk.write_header(self.gallery, header)

    # -- new and changed pictures ---------------------------------------------------------------------------

    def _embed_planned(self) -> None:
        roots = self.index.roots()
        # A planned picture whose root is away would only fail; the next look plans it again
        away = [(number,) for number in {root for _, root in self.index.planned()} if not is_there(roots[number])]
        self.index.sql.executemany("DELETE FROM plan WHERE root = ?", away)
        if not (plan := self.index.planned()):
            return
        for stem, encoder in self.encoders.items():  # what cannot be opened ends the run before a photo is read
            getattr(encoder, "check_texts", partial(encoder.caveat, "a photo"))()
            self.fingerprints[stem] = self.fingerprints.get(stem) or fingerprints(encoder)
        total, done = sum(plan.values()), 0
        planned = chain.from_iterable(map(self.index.plan_of, dict.fromkeys(shard for shard, _ in plan)))
        with self._reader(self.gallery, self.encoders, total) as reader:
            reads = reader.read_all(planned, roots)
            for shard, group in groupby(reads, key=lambda read: read.planned.shard):
                batches = {stem: Batches(stem, encoder, reader) for stem, encoder in self.encoders.items()}
                building = ShardInMaking(batches)
                for read in group:
                    building.add(read, self.index.is_known)
                    done += read.planned.seen.offset >= VIDEO  # frames are not files of the plan
                    self.options.progress("embedding", done, total)
                self._commit(shard, building)

    def _reader(self, gallery: Path | None, encoders: Mapping[str, Encoder], count: int) -> Reader:
        """What reads and embeds `count` pictures; those that a gallery knows already are not decoded."""
        if self.options.reader_factory:
            return self.options.reader_factory(encoders)
        from eyespot.photos.decode_processes import local_reader

        known = KnownPictures if gallery is None else partial(KnownInIndex, gallery)
        return local_reader(known, encoders, self.options.workers, count)

    def _commit(self, shard: int, building: ShardInMaking) -> None:
        vectors = {stem: batches.vectors() for stem, batches in building.batches.items()}
        self.summary.embedded += len(building.measured)
        with self.index.transaction():
            self.index.record(shard, building.outcomes, building.measured)
            self.index.measure(building.measured_again)
            final = disk.shard_path(self.gallery, shard)
            if not building.measured:
                for old in (final.with_name(f".{final.name}.part"), final):
                    shutil.rmtree(old, ignore_errors=True)  # of a killed run
                return
            with new_folder(final) as folder:
                self._write_items(folder, shard)
                write_hashes(folder, building.hashes)
                for stem, rows in vectors.items():
                    if not self._write_vectors(folder, stem, rows):
                        self.complete.add((stem, shard))

    def _write_items(self, folder: Path, shard: int) -> None:
        from eyespot.gallery.facts import table_of

        items_table.write_items(folder, table_of(self.index.rows_of(shard), self.index.columns()))
        self.words.write(folder)  # at once, so that no search has to read them

    def _write_vectors(self, folder: Path, stem: str, vectors: Vectors, dtype: str = "") -> list[int]:
        """Vectors of a shard; a row without a finite one is written as zeros, named in the note, and returned."""
        good: Mask = np.logical_and(np.isfinite(vectors).all(axis=1), vectors.any(axis=1))  # (rows,)
        vectors = np.where(good[:, None], vectors, np.float32(0))
        if stem not in self.dtypes:
            self.fingerprints[stem] = self.fingerprints.get(stem) or fingerprints(self.encoders[stem])
            kinds = (disk.dtype_of(one, stem) for one in reversed(disk.shard_paths(self.gallery)))  # imports aside
            self.dtypes[stem] = "float16" if self.options.half else next(filter(None, kinds), "float32")
        note = disk.SpaceNote(self.encoders[stem].space, np.flatnonzero(~good).tolist(), self.fingerprints[stem])
        disk.write_vectors(folder, vectors.astype(dtype or self.dtypes[stem]), note)
        return note.missing

    # -- facts and spaces of what is there already ----------------------------------------------------------

    def _must_read(self, folder: Path) -> bool:
        """Whether a glance is not enough: if all is to be repaired, and in a shard without digests."""
        return self.options.repair or not (folder / DIGESTS).exists()

    def _repair_facts(self) -> None:
        for shard, rows in self.index.shard_rows().items():
            folder = disk.shard_path(self.gallery, shard)
            if why := integrity.why_damaged(folder, "", rows, full=self._must_read(folder)):
                self.gone |= set() if folder.is_dir() else {shard}
                make_folder(folder)
                self._write_items(folder, shard)
                self.summary.notes.append(f"{folder} had lost its facts ({why}); they are written again")

    def _refresh_facts(self) -> None:
        for done, shard in enumerate(stale := self.index.stale_shards(), 1):
            folder = disk.shard_path(self.gallery, shard)
            if folder.is_dir():
                self._write_items(folder, shard)
            self.index.refreshed(shard)
            self.options.progress("refreshing facts", done, len(stale))

    def _fill_spaces(self) -> None:
        """Vectors that a space lacks: of older shards, of pictures out of reach when it was added, and damaged ones."""
        shards = self.index.shard_rows()
        lacking = [(stem, shard) for stem in self.encoders for shard in shards if (stem, shard) not in self.complete]
        for stem, shard in lacking:
            folder = disk.shard_path(self.gallery, shard)
            why = integrity.why_damaged(folder, stem, shards[shard], full=self._must_read(folder))
            note = None if why else disk.read_note(folder, stem)
            if note is None or note.missing:
                rows = list(self.index.rows_of(shard))
                if not why or self._can_repair(folder, rows, f"damaged vectors ({why})"):
                    self._fill(shard, stem, rows, note)

    def _fill_hashes(self, look: LookAtFiles) -> None:
        """Perceptual hashes that are damaged; a repair also makes those that an older eyespot did not."""
        for shard in self.index.shard_rows():
            folder = disk.shard_path(self.gallery, shard)
            if look(folder, [HASHES]) or (lacks_hashes(folder) and (self.options.repair or shard in self.gone)):
                rows = list(self.index.rows_of(shard))
                if self._can_repair(folder, rows, "no sound perceptual hashes"):
                    with self._reader(None, self.encoders, len(rows)) as reader:
                        write_hashes(folder, hashes_again(self.index, shard, rows, reader))

    def _can_repair(self, folder: Path, rows: Sequence[StoredRow], what: str) -> bool:
        """Whether no disk with pictures of the shard is away, for then it would lose some; notes say which."""
        roots = self.index.roots()
        there = {number for number, root in roots.items() if is_there(root)}
        away = next((roots[row.roots[0]].place for row in rows if row.roots and there.isdisjoint(row.roots)), None)
        tail = "its pictures are read again" if away is None else f"it is repaired when {away} is there again"
        self.summary.notes.append(f"{folder} has {what}; {tail}")
        return away is None

    def _fill(self, shard: int, stem: str, rows: Sequence[StoredRow], note: disk.SpaceNote | None) -> None:
        """Embed the rows without a vector, without a note all, from the first of their paths that holds the picture."""
        encoder, folder = self.encoders[stem], disk.shard_path(self.gallery, shard)
        lacking = [row for row in (note.missing if note else range(len(rows))) if rows[row].paths]
        vectors = np.zeros((len(rows), encoder.space.dim), np.float32)  # (rows, dim)
        if note is not None:
            vectors = np.array(disk.map_vectors(folder, stem))
        for start in range(0, len(lacking), _STRETCH):  # a kill in a segment costs a stretch of it
            row_of = {rows[row].id: row for row in lacking[start : start + _STRETCH]}
            places = [place for row in row_of.values() for place in zip(rows[row].roots, rows[row].paths, strict=True)]
            seen = [(root, self.index.known_file(root, path)) for root, path in places]
            planned = [PlannedPicture(shard, root, one) for root, one in seen if one]
            filled: list[int] = []
            with self._reader(None, {stem: encoder}, len(planned)) as reader:
                batches = Batches(stem, encoder, reader)
                for read in reader.read_all(planned, self.index.roots()):
                    self.options.progress(f"adding {encoder.space.encoder}", self.summary.embedded + len(filled), 0)
                    if (row := row_of.pop(read.id or "", None)) is not None:
                        filled.append(row)
                        batches.add(read.pixels[stem])
                vectors[filled] = batches.vectors()
            self.summary.embedded += len(filled)
            self._write_vectors(folder, stem, vectors, disk.dtype_of(folder, stem))
        if not lacking and note is None:
            self._write_vectors(folder, stem, vectors, disk.dtype_of(folder, stem))
