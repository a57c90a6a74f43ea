"""Observation groups: one day, within a distance, by way of others."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.curate.inat.collection import file_name, find, places_of, published_position
from eyespot.curate.inat.sampling import (
    RADIUS,
    SpeciesObservations,
    draw,
    equal_cells,
    groups,
    lots_of,
    round_robin,
    spread,
)
from eyespot.curate.inat.taxonomy import (
    Change,
    Route,
    TargetSpecies,
    Taxon,
    align,
    read_changes,
    read_targets,
)
from eyespot.settings.build import InatSettings
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds.inat import great_circle, slow_groups, slow_turns

DEGREE = math.radians(1) * RADIUS  # kilometres of a degree of latitude


def sampling(**settings: int) -> InatSettings:
    return InatSettings.read(export="export", **settings)


def together(places: list[tuple[float, float]], days: list[int] | None = None, km: float = 10.0) -> list[int]:
    """The group of each place, as the place of the group's first member."""
    latitude, longitude = np.array(places, float).T
    return groups(np.array(days or [0] * len(places)), latitude, longitude, km).tolist()


WIDE = DEGREE * math.cos(math.radians(70))


@pytest.mark.parametrize(
    "places",
    [
        lambda km: [(50, 8), (50 + km / DEGREE, 8)],
        lambda km: [(70, 8), (70, 8 + km / WIDE)],  # along a parallel far north
        lambda km: [(0, 180 - km / 2 / DEGREE), (0, -180 + km / 2 / DEGREE)],  # the antimeridian is no border
        lambda km: [(90 - km / 2 / DEGREE, 0), (90 - km / 2 / DEGREE, 180)],  # a pole has neighbours on all sides
        lambda km: [(-90 + km / 2 / DEGREE, 0), (-90 + km / 2 / DEGREE, 180)],
    ],
)
def test_what_is_nearer_than_ten_kilometres_is_one_group(places: Callable[[float], list[tuple[float, float]]]) -> None:
    assert together(places(9.9)) == [0, 0]
    assert together(places(10.1)) == [0, 1]


def test_a_pole_is_one_place_and_another_day_another_group() -> None:
    assert together([(90, 0), (90, 123)]) == together([(-90, 0), (-90, 123)]) == [0, 0]
    assert together([(50, 8), (50, 8), (50, 8)], [0, 0, 1]) == [0, 0, 2]


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_groups_are_those_of_all_pairs(data: st.DataObject) -> None:
    middle = data.draw(st.sampled_from([(0.0, 180.0), (89.95, 0.0), (-89.95, 50.0), (45.0, 10.0)]))
    offsets = st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
    places = data.draw(st.lists(offsets, min_size=1, max_size=40))
    wide = 100 if abs(middle[0]) > 80 else 1
    latitude = np.clip([middle[0] + up for up, _ in places], -90, 90)
    longitude = np.array([(middle[1] + along * wide + 180) % 360 - 180 for _, along in places])
    km = data.draw(st.sampled_from([1.0, 10.0, 40.0]))
    found = groups(np.zeros(len(places), np.int64), latitude, longitude, km)
    assert found.tolist() == slow_groups(latitude, longitude, km).tolist()


def test_a_distance_beyond_reason_is_refused() -> None:
    with raises(UsageError):
        together([(0, 0)], km=0.01)


def test_cells_are_of_one_area() -> None:
    random = np.random.default_rng(0)
    latitude = np.degrees(np.arcsin(random.uniform(-1, 1, 200_000)))  # evenly over the sphere
    counts = np.unique(equal_cells(latitude, random.uniform(-180, 180, 200_000), 30.0), return_counts=True)[1]
    full = np.sort(counts)[12:]  # the cells at the north pole are cut
    assert full.min() > 0.9 * full.max()


def test_spread_counts_cells_that_are_filled_evenly() -> None:
    assert spread(np.array([1, 1, 2, 2, 3, 3])) == pytest.approx(3)
    assert 1 < spread(np.array([1] * 9 + [2])) < 2


# -- the draw of a species' share --------------------------------------------------------------------------------


