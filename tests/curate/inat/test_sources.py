"""Tables of one's own and Camtrap DP packages go the same way."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.curate.inat.curating import Curated, curate
from eyespot.curate.inat.settings import CollectionSettings, PictureSettings
from eyespot.types import UsageError
from tests.worlds.inat import pictures, silent

OWN = {
    "occurrenceID": "a",
    "decimalLatitude": "50.0",
    "decimalLongitude": "8.0",
    "eventDate": "2019-05-01T23:30:00+02:00",
    "scientificName": "Parus major Linnaeus, 1758",
    "kingdom": "Animalia",
    "license": "http://creativecommons.org/licenses/by/4.0/legalcode",
    "rightsHolder": "Ann",
    "file_name": "a.jpg",
}


def table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def images(out: Path) -> dict[str, dict[str, Any]]:
    dataset = json.loads((out / "train.json").read_text())
    return {one["observation"]: one for one in dataset["images"]}


def reasons(done: Curated) -> dict[str, int]:
    return {reason: count for one in done.steps for reason, count in one["dropped"].items()}


@pytest.mark.long
def test_darwin_core_with_photos_at_hand(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(pictures()[0].read_bytes())
    place = table(tmp_path / "own.csv", [OWN])
    how = CollectionSettings(pictures=PictureSettings(tmp_path / "photos", ("decode",)))
    assert curate(place, tmp_path / "out", how, silent).pictures == 1
    (one,) = images(tmp_path / "out").values()
    assert (one["date"], one["rights_holder"], one["latitude"]) == ("2019-05-01", "Ann", 50.0)
    (category,) = json.loads((tmp_path / "out" / "train.json").read_text())["categories"]
    assert (category["name"], category["kingdom"]) == ("Parus major", "Animalia")


@pytest.mark.parametrize("ending", [".parquet", ".tsv"])
def test_the_same_as_parquet_and_with_tabs(tmp_path: Path, ending: str) -> None:
    place = tmp_path / f"own{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist([OWN | {"decimalLatitude": 50.0}]), place)
    else:
        place.write_text("\n".join(["\t".join(OWN), "\t".join(OWN.values())]) + "\n")
    assert curate(place, tmp_path / "out", CollectionSettings(), silent).pictures == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Parus major", None),
        ("Parus major major", None),
        ("Parus", "no species: a higher taxon"),
        ("Parus sp.", "no species: a higher taxon"),
        ("Paridae", "no species: a higher taxon"),
        ("Parus sp", "no species: a higher taxon"),
        ("Parus spp", "no species: a higher taxon"),
        ("Parus cf major", "no species: a higher taxon"),
        ("Parus aff major", "no species: a higher taxon"),
        ("Parus major x minor", "a hybrid"),
        ("Parus major X Parus minor", "a hybrid"),
        ("Parus major \u00d7 minor", "a hybrid"),
        ("Parus \u00d7 minor", "a hybrid"),
        ("Parus xanthogenys", None),
    ],
)
def test_species_are_told_from_what_is_above_them(tmp_path: Path, name: str, why: str | None) -> None:
    place = table(
        tmp_path / "own.csv", [OWN | {"occurrenceID": "z"}, OWN | {"scientificName": name, "file_name": "b.jpg"}]
    )
    done = curate(place, tmp_path / "out", CollectionSettings(), silent)
    assert reasons(done) == ({why: 1} if why else {})


def test_a_hybrid_by_its_rank_is_none_by_its_name_either(tmp_path: Path) -> None:
    rows = [OWN | {"taxonRank": "species"}, OWN | {"occurrenceID": "z", "file_name": "z.jpg", "taxonRank": "hybrid"}]
    rows[1]["scientificName"] = "Parus minor"
    assert reasons(curate(table(tmp_path / "own.csv", rows), tmp_path / "out", CollectionSettings(), silent)) == {
        "a hybrid": 1
    }


def test_midnight_is_that_of_the_place(tmp_path: Path) -> None:
    days = {
        "west": ("2019-05-02T06:30:00Z", "-120.0"),
        "east": ("2019-05-01T22:00:00Z", "151.0"),
        "offset": ("2019-05-01T23:59:00-07:00", "-120.0"),
        "parts": ("2019-05-01/2019-05-02", "0.0"),
    }
    rows = [
        OWN | {"occurrenceID": id, "eventDate": day, "decimalLongitude": longitude, "file_name": f"{id}.jpg"}
        for id, (day, longitude) in days.items()
    ]
    done = curate(table(tmp_path / "own.csv", rows), tmp_path / "out", CollectionSettings(), silent)
    dates = {id: one["date"] for id, one in images(tmp_path / "out").items()}
    assert dates == {"west": "2019-05-01", "east": "2019-05-02", "offset": "2019-05-01"}
    assert reasons(done) == {"a date of more than one day": 1}


def test_several_photos_in_one_field_and_addresses(tmp_path: Path) -> None:
    media = "https://example.org/p/1.jpg?size=large | https://example.org/p/2.jpg"
    row = {name: value for name, value in OWN.items() if name != "file_name"} | {"associatedMedia": media}
    curate(table(tmp_path / "own.csv", [row]), tmp_path / "out", CollectionSettings(), silent)
    lines = (tmp_path / "out" / "download.csv").read_text().splitlines()
    assert lines == ["url,file", "https://example.org/p/1.jpg?size=large,1.jpg"]


def test_dates_in_three_columns(tmp_path: Path) -> None:
    row = {name: value for name, value in OWN.items() if name != "eventDate"} | {
        "year": "2020",
        "month": "3",
        "day": "9",
    }
    curate(table(tmp_path / "own.csv", [row]), tmp_path / "out", CollectionSettings(), silent)
    assert images(tmp_path / "out")["a"]["date"] == "2020-03-09"


@pytest.mark.parametrize(
    ("drop", "says"),
    [("eventDate", "no column eventDate"), ("file_name", "no column that names the photos"), ("license", None)],
)
def test_a_table_that_lacks_a_column_says_which(tmp_path: Path, drop: str, says: str | None) -> None:
    rows = [OWN, OWN | {"occurrenceID": "b", "file_name": "b.jpg"}]
    place = table(tmp_path / "own.csv", [{name: value for name, value in row.items() if name != drop} for row in rows])
    with pytest.raises(Exception, match=says or r"no observation is left after photos and licences: no licence \(2\)"):
        curate(place, tmp_path / "out", CollectionSettings(), silent)


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.docx").write_bytes(b"x")
    for place, says in (
        (tmp_path / "nothing", "there is no"),
        (tmp_path / "notes.docx", "not a table that eyespot reads"),
    ):
        with pytest.raises(UsageError, match=says):
            curate(place, tmp_path / "out", CollectionSettings(), silent)


# -- Camtrap DP -------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A camera with four events: a deer on two pictures, a person, nothing, and a deer on a private picture."""
    place = tmp_path / "package"
    place.mkdir()
    descriptor = {
        "title": "Deer of the valley",
        "licenses": [{"scope": "data", "name": "CC0-1.0"}, {"scope": "media", "name": "CC-BY-4.0"}],
        "contributors": [{"title": "Bo", "role": "contact"}, {"title": "The park", "role": "rightsHolder"}],
    }
    (place / "datapackage.json").write_text(json.dumps(descriptor))
    trap = {"deploymentID": "d1", "latitude": 46.0, "longitude": -110.0, "coordinateUncertainty": 20}
    table(place / "deployments.csv", [trap | {"deploymentStart": "2023-01-01T00:00:00Z"}])
    media = [
        ("m2", "2023-06-02T05:00:10Z", "true"),
        ("m1", "2023-06-02T05:00:00Z", "true"),
        ("m3", "2023-06-03T12:00:00Z", "true"),
        ("m4", "2023-06-04T12:00:00Z", "false"),
    ]
    names = ("mediaID", "timestamp", "filePublic")
    rest = {"deploymentID": "d1", "fileMediatype": "image/jpeg"}
    rows = [dict(zip(names, one, strict=True)) | rest | {"filePath": f"media/{one[0]}.jpg"} for one in media]
    table(place / "media.csv", rows)
    kinds = [
        ("event", None, "2023-06-02T05:00:00Z", "2023-06-02T05:01:00Z", "animal", "Cervus elaphus"),
        ("person", "m3", "2023-06-03T12:00:00Z", "", "human", "Homo sapiens"),
        ("blank", "m3", "2023-06-03T12:00:00Z", "", "blank", ""),
        ("private", "m4", "2023-06-04T12:00:00Z", "", "animal", "Cervus elaphus"),
    ]
    columns = ("observationID", "mediaID", "eventStart", "eventEnd", "observationType", "scientificName")
    table(place / "observations.csv", [dict(zip(columns, one, strict=True)) | {"deploymentID": "d1"} for one in kinds])
    return place


