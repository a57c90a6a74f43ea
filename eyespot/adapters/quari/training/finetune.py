"""A backbone fine-tuned on pairs of a picture and its caption: the baseline that changes the space itself.

All vectors of a gallery have to be made again afterwards, which is what an adapter spares. Both towers, or their last
blocks, are trained by the symmetric InfoNCE of CLIP with the model's own temperature. (QuARI, table 4, compares with
it and does not say how it was trained; here it is AdamW under one cycle of the learning rate.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.settings.train import BackboneSettings
from eyespot.types import EyespotError, Pixels, UsageError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from eyespot.adapters.quari.training.checkpoints import LogPoint

WEIGHT_DECAY, CLIP = 0.1, 1.0
SCALE = 100.0  # the steepest that CLIP's logits may become
BEFORE = ("embed", "conv1", "pre_l", "ln_pre", "norm_pre", "token")  # in names of what lies before the first block
Ids = NDArray[np.int64]


class TrainableTowers(Protocol):
    """A model of two towers in torch, on its device."""

    model: Any

    def read(self, picture: Image) -> Pixels:
        """A picture as the model takes it."""

    def image(self, pixels: torch.Tensor) -> torch.Tensor:
        """Pictures to rows (n, dim) of any length."""

    def tokens(self, texts: list[str]) -> dict[str, torch.Tensor]:
        """Texts as the model takes them."""

    def text(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Texts to rows (n, dim) of any length."""


