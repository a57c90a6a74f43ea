"""RapidOCR: the PP-OCR models of PaddleOCR on onnxruntime, for Latin, Chinese and Japanese writing and digits.

Its wheel carries the models (Apache-2.0), and nothing is fetched. Cui et al., PaddleOCR 3.0 (arXiv 2507.05595).
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.storage.systems import usable_cores
from eyespot.types import EyespotError, TextBox

if TYPE_CHECKING:
    from PIL.Image import Image

NEEDS = "the extra [ocr]; works offline"
SIDE = 1600  # pixels of the longer side; larger pictures are scaled down to it (docs/how/text.md has other sides)
_PARTS = {"Det": "det", "Cls": "cls", "Rec": "rec"}  # its models: where writing is, which way up, what it says


def load(threads: int = 0) -> RapidText:
    """The reader, on this number of threads (0: one per core); `EyespotError` if its package carries no models."""
    import rapidocr

    folder = Path(str(rapidocr.__file__)).with_name("models")
    # Named here, for it would download a model that it looks for itself and does not find
    models = {part: next(iter(sorted(folder.glob(f"*_{name}_*.onnx"))), None) for part, name in _PARTS.items()}
    if missing := [part for part, place in models.items() if place is None]:
        raise EyespotError(f"{folder} lacks the models of {', '.join(missing)}; install rapidocr again")
    settings: dict[str, Any] = {f"{part}.model_path": str(place) for part, place in models.items()}
    engine = "EngineConfig.onnxruntime"
    settings |= {f"{engine}.intra_op_num_threads": threads or usable_cores(), f"{engine}.inter_op_num_threads": 1}
    settings |= {"Global.log_level": "critical", "Global.max_side_len": SIDE}
    name = f"rapidocr {version('rapidocr')}, {Path(str(models['Rec'])).stem}"
    return RapidText(rapidocr.RapidOCR(params=settings), name)


class RapidText:
    """Lines of text as RapidOCR reads them, those that it is at least half sure of."""

    min_side: int | None = SIDE

    def __init__(self, engine: Any, name: str) -> None:
        self.engine, self.name = engine, name

    def read(self, picture: Image) -> list[TextBox]:
        """The lines with upright boxes around them."""
        bgr = np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])  # (height, width, 3)
        lines = self.engine(bgr)
        if lines.boxes is None:
            return []
        corners = np.asarray(lines.boxes, np.float64) / picture.size  # (lines, 4, 2)
        starts = np.clip(corners.min(axis=1), 0, 1)
        sides = np.clip(corners.max(axis=1), 0, 1) - starts
        return [
            TextBox(str(text), float(score), *start, *side)
            for text, score, start, side in zip(lines.txts, lines.scores, starts.tolist(), sides.tolist(), strict=True)
        ]
