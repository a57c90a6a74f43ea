"""An approximate index beside a gallery stays right while the gallery changes, and is there whole or not at all."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import eyespot
from eyespot import rooms
from eyespot.gallery import disk, items_table
from eyespot.gallery.view import View
from eyespot.search.index_choice import (
    Measured,
    building,
    folder_of,
    names_in,
    open_index,
    read_stored,
    store_index,
    stored_of,
)
from eyespot.search.nearest import Nearest
from eyespot.search.query_expansion import QueryExpansion
from eyespot.types import EyespotError, Query, UsageError
from tests.lazy_import import requires
from tests.wording import raises
from tests.worlds.vectors import drawn, take, view_of

pytestmark = requires("faiss")
ROWS = 3000
SETTINGS = {"kind": "pq", "parts": 128, "depth": 200}


def build(view: View, recall: float = 0.9876) -> None:
    """Keep an index of all that is in the view, as `eyespot tune` does."""
    with building(view) as folder:
        rooms.load("indexes", "faiss", view.blocks, folder=folder / "0", **SETTINGS)
        store_index(view, "faiss", stored_of(view, "faiss", SETTINGS, Measured(recall, 50, 100, "drawn")), folder / "0")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three thousand vectors, and an index of them."""
    place = tmp_path_factory.mktemp("kept") / "gallery"
    build(take(place, drawn(ROWS, 0)))
    return place


@pytest.fixture
def view(once: Path, tmp_path: Path) -> View:
    shutil.copytree(once, tmp_path / "gallery")
    return view_of(tmp_path / "gallery")


def test_what_an_answer_holds_is_stated_with_it(view: View) -> None:
    run = eyespot.open(view.gallery.path, index="faiss").search("a heron", k=5).run

    assert not run.header["exact"] and 0.5 < run.header["recall"] < 1
    assert any(f"{100 * run.header['recall']:.1f} %" in note for note in run.notes)
    exact = eyespot.open(view.gallery.path).search("a heron", k=5).run
    assert exact.header["exact"] and "recall" not in exact.header and not any("approx" in n for n in exact.notes)
    assert list(run.image) == list(exact.image)


def test_an_exact_answer_of_an_approximate_index_is_called_exact(view: View) -> None:
    collection = eyespot.open(view.gallery.path, index="faiss")
    few = np.arange(ROWS) < 40

    run = Nearest(view, collection.encoder, collection.index, 5, few)([Query.words("a heron")])

    assert run.header["exact"] and run.notes == []


@pytest.mark.parametrize("k", [5, 2500])  # so many are searched exactly
def test_an_expanded_answer_is_no_more_exact_than_the_pictures_it_is_expanded_by(view: View, k: int) -> None:
    collection = eyespot.open(view.gallery.path, index="faiss")
    searching = view, collection.encoder, collection.index
    first = Nearest(*searching, 5, view.live)([Query.words("a heron")])

    run = QueryExpansion(*searching, 5, k, view.live)([Query.words("a heron")], first)

    assert not run.header["exact"] and 0.5 < run.header["recall"] < 1
    assert [f"{100 * run.header['recall']:.1f} %" in note for note in run.notes] == [True]


@pytest.mark.long
def test_a_recall_that_was_never_measured_is_not_made_up(view: View) -> None:
    build(view, math.nan)

    run = eyespot.open(view.gallery.path, index="faiss").search("a heron", k=5).run

    assert any("never measured" in note for note in run.notes)


def test_an_index_goes_by_its_kind_too(view: View) -> None:
    assert len(open_index(view, "pq").search(view.blocks[0][:2], 5).rows) == 2
    (folder_of(view, "faiss") / "settings.json").write_text("[]")
    with raises(UsageError):
        open_index(view, "pq")


def test_rows_imported_since_are_found(view: View) -> None:
    later = drawn(50, 1)
    grown = take(view.gallery.path, later, "two")

    found = open_index(grown, "faiss").search(later[:9], 5, grown.live)

    assert found.rows[:, 0].tolist() == list(range(ROWS, ROWS + 9)) and not found.exact


