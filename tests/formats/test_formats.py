"""Vectors that others computed: imported where they lie, exported and taken in again, whatever state they are in."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import eyespot
from eyespot.formats.exporting import ExportOptions, ExportReport, export, tells_too_much
from eyespot.formats.exports import npy as npy_export
from eyespot.formats.imports import clip_retrieval, npy
from eyespot.formats.imports.items import Hashes, Naming, key_hashes, repeated
from eyespot.formats.imports.registered import Imported, take_in
from eyespot.formats.imports.tables import facts_in
from eyespot.gallery.disk import map_vectors, read_note, shard_paths
from eyespot.gallery.items_table import read_rows, write_items
from eyespot.gallery.view import Gallery, View
from eyespot.types import EyespotError, NothingFound, UsageError
from tests.command import run_eyespot
from tests.examples import examples
from tests.tiny_models import Bomb
from tests.wording import raises
from tests.worlds import index_gallery
from tests.worlds.galleries import contents, facts_of, opened
from tests.worlds.kills import killed_at

DIM = 8
NAME = "open_clip:ViT-B-32/openai"


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


def take(gallery: Path, folder: Path, copy: bool = False, encoder: str = NAME) -> Imported:
    return take_in(gallery, clip_retrieval.source([folder]), encoder, copy=copy)


def ids(gallery: Path) -> list[str]:
    return [fact["id"].removeprefix("clip-retrieval:") for fact in facts_of(gallery)]


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


def test_a_gallery_exported_and_imported_in_place_has_the_same_vectors_and_facts(tmp_path: Path, photos: Path) -> None:
    index_gallery(tmp_path / "first", photos)
    before = opened(tmp_path / "first")
    exported = written(npy_export, before, tmp_path / "out")
    imported = take_in(tmp_path / "second", npy.source([tmp_path / "out"]), "starter")
    after = opened(tmp_path / "second")

    assert (exported.rows, imported.rows, imported.added) == (9, 9, 9)
    np.testing.assert_array_equal(np.concatenate(after.blocks), np.concatenate(before.blocks))
    was, now = facts_of(tmp_path / "first"), facts_of(tmp_path / "second")
    assert [fact["id"] for fact in now] == ["npy:" + fact["id"] for fact in was]
    for name in ("path", "width", "height", "size", "mtime", "taken", "camera"):
        assert [fact[name] for fact in now] == [fact[name] for fact in was]
    assert after.space == before.space
    index_gallery(tmp_path / "second", photos)
    assert len(opened(tmp_path / "second").live) == 18  # photos that are indexed later join the vectors that came home


def test_two_spaces_of_one_name_are_told_apart(tmp_path: Path, photos: Path) -> None:
    index_gallery(tmp_path / "first", photos)
    written(npy_export, opened(tmp_path / "first"), tmp_path / "out")
    with pytest.raises(UsageError, match="import them with -e starter"):
        take_in(tmp_path / "second", npy.source([tmp_path / "out"]), "siglip2")
    (tmp_path / "out" / "space.toml").unlink()
    take_in(tmp_path / "second", npy.source([tmp_path / "out"]), "starter")
    went = run_eyespot("index", photos, "-g", tmp_path / "second")
    gallery = Gallery(tmp_path / "second")
    imported, new = gallery.header.spaces

    assert f"choose with -e {imported} or -e {new}" in went.stderr
    assert gallery.called(new) == f"starter ({new})" and gallery.stem(imported) == imported
    notes = str(eyespot.open(gallery.path, new).search("x").notes)
    assert f"pictures without starter ({new}) vectors, not searched: 9" in notes


def test_nothing_is_copied_and_rows_keep_their_keys_paths_labels_and_sizes(gallery: Path, folder: Path) -> None:
    take(gallery, folder)

    assert not list(gallery.rglob("*.npy"))
    shards, stem = shard_paths(gallery), Gallery(gallery).stem()
    sources = [str(folder / "img_emb" / f"img_emb_{n}.npy") for n in ("02", "10")]
    assert [note and note.source for note in (read_note(shard, stem) for shard in shards)] == sources
    np.testing.assert_array_equal(map_vectors(shards[1], stem), unit(4, 2))
    assert map_vectors(shards[1], stem).dtype == np.float16
    first, *_, last = facts_of(gallery)
    assert (first["id"], last["id"]) == ("clip-retrieval:000000", "clip-retrieval:000008")
    assert first["path"] == str(folder / "pictures" / "0.jpg")
    assert (first["caption"], last["caption"], first["width"], last["width"]) == ("a heron", "a goose", 640, 800)
    assert (first["size"], first["taken"], first["camera"]) == (None, None, None)
    assert opened(gallery).live.all() and Gallery(gallery).header.rows == 9


def test_the_same_import_again_adds_nothing_and_a_new_part_is_added(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    before = lasting(gallery)
    again = take(gallery, folder)
    same = lasting(gallery)
    add_part(folder, "11", unit(3, 3), keys(3, 9))
    more = take(gallery, folder)

    assert (again.added, again.rows, more.added, more.rows) == (0, 9, 3, 12)
    assert same == before and len(ids(gallery)) == 12


def lasting(gallery: Path) -> dict[str, bytes]:
    """The files of a gallery that a run without new photos leaves as they are."""
    return {name: data for name, data in contents(gallery).items() if "ledger" not in name}


def test_indexing_afterwards_forgets_and_overwrites_nothing(gallery: Path, folder: Path, photos: Path) -> None:
    take(gallery, folder)
    before = lasting(gallery)
    index_gallery(gallery, photos)
    summary = index_gallery(gallery)
    after = lasting(gallery)

    # Links to copies come to each shard, and their digests into its list
    changed = {Path(name).name for name in before if after[name] != before[name]}
    assert changed <= {"gallery.toml", "digests.txt", "index.sqlite"}
    assert [shard.name for shard in shard_paths(gallery)] == ["00000", "00001", "00002"]
    assert (summary.pictures, summary.embedded, summary.notes) == (18, 0, [])
    header = Gallery(gallery).header
    assert (header.rows, header.spaces[header.default].encoder) == (18, NAME)
    assert (len(ids(gallery)), len(opened(gallery, "starter").shards)) == (9, 1)


def test_vectors_in_a_gallery_are_read_there_after_it_moved(gallery: Path, folder: Path, tmp_path: Path) -> None:
    gallery.mkdir()
    folder.rename(gallery / "laion")
    assert take(gallery, gallery / "laion").notes == []
    gallery.rename(tmp_path / "moved")
    assert sum(map(len, opened(tmp_path / "moved").blocks)) == 9
    assert take(tmp_path / "moved", tmp_path / "moved" / "laion").added == 0


def test_what_was_imported_is_not_taken_out(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    (root,) = Gallery(gallery).header.roots.values()
    with raises(UsageError):
        index_gallery(gallery, remove=[root.path])
    assert len(ids(gallery)) == 9


def test_an_import_leaves_photos_and_their_default_space(gallery: Path, folder: Path, photos: Path) -> None:
    index_gallery(gallery, photos)
    take(gallery, folder)
    header = Gallery(gallery).header
    assert (header.spaces[header.default].encoder, header.rows, opened(gallery).pending) == ("starter", 18, 9)
    assert opened(gallery, NAME).facts([0])[0]["caption"] == "a heron"


@pytest.mark.long
def test_killed_at_any_moment_and_run_again_it_ends_in_the_same_gallery(folder: Path, tmp_path: Path) -> None:
    line = ("import", "clip-retrieval", folder, "-e", NAME, "-g")
    killed = [killed_at(change, *line, tmp_path / "killed") for change in (2, 5, 7, 4)]
    for gallery in ("killed", "calm"):
        assert run_eyespot(*line, tmp_path / gallery).returncode == 0
    assert all(killed)
    assert lasting(tmp_path / "killed") == lasting(tmp_path / "calm")
    assert len(ids(tmp_path / "calm")) == 9


def test_a_repeated_key_keeps_its_rows_under_ids_of_their_own(gallery: Path, tmp_path: Path) -> None:
    add_part(tmp_path / "a", "0", unit(3), {"key": ["x", "y", "x"]})
    add_part(tmp_path / "b", "0", unit(2, 4), {"key": ["y", "z"]})
    take(gallery, tmp_path / "a")
    take(gallery, tmp_path / "b")
    assert ids(gallery) == ["x", "y", "x#0/2", "y#1/0", "z"]


def test_a_row_is_named_by_key_else_path_else_address_else_part_and_row(gallery: Path, tmp_path: Path) -> None:
    columns = {
        "key": ["k", None, "", None],
        "image_path": ["a.jpg", "b.jpg", None, None],
        "url": ["http://c/d", None, "http://c/e", ""],
    }
    add_part(tmp_path / "a", "7", unit(4), columns)
    take(gallery, tmp_path / "a")
    facts, pictures = facts_of(gallery), [str(tmp_path / "a" / name) for name in ("a.jpg", "b.jpg")]

    assert ids(gallery) == ["k", "b.jpg", "http://c/e", "7/3"]
    assert [fact["path"] for fact in facts] == [*pictures, "http://c/e", None]
    assert facts[0]["url"] == "http://c/d"
    add_part(tmp_path / "b", "3", unit(2), None)
    assert "b" in take(tmp_path / "other", tmp_path / "b").notes[0]  # it has no table
    assert ids(tmp_path / "other") == ["3/0", "3/1"]


@settings(deadline=None, max_examples=examples(40))
@given(parts=st.lists(st.lists(st.sampled_from("abc"), min_size=1), min_size=1, max_size=4))
def test_ids_told_apart_are_unique_and_the_first_of_each_keeps_its_own(parts: list[list[str]]) -> None:
    known, names = list[Hashes](), list[str]()
    with tempfile.TemporaryDirectory() as place:
        for shard, part in enumerate(parts):
            table = Path(place, "t.parquet")
            pq.write_table(pa.table({"key": part}), table)
            hashes = key_hashes(facts_in(table, 0), Naming("f", "0", clip_retrieval.LAYOUT))
            again = repeated(hashes, known)
            names += [f"{key}#{shard}/{row}" if again[row] else key for row, key in enumerate(part)]
            known.append(np.sort(hashes))
    assert len(set(names)) == len(names)
    assert {key for key in names if "#" not in key} == {key for part in parts for key in part}


def test_a_pickle_in_an_array_is_refused_and_not_run(gallery: Path, folder: Path, tmp_path: Path) -> None:
    trap = np.array([Bomb(tmp_path / "sprung")] * 5, dtype=object)
    np.save(folder / "img_emb" / "img_emb_02.npy", trap, allow_pickle=True)
    with raises(EyespotError):
        take(gallery, folder)
    assert not (tmp_path / "sprung").exists()


def npy_bytes(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a zip",
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"(" * 60,
        npy_bytes(unit(5))[:-1],
        npy_bytes(np.zeros((5, 2, 3), np.float32)),
        npy_bytes(np.zeros((5, 8), np.int8)),
        npy_bytes(np.zeros((0, 8), np.float32)),
        npy_bytes(unit(5, dtype="float64")),
        npy_bytes(np.asfortranarray(unit(5))),
        npy_bytes(unit(5) * 3),
        npy_bytes(unit(6)),
        npy_bytes(unit(5)[:, :4] * 2),
    ],
    ids=["empty", "zip", "nested", "cut", "cube", "int8", "no rows", "float64", "fortran", "long", "rows", "width"],
)
def test_an_array_that_cannot_be_searched_is_refused_by_name(gallery: Path, folder: Path, content: bytes) -> None:
    (folder / "img_emb" / "img_emb_02.npy").write_bytes(content)
    with raises(EyespotError):
        take(gallery, folder)
    assert not (gallery / "gallery.toml").exists()


@pytest.mark.parametrize("damage", ["table", "no table"])
def test_a_damaged_table_and_a_lacking_part_are_named(gallery: Path, folder: Path, damage: str) -> None:
    (folder / "metadata" / "metadata_10.parquet").write_bytes(b"PAR1 not really PAR1")
    if damage == "no table":
        (folder / "metadata" / "metadata_10.parquet").unlink()
    with raises(EyespotError):
        take(gallery, folder)


def test_places_without_vectors_and_a_second_encoder_are_refused(gallery: Path, folder: Path, tmp_path: Path) -> None:
    take(gallery, folder)
    np.save(tmp_path / "vectors.npy", unit(2))
    (tmp_path / "items.csv").write_text("id,year\na,2020\nb\n")

    for place in (folder / "metadata", folder / "nowhere"):
        with raises(UsageError):
            clip_retrieval.source([place])
    for places in ([Path("/photos/caf\udce9/vectors.npy")], [tmp_path / "vectors.npy"] * 2):
        with raises(UsageError):
            npy.source(places)
    with raises(UsageError):
        take(gallery, folder, encoder="open_clip:ViT-L-14/openai")
    with raises(EyespotError):
        take_in(gallery, npy.source([tmp_path]), NAME)


def test_a_source_that_vanished_or_changed_is_named_when_it_is_needed(gallery: Path, folder: Path) -> None:
    take(gallery, folder)
    place = folder / "img_emb" / "img_emb_02.npy"
    np.save(place, unit(4))
    with raises(EyespotError):
        _ = opened(gallery).blocks
    with raises(EyespotError):
        take(gallery, folder)
    place.unlink()
    with raises(EyespotError):
        _ = opened(gallery).blocks


def test_copied_vectors_are_normalised_in_the_precision_of_the_source(gallery: Path, tmp_path: Path) -> None:
    add_part(tmp_path / "a", "0", np.asfortranarray(unit(5, 1, "float64") * 1e6), keys(5))
    take(gallery, tmp_path / "a", copy=True)
    (tmp_path / "a" / "img_emb" / "img_emb_0.npy").unlink()
    (block,) = opened(gallery).blocks
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, unit(5, 1, "float64"), atol=1e-6)


@pytest.mark.parametrize("copy", [False, True])
def test_rows_without_a_vector_are_kept_and_never_found(gallery: Path, tmp_path: Path, copy: bool) -> None:
    vectors = unit(6)
    vectors[1], vectors[3, 0], vectors[4, 2] = 0, np.nan, np.inf
    add_part(tmp_path / "a", "0", vectors, keys(6))
    done = take(gallery, tmp_path / "a", copy=copy)
    assert opened(gallery).live.tolist() == [True, False, True, False, False, True]
    assert len(ids(gallery)) == 6
    assert len(done.notes) == 2 - copy and "3 rows" in done.notes[0]


def test_columns_keep_one_kind_over_all_parts_and_odd_ones_are_named(gallery: Path, tmp_path: Path) -> None:
    nan = float("nan")
    odd = {
        "weight": [nan],
        "exif.Make": ["Canon"],
        "boxes": [[1, 2]],
        "live": ["mine"],
        "empty": pa.nulls(1),
        "Latitude": [-33.4],
    }
    add_part(tmp_path / "a", "0", unit(1), {"key": [1], "year": [2021], "width": [640.0], **odd})
    far = {"weight": [2.5], "latitude": ["181"], "longitude": [200.0], "taken": ["2021-05-31 18:02:11.5+02:00"]}
    add_part(tmp_path / "a", "1", unit(1, 1), {"key": [2], "year": [None], "width": ["12.5"], **far})
    add_part(tmp_path / "a", "2", unit(1, 2), {"key": [3], "year": ["circa 1900"], "width": [2**40], "weight": [nan]})
    done = take(gallery, tmp_path / "a")
    facts = facts_of(gallery)

    assert [fact["year"] for fact in facts] == ["2021", None, "circa 1900"]
    assert [fact["width"] for fact in facts] == [640, None, None]
    assert [fact["weight"] for fact in facts] == [None, 2.5, None]  # NaN says nothing, and filters miss it
    assert [fact["latitude"] for fact in facts] == [-33.4, None, None]
    assert [str(fact["taken"]) for fact in facts] == ["None", "2021-05-31 18:02:11", "None"]
    assert (facts[0]["exif.Make"], facts[0]["empty"]) == ("Canon", None)
    assert done.notes[0].endswith(": live, boxes")


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.integers(0, 9_999), min_size=1, max_size=30))
def test_rows_read_from_parts_of_a_table_are_those_asked_for(rows: list[int]) -> None:
    with tempfile.TemporaryDirectory() as place:
        write_items(Path(place), pa.table({"id": np.arange(10_000)}))
        assert read_rows(Path(place), rows)["id"].to_pylist() == rows


def test_npy_with_a_csv_of_its_own_names(gallery: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", unit(2))
    (tmp_path / "t.csv").write_text('file_name,year,code,"a note"\nx/a.jpg,2020,007,"two\nlines"\nb.jpg,,008,\n')
    take_in(gallery, npy.source([tmp_path / "v.npy", tmp_path / "t.csv"]), NAME)

    names = ("id", "path", "year", "code", "a note")
    assert [tuple(fact[name] for name in names) for fact in facts_of(gallery)] == [
        ("npy:x/a.jpg", str(tmp_path / "x" / "a.jpg"), 2020, "007", "two\nlines"),
        ("npy:b.jpg", str(tmp_path / "b.jpg"), None, "008", None),
    ]


def test_an_export_tells_neither_where_nor_who_unless_asked(gallery: Path, tmp_path: Path) -> None:
    telling = {"latitude": [1.5] * 2, "Photographer": ["Ann"] * 2, "user_name": ["ann"] * 2, "GPSLatitude": [1.5] * 2}
    add_part(tmp_path / "a", "0", unit(2), keys(2) | telling | {"title": ["Heron", "Goose"]})
    take(gallery, tmp_path / "a")
    done = written(npy_export, opened(gallery), tmp_path / "out")
    written(npy_export, opened(gallery), tmp_path / "all", all_columns=True)
    table, everything = (pq.read_table(tmp_path / name / "items.parquet") for name in ("out", "all"))

    hidden = "GPSLatitude Photographer latitude longitude position_from user_name"
    assert sorted(done.left_out) == hidden.split()
    assert not [name for name in table.column_names if tells_too_much(name)] and tells_too_much("position_from")
    assert everything["Photographer"].to_pylist() == ["Ann", "Ann"]
    assert table["title"].to_pylist() == ["Heron", "Goose"]
    assert table["id"].to_pylist() == ["clip-retrieval:000000", "clip-retrieval:000001"]
    assert table["paths"].to_pylist() == [[str(tmp_path / "a" / "pictures" / f"{n}.jpg")] for n in range(2)]


def test_only_rows_that_can_be_found_are_exported(gallery: Path, folder: Path, tmp_path: Path) -> None:
    vectors = unit(4, 2)
    vectors[0] = 0
    add_part(folder, "10", vectors, keys(4, 5))
    take(gallery, folder)
    done = written(npy_export, opened(gallery), tmp_path / "out", float16=True)

    live = [row for row in range(9) if row != 5]
    assert done.rows == 8 == len(pq.read_table(tmp_path / "out" / "items.parquet"))
    np.testing.assert_array_equal(
        np.load(tmp_path / "out" / "vectors.npy"), np.concatenate(opened(gallery).blocks)[live]
    )


def test_an_export_over_something_or_of_nothing_is_refused(gallery: Path, folder: Path, tmp_path: Path) -> None:
    take(gallery, folder)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with raises(UsageError):
        written(npy_export, opened(gallery), tmp_path / "out")
    add_part(tmp_path / "zeros", "0", np.zeros((2, DIM), np.float32), keys(2))
    take(tmp_path / "dead", tmp_path / "zeros")
    with raises(NothingFound):
        written(npy_export, opened(tmp_path / "dead"), tmp_path / "new")
    assert contents(tmp_path / "out") == {"mine.txt": b"mine"} and not (tmp_path / "new").exists()
