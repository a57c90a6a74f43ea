"""The hours that `eyespot reproduce TABLE --check` states, against the time that encoders take.

Vision transformers of the published shapes with random weights, which take as long as trained ones, embed pictures of
noise in float32 (on a card in 16 bits). The estimate is operations over 0.9 of the rate of a product of matrices, timed
between any two of them. The ratio is how far off it is: the larger of estimate and truth over the smaller (goal: 1.25).

    python bench/hours.py [--quick] [--json]
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.harness import Command, Measurement, say
from eyespot.models.device import half, usable
from eyespot.reproduce.hours import SHARE, TransformerShape, measured_rate, shapes

SHAPES = ("clip-b-32", "clip-b-16", "clip-l-14", "clip-l-14-336", "siglip-b-16-512", "siglip-so400m-384")


class Transformer:
    """A vision transformer with random weights, out of torch's own layers; callable with pictures."""

    def __init__(self, shape: TransformerShape) -> None:
        import torch
        from torch import nn

        self.device = usable()
        self.type = torch.float32 if self.device.type == "cpu" else half(self.device)
        layer = nn.TransformerEncoderLayer(
            shape.width, shape.width // 64, shape.hidden, 0.0, "gelu", batch_first=True, norm_first=True
        )
        patches = nn.Conv2d(3, shape.width, shape.patch, shape.patch)
        layers = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
        self.patches, self.layers = (part.to(self.device, self.type).eval() for part in (patches, layers))
        count = max(4, 3136 * shape.patch**2 // shape.side**2)  # as many tokens as the timed product has rows
        self.pictures = torch.randn(count, 3, shape.side, shape.side, device=self.device, dtype=self.type)

    def seconds(self) -> float:
        """Of one picture."""
        import torch

        start = time.perf_counter()
        with torch.inference_mode():
            tokens = self.patches(self.pictures).flatten(2).transpose(1, 2)
            self.layers(tokens).sum().item()
        return (time.perf_counter() - start) / len(self.pictures)


def measurements(options: Namespace) -> Iterator[Measurement]:
    for name in SHAPES[:3] if options.quick else SHAPES:
        shape = shapes()[name]
        model, ratios = Transformer(shape), []
        model.seconds()
        for _ in range(options.rounds):
            estimate, truth = shape.operations / (SHARE * measured_rate().rate), model.seconds()
            ratios.append(estimate / truth)
        say(f"{name}: {shape.operations:.1e} operations, {truth:.3f} s a picture, estimate over truth {sorted(ratios)}")
        off: list[Any] = [max(ratio, 1 / ratio) for ratio in ratios]
        yield Measurement.from_trials(f"hours/{name}", off, "the time of the encoder", 1.25)


if __name__ == "__main__":
    command = Command(__doc__, quick="three small encoders")
    command.add_argument("--rounds", type=int, default=5, help="how often estimate and truth take turns")
    command.run(measurements)
