"""HDF5 files of vectors as the ILIAS code writes them: `features_positives.hdf5`, `features_distractors_00000.hdf5`, …

Layout after that code: `features` (rows, dim), `index` (rows,). It packs features in chunks, which no program can map:
those vectors are copied. Files with features in one piece stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eyespot.formats.imports.items import Layout
from eyespot.formats.imports.registered import ImportSource, Part
from eyespot.gallery import hdf5
from eyespot.types import UsageError

LAYOUT = Layout(keys=(hdf5.NAME,), paths=())


def source(places: Sequence[Path]) -> ImportSource:
    """What files and folders hold, a part for each file in order; `UsageError` if they hold no HDF5 files.

    A folder may also hold queries; a file that is named itself is taken whatever it is called.
    """
    missing = [place for place in places if not place.exists()]
    if missing:
        raise UsageError(f"there is nothing at {missing[0]}; check the path")
    files, queries = list[Path](), list[Path]()
    for place in (place.absolute() for place in places):
        inside = [path for path in sorted(place.glob("*")) if path.suffix.lower() in hdf5.SUFFIXES]
        queries += [path for path in inside if "queries" in path.stem]
        files += [path for path in inside if "queries" not in path.stem] if place.is_dir() else [place]
    if not files or any(path.suffix.lower() not in hdf5.SUFFIXES for path in files):
        raise UsageError(f"{', '.join(map(str, places))}: no .hdf5 files there; name them, or the folder that has them")
    files = list(dict.fromkeys(files))
    notes = [f"{path.name} holds queries by its name and is left out; name the file itself" for path in queries]
    packed = [path for path in files if not isinstance(hdf5.features(path), np.memmap)]
    if packed:
        notes.append(
            f"the vectors of {len(packed)} of {len(files)} files are packed in chunks (such as {packed[0].name}) and "
            "cannot be searched in place: they are copied"
        )
    return ImportSource("hdf5", files[0].parent, [Part(path.stem, path, path) for path in files], LAYOUT, notes)
