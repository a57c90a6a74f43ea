"""How a QuARI is trained: a start at the frozen space, the published recipes, the ablations of the paper's table 4."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from eyespot.adapters.quari.config import Config
from eyespot.types import UsageError

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
ACTIVATIONS = ("auto", "kept", "recomputed")
STARTS = ("random", "identity")
LOSSES = ("symmetric", "linear", "paired-maps")
NOISES = ("query", "component")
VALIDATIONS = 20  # that a training has at least, so that it can stop early however few its steps


@dataclass(frozen=True)
class TrainingSettings:
    """A recipe; the defaults are those of the authors' code.

    batch: pairs that are each other's negatives. accumulate: batches whose gradients are added up for one step.
    rate: the schedule's highest learning rate; None takes the schedule's own.
    start: "identity" is the frozen space, "random" as published. loss: "symmetric" is the paper's; "linear" has the
        image-to-query term of the released code; "paired-maps" is that of the public code of May 2025.
    noise: λ of q + λ·u·ε. noise_per: one u for each "query", or for each "component" of it. semi_positives: how many of
        those mined are used. token_drop: the chance that a refinement step sets a token to zero. clip: the longest
        gradient; 0 clips none.
    validate_every: batches between validations, fewer in a short training, which has 20. patience: so many epochs
        in which every validation is below the best by more than the standard error of the difference end the training,
        once the learning rate has fallen to half; 0 never does. checkpoint_every: steps.
    keep_anyway: name the model also if it was not shown to be better than the frozen space.
    device: "auto", "cpu", "cuda", "cuda:1". precision: "auto" is bfloat16 on an accelerator, else float32.
    activations: "recomputed" in the backward pass or "kept"; "auto" recomputes what is too much to store.
    """

    batch: int = 320
    epochs: int = 10
    accumulate: int = 2
    start: str = "random"
    loss: str = "symmetric"
    schedule: str = "one-cycle"
    rate: float | None = None
    weight_decay: float = 1e-2
    temperature: float = 0.07
    noise: float = 1.0
    noise_per: str = "query"
    semi_positives: int = 2
    token_drop: float = 0.05
    clip: float = 1.0
    validate_every: int = 500
    patience: float = 5
    checkpoint_every: int = 500
    seed: int = 0
    device: str = "auto"
    precision: str = "auto"
    activations: str = "auto"
    keep_anyway: bool = False

    def __post_init__(self) -> None:
        least = {"batch": 2, "epochs": 1, "accumulate": 1, "validate_every": 1, "checkpoint_every": 1}
        least |= dict.fromkeys(("semi_positives", "patience", "seed", "noise", "weight_decay", "clip"), 0)
        for name, low in least.items():
            if not getattr(self, name) >= low:
                raise UsageError(f"{name} of a training is {low} or more, not {getattr(self, name)}")
        if not self.temperature > 0 or not (self.rate is None or self.rate > 0):
            raise UsageError("temperature and learning rate of a training are above 0")
        if not 0 <= self.token_drop < 1:
            raise UsageError(f"token_drop is a chance below 1, not {self.token_drop}")
        choices = {"schedule": tuple(SCHEDULES), "precision": PRECISIONS, "activations": ACTIVATIONS}
        choices |= {"start": STARTS, "loss": LOSSES, "noise_per": NOISES}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise UsageError(f"no {name} {getattr(self, name)!r}; there are: {', '.join(known)}")

    def validation_steps(self, total: int) -> int:
        """How many of all steps lie between two validations."""
        return max(1, min(self.validate_every // self.accumulate, total // VALIDATIONS))


# -- learning rates as a share of the highest: by step, of so many in all and an epoch, so there is no state to keep --


def one_cycle(step: int, total: int, _per_epoch: int) -> float:
    """From 1/25 up to 1 in the first hundredth of the training, then down to 1/500, both along a cosine.

    The authors' code: 2e-5, 5e-4 and 1e-6, at the steps of torch's OneCycleLR.
    """
    return _cycle(step, total, (1 / 25, 1.0, 1 / 500))


def cycled_beta(step: int, total: int, _per_epoch: int) -> float:
    """AdamW's β₁ in a one-cycle, which torch's OneCycleLR turns the other way round by default: .95, .85, .95."""
    return _cycle(step, total, (0.95, 0.85, 0.95))


def cosine(step: int, _total: int, per_epoch: int) -> float:
    """From 1 to 1/50 and back along a cosine, over and over (QuARI, section 3.3: 1e-5 and 2e-7).

    The paper does not say how long a cycle is; here it goes down in one epoch and up in the next.
    """
    return 1 / 50 + (1 - 1 / 50) * (1 + math.cos(math.pi * step / max(1, per_epoch))) / 2


def _cycle(step: int, total: int, ends: tuple[float, float, float]) -> float:
    first, peak, last = ends
    top = 0.01 * total - 1  # torch counts the peak from 0, and between steps where the hundredth is not a whole step
    if step <= top:
        start, end, done = first, peak, step / top if top else 1.0
    else:
        start, end, done = peak, last, min(1.0, (step - top) / (total - 1 - top))
    return end + (start - end) * (1 + math.cos(math.pi * done)) / 2


Course: TypeAlias = Callable[[int, int, int], float]
SCHEDULES: dict[str, tuple[Course, float, Course | None]] = {
    "one-cycle": (one_cycle, 5e-4, cycled_beta),
    "cosine": (cosine, 1e-5, None),
}
"""A course, its published highest rate, and the course of AdamW's β₁ (None: it stays at .9)."""


# -- presets ---------------------------------------------------------------------------------------------------

# The first is for training on one's own photos; its noise is a fraction of a unit query, where the published noise is
# some ten times as long as one. The paper names optimiser, rates, batch and temperature; of clipping, accumulation and
# dropped tokens it says nothing.
PRESETS = {
    "identity": TrainingSettings(start="identity", batch=128, accumulate=1, rate=1e-4, noise=0.02, token_drop=0.0),
    "released": TrainingSettings(),
    "paper": TrainingSettings(accumulate=1, schedule="cosine", token_drop=0.0, clip=0.0),
    "arxiv-2025-05": TrainingSettings(loss="paired-maps", noise_per="component", semi_positives=0, token_drop=0.0),
}
# What the config of each preset says beside sizes
FORMS: dict[str, dict[str, Any]] = {
    "identity": {"use_fro_norm": False},
    "released": {},
    "paper": {"preset": "paper"},
    "arxiv-2025-05": {"preset": "arxiv-2025-05"},
}
ABLATIONS = ("one-step", "no-semi-positives", "no-noise")

# Some hundred pairs on a processor need less than millions on a card; the defaults of `Config` are published.
SIZES: dict[str, dict[str, int]] = {
    "identity": {"low_rank_dim": 16, "hidden_dim": 128, "num_steps": 2, "nhead": 4, "num_layers": 2}
}


def preset(name: str) -> tuple[TrainingSettings, dict[str, Any]]:
    """The recipe of a preset, and what its config says beside sizes; `UsageError` for an unknown name."""
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name], FORMS[name]


def ablated(config: Config, settings: TrainingSettings, ablation: str) -> tuple[Config, TrainingSettings]:
    """Shape and recipe without one component: iterative generation, semi-positives, noise (QuARI, table 4)."""
    if ablation not in ABLATIONS:
        raise UsageError(f"no ablation {ablation!r}; there are: {', '.join(ABLATIONS)}")
    if ablation == "one-step":
        return replace(config, num_steps=1), settings
    return config, replace(settings, **{"semi_positives": 0} if ablation == "no-semi-positives" else {"noise": 0.0})
