"""Every parameter of a search goes through every form and link of its page, and each count is of what is shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs

import pytest
from fastapi.testclient import TestClient

from eyespot.web._search_params import SearchParams
from tests.web.conftest import PHOTOS

Q = "stripes and more"
PLAIN = {
    "q": Q,
    "by": "look",
    "teach": "false",
    "encoder": "starter",
    "grouped": "false",
    "neighbours": "2",
    "feedback": "everybody",
    "rerank": "quick",
    "where": "width > 3",
    "after": "2020-02",
    "before": "2022-06",
    "near": "46,7,46.3,7.3",
    "label": "kind=heron",
    "verdict": "yes",
    "whose": "everybody",
}


class Doors(HTMLParser):
    """The fields that the form of a page would send, and the addresses of its links, by what they are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}
        self.links: dict[str, str] = {}
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        one = {name: value or "" for name, value in attributes}
        if tag == "select":
            self._select = one.get("name", "") if one.get("form") == "search" else ""
        if tag == "option" and self._select and "selected" in one:
            self.fields.setdefault(self._select, []).append(one["value"])
        in_form = one.get("form") == "search" or one.get("type") == "hidden" or one.get("id") == "q"
        if tag == "input" and in_form and one.get("value") and (one.get("type") != "checkbox" or "checked" in one):
            self.fields.setdefault(one["name"], []).append(one["value"])
        places = {"data-tab": "tab", "data-go": "drop", "data-query": "share", "data-next": "next", "data-link": "copy"}
        for attribute, door in places.items():
            if attribute in one:
                self.links.setdefault(door, one.get("href") or one[attribute])
        if door := re.match(r"/(map|photo|summary|judges|alike)[/?]", one.get("href", "")):
            self.links.setdefault(door[1], one["href"])

    def handle_data(self, data: str) -> None:
        if self.lasttag == "textarea" and data.strip():
            self.fields.setdefault("where", []).append(data)


@pytest.fixture(scope="module")
def judged(here: TestClient) -> list[dict[str, Any]]:
    """All photos of the search in its order: the first forty judged, every other one with a yes."""
    items = here.get("/v1/search", params={"q": Q, "by": "look", "limit": PHOTOS}).json()["items"]
    marks = [{"item": one["id"], "verdict": "no" if at % 2 else "yes"} for at, one in enumerate(items[:40])]
    assert here.post("/v1/judgements/several", json={"q": Q, "marks": marks}).status_code == 200
    here.post("/v1/lists", json={"name": "Most", "items": [one["id"] for one in items[:60]]})
    return list(items)


@pytest.mark.parametrize("name", SearchParams.model_fields)
def test_every_parameter_goes_through_every_door(here: TestClient, judged: list[dict[str, Any]], name: str) -> None:
    """The form with its filters, tabs, filters to take off, map, share, link, next page, large view, and the summary.

    `whose` and `verdict` are given beside it, so that both stay with each.
    """
    ids = {"like": judged[0]["id"], "unlike": judged[-1]["id"]}
    more = {"list": "Most", "undated": "true", "adapt": "none", "adapt_depth": "5", "alpha": "2.5", "region": "none"}
    more |= {"picture": "0" * 32, "likely": "0.5"}
    value = {**PLAIN, **ids, **more}[name]
    given = {"q": Q, "verdict": "yes", "whose": "everybody", "label": "kind=heron"} | {name: value}
    given |= (
        {"neighbours": "2", "by": "look"} if name == "alpha" else {"adapt": "none"} if name == "adapt_depth" else {}
    )
    page = here.get("/", params=given)
    doors = Doors(page.text)
    if name != "likely":
        assert {key: doors.fields.get(key) for key in given} == {key: [one] for key, one in given.items()}
    if page.status_code != 200:  # what this gallery has not: the form stays as it was filled in
        return
    links = dict(doors.links)
    if "summary" in links:
        links |= {
            f"summary {at}": href for at, href in enumerate(re.findall(r'href="(/\?[^"]+)"', summary(here, links)))
        }
        del links["summary"]
    for door, address in links.items():
        sent = parse_qs(address.replace("&amp;", "&").partition("?")[2] or address)
        lost = {key for key, one in given.items() if sent.get(key) != [one]}
        changed = {"tab": {"verdict"}, "drop": {name, "label"}}.get(door, set())
        changed |= {"after", "before", "near"} if door.startswith("summary") else set()
        assert lost <= changed, (door, lost, address)
    if name not in ("undated", "near", "unlike", "list"):
        assert {"map", "share", "copy", "tab", "photo"} <= doors.links.keys()


def summary(here: TestClient, links: dict[str, str]) -> str:
    return here.get(links["summary"], headers={"HX-Request": "true"}).text


@pytest.mark.parametrize(("verdict", "photos"), [("yes", 20), ("no", 20), ("unjudged", PHOTOS - 40)])
def test_filters_count_the_tab_that_is_shown(
    here: TestClient, judged: list[dict[str, Any]], verdict: str, photos: int
) -> None:
    """Each value's count is the number of photos that its tick then shows; so are those without a date and the map."""
    given = {"q": Q, "by": "look", "verdict": verdict}
    page = here.get("/", params=given).text
    ticks = re.findall(r'name="label"[^>]*value="([^"]+)".*?<span class="soft small">([\d,]+)</span></label>', page)
    counts = {label: int(count.replace(",", "")) for label, count in ticks}
    assert counts["kind=heron"] + counts["kind=egret"] == photos
    for label, count in counts.items():
        assert here.get("/v1/search", params=given | {"label": label}).json()["total"] == count
    cells = re.findall(r'<path class="heat\d" d="([^"]*)"', page)
    whole = re.findall(r'<path class="heat\d" d="([^"]*)"', here.get("/", params={"q": Q, "by": "look"}).text)
    assert 0 < sum(path.count("M") for path in cells) < sum(path.count("M") for path in whole)
    found = here.get("/values", params=given | {"unit": "kind", "contains": "heron"}).text
    assert f'<span class="soft small">{counts["kind=heron"]}</span>' in found


def test_a_filter_to_drop_counts_the_tab(here: TestClient, judged: list[dict[str, Any]]) -> None:
    """Of a filter that leaves nothing: with what is left without it, and the link leads to as many."""
    page = here.get("/", params={"q": Q, "by": "look", "verdict": "yes", "where": "width > 30000"}).text
    ((address, count),) = re.findall(r'href="/\?([^"]*)">without “[^”]*”: ([0-9]+) photo', page)
    sent = parse_qs(address.replace("&amp;", "&"))
    assert int(count) == 20 == here.get("/v1/search", params=sent).json()["total"]
