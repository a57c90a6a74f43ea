"""The training itself: steps, validations and checkpoints, the same however often it is interrupted.

All that is drawn at a step (noise, dropout, dropped tokens) is drawn from the seed and the number of the batch, and the
learning rate depends on the step alone. So weights, moments and counts are the whole state, and on a CPU a resumed
training ends in the same bits as one in one go.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eyespot.adapters.quari import files
from eyespot.adapters.quari.card import AdapterCard, FrozenComparison
from eyespot.adapters.quari.config import Config
from eyespot.adapters.quari.network import AdaptedBatch, TorchHypernetwork
from eyespot.adapters.quari.training import checkpoints, memory
from eyespot.adapters.quari.training.checkpoints import LogPoint
from eyespot.adapters.quari.training.data import TrainingBatches, TrainingData
from eyespot.adapters.quari.training.loss import OF_NAME, noisy
from eyespot.adapters.quari.training.settings import SCHEDULES, TrainingSettings
from eyespot.adapters.quari.training.validation import HeldOutQueries, compare, held_out_queries, picture_queries
from eyespot.types import EyespotError, UsageError

PARTS = "network", "optimizer", "scaler"  # of a state
COUNTS = "step", "best", "best_step", "best_values", "near_best", "loss"
FALLEN = 0.5  # of the highest learning rate, while it is above, validations say little of where a training ends
LATE = 0.75  # of the steps: a training whose best validation comes after them still rises
Tell = Callable[[LogPoint, int], None]  # a step and how many there are
FREE = ("checkpoint_every", "device", "activations", "keep_anyway")  # they change nothing about what is learned


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended: its steps of how many, the best validation and its step, and the folder of the model.

    `model` is None where the frozen space is as good, by the `comparison` on held-out images that had no part in
    choosing the step. `best` and `frozen` are RR on those that had; without held-out pairs they and the comparison are
    None, and the model is the last one. `by_picture` is the comparison with altered copies of images as queries.
    """

    model: Path | None
    step: int
    total: int
    best: float | None
    best_step: int
    loss: float
    frozen: float | None = None
    comparison: FrozenComparison | None = None
    by_picture: FrozenComparison | None = None

    @property
    def stopped_early(self) -> bool:
        """Whether it ended for want of better validations."""
        return self.step < self.total

    @property
    def rising(self) -> bool:
        """Whether the best validation is one of the last quarter of the steps."""
        return self.best_step > LATE * self.total

    @property
    def ahead(self) -> bool:
        """Whether the model beats the frozen space where it was chosen, and significantly where it was tested."""
        chosen = self.best is not None and self.frozen is not None and self.best > self.frozen
        return chosen and self.comparison is not None and self.comparison.better


def train(
    material: TrainingData,
    config: Config,
    settings: TrainingSettings,
    out: Path | str,
    tell: Tell = lambda _point, _total: None,
) -> TrainingResult:
    """Train into the folder `out`, from where it was left; the checkpoint to load is `out/model`.

    It is named only if the material's test finds it significantly better than the frozen space, or with `keep_anyway`.
    Raises `UsageError` for a folder with a training of other things, pairs of another length than
    the config's, fewer pairs than a batch, and without held-out pairs or a test where the model is not stored anyway;
    `EyespotError` if the loss is not a number.
    """
    if not settings.keep_anyway and (material.held_out is None or material.test is None):
        raise UsageError(
            "without held-out pairs and a paired test nothing shows that a model helps; hold pairs out, or keep the "
            "model anyway (--keep-anyway; in Python keep_anyway=True)"
        )
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):  # whoever calls keeps their own random numbers
        training = _Training(material, config, settings, Path(out))
        return training.run(tell)


