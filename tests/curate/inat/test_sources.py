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

from eyespot.curate.inat.curating import Curated
from eyespot.curate.inat.settings import PictureSettings
from eyespot.types import NothingFound, UsageError
from tests.wording import raises
from tests.worlds.inat import coco, curated, pictures

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
    return {one["observation"]: one for one in coco(out)["images"]}


def reasons(done: Curated) -> dict[str, int]:
    return {reason: count for one in done.steps for reason, count in one["dropped"].items()}


def own(folder: Path, *rows: Mapping[str, Any], **settings: Any) -> Curated:
    """The collection in `folder/out` of a table of such rows; None leaves a column out of all."""
    whole = [{name: value for name, value in (OWN | dict(row)).items() if value is not None} for row in rows]
    return curated(table(folder / "own.csv", whole), folder / "out", **settings)


def test_darwin_core_with_photos_at_hand(tmp_path: Path) -> None:
    done = own(tmp_path, {}, **photos_at_hand(tmp_path / "photos", ["a.jpg"]))
    (one,) = images(tmp_path / "out").values()
    (category,) = coco(tmp_path / "out")["categories"]
    assert (one["date"], one["rights_holder"], one["latitude"]) == ("2019-05-01", "Ann", 50.0)
    assert (done.pictures, category["name"], category["kingdom"]) == (1, "Parus major", "Animalia")


@pytest.mark.parametrize("ending", [".parquet", ".tsv"])
def test_the_same_as_parquet_and_with_tabs(tmp_path: Path, ending: str) -> None:
    place = tmp_path / f"own{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist([OWN | {"decimalLatitude": 50.0}]), place)
    else:
        place.write_text("\n".join(["\t".join(OWN), "\t".join(OWN.values())]) + "\n")
    assert curated(place, tmp_path / "out").pictures == 1


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("Parus major", "Parus major major", "Parus xanthogenys"), None),
        (
            ("Parus", "Parus sp.", "Paridae", "Parus sp", "Parus spp", "Parus cf major", "Parus aff major"),
            "no species: a higher taxon",
        ),
        (("Parus major x minor", "Parus major X Parus minor", "Parus major × minor", "Parus × minor"), "a hybrid"),
    ],
)
def test_species_are_told_from_what_is_above_them(tmp_path: Path, names: tuple[str, ...], why: str | None) -> None:
    rows = [{"occurrenceID": name, "scientificName": name, "file_name": f"{at}.jpg"} for at, name in enumerate(names)]
    done = own(tmp_path, {"occurrenceID": "z", "file_name": "z.jpg"}, *rows)
    assert reasons(done) == ({why: len(names)} if why else {})


def test_a_hybrid_by_its_rank_is_none_by_its_name_either(tmp_path: Path) -> None:
    hybrid = {"occurrenceID": "z", "file_name": "z.jpg", "taxonRank": "hybrid", "scientificName": "Parus minor"}
    assert reasons(own(tmp_path, {"taxonRank": "species"}, hybrid)) == {"a hybrid": 1}


def test_midnight_is_that_of_the_place(tmp_path: Path) -> None:
    days = {
        "west": ("2019-05-02T06:30:00Z", "-120.0"),
        "east": ("2019-05-01T22:00:00Z", "151.0"),
        "offset": ("2019-05-01T23:59:00-07:00", "-120.0"),
        "parts": ("2019-05-01/2019-05-02", "0.0"),
    }
    rows = [
        {"occurrenceID": id, "eventDate": day, "decimalLongitude": longitude, "file_name": f"{id}.jpg"}
        for id, (day, longitude) in days.items()
    ]
    assert reasons(own(tmp_path, *rows)) == {"a date of more than one day": 1}
    dates = {id: one["date"] for id, one in images(tmp_path / "out").items()}
    assert dates == {"west": "2019-05-01", "east": "2019-05-02", "offset": "2019-05-01"}


def test_several_photos_in_one_field_and_a_date_in_three_columns(tmp_path: Path) -> None:
    media = "https://example.org/p/1.jpg?size=large | https://example.org/p/2.jpg"
    date = {"eventDate": None, "year": "2020", "month": "3", "day": "9"}
    own(tmp_path, {"file_name": None, "associatedMedia": media} | date)
    lines = (tmp_path / "out" / "download.csv").read_text().splitlines()
    assert lines == ["url,file", "https://example.org/p/1.jpg?size=large,1.jpg"]
    assert images(tmp_path / "out")["a"]["date"] == "2020-03-09"


