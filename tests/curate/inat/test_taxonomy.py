"""Taxa of an export as species of a list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.inat.taxonomy import (
    Change,
    Route,
    TargetSpecies,
    Taxon,
    align,
    read_changes,
    read_targets,
)
from eyespot.types import UsageError
from tests.wording import raises

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
