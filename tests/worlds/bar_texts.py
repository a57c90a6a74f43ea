"""A reader of text in pictures that needs no model: words as bars, eight for each letter, in rows of a picture."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from eyespot.types import TextBox

BAR, ROW, LONGEST = 4, 20, 16  # pixels of a bar and of a row; letters of a word


def draw_bars(place: Path, *words: str, seed: int = 0) -> Path:
    """A picture with a word in each row; rows of other colours tell pictures without words apart."""
    pixels = np.full((max(len(words), 1) * ROW + ROW, LONGEST * 8 * BAR, 3), 128, np.uint8)
    pixels[-ROW:] = np.random.default_rng(seed).integers(64, 192, 3)
    for row, word in enumerate(words):
        bits = np.unpackbits(np.frombuffer(word.encode("ascii"), np.uint8))  # (letters * 8,)
        bars = np.repeat(255 * bits, BAR)
        pixels[row * ROW : row * ROW + ROW - 4, : len(bars)] = bars[None, :, None]
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(place)
    return place


@dataclass
class BarReader:
    """Reads what `draw_bars` draws, and counts the pictures it sees; a word of only `!` breaks it."""

    name: str = "bars 1"
    min_side: int | None = None
    seconds: float = 0.0
    seen: list[str] = field(default_factory=list)

    def read(self, picture: Image.Image) -> list[TextBox]:
        time.sleep(self.seconds)
        values = np.asarray(picture.convert("L"))
        height, width = values.shape
        boxes = []
        for top in range(0, height - ROW, ROW):
            bars = values[top + ROW // 4, BAR // 2 :: BAR]
            known = (bars < 8) | (bars > 247)
            letters = (len(bars) if known.all() else int(np.argmin(known))) // 8
            word = np.packbits(bars[: letters * 8] > 128).tobytes().decode("ascii")
            if word and set(word) == {"!"}:
                raise ValueError("the bars are torn")
            if word:
                size = letters * 8 * BAR / width, (ROW - 4) / height
                boxes.append(TextBox(word, 0.9, 0.0, top / height, *size))
        self.seen.append(" ".join(box.text for box in boxes))
        return boxes[::-1]  # as engines may: in no order
