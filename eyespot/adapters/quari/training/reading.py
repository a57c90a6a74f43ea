"""Pairs of vectors as they lie on disk, one file or a folder of them.

texts.npy, images.npy     (n, E) and (m, E); with another n and m also of.npy (n,), the row of each text's image;
                          ids.txt, a line an image, if rows of one id are one image. Also as .pt tensors.
*.npz, *.pt               the same as a mapping: texts, images, and of, ids where there are any
img_emb/, text_emb/       clip-retrieval's inference with both kinds of vectors, row by row
*.parquet                 columns text_embedding and image_embedding, lists of numbers; and image_id if there is one
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari.files import arrays_in
from eyespot.adapters.quari.training.data import Pairs
from eyespot.types import NothingFound, UsageError, quantity

Tell: TypeAlias = Callable[[str], object]  # a warning

TEXTS, IMAGES, IMAGE_ID = "text_embedding", "image_embedding", "image_id"
TENSORS, TENSOR_FILE = (".pt", ".pth"), "a .pt of vectors"


def read_pairs(place: Path, tell: Tell = lambda _: None) -> Pairs:
    """The pairs of a file or folder; `UsageError` if it holds none in a layout that is known. `tell` gets warnings."""
    if not place.exists():
        raise UsageError(f"there is nothing at {place}; name a file or folder of pairs")
    found = _folder(place, tell) if place.is_dir() else _together(place, [place], tell)
    if not len(found):
        raise NothingFound(f"{place} holds no pair of a text and an image")
    return found


def read_images(place: Path) -> tuple[NDArray[Any], Sequence[str] | None]:
    """The images of pairs and their ids, if they have any; or of an array of vectors alone."""
    if place.is_file() and place.suffix == ".npy":
        return read_vectors(place), None
    if place.is_file() and place.suffix in TENSORS and isinstance(array := arrays_in(place, TENSOR_FILE), np.ndarray):
        return _rows(place, array), None
    pairs = read_pairs(place)
    return pairs.images, pairs.ids


def read_vectors(path: Path) -> NDArray[Any]:
    """An array of vectors (rows, E) from `.npy`, which is mapped and not read, or `.pt`."""
    return _rows(path, arrays_in(path, TENSOR_FILE) if path.suffix in TENSORS else _mapped(path))


def _rows(path: Path, array: Any) -> NDArray[Any]:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind != "f":
        raise UsageError(f"{path} holds no rows of vectors; save one array of shape (rows, dim)")
    return array


# -- folders ------------------------------------------------------------------------------------------------


def _folder(place: Path, tell: Tell) -> Pairs:
    if (place / "img_emb").is_dir() and (place / "text_emb").is_dir():
        texts, images = (sorted((place / name).glob("*.npy"), key=_natural) for name in ("text_emb", "img_emb"))
        if len(texts) != len(images):
            raise UsageError(
                f"{place} has {len(texts)} parts of texts and {len(images)} of images; fetch what is missing"
            )
        both = [(read_vectors(text), read_vectors(image)) for text, image in zip(texts, images, strict=True)]
        return _joined([_pairs(place, {"texts": text, "images": image}) for text, image in both])
    # Files of one array each, by what they hold; nothing unless there are both texts and images
    names = [(name, place / f"{name}{end}") for name in ("texts", "images", "of") for end in (*TENSORS, ".npy")]
    found = {name: path for name, path in names if path.is_file()}
    if {"texts", "images"} <= found.keys():
        arrays: dict[str, Any] = {name: read_vectors(path) for name, path in found.items() if name != "of"}
        if "of" in found:
            of = found["of"]
            arrays["of"] = arrays_in(of, TENSOR_FILE) if of.suffix in TENSORS else np.array(_mapped(of))
        if (ids := place / "ids.txt").is_file():
            arrays["ids"] = ids.read_text(encoding="utf-8").splitlines()
        return _pairs(place, arrays)
    for suffix in (".parquet", ".npz", ".pt"):
        if files := sorted(place.glob(f"*{suffix}"), key=_natural):
            return _together(place, files, tell)
    raise UsageError(
        f"{place} holds no pairs; expected texts.npy and images.npy, .pt, .npz or .parquet files, "
        "img_emb and text_emb of clip-retrieval, or a gallery"
    )


def _together(place: Path, files: Sequence[Path], tell: Tell) -> Pairs:
    parts = []
    for path in files:
        if path.suffix not in READERS:
            raise UsageError(f"{path} is not a file of pairs; known are: {', '.join(READERS)}")
        parts.append(READERS[path.suffix](path, tell))
    return _joined(parts)


def _joined(parts: Sequence[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    if len(dims := sorted({part.dim for part in parts})) > 1:
        raise UsageError(f"the parts have vectors of {dims} components; embed all alike")
    starts = np.cumsum([0, *(len(part.images) for part in parts)])
    texts, images = np.concatenate([part.texts for part in parts]), np.concatenate([part.images for part in parts])
    of = np.concatenate([part.of + start for part, start in zip(parts, starts.tolist(), strict=False)])
    named = all(part.ids is not None for part in parts)
    return Pairs(texts, images, of, [name for part in parts for name in part.ids or ()] if named else None)


def _natural(path: Path) -> list[Any]:
    """Part 10 comes after part 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


