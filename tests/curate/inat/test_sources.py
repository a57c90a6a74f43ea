"""Tables of one's own go the same way as an export."""

from __future__ import annotations

import csv
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


def addresses(folder: Path, **settings: Any) -> Curated:
    """Three observations whose pictures lie at addresses that all end in `/file`."""
    media = [(f"m{day}", f"https://example.org/assets/m{day}/file") for day in (1, 2, 3)]
    return own(
        folder, *({"occurrenceID": id, "file_name": None, "associatedMedia": at} for id, at in media), **settings
    )


def photos_at_hand(folder: Path, names: Sequence[str]) -> dict[str, PictureSettings]:
    for name, picture in zip(names, pictures(), strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture.read_bytes())
    return {"pictures": PictureSettings(folder, ("decode",))}


def test_one_file_is_not_the_picture_of_every_address_that_ends_like_it(tmp_path: Path) -> None:
    done = addresses(tmp_path, **photos_at_hand(tmp_path / "photos", ["file"]))
    assert (done.pictures, reasons(done)) == (0, {"a photo that is not at hand": 3})


def test_what_is_to_be_fetched_has_a_name_of_its_own(tmp_path: Path) -> None:
    (note,) = addresses(tmp_path).notes
    lines = [line.split(",") for line in (tmp_path / "out" / "download.csv").read_text().splitlines()[1:]]
    assert sorted(url for url, _ in lines) == [f"https://example.org/assets/m{day}/file" for day in (1, 2, 3)]
    names = [name for _, name in lines]
    assert len(set(names)) == 3 and note.startswith("3 photos")
    done = addresses(tmp_path, **photos_at_hand(tmp_path / "photos", names))
    assert done.pictures == 3


def test_a_path_is_not_found_by_a_name_that_another_folder_has_too(tmp_path: Path) -> None:
    how = photos_at_hand(tmp_path / "photos", ["IMG_1.jpg", "b/IMG_1.jpg"])
    done = own(tmp_path, *({"occurrenceID": name, "file_name": f"{name}/IMG_1.jpg"} for name in "ab"), **how)
    assert (list(images(tmp_path / "out")), reasons(done)) == (["b"], {"a photo that is not at hand": 1})
