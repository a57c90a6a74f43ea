"""The map's page and API: points, colours, names of clusters, a search's hits, regions; and how a map is made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings as trying, strategies as st

from eyespot.gallery.layout.clusters import cluster_cells
from eyespot.gallery.layout.stored import MapLayout, make_layout, place_of_layout
from eyespot.gallery.view import Gallery
from eyespot.web import ServerSettings
from eyespot.web.found.on_map import OTHERS, UNKNOWN, ShownMap, in_polygon
from tests.examples import examples
from tests.lazy_import import requires
from tests.made_once import made_once
from tests.web.conftest import PHOTOS, at_this_machine, copy_gallery, make_gallery
from tests.web.server_process import until
from tests.wording import check_wording
from tests.worlds import draw, index_gallery

pytestmark = requires("openTSNE")
ALL = "0,0,65535,0,65535,65535,0,65535"


def make_mapped(folder: Path) -> None:
    gallery = Gallery(copy_gallery(folder))
    make_layout(gallery.view(gallery.stem()))


def copy_mapped(folder: Path) -> Path:
    made = made_once("web-map", make_mapped)
    shutil.copytree(made / "photos", folder / "photos")
    return Path(shutil.copytree(made / "gallery", folder / "gallery"))


@pytest.fixture(scope="module")
def mapped(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    return replace(settings, gallery=copy_mapped(tmp_path_factory.mktemp("map")), cache=None)


@pytest.fixture(scope="module")
def on_map(mapped: ServerSettings) -> Iterator[TestClient]:
    with at_this_machine(mapped) as opened:
        yield opened


@pytest.fixture(scope="module")
def about(on_map: TestClient) -> Any:
    return on_map.get("/v1/map").json()


def numbers(answer: Any, kind: str) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, kind)


def ids_of(client: TestClient, about: Any, places: np.ndarray) -> list[str]:
    given = {"version": about["version"], "at": places.tolist()}
    return [item["id"] for item in client.get("/v1/map/items", params=given).json()["items"]]


def test_every_photo_has_a_point_and_the_page_says_how_many(on_map: TestClient, about: Any) -> None:
    points = numbers(on_map.get("/v1/map/points", params={"version": about["version"]}), "<u2").reshape(-1, 2)
    assert len(points) == about["photos"] == PHOTOS
    assert len({tuple(point) for point in points.tolist()}) > PHOTOS // 2
    page = on_map.get("/map").text
    assert "72 photos by what they look like" in page and about["version"] in page


def test_colours_are_places_in_the_legend(on_map: TestClient, about: Any) -> None:
    assert about["colour"] == "kind" and dict(about["legend"]) == {"egret": 48, "heron": 24}
    given = {"version": about["version"], "column": "kind"}
    codes = numbers(on_map.get("/v1/map/colours", params=given), "u1")
    herons = np.flatnonzero(codes == [name for name, _ in about["legend"]].index("heron"))
    shown = on_map.get("/v1/map/items", params={"version": about["version"], "at": herons.tolist()}).json()["items"]
    assert {item["kind"] for item in shown} == {"heron"} and len(shown) == 24
    assert not set(codes.tolist()) & {OTHERS, UNKNOWN}
    wrong = on_map.get("/v1/map/colours", params=given | {"column": "title"})
    assert wrong.status_code == 422 and "there are: kind" in wrong.json()["detail"]


@pytest.mark.long
def test_labels_that_are_read_again_have_their_colours_under_a_new_version(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path, 36)
    make_layout(Gallery(gallery).view(Gallery(gallery).stem()))
    with at_this_machine(ServerSettings(gallery, cache=tmp_path / "cache")) as client:
        before = client.get("/v1/map").json()
        table = tmp_path / "photos" / "metadata.csv"
        table.write_text(table.read_text().replace(",heron,", ",Egret,", 6).replace(",egret,", ",Heron,", 15))
        index_gallery(gallery, tmp_path / "photos")
        about = client.get("/v1/map").json()
        old = client.get("/v1/map/colours", params={"version": before["version"], "column": "kind"})
        given = {"version": about["version"], "column": "kind"}
        codes = numbers(client.get("/v1/map/colours", params=given), "u1")

    assert (about["version"] != before["version"], old.status_code) == (True, 409)
    # Spellings that differ in case have one colour, as they are one value of the filters
    assert {name.lower(): photos for name, photos in about["legend"]} == {"heron": 21, "egret": 15}
    assert sorted(np.bincount(codes).tolist()) == [15, 21]


def test_hits_are_those_of_the_search_and_a_filter_lights_up_all(on_map: TestClient, about: Any) -> None:
    version = {"version": about["version"]}
    words = {"q": "red stripes", "depth": 10}
    lit = numbers(on_map.get("/v1/map/hits", params=version | words), "<u4")
    found = on_map.get("/v1/search", params={"q": "red stripes", "limit": 10}).json()["items"]
    assert ids_of(on_map, about, lit) == [item["id"] for item in found]
    assert "10 lit up" in on_map.get("/map", params=words).text
    counts = [
        len(numbers(on_map.get("/v1/map/hits", params=version | given), "<u4"))
        for given in ({"label": "kind=heron"}, {})
    ]
    assert counts == [24, 0]


def test_a_region_is_a_filter_of_every_search(on_map: TestClient, about: Any) -> None:
    points = numbers(on_map.get("/v1/map/points", params={"version": about["version"]}), "<u2").reshape(-1, 2)
    middle = int(np.median(points[:, 0]))
    region = f"{about['map']}:0,0,{middle},0,{middle},65535,0,65535"
    inside = np.flatnonzero(in_polygon(points, np.array(region.split(":")[1].split(","), float).reshape(-1, 2)))
    payload = on_map.get("/v1/map/region", params={"region": region}).json()
    assert payload["photos"] == len(inside) and set(payload["ids"]) == set(ids_of(on_map, about, inside))
    found = on_map.get("/v1/search", params={"q": "stripes", "region": region, "limit": 100, "grouped": "false"}).json()
    assert {item["id"] for item in found["items"]} == set(payload["ids"])
    listed = on_map.get("/v1/items", params={"region": region, "limit": 100}).json()["items"]
    assert {item["id"] for item in listed} == set(payload["ids"])
    part = on_map.get("/v1/map/region", params={"region": region, "first": 2, "limit": 3}).json()
    assert part["ids"] == payload["ids"][2:5]
    page = on_map.get("/", params={"region": region}).text
    assert f'name="region" value="{region}"' in page and "Only the region drawn" in page


def test_a_search_that_finds_nothing_leaves_the_map_and_says_why(on_map: TestClient, about: Any) -> None:
    for wrong, why in (({"q": "heron", "by": "words", "label": "kind=x"}, "widen"), ({"where": "1 +"}, 'role="alert"')):
        page = on_map.get("/map", params=wrong)
        assert why in page.text and about["version"] in page.text and "data-lit" not in page.text


def test_clusters_hold_their_photos_and_are_named_by_what_is_typical(on_map: TestClient, about: Any) -> None:
    given = {"version": about["version"]}
    numbers_of = numbers(on_map.get("/v1/map/clusters", params=given), "<i2")
    assert about["clusters"]
    for cluster in about["clusters"]:
        assert cluster["photos"] == (numbers_of == cluster["number"]).sum()
        region = on_map.get("/v1/map/region", params={"region": cluster["region"]}).json()
        assert region["photos"] == cluster["photos"]
        items = on_map.get("/v1/items", params={"region": cluster["region"], "limit": 100}).json()["items"]
        if cluster["name"]:
            share = np.mean([item["kind"] in cluster["name"].split(", ") for item in items])
            assert share == pytest.approx(cluster["share"], abs=1e-3)
    page = on_map.get("/map").text
    assert page.count("<tr data-x=") == len(about["clusters"])


def test_clusters_are_named_by_the_column_that_tells_them_apart_and_no_name_stands_twice(tmp_path: Path) -> None:
    """Six heaps of ten photos: five of one set, each of a species; a column by chance tells nothing."""
    rows = ["file_name,set,species,day"]
    for seed in range(60):
        draw(tmp_path / "photos" / f"{seed:03d}.jpg", seed)
        rows.append(f"{seed:03d}.jpg,{'sample' if seed < 10 else 'birds'},species {seed // 10},{'abc'[seed % 3]}")
    (tmp_path / "photos" / "metadata.csv").write_text("\n".join(rows) + "\n")
    index_gallery(tmp_path / "gallery", tmp_path / "photos")
    with at_this_machine(ServerSettings(tmp_path / "gallery", cache=tmp_path / "cache")) as client:
        snapshot = client.app.state.eyespot.snapshots.current()  # type: ignore[attr-defined]
        heap = np.array([int(one["species"].split()[1]) for one in snapshot.facts(list(range(60)))])
        points = np.random.default_rng(0).normal(0, 0.01, (60, 2)) + 0.2 + 0.3 * np.c_[heap % 3, heap // 3]
        notes = make_layout(snapshot.view).notes
        layout = MapLayout(notes, (), points.astype(np.float32), np.arange(60), cluster_cells(points))
        shown = ShownMap(snapshot, layout, 0)

        assert shown.columns == ["species", "set", "day"]
        assert {one["name"] for one in shown.clusters("species")} == {f"species {at}" for at in range(6)}
        assert {one["name"] for one in shown.clusters("day")} == {f"species {at}" for at in range(6)}
        by_set = [one["name"] for one in shown.clusters("set")]
    assert len({*by_set}) == len(by_set) == 6 and {"sample", "birds"} < {*by_set}


@pytest.mark.parametrize(
    "region",
    ["x", f"0123456789ab:{ALL}", "MAP:1,2,3,4,5", "MAP:1,2,3,4,5,6,7", "MAP:" + ",".join(["1"] * 600)],
    ids=["no region", "another map", "two corners", "half a corner", "too many corners"],
)
def test_what_is_no_region_of_this_map_is_refused(on_map: TestClient, about: Any, region: str) -> None:
    answer = on_map.get("/v1/items", params={"region": region.replace("MAP", about["map"])})
    assert answer.status_code == 422
    check_wording(answer.json()["detail"].replace(about["map"], "MAP"))


@trying(max_examples=examples(50))
@given(st.integers(0, 2**32 - 1), st.integers(3, 12))
def test_a_polygon_holds_a_point_where_its_edges_are_crossed_an_odd_number_of_times(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    corners, points = random.random((count, 2)), random.random((50, 2))
    found = in_polygon(points, corners)
    assert np.array_equal(found, in_polygon(points, corners[::-1]))
    assert np.array_equal(found, in_polygon(points, np.roll(corners, 3, axis=0)))
    square = np.array([[0.2, 0.2], [0.8, 0.2], [0.8, 0.8], [0.2, 0.8]])
    assert np.array_equal(in_polygon(points, square), ((points > 0.2) & (points < 0.8)).all(axis=1))


def test_places_mean_what_they_meant_or_nothing(on_map: TestClient, about: Any) -> None:
    for part in ("points", "clusters", "items?at=0", "hits"):
        joined = "&" if "?" in part else "?"
        answer = on_map.get(f"/v1/map/{part}{joined}version={'0' * 16}")
        assert answer.status_code == 409
    beyond = on_map.get("/v1/map/items", params={"version": about["version"], "at": PHOTOS})
    assert beyond.status_code == 404


@pytest.mark.long
def test_a_gallery_without_a_map_offers_to_make_it(settings: ServerSettings, tmp_path: Path) -> None:
    gallery = copy_gallery(tmp_path)
    with at_this_machine(replace(settings, gallery=gallery, cache=None)) as owner:
        assert owner.get("/v1/map").json()["state"] == "none"
        assert "Make the map" in owner.get("/map").text
        refused = owner.get("/", params={"region": f"0123456789ab:{ALL}"})
        assert refused.status_code == 422 and "There is no map" in refused.text
        begun = owner.post("/map/make", data={"work": "compute"}, follow_redirects=False)
        assert begun.status_code == 303 and begun.headers["location"] == "/map"
        assert "The map is being made" in owner.get("/map").text
        assert owner.post("/map/make", data={"work": "compute"}, follow_redirects=False).status_code == 303  # the same
        until(lambda: owner.get("/v1/map").json()["making"]["state"] != "running", 300)
        making = owner.get("/v1/map").json()["making"]
        assert making["state"] == "done" and making["problem"] is None
        assert making["total"] > 0
        assert owner.get("/v1/map").json()["photos"] == PHOTOS


def test_a_damaged_map_is_none(settings: ServerSettings, tmp_path: Path) -> None:
    gallery = copy_mapped(tmp_path)
    opened = Gallery(gallery)
    place_of_layout(opened.view(opened.stem())).write_bytes(b"PK")
    with at_this_machine(replace(settings, gallery=gallery, cache=None)) as owner:
        assert owner.get("/v1/map").json()["state"] == "none"
        assert "Make the map" in owner.get("/map").text