def test_a_camera_trap_goes_the_same_way(package: Path, tmp_path: Path) -> None:
    done = curate(package, tmp_path / "out", CollectionSettings(), silent)
    assert reasons(done) == {"no animal: blank": 1, "no animal: human": 1, "a file that is not public": 1}
    (one,) = images(tmp_path / "out").values()
    assert (one["date"], one["latitude"], one["rights_holder"]) == ("2023-06-01", 46.0, "The park")
    assert one["file_name"].endswith("/m1.jpg")  # the earlier of the event's two pictures


@pytest.mark.parametrize(
    ("began", "day"),
    [
        ("2023-06-01T23:59:00-07:00", "2023-06-01"),
        ("2023-06-02T00:00:00-07:00", "2023-06-02"),
        ("2023-06-02T06:59:00Z", "2023-06-01"),
        ("2023-06-02T07:21:00Z", "2023-06-02"),  # 0:01 by the sun: 110 degrees west are 7 hours and 20 minutes
    ],
)
def test_the_day_of_a_camera_ends_where_it_stands(package: Path, tmp_path: Path, began: str, day: str) -> None:
    what = {"observationID": "one", "mediaID": "m1", "eventStart": began, "eventEnd": "", "observationType": "animal"}
    table(package / "observations.csv", [what | {"scientificName": "Cervus elaphus", "deploymentID": "d1"}])
    curate(package, tmp_path / "out", CollectionSettings(), silent)
    assert images(tmp_path / "out")["one"]["date"] == day


