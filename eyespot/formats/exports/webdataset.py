"""WebDataset shards: `00000.tar`, … with `KEY.jpg` and `KEY.json`, and `KEY.txt` where a picture has a caption."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write webdataset shards: tars with each picture, its facts as JSON, and its caption as text."
OPTIONS = ("shard_rows",)


def write(rows: ExportRows, folder: Path) -> int:
    """Shards of `shard_rows` pictures; a key is the picture's place, for a dot in a name would end it."""
    from eyespot.formats.exporting import caption_column, known_facts

    caption = caption_column(rows)
    written, tar = 0, None
    try:
        for row, picture in rows.pictures():
            if written % rows.options.shard_rows == 0:
                if tar is not None:
                    tar.close()
                path = folder / f"{written // rows.options.shard_rows:05d}.tar"
                tar = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 # closed below
            assert tar is not None
            key, facts = f"{written:09d}", known_facts(row.facts)
            facts["file_name"] = facts.get("file_name") or picture.name + picture.suffix
            _add(tar, key + picture.suffix, picture.data)
            _add(tar, f"{key}.json", json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace"))
            if caption and facts.get(caption):
                _add(tar, f"{key}.txt", str(facts[caption]).encode("utf-8", "replace"))
            written += 1
    finally:
        if tar is not None:
            tar.close()
    return written


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)  # without time and owner: equal pictures give equal shards
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))