def candidates(count: int, seed: int = 0, **more: object) -> SpeciesObservations:
    random = np.random.default_rng(seed)
    made = {
        "mark": random.integers(0, 2**63, count).astype(np.uint64),
        "observer": random.integers(0, 20, count).astype(np.uint64),
        "group": np.arange(count),
        "latitude": random.uniform(40, 60, count),
        "longitude": random.uniform(-10, 30, count),
        "day": random.integers(18_000, 19_000, count),
    }
    return SpeciesObservations(**{**made, **more})  # type: ignore[arg-type]


def test_never_more_than_the_cap_and_never_fewer_than_there_are_and_no_more_clusters_than_asked_for() -> None:
    for count in (1, 5, 9, 10, 11, 400):
        turns = draw(3, candidates(count), sampling(cap=10)).turn
        assert sorted(turns[turns >= 0].tolist()) == list(range(min(count, 10)))
    for clusters in (1, 3, 50):
        assert draw(0, candidates(200), sampling(cap=10, clusters=clusters)).cluster.max() < clusters


def test_the_same_seed_draws_the_same_in_any_order_of_rows() -> None:
    of = candidates(300)
    order = np.argsort(of.mark)
    of = SpeciesObservations(**{name: column[order] for name, column in vars(of).items()})
    first, again = (draw(1, of, sampling(cap=50, seed=7)).turn for _ in range(2))
    other = draw(1, of, sampling(cap=50, seed=8)).turn
    assert (first == again).all() and (first != other).any()


def test_lots_are_the_same_on_every_machine() -> None:
    # SplitMix64 of state 0 begins with this number
    assert int(lots_of(np.zeros(1, np.uint64), 0)[0]) == int(lots_of(np.zeros(1, np.uint64), 2**64)[0])
    assert hex(int(lots_of(np.array([0xE220A8397B1DCDAF], np.uint64), 0)[0])) == "0xe220a8397b1dcdaf"


