"""Filters: counts within the result, taxa as a tree, what to drop; each parameter goes through every form and link."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import duckdb
import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.gallery.filters import fold_case
from eyespot.search.collection import Collection
from eyespot.types import Index, Mask, NearestRows, NothingFound, Vectors
from eyespot.web import ServerSettings
from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams
from eyespot.web._searches import Results
from eyespot.web.filtering import filter_units, to_drop
from eyespot.web.found.facets import facets_of
from eyespot.web.found.masks import FactStore
from eyespot.web.found.results import JudgedPlace, RankedResult, SearchContext, label_counts, mask_of
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.summary import BARS, MONTHS, places_of, timeline_of
from eyespot.web.found.taxa import Coded, taxa_of
from tests.examples import examples
from tests.made_once import made_once
from tests.web.conftest import PHOTOS, at_this_machine, copy_gallery
from tests.wording import raises
from tests.worlds import draw, index_gallery

BIRDS = (
    ("Pelecaniformes", "Ardeidae", "Ardea", "Ardea cocoi"),
    ("Pelecaniformes", "Ardeidae", "Ardea", "Ardea alba"),
    ("Pelecaniformes", "Ardeidae", "Egretta", "Egretta thula"),
    ("Pelecaniformes", "Ardeidae", "", ""),
    ("Pelecaniformes", "Pelecanidae", "Pelecanus", "Pelecanus thagus"),
    ("Passeriformes", "Icteridae", "Curaeus", "Curaeus curaeus"),
)


def make_birds(folder: Path) -> None:
    """60 photos of six taxa at two sites; every fifth is a copy of the one before it."""
    rows = ["file_name,order,family,genus,species,site"]
    for seed in range(60):
        place = draw(folder / "photos" / f"{seed:03d}.png", seed - (seed % 5 == 4))
        if seed % 5 == 4:  # the same picture in other bytes
            place.write_bytes(place.read_bytes() + b"more")
        rows.append(",".join((place.name, *BIRDS[seed % 6], ("lake", "river", "Lake")[seed % 3])))
    (folder / "photos" / "metadata.csv").write_text("\n".join(rows) + "\n")
    index_gallery(folder / "gallery", folder / "photos", shard_rows=25)


def birds() -> Path:
    return made_once("web-birds", make_birds) / "gallery"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with at_this_machine(ServerSettings(birds(), cache=tmp_path_factory.mktemp("cache"))) as opened:
        yield opened


def state_of(client: TestClient):  # type: ignore[no-untyped-def]
    return client.app.state.eyespot  # type: ignore[attr-defined]


TICKS = ("site=lake", "site=river", "order=Passeriformes", "family=Ardeidae", "genus=Egretta", "species=Ardea alba")


@pytest.mark.long
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(TICKS), max_size=3), st.booleans(), st.sampled_from(["stripes", None]))
def test_a_count_is_what_a_tick_leaves(client: TestClient, ticks: set[str], ungrouped: bool, query: str | None) -> None:
    """For every set of ticks, each value of each column, with copies folded and not."""
    params = SearchParams(q=query, label=tuple(sorted(ticks)), grouped=False if ungrouped else None)
    state = state_of(client)
    snapshot = state.snapshots.current()
    facets, counts = facets_of(snapshot), label_counts(snapshot, params, state.searches.countable(params))
    tree = set(facets.taxa.columns)
    for column, coded in facets.coded.items():
        others = [
            one
            for one in ticks
            if (one.partition("=")[0] not in tree if column in tree else not one.startswith(f"{column}="))
        ]
        for value, count in zip(coded.values, counts[column].tolist(), strict=True):
            alone = params.model_copy(update={"label": (*others, f"{column}={value}")})
            left = mask_of(snapshot, alone)
            folded = snapshot.groups.lost(left) if query and not ungrouped else 0
            assert count == int(left.sum()) - folded


def test_columns_that_nest_are_one_tree_and_others_are_not(client: TestClient) -> None:
    state = state_of(client)
    tree, site = filter_units(state.snapshots.current(), SearchParams(), state.searches.countable(SearchParams()))

    assert (tree.columns, site.columns) == (["order", "family", "genus", "species"], ("site",))
    assert [(one.value, one.photos) for one in tree.choices] == [("Pelecaniformes", 50), ("Passeriformes", 10)]
    herons = tree.choices[0].children[0]
    assert (herons.label, herons.photos) == ("family=Ardeidae", 40)
    assert [one.value for one in herons.children] == ["Ardea", "Egretta"]
    assert [(one.value, one.photos) for one in site.choices] == [("lake", 40), ("river", 20)]  # "Lake" is one of them


def total(client: TestClient, *labels: str) -> int:
    return int(client.get("/v1/search", params={"q": "stripes", "grouped": "false", "label": labels}).json()["total"])


def test_a_family_takes_its_species_and_taxa_of_different_branches_are_alternatives(client: TestClient) -> None:
    assert total(client, "family=Ardeidae") == 40
    assert total(client, "family=Ardeidae", "species=Curaeus curaeus") == 50
    assert total(client, "family=Ardeidae", "genus=Egretta") == 10  # narrowed down
    assert total(client, "family=Ardeidae", "site=river") == 10


def test_a_column_that_lies_in_two_of_the_one_above_does_not_nest() -> None:
    order = Coded(["a", "b"], np.array([0, 0, 1, 1], np.int32))
    family = Coded(["x", "y"], np.array([0, 1, 1, -1], np.int32))
    assert taxa_of({"order": order, "family": family}).columns == ()


def test_where_nothing_is_left_the_page_says_what_to_drop(client: TestClient) -> None:
    """Each with what the search would then find; none where it would find nothing."""
    state, labels = state_of(client), ("order=Passeriformes", "site=river")
    wanted = SearchParams(q="stripes", label=labels)
    drops = to_drop(state.snapshots.current(), wanted, state.searches.countable(wanted))
    page = client.get("/", params={"q": "stripes", "grouped": "false", "label": labels})

    assert [one["photos"] for one in drops] == [state.searches.run(one["without"]).total for one in drops]
    assert page.status_code == 200
    assert re.findall("without “([^”]*)”: ([0-9]+) photos?", page.text) == [
        ("order: Passeriformes", "20"),
        ("site: river", "10"),
    ]
    nothing = SearchParams(q="zzzzqqq", by="words", label=labels)
    assert to_drop(state.snapshots.current(), nothing, state.searches.countable(nothing)) == []


def test_active_filters_stand_above_the_result(client: TestClient) -> None:
    page = client.get(
        "/", params={"q": "stripes", "label": ["site=lake", "family=Ardeidae"], "where": "width > 3"}
    ).text
    chips = re.findall(r'<a class="chip" data-go href="([^"]*)"><span dir="auto">([^<]*)</span>', page)
    assert [text for _, text in chips] == ["width &gt; 3", "site: lake", "family: Ardeidae"]
    assert "where" not in chips[0][0] and "site" not in chips[1][0] and "clear all" in page


def test_values_are_found_by_a_part_of_their_name(client: TestClient) -> None:
    found = client.get("/values", params={"unit": "order", "contains": "arde", "label": "site=river"}).text
    # Within the result: only two of the Ardea photos are at the river
    assert re.findall('value="([^"]*)"', found) == ["family=Ardeidae", "genus=Ardea", "species=Ardea alba"]
    assert "family of Pelecaniformes" in found
    assert client.get("/values", params={"unit": "nothing", "contains": "a"}).status_code == 404
    assert client.get("/values", params={"unit": "id", "contains": "a"}).status_code == 404


def test_what_lies_under_a_taxon_comes_when_it_is_opened(client: TestClient) -> None:
    under = client.get("/values", params={"unit": "order", "under": "family=Ardeidae"}).text
    assert re.findall('value="([^"]*)"', under) == ["genus=Ardea", "genus=Egretta"]


@given(st.text(st.sampled_from("aZΣσςİıIiẞßǅÅÉŁꭰᎠ'"), max_size=8))
def test_cases_are_folded_as_duckdb_does(text: str) -> None:
    row = duckdb.execute("SELECT lower(?)", [text]).fetchone()
    assert row is not None and fold_case(text) == row[0]


# -- the timeline and the places of a result ---------------------------------------------------------------------


LATITUDES, LONGITUDES = (  # to a centimetre, and many on edges of cells
    st.one_of(st.integers(-most * 10**7, most * 10**7).map(lambda at: at / 10**7), st.integers(-most, most).map(float))
    for most in (90, 180)
)


@settings(max_examples=examples(60))
@given(st.lists(st.dates(date(1850, 1, 1), date(2100, 12, 31)), max_size=30))
def test_every_dated_photo_is_in_one_bar_and_bars_join_without_a_gap(days: list[date]) -> None:
    found = timeline_of([{"taken": f"{day.isoformat()}T10:00:00"} for day in days] + [{}])
    if len({(day.year, day.month) for day in days}) < 2:
        assert found is None
        return
    assert found is not None and found["unknown"] == 1
    assert sum(bar["photos"] for bar in found["bars"]) == len(days)
    assert [bar["before"] for bar in found["bars"][:-1]] == [bar["after"] for bar in found["bars"][1:]]
    assert len(found["bars"]) <= max(MONTHS, BARS + 1)
    for bar in found["bars"]:  # ISO dates compare as text
        assert bar["photos"] == sum(bar["after"] <= day.isoformat() < bar["before"] for day in days)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(LATITUDES, LONGITUDES), min_size=1, max_size=30))
def test_every_placed_photo_is_in_one_square_within_its_box(places: list[tuple[float, float]]) -> None:
    found = places_of([{"latitude": south, "longitude": west} for south, west in places] + [{"latitude": None}])
    assert found is not None and found["unknown"] == 1
    assert sum(cell["photos"] for cell in found["cells"]) == len(places)
    for cell in found["cells"]:
        south, west, north, east = map(float, cell["box"].split(","))
        assert cell["photos"] == sum(south <= a <= north and west <= b <= east for a, b in places)
        assert -90 <= south <= north <= 90 and -180 <= west <= east <= 180


def test_a_photo_on_the_edge_of_a_square_is_in_one_alone() -> None:
    found = places_of([{"latitude": 0.0, "longitude": float(east)} for east in range(25)])
    assert found is not None and found["step"] == 1
    assert [cell["box"].split(",")[1::2] for cell in found["cells"][:2]] == [["0", "0.9999999"], ["1", "1.9999999"]]


@pytest.mark.parametrize("taken", ["", "2021", "2021-13-01", None])
def test_what_is_no_date_is_unknown(taken: str | None) -> None:
    found = timeline_of([{"taken": "2021-01-02"}, {"taken": "2021-02-02"}, {"taken": taken}])
    assert found is not None and (found["unknown"], len(found["bars"])) == (1, 2)


# -- frozen results take no more memory than they are given, and those of a gallery as it was go first ------------


MIB = 1 << 20


def world_of(gallery: Path, version: str) -> SearchContext:
    collection = Collection(gallery, "starter")
    snapshot = Snapshot(collection, FactStore(), version)
    snapshot.prepare()
    return SearchContext(snapshot, gallery / "pictures")


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> SearchContext:
    return world_of(copy_gallery(tmp_path_factory.mktemp("results"), 4), "1")


def one(context: SearchContext) -> RankedResult:
    return Results().search(SearchParams(q="stripes"), context)


def kept_of(frozen: RankedResult, masks: list[Mask], limit: int) -> list[str]:
    """Which of as many results, named by their numbers, a store of so many bytes still has."""
    results = Results(limit)
    for number, mask in enumerate(masks):
        results.keep(replace(frozen, id=str(number), mask=mask))
    return [frozen.id for frozen in results.results.values()[::-1]]


def test_masks_count_in_full_and_the_latest_is_kept_however_large_it_is(context: SearchContext) -> None:
    """Of masks of a million rows, one MiB each, sixteen MiB hold fifteen: the rest is the results themselves."""
    frozen = one(context)
    masks = [np.ones(MIB, bool) for _ in range(40)]
    assert kept_of(frozen, masks, 16 * MIB) == [str(number) for number in range(39, 24, -1)]
    assert kept_of(frozen, masks[:3], 1000) == ["2"]


def test_what_a_judge_said_counts(context: SearchContext) -> None:
    """A thousand rows of 250 bytes beside the result's own twenty thousand: fourteen of them take 3.8 MB."""
    results, frozen = Results(4_000_000), one(context)
    for number in range(100):
        results.keep(replace(frozen, id=str(number), judged={row: JudgedPlace(row, 0.5) for row in range(1000)}))
    assert len(results.results.values()) == 14


