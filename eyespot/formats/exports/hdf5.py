"""HDF5 as ILIAS exchanges vectors: `features` (rows, dim), `index` (ids), and a dataset for each fact, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write one HDF5 file: vectors as `features`, ids as `index`, and every fact under `facts/`."
OPTIONS = ("float16",)


def write(rows: ExportRows, folder: Path) -> int:
    """`vectors.hdf5`; a missing number is NaN (of whole numbers too), a missing text is empty."""
    from eyespot.gallery.hdf5 import FEATURES, INDEX, new_file

    with new_file(folder / "vectors.hdf5") as (file, text):
        features = file.create_dataset(FEATURES, (len(rows), rows.view.space.dim), rows.dtype)
        features.attrs["encoder"] = rows.view.space.encoder
        index = file.create_dataset(INDEX, (len(rows),), text)
        facts = {
            name: file.create_dataset(f"facts/{_member(name)}", (len(rows),), text if _is_text(kind) else "f8")
            for name, kind in zip(rows.columns.schema.names, rows.columns.schema.types, strict=True)
            if name not in ("id", "paths")
        }
        paths = file.create_dataset("paths", (len(rows),), text)
        done = 0
        for chunk in rows.chunks():
            part = slice(done, done + len(chunk.vectors))
            features[part] = chunk.vectors.astype(rows.dtype)
            index[part] = chunk.facts["id"].to_pylist()
            paths[part] = [(places or [""])[0] for places in chunk.facts["paths"].to_pylist()]
            for name, dataset in facts.items():
                dataset[part] = _values(chunk.facts[name].to_pylist(), dataset.dtype.kind == "f")
            done = part.stop
    return done


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return not (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _member(name: str) -> str:
    """A column's name as HDF5 holds it, where a slash would be a group."""
    return name.replace("/", "_").strip(".") or "_"


def _values(values: list[Any], number: bool) -> list[Any]:
    from eyespot.formats.exporting import plain

    if number:
        return [float("nan") if value is None else value for value in values]
    return ["" if value is None else str(plain(value)) for value in values]