@dataclass
class _Training:
    material: TrainingData
    config: Config
    settings: TrainingSettings
    out: Path
    step: int = 0
    best: float | None = None
    best_step: int = 0
    best_values: list[float] | None = None  # RR of each subject
    near_best: int = 0  # the last step that was the best, or below it by less than the standard error of the difference
    loss: float = field(default=float("nan"))

    def __post_init__(self) -> None:
        if self.material.pairs.dim != self.config.embedding_dim:
            raise UsageError(
                f"the pairs have vectors of {self.material.pairs.dim} components, the shape asks for "
                f"{self.config.embedding_dim}"
            )
        self.batches = TrainingBatches(
            self.material, self.settings.batch, self.settings.semi_positives, self.settings.seed
        )
        self.per_epoch = max(1, self.batches.per_epoch // self.settings.accumulate)
        self.total = self.settings.epochs * self.per_epoch
        self.device = device_of(self.settings.device)
        # What makes this training this one
        settings = {name: value for name, value in asdict(self.settings).items() if name not in FREE}
        pairs, held_out, semi = self.material.pairs, self.material.held_out, self.material.semi
        fingerprints = {"pairs": pairs.fingerprint, "held_out": held_out.fingerprint if held_out else None}
        mined = None if semi is None else hashlib.sha256(semi.rows.tobytes() + semi.weights.tobytes()).hexdigest()[:16]
        identity = {**asdict(self.config), **settings, **fingerprints, "semi-positives": mined}
        checkpoints.begin(self.out, identity)
        torch.manual_seed(self.settings.seed)
        self.network = TorchHypernetwork(self.config, self.settings.token_drop).to(self.device).train()
        if self.settings.start == "identity":
            self.network.start_at_identity()
        width = 4 if self.half is None else 2
        room = memory.room_on(self.device, self.config, self.settings, width)
        if memory.recomputes(self.config, self.settings, width, room):
            self.network.save_memory()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), 1.0, weight_decay=self.settings.weight_decay)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.half is torch.float16)
        checkpoints.resume(self.out, self.device, self._restore)

    def _restore(self, state: dict[str, Any]) -> None:
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
        for name in COUNTS:
            setattr(self, name, state.get(name, getattr(self, name)))  # older states have fewer

    def run(self, tell: Tell) -> TrainingResult:
        """Step by step to the end; what is written at a step is written before its checkpoint."""
        checkpoints.run(self, self.out, self.settings.checkpoint_every, tell)
        return self._ended()

    def state(self) -> dict[str, Any]:
        """All that a resumed training needs."""
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        return parts | {name: getattr(self, name) for name in COUNTS}

    def _ended(self) -> TrainingResult:
        """The frozen space is candidate zero: a model has to beat it where it was chosen, and where it is tested."""
        weights = checkpoints.candidate(self.out)
        frozen, comparison, by_picture = None, None, None
        if self.halves is not None:
            choosing, testing = self.halves
            frozen = float(choosing.frozen(self.device).mean())
            if self.material.test is not None:
                self.network.take(weights)
                comparison = compare(testing, self.network, self.material.test)
                pictures = picture_queries(self.material, testing, self.settings.seed)
                if len(pictures.own):
                    by_picture = compare(pictures, self.network, self.material.test)
        counts = {name: getattr(self, name) for name in ("step", "total", "best", "best_step", "loss")}
        model = self.out / checkpoints.MODEL
        done = TrainingResult(model, **counts, frozen=frozen, comparison=comparison, by_picture=by_picture)
        card = self._card(done)
        files.save(self.out / checkpoints.CANDIDATE, self.config, weights, card)  # who searches with it is warned too
        if not (done.ahead or self.settings.keep_anyway):
            shutil.rmtree(model, ignore_errors=True)  # named anyway before; the candidate stays
            return replace(done, model=None)
        files.save(model, self.config, weights, card)
        return done

    def _card(self, done: TrainingResult) -> AdapterCard:
        return AdapterCard(
            encoder=self.config.feature_extractor,
            pairs=len(self.material.pairs),
            images=self.material.pairs.captioned_images,
            data=self.material.pairs.fingerprint,
            preset="identity" if self.settings.start == "identity" else self.config.preset,
            step=self.best_step or self.step,
            seed=self.settings.seed,
            version=next((found.version for found in distributions(name="eyespot")), "unknown"),
            validation=done.comparison,
            by_picture=done.by_picture,
        )

    @cached_property
    def halves(self) -> tuple[HeldOutQueries, HeldOutQueries] | None:
        """The held-out queries that choose a step, and those that test it."""
        if self.material.held_out is None:
            return None
        work = 2 * self.config.embedding_dim * self.config.low_rank_dim
        return held_out_queries(self.material, work, self.settings.seed)

    @property
    def patient(self) -> bool:
        """Whether there is still hope for a better validation."""
        if not self.settings.patience or self.best is None:
            return True
        rate = SCHEDULES[self.settings.schedule][0](self.step, self.total, self.per_epoch)
        return rate > FALLEN or self.step - self.near_best < self.settings.patience * self.per_epoch

    # -- a step --------------------------------------------------------------------------------------------

    def take_step(self) -> LogPoint:
        """One step more, and its validation if it has one."""
        share, peak, beta = SCHEDULES[self.settings.schedule]
        at = self.step, self.total, self.per_epoch
        rate = (self.settings.rate or peak) * share(*at)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
            group["betas"] = (group["betas"][0] if beta is None else beta(*at), group["betas"][1])
        self.optimizer.zero_grad(set_to_none=True)
        first = self.step * self.settings.accumulate
        losses = [self._gradients(first + at) for at in range(self.settings.accumulate)]
        # Cut the gradient to its longest length; gives the length that it had
        self.scaler.unscale_(self.optimizer)
        longest = self.settings.clip or float("inf")
        length = float(torch.nn.utils.clip_grad_norm_(self.network.parameters(), longest))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step, self.loss = self.step + 1, sum(losses) / len(losses)
        return LogPoint(self.step, self.step / self.per_epoch, self.loss, rate, length, self._validated())

    def _gradients(self, number: int) -> float:
        mixed = np.random.SeedSequence([self.settings.seed, number])  # unlike the seeds of its neighbours
        torch.manual_seed(int(mixed.generate_state(1, np.uint64)[0] >> 1))
        texts, targets = self.batches.batch(number)
        width = texts.shape[1] if self.settings.noise_per == "component" else 1
        queries = noisy(texts, self.settings.noise, torch.default_generator, width)
        views_queries = queries.to(self.device)
        autocast = nullcontext() if self.half is None else torch.autocast(self.device.type, self.half)
        with autocast:
            views: AdaptedBatch = self.network(views_queries)
        found = type(targets)(*(one.to(self.device) for one in targets))
        loss = OF_NAME[self.settings.loss](views, found, self.settings.temperature)
        if not torch.isfinite(loss):
            raise EyespotError(
                f"the loss of step {self.step + 1} is not a number; train into a new folder with a lower --rate"
            )
        self.scaler.scale(loss / self.settings.accumulate).backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    @cached_property
    def half(self) -> torch.dtype | None:
        """The half precision that layers run in, or None."""
        auto = "float32" if self.device.type == "cpu" else "bfloat16"
        name = auto if self.settings.precision == "auto" else self.settings.precision
        return None if name == "float32" else getattr(torch, name)

    # -- validation and checkpoints -----------------------------------------------------------------------

    def _validated(self) -> float | None:
        last = self.step == self.total
        if self.halves is None:
            if last:
                self._keep_candidate()
            return None
        if not last and self.step % self.settings.validation_steps(self.total):
            return None
        values = self.halves[0].adapted(self.network)  # (subjects,)
        found, lead = float(values.mean()), values - (self.best_values or 0)
        if self.best is None or found > self.best:
            self.best, self.best_step, self.best_values = found, self.step, values.tolist()
            self._keep_candidate()
        if self.best_step == self.step or -lead.mean() < lead.std() / max(1, len(lead) - 1) ** 0.5:
            self.near_best = self.step
        return found

    def _keep_candidate(self) -> None:
        files.save(self.out / checkpoints.CANDIDATE, self.config, self.network.weights())


def device_of(name: str) -> torch.device:
    """The device of a name; "auto" is an accelerator of CUDA if there is one. `UsageError` if it is not there."""
    there = torch.cuda.is_available()
    chosen = ("cuda" if there else "cpu") if name == "auto" else name
    if chosen != "cpu" and not (there and chosen.partition(":")[0] == "cuda"):
        raise UsageError(f"no device {chosen!r} here to train on; there are: cpu{', cuda' if there else ''}")
    return torch.device(chosen)
