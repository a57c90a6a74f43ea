"""A gallery's files, one at a time: opened or with the reason why not, and one writer at a time."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from eyespot.photos.found import reason
from eyespot.storage import systems
from eyespot.types import EyespotError

FETCHED = ".fetched.json"  # in a local copy of a published gallery: which content each of its files has
SPARE, _LEAST = 256, 32  # files that a process should be able to open besides those of a gallery, and must


class Damaged(EyespotError):
    """A file of the gallery is missing, cut, changed or of another kind; the message says the way out.

    reason: in a few words, what is wrong with it. name: of the file.
    """

    def __init__(self, place: Path, reason: str, way_out: str) -> None:
        super().__init__(f"{place} is missing or damaged ({reason}); {way_out}")
        self.reason, self.name = reason, place.name


def refuse_damaged(folder: Path, damaged: Mapping[str, str], way_out: Callable[[Path], str]) -> None:
    """`Damaged` for the first of these files of a folder, where there is any; their names and what is wrong."""
    for name, problem in sorted(damaged.items()):
        raise Damaged(folder / name, problem, way_out(folder))


@contextmanager
def whole(place: Path, way_out: str | Callable[[], str]) -> Iterator[Path]:
    """`Damaged` for a file that is missing, cut or of another kind, other `EyespotError`s where it cannot be opened."""
    try:
        yield place
    except (EyespotError, MemoryError):
        raise
    except PermissionError as error:
        raise EyespotError(f"{place} may not be read; give yourself the right to read the gallery") from error
    except Exception as error:  # a cut file can end in nearly any of Python's own errors
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            many = "too many files are open; raise the limit with ulimit -n"
            raise EyespotError(f"{place} cannot be opened: {many}") from error
        raise Damaged(place, why(error), way_out if isinstance(way_out, str) else way_out()) from error


def why(error: Exception) -> str:
    """In a few words, what is wrong with a file."""
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    text = reason(error) if isinstance(error, OSError) else str(error)
    return (text.splitlines() or [type(error).__name__])[0]


def map_array(path: Path, kinds: str = "f") -> Any:
    """Somebody's `.npy` file, memory-mapped, (rows, dim), of any kind of float; `EyespotError` if it is not that.

    kinds: of numbers that are taken, as numpy's dtypes have them; "fiu" are floats and integers. Of an HDF5 file
    the features: mapped too, or a dataset to read in pieces.
    """
    if path.suffix.lower() in (".hdf5", ".h5"):
        from eyespot.gallery.hdf5 import features

        return features(path)
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise EyespotError(f"{path} is gone (an unplugged disk?); put it back or import into a new gallery") from None
    except Exception as error:  # a hostile header can end in nearly any of Python's own errors
        why = f"is not an .npy file of numbers ({error}); save the vectors with numpy.save"
        raise EyespotError(f"{path} {why}") from error
    if array.ndim != 2 or array.dtype.kind not in kinds or not array.size:
        raise EyespotError(
            f"{path} holds {array.dtype} of shape {array.shape}, not rows of float vectors; save it as (rows, dim)"
        )
    return array


def let_open(files: int) -> bool:
    """Let this process map so many more files, each of which counts as open; False if the system allows fewer.

    The usual limit is 1024, which a program may raise; ten million pictures are more files.
    """
    return systems.allow_open_files(files, SPARE, _LEAST)


def need_open(files: int) -> None:
    """The same; `EyespotError` if the system allows fewer."""
    if not let_open(files):
        raise EyespotError(f"{files} files of vectors are more than a program may open; raise the limit with ulimit -n")


def way_out(shard: Path) -> str:
    """What to do about a damaged file of a shard."""
    gallery = shard.parent.parent
    if (gallery / FETCHED).is_file():
        return f"delete {shard} and search again, which fetches it anew"
    if is_imported(shard):
        return "put it back from a copy, or import the vectors into a new gallery with -g"
    return f"repair it with: eyespot index --repair -g {quote(str(gallery))}"


def is_imported(shard: Path) -> bool:
    """Whether others computed a shard's vectors, as far as a note says it."""
    marks = (b'revision = "imported"', b"fingerprints = []")  # what came home in an export has none
    return any(mark in note.read_bytes() for note in shard.glob("*.toml") for mark in marks)
