"""A learned re-ranker from a weights file: `onnx:ames.onnx`, a network of two pictures' local descriptors in ONNX.

Its inputs are `query` (1, n, dim) and `image` (1, m, dim), descriptors of unit length in float32, n and m free; and, if
it has them, `query_keypoints` (1, n, 2) and `image_keypoints` (1, m, 2), x and y in pixels. Its output is one number,
more for more alike. AMES (Suma et al., ECCV 2024) and its like are exported so with `torch.onnx.export`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyespot.search.local.spatial import unit
from eyespot.types import LocalFeatures, UsageError

FORM = "give one with the inputs query (1, n, dim) and image (1, m, dim) and one number as its output"
REQUIRED = {"query", "image"}
KEYPOINTS = {"query_keypoints", "image_keypoints"}


def load(place: str = "") -> OnnxRanker:
    """The network of a file; `UsageError` for a file that is none, or takes something else."""
    import onnxruntime

    path = Path(place).expanduser()
    if not place or not path.is_file():
        raise UsageError(f"there is no weights file {place!r}; name one, as in: --rerank-local onnx:ames.onnx")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no other base
        reason = " ".join(str(error).split())[:100]
        raise UsageError(f"{path} is not an ONNX file that can be read ({reason}); {FORM}") from None
    names = {one.name for one in session.get_inputs()}
    if not REQUIRED <= names <= REQUIRED | KEYPOINTS:
        raise UsageError(f"{path} takes {', '.join(sorted(names))}; {FORM}")
    return OnnxRanker(path, session, frozenset(names))


@dataclass(frozen=True)
class OnnxRanker:
    """A network that compares two pictures by what stands out in them."""

    path: Path
    session: Any
    inputs: frozenset[str]

    def score(self, query: LocalFeatures, image: LocalFeatures) -> float:
        """What the network says; `UsageError` if it does not take such descriptors, or says more than one number."""
        given = {"query": unit(query.descriptors)[None], "image": unit(image.descriptors)[None]}
        given |= {"query_keypoints": query.keypoints[None, :, :2], "image_keypoints": image.keypoints[None, :, :2]}
        try:
            found = self.session.run(None, {name: given[name].astype(np.float32) for name in self.inputs})
        except Exception as error:  # onnxruntime's errors share no other base
            reason = " ".join(str(error).split())[:160]
            raise UsageError(f"{self.path} does not take these descriptors ({reason}); {FORM}") from None
        if len(found) != 1 or np.size(found[0]) != 1:
            raise UsageError(
                f"{self.path} gives {len(found)} outputs, the first of {np.size(found[0])} numbers; {FORM}"
            )
        return float(np.reshape(found[0], ()))
