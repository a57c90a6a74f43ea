"""HDF5 files of vectors as the ILIAS code writes them: mapped where that can be, copied where not, links refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eyespot.gallery.disk import map_vectors, shard_paths
from eyespot.gallery.formats import hdf5
from eyespot.gallery.formats.registered import Imported, take_in
from eyespot.gallery.view import Gallery, View
from eyespot.types import EyespotError, UsageError
from tests.lazy_import import lazy_import, requires

h5py = lazy_import("h5py")
pytestmark = requires("h5py")
NAME = "open_clip:ViT-B-32/openai"


def unit(rows: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((rows, 8))
    vectors: np.ndarray = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)
    return vectors


def write(place: Path, vectors: np.ndarray, names: list[str] | None = None, level: int | None = None) -> Path:
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
    return take_in(gallery, hdf5.source(places), NAME, hdf5.WhereItCan())


def opened(gallery: Path) -> View:
    found = Gallery(gallery)
    return found.view(found.stem())


def test_vectors_in_one_piece_stay_where_they_are(tmp_path: Path) -> None:
    place = write(tmp_path / "features_distractors_00000.hdf5", unit(30), named(30))
    take(tmp_path / "g", place)
    view = opened(tmp_path / "g")
    assert Path(view.blocks[0].filename) == place and np.array_equal(view.blocks[0], unit(30))  # type: ignore[attr-defined]


def test_vectors_in_chunks_are_copied_and_that_is_said(tmp_path: Path) -> None:
    place = write(tmp_path / "features_distractors_00000.hdf5", unit(30), named(30), level=0)  # as ILIAS's code does
    done = take(tmp_path / "g", place)
    copied = map_vectors(shard_paths(tmp_path / "g")[0], opened(tmp_path / "g").stem)
    assert np.allclose(copied, unit(30), atol=1e-3) and "1 of 1 files are packed in chunks" in done.notes[0]


def test_a_folder_is_its_files_without_the_queries(tmp_path: Path) -> None:
    write(tmp_path / "d" / "features_distractors_00001.hdf5", unit(3, 1), named(3, 3))
    write(tmp_path / "d" / "features_distractors_00000.hdf5", unit(3), named(3))
    write(tmp_path / "d" / "features_image_queries.hdf5", unit(2, 2), ["q/1", "q/2"])
    done = take(tmp_path / "g", tmp_path / "d")
    facts = opened(tmp_path / "g").facts(range(6))
    assert [fact["image_id"] for fact in facts] == named(6) and "features_image_queries" in done.notes[0]


def test_rows_are_named_by_the_index(tmp_path: Path) -> None:
    take(tmp_path / "g", write(tmp_path / "f.hdf5", unit(2), ["shoe/P000_00.jpg", "shoe/P001_00.jpg"]))
    facts = opened(tmp_path / "g").facts([0, 1])
    assert [fact["id"] for fact in facts] == ["hdf5:shoe/P000_00.jpg", "hdf5:shoe/P001_00.jpg"]


def test_without_an_index_rows_are_named_by_their_number(tmp_path: Path) -> None:
    take(tmp_path / "g", write(tmp_path / "f.h5", unit(2)))
    assert [fact["id"] for fact in opened(tmp_path / "g").facts([0, 1])] == ["hdf5:f/0", "hdf5:f/1"]


def test_the_same_line_again_adds_nothing(tmp_path: Path) -> None:
    place = write(tmp_path / "f.hdf5", unit(4), named(4), level=1)
    assert [take(tmp_path / "g", place).added for _ in range(2)] == [4, 0]


def test_a_file_that_changed_is_told_when_it_is_searched(tmp_path: Path) -> None:
    place = write(tmp_path / "f.hdf5", unit(4), named(4))
    take(tmp_path / "g", place)
    write(place, unit(5), named(5))
    with pytest.raises(EyespotError, match="changed since it was imported"):
        _ = opened(tmp_path / "g").blocks


def test_names_and_vectors_must_be_of_one_run(tmp_path: Path) -> None:
    with pytest.raises(EyespotError, match=r"4 rows and .* has 3"):
        take(tmp_path / "g", write(tmp_path / "f.hdf5", unit(4), named(3)))


def test_features_in_another_file_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret.hdf5", unit(3))
    with h5py.File(tmp_path / "f.hdf5", "w") as file:
        file["features"] = h5py.ExternalLink("secret.hdf5", "features")
    with pytest.raises(EyespotError, match="no rows of float vectors called features"):
        hdf5.source([tmp_path / "f.hdf5"])


@pytest.mark.parametrize(("content", "text"), [(b"nothing", "cannot be read as HDF5"), (b"", "cannot be read as HDF5")])
def test_what_is_no_hdf5_is_told(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "f.hdf5").write_bytes(content)
    with pytest.raises(EyespotError, match=text):
        hdf5.source([tmp_path / "f.hdf5"])


def test_a_cut_file_is_told(tmp_path: Path) -> None:
    place = write(tmp_path / "f.hdf5", unit(4000), named(4000))
    place.write_bytes(place.read_bytes()[:-20_000])
    with pytest.raises(EyespotError, match="cannot be read as HDF5"):
        take(tmp_path / "g", place)


def test_places_without_such_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no \.hdf5 files there"):
        hdf5.source([tmp_path / "empty"])
    with pytest.raises(UsageError, match="nothing at"):
        hdf5.source([tmp_path / "nowhere.hdf5"])


@pytest.mark.parametrize(
    ("index", "text"), [([], "has 30 rows and .* has 0"), ([[name] for name in named(30)], r"index of shape \(30, 1\)")]
)
def test_names_that_are_not_one_for_each_row_are_refused(tmp_path: Path, index: list[str], text: str) -> None:
    place = write(tmp_path / "a.hdf5", unit(30))
    with h5py.File(place, "a") as file:
        file.create_dataset("index", data=index, dtype=h5py.string_dtype())
    with pytest.raises(EyespotError, match=text):
        take(tmp_path / "g", place)
