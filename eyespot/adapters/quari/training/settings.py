"""How a QuARI is trained: the two published recipes, and the ablations of the paper's table 4."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eyespot.adapters.quari.config import Config
from eyespot.adapters.quari.training.schedules import SCHEDULES
from eyespot.types import UsageError

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
ACTIVATIONS = ("auto", "kept", "recomputed")


@dataclass(frozen=True)
class TrainingSettings:
    """A recipe; the defaults are those of the authors' code.

    batch: pairs that are each other's negatives. accumulate: batches whose gradients are added up for one step.
    rate: the schedule's highest learning rate; None takes the schedule's own.
    noise: λ of q + λ·u·ε. semi_positives: how many of those mined are used. token_drop: the chance that a refinement
        step does not see a token. clip: the longest gradient; 0 clips none.
    patience: so many validations without a better one end the training; 0 never does. All `every` count steps.
    device: "auto", "cpu", "cuda", "cuda:1". precision: "auto" is bfloat16 on an accelerator, else float32.
    activations: "recomputed" in the backward pass or "kept"; "auto" keeps them while they are few.
    """

    batch: int = 320
    epochs: int = 10
    accumulate: int = 2
    schedule: str = "one-cycle"
    rate: float | None = None
    weight_decay: float = 1e-2
    temperature: float = 0.07
    noise: float = 1.0
    semi_positives: int = 2
    token_drop: float = 0.05
    clip: float = 1.0
    validate_every: int = 500
    patience: int = 5
    checkpoint_every: int = 500
    seed: int = 0
    device: str = "auto"
    precision: str = "auto"
    activations: str = "auto"

    def __post_init__(self) -> None:
        self._counts()
        for name in ("noise", "weight_decay", "clip"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} of a training is 0 or more, not {getattr(self, name)}")
        if not self.temperature > 0 or not (self.rate is None or self.rate > 0):
            raise UsageError("temperature and learning rate of a training are above 0")
        if not 0 <= self.token_drop < 1:
            raise UsageError(f"token_drop is a chance below 1, not {self.token_drop}")
        choices = {"schedule": tuple(SCHEDULES), "precision": PRECISIONS, "activations": ACTIVATIONS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise UsageError(f"no {name} {getattr(self, name)!r}; there are: {', '.join(known)}")

    def _counts(self) -> None:
        least = {"batch": 2, "epochs": 1, "accumulate": 1, "validate_every": 1, "checkpoint_every": 1}
        for name, low in {**least, "semi_positives": 0, "patience": 0, "seed": 0}.items():
            if getattr(self, name) < low:
                raise UsageError(f"{name} of a training is {low} or more, not {getattr(self, name)}")


# The paper names optimiser, rates, batch and temperature; of clipping, accumulation and dropped tokens it says nothing.
PRESETS = {
    "released": TrainingSettings(),
    "paper": TrainingSettings(accumulate=1, schedule="cosine", token_drop=0.0, clip=0.0),
}
ABLATIONS = ("one-step", "no-semi-positives", "no-noise")


def ablated(config: Config, settings: TrainingSettings, ablation: str) -> tuple[Config, TrainingSettings]:
    """Shape and recipe without one component: iterative generation, semi-positives, noise (QuARI, table 4)."""
    if ablation not in ABLATIONS:
        raise UsageError(f"no ablation {ablation!r}; there are: {', '.join(ABLATIONS)}")
    if ablation == "one-step":
        return replace(config, num_steps=1), settings
    return config, replace(settings, **{"semi_positives": 0} if ablation == "no-semi-positives" else {"noise": 0.0})