def test_an_event_with_an_offset_has_the_pictures_of_its_hours(package: Path, tmp_path: Path) -> None:
    what = {"observationID": "one", "mediaID": "", "observationType": "animal", "scientificName": "Cervus elaphus"}
    hours = {"eventStart": "2023-06-01T22:00:05-07:00", "eventEnd": "2023-06-01T22:00:30-07:00"}
    table(package / "observations.csv", [what | hours | {"deploymentID": "d1"}])
    curate(package, tmp_path / "out", CollectionSettings(), silent)
    assert images(tmp_path / "out")["one"]["file_name"].endswith("/m2.jpg")  # of 5:00:10 UTC


@pytest.mark.parametrize(
    ("descriptor", "says"),
    [
        ({"licenses": 5}, "licenses: is not a list"),
        ({"contributors": 7}, "contributors: is not a list"),
        ({"licenses": ["CC0"]}, "licenses: is not a list of objects"),
        ([], "is not a package"),
    ],
)
def test_a_package_of_another_form_says_where(package: Path, tmp_path: Path, descriptor: object, says: str) -> None:
    (package / "datapackage.json").write_text(json.dumps(descriptor))
    with pytest.raises(UsageError, match=says):
        curate(package, tmp_path / "out", CollectionSettings(), silent)


def test_a_package_without_media_says_so(package: Path, tmp_path: Path) -> None:
    (package / "media.csv").unlink()
    with pytest.raises(UsageError, match=r"has no media\.csv"):
        curate(package, tmp_path / "out", CollectionSettings(), silent)


# -- names that several photos share ------------------------------------------------------------------------------


