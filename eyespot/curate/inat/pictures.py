"""Pictures of a drawn list: decoded, looked at, made small and put into the collection, a piece of the list at a time.

A piece is written as a table once all its pictures are in place; killed at any moment, the next run goes on with the
piece that is missing. What the checks find waits for a person: `eyespot build review`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.curate.inat.faces import Faces
from eyespot.curate.inat.listed import PHOTOS, listed
from eyespot.curate.inat.looks import empty, spectrogram
from eyespot.curate.inat.naming import find, places_of
from eyespot.curate.inat.settings import PictureSettings
from eyespot.gallery.photos.pictures import BadPicture, open_picture
from eyespot.gallery.photos.sources import read_again
from eyespot.pipelines.human_review import AWAITS, DROPPED, Case, Queue, write_queue
from eyespot.storage.atomic import put_file
from eyespot.storage.files import write_whole

if TYPE_CHECKING:
    from PIL.Image import Image

Row = Mapping[str, Any]
PIECE = 256
_VERSION = 2  # of how photos are found at hand: pieces of another one are looked at again
NOT_THERE, BAD, FLAGGED = "a photo that is not at hand", "a file that does not decode", "flagged by annotators"
REVIEW = "review.jsonl"
_PIECE = ("file", "photo", "named", "found", "state", "reason", "why", "seen", "width", "height")


@dataclass(frozen=True)
class Looks:
    """What becomes of each picture; `out` is the collection."""

    how: PictureSettings
    out: Path
    work: Path

    def all(self, rows: Iterable[Row], threads: int, tell: Callable[[int], None]) -> InspectedPictures:
        """Look at every row (photo, file, target_file): what is found of each, in order, is read back from the disk."""
        pieces = 0
        with ThreadPoolExecutor(threads) as pool:
            for number, piece in enumerate(_pieces(rows, PIECE)):
                self._piece(number, piece, pool)
                pieces += 1
                tell(number * PIECE + len(piece))
        return InspectedPictures(self.work, pieces)

    def _piece(self, number: int, rows: Sequence[Row], pool: ThreadPoolExecutor) -> None:
        """Look at a piece unless that is done; what was missing or bad, or has changed, is looked at again."""
        path = _place(self.work, number)
        files = [row["target_file"] for row in rows]
        # The rows of a finished piece, if it is of these files
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            known_rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
        except (OSError, pa.ArrowException):
            before = None
        else:
            before = known_rows if [row.get("file") for row in known_rows] == list(files) else None
        fresh = {one["file"]: one for one in before or () if not _is_stale(one)}
        if len(fresh) < len(rows):
            piece_rows = list(pool.map(lambda row: fresh.get(row["target_file"]) or self.look(row), rows))
            import pyarrow as pa
            import pyarrow.parquet as pq

            kinds = {name: pa.int32() if name in ("width", "height") else pa.string() for name in _PIECE}
            schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
            temporary = path.with_name(f".{path.name}.part")
            pq.write_table(pa.Table.from_pylist(list(piece_rows), schema), temporary)
            put_file(temporary, path)

    def look(self, row: Row) -> dict[str, Any]:
        """One picture: its size in the collection, or why it has no place there yet."""
        told = dict.fromkeys(_PIECE) | {"file": row["target_file"], "photo": row["photo"], "named": row["file"]}
        assert self.how.folder is not None
        place = find(self.how.folder, places_of(row["file"] or "", row["photo"], row["ambiguous"]))
        if place is None:
            return told | {"reason": NOT_THERE}
        told["found"] = str(place)
        try:
            told["state"] = _state(place)
            data = read_again(str(place))
            image = open_picture(data, self.how.side).image
        except (BadPicture, OSError) as error:
            return told | {"reason": BAD, "why": str(error)}
        # What a person should look at, or None
        if "empty" in self.how.checks and empty(image):
            why = "empty"
        elif self._faces is not None and (score := self._faces(image)) >= self.how.face:
            why = f"face {score:.2f}"
        elif "spectrogram" in self.how.checks and (score := spectrogram(image)) >= 0.5:
            why = f"spectrogram {score:.2f}"
        else:
            why = None
        if why is not None:
            return told | {"why": why, "seen": hashlib.sha256(data).hexdigest()}
        width, height = self.put(image, row["target_file"])
        return told | {"width": width, "height": height}

    @cached_property
    def _faces(self) -> Faces | None:
        return Faces() if "face" in self.how.checks else None

    def put(self, image: Image, file: str) -> tuple[int, int]:
        """Make it small and put it in place, as RGB and without any metadata; its size."""
        from PIL import Image as images

        image = image.copy()
        image.thumbnail((self.how.side, self.how.side), images.Resampling.LANCZOS)
        jpeg = BytesIO()
        image.save(jpeg, "JPEG", quality=90)
        (self.out / file).parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.out / file, lambda target: target.write(jpeg.getvalue()))
        return image.size

    # -- a person's word ----------------------------------------------------------------------------------------

    def judged(self, found: InspectedPictures) -> Iterator[dict[str, Any]]:
        """The same with what people decided: a queue is written of all that is in doubt, and what stands is done."""
        queue = self.out / REVIEW
        doubtful = (one for one in found if one["why"] and one["reason"] is None)
        write_queue(queue, map(_case, doubtful))
        chosen = {id: decision.choice for id, decision in Queue(queue).standing().items()}
        flagged = {name.casefold() for name in flagged_photos(self.how)}
        yield from (self._settled(one, chosen, flagged) for one in found)

    def _settled(self, one: dict[str, Any], chosen: Mapping[str, str], flagged: set[str]) -> dict[str, Any]:
        reason = _verdict(one, chosen, flagged)
        if reason is not None:
            (self.out / one["file"]).unlink(missing_ok=True)
            return one | {"reason": reason}
        if (self.out / one["file"]).is_file() and one["width"] is not None:
            return one
        return self._put_late(one)

    def _put_late(self, one: dict[str, Any]) -> dict[str, Any]:
        """A picture that was accepted, or has come back into the list; its photo may have been taken away by now."""
        there, gone = self.out / one["file"], not Path(one["found"]).is_file()
        kept = gone and there.is_file()  # accepted and put in place by an earlier run
        try:
            image = open_picture(read_again(str(there) if kept else one["found"]), self.how.side).image
        except (BadPicture, OSError) as error:
            there.unlink(missing_ok=True)
            return one | {"reason": NOT_THERE if gone else BAD, "why": str(error)}
        width, height = image.size if kept else self.put(image, one["file"])
        return one | {"width": width, "height": height}


def _case(one: Mapping[str, Any]) -> Case:
    """What is asked about a picture; the answer holds wherever the photo lies, and for this photo only."""
    return Case(one["photo"], one["why"], (one["found"],), shown=(one["photo"], one["seen"]))


def _verdict(one: Mapping[str, Any], chosen: Mapping[str, str], flagged: set[str]) -> str | None:
    """Why a picture has no place in the collection, or None."""
    if flagged & _names(one):
        return str(one["reason"] or FLAGGED)
    if one["reason"] is not None or one["why"] is None:
        return one["reason"]  # type: ignore[no-any-return]
    choice = chosen.get(one["photo"])
    if choice == "accept":
        return None
    return f"{AWAITS}: {one['why'].split()[0]}" if choice is None else DROPPED


def flagged_photos(how: PictureSettings) -> set[str]:
    """Photos that annotators flagged, by id or file name; `UsageError` for a list that names none."""
    return listed(how.flagged, PHOTOS) if how.flagged else set()


def _names(one: Mapping[str, Any]) -> set[str]:
    """What a list may call a picture, without case: its photo, that one's file and number, its file here."""
    named = one["named"] or ""
    return {name.casefold() for name in (one["photo"], named, named.rpartition(".")[0], one["file"]) if name}


# -- pieces -----------------------------------------------------------------------------------------------------


def digest_folder(work: Path, how: PictureSettings) -> Path:
    """Where the pieces of these settings lie."""
    from eyespot.pipelines.step import digest_of_json

    told = {"checks": sorted(how.checks), "side": how.side, "face": how.face, "folder": str(how.folder)}
    folder = work / f"pictures-{digest_of_json([told, _PIECE, _VERSION])[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pieces(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    piece: list[Row] = []
    for row in rows:
        piece.append(row)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece


@dataclass(frozen=True)
class InspectedPictures:
    """What was found of pictures, read from their pieces as often as it is iterated."""

    work: Path
    pieces: int

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet as pq

        for number in range(self.pieces):
            yield from pq.ParquetFile(_place(self.work, number)).read().to_pylist()


def _is_stale(one: Mapping[str, Any]) -> bool:
    """Whether a photo was missing or bad, or is another file since; one that was taken away is not missed."""
    if one["reason"] in (NOT_THERE, BAD):
        return True
    try:
        return bool(_state(Path(one["found"])) != one["state"])
    except OSError:
        return False


def _state(place: Path) -> str:
    status = place.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _place(work: Path, number: int) -> Path:
    return work / f"{number:06d}.parquet"