@pytest.mark.parametrize(
    "apart", [{"latitude": np.r_[np.full(99, 50.0), -30.0]}, {"day": np.r_[np.full(99, 18_000), 18_200]}]
)
def test_far_places_and_seasons_come_before_a_crowd_s_second(apart: dict[str, np.ndarray]) -> None:
    crowd = {"latitude": np.full(100, 50.0), "longitude": np.full(100, 8.0), "day": np.full(100, 18_000)}
    turns = draw(0, candidates(100, **(crowd | apart)), sampling(cap=2)).turn
    assert turns[99] >= 0 and (turns >= 0).sum() == 2


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 80), st.integers(1, 90), st.integers(0, 10**6))
def test_turns_are_those_of_the_slow_way(count: int, cap: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    group = random.integers(0, 15, count)
    of = (random.integers(0, 4, 15)[group], group, random.integers(0, 6, count))
    lots, first = lots_of(random.integers(0, 2**62, count).astype(np.uint64), seed), random.permutation(4)
    turns = round_robin(of, lots, first, cap)
    drawn = np.flatnonzero(turns >= 0)
    assert drawn[np.argsort(turns[drawn])].tolist() == slow_turns(of, lots, first.tolist(), cap)


# -- taxa of an export as species of a list -----------------------------------------------------------------------


A, B = TargetSpecies(0, "Aus albus"), TargetSpecies(1, "Bus bonus")


GULLS = [Taxon("100", "Larus argentatus", active=False), Taxon("200", "Larus argentatus"), Taxon("201", "Larus novus")]
SPLIT = [Change("100", "200", "split"), Change("100", "201", "split")]
GULL, NEW = TargetSpecies(0, "Larus argentatus"), TargetSpecies(1, "Larus novus")


@pytest.mark.parametrize(
    ("targets", "taxa", "changes", "routes"),
    [
        (
            [A, TargetSpecies(1, "Bus bonus", taxon="9")],
            [Taxon("1", "Aus albus"), Taxon("9", "Novus novus")],
            [],
            {"1": ("same name", 0), "9": ("same id", 1)},
        ),
        ([A], [Taxon("1", "Aus albus", active=False)], [], {"1": ("same name, inactive", 0)}),
        (  # a renamed species is followed, also twice
            [A],
            [Taxon("3", "Novus alter"), Taxon("2", "Novus primus", active=False)],
            [Change("Aus albus", "2", "rename"), Change("2", "3", "rename")],
            {"2": ("rename", 0), "3": ("rename", 0)},
        ),
        (  # all parts of a split are the old species
            [A],
            [Taxon("1", "Aus albus", active=False), Taxon("2", "Pars prima"), Taxon("3", "Pars altera")],
            [Change("1", "2", "split"), Change("1", "3", "split")],
            {"1": ("same name, inactive", 0), "2": ("split", 0), "3": ("split", 0)},
        ),
        (  # and one part is never the other
            [A],
            [Taxon("2", "Aus albus"), Taxon("3", "Pars altera")],
            [Change("1", "2", "split"), Change("1", "3", "split")],
            {"2": ("same name", 0)},
        ),
        # what was split is not the part that kept its name, also where the mapping leaves that part out
        ([GULL, NEW], GULLS, SPLIT, {"100": ("split", 0, 1), "200": ("same name", 0), "201": ("same name", 1)}),
        ([GULL, NEW], GULLS, SPLIT[1:], {"100": ("split", 0, 1), "200": ("same name", 0), "201": ("same name", 1)}),
        (  # a merger under a new name is one of several
            [A, B],
            [Taxon("5", "Novus")],
            [Change("Aus albus", "5", "merge"), Change("Bus bonus", "5", "merge")],
            {"5": ("merge", 0, 1)},
        ),
        (  # changes in a circle end
            [A],
            [Taxon("2", "Bus"), Taxon("3", "Cus")],
            [Change("2", "3", "rename"), Change("3", "2", "rename")],
            {},
        ),
    ],
)
def test_taxa_count_as_the_species_of_the_list(
    targets: list[TargetSpecies], taxa: list[Taxon], changes: list[Change], routes: dict[str, tuple[Any, ...]]
) -> None:
    assert align(targets, taxa, changes).routes == {id: Route(tuple(of), how) for id, (how, *of) in routes.items()}


def test_a_split_of_which_the_list_has_the_old_name_only_goes_by_it() -> None:
    assert align([GULL], GULLS, SPLIT).routes["100"] == Route((0,), "same name, inactive")


def test_merged_species_are_the_one_whose_name_stays_and_what_is_not_mapped_is_told() -> None:
    found = align([A, B], [Taxon("1", "Aus albus")], [Change("Bus bonus", "1", "merge")])
    assert found.routes == {"1": Route((0,), "same name")} and "merge into 1" in found.unmapped[1]
    assert list(align([A], []).unmapped) == [0]


def test_an_old_species_that_the_list_has_split_is_one_of_several() -> None:
    found = align([A, B], [Taxon("1", "Totus")], [Change("1", "Aus albus", "split"), Change("1", "Bus bonus", "split")])
    assert found.routes == {"1": Route((0, 1), "split")}
    assert set(found.unmapped.values()) == {"its taxon counts as one of several"}


def test_a_name_in_two_kingdoms_needs_the_kingdom() -> None:
    taxa = [Taxon("1", "Agathis montana", True, "Plantae"), Taxon("2", "Agathis montana", True, "Animalia")]
    without = align([TargetSpecies(0, "Agathis montana")], taxa)
    alignment = align([TargetSpecies(0, "Agathis montana", ranks={"kingdom": "Plantae"})], taxa)
    assert without.routes == {} and "several kingdoms" in without.unmapped[0]
    assert alignment.routes == {"1": Route((0,), "same name")}


def test_a_list_in_the_form_of_inat21(tmp_path: Path) -> None:
    text = ",id,name,common_name,kingdom,genus,image_dir_name\n0,7,Aus albus,White,Animalia,Aus,00007_Aus_albus\n"
    (tmp_path / "list.csv").write_text(text)
    (one,) = read_targets(tmp_path / "list.csv")
    assert one == TargetSpecies(
        7, "Aus albus", None, {"kingdom": "Animalia", "genus": "Aus"}, "White", "00007_Aus_albus"
    )


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_targets, "name\nAus albus\nBus bonus\nAus albus\n"),
        (read_targets, "id,name\n1,Aus\n1,Bus\n"),
        (read_targets, "id,name\nx,Aus\n"),
        (read_targets, "genus\nAus\n"),
        (read_targets, "name\n"),
        (read_changes, "old,new,kind\n1,2,lump\n"),
    ],
)
def test_a_list_that_is_none_says_why(tmp_path: Path, read: Callable[[Path], object], text: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with raises(UsageError):
        read(tmp_path / "list.csv")


def test_a_mapping_is_read_under_the_names_people_use(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("old_id,new_id,kind\n1,2,Renamed\n3,4,merged\n5,6,split\n")
    assert [change.kind for change in read_changes(tmp_path / "map.csv")] == ["rename", "merge", "split"]


# -- positions that are told, and names of files that lead nowhere else -------------------------------------------


HOW = sampling()


def values(latitude: float, longitude: float, accuracy: float | None) -> tuple[object, ...]:
    return tuple(published_position(latitude, longitude, accuracy, HOW, hidden=False).values())


def test_an_accurate_position_is_told_as_it_is() -> None:
    assert values(50.123, 8.456, 10.0) == (50.123, 8.456, 10.0, False)
    assert values(50.123, 8.456, None) == (50.123, 8.456, None, False)


def test_a_listed_taxon_is_told_by_its_cell() -> None:
    place = published_position(50.123, 8.456, 10.0, HOW, hidden=True)
    assert (place["latitude"], place["longitude"], place["coarsened"]) == (50.1, 8.5, True)
    assert 13_000 < place["location_uncertainty"] < 13_500  # half the diagonal of 22.2 x 14.3 km


def test_poor_accuracy_is_told_by_its_cell_and_stays() -> None:
    assert values(50.123, 8.456, 10_000.0)[3] is False
    assert values(50.123, 8.456, 28_000.0) == (50.1, 8.5, 28_000.0, True)


@pytest.mark.parametrize("accuracy", [float("nan"), -1.0])
def test_an_accuracy_that_is_none_counts_as_unknown(accuracy: float) -> None:
    assert values(50.0, 8.0, accuracy) == (50.0, 8.0, None, False)


def test_a_boundless_accuracy_is_the_whole_earth() -> None:
    place = published_position(50.0, 8.0, float("inf"), HOW, hidden=False)
    assert place["coarsened"] and place["location_uncertainty"] == 20_015_115


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_the_true_position_is_within_the_uncertainty(latitude: float, longitude: float) -> None:
    place = published_position(latitude, longitude, None, HOW, hidden=True)
    assert abs(place["latitude"]) <= 90 and -180 <= place["longitude"] < 180
    away = 1000 * great_circle((latitude, longitude), (place["latitude"], place["longitude"]))
    assert away <= place["location_uncertainty"] + 1


@given(st.floats(-89, 89), st.floats(-179, 179), st.floats(0, 0.19))
def test_a_cell_tells_nothing_of_where_in_it(latitude: float, longitude: float, aside: float) -> None:
    west, south = math.floor(longitude / 0.2) * 0.2 + 0.005, math.floor(latitude / 0.2) * 0.2 + 0.005
    one = published_position(south, west, 5.0, HOW, hidden=True)
    other = published_position(south + aside, west + aside, 90.0, HOW, hidden=True)
    assert all(one[name] == other[name] for name in ("latitude", "longitude"))


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "sub/../../secret.jpg"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "photos" / "sub").mkdir(parents=True)
    (tmp_path / "secret.jpg").write_bytes(b"x")
    assert find(tmp_path / "photos", [name]) is None


def test_a_link_does_not_lead_out_either(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "photos" / "a.jpg").symlink_to(tmp_path / "secret.jpg")
    assert find(tmp_path / "photos", ["a.jpg"]) is None


@pytest.mark.parametrize("place", ["12.jpg", "12/original.jpg", "12/medium.jpg", "uuid.jpg"])
def test_a_photo_is_found_as_the_store_names_it(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(b"x")
    assert find(tmp_path, places_of("12.jpg", "uuid")) == tmp_path / place


def test_a_photo_keeps_its_id_where_that_is_a_name() -> None:
    assert file_name("1f-0", "00001_Aus") == "train/00001_Aus/1f-0.jpg"
    odd = file_name("../../x y.jpg", "00001_Aus")
    assert odd.startswith("train/00001_Aus/") and odd.count("/") == 2 and ".." not in odd
