"""Multimodal re-rankers of the sentence-transformers library: `cross_encoder:ORG/NAME[@REVISION]` or a folder.

Qwen3-VL-Reranker and its kin read the query and the picture together and give one number, whose sigmoid is the
probability. They bring their own question, so a wording changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eyespot.judges._local import OPTIONS as LOCAL, LocalJudge, LocalSettings, loading, source
from eyespot.judges._prompt import described
from eyespot.storage.digests import text_digest
from eyespot.types import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

SPELLING = "cross_encoder:ORG/NAME[@REV]|FOLDER"
KIND = "local model"
OFFLINE = "once fetched"
NEEDS = "the extra [rerank]; weights from the model hub or a folder"
OPTIONS = {**LOCAL, "instruction": str}


def load(rest: str, *, instruction: str = "", **options: Any) -> LocalJudge:
    """A multimodal cross-encoder as a judge; other options as in `Settings` (device, dtype, batch, read).

    `instruction` replaces what the model's own template says is asked. Models whose repository brings code that must
    run to load them are refused. Raises: UsageError for those, EyespotError if the model cannot be had.
    """
    settings, model = LocalSettings.of(options), source("cross_encoder", rest)
    if "auto_map" in model.config:
        raise UsageError(
            f"{model.name} needs code that its repository brings, which is not run here; serve it behind a re-ranking "
            "endpoint, or take one that needs none, such as cross_encoder:Qwen/Qwen3-VL-Reranker-2B"
        )
    digest = text_digest(instruction)

    def opened() -> Reranker:
        with loading(model.name):
            from sentence_transformers import CrossEncoder

            network = CrossEncoder(
                model.place,
                revision=model.commit,
                device=str(settings.torch_device),
                trust_remote_code=False,
                model_kwargs={"dtype": settings.torch_dtype},
            )
            reranker = Reranker(network, instruction)
            if reranker.model.supports("image") and reranker.model.num_labels == 1:
                return reranker
        raise UsageError(f"{model.name} does not give one score for words and a picture; name a multimodal re-ranker")

    return LocalJudge(model.name, digest, described, opened, settings)


@dataclass
class Reranker:
    """A loaded cross-encoder."""

    model: Any
    instruction: str

    def __call__(self, texts: Sequence[str], pictures: Sequence[Image]) -> NDArray[np.float64]:
        """The sigmoid of the model's number for each text and its picture, (n,)."""
        import torch

        found: NDArray[np.float64] = self.model.predict(
            list(zip(texts, pictures, strict=True)),
            prompt=self.instruction or None,
            batch_size=len(texts),
            show_progress_bar=False,
            activation_fn=torch.nn.Sigmoid(),
        )
        return found
