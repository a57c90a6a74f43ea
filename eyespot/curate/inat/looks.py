"""Pictures that are not photos of organisms, recognised by their pixels alone: spectrograms and empty pictures.

Both checks are rough, so a person decides. `docs/inat.md` says how often they are wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

_WIDE, _HIGH, _PARTS = 256, 96, 4
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

    grey = np.asarray(picture.convert("L").resize((_WIDE, _HIGH), Image.Resampling.BOX), np.float32)
    rows = np.median(grey.reshape(_HIGH, _PARTS, -1), axis=2).T  # (parts, rows)
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
