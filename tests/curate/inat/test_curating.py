"""An export by hand, and what becomes of each observation."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.inat.curating import Curated, curate, foretell
from eyespot.curate.inat.settings import (
    CollectionSettings,
    ObservationFilter,
    PictureSettings,
    Positions,
    Sampling,
    Species,
    years_of,
)
from eyespot.types import NothingFound, UsageError
from tests.worlds.inat import GENUS, TIT, coco, dropped, export, photo, seen, silent, species


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def curate_into_out(place: Path, settings: CollectionSettings) -> Curated:
    return curate(place, place.parent / "out", settings, silent)


def foretell_first(place: Path, settings: CollectionSettings) -> Curated:
    return foretell(place, settings, 1, silent)


# -- what counts ------------------------------------------------------------------------------------------------


def test_every_observation_that_is_dropped_is_counted(tmp_path: Path) -> None:
    observations = [
        seen("good"),
        seen("old", observed_on="2020-12-31"),
        seen("undated", observed_on=None),
        seen("unreal", observed_on="2022-02-30"),
        seen("nowhere", latitude=None),
        seen("off", latitude=91.0),
        seen("zero", latitude=0.0, longitude=0.0),
        seen("casual", quality_grade="casual"),
        seen("unnamed", taxon_id=None),
        seen("genus", taxon_id=GENUS),
        seen("unlisted", taxon_id="999"),
        seen("inaccurate", positional_accuracy=50_000),
        seen("subspecies", taxon_id="11"),
    ]
    done = curate(export(tmp_path / "export", observations), tmp_path / "out", CollectionSettings(), silent)
    assert dropped(done) == {
        "filtered": {
            "a date that cannot be read": 1,
            "a position not on the Earth": 1,
            "another quality grade": 1,
            "another year": 1,
            "no date": 1,
            "no position": 1,
            "no taxon": 1,
            "position 0, 0": 1,
        },
        "aligned": {"a taxon that is not in the export's list": 1, "no species: a higher taxon": 1},
    }
    assert done.pictures == 3


def test_photos_count_by_position_licence_and_name(tmp_path: Path) -> None:
    observations = [
        seen(id) for id in ("two", "bare", "unlicensed", "reserved", "hostile", "twin", "twin's twin", "twice")
    ]
    photos = [
        photo("two", 2, position=1),
        photo("two", 1, position=0),
        photo("unlicensed", 3, license=None),
        photo("reserved", 4, license="C"),
        photo("hostile", 5, extension="jpg/../x"),
        photo("twin", 6),
        photo("twin's twin", 6),
        photo("twice", 7),
    ]
    place = export(tmp_path / "export", [*observations, seen("twice")], photos)
    done = curate(place, tmp_path / "out", CollectionSettings(), silent)
    assert dropped(done)["photographed"] == {
        "a licence that allows no copying, or none that is known": 1,
        "a photo whose name is none": 1,
        "listed twice": 1,
        "no licence": 1,
        "no photo": 1,
        "the photo of another observation": 1,
    }
    files = {row["observation"].rpartition("/")[2]: row["photo"] for row in rows(tmp_path / "out" / "attributions.csv")}
    assert files == {"two": "photo-1", "twin": "photo-6", "twice": "photo-7"}


@pytest.mark.long
def test_of_photos_at_one_position_the_first_listed_stands_for_the_observation(tmp_path: Path) -> None:
    """Enough of them that the rows come out of a join in another order than they went in."""
    ids = [f"o{number}" for number in range(20_000)]
    photos = [photo(id, 3 * at + turn, position=None) for turn in (2, 0, 1) for at, id in enumerate(ids)]
    place = export(tmp_path / "export", [seen(id) for id in ids], photos)
    curate(place, tmp_path / "out", CollectionSettings(sampling=Sampling(cap=len(ids))), silent)
    chosen = {
        row["observation"].rpartition("/")[2]: row["photo"] for row in rows(tmp_path / "out" / "attributions.csv")
    }
    assert chosen == {id: f"photo-{3 * at + 2}" for at, id in enumerate(ids)}


def test_photos_that_stand_in_are_counted_and_the_card_says_so(tmp_path: Path) -> None:
    """The export lacks the first photo of two observations, and the order of those of a third."""
    observations = [seen(id) for id in ("whole", "later", "second", "unordered")]
    photos = [
        photo("whole", 1, position=1),
        photo("whole", 2, position=0),
        photo("later", 3, position=2),
        photo("later", 4, position=1),
        photo("second", 5, position=1),
        photo("unordered", 6, position=None),
    ]

    done = curate(export(tmp_path / "export", observations, photos), tmp_path / "out", CollectionSettings(), silent)

    assert done.notes == [
        "of 4 pictures 2 have a later photo of their observation, as the source lacks the first and 1 have the photo "
        "listed first, as the source gives no order"
    ]
    assert checks(tmp_path / "out")["The photo of an observation"] == "red"  # one in four is the first
    files = {row["observation"].rpartition("/")[2]: row["photo"] for row in rows(tmp_path / "out" / "attributions.csv")}
    assert files == {"whole": "photo-2", "later": "photo-4", "second": "photo-5", "unordered": "photo-6"}


def checks(out: Path) -> dict[str, str]:
    """The level of each check, as the card has it."""
    lines = (out / "card.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[1]: row[0] for row in cells if row[0] in ("green", "amber", "red")}


def test_the_card_opens_with_checks(tmp_path: Path) -> None:
    """Nobody saw the pictures, no list of taxa to coarsen was given; all else is as it should be."""
    place = export(tmp_path / "export", [seen("a"), seen("b", taxon_id=TIT)])
    (tmp_path / "list.csv").write_text("name\nPasser domesticus\nParus major\n")
    curate(place, tmp_path / "out", CollectionSettings(species=Species(tmp_path / "list.csv")), silent)
    assert checks(tmp_path / "out") == {
        "Pictures": "red",
        "Species": "green",
        "The photo of an observation": "green",
        "Positions of taxa at risk": "amber",
        "Licences": "green",
    }
    assert "**Red: 1 red, 1 amber, 3 green.**" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")


def test_a_taxon_to_coarsen_that_matches_nothing_is_red(tmp_path: Path) -> None:
    (tmp_path / "hidden.txt").write_text("Parus majr\n")
    settings = CollectionSettings(positions=Positions(tmp_path / "hidden.txt"))
    curate(export(tmp_path / "export", [seen("a", taxon_id=TIT)]), tmp_path / "out", settings, silent)
    assert checks(tmp_path / "out")["Positions of taxa at risk"] == "red"


def test_lines_that_are_no_rows_are_told(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a"), seen("b")])
    text = gzip.decompress((place / "observations.csv.gz").read_bytes()) + b"broken\tline\n"
    (place / "observations.csv.gz").write_bytes(gzip.compress(text))
    done = curate(place, tmp_path / "out", CollectionSettings(), silent)
    assert done.pictures == 2
    assert done.notes == ["lines that are not rows, in reading observations: 1 missing columns; line 4 the first"]


def test_what_leaves_nothing_says_why(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a", observed_on="1999-01-01")])
    with pytest.raises(NothingFound, match=r"no observation is left after date, place and grade: another year \(1\)"):
        curate(place, tmp_path / "out", CollectionSettings(), silent)


@pytest.mark.long
def test_other_years_and_licences_may_be_asked_for(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a", observed_on="1999-01-01"), seen("b")])
    done = curate(place, tmp_path / "out", CollectionSettings(ObservationFilter(years_of("1999"))), silent)
    assert dropped(done)["filtered"] == {"another year": 1}
    with pytest.raises(NothingFound, match="licence CC BY not wanted"):
        curate(place, tmp_path / "out2", CollectionSettings(ObservationFilter(licences=("CC0",))), silent)


# -- species ----------------------------------------------------------------------------------------------------


def test_only_species_of_the_list_and_the_report_of_the_unmapped(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id,name\n4,Parus major\n5,Corvus corax\n")
    place = export(tmp_path / "export", [seen("a"), seen("b", taxon_id=TIT)])
    done = curate(place, tmp_path / "out", CollectionSettings(species=Species(tmp_path / "list.csv")), silent)
    assert dropped(done)["aligned"] == {"not in the target taxonomy": 1}
    report = {
        row["name"]: (row["how"], row["pictures"], row["unmapped"]) for row in rows(tmp_path / "out" / "taxonomy.csv")
    }
    assert report == {
        "Parus major": ("same name", "1", ""),
        "Corvus corax": ("", "0", "no taxon of that name or id in the export"),
    }
    (category,) = coco(tmp_path / "out")["categories"]
    assert (category["id"], category["kingdom"], category["class"]) == (4, "Animalia", "Aves")


def test_a_species_that_was_split_goes_by_its_range(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("name\nAus orientalis\nAus occidentalis\n")
    changes = "old,new,kind\n10,Aus orientalis,split\n10,Aus occidentalis,split\n"
    (tmp_path / "map.csv").write_text(changes)
    boxes = "species,west,south,east,north\nAus orientalis,170,-10,-170,10\nAus occidentalis,0,40,20,60\n"
    (tmp_path / "ranges.csv").write_text(boxes)
    observations = [seen("west"), seen("east", latitude=5.0, longitude=-175.0), seen("nowhere", latitude=-40.0)]
    lists = Species(tmp_path / "list.csv", tmp_path / "map.csv", tmp_path / "ranges.csv")
    done = curate(
        export(tmp_path / "export", observations), tmp_path / "out", CollectionSettings(species=lists), silent
    )
    assert dropped(done)["aligned"] == {"one of several target species (a split or merge)": 1}
    made = coco(tmp_path / "out")
    names = {category["id"]: category["name"] for category in made["categories"]}
    of = [names[one["category_id"]] for one in made["annotations"]]
    assert [(one["observation"], name) for one, name in zip(made["images"], of, strict=True)] == [
        ("east", "Aus orientalis"),
        ("west", "Aus occidentalis"),
    ]


def species_seen(out: Path) -> dict[str, str]:
    """The species of each observation of a collection."""
    made = coco(out)
    names = {category["id"]: category["name"] for category in made["categories"]}
    return {
        one["observation"]: names[of["category_id"]]
        for one, of in zip(made["images"], made["annotations"], strict=True)
    }


def test_what_was_split_goes_by_its_range_though_a_part_kept_the_name(tmp_path: Path) -> None:
    taxa = [
        species("100", "Larus argentatus", "false"),
        species("200", "Larus argentatus"),
        species("201", "Larus alter"),
    ]
    (tmp_path / "list.csv").write_text("name\nLarus argentatus\nLarus alter\n")
    (tmp_path / "map.csv").write_text("old,new,kind\n100,200,split\n100,201,split\n")
    boxes = "species,west,south,east,north\nLarus argentatus,-10,40,30,70\nLarus alter,-100,30,-60,60\n"
    (tmp_path / "ranges.csv").write_text(boxes)
    boston = {"latitude": 42.0, "longitude": -71.0}
    observations = [seen("old", taxon_id="100", **boston), seen("new", taxon_id="200", **boston)]
    place = export(tmp_path / "export", [*observations, seen("home", taxon_id="100")], taxa=taxa)
    lists = Species(tmp_path / "list.csv", tmp_path / "map.csv", tmp_path / "ranges.csv")
    curate(place, tmp_path / "out", CollectionSettings(species=lists), silent)
    assert species_seen(tmp_path / "out") == {
        "old": "Larus alter",
        "new": "Larus argentatus",
        "home": "Larus argentatus",
    }


def test_renamed_and_merged_taxa_count_as_the_species_of_the_list(tmp_path: Path) -> None:
    taxa = [species("31", "Passer novus"), species("40", "Passer totus"), species("41", "Passer pars", "false")]
    (tmp_path / "list.csv").write_text("name\nPasser vetus\nPasser totus\nPasser pars\n")
    (tmp_path / "map.csv").write_text("old,new,kind\nPasser vetus,31,rename\n41,40,merge\n")
    observations = [seen("renamed", taxon_id="31"), seen("whole", taxon_id="40"), seen("part", taxon_id="41")]
    lists = Species(tmp_path / "list.csv", tmp_path / "map.csv")
    curate(
        export(tmp_path / "export", observations, taxa=taxa),
        tmp_path / "out",
        CollectionSettings(species=lists),
        silent,
    )
    assert species_seen(tmp_path / "out") == {
        "renamed": "Passer vetus",
        "whole": "Passer totus",
        "part": "Passer pars",  # the inactive taxon of the same name: it was seen before the merger
    }


# -- positions --------------------------------------------------------------------------------------------------


def test_hidden_taxa_and_poor_positions_are_coarsened_without_a_group(tmp_path: Path) -> None:
    (tmp_path / "hidden.txt").write_text("Parus major\nParsu major\n")
    observations = [seen("tit", taxon_id=TIT), seen("poor", positional_accuracy=30_000), seen("sharp", latitude=50.01)]
    settings = CollectionSettings(positions=Positions(tmp_path / "hidden.txt"))
    done = curate(export(tmp_path / "export", observations), tmp_path / "out", settings, silent)
    assert done.notes == ["1 taxa to coarsen are not species of the list by name or id: Parsu major"]
    images = {one["observation"]: one for one in coco(tmp_path / "out")["images"]}
    assert [images[id]["coarsened"] for id in ("tit", "poor", "sharp")] == [True, True, False]
    assert (images["tit"]["latitude"], images["tit"]["longitude"]) == (50.1, 8.1)
    assert images["tit"]["group"] is None and images["poor"]["group"] is None and images["sharp"]["group"] is not None
    assert (images["sharp"]["latitude"], images["poor"]["location_uncertainty"]) == (50.01, 30_000)


@pytest.mark.parametrize(
    ("name", "text"),
    [("h.csv", "Species\nParus major\n"), ("h.csv", "Scientific Name\nparus major\n"), ("h.txt", "PARUS MAJOR\n")],
)
def test_a_list_of_hidden_taxa_counts_however_it_is_spelled(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    settings = CollectionSettings(positions=Positions(tmp_path / name))
    done = curate(export(tmp_path / "export", [seen("tit", taxon_id=TIT)]), tmp_path / "out", settings, silent)
    (one,) = coco(tmp_path / "out")["images"]
    assert (one["coarsened"], done.notes) == (True, [])


@pytest.mark.parametrize("run", [curate_into_out, foretell_first])
def test_a_list_that_hides_nothing_is_refused_before_the_work(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "hidden.csv").write_text("bird\nParus major\n")
    settings = CollectionSettings(positions=Positions(tmp_path / "hidden.csv"))
    with pytest.raises(UsageError, match="has no column name"):
        run(export(tmp_path / "export", [seen("a")]), settings)
    assert not (tmp_path / "out").exists()


# -- lists and reports ------------------------------------------------------------------------------------------


def test_what_to_fetch_and_whom_to_name(tmp_path: Path) -> None:
    curate(export(tmp_path / "export", [seen("a")]), tmp_path / "out", CollectionSettings(), silent)
    (fetch,), (named,) = (rows(tmp_path / "out" / name) for name in ("download.csv", "attributions.csv"))
    assert fetch == {"url": "https://inaturalist-open-data.s3.amazonaws.com/photos/0/medium.jpg", "file": "0.jpg"}
    assert named["attribution"] == 'Ann "Bird" Lee, CC BY 4.0'
    assert named["observation"] == "https://www.inaturalist.org/observations/a"
    assert named["license_url"] == "https://creativecommons.org/licenses/by/4.0/"


def test_the_card_has_funnel_map_and_licences(tmp_path: Path) -> None:
    observations = [seen(str(at), longitude=8.0 + at) for at in range(5)]
    settings = CollectionSettings(sampling=Sampling(cap=3))
    curate(export(tmp_path / "export", observations), tmp_path / "out", settings, silent)
    text = (tmp_path / "out" / "card.md").read_text()
    assert "over the cap of its species" in text and "CC BY 4.0" in text and "coverage.svg" in text
    cells = rows(tmp_path / "out" / "coverage.csv")
    assert (sum(int(one["before"]) for one in cells), sum(int(one["after"]) for one in cells)) == (5, 3)
    assert {(one["step"], one["what"]): one["observations"] for one in rows(tmp_path / "out" / "funnel.csv")}[
        ("drawn", "kept")
    ] == "3"


def test_a_trial_writes_nothing_and_counts_the_first(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen(str(at)) for at in range(5)])
    before = sorted(tmp_path.rglob("*"))
    forecast = foretell(place, CollectionSettings(), 3, silent)
    assert (forecast.steps[0]["came"], sorted(tmp_path.rglob("*"))) == (3, before)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PictureSettings(checks=("smell",)), "no check 'smell'; there are: decode, face"),
        (lambda: PictureSettings(side=2), "pictures of 2 pixels"),
        (lambda: Sampling(within="genus"), "groups are made over"),
        (lambda: Sampling(cap=0), "more than 0"),
        (lambda: Sampling(space_km=math.nan), "more than 0"),
        (lambda: PictureSettings(face=math.nan), "from 0 to 1"),
        (lambda: Positions(limit=math.nan), "an accuracy in metres"),
        (lambda: Positions(degrees=0), "cells of up to 30 degrees"),
        (lambda: years_of("2023-2021"), "years are written as"),
    ],
)
def test_settings_without_sense_are_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a")])
    with pytest.raises(UsageError, match="holds something else"):
        curate(place, place, CollectionSettings(), silent)


@pytest.mark.parametrize(
    ("name", "says"),
    [("taxa.csv.gz", "has no taxa.csv.gz"), ("observations.csv.gz", "holds neither an export")],
)
def test_half_an_export_is_refused(tmp_path: Path, name: str, says: str) -> None:
    (export(tmp_path / "export", [seen("a")]) / name).unlink()
    with pytest.raises(UsageError, match=says):
        curate(tmp_path / "export", tmp_path / "out", CollectionSettings(), silent)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [{name: v for name, v in seen("a").items() if name != "latitude"}])
    with pytest.raises(UsageError, match="has no column latitude"):
        curate(place, tmp_path / "out", CollectionSettings(), silent)


def test_columns_that_a_later_export_adds_do_not_matter(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [{"anomaly_score": "0.1", **seen("a"), "extra": "x"}])
    assert curate(place, tmp_path / "out", CollectionSettings(), silent).pictures == 1
