"""Vectors that others computed: imported where they lie, exported and taken in again, whatever state they are in."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot import rooms
from eyespot.gallery.disk import map_vectors, read_note, read_rows, shard_paths, write_items
from eyespot.gallery.exporting import ExportOptions, ExportReport, ExportRows, export
from eyespot.gallery.exports import clip_retrieval as clip_retrieval_export
from eyespot.gallery.exports import npy as npy_export
from eyespot.gallery.exports._vectors import write_parts
from eyespot.gallery.formats import clip_retrieval, npy
from eyespot.gallery.formats.exported import tells_too_much
from eyespot.gallery.formats.items import KnownHashes, Naming, key_hashes, repeated
from eyespot.gallery.formats.registered import Copied, Imported, InPlace, VectorImport, take_in
from eyespot.gallery.formats.tables import CsvFacts, ParquetFacts
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.photos.labels import kind_of, wider
from eyespot.gallery.view import Gallery, View
from eyespot.types import Encoder, EyespotError, NothingFound, UsageError
from tests.examples import examples

DIM = 8
NAME = "open_clip:ViT-B-32/openai"

# With every run that finds photos
CHANGING = ("gallery.toml", "digests.txt", "index.sqlite", "ledger.sqlite", "ledger/digests.txt")


def unit(rows: int, seed: int = 0, dtype: str = "float16") -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, DIM))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(dtype)


def add_part(folder: Path, number: str, vectors: np.ndarray, columns: Mapping[str, Sequence[Any]] | None) -> None:
    """One numbered part of a clip-retrieval folder."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    np.save(folder / "img_emb" / f"img_emb_{number}.npy", vectors)
    if columns is not None:
        pq.write_table(pa.table(dict(columns)), folder / "metadata" / f"metadata_{number}.parquet")


def keys(rows: int, first: int = 0) -> dict[str, list[str]]:
    numbers = range(first, first + rows)
    return {"image_path": [f"pictures/{n}.jpg" for n in numbers], "key": [f"{n:06d}" for n in numbers]}


def take(gallery: Path, folder: Path, way: VectorImport | None = None, encoder: str = NAME) -> Imported:
    return take_in(gallery, clip_retrieval.source([folder]), encoder, way or InPlace())


def opened(gallery: Path) -> View:
    found = Gallery(gallery)
    return found.view(found.stem())


def ids(gallery: Path) -> list[str]:
    view = opened(gallery)
    return [fact["id"] for fact in view.facts(range(int(view.starts[-1])))]


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a gallery but the ledger, bit for bit."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and "ledger" not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clip-retrieval folder of two parts, the second with a two-digit number and padded."""
    add_part(tmp_path / "laion", "02", unit(5, 1), keys(5) | {"caption": ["a heron"] * 5, "width": [640] * 5})
    add_part(tmp_path / "laion", "10", unit(4, 2), keys(4, 5) | {"caption": ["a goose"] * 4, "width": [800] * 4})
    return tmp_path / "laion"


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    return tmp_path / "gallery"


def written(format: Any, view: View, out: Path, **options: Any) -> ExportReport:
    """A space in one of the formats."""
    return export(view, format.write, out, ExportOptions(**options))


# -- in place -----------------------------------------------------------------------------------------------


def test_a_gallery_exported_and_imported_in_place_has_the_same_vectors_and_facts(
    tmp_path: Path, photos: Path, starter: Encoder
) -> None:
    index(tmp_path / "first", [str(photos)], [starter])
    before = opened(tmp_path / "first")
    exported = written(clip_retrieval_export, before, tmp_path / "out")
    imported = take(tmp_path / "second", tmp_path / "out", encoder="starter")
    after = opened(tmp_path / "second")

    assert (exported.rows, imported.rows, imported.added) == (9, 9, 9)
    np.testing.assert_array_equal(np.concatenate(after.blocks), np.concatenate(before.blocks))
    was, now = before.facts(range(9)), after.facts(range(9))
    assert [fact["id"] for fact in now] == ["clip-retrieval:" + fact["id"] for fact in was]
    for name in ("path", "width", "height", "size", "mtime", "taken", "camera"):
        assert [fact[name] for fact in now] == [fact[name] for fact in was]