# -- files --------------------------------------------------------------------------------------------------


def _pairs(path: Path, arrays: Mapping[str, Any]) -> Pairs:
    if lacking := [name for name in ("texts", "images") if name not in arrays]:
        raise UsageError(f"{path} has no {lacking[0]}; it holds: {', '.join(map(str, arrays)) or 'nothing'}")
    texts, images = (np.asanyarray(arrays[name]) for name in ("texts", "images"))
    for name, array in (("texts", texts), ("images", images)):
        if array.ndim != 2 or array.dtype.kind != "f":
            raise UsageError(
                f"{path}: {name} are rows of float vectors, not {array.dtype} of shape {array.shape}; save them as "
                "(rows, dim) with astype('float32')"
            )
    of = np.asarray(arrays["of"]) if "of" in arrays else np.arange(len(texts))
    if "of" not in arrays and len(texts) != len(images):
        raise UsageError(f"{path} has {len(texts)} texts and {len(images)} images; name in `of` the row of each text's")
    if of.ndim != 1 or of.dtype.kind not in "iu":
        raise UsageError(f"{path}: `of` holds one row number for each text, not {of.dtype} of shape {of.shape}")
    ids = [str(one) for one in arrays["ids"]] if arrays.get("ids") is not None else None
    return Pairs(texts, images, of.astype(np.int64), ids)


def _npz(path: Path, _tell: Tell) -> Pairs:
    try:
        with np.load(path, allow_pickle=False) as file:
            return _pairs(path, {name: file[name] for name in file.files})
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path} cannot be read ({error}); save it with numpy.savez") from None


def _pt(path: Path, _tell: Tell) -> Pairs:
    contents = arrays_in(path, TENSOR_FILE)
    if not isinstance(contents, dict):
        raise UsageError(f"{path} is not a mapping with texts and images")
    return _pairs(path, contents)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return found
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path} is not an .npy file of numbers ({error}); save the vectors with numpy.save") from None


def _parquet(path: Path, tell: Tell) -> Pairs:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        if lacking := [name for name in (TEXTS, IMAGES) if name not in names]:
            raise UsageError(f"{path} has no column {lacking[0]}; it has: {', '.join(names)}")
        table = pq.read_table(path, columns=[name for name in (TEXTS, IMAGES, IMAGE_ID) if name in names])
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read ({error}); write it again") from None
    whole = table.drop_null()
    if len(whole) < len(table):
        tell(f"{path}: {quantity(table.num_rows - whole.num_rows, 'row lacks', 'rows lack')} a vector")
    ids = [str(one) for one in whole[IMAGE_ID].to_pylist()] if IMAGE_ID in names else None
    texts, images = (_listed(path, name, whole[name]) for name in (TEXTS, IMAGES))
    return _pairs(path, {"texts": texts, "images": images, "ids": ids})


def _listed(path: Path, name: str, column: Any) -> NDArray[np.float32]:
    """A column of lists of numbers as rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type)):
        raise UsageError(f"{path}: {name} is a column of {column.type}, not of lists of numbers")
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) > 1:
        raise UsageError(f"{path}: the vectors of {name} have {sorted(lengths)} components; embed all alike")
    flat = pc.list_flatten(column).to_numpy().astype(np.float32)
    rows: NDArray[np.float32] = flat.reshape(len(column), lengths[0] if lengths else 0)
    return rows


READERS: Mapping[str, Callable[[Path, Tell], Pairs]] = {
    ".npz": _npz,
    ".pt": _pt,
    ".pth": _pt,
    ".parquet": _parquet,
}