@pytest.mark.parametrize(("by", "rows"), [("look", 4), ("words", 2)])
def test_counting_filters_leaves_no_array_of_all_rows_with_a_result(context: SearchContext, by: str, rows: int) -> None:
    """A server that remembers thousands of searches would otherwise grow by the gallery's length with each."""
    frozen = Results().search(SearchParams(q="heron", by=by), context)
    shared = [frozen.mask, frozen.rows, frozen.scores, frozen.vector, frozen.holding]

    countable = frozen.countable

    remembered = [value for value in vars(frozen).values() if isinstance(value, np.ndarray)]
    fresh = [value for value in remembered if not any(value is known for known in shared)]
    assert sum(value.nbytes for value in fresh) <= (len(countable.rows) + 7) // 8
    assert int(countable.rows.sum()) == rows


def test_results_of_a_gallery_as_it_was_stay_until_it_is_indexed_once_more(tmp_path: Path) -> None:
    """So that nobody who pages loses the place, and no more than one old snapshot is held."""
    gallery, results = copy_gallery(tmp_path, 4), Results()
    worlds = [world_of(gallery, version) for version in "123"]
    found = [results.search(SearchParams(q="stripes"), context) for context in worlds[:2]]
    assert [results[one.id] is one for one in found] == [True, True]

    found.append(results.search(SearchParams(q="a disc"), worlds[2]))

    assert {one.id for one in results.results.values()} == {one.id for one in found[1:]}
    with raises(Problem):
        results[found[0].id]


