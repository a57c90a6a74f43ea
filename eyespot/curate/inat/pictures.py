"""Pictures of a drawn list: decoded, checked, made small and put into the collection, a piece of the list at a time.

A piece is written as a table once all its pictures are in place. After a kill the next run continues with the first
missing piece. What the checks find waits for a person: `eyespot build review`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.curate.inat.detectors import Faces, empty, spectrogram
from eyespot.curate.inat.naming import CollectionSpecies, file_name, find, places_of, species_of
from eyespot.curate.inat.settings import PHOTOS, CollectionSettings, PictureSettings, listed
from eyespot.curate.inat.steps import ALIGNED
from eyespot.curate.inat.tables import DROPPED_ROWS, KEPT_ROWS, folder_of
from eyespot.curate.set_folder import TEXT, WHOLE, new_table
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again
from eyespot.pipelines import Context, Records, SqlStep, Step
from eyespot.pipelines.human_review import AWAITS, DROPPED, Case, Queue, write_queue
from eyespot.storage.atomic import make_folder, write_whole

if TYPE_CHECKING:
    from PIL.Image import Image

Row = Mapping[str, Any]
PIECE = 256
_VERSION = 2  # of how photos are found: pieces of another version are checked again
NOT_THERE, BAD, FLAGGED = "a photo that is not at hand", "a file that does not decode", "flagged by annotators"
REVIEW = "review.jsonl"
_PIECE = ("file", "photo", "named", "found", "state", "reason", "why", "seen", "width", "height")


@dataclass(frozen=True)
class PictureChecks:
    """Checks pictures and puts them in place; `out` is the collection."""

    how: PictureSettings
    out: Path
    work: Path

    def all(self, rows: Iterable[Row], threads: int, tell: Callable[[int], None]) -> int:
        """Check every row (photo, file, target_file); how many pieces the results are in."""
        pieces, waiting = 0, iter(rows)
        with ThreadPoolExecutor(threads) as pool:
            while piece := list(islice(waiting, PIECE)):
                self._piece(_place(self.work, pieces), piece, pool)
                tell(pieces * PIECE + len(piece))
                pieces += 1
        return pieces

    def _piece(self, path: Path, rows: Sequence[Row], pool: ThreadPoolExecutor) -> None:
        """Check a piece unless that is done; what was missing or bad, or has changed, is checked again."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            known: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
        except (OSError, pa.ArrowException):
            known = []
        if [row.get("file") for row in known] != [row["target_file"] for row in rows]:  # of an earlier list
            known = []
        fresh = {row["file"]: row for row in known if not _is_stale(row)}
        if len(fresh) < len(rows):
            checked = list(pool.map(lambda row: fresh.get(row["target_file"]) or self.check(row), rows))
            schema = pa.schema([(name, pa.int32() if name in ("width", "height") else pa.string()) for name in _PIECE])
            table = pa.Table.from_pylist(checked, schema)
            write_whole(path, lambda file: pq.write_table(table, file))

    def check(self, row: Row) -> dict[str, Any]:
        """Check a picture: its size in the collection, or why it is not there yet."""
        result = dict.fromkeys(_PIECE) | {"file": row["target_file"], "photo": row["photo"], "named": row["file"]}
        assert self.how.folder is not None
        place = find(self.how.folder, places_of(row["file"] or "", row["photo"], row["ambiguous"]))
        if place is None:
            return result | {"reason": NOT_THERE}
        result["found"] = str(place)
        try:
            result["state"] = _state(place)
            data = read_again(str(place))
            image = open_picture(data, self.how.side).image
        except (BadPicture, OSError) as error:
            return result | {"reason": BAD, "why": str(error)}
        if doubt := self._doubt(image):
            return result | {"why": doubt, "seen": hashlib.sha256(data).hexdigest()}
        width, height = self.put(image, row["target_file"])
        return result | {"width": width, "height": height}

    def _doubt(self, image: Image) -> str:
        """What a person should check, or ""."""
        if "empty" in self.how.checks and empty(image):
            return "empty"
        if self._faces is not None and (score := self._faces(image)) >= self.how.face:
            return f"face {score:.2f}"
        if "spectrogram" in self.how.checks and (score := spectrogram(image)) >= 0.5:
            return f"spectrogram {score:.2f}"
        return ""

    @cached_property
    def _faces(self) -> Faces | None:
        return Faces() if "face" in self.how.checks else None

    def put(self, image: Image, file: str) -> tuple[int, int]:
        """Make a picture small and put it in place, as RGB without metadata; its size."""
        from PIL import Image as images

        image = image.copy()
        image.thumbnail((self.how.side, self.how.side), images.Resampling.LANCZOS)
        jpeg = BytesIO()
        image.save(jpeg, "JPEG", quality=90)
        make_folder((self.out / file).parent)
        write_whole(self.out / file, lambda target: target.write(jpeg.getvalue()))
        return image.size

    # -- decisions of people ------------------------------------------------------------------------------------

    def judged(self, pieces: int) -> Iterator[dict[str, Any]]:
        """The results with people's decisions: writes a queue of all in doubt, and applies what was decided."""
        # A decision holds wherever the photo lies, and for this photo only
        cases = (
            Case(row["photo"], row["why"], (row["found"],), shown=(row["photo"], row["seen"]))
            for row in results_of(self.work, pieces)
            if row["why"] and row["reason"] is None
        )
        queue = self.out / REVIEW
        write_queue(queue, cases)
        chosen = {id: decision.choice for id, decision in Queue(queue).standing().items()}
        flagged = {name.casefold() for name in flagged_photos(self.how)}
        for row in results_of(self.work, pieces):
            reason = _reason(row, chosen, flagged)
            if reason is not None:
                (self.out / row["file"]).unlink(missing_ok=True)
                yield row | {"reason": reason}
            elif (self.out / row["file"]).is_file() and row["width"] is not None:
                yield row
            else:
                yield self._put_late(row)

    def _put_late(self, row: dict[str, Any]) -> dict[str, Any]:
        """Put a picture in place that was accepted, or has come back into the list; its photo may be gone by now."""
        target, gone = self.out / row["file"], not Path(row["found"]).is_file()
        is_put = gone and target.is_file()  # accepted and put in place by an earlier run
        try:
            image = open_picture(read_again(str(target) if is_put else row["found"]), self.how.side).image
        except (BadPicture, OSError) as error:
            target.unlink(missing_ok=True)
            return row | {"reason": NOT_THERE if gone else BAD, "why": str(error)}
        width, height = image.size if is_put else self.put(image, row["file"])
        return row | {"width": width, "height": height}


