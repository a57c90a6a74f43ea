"""eyespot finds the picture an expert means, proves how well it does, and builds the test sets that prove it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyespot.search.collection import Collection

__all__ = ["__version__", "open"]
__version__ = "0.1.0"
logging.getLogger("eyespot").addHandler(logging.NullHandler())  # silent, unless a program or --verbose asks for it


def open(gallery: Path | str, encoder: str | None = None, index: str = "exact") -> Collection:
    """A gallery ready to be searched, in the space of one of its encoders (the default one for None).

    An address ("s3://bucket/birds") is that of a published gallery; its local copy is made, or brought up to date.
    `index`: "exact", or the name of an approximate one that `eyespot tune` made ("faiss"). Raises `UsageError` if
    there is no gallery, or it has no vectors of that encoder.
    """
    # Imported on use, so that `import eyespot` costs nothing.
    from eyespot.search.collection import Collection

    if ":/" in str(gallery):
        from eyespot.gallery.remote import address_of, fetch

        url = address_of(gallery)
        gallery = gallery if url is None else fetch(url)
    return Collection(gallery, encoder, index)
