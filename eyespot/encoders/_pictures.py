"""What all encoders share: pictures and texts in the forms that people have, and a line that says which it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.rooms import needs
from eyespot.types import Encoder, EyespotError, Pixels, Progress, UsageError, Vectors, kind_text, no_progress, refusing

if TYPE_CHECKING:
    from PIL.Image import Image


class PictureEncoder:
    """What an `eyespot.types.Encoder` builds on: `encode`, and what most of them have nothing to say to."""

    min_side: int | None = None

    def encode(self: Encoder, pictures: Any, *, errors: str = "raise", progress: Progress = no_progress) -> Vectors:
        """Pictures to unit vectors (n, dim), in their order, each upright and in RGB as the indexer reads it.

        A picture is a path, an open file, its bytes, a PIL image or an array (height, width, 3) of uint8; one alone
        gives one row. With `errors="nan"` one that cannot be read is a row of NaN, else `UsageError` names it.
        """
        if errors not in ("raise", "nan"):
            raise UsageError(f"errors is 'raise' or 'nan', not {kind_text(errors)}")
        one = isinstance(pictures, str | bytes | Path) or hasattr(pictures, "read") or hasattr(pictures, "convert")
        with refusing("pictures are a list of paths, open files, PIL images or arrays of uint8", pictures):
            given = [pictures] if one or getattr(pictures, "ndim", 4) < 4 else list(pictures)

        def read(picture: Any) -> Pixels | None:
            with suppress(*[UsageError] * (errors == "nan")):
                return self.read(upright_picture(picture, self.min_side))
            return None

        made = np.full((len(given), self.space.dim), np.nan, np.float32)
        with ThreadPoolExecutor() as threads:
            for start in range(0, len(given), self.batch):
                progress("encoding", start, len(given))
                found = list(enumerate(threads.map(read, given[start : start + self.batch]), start))
                if rows := [row for row, pixels in found if pixels is not None]:
                    made[rows] = self.encode_pixels(np.stack([pixels for _, pixels in found if pixels is not None]))
        progress("encoding", len(given), len(given))
        if errors == "raise" and (lost := np.flatnonzero(np.isnan(made).any(axis=1))).size:
            raise EyespotError(f"{self.space.encoder} gives picture {lost[0]} of the list no vector; take errors='nan'")
        return made

    def encode_images(self, *_pictures: Any, **_options: Any) -> None:
        """What other libraries call it: `UsageError` that names `encode`."""
        raise UsageError("pictures are embedded by encode([…]), words by encode_texts([…])")

    def tokens_in(self, text: str) -> int | None:
        """How many tokens it reads of a text; None where it has no tokenizer at hand."""
        return None

    def caveat(self, text: str) -> str | None:
        """None: nothing is known that such a model does not understand."""
        return None

    def check_texts(self: Encoder) -> None:
        """Embed a text; raises what a search would, before photos are embedded for nothing."""
        self.encode_texts(["a photo"])

    def weakest_match(self, text: str) -> float | None:
        """None: nobody calibrated it."""
        return None

    def __repr__(self: Encoder) -> str:
        device = getattr(getattr(self, "device", None), "torch", "cpu")
        return f"<encoder {self.space.encoder}: {self.space.dim} numbers a vector, on {device}, licence {self.licence}>"


def text_list(texts: str | Sequence[str]) -> list[str]:
    """Texts to encode, a single one as a list of one; `UsageError` for other values."""
    with refusing("texts are a str or a list of them", texts):
        found = [texts] if isinstance(texts, str) else list(texts)
    if strange := [text for text in found if not isinstance(text, str)]:
        raise UsageError(f"texts are a str or a list of them, not of {kind_text(strange[0])}")
    return found


def try_last_word(name: str, vocabulary: Mapping[str, int], encode: Callable[[int], object]) -> None:
    """Embed the number of a tokenizer's last word; `UsageError` where tokenizer and text half are not of one model."""
    last = max(vocabulary.values(), default=0)
    try:
        encode(last)
    except UsageError:
        raise
    except Exception as error:  # runtimes and libraries have errors of every kind
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        way_out = "take its tokenizer and its weights from one place"
        raise UsageError(f"{name} does not read word {last} of its own tokenizer ({why}); {way_out}") from error


def in_batches(encode: Callable[[Any], Vectors], given: Sequence[Any], size: int, dim: int) -> Vectors:
    """The vectors of what is given, (n, dim), `size` at a time."""
    some = (given[start : start + size] for start in range(0, len(given), size))
    return np.concatenate([np.zeros((0, dim), np.float32), *map(encode, some)])


def upright_picture(given: Any, min_side: int | None = None) -> Image:
    """A picture in any form that `PictureEncoder.encode` takes, upright in RGB; `UsageError` if it cannot be read."""
    from PIL import Image

    from eyespot.photos.colours import to_rgb
    from eyespot.photos.embedded_facts import Exif
    from eyespot.photos.pictures import BadPicture, open_picture
    from eyespot.photos.places import read_again

    if isinstance(given, np.ndarray):
        if given.dtype != np.uint8 or given.shape[2:] != (3,) or not given.size:
            shape = f"an array {given.shape} of {given.dtype}"
            raise UsageError(f"a picture is an array (height, width, 3) of uint8, not {shape}; scale it to 0 to 255")
        given = Image.fromarray(given)
    try:
        if isinstance(given, Image.Image):
            return Exif.of(given).upright(to_rgb(given.copy()))
        with needs(str(given)), refusing("a picture is a path, an open file, a PIL image or an array of uint8", given):
            data = given if isinstance(given, bytes) else given.read() if hasattr(given, "read") else None
            data = read_again(str(Path(given).expanduser())) if data is None else data  # also a frame of a video
            return open_picture(data, min_side).image
    except OSError as error:
        words = "; words are embedded by encode_texts" if isinstance(given, str) and not Path(given).suffix else ""
        raise UsageError(f"cannot read the picture {given}: {(error.strerror or str(error)).lower()}{words}") from error
    except BadPicture as bad:
        name = f"of {len(given)} bytes" if isinstance(given, bytes) else given
        raise UsageError(f"cannot read the picture {name}: {bad.reason}") from bad
