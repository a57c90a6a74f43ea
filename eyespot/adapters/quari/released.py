"""The checkpoints that the authors of QuARI published, and the encoders whose vectors they fit.

Their repository names no licence; eyespot ships none of their weights, `hub:` fetches them.
"""

from __future__ import annotations

# The weights of OpenAI's CLIP are the same in both libraries, and so are their tokens.
SAME_WEIGHTS = {
    "ViT-B-16/openai": "openai/clip-vit-base-patch16",
    "ViT-B-16-quickgelu/openai": "openai/clip-vit-base-patch16",
    "ViT-L-14/openai": "openai/clip-vit-large-patch14",
    "ViT-L-14-quickgelu/openai": "openai/clip-vit-large-patch14",
}
RELEASED = {  # a checkpoint's name for `--adapt`: encoders that it fits
    "hub:EricX003/QuARI-clip-vit-base-patch16": ("hf:openai/clip-vit-base-patch16", "open_clip:ViT-B-16/openai"),
    "hub:EricX003/QuARI-clip-vit-large-patch14": ("hf:openai/clip-vit-large-patch14", "open_clip:ViT-L-14/openai"),
    "hub:EricX003/QuARI-google-siglip2-base-patch16-512": ("hf:google/siglip2-base-patch16-512",),
    "hub:EricX003/QuARI-google-siglip2-large-patch16-512": ("hf:google/siglip2-large-patch16-512",),
}
_SAME = {name.casefold(): hub for name, hub in SAME_WEIGHTS.items()}


def model_of(encoder: str) -> str:
    """The model's own name: `hf:openai/clip-vit-base-patch16`, the bare hub id and open_clip's name are the same."""
    own = encoder.removeprefix("hf:").removeprefix("open_clip:").removeprefix("hf-hub:").casefold()
    return _SAME.get(own, own)