class CountedIndex:
    """An index that knows how often it was searched, and takes its time."""

    exact = True

    def __init__(self, index: Index) -> None:
        self.index, self.searches = index, 0

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        self.searches += 1
        time.sleep(0.05)
        return self.index.search(queries, k, mask)


def test_the_same_search_by_several_people_at_once_is_one(tmp_path: Path) -> None:
    collection = Collection(copy_gallery(tmp_path, 4), "starter")
    counted = collection.index = CountedIndex(collection.index)
    snapshot = Snapshot(collection, FactStore(), "1")
    results, context = Results(), SearchContext(snapshot, tmp_path / "pictures")
    together = threading.Barrier(6)

    def search(words: str) -> RankedResult:
        together.wait()
        return results.search(SearchParams(q=words), context)

    with ThreadPoolExecutor(6) as people:
        found = list(people.map(search, ["stripes", "stripes", "stripes", "dots", "stripes", "stripes"]))

    assert counted.searches == 2 and len({id(frozen) for frozen in found}) == 2


def test_who_comes_after_a_search_that_failed_is_told_the_same(context: SearchContext) -> None:
    results = Results()
    for _ in range(2):
        with raises(NothingFound):
            results.search(SearchParams(q="zyzzyva", by="words"), context)


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
    "after": "2020-02-01",
    "before": "2022-06-01",
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
