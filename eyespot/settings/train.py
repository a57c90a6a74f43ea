"""What adapters and backbones are trained on, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyespot.settings.fields import Settings, Texts, setting

MOST_HELD_OUT = 5_000  # images
FEWEST_HELD_OUT = 400  # half of which choose a model, and half test it
LEAST_SHARE, MOST_SHARE = 0.05, 0.2


class PairSettings(Settings):
    """Where pairs of texts and images come from; captions are of a gallery."""

    pairs: Path = setting(
        "Pairs (.npy, .npz, .pt, .parquet, clip-retrieval), or a gallery.", default=..., argument=True
    )
    out: Path = setting("The output folder.", default=...)
    captions: Texts = setting(
        "For a gallery, the captions: a file with the columns id (or file_name) and caption (optionally asked_with, "
        "the picture of a question), a folder of eyespot build pairs, or a column of its labels; repeatable.",
        default=(),
        metavar="FILE|COLUMN",
    )
    encoder: str | None = setting("The encoder of the vectors; of a gallery the one used.", spelled=("-e", "--encoder"))

    @property
    def is_gallery(self) -> bool:
        """Whether the pairs are pictures of a gallery and their captions."""
        return (self.pairs / "gallery.toml").is_file()


class QuariSettings(PairSettings):
    """A training of QuARI; None is what the preset says."""

    out: Path = setting("The output folder, with the checkpoint in model/ and the progress in log.csv.", default=...)
    held_out: Path | None = setting("Pairs for validation.", usual="a share of the images")
    held_out_captions: Texts = setting("Captions for validation; repeatable.", default=(), metavar="FILE|COLUMN")
    held_out_share: float | None = setting(
        f"The share of images for validation, at most {MOST_HELD_OUT}; 0: no validation.",
        ge=0,
        le=0.9,
        usual=f"{FEWEST_HELD_OUT} images, but {LEAST_SHARE:g} to {MOST_SHARE:g} of them",
    )
    semi_positives: Path | None = setting("The output of eyespot mine semipositives PAIRS.", usual="mined exactly")
    preset: str = setting(
        "Architecture and recipe: identity (starts at the frozen space), released (the authors' code), paper, or "
        "arxiv-2025-05 (their code of that month).",
        default="identity",
    )
    loss: str | None = setting(
        "symmetric (the paper's), linear (the released image-to-query term), paired-maps.",
        usual="symmetric; arxiv-2025-05 paired-maps",
    )
    keep_anyway: bool = setting("Name the model even if it is not shown to beat the plain vectors.", default=False)
    without: Texts = setting("Leave out: one-step, no-semi-positives, no-noise; repeatable.", default=())
    rank: int | None = setting("The rank of each map's factors.", usual="16; published 64")
    hidden: int | None = setting("The width of the hypernetwork.", usual="128; published 512")
    steps: int | None = setting("The number of refinement steps of a map.", usual="2; published 4")
    layers: int | None = setting("The number of layers, shared by the steps.", usual="2; published 4")
    heads: int | None = setting("The number of attention heads.", usual="4; published 8")
    dropout: float = setting("The share of activations that are dropped while training.", default=0.0, ge=0, le=0.9)
    batch: int | None = setting("Pairs per batch; they are each other's negatives.", usual="128; published 320")
    epochs: int | None = setting("Passes over all pairs.", usual="10")
    accumulate: int | None = setting("Batches per step.", usual="1; released 2")
    rate: float | None = setting("The highest learning rate.", usual="1e-4; released 5e-4; paper 1e-5")
    noise: float | None = setting("The strength of the noise on queries.", usual="0.02; published 1")
    temperature: float | None = setting("The temperature of the loss.", usual="0.07")
    clip: float | None = setting("The maximum norm of the gradient; 0: no limit.", usual="1; paper 0")
    patience: float | None = setting(
        "Stop after this many epochs of validations that are below the best by more than their standard error, once "
        "the learning rate has fallen to half; 0: never.",
        usual="5",
    )
    validate_every: int | None = setting("Batches between validations; a short training has 20.", usual="500")
    checkpoint_every: int | None = setting("Steps between checkpoints.", usual="500")
    seed: int | None = setting("Another seed gives another training.", usual="0")
    device: str | None = setting("The device: cpu, cuda, cuda:1.", usual="cuda if there is one")
    precision: str | None = setting("float32, bfloat16 or float16.", usual="bfloat16 on cuda, else float32")
    activations: str | None = setting("Activations: kept, or recomputed (less memory).", usual="by their size")
    dry_run: bool = setting("Only print the amount of data, steps and memory.", default=False)

    def share_of(self, images: int) -> float:
        """The share of so many images that validates."""
        fair = min(MOST_SHARE, max(LEAST_SHARE, FEWEST_HELD_OUT / images))
        return fair if self.held_out_share is None else self.held_out_share

    def of(self, kind: Any) -> dict[str, Any]:
        """What is given of the fields of this dataclass, a recipe's or a shape's, which may name them otherwise."""
        sizes = {
            "low_rank_dim": self.rank,
            "hidden_dim": self.hidden,
            "num_steps": self.steps,
            "num_layers": self.layers,
            "nhead": self.heads,
        }
        values = {**self.model_dump(exclude={"semi_positives", "preset"}), **sizes}
        return {
            name: value for name, value in values.items() if name in kind.__dataclass_fields__ and value is not None
        }


class LinearSettings(PairSettings):
    """A training of a static linear adapter."""

    out: Path = setting("The output folder; in Python: eyespot.adapters.linear.load(folder).", default=...)
    labels: str | None = setting(
        "The classes: of a gallery a column, a table with the columns id (or file_name) and label, or a folder of "
        "eyespot build pairs labelled; of arrays a text file with a line for each image.",
        metavar="FILE|COLUMN",
        usual="each image with its texts is a class",
    )
    width: int = setting("The dimension of the adapted vectors.", default=512, ge=1)
    epochs: int = setting("Passes over all texts and images; 2 to 5 are usual.", default=5, ge=1)
    batch: int = setting("Vectors per batch.", default=128, ge=1)
    seed: int = setting("Another seed gives another training.", default=0, ge=0)


class BackboneSettings(PairSettings):
    """A fine-tuning of the model itself."""

    pairs: Path = setting("A gallery with the model's vectors.", default=..., argument=True, metavar="GALLERY")
    out: Path = setting("The output folder, with the model in model/ and the progress in log.csv.", default=...)
    encoder: str | None = setting("The hf: or open_clip: model.", spelled=("-e", "--encoder"), usual="the gallery's")
    blocks: int | None = setting("How many of the last blocks of each tower to train.", ge=0, usual="all")
    epochs: int = setting("Passes over all captions.", default=5, ge=1)
    batch: int = setting("Pairs per batch; they are each other's negatives.", default=64, ge=2)
    rate: float = setting("The highest learning rate.", default=1e-5, gt=0)
    checkpoint_every: int = setting("Steps between checkpoints.", default=500, ge=1)
    seed: int = setting("Another seed gives another training.", default=0, ge=0)
    dry_run: bool = setting("Only print the number of pairs and steps.", default=False)
