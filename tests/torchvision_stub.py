"""Lets tests import a torchvision whose compiled operators do not load, as its CUDA wheel's beside a CPU torch.

The libraries import torchvision for transforms written in Python; only the registration of its operators fails.
`install` waits for that import, so that tests without torch stay as light as they are.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

FORWARD = ["nms", "qnms", "roi_align", "qroi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"]
BACKWARD = [f"_{name}_backward" for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")]
_kept: list[Any] = []  # an operator library lives as long as its object


class Watcher:
    """Stands first in `sys.meta_path` until torchvision is imported."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            _complete_operators()


def install() -> None:
    """Register the missing operators as empty ones when torchvision is first imported."""
    if not any(isinstance(finder, Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, Watcher())


def _complete_operators() -> None:
    found = importlib.machinery.PathFinder.find_spec("torchvision")
    if found is None or found.origin is None or _loads(Path(found.origin).with_name("_C.so")):
        return
    import torch

    make: Any = torch.library.Library
    library = make("torchvision", "FRAGMENT")
    for name in [*FORWARD, *BACKWARD]:
        library.define(f"{name}(Tensor x) -> Tensor")
    _kept.append(library)


def _loads(extension: Path) -> bool:
    import torch

    operators: Any = torch.ops
    try:
        operators.load_library(str(extension))
    except OSError:
        return False
    return True
