"""The licence of each photo of a set, and whom it asks to name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from eyespot.photos.attribution import Attribution, attribution_of

if TYPE_CHECKING:
    from eyespot.curate._world import PhotoWorld

__all__ = ["Attribution", "attribution_of", "attributions"]


def attributions(world: PhotoWorld, images: Iterable[str], encoder: str | None) -> dict[str, dict[str, str | None]]:
    """By image the columns `licence`, `author` and `url`; images that left the gallery are left out."""
    rows = world.rows(encoder)
    at_hand = [image for image in images if image in rows]
    facts = world.view(encoder).facts([rows[image] for image in at_hand])
    return {image: attribution_of(its)._asdict() for image, its in zip(at_hand, facts, strict=True)}
