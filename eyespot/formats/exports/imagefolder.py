"""The `imagefolder` layout of Hugging Face: `SPLIT/NAME.jpg`, and every fact in `SPLIT/metadata.parquet`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.formats.folders import FileNames, write_card

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write pictures with every fact beside them, as the imagefolder of Hugging Face datasets."
OPTIONS = ("category", "split")


def write(rows: ExportRows, folder: Path) -> int:
    """A folder for each value of the column `split` (else `train`), in it one for each value of `category`."""
    splits: dict[str, _Split] = {}
    licences: set[str] = set()
    column = rows.column(rows.options.split) if rows.options.split else None
    written = 0
    try:
        for row, picture in rows.pictures():
            value = row.facts[column] if column else "train"
            # As the name of a split: letters, digits and underscores; what has none is `none`
            name = re.sub(r"\W+", "_", str("none" if value is None else value), flags=re.ASCII).strip("_") or "none"
            if name not in splits:
                splits[name] = _Split(folder / name, rows)
            splits[name].add(row.facts, picture)
            licences |= {row.facts["licence"]} if row.facts.get("licence") else set()
            written += 1
    finally:
        for split in splits.values():
            split.close()
    tables = {"default": {name: f"{name}/**" for name in sorted(splits)}}
    write_card(folder, tables, "Pictures and their facts, written by `eyespot export imagefolder`.", licences)
    return written


class _Split:
    """The pictures of a split, and the table beside them as it grows."""

    def __init__(self, folder: Path, rows: ExportRows) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.folder, self.names, self.folders = folder, FileNames(), FileNames()
        self.category = rows.column(rows.options.category) if rows.options.category else None
        self.of_category: dict[Any, str] = {}
        facts = [field for field in rows.schema if field.name not in ("paths", "file_name")]
        self.schema = pa.schema([pa.field("file_name", pa.string()), *facts])
        self.held: list[dict[str, Any]] = []
        folder.mkdir()
        self.writer = pq.ParquetWriter(folder / "metadata.parquet", self.schema, compression="zstd")

    def add(self, facts: dict[str, Any], picture: Any) -> None:
        below = ""
        if self.category:
            value = facts[self.category]
            if value not in self.of_category:
                self.of_category[value] = self.folders.take(str("none" if value is None else value), "")
                (self.folder / self.of_category[value]).mkdir()
            below = self.of_category[value] + "/"
        name = below + self.names.take(picture.name, picture.suffix)
        (self.folder / name).write_bytes(picture.data)
        self.held.append({**facts, "file_name": name})
        if len(self.held) == 1 << 14:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        self.writer.write_table(pa.Table.from_pylist(self.held, self.schema))
        self.held = []

    def close(self) -> None:
        self._flush()
        self.writer.close()
