"""An export by hand, and what becomes of each observation."""

from __future__ import annotations

import csv
import gzip
import math
import random
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.inat.curating import foretell
from eyespot.curate.inat.licences import years_of
from eyespot.settings import SettingsConflict
from eyespot.settings.build import InatSettings
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds.inat import GENUS, TIT, coco, collect, curated, dropped, export, photo, seen, silent, species


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def chosen(out: Path) -> dict[str, str]:
    """The photo of each observation."""
    return {row["observation"].rpartition("/")[2]: row["photo"] for row in rows(out / "attributions.csv")}


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
    done = collect(tmp_path, observations)
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
    names = ("two", "bare", "unlicensed", "reserved", "hostile", "twin", "twin's twin", "twice")
    names += ("known again", "doubtful")
    photos = [
        photo("two", 2, position=1),
        photo("two", 1, position=0),
        photo("unlicensed", 3, license=None),
        photo("reserved", 4, license="C"),
        photo("hostile", 5, extension="jpg/../x"),
        photo("twin", 6),
        photo("twin's twin", 6),
        photo("twice", 7),
        photo("known again", 8, photo_id=6),  # by what it is fetched by
        photo("doubtful", 9),
        photo("doubtful", 9, license="CC0"),
    ]
    done = collect(tmp_path, [*map(seen, names), seen("twice")], photos)
    assert dropped(done)["photographed"] == {
        "a licence that allows no copying, or none that is known": 1,
        "a photo under several licences": 1,
        "a photo whose name is none": 1,
        "listed twice": 1,
        "no licence": 1,
        "no photo": 1,
        "the photo of another observation": 2,
    }
    by_name = chosen(tmp_path / "out")
    assert by_name.pop("two") == "photo-1" and by_name.pop("twice") == "photo-7" and len(by_name) == 1


@pytest.mark.long
def test_of_photos_at_one_position_that_of_the_lowest_number_stands_for_the_observation(tmp_path: Path) -> None:
    """Enough of them that the rows come out of a join in another order than they went in."""
    ids = [f"o{number}" for number in range(20_000)]
    photos = [photo(id, 3 * at + turn, position=None) for turn in (2, 0, 1) for at, id in enumerate(ids)]
    collect(tmp_path, list(map(seen, ids)), photos, cap=len(ids))
    assert chosen(tmp_path / "out") == {id: f"photo-{3 * at}" for at, id in enumerate(ids)}


def test_the_order_of_lines_changes_nothing(tmp_path: Path) -> None:
    """Observations share photos, are listed twice, or have several first photos; grades have blanks."""
    grades = ("research", " Research\u00a0")
    observations = [seen(f"o{at % 90}", latitude=at / 9, quality_grade=grades[at % 2]) for at in range(100)]
    photos = [
        photo(f"o{at % 90}", 0, photo_uuid=f"p{at % 80}-{number}", photo_id=10 * (at % 70) + number)
        for at in range(200)
        for number in (9, 8)
    ]
    found = []
    for turn in range(3):
        done = collect(tmp_path / str(turn), observations, photos, cap=40)
        found.append((chosen(tmp_path / str(turn) / "out"), dropped(done)))
        random.Random(turn).shuffle(observations)
        random.Random(turn).shuffle(photos)
    assert found[0] == found[1] == found[2] and len(found[0][0]) == 40


def test_flagged_photos_are_on_no_list_before_they_are_fetched_and_other_names_are_told(tmp_path: Path) -> None:
    place = export(tmp_path / "export", list(map(seen, ("good", "bad"))))
    (tmp_path / "flagged.csv").write_text("photo\nPHOTO-1\nelsewhere\n")
    done = curated(place, tmp_path / "out", flagged=tmp_path / "flagged.csv")

    assert chosen(tmp_path / "out") == {"good": "photo-0"} and "/1/" not in (tmp_path / "out/download.csv").read_text()
    assert dropped(done)["pictures"] == {"flagged by annotators": 1} and done.pictures == 1
    assert any("elsewhere" in note and "photo-1" not in note for note in done.notes)


