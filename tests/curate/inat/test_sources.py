"""Tables of one's own go the same way as an export."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.curate.inat.curating import Curated
from eyespot.curate.inat.licences import (
    COPYABLE,
    KINDS,
    PHOTOS,
    TAXA,
    Licence,
    checked,
    licence_of,
    listed,
    why_not,
)
from eyespot.curate.inat.tables import Tables, know_days, opened, quoted
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


def photos_at_hand(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    for name, picture in zip(names, pictures(), strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture.read_bytes())
    return {"photos": folder, "check": "decode"}


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


# -- the day on which an observation was made, where it was made -------------------------------------------------


FIRST, SECOND = date(2022, 5, 1), date(2022, 5, 2)


def local_day(tables: Tables, text: str, longitude: float) -> date | str:
    """The day of a date at a longitude, or why there is none."""
    arguments = f"{quoted(text)}, CAST({longitude} AS DOUBLE)"
    ((day, fault),) = tables.rows(f"SELECT local_day({arguments}), date_fault({arguments})")
    return fault or day  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    with opened(Path(tmp_path_factory.mktemp("days")) / "spill", 0.5, 1) as tables:
        know_days(tables)
        yield tables


@pytest.mark.parametrize(
    ("text", "longitude", "day"),
    [
        ("2022-05-01", 0, FIRST),
        ("2022-05-01T23:59:59-07:00", -120, FIRST),
        ("2022-05-02T00:00:00-07:00", -120, SECOND),
        ("2022-05-02T06:30:00Z", -120, FIRST),  # 22:30 by the sun
        ("2022-05-01T22:00:00Z", 151, SECOND),  # 8:04 by the sun
        ("2022-05-02 02:00:00 UTC", -120, FIRST),  # 18:00 by the sun
        ("2022-05-01 22:00:00 GMT", 151, SECOND),
        ("2022-05-02 02:00:00 UTC+02:00", -120, SECOND),
        ("2022-05-01T23:30:00+00:00", 0, FIRST),
        ("2022-05-01T23:30:00+0530", 80, FIRST),
        ("2022-05-01 10:30", 80, FIRST),
        ("2022-05-01/2022-05-01", 0, FIRST),
        ("2022-05-01T10:00Z/11:00Z", 0, FIRST),
        ("2022-05-01T23:00:00-07:00/2022-05-01T23:50:00-07:00", -120, FIRST),
    ],
)
def test_the_local_day(tables: Tables, text: str, longitude: float, day: date) -> None:
    assert local_day(tables, text, longitude) == day


LONG = ("2022-05", "2022", "2022/2023", "2022-05-01/03", "2022-05-01/2022-05-02")
BAD = ("2022-02-30", "yesterday", "2022-05-01T25:00:00", "5/1/2022", "2022/05/01", "2022-05-01/unknown")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no date"),
        *((text, "a date that cannot be read") for text in BAD),
        *((text, "a date of more than one day") for text in LONG),
        ("2022-05-01T23:30:00-07:00/2022-05-02T00:30:00-07:00", "a date of more than one day"),
    ],
)
def test_what_names_no_day_says_why(tables: Tables, text: str, why: str) -> None:
    assert local_day(tables, text, 0) == why


# -- lists that a user gives, whatever the case of their header; a list that names nothing is refused ------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "name\nParus major\n"),
        ("l.csv", "id,Species\n7,Parus major\n"),
        ("l.csv", "Scientific Name,why\nParus major,rare\n"),
        ("l.tsv", "why\tSCIENTIFICNAME\nrare\tParus  major\n"),
        ("l.jsonl", '{"Scientific_Name": "Parus major", "id": 7}\n'),
        ("l.txt", "\nParus major \n"),
        ("list", "Parus major"),
    ],
)
def test_names_are_read_however_the_header_is_spelled(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert listed(tmp_path / name, TAXA) == {"Parus major"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "bird\nParus major\n"),
        ("l.csv", "name\n"),
        ("l.csv", "name,why\n,rare\n"),
        ("l.csv", ""),
        ("l.txt", "\n \n"),
    ],
)
def test_a_list_that_names_nothing_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with raises(UsageError):
        listed(tmp_path / name, TAXA)


def test_photos_have_columns_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("Photo ID,File Name,name\n7,train/a/b.jpg,Ann\n")
    assert listed(tmp_path / "l.csv", PHOTOS) == {"7", "train/a/b.jpg"}


# -- licences as sources spell them ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CC-BY-NC", "CC BY-NC"),
        ("CC0", "CC0 1.0"),
        ("CC_BY_NC_4_0", "CC BY-NC 4.0"),
        ("CC BY-SA-NC 4.0", "CC BY-NC-SA 4.0"),
        ("http://creativecommons.org/licenses/by-nd/2.5/legalcode", "CC BY-ND 2.5"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0 1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "PD 1.0"),
        ("Creative Commons Attribution-NonCommercial-NoDerivs 4.0 International", "CC BY-NC-ND 4.0"),
        ("(c) Ann, some rights reserved (CC BY-NC-SA)", "CC BY-NC-SA"),
        ("PD", "PD 1.0"),
        ("Creative Commons Attribution Non Commercial (CC-BY-NC) 4.0 License", "CC BY-NC 4.0"),
        ("Creative Commons Attribution Share Alike 4.0", "CC BY-SA 4.0"),
        ("Creative Commons Attribution 4.0 International (CC BY 4.0)", "CC BY 4.0"),
        ("Attribution-NonCommercial-ShareAlike 4.0 International", "CC BY-NC-SA 4.0"),
        ("CC BY 4.0 https://creativecommons.org/licenses/by/4.0/", "CC BY 4.0"),
        ("https://creativecommons.org/licenses/by-sa/3.0/de/deed.en", "CC BY-SA 3.0"),
        ("CC0 1.0 Universal (CC0 1.0) Public Domain Dedication", "CC0 1.0"),
        ("Creative Commons Zero v1.0 Universal", "CC0 1.0"),
        ("(c) Bo, some rights reserved (CC BY), uploaded by Ann", "CC BY"),
        ("(c) Bo, no rights reserved (CC0)", "CC0 1.0"),
        ("by-nc", "CC BY-NC"),
    ],
)
def test_a_licence_is_known_however_it_is_spelled(text: str, name: str) -> None:
    licence = licence_of(text)
    assert licence is not None and licence.name == name


@pytest.mark.parametrize("kind", KINDS)
def test_name_and_address_of_a_licence_are_it_again(kind: str) -> None:
    licence = Licence(kind, "1.0" if kind in ("CC0", "PD") else "4.0")
    assert licence_of(licence.name) == licence_of(licence.url) == licence


@pytest.mark.parametrize(
    "text",
    [
        *("", "C", "All rights reserved", "all rights reserved, not CC-BY", "standby", "CC", "NC-SA", "Attribution"),
        *("By permission of the copyright holder", "by John Smith", "by Nd", "Zero"),
        *("Ground Zero Photography, all rights reserved", "CC0, all rights reserved"),
        "(c) Some, all rights reserved, some rights reserved (CC BY)",
        *("CC BY or CC BY-NC", "CC BY / CC BY-NC", "CC BY, BY-NC", "CC BY 3.0, CC BY 4.0", "CC BY 4.0 NC"),
        *("not CC BY", "CC BY for members", "CC0 but for the logo", "UNSPECIFIED"),
    ],
)
def test_what_is_no_licence_is_none(text: str) -> None:
    assert licence_of(text) is None


def test_a_code_without_a_version_takes_that_of_its_source() -> None:
    assert licence_of("CC-BY-SA", "4.0") == Licence("CC BY-SA", "4.0")
    assert Licence("CC BY-SA", "4.0").url == "https://creativecommons.org/licenses/by-sa/4.0/"


def test_why_a_photo_stays_out() -> None:
    assert why_not(None, COPYABLE) == why_not(" ", COPYABLE) == "no licence"
    assert why_not("C", COPYABLE) == "a licence that allows no copying, or none that is known"
    assert why_not("PD", COPYABLE) == "licence PD not wanted"
    assert why_not("CC-BY-NC-ND", COPYABLE) is None


def test_licences_that_a_user_names() -> None:
    assert checked([]) == COPYABLE and checked(["cc0", "by-nc"]) == ("CC0", "CC BY-NC")
    with raises(UsageError):
        checked(["free"])
