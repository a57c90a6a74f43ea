"""Galleries on object storage or anywhere else that fsspec reaches: published from here, searched in a local copy.

    publish(Path(".eyespot"), "s3://bucket/birds")
    gallery = fetch("s3://bucket/birds")          # a folder like any other gallery

At the address every file has a name that its content decides (`shards/00000/items.1a2b3c4d5e6f.parquet`) and is never
changed; `gallery.json` says which of them are the gallery and is written last.
"""

from __future__ import annotations

from eyespot.gallery.remote.fetching import copies, fetch
from eyespot.gallery.remote.manifest import MANIFEST, OURS
from eyespot.gallery.remote.publishing import publish
from eyespot.gallery.remote.stores import address_of

__all__ = ["MANIFEST", "OURS", "address_of", "copies", "fetch", "publish"]
