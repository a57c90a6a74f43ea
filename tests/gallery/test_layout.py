"""The map of a gallery: where photos go, what clusters are, and that what is on the map stays there."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.gallery.layout.clusters import BETWEEN, cluster_cells, cluster_of
from eyespot.gallery.layout.embedding import FEWEST, flat_map, principal_components, trustworthiness
from eyespot.gallery.layout.stored import (
    APART,
    TOGETHER,
    Landmarks,
    extend_layout,
    make_layout,
    place_of_layout,
    read_layout,
    unplaced,
)
from eyespot.gallery.view import Gallery, View
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, NothingFound
from tests.examples import examples
from tests.lazy_import import requires
from tests.made_once import made_once
from tests.wording import raises
from tests.worlds import draw, index_gallery, make_gallery


def unit(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors.astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_a_photo_goes_to_one_place_whoever_comes_with_it(seed: int, count: int) -> None:
    """Beside its twin, and with its very nearest rather than between two groups."""
    random = np.random.default_rng(seed)
    marks = Landmarks(unit(random.standard_normal((count, 16))), random.random((count, 2), np.float32))
    vectors = unit(random.standard_normal((20, 16)))
    rows = np.arange(100, 120)
    together = marks.place(vectors, rows)
    alone = np.concatenate([marks.place(vectors[at : at + 1], rows[at : at + 1]) for at in range(20)])
    nearest = marks.points[(vectors @ marks.vectors.T).argmax(axis=1)]
    twins = marks.place(marks.vectors, np.arange(count))

    assert np.allclose(together, alone, atol=1e-5)
    assert ((together >= 0) & (together <= 1)).all()
    assert (np.linalg.norm(together - nearest, axis=1) <= TOGETHER + APART + 1e-6).all()
    assert (np.linalg.norm(twins - marks.points, axis=1) <= APART * 1.01).all()


def test_two_crowds_are_two_clusters_the_larger_first() -> None:
    random = np.random.default_rng(0)
    crowds = [random.normal(middle, 0.03, (count, 2)) for middle, count in ((0.3, 200), (0.7, 400))]
    points = np.concatenate(crowds).astype(np.float32)
    found = cluster_of(points, cluster_cells(points))
    main = [np.bincount(part[part != BETWEEN]).argmax() for part in (found[:200], found[200:])]
    assert main == [1, 0]
    assert not set(found[:200]) & set(found[200:]) - {BETWEEN}


def test_points_without_a_place_are_in_no_cluster() -> None:
    points = np.array([[0.5, 0.5], [np.nan, np.nan]], np.float32)
    cells = np.zeros((8, 8), np.int16)
    assert cluster_of(points, cells).tolist() == [0, BETWEEN]


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.integers(1, 500))
def test_clusters_are_numbered_by_size_whatever_the_points(seed: int, count: int) -> None:
    points = np.random.default_rng(seed).random((count, 2), np.float32)
    found = cluster_of(points, cluster_cells(points))
    sizes = np.bincount(found[found != BETWEEN]).tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert 0 not in sizes


def test_directions_are_those_of_the_largest_spread_with_a_sign_of_their_own() -> None:
    line = np.outer(np.arange(9.0), [3, 4]).astype(np.float32)
    found = principal_components(line, 1)
    assert np.allclose(found[:, 0], 5 * (np.arange(9) - 4))


def test_a_map_that_keeps_all_neighbours_is_trusted_and_a_random_one_is_not() -> None:
    angles = np.linspace(0, np.pi / 2, 100)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert trustworthiness(vectors, vectors, 0) == pytest.approx(1, abs=1e-3)  # equal steps to both sides tie
    moved = trustworthiness(vectors, np.random.default_rng(0).random((100, 2)), 0)
    assert moved is not None and moved < 0.7
    assert trustworthiness(vectors[:2], vectors[:2], 0) is None


@pytest.mark.parametrize("count", [0, 1, 2, FEWEST - 1])
def test_few_photos_need_no_library(count: int) -> None:
    points = flat_map(unit(np.random.default_rng(0).standard_normal((count, 8)) + 0.1), 0)
    assert points.shape == (count, 2)
    assert ((points >= 0) & (points <= 1)).all()


@pytest.mark.parametrize("count", [2, FEWEST - 1, FEWEST, 40])
def test_photos_that_all_look_the_same_lie_in_the_middle(count: int) -> None:
    vectors = np.repeat(unit(np.random.default_rng(0).standard_normal((1, 64))), count, axis=0)

    assert np.array_equal(flat_map(vectors, 0), np.full((count, 2), 0.5, np.float32))


@requires("openTSNE")
def test_groups_that_look_different_lie_apart_and_a_seed_gives_one_map() -> None:
    random = np.random.default_rng(0)
    middles = random.standard_normal((3, 32))
    vectors = unit(np.repeat(middles, 30, axis=0) + 0.2 * random.standard_normal((90, 32)))
    points = flat_map(vectors, 7)
    groups = points.reshape(3, 30, 2)
    spread = np.linalg.norm(groups - groups.mean(axis=1, keepdims=True), axis=2).max()
    gaps = [np.linalg.norm(groups[a].mean(axis=0) - groups[b].mean(axis=0)) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(gaps) > spread
    assert np.array_equal(points, flat_map(vectors, 7))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eleven photos in three shards, few enough for a map without the library."""
    made = made_once("layout", lambda place: make_gallery(place, 11, shard_rows=4))
    return Path(shutil.copytree(made, tmp_path / "small"))