def test_nothing_is_copied_and_the_note_names_the_source(gallery: Path, folder: Path) -> None:
    take(gallery, folder)

    assert not list(gallery.rglob("*.npy"))
    shards, stem = shard_paths(gallery), Gallery(gallery).stem()
    notes = [read_note(shard, stem) for shard in shards]
    assert [note and note.source for note in notes] == [
        str(folder / "img_emb" / f"img_emb_{n}.npy") for n in ("02", "10")
    ]
    np.testing.assert_array_equal(map_vectors(shards[1], stem), unit(4, 2))
    assert map_vectors(shards[1], stem).dtype == np.float16


def test_rows_keep_their_keys_paths_labels_and_sizes(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    first, last = opened(gallery).facts([0, 8])

    assert (first["id"], last["id"]) == ("clip-retrieval:000000", "clip-retrieval:000008")
    assert first["path"] == str(folder / "pictures" / "0.jpg")
    assert (first["caption"], last["caption"], first["width"], last["width"]) == ("a heron", "a goose", 640, 800)
    assert (first["size"], first["taken"], first["camera"]) == (None, None, None)
    assert opened(gallery).live.all()
    assert Gallery(gallery).header.rows == 9


def test_imported_vectors_are_searched_exactly(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    view = opened(gallery)
    found = rooms.load("indexes", "exact", view.blocks).search(unit(4, 2).astype(np.float32), 1, view.live)

    assert found.rows[:, 0].tolist() == [5, 6, 7, 8]


def test_the_same_import_again_adds_nothing_and_a_new_part_is_added(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    before = files(gallery)
    again = take(gallery, folder)
    same = files(gallery)
    add_part(folder, "11", unit(3, 3), keys(3, 9))
    more = take(gallery, folder)

    assert (again.added, again.rows) == (0, 9)
    assert same == before
    assert (more.added, more.rows) == (3, 12)
    assert len(ids(gallery)) == 12


def test_indexing_afterwards_neither_forgets_nor_overwrites_nor_rescans(
    gallery: Path, folder: Path, photos: Path, starter: Encoder
) -> None:
    take(gallery, folder)
    before = files(gallery)
    index(gallery, [str(photos)], [starter])
    summary = index(gallery, [], [starter])
    after = files(gallery)

    # Links to copies come to each shard, and their digests into its list
    lasting = [name for name in before if name not in CHANGING and not name.endswith("digests.txt")]
    assert {name: after[name] for name in lasting} == {name: before[name] for name in lasting}
    assert [shard.name for shard in shard_paths(gallery)] == ["00000", "00001", "00002"]
    assert (summary.pictures, summary.embedded, summary.notes) == (18, 0, [])
    header = Gallery(gallery).header
    assert header.rows == 18
    assert header.spaces[header.default].encoder == NAME
    assert len(ids(gallery)) == 9
    assert len(Gallery(gallery).view(Gallery(gallery).stem("starter")).shards) == 1


def test_what_was_imported_is_not_taken_out(gallery: Path, folder: Path, starter: Encoder) -> None:
    take(gallery, folder)
    (root,) = Gallery(gallery).header.roots.values()

    with pytest.raises(UsageError, match="was imported"):
        index(gallery, [], [starter], Options(remove=[root.path]))

    assert len(ids(gallery)) == 9


@pytest.mark.long
def test_an_import_into_a_gallery_of_photos_leaves_its_default_and_its_photos(
    gallery: Path, folder: Path, photos: Path, starter: Encoder
) -> None:
    index(gallery, [str(photos)], [starter])
    take(gallery, folder)

    header = Gallery(gallery).header
    assert (header.spaces[header.default].encoder, header.rows) == ("starter", 18)
    assert opened(gallery).pending == 9
    assert Gallery(gallery).view(Gallery(gallery).stem(NAME)).facts([0])[0]["caption"] == "a heron"


def kill_at_shard(line: list[str], gallery: Path, shard: int, delay: float) -> bool:
    """Start an import and kill it a moment after it began to write a shard; whether it was still running."""
    process = subprocess.Popen(line, stderr=subprocess.PIPE)
    begun = [gallery / "shards" / name for name in (f".{shard:05d}.part", f"{shard:05d}")]
    while process.poll() is None and not any(place.exists() for place in begun):
        time.sleep(0.001)
    time.sleep(delay)
    running = process.poll() is None
    process.kill()
    process.communicate()
    return running


@pytest.mark.long
def test_killed_at_any_moment_and_run_again_it_ends_in_the_same_gallery(tmp_path: Path) -> None:
    for part in range(8):
        add_part(tmp_path / "big", str(part), unit(20_000, part), keys(20_000, part * 10_000))
    line = [sys.executable, "-m", "eyespot.cli", "import", "clip-retrieval", str(tmp_path / "big"), "-e", NAME, "-g"]
    moment = random.Random(5)
    hits = [
        kill_at_shard([*line, str(tmp_path / "killed")], tmp_path / "killed", shard, moment.uniform(0, 0.06))
        for shard in (0, 1, 3, 4, 6)
    ]
    for gallery in ("killed", "calm"):
        subprocess.run([*line, str(tmp_path / gallery)], check=True, capture_output=True)

    assert sum(hits) >= 4
    assert files(tmp_path / "killed") == files(tmp_path / "calm")
    assert len(set(ids(tmp_path / "calm"))) == 160_000


# -- ids ----------------------------------------------------------------------------------------------------


def test_a_repeated_key_keeps_its_rows_under_ids_of_their_own(gallery: Path, tmp_path: Path) -> None:
    add_part(tmp_path / "a", "0", unit(3), {"key": ["x", "y", "x"]})
    add_part(tmp_path / "b", "0", unit(2, 4), {"key": ["y", "z"]})
    take(gallery, tmp_path / "a")
    take(gallery, tmp_path / "b")

    heads = ["x", "y", "x#0/2", "y#1/0", "z"]
    assert ids(gallery) == ["clip-retrieval:" + head for head in heads]


def test_a_row_is_named_by_key_else_path_else_address_else_part_and_row(gallery: Path, tmp_path: Path) -> None:
    columns = {
        "key": ["k", None, "", None],
        "image_path": ["a.jpg", "b.jpg", None, None],
        "url": ["http://c/d", None, "http://c/e", ""],
    }
    add_part(tmp_path / "a", "7", unit(4), columns)
    take(gallery, tmp_path / "a")
    facts = opened(gallery).facts(range(4))

    assert [fact["id"].removeprefix("clip-retrieval:") for fact in facts] == ["k", "b.jpg", "http://c/e", "7/3"]
    assert [fact["path"] for fact in facts] == [
        str(tmp_path / "a" / "a.jpg"),
        str(tmp_path / "a" / "b.jpg"),
        "http://c/e",
        None,
    ]
    assert facts[0]["url"] == "http://c/d"


@pytest.mark.long
@settings(deadline=None, max_examples=examples(40))
@given(parts=st.lists(st.lists(st.sampled_from("abc"), min_size=1), min_size=1, max_size=4))
def test_ids_told_apart_are_unique_and_the_first_of_each_keeps_its_own(parts: list[list[str]]) -> None:
    known, names = KnownHashes(), list[str]()
    with tempfile.TemporaryDirectory() as place:
        for shard, part in enumerate(parts):
            table = Path(place, "t.parquet")
            pq.write_table(pa.table({"key": part}), table)
            hashes = key_hashes(ParquetFacts(table), Naming("f", "0", clip_retrieval.LAYOUT))
            again = repeated(hashes, known)
            names += [f"{key}#{shard}/{row}" if again[row] else key for row, key in enumerate(part)]
            known.add(hashes)
    assert len(set(names)) == len(names)
    assert {key for key in names if "#" not in key} == {key for part in parts for key in part}


# -- what must not pass -------------------------------------------------------------------------------------


class Trap:
    """A pickle that would leave a file behind if anything loaded it."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.place,)


def test_a_pickle_in_an_array_is_refused_and_not_run(gallery: Path, folder: Path, tmp_path: Path) -> None:
    trap = np.array([Trap(tmp_path / "sprung")] * 5, dtype=object)
    np.save(folder / "img_emb" / "img_emb_02.npy", trap, allow_pickle=True)

    with pytest.raises(EyespotError, match=r"img_emb_02\.npy is no \.npy file of numbers"):
        take(gallery, folder)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is no .npy file"),
        (b"PK\x03\x04 a zip", "is no .npy file"),
        (
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"(" * 60,
            "is no .npy file",
        ),
        (np.zeros((5, 2, 3), np.float32), "not rows of float vectors"),
        (np.zeros((5, 8), np.int8), "not rows of float vectors"),
        (np.zeros((0, 8), np.float32), "not rows of float vectors"),
        (unit(5, dtype="float64"), "import it with --copy"),
        (np.asfortranarray(unit(5)), "import it with --copy"),
        (unit(5) * 3, "not of unit length (row 0: 3.0"),
        (unit(6), "has 6 rows and"),
        (unit(5)[:, :4] * 2, "vectors of 8 components and"),
    ],
)
def test_an_array_that_cannot_be_searched_is_refused_by_name(
    gallery: Path, folder: Path, content: Any, complaint: str
) -> None:
    place = folder / "img_emb" / "img_emb_02.npy"
    if isinstance(content, bytes):
        place.write_bytes(content)
    else:
        np.save(place, content)

    with pytest.raises(EyespotError) as refused:
        take(gallery, folder)
    assert complaint in str(refused.value)
    assert "img_emb_02.npy" in str(refused.value)
    assert not (gallery / "gallery.toml").exists()


def test_an_array_cut_short_is_refused(gallery: Path, folder: Path) -> None:
    place = folder / "img_emb" / "img_emb_10.npy"
    place.write_bytes(place.read_bytes()[:-1])

    with pytest.raises(EyespotError, match=r"img_emb_10\.npy is no \.npy file"):
        take(gallery, folder)


def test_a_damaged_table_and_a_lacking_part_are_named(gallery: Path, folder: Path) -> None:
    (folder / "metadata" / "metadata_10.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(EyespotError, match=r"metadata_10\.parquet cannot be read"):
        take(gallery, folder)
    (folder / "metadata" / "metadata_10.parquet").unlink()
    with pytest.raises(EyespotError, match="part 10 in img_emb and not in metadata"):
        take(gallery, folder)
    with pytest.raises(UsageError, match="holds no img_emb"):
        take(gallery, folder / "metadata")
    with pytest.raises(UsageError, match="is no folder"):
        take(gallery, folder / "nowhere")


def test_a_source_that_vanished_or_changed_is_named_when_it_is_needed(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    place = folder / "img_emb" / "img_emb_02.npy"
    np.save(place, unit(4))
    with pytest.raises(EyespotError, match=r"img_emb_02\.npy has changed since it was imported"):
        _ = opened(gallery).blocks
    with pytest.raises(EyespotError, match="has 4 rows"):
        take(gallery, folder)
    place.unlink()
    with pytest.raises(EyespotError, match=r"img_emb_02\.npy is gone"):
        _ = opened(gallery).blocks


def test_vectors_of_another_encoder_from_the_same_files_are_refused(gallery: Path, folder: Path) -> None:
    take(gallery, folder)

    with pytest.raises(UsageError, match=f"already, as vectors of {NAME}"):
        take(gallery, folder, encoder="open_clip:ViT-L-14/openai")


def test_a_folder_whose_name_is_not_utf8_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the name of /photos/caf\\xe9 is not valid UTF-8"):
        npy.source([Path("/photos/caf\udce9/vectors.npy")])


# -- odd vectors and tables ---------------------------------------------------------------------------------


def test_copied_vectors_are_normalised_in_the_precision_of_the_source(gallery: Path, tmp_path: Path) -> None:
    add_part(tmp_path / "a", "0", np.asfortranarray(unit(5, 1, "float64") * 1e6), keys(5))
    take(gallery, tmp_path / "a", Copied())
    (tmp_path / "a" / "img_emb" / "img_emb_0.npy").unlink()

    (block,) = opened(gallery).blocks
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, unit(5, 1, "float64"), atol=1e-6)


@pytest.mark.parametrize("way", [InPlace(), Copied()])
def test_rows_without_a_vector_are_kept_and_never_found(gallery: Path, tmp_path: Path, way: VectorImport) -> None:
    vectors = unit(6)
    vectors[1], vectors[3, 0], vectors[4, 2] = 0, np.nan, np.inf
    add_part(tmp_path / "a", "0", vectors, keys(6))
    done = take(gallery, tmp_path / "a", way)

    assert opened(gallery).live.tolist() == [True, False, True, False, False, True]
    assert len(ids(gallery)) == 6
    assert done.notes == ["3 rows hold no vector (zeros, or numbers that are not finite) and will not be found"]


def test_without_metadata_rows_are_named_by_part_and_row(gallery: Path, tmp_path: Path) -> None:
    add_part(tmp_path / "a", "3", unit(2), None)
    done = take(gallery, tmp_path / "a")

    assert ids(gallery) == ["clip-retrieval:3/0", "clip-retrieval:3/1"]
    assert "has no metadata" in done.notes[0]


def test_columns_keep_one_kind_over_all_parts_and_odd_ones_are_named(gallery: Path, tmp_path: Path) -> None:
    odd = {"exif.Make": ["Canon"], "boxes": [[1, 2]], "live": ["mine"], "empty": pa.nulls(1), "Latitude": [-33.4]}
    add_part(tmp_path / "a", "0", unit(1), {"key": [1], "year": [2021], "width": [640.0], **odd})
    far = {"latitude": ["181"], "longitude": [200.0], "taken": ["2021-05-31 18:02:11.5+02:00"]}
    add_part(tmp_path / "a", "1", unit(1, 1), {"key": [2], "year": [None], "width": ["12.5"], **far})
    add_part(tmp_path / "a", "2", unit(1, 2), {"key": [3], "year": ["circa 1900"], "width": [2**40]})
    done = take(gallery, tmp_path / "a")
    facts = opened(gallery).facts(range(3))

    assert [fact["year"] for fact in facts] == ["2021", None, "circa 1900"]
    assert [fact["width"] for fact in facts] == [640, None, None]
    assert [fact["latitude"] for fact in facts] == [-33.4, None, None]
    assert [str(fact["taken"]) for fact in facts] == ["None", "2021-05-31 18:02:11", "None"]
    assert (facts[0]["exif.Make"], facts[0]["empty"]) == ("Canon", None)
    assert done.notes == [
        "columns left out, for they hold no plain values or have a taken name: live, boxes",
    ]


def test_paths_with_signs_of_every_plane_survive_the_toml(tmp_path: Path) -> None:
    folder = tmp_path / "fotos 🦆 \x7f \\ \" '"
    add_part(folder, "0", unit(2), keys(2))
    take(tmp_path / "g", folder)

    assert opened(tmp_path / "g").facts([1])[0]["path"] == str(folder / "pictures" / "1.jpg")
    assert len(opened(tmp_path / "g").blocks[0]) == 2


@settings(deadline=None, max_examples=examples(40))
@given(values=st.lists(st.text(alphabet="0123-.7a ", min_size=1, max_size=18), min_size=1, max_size=5))
def test_a_csv_column_has_the_kind_that_labels_have(values: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        table = Path(place, "items.csv")
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([["id", "value"], *([str(n), value] for n, value in enumerate(values))])
        facts = CsvFacts(table)
    assert facts.kinds["value"] == reduce(wider, map(kind_of, values))
    assert facts.rows == len(values)


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.integers(0, 9_999), min_size=1, max_size=30))
def test_rows_read_from_parts_of_a_table_are_those_asked_for(rows: list[int]) -> None:
    with tempfile.TemporaryDirectory() as place:
        write_items(Path(place), pa.table({"id": np.arange(10_000)}))
        assert read_rows(Path(place), rows)["id"].to_pylist() == rows


# -- npy and export -----------------------------------------------------------------------------------------


def test_npy_goes_out_and_comes_in_again(tmp_path: Path, photos: Path, starter: Encoder) -> None:
    index(tmp_path / "first", [str(photos)], [starter])
    before = opened(tmp_path / "first")
    written(npy_export, before, tmp_path / "out")
    take_in(tmp_path / "second", npy.source([tmp_path / "out"]), "starter", InPlace())
    after = opened(tmp_path / "second")

    np.testing.assert_array_equal(np.load(tmp_path / "out" / "vectors.npy"), np.concatenate(before.blocks))
    np.testing.assert_array_equal(np.concatenate(after.blocks), np.concatenate(before.blocks))
    was, now = before.facts(range(9)), after.facts(range(9))
    assert [fact["id"] for fact in now] == ["npy:" + fact["id"] for fact in was]
    assert [fact["paths"] for fact in now] == [fact["paths"] for fact in was]


def test_npy_with_a_csv_of_its_own_names(gallery: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", unit(2))
    (tmp_path / "t.csv").write_text('file_name,year,code,"a note"\nx/a.jpg,2020,007,"two\nlines"\nb.jpg,,008,\n')
    take_in(gallery, npy.source([tmp_path / "v.npy", tmp_path / "t.csv"]), NAME, InPlace())
    facts = opened(gallery).facts([0, 1])

    assert [(fact["id"], fact["path"]) for fact in facts] == [
        ("npy:x/a.jpg", str(tmp_path / "x" / "a.jpg")),
        ("npy:b.jpg", str(tmp_path / "b.jpg")),
    ]
    assert [(fact["year"], fact["code"], fact["a note"]) for fact in facts] == [
        (2020, "007", "two\nlines"),
        (None, "008", None),
    ]


def test_csv_of_another_width_and_two_arrays_are_refused(gallery: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", unit(2))
    (tmp_path / "items.csv").write_text("id,year\na,2020\nb\n")
    with pytest.raises(EyespotError, match=r"items\.csv cannot be read"):
        take_in(gallery, npy.source([tmp_path]), NAME, InPlace())
    with pytest.raises(UsageError, match="not one array and its table"):
        npy.source([tmp_path / "vectors.npy", tmp_path / "vectors.npy"])


def test_an_export_tells_neither_where_nor_who_unless_asked(gallery: Path, tmp_path: Path) -> None:
    telling = {"latitude": [1.5] * 2, "Photographer": ["Ann"] * 2, "user_name": ["ann"] * 2, "GPSLatitude": [1.5] * 2}
    add_part(tmp_path / "a", "0", unit(2), keys(2) | telling | {"title": ["Heron", "Goose"]})
    take(gallery, tmp_path / "a")
    done = written(clip_retrieval_export, opened(gallery), tmp_path / "out")
    written(clip_retrieval_export, opened(gallery), tmp_path / "all", all_columns=True)
    table, everything = (pq.read_table(tmp_path / name / "metadata/metadata_0.parquet") for name in ("out", "all"))

    assert sorted(done.left_out) == ["GPSLatitude", "Photographer", "latitude", "longitude", "user_name"]
    assert not [name for name in table.column_names if tells_too_much(name)]
    assert everything["Photographer"].to_pylist() == ["Ann", "Ann"]
    assert table["caption"].to_pylist() == ["Heron", "Goose"]
    assert table["key"].to_pylist() == ["clip-retrieval:000000", "clip-retrieval:000001"]
    assert table["image_path"].to_pylist() == [str(tmp_path / "a" / "pictures" / f"{n}.jpg") for n in range(2)]


class SmallParts(clip_retrieval_export.ClipRetrievalLayout):
    part_rows = 3

    def write(self, rows: ExportRows, folder: Path) -> int:
        return write_parts(rows, folder, self)


def test_an_export_in_several_parts_comes_in_again_in_order(gallery: Path, folder: Path, tmp_path: Path) -> None:
    vectors = unit(4, 2)
    vectors[0] = 0
    add_part(folder, "10", vectors, keys(4, 5))
    take(gallery, folder)
    done = written(SmallParts(), opened(gallery), tmp_path / "out", float16=True)
    take(tmp_path / "second", tmp_path / "out")

    live = [row for row in range(9) if row != 5]
    assert done.rows == 8 and len(list((tmp_path / "out" / "img_emb").iterdir())) == 3
    assert ids(tmp_path / "second") == [ids(gallery)[row] for row in live]
    np.testing.assert_array_equal(
        np.concatenate(opened(tmp_path / "second").blocks), np.concatenate(opened(gallery).blocks)[live]
    )
    assert [len(block) for block in opened(tmp_path / "second").blocks] == [3, 3, 2]


def test_an_export_over_something_or_of_nothing_is_refused(gallery: Path, folder: Path, tmp_path: Path) -> None:
    take(gallery, folder)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        written(npy_export, opened(gallery), tmp_path / "out")
    add_part(tmp_path / "zeros", "0", np.zeros((2, DIM), np.float32), keys(2))
    take(tmp_path / "dead", tmp_path / "zeros")
    with pytest.raises(NothingFound):
        written(npy_export, opened(tmp_path / "dead"), tmp_path / "new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert not (tmp_path / "new").exists()


# -- the command line ---------------------------------------------------------------------------------------


def eyespot(*words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "eyespot.cli", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True)


@pytest.mark.long
def test_the_verbs_import_and_export_and_say_what_they_did(gallery: Path, folder: Path, tmp_path: Path) -> None:
    came = eyespot("import", "clip-retrieval", folder, "-g", gallery, "-e", NAME, "--json")
    went = eyespot("export", "npy", tmp_path / "out", "-g", gallery, "--json")

    assert json.loads(came.stdout) == {"gallery": str(gallery), "rows": 9, "added": 9, "shards": 2}
    assert json.loads(went.stdout)["rows"] == 9
    assert went.stderr.startswith("eyespot: left out: latitude, longitude")
    assert (came.returncode, went.returncode) == (0, 0)


@pytest.mark.parametrize(("encoder", "complaint"), [((), "say which encoder"), (("-e", "ViT-B-32"), "is no encoder")])
def test_an_import_needs_an_encoder_that_can_be_asked(
    gallery: Path, folder: Path, encoder: tuple[str, ...], complaint: str
) -> None:
    done = eyespot("import", "clip-retrieval", folder, "-g", gallery, *encoder)

    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert complaint in sentence
    assert not gallery.exists()
