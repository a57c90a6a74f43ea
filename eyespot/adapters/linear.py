"""Static task adaptation (TA): one linear map for every query and image, the baseline that QuARI is compared with.

A map and a cosine classifier above it are learned together; the classifier is thrown away. Its classes are labels
where there are any (instances, species), else every image with its texts is a class of its own. (QuARI, table 1b;
ILIAS, section 5.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.adapters.quari.files import LARGEST, NOT_FINITE, arrays_in, safe_arrays
from eyespot.adapters.quari.training.data import unit
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import NothingFound, UsageError, Vectors

FILE, MAKE = "linear.safetensors", "eyespot train linear"
AT_ONCE = 1 << 14  # rows
SCALE, WEIGHT_DECAY = 16.0, 1e-6
Tell = Callable[[int, int, float], None]  # a step, how many there are, its loss


@dataclass(frozen=True, eq=False)
class Linear:
    """x ↦ normalise(x Wᵀ + b): `weight` (width, dim), `bias` (width,); `space` is the encoder it was trained on."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    space: str | None = None
    caution: None = None  # no validation is known of it

    def __repr__(self) -> str:
        return (
            f"<linear adapter, {self.dim} to {len(self.weight)} numbers, trained on {self.space or 'nobody says what'}>"
        )

    @property
    def dim(self) -> int:
        """The length of the vectors it takes."""
        return int(self.weight.shape[1])

    def apply(self, vectors: Vectors) -> Vectors:
        """Vectors (n, dim) of any length in the adapted space: (n, width), of unit length."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise UsageError(f"the adapter takes vectors of {self.dim} components, these have {vectors.shape[-1]}")
        parts = (vectors[start : start + AT_ONCE] for start in range(0, len(vectors), AT_ONCE))
        adapted = (unit(unit(part) @ self.weight.T + self.bias) for part in parts)
        return np.concatenate([np.zeros((0, len(self.weight)), np.float32), *adapted])


def train(
    vectors: Vectors,
    classes: NDArray[Any],
    *,
    width: int = 512,
    epochs: int = 5,
    batch: int = 128,
    seed: int = 0,
    rate: float = 1e-3,
    tell: Tell = lambda _step, _total, _loss: None,
) -> Linear:
    """A map under which vectors (n, dim) of one class (n,) come together, texts and images alike; on the CPU.

    The published recipe: 2 to 5 passes of Adam over batches of 128, logits 16 times the cosines.

    Raises `NothingFound` if there are not two classes. Needs the extra [torch].
    """
    with rooms.needs("training"):
        import torch
        from torch.nn.functional import cross_entropy, normalize
    names, labels = np.unique(classes, return_inverse=True)
    if len(names) < 2:
        raise NothingFound(f"a classifier needs two classes or more; these {len(vectors)} vectors have {len(names)}")
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        adapter, weights = torch.nn.Linear(vectors.shape[1], width), torch.empty(len(names), width)
        torch.nn.init.xavier_uniform_(adapter.weight)
        torch.nn.init.zeros_(adapter.bias)
        classifier = torch.nn.Parameter(torch.nn.init.xavier_uniform_(weights))
    optimizer = torch.optim.Adam([*adapter.parameters(), classifier], lr=rate, weight_decay=WEIGHT_DECAY)
    rng, batches = np.random.default_rng(seed), -(-len(vectors) // batch)
    for epoch in range(epochs):
        order = rng.permutation(len(vectors))
        for at in range(batches):
            rows = order[at * batch : (at + 1) * batch]
            adapted = normalize(adapter(torch.from_numpy(unit(vectors[rows]))), dim=1)
            logits = SCALE * adapted @ normalize(classifier, dim=1).T
            loss = cross_entropy(logits, torch.from_numpy(labels[rows]))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            tell(epoch * batches + at + 1, epochs * batches, float(loss.detach()))
    return Linear(adapter.weight.detach().numpy().copy(), adapter.bias.detach().numpy().copy())


def save(folder: Path, adapter: Linear) -> None:
    """Into a folder, whole or not at all."""
    from safetensors.numpy import save as packed

    metadata = {} if adapter.space is None else {"space": adapter.space}
    data = packed({"weight": adapter.weight, "bias": adapter.bias}, metadata)
    make_folder(folder)
    write_whole(folder / FILE, lambda file: file.write(data))


def load(place: Path | str) -> Linear:
    """What `save` wrote, its folder or its file, or a layer that ILIAS publishes (.pth); `UsageError` for all else."""
    path = Path(place).expanduser()
    if path.suffix == ".pth":
        return _fitting(path, arrays_in(path, path.name), ("layer.weight", "layer.bias"))  # it names no encoder
    path = path if path.is_file() else path / FILE
    found, notes = safe_arrays(path, f"make one with: {MAKE}")
    return replace(_fitting(path, found, ("weight", "bias")), space=notes.get("space"))


def _fitting(path: Path, found: Any, names: tuple[str, str]) -> Linear:
    parts = [one for name in names if isinstance(found, dict) and isinstance(one := found.get(name), np.ndarray)]
    if len(parts) != len(names):
        raise UsageError(f"{path} holds no linear layer; give one of ILIAS, or of {MAKE}")
    weight, bias = (one.astype(np.float32) for one in parts)
    if weight.ndim != 2 or not weight.size or bias.shape != weight.shape[:1]:
        raise UsageError(f"{path}: a weight of shape {weight.shape} and a bias of {bias.shape} do not fit")
    if not all((np.abs(one) < LARGEST).all() for one in (weight, bias)):
        raise UsageError(f"{path} {NOT_FINITE}")
    return Linear(weight, bias)