def test_pictures_that_are_gone_are_not_found(view: View) -> None:
    (shard,) = view.shards
    table = items_table.read_items(shard)
    gone = np.isin(np.arange(ROWS), [7, 8])
    at = table.column_names.index("live")
    items_table.write_items(shard, table.set_column(at, table.schema.field("live"), pa.array(~gone)))
    now = view_of(view.gallery.path)

    found = open_index(now, "faiss").search(np.concatenate(now.blocks)[[7, 8]], 50, now.live)

    assert found.rows.shape == (2, 50) and not np.isin(found.rows, [7, 8]).any()


def made_again(view: View) -> None:
    np.save(view.shards[0] / f"{view.stem}.npy", drawn(ROWS, 5))
    (view.shards[0] / "digests.txt").unlink()  # they are what was written there


def of_another_space(view: View) -> None:
    place = folder_of(view, "faiss") / "settings.json"
    place.write_text(place.read_text().replace(view.space.digest, "0" * 16))
    (place.parent / "digests.txt").unlink()


@pytest.mark.parametrize("change", [made_again, of_another_space])
def test_an_index_of_other_vectors_is_refused_with_the_way_out(view: View, change: Callable[[View], None]) -> None:
    change(view)

    with raises(UsageError):
        open_index(view_of(view.gallery.path), "faiss")


@pytest.mark.parametrize("name", ["scann", "../faiss", "", ".building", "rabitq"])
def test_an_index_that_is_not_there(view: View, name: str) -> None:
    with raises(UsageError):
        open_index(view, name)


@pytest.mark.parametrize("file", ["settings.json", "layout.json", "part-00000.faiss"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\x00" * 100], ids=["empty", "json", "zeros"])
def test_a_damaged_file_is_one_sentence(view: View, file: str, content: bytes) -> None:
    (folder_of(view, "faiss") / file).write_bytes(content)

    with pytest.raises(EyespotError, match=r"eyespot tune|upgrade"):
        open_index(view, "faiss")


@pytest.mark.parametrize("files", [None, [1], {"part-00000.faiss": "long"}], ids=["null", "list", "words"])
@pytest.mark.parametrize("recall", [None, "much", []], ids=["no recall", "word", "list"])
def test_damaged_settings_make_no_answer_exact(view: View, files: object, recall: object) -> None:
    place = folder_of(view, "faiss") / "settings.json"
    config = json.loads(place.read_text())
    for changed in (config | {"files": files}, config | {"measured": config["measured"] | {"recall": recall}}):
        place.write_text(json.dumps(changed))

        with pytest.raises(EyespotError, match="eyespot tune"):
            open_index(view, "faiss")


@pytest.mark.parametrize("row", [1500, 0])
def test_a_picture_that_got_its_vector_since_is_not_silently_missed(view: View, row: int) -> None:
    """As a later run of `eyespot index` gives one to a picture that was out of reach: into the same shard."""
    (shard,), vectors = view.shards, np.array(view.blocks[0])
    lacking = vectors.copy()
    lacking[row] = 0
    disk.write_vectors(shard, lacking, disk.SpaceNote(view.space, [row], []))
    build(view_of(view.gallery.path))
    assert open_index(view_of(view.gallery.path), "faiss").search(vectors[:1], 5).rows.shape == (1, 5)
    disk.write_vectors(shard, vectors, disk.SpaceNote(view.space, [], []))

    with pytest.raises(UsageError, match="eyespot tune"):
        open_index(view_of(view.gallery.path), "faiss")


@pytest.mark.parametrize("file", ["layout.json", "part-00000.faiss"])
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "gone"])
def test_a_search_builds_no_index_anew_where_a_file_is_gone_or_cut(view: View, file: str, cut: bool) -> None:
    """It could take hours, in a gallery that others read."""
    place = folder_of(view, "faiss") / file
    if cut:
        place.write_bytes(place.read_bytes()[:50])
    else:
        place.unlink()

    with pytest.raises(EyespotError, match=rf"{file} .*eyespot tune"):
        open_index(view, "faiss")
    assert place.exists() == cut


def test_settings_say_what_was_built(view: View) -> None:
    config = json.loads((folder_of(view, "faiss") / "settings.json").read_text())

    assert (config["format"], config["index"], config["rows"]) == (1, "faiss", ROWS)
    assert config["settings"] == SETTINGS and config["measured"]["queries"] == 100
    assert read_stored(view, "faiss").shards[0].rows == ROWS and names_in(view) == ["faiss"]


def test_one_at_a_time(view: View) -> None:
    with building(view), pytest.raises(EyespotError, match="another eyespot"), building(view):
        pass
