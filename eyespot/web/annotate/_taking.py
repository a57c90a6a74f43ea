"""The labelled set as one file to take along."""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.export import every, without_photos, write


def zipped(store: AnnotationStore, left_out: Collection[str] = ()) -> bytes:
    """What `eyespot annotate export` writes without some photos, in a zip; `NothingFound` if nothing is labelled."""
    with TemporaryDirectory(prefix="eyespot-set-") as folder:
        out = Path(folder) / "labelled"
        write(store, without_photos(every(store), left_out), out)
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(out.iterdir()):
                archive.write(file, f"{out.name}/{file.name}")
        return packed.getvalue()
