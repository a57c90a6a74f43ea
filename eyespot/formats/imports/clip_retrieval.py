"""Folders as clip-retrieval's `inference` writes them: `img_emb/img_emb_N.npy` beside `metadata/metadata_N.parquet`.

Layout after clip-retrieval's writer; embedding-reader and autofaiss read the same.
"""

from __future__ import annotations

import re
from pathlib import Path

from eyespot.formats.imports.items import Layout
from eyespot.formats.imports.registered import ImportSource, Part
from eyespot.types import EyespotError, UsageError

LAYOUT = Layout(keys=("key", "image_path", "url"), paths=("image_path", "url"))


def source(places: list[Path]) -> ImportSource:
    """What a folder holds, part by part in the order of their numbers; `UsageError` if it is not one."""
    if len(places) != 1 or not places[0].is_dir():
        raise UsageError(f"{', '.join(map(str, places))} is not a folder; name one that holds img_emb and metadata")
    folder = places[0].absolute()
    vectors, tables = _numbered(folder / "img_emb", "npy"), _numbered(folder / "metadata", "parquet")
    if not vectors:
        raise UsageError(f"{folder} holds no img_emb/img_emb_0.npy; name the output folder of clip-retrieval inference")
    if tables and (apart := sorted(vectors.keys() ^ tables.keys())):
        here, lacking = ("img_emb", "metadata") if apart[0] in vectors else ("metadata", "img_emb")
        way_out = "complete it (a cut download?) or move it away"
        raise EyespotError(f"{folder} has part {apart[0]} in {here} and not in {lacking}; {way_out}")
    parts = [Part(str(number), path, tables.get(number)) for number, path in sorted(vectors.items())]
    nothing = f"{folder} has no metadata; rows are named by part and row, and nothing is known of them"
    notes = [] if tables else [nothing]
    if (folder / "text_emb").is_dir():
        notes.append("text_emb is not imported: a gallery holds vectors of pictures")
    return ImportSource("clip-retrieval", folder, parts, LAYOUT, notes)


def _numbered(folder: Path, suffix: str) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for path in sorted(folder.glob(f"{folder.name}_*.{suffix}")):
        match = re.fullmatch(rf"{folder.name}_([0-9]{{1,18}})\.{suffix}", path.name)
        if match and int(match[1]) in found:
            raise EyespotError(f"{found[int(match[1])]} and {path.name} have one number; move one of them away")
        if match:
            found[int(match[1])] = path
    return found
