"""Filters: counts within the result, each column without its own ticks; taxa as a tree; what to drop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eyespot.gallery.filters import fold_case
from eyespot.web import ServerSettings
from eyespot.web._search_params import SearchParams
from eyespot.web.filtering import filter_units, to_drop
from eyespot.web.found.facets import facets_of
from eyespot.web.found.results import label_counts, mask_of
from eyespot.web.found.taxa import Coded, taxa_of
from tests.examples import examples
from tests.made_once import made_once
from tests.web.conftest import at_this_machine
from tests.worlds import draw, index_gallery

BIRDS = (
    ("Pelecaniformes", "Ardeidae", "Ardea", "Ardea cocoi"),
    ("Pelecaniformes", "Ardeidae", "Ardea", "Ardea alba"),
    ("Pelecaniformes", "Ardeidae", "Egretta", "Egretta thula"),
    ("Pelecaniformes", "Ardeidae", "", ""),
    ("Pelecaniformes", "Pelecanidae", "Pelecanus", "Pelecanus thagus"),
    ("Passeriformes", "Icteridae", "Curaeus", "Curaeus curaeus"),
)
SITES = ("lake", "river", "Lake")


def make_birds(folder: Path) -> None:
    """60 photos of six taxa at two sites; every fifth is a copy of the one before it."""
    rows = ["file_name,order,family,genus,species,site"]
    for seed in range(60):
        place = draw(folder / "photos" / f"{seed:03d}.png", seed - (seed % 5 == 4))
        if seed % 5 == 4:  # the same picture in other bytes
            place.write_bytes(place.read_bytes() + b"more")
        rows.append(",".join((place.name, *BIRDS[seed % 6], SITES[seed % 3])))
    (folder / "photos" / "metadata.csv").write_text("\n".join(rows) + "\n")
    index_gallery(folder / "gallery", folder / "photos", shard_rows=25)


def birds() -> Path:
    """Their gallery, which nobody may change."""
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
    drops = to_drop(state.searches, state.snapshots.current(), SearchParams(q="stripes", label=labels))
    page = client.get("/", params={"q": "stripes", "grouped": "false", "label": labels})

    assert [one["photos"] for one in drops] == [state.searches.run(one["without"]).total for one in drops]
    assert page.status_code == 200
    assert re.findall("without “([^”]*)”: ([0-9]+) photos?", page.text) == [
        ("order: Passeriformes", "20"),
        ("site: river", "10"),
    ]
    nothing = SearchParams(q="zzzzqqq", by="words", label=labels)
    assert to_drop(state.searches, state.snapshots.current(), nothing) == []


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
