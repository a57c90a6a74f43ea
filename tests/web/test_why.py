"""Why a photo was found: its terms, a grid over it, a picture of that grid, and a page without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot import sample
from eyespot.search.why import MOST_TERMS
from eyespot.web import ServerSettings
from tests.made_once import made_once
from tests.web.conftest import PHONE, at_this_machine, opened, serving
from tests.worlds import annotation, index_gallery

LEFT, RIGHT = "categorization__windmill", "categorization__fish22"


def make(place: Path) -> None:
    """A photo of a windmill beside a fish, and some others."""
    (place / "photos").mkdir()
    both = Image.new("RGB", (800, 400))
    for at, name in ((0, LEFT), (400, RIGHT)):
        with Image.open(sample.photos() / f"{name}.jpg") as photo:
            both.paste(photo.convert("RGB").resize((400, 400)), (at, 0))
    both.save(place / "photos" / "both.jpg")
    for name in (LEFT, RIGHT, "categorization__hammer5", "explore_farm_animals__owl"):
        (place / "photos" / f"{name}.jpg").write_bytes((sample.photos() / f"{name}.jpg").read_bytes())
    index_gallery(place / "gallery", place / "photos")


@pytest.fixture(scope="module")
def settings(settings: ServerSettings, tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    return replace(settings, gallery=made_once("why", make) / "gallery", cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def client(settings: ServerSettings) -> Iterator[Any]:
    with at_this_machine(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def both(client: Any) -> str:
    items = client.get("/v1/items").json()["items"]
    return str(next(one["id"] for one in items if one["path"].endswith("both.jpg")))


def on_the_left(values: Any) -> float:
    mass = np.maximum(values, 0).sum(0)
    return float((mass[:4].sum() + mass[4] / 2) / mass.sum())


def test_the_score_is_that_of_the_search_and_a_term_has_a_heat_of_its_own(client: Any, both: str) -> None:
    hits = client.get("/v1/search", params={"q": "a windmill", "by": "look"}).json()["items"]
    found = next(one["score"] for one in hits if one["id"] == both)
    assert client.get(f"/v1/why/{both}", params={"q": "a windmill"}).json()["score"] == pytest.approx(found, abs=1e-5)

    query = {"q": "windmill + fish"}
    heats = [client.get(f"/v1/why/{both}", params={**query, "term": term}).json()["heat"] for term in (0, 1)]
    assert on_the_left(heats[0]["values"]) > 0.55 and on_the_left(heats[1]["values"]) < 0.35


def test_one_look_computes_the_heat_of_what_it_shows_alone(settings: ServerSettings, both: str) -> None:
    query = {"q": " + ".join(f"thing{number}" for number in range(40))}
    with at_this_machine(settings) as client:
        app: Any = client.app
        encoder = app.state.eyespot.snapshots.current().collection.encoder
        seen, heat = [], encoder.heat
        encoder.heat = lambda *given: (seen.append(given), heat(*given))[1]
        payload = client.get(f"/v1/why/{both}", params=query).json()
        assert len(seen) == 1
        client.get(f"/v1/why/{both}", params=query)
        assert len(seen) == 1  # a second look is remembered
        client.get(f"/v1/why/{both}", params={**query, "term": 7})
        client.get(f"/v1/heat/{both}", params={**query, "term": 7})
        assert len(seen) == 2

    assert len(payload["terms"]) == 40 and sum(one["without"] is not None for one in payload["terms"]) == MOST_TERMS


def test_the_heat_is_a_small_picture_dark_where_nothing_speaks_for_the_query(client: Any, both: str) -> None:
    answer = client.get(f"/v1/heat/{both}", params={"q": "a windmill"})

    drawn = Image.open(BytesIO(answer.content))
    alpha = np.asarray(drawn)[..., 3]
    assert (answer.headers["content-type"], drawn.size, drawn.mode) == ("image/png", (192, 96), "RGBA")
    assert alpha[:, :96].mean() < alpha[:, 96:].mean() - 20 and alpha.min() < 20
    assert not np.asarray(drawn)[..., :3].any() and len(answer.content) < 60_000


@pytest.mark.long
def test_what_moved_the_ranking_besides_the_look_is_named(tmp_path: Path) -> None:
    """Labels that teach the search what their words look like, and photos that it is drawn to."""
    with at_this_machine(ServerSettings(annotation.gallery(tmp_path, 60, 10), cache=None)) as client:
        first, second, *_ = client.get("/v1/search", params={"q": "heron"}).json()["items"]
        way = f"/v1/why/{first['id']}"
        drawn = {"like": second["id"], "unlike": [second["id"]]}
        notes = client.get(way, params={"q": "heron"}).json()["moved"]
        untaught = client.get(way, params={"q": "heron", "teach": "false"}).json()["moved"]
        verdicts = client.get(way, params={"q": "red stripes", "by": "look", **drawn}).json()["moved"]
        page = client.get(f"/why/{first['id']}", params={"q": "heron"}).text

    assert [one["code"] for one in notes] == ["taught"] and "have these words" in notes[0]["sentence"]
    assert untaught == [] and [one["code"] for one in verdicts] == ["like", "unlike"]
    assert "What else moved the ranking" in page and "teach=false" in page


def test_the_page_needs_no_scripts(client: Any, both: str) -> None:
    page = client.get(f"/why/{both}", params={"q": "2:windmill - people"}).text
    inside = client.get(f"/why/{both}", params={"q": "2:windmill - people"}, headers={"hx-request": "true"}).text

    assert "<html" in page and f'src="/v1/heat/{both}?' in page and "<bdi>windmill</bdi>" in page
    assert "<html" not in inside and 'data-heat="/v1/heat/' in inside
    assert f'href="/why/{both}?q=2%3Awindmill+-+people"' in client.get(f"/photo/{both}?q=2:windmill+-+people").text
    assert "/why/" not in client.get(f"/photo/{both}").text  # nothing was searched for


@pytest.mark.parametrize("way", ["v1/why", "v1/heat", "why"])
def test_what_cannot_be_explained_is_refused(client: Any, both: str, way: str) -> None:
    def ask(id: str, **given: Any) -> int:
        return int(client.get(f"/{way}/{id}", params=given).status_code)

    assert ask("0" * 32, q="a") == ask("../etc/passwd", q="a") == 404
    wrong: tuple[dict[str, Any], ...] = ({}, {"q": "a - a"}, {"q": "./secret.jpg"}, {"q": "a", "term": -1})
    assert [ask(both, **given) for given in wrong] == [422] * 4
    assert ask(both, q="a", term=99) == 200


def test_words_that_the_owner_refuses_are_not_explained(settings: ServerSettings, both: str) -> None:
    with at_this_machine(replace(settings, refused=("windmill",))) as client:
        assert client.get(f"/v1/why/{both}", params={"q": "a windmill"}).status_code == 422


@pytest.mark.long
def test_w_lays_the_heat_over_the_large_photo(browser: Any, settings: ServerSettings, both: str) -> None:
    with serving(settings) as address, opened(browser, address) as page:
        page.goto("/?q=2:windmill+%2B+fish")
        page.locator(".tile", has_text="both").locator(".picture").click()
        page.locator("#large .photo").wait_for()
        page.keyboard.press("w")
        page.locator("#large .heat").wait_for()
        assert is_over_the_photo(page, "#large")
        assert page.locator(".because .terms tbody tr").count() == 2
        page.get_by_role("link", name="where", exact=True).nth(1).click()
        page.locator(".heat[src*='term=1']").wait_for()
        page.keyboard.press("w")
        page.locator(".heat").wait_for(state="detached")
        assert page.locator(".because").count() == 0
        assert page.locator("[data-act=why]").get_attribute("aria-expanded") == "false"

        page.set_viewport_size(PHONE)
        page.goto(f"/why/{both}?q=2:windmill+%2B+fish")  # a page of its own
        page.locator(".heat").wait_for()
        assert is_over_the_photo(page, ".explained")


def is_over_the_photo(page: Any, within: str) -> bool:
    over, under = (page.locator(f"{within} .mat img{which}").bounding_box() for which in (".heat", ":not(.heat)"))
    return all(abs(over[edge] - under[edge]) < 2 for edge in over)