def opened(folder: Path) -> View:
    gallery = Gallery(folder / "gallery")
    return gallery.view(gallery.stem())


def test_every_photo_gets_a_point_and_the_map_is_read_as_it_was_stored(folder: Path) -> None:
    made = make_layout(opened(folder), sample=6)
    known = read_layout(opened(folder))
    assert known is not None
    assert known.notes == made.notes and known.notes.computed == 6
    assert np.array_equal(known.points, made.points) and np.isfinite(known.points).all()
    assert np.array_equal(known.cells, made.cells)


def test_new_photos_are_placed_and_the_others_stay(folder: Path, tmp_path: Path) -> None:
    before = make_layout(opened(folder))
    draw(tmp_path / "new" / "90.jpg", 90)
    index_gallery(folder / "gallery", tmp_path / "new", shard_rows=4)
    view = opened(folder)
    known = read_layout(view)
    assert known is not None and len(unplaced(view, known)) == 1
    after = extend_layout(view, known)
    assert after.notes == before.notes
    assert np.array_equal(after.on(view)[:11], before.points)
    assert np.isfinite(after.on(view)).all() and not len(unplaced(view, after))


def test_rows_of_a_shard_that_went_are_not_those_of_another(folder: Path) -> None:
    layout = make_layout(opened(folder))
    view = opened(folder)
    without = replace(view, shards=view.shards[1:], missing=view.missing[1:])
    assert np.array_equal(layout.on(without), layout.points[4:])


def test_a_photo_that_is_gone_has_no_point(tmp_path: Path) -> None:
    make_gallery(tmp_path, 11, shard_rows=4)
    (tmp_path / "photos" / "3.jpg").unlink()
    index_gallery(tmp_path / "gallery", tmp_path / "photos", forget=True)
    view = opened(tmp_path)
    assert np.isnan(make_layout(view).points[:, 0]).tolist() == (~view.live).tolist() != [False] * 11


@pytest.mark.parametrize("end", [0, 10, 200, -1])
def test_a_file_that_was_cut_is_no_map(folder: Path, end: int) -> None:
    make_layout(opened(folder))
    place = place_of_layout(opened(folder))
    place.write_bytes(place.read_bytes()[:end])
    assert read_layout(opened(folder)) is None


def test_two_do_not_make_a_map_at_once_and_an_empty_gallery_has_none(folder: Path) -> None:
    view = opened(folder)
    with locked(view.gallery.path / "map"), pytest.raises(EyespotError, match="another eyespot"):
        make_layout(view)
    with raises(NothingFound):
        make_layout(replace(view, shards=[], missing=[]))
    assert read_layout(view) is None