@pytest.mark.parametrize(
    ("column", "kind"), [("eventDate", UsageError), ("file_name", UsageError), ("license", NothingFound)]
)
def test_a_table_that_lacks_a_column_says_which(tmp_path: Path, column: str, kind: type[Exception]) -> None:
    with raises(kind):
        own(tmp_path, {column: None}, {"occurrenceID": "b", "file_name": "b.jpg"} | {column: None})


@pytest.mark.parametrize("name", ["nothing", "notes.docx"])
def test_what_is_no_source_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.docx").write_bytes(b"x")
    with raises(UsageError):
        curated(tmp_path / name, tmp_path / "out")


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
    done = curated(package, tmp_path / "out")
    assert reasons(done) == {"no animal: blank": 1, "no animal: human": 1, "a file that is not public": 1}
    (one,) = images(tmp_path / "out").values()
    assert (one["date"], one["latitude"], one["rights_holder"]) == ("2023-06-01", 46.0, "The park")
    assert one["file_name"].endswith("/m1.jpg")  # the earlier of the event's two pictures


def test_an_event_with_an_offset_has_the_pictures_of_its_hours(package: Path, tmp_path: Path) -> None:
    what = {"observationID": "one", "mediaID": "", "observationType": "animal", "scientificName": "Cervus elaphus"}
    hours = {"eventStart": "2023-06-01T22:00:05-07:00", "eventEnd": "2023-06-01T22:00:30-07:00"}
    table(package / "observations.csv", [what | hours | {"deploymentID": "d1"}])
    curated(package, tmp_path / "out")
    assert images(tmp_path / "out")["one"]["file_name"].endswith("/m2.jpg")  # of 5:00:10 UTC


@pytest.mark.parametrize(
    "descriptor", [{"licenses": 5}, {"contributors": 7}, {"licenses": ["CC0"]}, [], None], ids=json.dumps
)
def test_a_package_of_another_form_or_without_media_says_so(package: Path, tmp_path: Path, descriptor: object) -> None:
    if descriptor is None:
        (package / "media.csv").unlink()
    else:
        (package / "datapackage.json").write_text(json.dumps(descriptor))
    with raises(UsageError):
        curated(package, tmp_path / "out")


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


def name_files(package: Path, name: str) -> None:
    """Give the media of a package the column fileName."""
    with (package / "media.csv").open(newline="") as file:
        rows = [row | {"fileName": name.format(row["mediaID"])} for row in csv.DictReader(file)]
    table(package / "media.csv", rows)


def photos_at_hand(folder: Path, names: Sequence[str]) -> dict[str, PictureSettings]:
    for name, picture in zip(names, pictures(), strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture.read_bytes())
    return {"pictures": PictureSettings(folder, ("decode",))}


@pytest.mark.parametrize("name", [None, "file", "IMG_{}.JPG"])
def test_one_file_is_not_the_picture_of_every_address_that_ends_like_it(
    agouti: Path, tmp_path: Path, name: str | None
) -> None:
    if name:
        name_files(agouti, name)
    done = curated(agouti, tmp_path / "out", **photos_at_hand(tmp_path / "photos", ["file"]))
    assert (done.pictures, reasons(done)) == (0, {"a photo that is not at hand": 3})


@pytest.mark.parametrize("name", ["{}.jpg", "IMG_{}.JPG"])
def test_pictures_are_found_by_their_id_and_by_their_file_name(agouti: Path, tmp_path: Path, name: str) -> None:
    if name.startswith("IMG"):
        name_files(agouti, name)
    how = photos_at_hand(tmp_path / "photos", [name.format(id) for id in ("m1", "m2", "m3")])
    done = curated(agouti, tmp_path / "out", **how)
    made = {path.read_bytes() for path in (tmp_path / "out" / "train").rglob("*.jpg")}
    assert (done.pictures, len(made)) == (3, 3)


def test_what_is_to_be_fetched_has_a_name_of_its_own(agouti: Path, tmp_path: Path) -> None:
    (note,) = curated(agouti, tmp_path / "out").notes
    lines = (tmp_path / "out" / "download.csv").read_text().splitlines()
    assert lines[1:] == [f"https://example.org/assets/m{day}/file,m{day}.jpg" for day in (1, 2, 3)]
    assert note.startswith("3 photos")


def test_a_path_is_not_found_by_a_name_that_another_folder_has_too(tmp_path: Path) -> None:
    how = photos_at_hand(tmp_path / "photos", ["IMG_1.jpg", "b/IMG_1.jpg"])
    done = own(tmp_path, *({"occurrenceID": name, "file_name": f"{name}/IMG_1.jpg"} for name in "ab"), **how)
    assert (list(images(tmp_path / "out")), reasons(done)) == (["b"], {"a photo that is not at hand": 1})