def test_photos_that_stand_in_are_counted_and_the_card_says_so(tmp_path: Path) -> None:
    """The export lacks the first photo of two observations, and the order of those of a third."""
    photos = [
        photo("whole", 1, position=1),
        photo("whole", 2, position=0),
        photo("later", 3, position=2),
        photo("later", 4, position=1),
        photo("second", 5, position=1),
        photo("unordered", 6, position=None),
    ]

    (note,) = collect(tmp_path, list(map(seen, ("whole", "later", "second", "unordered"))), photos).notes

    assert "of 4 pictures 2 " in note and " 1 have the photo " in note
    assert checks(tmp_path / "out")["The photo of an observation"] == "red"  # one in four is the first
    wanted = {"whole": "photo-2", "later": "photo-4", "second": "photo-5", "unordered": "photo-6"}
    assert chosen(tmp_path / "out") == wanted


def checks(out: Path) -> dict[str, str]:
    """The level of each check, as the card has it."""
    lines = (out / "card.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[1]: row[0] for row in cells if row[0] in ("green", "amber", "red")}


def test_the_card_opens_with_checks(tmp_path: Path) -> None:
    """Nobody saw the pictures, no taxon to coarsen is one of the species; all else is as it should be."""
    (tmp_path / "list.csv").write_text("name\nPasser domesticus\nParus major\n")
    (tmp_path / "hidden.txt").write_text("Parus majr\n")
    how = {"targets": tmp_path / "list.csv", "coarsen": tmp_path / "hidden.txt"}
    collect(tmp_path, [seen("a"), seen("b", taxon_id=TIT)], **how)
    assert checks(tmp_path / "out") == {
        "Pictures": "red",
        "Species": "green",
        "The photo of an observation": "green",
        "Positions of taxa at risk": "red",
        "Licences": "green",
    }
    assert "**Red: 2 red, 3 green.**" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")


def test_lines_that_are_no_rows_are_told(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a"), seen("b")])
    text = gzip.decompress((place / "observations.csv.gz").read_bytes()) + b"broken\tline\n"
    (place / "observations.csv.gz").write_bytes(gzip.compress(text))
    done = curated(place, tmp_path / "out")
    assert done.pictures == 2 and "line 4" in str(done.notes)


def test_only_species_of_the_list_and_the_report_of_the_unmapped(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id,name\n4,Parus major\n5,Corvus corax\n")
    done = collect(tmp_path, [seen("a"), seen("b", taxon_id=TIT)], targets=tmp_path / "list.csv")
    assert dropped(done)["aligned"] == {"not in the target taxonomy": 1}
    report = [(row["name"], row["how"], row["pictures"]) for row in rows(tmp_path / "out" / "taxonomy.csv")]
    assert report == [("Parus major", "same name", "1"), ("Corvus corax", "", "0")]
    (category,) = coco(tmp_path / "out")["categories"]
    assert (category["id"], category["kingdom"], category["class"]) == (4, "Animalia", "Aves")


def species_seen(out: Path) -> dict[str, str]:
    """The species of each observation of a collection."""
    made = coco(out)
    names = {category["id"]: category["name"] for category in made["categories"]}
    return {
        one["observation"]: names[of["category_id"]]
        for one, of in zip(made["images"], made["annotations"], strict=True)
    }


def test_what_may_be_several_species_after_a_split_is_left_out(tmp_path: Path) -> None:
    taxa = [species(*one) for one in (("100", "Larus argentatus", "false"), ("200", "Larus argentatus"))]
    (tmp_path / "list.csv").write_text("name\nLarus argentatus\nLarus alter\n")
    (tmp_path / "map.csv").write_text("old,new,kind\n100,200,split\n100,201,split\n")
    observations = [seen("old", taxon_id="100"), seen("new", taxon_id="200")]
    how = {"targets": tmp_path / "list.csv", "mapping": tmp_path / "map.csv"}
    done = collect(tmp_path, observations, None, [*taxa, species("201", "Larus alter")], **how)
    assert dropped(done)["aligned"] == {"one of several target species (a split or merge)": 1}
    assert species_seen(tmp_path / "out") == {"new": "Larus argentatus"}


def test_hidden_taxa_and_poor_positions_are_coarsened_without_a_group(tmp_path: Path) -> None:
    (tmp_path / "hidden.csv").write_text("Scientific Name\nparus major\nParsu major\n")
    observations = [seen("tit", taxon_id=TIT), seen("poor", positional_accuracy=30_000), seen("sharp", latitude=50.01)]
    (note,) = collect(tmp_path, observations, coarsen=tmp_path / "hidden.csv").notes
    images = {one["observation"]: one for one in coco(tmp_path / "out")["images"]}
    assert note.endswith(": Parsu major")
    assert [images[id]["coarsened"] for id in ("tit", "poor", "sharp")] == [True, True, False]
    assert (images["tit"]["latitude"], images["tit"]["longitude"]) == (50.1, 8.1)
    assert images["tit"]["group"] is None and images["poor"]["group"] is None and images["sharp"]["group"] is not None
    assert (images["sharp"]["latitude"], images["poor"]["location_uncertainty"]) == (50.01, 30_000)


def test_a_list_that_hides_nothing_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "hidden.csv").write_text("bird\nParus major\n")
    place, settings = export(tmp_path / "export", [seen("a")]), {"coarsen": tmp_path / "hidden.csv"}
    with raises(UsageError):
        curated(place, tmp_path / "out", **settings)
    with raises(UsageError):
        foretell(InatSettings.read(export=place, **settings), silent)
    assert not (tmp_path / "out").exists()


def test_what_to_fetch_and_whom_to_name(tmp_path: Path) -> None:
    collect(tmp_path, [seen("a")])
    (fetch,), (named,) = (rows(tmp_path / "out" / name) for name in ("download.csv", "attributions.csv"))
    assert fetch == {"url": "https://inaturalist-open-data.s3.amazonaws.com/photos/0/medium.jpg", "file": "0.jpg"}
    assert named["attribution"] == 'Ann "Bird" Lee, CC BY 4.0'
    assert named["observation"] == "https://www.inaturalist.org/observations/a"
    assert named["license_url"] == "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.long
def test_the_card_has_funnel_and_licences(tmp_path: Path) -> None:
    collect(tmp_path, [seen(str(at), longitude=8.0 + at) for at in range(5)], cap=3)
    text = (tmp_path / "out" / "card.md").read_text()
    assert "over the cap of its species" in text and "CC BY 4.0" in text
    funnel = {(one["step"], one["what"]): one["observations"] for one in rows(tmp_path / "out" / "funnel.csv")}
    assert funnel["drawn", "kept"] == "3"


@pytest.mark.parametrize(
    "settings",
    [
        *({"check": "smell"}, {"side": 2}, {"face": math.nan}, {"groups": "genus"}, {"cap": 0}, {"space_km": math.nan}),
        *({"accuracy": math.nan}, {"coarse_degrees": 0}, {"sample": 0}),
    ],
)
def test_settings_without_sense_are_refused(settings: dict[str, Any]) -> None:
    with raises(SettingsConflict):
        InatSettings.read(export="export", **settings)


def test_years_that_are_none_are_refused() -> None:
    with raises(UsageError):
        years_of("2023-2021")


@pytest.mark.parametrize("name", ["taxa.csv.gz", "observations.csv.gz"])
def test_half_an_export_is_refused(tmp_path: Path, name: str) -> None:
    (export(tmp_path / "export", [seen("a")]) / name).unlink()
    with raises(UsageError):
        curated(tmp_path / "export", tmp_path / "out")


def test_a_missing_column_is_named_and_others_do_not_matter(tmp_path: Path) -> None:
    with raises(UsageError):
        collect(tmp_path / "less", [{name: v for name, v in seen("a").items() if name != "latitude"}])
    more = {"anomaly_score": "0.1", **seen("a"), "extra": "x"}  # as later exports may have them
    assert collect(tmp_path / "more", [more]).pictures == 1
