"""HDF5 files of vectors as the ILIAS code writes them: mapped where that can be, copied where not, links refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from eyespot.formats.imports import hdf5
from eyespot.formats.imports.registered import Imported, take_in
from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import lazy_import, requires
from tests.wording import raises
from tests.worlds.galleries import facts_of, opened

h5py = lazy_import("h5py")
pytestmark = requires("h5py")


def unit(rows: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((rows, 8))
    vectors: np.ndarray = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)
    return vectors


def write(place: Path, vectors: np.ndarray, names: Sequence[object] | None = None, level: int | None = None) -> Path:
    """A file in ILIAS's layout; with a level of compression, in chunks."""
    place.parent.mkdir(parents=True, exist_ok=True)
    packed = {} if level is None else {"compression": "gzip", "compression_opts": level}
    with h5py.File(place, "w") as file:
        if names is not None:
            file.create_dataset("index", data=names, dtype=h5py.string_dtype(encoding="ascii"))
        file.create_dataset("features", data=vectors, **packed)
    return place


def named(rows: int, first: int = 0) -> list[str]:
    return [f"yfcc_{n // 10:04d}/{n:07d}" for n in range(first, first + rows)]


def take(gallery: Path, *places: Path) -> Imported:
    return take_in(gallery, hdf5.source(places), "open_clip:ViT-B-32/openai")


def test_vectors_in_one_piece_stay_where_they_are_and_what_changes_there_is_told(tmp_path: Path) -> None:
    place = write(tmp_path / "features_distractors_00000.hdf5", unit(30), named(30))
    take(tmp_path / "g", place)
    view = opened(tmp_path / "g")
    assert Path(view.blocks[0].filename) == place and np.array_equal(view.blocks[0], unit(30))  # type: ignore[attr-defined]
    write(place, unit(5), named(5))
    with raises(EyespotError):
        _ = opened(tmp_path / "g").blocks


def test_vectors_in_chunks_are_copied_once_and_that_is_said(tmp_path: Path) -> None:
    place = write(tmp_path / "features_distractors_00000.hdf5", unit(30), named(30), level=0)  # as ILIAS's code does
    done = take(tmp_path / "g", place)
    copied = map_vectors(shard_paths(tmp_path / "g")[0], opened(tmp_path / "g").stem)
    assert np.allclose(copied, unit(30), atol=1e-3) and "1 of 1 files" in done.notes[0]
    assert take(tmp_path / "g", place).added == 0


def test_a_folder_is_its_files_without_the_queries(tmp_path: Path) -> None:
    write(tmp_path / "d" / "features_distractors_00001.hdf5", unit(3, 1), named(3, 3))
    write(tmp_path / "d" / "features_distractors_00000.hdf5", unit(3), named(3))
    write(tmp_path / "d" / "features_image_queries.hdf5", unit(2, 2), ["q/1", "q/2"])
    done = take(tmp_path / "g", tmp_path / "d")
    assert [fact["image_id"] for fact in facts_of(tmp_path / "g")] == named(6)
    assert "features_image_queries" in done.notes[0]


@pytest.mark.parametrize(
    ("names", "ids"), [(["a/P0.jpg", "a/P1.jpg"], ["hdf5:a/P0.jpg", "hdf5:a/P1.jpg"]), (None, ["hdf5:f/0", "hdf5:f/1"])]
)
def test_rows_are_named_by_the_index_or_a_number(tmp_path: Path, names: list[str] | None, ids: list[str]) -> None:
    take(tmp_path / "g", write(tmp_path / "f.h5", unit(2), names))
    assert [fact["id"] for fact in facts_of(tmp_path / "g")] == ids


@pytest.mark.parametrize("names", [named(3), [], [[name] for name in named(4)]], ids=["fewer", "none", "columns"])
def test_names_that_are_not_one_for_each_row_are_refused(tmp_path: Path, names: list[object]) -> None:
    with raises(EyespotError):
        take(tmp_path / "g", write(tmp_path / "f.hdf5", unit(4), names))


def test_features_in_another_file_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret.hdf5", unit(3))
    with h5py.File(tmp_path / "f.hdf5", "w") as file:
        file["features"] = h5py.ExternalLink("secret.hdf5", "features")
    with raises(EyespotError):
        hdf5.source([tmp_path / "f.hdf5"])


def test_what_is_no_hdf5_or_cut_or_not_there_is_told(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.hdf5", unit(4000), named(4000)).read_bytes()
    for content in (b"", b"nothing", whole[:-20_000]):
        (tmp_path / "f.hdf5").write_bytes(content)
        with pytest.raises(EyespotError, match="cannot be read as"):
            take(tmp_path / "g", tmp_path / "f.hdf5")
    (tmp_path / "empty").mkdir()
    for place in ("empty", "nowhere.hdf5"):
        with raises(UsageError):
            hdf5.source([tmp_path / place])