@pytest.fixture
def agouti(tmp_path: Path) -> Path:
    """Three events of a camera whose pictures lie at addresses that all end in `/file`, as Agouti writes them."""
    place = tmp_path / "agouti"
    place.mkdir()
    descriptor = {"licenses": [{"scope": "media", "name": "CC0-1.0"}], "contributors": [{"title": "The park"}]}
    (place / "datapackage.json").write_text(json.dumps(descriptor))
    trap = {"deploymentID": "d1", "latitude": 46.0, "longitude": -110.0, "deploymentStart": "2023-01-01T00:00:00Z"}
    table(place / "deployments.csv", [trap])
    rest = {"deploymentID": "d1", "fileMediatype": "image/jpeg", "filePublic": "true"}
    moments = {f"m{day}": f"2023-06-0{day}T05:00:00Z" for day in (1, 2, 3)}
    media = [
        {"mediaID": id, "timestamp": at, "filePath": f"https://example.org/assets/{id}/file"} | rest
        for id, at in moments.items()
    ]
    table(place / "media.csv", media)
    what = {"observationType": "animal", "scientificName": "Cervus elaphus", "deploymentID": "d1", "eventEnd": ""}
    seen = [{"observationID": f"o{id}", "mediaID": id, "eventStart": at} | what for id, at in moments.items()]
    table(place / "observations.csv", seen)
    return place


def name_files(package: Path, names: Mapping[str, str]) -> None:
    """Give the media of a package the column fileName."""
    with (package / "media.csv").open(newline="") as file:
        rows = [row | {"fileName": names[row["mediaID"]]} for row in csv.DictReader(file)]
    table(package / "media.csv", rows)


def photos_at_hand(folder: Path, names: Sequence[str]) -> CollectionSettings:
    for name, picture in zip(names, pictures(), strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture.read_bytes())
    return CollectionSettings(pictures=PictureSettings(folder, ("decode",)))


@pytest.mark.parametrize("named", ["not at all", "alike", "by the camera"])
def test_one_file_is_not_the_picture_of_every_address_that_ends_like_it(
    agouti: Path, tmp_path: Path, named: str
) -> None:
    if named != "not at all":
        name_files(agouti, {id: "file" if named == "alike" else f"IMG_{id}.JPG" for id in ("m1", "m2", "m3")})
    how = photos_at_hand(tmp_path / "photos", ["file"])
    done = curate(agouti, tmp_path / "out", how, silent)
    assert (done.pictures, reasons(done)) == (0, {"a photo that is not at hand": 3})


@pytest.mark.parametrize("names", [["m1.jpg", "m2.jpg", "m3.jpg"], ["IMG_m1.JPG", "IMG_m2.JPG", "IMG_m3.JPG"]])
def test_pictures_are_found_by_their_id_and_by_their_file_name(agouti: Path, tmp_path: Path, names: list[str]) -> None:
    if names[0].startswith("IMG"):
        name_files(agouti, {f"m{day}": f"IMG_m{day}.JPG" for day in (1, 2, 3)})
    done = curate(agouti, tmp_path / "out", photos_at_hand(tmp_path / "photos", names), silent)
    made = {path.read_bytes() for path in (tmp_path / "out" / "train").rglob("*.jpg")}
    assert (done.pictures, len(made)) == (3, 3)


def test_what_is_to_be_fetched_has_a_name_of_its_own(agouti: Path, tmp_path: Path) -> None:
    done = curate(agouti, tmp_path / "out", CollectionSettings(), silent)
    lines = (tmp_path / "out" / "download.csv").read_text().splitlines()
    assert lines[1:] == [f"https://example.org/assets/m{day}/file,m{day}.jpg" for day in (1, 2, 3)]
    assert "3 photos share a file name with others" in done.notes[0]


def test_a_path_is_not_found_by_a_name_that_another_folder_has_too(tmp_path: Path) -> None:
    names = ("a/IMG_1.jpg", "b/IMG_1.jpg")
    place = table(tmp_path / "own.csv", [OWN | {"occurrenceID": name, "file_name": name} for name in names])
    how = photos_at_hand(tmp_path / "photos", ["IMG_1.jpg", "b/IMG_1.jpg"])
    done = curate(place, tmp_path / "out", how, silent)
    assert (list(images(tmp_path / "out")), reasons(done)) == (["b/IMG_1.jpg"], {"a photo that is not at hand": 1})
