"""Maps of places in a real browser: outlines of countries from the package alone, with names, a scale and a box."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from math import cos, floor, radians
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import ServerSettings
from tests.web.conftest import DESK, PHONE, opened, serving
from tests.web.test_accessible import wrong_with
from tests.worlds import draw, index_gallery

pytestmark = pytest.mark.long
expect = pytest.importorskip("playwright.sync_api").expect
PLACES = {
    "Chile": (-33.45, -70.65),
    "Switzerland": (46.95, 8.2),
    "Kenya": (-1.29, 36.82),
    "Australia": (-25.3, 133.8),
    "Mongolia": (47.9, 106.9),
    "United States of America": (38.5, -98.0),
    "Brazil": (-15.8, -47.9),
    "Russia": (67.0, -174.0),  # beyond the date line
}
# Which country's outline lies under a place of the map, which is given in degrees and found by its pixel
COUNTRY_AT = """([selector, latitude, longitude]) => {
    const svg = document.querySelector(selector);
    const pixel = new DOMPoint(longitude, -latitude).matrixTransform(svg.getScreenCTM());
    return [...svg.querySelectorAll(".land path")].filter((path) => {
        const at = pixel.matrixTransform(path.getScreenCTM().inverse());
        return path.isPointInFill(Object.assign(svg.createSVGPoint(), { x: at.x, y: at.y }));
    }).map((path) => path.dataset.name);
}"""


def gallery_at(folder: Path, places: dict[str, tuple[float, float]]) -> Path:
    for seed, name in enumerate(places):
        draw(folder / "photos" / f"{name}.jpg", seed)
    lines = [
        f"{name}.jpg,{name},{south},{west},2024-0{1 + at}-05" for at, (name, (south, west)) in enumerate(places.items())
    ]
    table = "\n".join(["file_name,title,latitude,longitude,taken", *lines]) + "\n"
    (folder / "photos" / "metadata.csv").write_text(table)
    index_gallery(folder / "gallery", folder / "photos")
    return folder / "gallery"


@pytest.fixture(scope="module")
def address(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gallery = gallery_at(tmp_path_factory.mktemp("world-map"), PLACES)
    with serving(replace(settings, gallery=gallery, cache=None)) as place:
        yield place


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address, viewport=DESK) as page:
        yield page


def test_each_photo_lies_in_the_outline_of_its_country_and_countries_have_names(page: Any) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto("/?q=stripes")
    page.locator("#map").scroll_into_view_if_needed()
    page.locator("#map .scale").wait_for()
    page.locator("#summary summary").click()
    page.locator(".spots .map").scroll_into_view_if_needed()
    page.locator(".spots .scale").wait_for()

    for selector in ("#map", ".spots .map"):
        found = {name: page.evaluate(COUNTRY_AT, [selector, *place]) for name, place in PLACES.items()}
        assert found == {name: [name] for name in PLACES}
        names = page.locator(f"{selector} .names-of-land text").all_text_contents()
        assert {"Russia", "Brazil", "Australia"} <= set(names) and len(set(names)) == len(names)
        assert page.locator(f"{selector} .scale text").text_content() == "5,000 km"
    assert sum("world.json" in one for one in addresses) == 1  # once for both
    assert all(one.startswith((page.url.split("/?")[0], "blob:", "data:")) for one in addresses)


def test_a_date_and_a_box_drawn_around_a_country_find_its_photos_and_stand_there_in_degrees(page: Any) -> None:
    page.goto("/?q=stripes")
    page.get_by_label("from").fill("2024-03-01")
    page.get_by_label("from").blur()
    page.wait_for_url("**after=2024-03-01**")
    expect(page.locator("#total")).to_have_text("6")
    page.goto("/")
    map = page.locator("#map")
    map.scroll_into_view_if_needed()
    map.locator(".scale").wait_for()
    expect(page.locator("#box")).to_be_hidden()  # numbers are for those who want them
    corners = page.evaluate(
        """() => [[110, 10], [155, 45]].map(([x, y]) => {
        const { x: left, y: top } = new DOMPoint(x, y).matrixTransform(document.querySelector("#map").getScreenCTM());
        return [left, top];
    })"""
    )
    page.mouse.move(*corners[0])
    page.mouse.down()
    page.mouse.move(*corners[1], steps=5)
    page.mouse.up()
    page.wait_for_url("**near=**")
    expect(page.locator("#total")).to_have_text("1")
    expect(page.locator(".tile img")).to_have_attribute("alt", re.compile("^Australia, 2024-04-05, at -25.30"))
    page.locator("#map .scale").wait_for()  # the filters came anew, and so does the map
    south, west, north, east = map_box = [float(one) for one in page.locator("#box").input_value().split(",")]
    assert map_box == pytest.approx([-45, 110, -10, 155], abs=2) and south < -25.3 < north and west < 133.8 < east


def test_a_close_view_shows_where_on_earth_it_is_and_no_coarse_outline(
    browser: Any, settings: ServerSettings, tmp_path: Path
) -> None:
    gallery = gallery_at(tmp_path, {"a": (-33.45, -70.65), "b": (-33.47, -70.61), "c": (-33.5, -70.6)})
    with (
        serving(replace(settings, gallery=gallery, cache=None)) as place,
        opened(browser, place, viewport=DESK) as page,
    ):
        page.goto("/")
        page.locator("#map").scroll_into_view_if_needed()
        page.locator(".locator .names-of-land").wait_for()
        assert page.locator("#map .land").count() == 0
        assert page.locator("#map .scale text").text_content() == "1 km"
        assert "Chile" in page.locator(".locator text").all_text_contents()
        assert page.evaluate(COUNTRY_AT, [".locator", -33.45, -70.65]) == ["Chile"]


def colour_at(page: Any, selector: str, place: tuple[float, float]) -> str:
    found: str = page.evaluate(
        """([selector, latitude, longitude]) => {
        const svg = document.querySelector(selector);
        const pixel = new DOMPoint(longitude, -latitude).matrixTransform(svg.getScreenCTM());
        return document.elementFromPoint(pixel.x, pixel.y).getAttribute("fill");
    }""",
        [selector, *place],
    )
    return found


def test_shares_by_cell_are_drawn_where_their_photos_are(page: Any, tmp_path: Path) -> None:
    page.goto("/")
    page.evaluate(
        """async () => {
        const { items } = await (await fetch("/v1/items")).json();
        const marks = items.map((one) => ({ item: one.id, verdict: one.title === "Kenya" ? "yes" : "no" }));
        const headers = { "Content-Type": "application/json" }, body = JSON.stringify({ q: "spots", marks });
        await fetch("/v1/judgements/several", { method: "POST", headers, body });
    }"""
    )
    page.goto("/count?q=spots&group=cell&looks=60")
    page.locator(".by-cell").scroll_into_view_if_needed()
    page.locator(".by-cell .scale").wait_for()
    fills = {name: colour_at(page, ".by-cell", place) for name, place in PLACES.items()}
    assert fills == dict.fromkeys(PLACES, "#deebf7") | {"Kenya": "#08306b"}
    assert page.evaluate(COUNTRY_AT, [".by-cell", *PLACES["Kenya"]]) == ["Kenya"]

    zipped = page.request.get("/count/answer.zip?q=spots&group=cell&looks=60").body()
    zipfile.ZipFile(BytesIO(zipped)).extractall(tmp_path)
    page.goto((tmp_path / "answer.html").as_uri())  # from the file alone, without a server
    page.locator(".map svg").scroll_into_view_if_needed()
    for name, place in PLACES.items():
        assert page.evaluate(COUNTRY_AT, [".map svg", *place]) == [name]
        assert colour_at(page, ".map svg", place) == fills[name]
        cell = ",".join(f"{floor(one)}" for one in place)
        row = page.get_by_role("row", name=cell).first.get_by_role("cell").all_text_contents()
        share, shown = ("100.0 %", "1 of 1") if name == "Kenya" else ("0.0 %", "0 of 1")
        assert row[0] == share and row[-2] == "1" and row[-1].startswith(shown), (name, row)
    middle = (max(floor(one[0]) for one in PLACES.values()) + 1 + min(floor(one[0]) for one in PLACES.values())) / 2
    assert page.get_by_text(f"it is {111.32 * cos(radians(middle)):.0f} km from west to east").is_visible()
    for scheme, screen in (("light", DESK), ("dark", PHONE)):
        page.set_viewport_size(screen)
        page.emulate_media(color_scheme=scheme)
        assert wrong_with(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == screen["width"]