@dataclass(frozen=True)
class FineTuneData:
    """Texts, the number of each one's picture (n,), and what reads pictures by number; None: it cannot be read.

    `asking` (n,) are the numbers of the pictures that texts ask with, -1 for words alone: such a query is the sum of
    its two vectors, as a search by both takes it. None: all are words alone.
    """

    texts: Sequence[str]
    of: Ids
    pictures: Callable[[Sequence[int]], Sequence[Image | None]]
    asking: Ids | None = None

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that tell these pairs from others."""
        hasher = hashlib.sha256(self.of.tobytes())
        hasher.update("\x1f".join(self.texts).encode("utf-8", "surrogatepass"))
        if self.asking is not None:
            hasher.update(self.asking.tobytes())
        return hasher.hexdigest()[:16]


@dataclass(frozen=True)
class FineTuneResult:
    """How it ended: its steps, the last loss, how many weights were trained, and how often a picture was not read."""

    step: int
    loss: float
    weights: int
    unread: int


def steps(count: int, recipe: BackboneSettings) -> int:
    """How many steps so many pairs make; `UsageError` if they fill no batch."""
    if count < recipe.batch:
        raise UsageError(f"{count} pairs fill no batch of {recipe.batch}; give a smaller --batch")
    return recipe.epochs * (count // recipe.batch)


def finetune(
    towers: TrainableTowers,
    material: FineTuneData,
    recipe: BackboneSettings,
    tell: Callable[[LogPoint, int], None] = lambda _point, _total: None,
) -> FineTuneResult:
    """Train the towers in place, going on from what the folder `recipe.out` has of an interrupted training.

    On a CPU the weights are then, to the bit, those of a training in one go. Raises `UsageError` for a folder with
    another training and for fewer pairs than a batch; `EyespotError` if the loss is not a number. Needs [torch].
    """
    with rooms.needs("training"):
        import torch

    from eyespot.adapters.quari.training import checkpoints

    total = steps(len(material.texts), recipe)
    settings = {name: getattr(recipe, name) for name in ("blocks", "epochs", "batch", "rate", "seed")}
    settings |= {"weight_decay": WEIGHT_DECAY, "clip": CLIP}
    checkpoints.begin(recipe.out, {**settings, "pairs": material.fingerprint, "model": digest(towers.model)})
    with torch.random.fork_rng():
        tuning = FineTuning(towers, material, recipe, total)
        try:
            checkpoints.run(tuning, recipe.out, recipe.checkpoint_every, tell)
        finally:
            towers.model.eval()
    return FineTuneResult(tuning.step, tuning.loss, sum(one.numel() for one in tuning.trained.values()), tuning.unread)


def digest(model: Any) -> str:
    """Sixteen hex digits that tell these weights from others."""
    hasher = hashlib.sha256()
    for name, value in model.state_dict().items():
        hasher.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    return hasher.hexdigest()[:16]


def unfreeze(model: Any, blocks: int | None) -> dict[str, Any]:
    """Let the last blocks of each tower and what follows them learn, and nothing else; gives them by name.

    `UsageError` if a tower has fewer blocks, or none that can be identified.
    """
    # The towers' rows of like blocks, by name: the outermost lists of two or more modules of one class
    from torch import nn

    stacks: dict[str, Any] = {}
    for name, module in model.named_modules():
        like = isinstance(module, nn.ModuleList | nn.Sequential) and len({type(one) for one in module}) == 1
        if like and len(module) > 1 and not any(name.startswith(f"{outer}.") for outer in stacks):
            stacks[name] = module
    if blocks is not None and (not stacks or min(map(len, stacks.values())) < blocks):
        there = ", ".join(f"{name} {len(stack)}" for name, stack in stacks.items()) or "none"
        raise UsageError(f"the towers have blocks: {there}; train {blocks} of them with a smaller --blocks, or all")
    for name, value in model.named_parameters():
        stack = next((stack for stack in stacks if name.startswith(f"{stack}.")), None)
        if stack is None:
            learns = not any(word in name for word in BEFORE)
        else:
            place = int(name.removeprefix(f"{stack}.").partition(".")[0])
            learns = place >= len(stacks[stack]) - (blocks or 0)
        value.requires_grad_(blocks is None or learns)
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


class FineTuning:
    """Where a fine-tuning stands; what is drawn at a step hangs on the seed and the step's number alone."""

    patient = True  # nothing validates it

    def __init__(self, towers: TrainableTowers, material: FineTuneData, recipe: BackboneSettings, total: int) -> None:
        import torch

        from eyespot.adapters.quari.training import checkpoints

        self.towers, self.material, self.recipe, self.total = towers, material, recipe, total
        self.trained = unfreeze(towers.model, recipe.blocks)
        self.device = next(iter(self.trained.values())).device
        self.optimizer = torch.optim.AdamW(self.trained.values(), recipe.rate, weight_decay=WEIGHT_DECAY)
        self.step, self.loss, self.unread = 0, float("nan"), 0
        checkpoints.resume(recipe.out, self.device, self._restore)
        towers.model.train()

    def _restore(self, state: dict[str, Any]) -> None:
        self.towers.model.load_state_dict(state["trained"], strict=False)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.loss, self.unread = int(state["step"]), float(state["loss"]), int(state["unread"])

    def state(self) -> dict[str, Any]:
        """All that a resumed training needs."""
        trained = {name: value.detach() for name, value in self.trained.items()}
        counts = {"step": self.step, "loss": self.loss, "unread": self.unread}
        return {"trained": trained, "optimizer": self.optimizer.state_dict(), **counts}

    def take_step(self) -> LogPoint:
        """One step more."""
        import torch

        from eyespot.adapters.quari.training.checkpoints import LogPoint
        from eyespot.adapters.quari.training.settings import one_cycle

        per_epoch = self.total // self.recipe.epochs
        rate = self.recipe.rate * one_cycle(self.step, self.total, per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(int(np.random.SeedSequence([self.recipe.seed, self.step]).generate_state(1)[0]))
        self.optimizer.zero_grad(set_to_none=True)
        epoch, batch = divmod(self.step, per_epoch)
        order = np.random.default_rng([self.recipe.seed, epoch]).permutation(len(self.material.texts))
        loss = self._loss(order[batch * self.recipe.batch : (batch + 1) * self.recipe.batch])
        loss.backward()  # type: ignore[no-untyped-call]
        length = torch.nn.utils.clip_grad_norm_(list(self.trained.values()), CLIP)
        self.optimizer.step()
        self.step, self.loss = self.step + 1, float(loss.detach())
        return LogPoint(self.step, self.step / per_epoch, self.loss, rate, float(length), None)

    def _loss(self, rows: Ids) -> torch.Tensor:
        import torch
        from torch.nn.functional import normalize

        rows, shown, asking, places = self._read(rows)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            images = self.towers.image(shown.to(self.device))
            tokens = self.towers.tokens([self.material.texts[row] for row in rows.tolist()])
            texts = self.towers.text({name: value.to(self.device) for name, value in tokens.items()})
            if asking is not None:
                pictures = normalize(self.towers.image(asking.to(self.device)), dim=1)
                texts = normalize(texts, dim=1).index_add(0, places.to(self.device), pictures.to(texts.dtype))
        scale = getattr(self.towers.model, "logit_scale", None)
        steep = torch.tensor(1 / 0.07) if scale is None else scale.exp().clamp(max=SCALE)
        loss = info_nce(texts.float(), images.float(), self.others(rows), steep)
        if not torch.isfinite(loss):
            raise EyespotError(
                f"the loss of step {self.step + 1} is not a number; train into a new folder with a lower --rate"
            )
        return loss

    def others(self, rows: Ids) -> torch.Tensor:
        """Which pictures of a batch are also right for which of its queries, (n, n): they are not negatives."""
        import torch

        of = self.material.of[rows]
        same = of[:, None] == of  # (n, n)
        if self.material.asking is not None:  # a question about a picture may have several answers
            asking, texts = self.material.asking[rows], np.array([self.material.texts[row] for row in rows.tolist()])
            same |= (asking[:, None] == asking) & (asking >= 0) & (texts[:, None] == texts)
        return torch.from_numpy(same & ~np.eye(len(rows), dtype=bool)).to(self.device)

    def _read(self, rows: Ids) -> tuple[Ids, torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """Pairs without those that have a picture that cannot be read: rows (n,), pictures (n, ...), and the pictures
        (m, ...) that some ask with, and which those are (m,)."""
        import torch

        asking = np.full(len(rows), -1) if self.material.asking is None else self.material.asking[rows]
        composed = np.flatnonzero(asking >= 0).tolist()
        read = self.material.pictures([*self.material.of[rows].tolist(), *asking[composed].tolist()])
        shown, references = read[: len(rows)], dict(zip(composed, read[len(rows) :], strict=True))
        there = [at for at, one in enumerate(shown) if one is not None and references.get(at, one) is not None]
        self.unread += len(rows) - len(there)
        if len(there) < 2:
            raise EyespotError(
                f"{len(rows) - len(there)} of {len(rows)} pictures of a batch cannot be read; put them back"
            )
        places = [place for place, at in enumerate(there) if at in references]
        beside = self._pixels([references[there[place]] for place in places]) if places else None
        return rows[there], self._pixels([shown[at] for at in there]), beside, torch.tensor(places)

    def _pixels(self, pictures: Sequence[Image | None]) -> torch.Tensor:
        import torch

        return torch.from_numpy(np.stack([self.towers.read(picture) for picture in pictures if picture is not None]))


def info_nce(texts: torch.Tensor, images: torch.Tensor, right: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The mean of both directions' cross-entropies over texts and images (n, dim) row by row.

    `right` (n, n) is True where another row's image is right for a text too: it is not a negative.
    """
    import torch
    from torch.nn.functional import cross_entropy, normalize

    logits = scale * normalize(texts, dim=1) @ normalize(images, dim=1).T  # (n, n)
    logits = logits.masked_fill(right, -torch.inf)
    own = torch.arange(len(logits), device=logits.device)
    return (cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2