def _reason(row: Mapping[str, Any], chosen: Mapping[str, str], flagged: set[str]) -> str | None:
    """Why a picture is not part of the collection, or None."""
    # A list may name its photo, the photo's file with or without its ending, or its file here
    file = row["named"] or ""
    names = {name.casefold() for name in (row["photo"], file, file.rpartition(".")[0], row["file"]) if name}
    reason: str | None = row["reason"]
    if flagged & names:
        return reason or FLAGGED
    if reason is not None or row["why"] is None:
        return reason
    choice = chosen.get(row["photo"])
    if choice == "accept":
        return None
    return f"{AWAITS}: {row['why'].split()[0]}" if choice is None else DROPPED


def flagged_photos(how: PictureSettings) -> set[str]:
    """Photos that annotators flagged, by id or file name; `UsageError` for a list that names none."""
    return listed(how.flagged, PHOTOS) if how.flagged else set()


# -- pieces -----------------------------------------------------------------------------------------------------


def digest_folder(work: Path, how: PictureSettings) -> Path:
    """The folder of the pieces of these settings."""
    from eyespot.pipelines.step import digest_of_json

    settings = {"checks": sorted(how.checks), "side": how.side, "face": how.face, "folder": str(how.folder)}
    folder = work / f"pictures-{digest_of_json([settings, _PIECE, _VERSION])[:12]}"
    make_folder(folder)
    return folder


def results_of(work: Path, pieces: int) -> Iterator[dict[str, Any]]:
    """The results of the checks, read from their pieces."""
    for number in range(pieces):
        yield from read_rows(_place(work, number))


def _is_stale(row: Mapping[str, Any]) -> bool:
    """Whether a photo was missing or bad, or is another file since; a photo that was removed is not stale."""
    if row["reason"] in (NOT_THERE, BAD):
        return True
    try:
        return bool(_state(Path(row["found"])) != row["state"])
    except OSError:
        return False


def _state(place: Path) -> str:
    status = place.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _place(work: Path, number: int) -> Path:
    return work / f"{number:06d}.parquet"


PICTURES = "pictures"
WORK, TABLES = ".work", "tables"
_SIZES = {"number": WHOLE, "width": "int32", "height": "int32"}
_REASONS = {"number": WHOLE, "reason": TEXT}
ABOUT = "Pictures are decoded and checked; doubtful ones wait for a person. They are made small, without metadata."


def picture_step(out: Path, settings: CollectionSettings) -> Step:
    """The step that checks the pictures of the drawn rows; it runs every time, as photos and decisions change."""
    how = settings.pictures

    def work(records: Records, folder: Path, context: Context) -> int:
        species = species_of(folder_of(context.earlier[ALIGNED]), settings.positions)
        checks = PictureChecks(how, out, digest_folder(out / WORK, how))
        rows, total = drawn_rows(folder_of(records), species), len(records)
        pieces = checks.all(rows, settings.threads, lambda done: context.tell(PICTURES, done, total))
        with new_table(folder / KEPT_ROWS, _SIZES) as keep, new_table(folder / DROPPED_ROWS, _REASONS) as drop:
            for number, outcome in enumerate(checks.judged(pieces)):
                add, names = (keep, _SIZES) if outcome["reason"] is None else (drop, _REASONS)
                add({**{name: outcome.get(name) for name in names}, "number": number})
        return 0

    fields = {"checks": how.checks, "side": how.side, "face": how.face}
    return Step(PICTURES, SqlStep(work, "number"), settings=fields, needs=(ALIGNED,), about=ABOUT, always=True)


def drawn_rows(listed: Path, species: Sequence[CollectionSpecies]) -> Iterator[dict[str, Any]]:
    """The drawn rows in order, each with its place in the collection."""
    for row in read_rows(listed / KEPT_ROWS):
        row["target_file"] = file_name(row["photo"], species[row["target"]].folder)
        yield row


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file, a few thousand at a time in memory."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(1 << 13):
            yield from batch.to_pylist()
