"""Folders as clip-retrieval's `inference` writes them: `img_emb/img_emb_N.npy` beside `metadata/metadata_N.parquet`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exporting import ExportRows

ABOUT = "Write img_emb/img_emb_N.npy and metadata/metadata_N.parquet, a million rows per part."
OPTIONS = ("float16",)


class ClipRetrievalLayout:
    """`image_path` (whole), `caption` (a column of that name, else `title`), `key` (the row's id), then every fact."""

    vectors = "img_emb/img_emb_{}.npy"
    table = "metadata/metadata_{}.parquet"
    part_rows = 1_000_000

    def columns(self, facts: pa.Table) -> pa.Table:
        """The table as clip-retrieval's own readers expect it."""
        import pyarrow as pa

        from eyespot.formats.imports.tables import pc

        paths = facts["paths"]
        # Lists with one null where there was nothing, so that each has a first element
        place = pc.if_else(pc.equal(pc.list_value_length(paths), 0), pa.scalar([None], paths.type), paths)
        named = {"image_path": pc.list_element(place, 0)}
        spelled = {name.lower(): name for name in reversed(facts.column_names)}
        caption = spelled.get("caption", spelled.get("title"))
        if caption is not None:
            named["caption"] = facts[caption]
        named["key"] = facts["id"]
        rest = {name: facts[name] for name in facts.column_names if name.lower() not in {*named, "id"}}
        return pa.table(named | rest)


def write(rows: ExportRows, folder: Path) -> int:
    """The parts; embedding-reader, autofaiss and `clip-retrieval index` read them."""
    from eyespot.formats.exports._vectors import write_parts

    return write_parts(rows, folder, ClipRetrievalLayout())
