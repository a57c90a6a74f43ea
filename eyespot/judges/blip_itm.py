"""Matching heads, `blip_itm:ORG/NAME[@REVISION]` or `blip_itm:FOLDER`: how probable it is that a text fits a picture.

BLIP and BLIP-2 models with an image–text matching head (ReCoS re-ranks with both, in both directions). The head is
asked no question: it reads the query's bare words. Another such head (ALBEF's has the same form) is a row of `HEADS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from eyespot.judges._local import OPTIONS as LOCAL, LocalJudge, LocalSettings, loading, source
from eyespot.judges._prompt import described
from eyespot.models.torch_models import model_of, on_device, processor_of
from eyespot.storage.digests import text_digest
from eyespot.types import UsageError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image

    Logits: TypeAlias = Callable[[Any, dict[str, Any]], torch.Tensor]

SPELLING = "blip_itm:ORG/NAME[@REV]|FOLDER"
KIND = "local model"
OFFLINE = "once fetched"
NEEDS = "the extra [torch]; weights from the model hub or a folder"
OPTIONS = LOCAL
PROMPT = text_digest("the bare words")  # whoever changes what the head reads changes this


@dataclass(frozen=True)
class Head:
    """One family's head: its class in transformers, how its two logits (no, yes) are had, its longest text."""

    kind: str
    logits: Logits
    length: Callable[[Any], int]


HEADS = {  # model_type in config.json → its head
    "blip": Head(
        "BlipForImageTextRetrieval",
        lambda model, inputs: model(**inputs, use_itm_head=True).itm_score,
        lambda config: config.text_config.max_position_embeddings,
    ),
    "blip-2": Head(
        "Blip2ForImageTextRetrieval",
        lambda model, inputs: model(**inputs, use_image_text_matching_head=True).logits_per_image,
        lambda config: config.qformer_config.max_position_embeddings,
    ),
}


def load(rest: str, **options: Any) -> LocalJudge:
    """A matching head as a judge; options as in `Settings` (device, dtype, batch, read; a wording changes nothing).

    `.scorer(texts, pictures)` scores pairs that come from elsewhere, in either direction, (n,).
    Raises: UsageError if the model has no such head, EyespotError if it cannot be had.
    """
    settings, model = LocalSettings.of(options), source("blip_itm", rest)
    if model.config["model_type"] not in HEADS:
        raise UsageError(f"{model.name} has no matching head; there are those of: {', '.join(HEADS)}")

    def opened() -> MatchingHead:
        import transformers

        head = HEADS[model.config["model_type"]]
        with loading(model.name):
            folder = model.folder()
            network = model_of(getattr(transformers, head.kind), folder, settings.torch_dtype)
            processor = processor_of(folder)
            processor.tokenizer.model_max_length = head.length(network.config)  # what is longer is cut there
            return MatchingHead(network.to(settings.torch_device).eval(), processor, head)

    return LocalJudge(model.name, PROMPT, described, opened, settings)


@dataclass
class MatchingHead:
    """A loaded matching head."""

    model: Any
    processor: Any
    head: Head

    def __call__(self, texts: Sequence[str], pictures: Sequence[Image]) -> NDArray[np.float64]:
        """How probable it is that text i fits picture i: the softmax of the head's two logits, (n,)."""
        import torch

        with torch.inference_mode():
            words = {"padding": True, "padding_side": "right", "truncation": True, "return_tensors": "pt"}
            inputs = on_device(self.processor(images=list(pictures), text=list(texts), **words), self.model)
            logits = self.head.logits(self.model, inputs)  # (n, 2)
        fits: NDArray[np.float64] = torch.softmax(logits.double(), dim=1)[:, 1].cpu().numpy()
        return fits
