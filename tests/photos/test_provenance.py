"""When and where a photo was taken: each source that may say it, in its order, and what is none of them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from PIL import ExifTags, Image, PngImagePlugin

from eyespot.cli._exporting import chosen_rows
from eyespot.formats.sidecars import add_keyword
from eyespot.gallery import disk, items_table
from eyespot.gallery.facts import table_of
from eyespot.gallery.groups.stored import Groups, virtues
from eyespot.gallery.index_tables import STALE_ALL
from eyespot.gallery.picture_index import StoredRow
from eyespot.photos.embedded_facts import DATES, Exif, embedded_texts
from eyespot.photos.pictures import open_picture
from eyespot.photos.provenance import (
    DATE_SOURCES,
    EXACT,
    POSITION_SOURCES,
    best_date,
    best_position,
    date_in_name,
    read_date,
)
from eyespot.photos.sidecars import is_near, sidecar_facts, sidecars_in
from eyespot.photos.videos.metadata import video_facts
from eyespot.search.collection import Collection
from eyespot.settings.search import FilterSettings
from eyespot.storage import sqlite
from eyespot.types import NothingFound, codes_of
from tests.worlds import draw_photos, index_gallery

BASE, GPS = ExifTags.Base, ExifTags.GPS
TEXT, EDITED = "2001:05:06 07:08:09", "2022:02:02 02:02:02"
WHEN = datetime(2001, 5, 6, 7, 8, 9)
XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:exif="http://ns.adobe.com/exif/1.0/"'
    ' xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" {}>'
    "{}</rdf:Description></rdf:RDF></x:xmpmeta>"
)
KEYWORDS = "<dc:subject><rdf:Bag><rdf:li>heron</rdf:li><rdf:li>pond</rdf:li></rdf:Bag></dc:subject>"


def jpeg(
    main: Mapping[int, Any] | None = None,
    photo: Mapping[int, Any] | None = None,
    gps: Mapping[int, Any] | None = None,
    **how: Any,
) -> bytes:
    exif = Image.Exif()
    exif.update(main or {})
    exif.get_ifd(ExifTags.IFD.Exif).update(photo or {})
    exif.get_ifd(ExifTags.IFD.GPSInfo).update(gps or {})
    file = BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", **{"exif": exif} | how)
    return file.getvalue()


def png(**texts: str) -> bytes:
    info, file = PngImagePlugin.PngInfo(), BytesIO()
    for name, text in texts.items():
        info.add_itxt(name.replace("_", " ").replace("xmp", "XML:com.adobe.xmp"), text)
    Image.new("RGB", (8, 8)).save(file, "PNG", pnginfo=info)
    return file.getvalue()


def with_iptc(*fields: tuple[int, bytes]) -> bytes:
    iptc = b"".join(b"\x1c\x02" + bytes([number]) + len(text).to_bytes(2, "big") + text for number, text in fields)
    block = b"8BIM\x04\x04\x00\x00" + len(iptc).to_bytes(4, "big") + iptc + b"\0" * (len(iptc) % 2)
    segment, plain = b"Photoshop 3.0\0" + block, jpeg(exif=b"")
    return plain[:2] + b"\xff\xed" + (len(segment) + 2).to_bytes(2, "big") + segment + plain[2:]


def xmp(attributes: str, inside: str = "") -> bytes:
    return XMP.format(attributes, inside).encode()


EDIT = {BASE.DateTime: EDITED}
OF_FILES = {
    "original before the edit": (jpeg(EDIT, {BASE.DateTimeOriginal: TEXT}), "camera"),
    "original in the main block": (jpeg(EDIT | {BASE.DateTimeOriginal: TEXT}), "camera"),
    "digitised": (jpeg(EDIT, {BASE.DateTimeDigitized: TEXT}), "digitised"),
    "original of zeros": (jpeg(EDIT, {36867: "0000:00:00 00:00:00", BASE.DateTimeDigitized: TEXT}), "digitised"),
    "original blank": (jpeg(EDIT, {36867: "    :  :     :  :  ", BASE.DateTimeDigitized: TEXT}), "digitised"),
    "XMP original": (jpeg(EDIT, xmp=xmp('exif:DateTimeOriginal="2001-05-06T07:08:09"')), "XMP"),
    "XMP of Photoshop": (jpeg(xmp=xmp('photoshop:DateCreated="2001-05-06T07:08:09.5+02:00"')), "XMP"),
    "XMP as an element": (jpeg(xmp=xmp("", "<xmp:CreateDate>2001-05-06T07:08:09</xmp:CreateDate>")), "XMP"),
    "XMP in a PNG": (png(xmp=xmp('photoshop:DateCreated="2001-05-06T07:08:09"').decode()), "XMP"),
    "IPTC": (with_iptc((55, b"20010506"), (60, b"070809+0200")), "IPTC"),
    "PNG": (png(Creation_Time=TEXT), "PNG"),
    "PNG as mail has it": (png(Creation_Time="Sun, 06 May 2001 07:08:09 +0000"), "PNG"),
    "GPS": (jpeg(gps={GPS.GPSDateStamp: "2001:05:06", GPS.GPSTimeStamp: (7.0, 8.0, 9.0)}), "GPS (UTC)"),
}


@pytest.mark.parametrize("name", OF_FILES)
def test_the_date_in_a_file_has_its_source(name: str) -> None:
    data, source = OF_FILES[name]
    facts = open_picture(data).facts
    assert (facts.get("taken"), facts.get("taken_from")) == (WHEN, source)


def test_the_day_of_a_change_is_never_when_a_photo_was_taken() -> None:
    facts = open_picture(jpeg(EDIT)).facts
    assert (facts.get("taken"), facts.get("taken_from"), facts.get("date_changed")) == (
        None,
        None,
        "2022-02-02T02:02:02",
    )
    assert open_picture(jpeg(xmp=xmp('xmp:ModifyDate="2022-02-02"'))).facts.get("date_changed") == "2022-02-02T00:00:00"


def test_the_page_on_reading_has_the_sources_in_the_order_that_counts() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how" / "reading.md").read_text()
    (table,), places = (
        re.findall(r"\| `taken_from` \|.*?\n\n", page, re.DOTALL),
        page.partition("A position comes from")[2],
    )
    assert re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)[1:] == [*DATE_SOURCES]
    assert re.findall("`(.*?)`", places.partition("in this order")[0]) == [*POSITION_SOURCES]
    (fields,) = re.findall(r"^\| `XMP` \|(.*)", table, re.MULTILINE)
    (compared,) = re.findall(r"what is one \|(.*?)\|", page)
    assert (re.findall("`(.*?)`", fields), re.findall("`(.*?)`", compared)) == ([*DATES], [*EXACT])
    years = {year: read_date(f"{year}-01-01", source) for year, source in ((1799, "labels"), (1798, "camera"))}
    assert years[1799] and not years[1798] and not read_date("2101-01-01", "labels")


SPELLINGS = {
    "2001:05:06": (datetime(2001, 5, 6), "(day)"),
    "2001:05:06   :  :  ": (datetime(2001, 5, 6), "(day)"),
    "2001:05:06 07:08": (datetime(2001, 5, 6, 7, 8), "(minute)"),
    "2001: 5: 6  7: 8: 9": (WHEN, ""),
    "2001:5:6 7:08:09": (WHEN, ""),
    "2001:05:06 24:00:00": (datetime(2001, 5, 7), ""),
    "2001:05:06 07:08:60": (datetime(2001, 5, 6, 7, 9), ""),
    "2001:05:06 07:08:09 PM": (datetime(2001, 5, 6, 19, 8, 9), ""),
    "2001:05:06 12:08:09 am": (datetime(2001, 5, 6, 0, 8, 9), ""),
    "2001-05-06T07:08:09.123+09:00": (WHEN, ""),
    "2001/05/06 07:08:09Z": (WHEN, ""),
    "1826:01:01 12:00:00": (datetime(1826, 1, 1, 12), ""),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_odd_spellings_of_dates_are_read(text: str) -> None:
    facts = open_picture(jpeg(photo={BASE.DateTimeOriginal: text})).facts
    when, good_for = SPELLINGS[text]
    assert (facts.get("taken"), facts.get("taken_from")) == (when, f"camera {good_for}".strip())


@pytest.mark.parametrize(
    "text",
    [
        "0000:00:00 00:00:00",
        "0001:01:01 00:00:00",
        "9999:12:31 23:59:59",
        "9999:12:31 24:00:00",
        "2001:13:06 00:00:00",
        "2001:02:30",
        "2001:05:06 25:00:00",
        "2001:05:06 07:99",
        "2001",
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_date(text, "camera") is None


@given(st.text() | st.from_regex(r"[0-9:]{1,6}[-:][0-9 ]{1,3}[-:][0-9]{1,3}[ T][0-9 :]{0,9}( ?[AP]M)?"))
def test_any_text_is_a_date_or_none(text: str) -> None:
    date = read_date(text, "camera")
    assert date is None or 1800 <= date["taken"].year <= 2101


NAMES = {
    "IMG_20010506_070809.jpg": "2001-05-06T07:08:09",
    "PXL_20010506_070809123.jpg": "2001-05-06T07:08:09",
    "PXL_20010506_070809123.MP.jpg": "2001-05-06T07:08:09",
    "20010506_070809.heic": "2001-05-06T07:08:09",
    "Screenshot 2001-05-06 at 07.08.09.png": "2001-05-06T07:08:09",
    "Screenshot_20010506-070809.png": "2001-05-06T07:08:09",
    "Screenshot 2001-05-06 at 7.08.09\u202fPM.png": "2001-05-06T07:08:09 PM",
    "WhatsApp Image 2001-05-06 at 12.08.09 AM (1).jpeg": "2001-05-06T12:08:09 AM",
    "2001-05-06 07.08.09 am Strand.jpg": "2001-05-06T07:08:09",
    "IMG_20010506_70809.jpg": None,
    "signal-2001-05-06-07-08-09-123.jpg": "2001-05-06T07:08:09",
    "IMG-20010506-WA0007.jpg": "2001-05-06",
    "2001-05-06 pool.jpg": "2001-05-06",
    "COCO_val2014_000000391895.jpg": None,
    "20010506.jpg": None,
    "12001050607080912.jpg": None,
    "2001-12-35.jpg": "2001-12-35",  # which is no date, so `best_date` refuses it
    "8520010506_070809.jpg": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_say_when(name: str) -> None:
    assert date_in_name(name) == NAMES[name]
    assert best_date({"file name": ["2001-12-35"]}) == {}


PLACE = {GPS.GPSLatitude: (48.0, 51.0, 30.0), GPS.GPSLatitudeRef: "N"}
PLACE |= {GPS.GPSLongitude: (2.0, 17.0, 40.0), GPS.GPSLongitudeRef: "E"}


def at(latitude: float, longitude: float) -> dict[int, Any]:
    return PLACE | {GPS.GPSLatitude: (latitude, 0.0, 0.0), GPS.GPSLongitude: (longitude, 0.0, 0.0)}


@pytest.mark.parametrize(
    ("gps", "why"),
    [
        (PLACE | {GPS.GPSStatus: "V"}, "48.8583333, 2.29444444 (GPS: no fix)"),
        (at(0, 0), "0, 0 (GPS: 0, 0)"),
        (at(90.000003, 10), "90.000003, 10 (GPS: out of range)"),
        (at(10, 190), "10, 190 (GPS: out of range)"),
    ],
)
def test_a_position_that_is_none_is_kept_apart(gps: dict[int, Any], why: str) -> None:
    facts = open_picture(jpeg(gps=gps)).facts
    assert (facts.get("latitude"), facts.get("longitude"), facts.get("position_from"), facts.get("gps_doubtful")) == (
        None,
        None,
        None,
        why,
    )


def test_a_position_has_its_source() -> None:
    facts = open_picture(jpeg(gps=PLACE | {GPS.GPSStatus: "A"})).facts
    assert (facts.get("latitude"), facts.get("position_from"), facts.get("gps_doubtful")) == (
        pytest.approx(48.858333),
        "GPS",
        None,
    )
    assert best_position({"GPS": (0.0, -78.45)})["position_from"] == "GPS"  # on the equator
    copied = xmp('exif:GPSLatitude="48,51.5N" exif:GPSLongitude="2,17,40E"')
    void = open_picture(jpeg(gps=PLACE | {GPS.GPSStatus: "V"}, xmp=copied)).facts
    assert void.keys().isdisjoint({"latitude", "position_from"})  # the same position without a fix, copied into XMP
    packet = xmp('exif:GPSLatitude="48,51.5N" exif:GPSLongitude="2,17,40W"')
    assert open_picture(jpeg(gps=PLACE | {GPS.GPSStatus: "V"}, xmp=packet)).facts.get("position_from") == "XMP"
    facts = open_picture(jpeg(gps=at(0, 0), xmp=packet)).facts
    assert (facts.get("latitude"), facts.get("longitude")) == (pytest.approx(48.858333), pytest.approx(-2.294444))
    assert (facts.get("position_from"), facts.get("gps_doubtful")) == ("XMP", "0, 0 (GPS: 0, 0)")


def row_of(paths: list[str], **labels: Any) -> dict[str, Any]:
    measured = labels.pop("measured", {})
    (row,) = table_of([StoredRow("a", measured, [1], paths, 1, 1, labels)], {}).to_pylist()
    return row


def test_what_lies_further_from_the_photo_says_less() -> None:
    name = ["a/IMG_20040101_000000.jpg"]
    beside = {"xmp:taken": "2003-01-01T00:00:00", "takeout:taken": "2005-01-01T00:00:00"}
    table = {"taken": "2002-01-01"}
    said = [
        row_of(name, measured={"taken": "2001-01-01T00:00:00", "taken_from": "camera"}, **beside, **table),
        row_of(name, **beside, **table),
        row_of(name, **beside),
        row_of(name, **{"takeout:taken": "2005-01-01T00:00:00"}),
        row_of(name),
    ]
    sources = ["camera", "labels (day)", "XMP sidecar", "Google Takeout (UTC)", "file name"]
    assert [row["taken_from"] for row in said] == sources
    assert [row["taken"].year for row in said] == [2001, 2002, 2003, 2005, 2004]
    assert row_of(name, taken="20020101")["taken_from"] == "labels (day)"
    assert "taken_from" not in row_of(["a/b.jpg"]) and "xmp:taken" not in said[1]
    assert "taken_from" in row_of(["b.jpg"], measured={"taken": "2001-01-01T00:00:00", "taken_from": "camera"})


TAKEOUT = {
    "title": "b.jpg",
    "description": "At the pond",
    "photoTakenTime": {"timestamp": "989132889"},
    "geoData": {"latitude": 0.0, "longitude": 0.0},
    "geoDataExif": {"latitude": 48.5, "longitude": 2.25},
}


def rows_in(gallery: Path) -> dict[str, dict[str, Any]]:
    shards = [items_table.read_items(shard).to_pylist() for shard in disk.shard_paths(gallery)]
    return {row["paths"][0]: row for rows in shards for row in rows}


def test_sidecars_are_facts_and_a_change_of_one_is_seen_without_embedding(tmp_path: Path) -> None:
    photos, gallery = draw_photos(tmp_path / "photos", 4), tmp_path / "gallery"
    one, two, three, *_ = sorted(photos.rglob("*.jpg"))
    Path(f"{one}.xmp").write_bytes(xmp('exif:DateTimeOriginal="2001-05-06T07:08:09" xmp:Rating="4"', KEYWORDS))
    two.with_suffix(".xmp").write_bytes(xmp('exif:GPSLatitude="48,30N" exif:GPSLongitude="2,15E"'))
    Path(f"{three}.supplemental-metadata.json").write_text(json.dumps(TAKEOUT))
    (photos / "alone.jpg.xmp").write_bytes(xmp(""))
    (photos / "broken.xmp").write_bytes(b"")

    index_gallery(gallery, photos)
    rows = {name: row for path, row in rows_in(gallery).items() for name in [path.rpartition("/")[2]]}

    known = rows[one.name]
    assert (known["taken"], known["taken_from"]) == (WHEN, "XMP sidecar")
    assert (known["sidecar_keywords"], known["sidecar_rating"]) == ("heron; pond", 4)
    assert [rows[two.name][key] for key in ("latitude", "longitude", "position_from")] == [48.5, 2.25, "XMP sidecar"]
    known = rows[three.name]
    assert (known["taken"], known["taken_from"]) == (datetime(2001, 5, 6, 7, 8, 9), "Google Takeout (UTC)")
    assert (known["latitude"], known["position_from"]) == (48.5, "Google Takeout")
    assert known["sidecar_description"] == "At the pond"

    Path(f"{one}.xmp").write_bytes(xmp('exif:DateTimeOriginal="1999-05-06T07:08:09"', KEYWORDS))
    two.with_suffix(".xmp").write_bytes(b"no XML")
    again = index_gallery(gallery, photos)
    assert again.embedded == 0 and [failure.path for failure in again.failures] == [
        two.with_suffix(".xmp").relative_to(photos).as_posix()
    ]
    assert rows_in(gallery)[one.relative_to(photos).as_posix()]["taken"].year == 1999


def test_words_find_the_keyword_that_a_search_wrote(tmp_path: Path) -> None:
    photos, gallery = draw_photos(tmp_path / "photos", 2), tmp_path / "gallery"
    index_gallery(gallery, photos)
    first = next(iter(Collection(gallery).search("a fish", k=1).run.facts.items()))
    add_keyword([{"id": first[0], "path": first[1]["path"]}], "holidays2003")
    again = index_gallery(gallery, photos)
    assert (again.embedded, again.found.relabelled) == (0, 1)
    (found,) = Collection(gallery).search("holidays2003", by="words").ids
    assert found == first[0]


def test_sidecars_find_their_photos() -> None:
    photos = ["IMG.jpg", "scan.tif", "scan.png", "a(1).jpg", "a.jpg", "a-edited.jpg", "b(2).jpg"]
    photos += ["a_photo_with_a_name_of_more_than_46_characters.jpg", unicodedata.normalize("NFD", "café.jpg"), "UP.JPG"]
    of = {
        "IMG.jpg.xmp": ["IMG.jpg"],
        "IMG.CR2.xmp": [],  # whose own sidecar comes first
        "raw.CR2.xmp": ["raw.jpg"],
        "scan.tif.xmp": ["scan.tif"],
        "scan.xmp": ["scan.png"],
        "a.jpg.json": ["a.jpg", "a-edited.jpg"],
        "a.jpg(1).json": ["a(1).jpg"],
        "b(2).jpg.json": ["b(2).jpg"],
        "b.jpg.supplemental-metadata(2).json": ["b(2).jpg"],
        "a.jpg.supplemental-met.json": ["a.jpg", "a-edited.jpg"],
        "a_photo_with_a_name_of_more_than_46_characters.json": [photos[7]],  # 46 of them
        "a_photo_with_a_name_of_more_than_46.json": [],
        "café.jpg.xmp": [photos[8]],
        "up.xmp": ["UP.JPG"],
        "metadata.json": [],
    }
    photos.append("raw.jpg")
    pairs = {"IMG.CR2": "IMG.jpg", "raw.CR2": "raw.jpg"}
    found = sidecars_in([*photos, *of, *pairs], photos, pairs)
    assert {name: found.get(name, []) for name in of} == of


LONG = "a_photo_with_a_name_of_more_than_46_characters"


@pytest.mark.parametrize(
    ("photos", "sidecar", "found"),
    [
        ([f"{LONG}_.jpg", f"{LONG}_(1).jpg"], f"{LONG}.json", f"{LONG}_.jpg"),
        ([f"{LONG}_.jpg", f"{LONG}_(1).jpg"], f"{LONG}(1).json", f"{LONG}_(1).jpg"),
        ([f"{LONG}_.jpg"], f"{LONG}(1).json", None),  # of a copy that is not there
        ([f"{LONG}_a.jpg", f"{LONG}_b.jpg"], f"{LONG}.json", None),
        (["a.jpg"], "A.JPG.xmp", "a.jpg"),
    ],
)
def test_a_cut_name_keeps_its_number_and_fits_one_photo(photos: list[str], sidecar: str, found: str | None) -> None:
    assert sidecars_in([*photos, sidecar], photos, {}).get(sidecar, [None]) == [found]
    assert found is None or is_near(sidecar, found)
    assert not is_near("b.jpg(2).json", "b(2)-edited.jpg")


def test_of_two_files_that_claim_a_photo_the_one_with_its_name_counts() -> None:
    names = ["A.JPG", "A.JPG.xmp", "a.jpg.xmp", "a.xmp"]
    assert sidecars_in(names, ["A.JPG"], {}) == {"A.JPG.xmp": ["A.JPG"]}


@pytest.mark.parametrize("value", [[1, 2], {}, {"photoTakenTime": None}, "text", 7])
def test_json_of_something_else_is_no_sidecar(value: Any, tmp_path: Path) -> None:
    place = tmp_path / "a.jpg.json"
    place.write_text(json.dumps(value))
    assert sidecar_facts(str(place)) is None


@pytest.mark.parametrize("stamp", ["0", 0, True, "253402300800", "soon", None, [1]])
def test_a_time_that_takeout_does_not_know_is_none(stamp: Any, tmp_path: Path) -> None:
    place = tmp_path / "a.jpg.json"
    place.write_text(json.dumps({"photoTakenTime": {"timestamp": stamp}, "geoData": {"latitude": True}}))
    facts = sidecar_facts(str(place))
    assert facts is not None and "takeout:latitude" not in facts and "taken_from" not in row_of(["a.jpg"], **facts)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"<a>" + b" " * (5 << 20) + b"</a>", "larger than 4 MB"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares a document type"),
        (xmp("")[:-9], "is not XML"),
    ],
)
def test_a_hostile_sidecar_has_a_reason(data: bytes, why: str, tmp_path: Path) -> None:
    place = tmp_path / "a.jpg.xmp"
    place.write_bytes(data)
    with pytest.raises(ValueError, match=why):
        sidecar_facts(str(place))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["timestamp", "latitude", "longitude", "x"]), inner)
    ),
)


@given(values=st.dictionaries(st.sampled_from(["photoTakenTime", "geoData", "geoDataExif", "description"]), JUNK))
def test_any_takeout_file_can_be_stored(values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.getbasetemp() / "any.jpg.json"
    place.write_text(json.dumps(values))
    facts = sidecar_facts(str(place)) or {}
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts and row_of(["a.jpg"], **facts)


@given(data=st.binary() | st.text().map(lambda text: xmp(f'exif:DateTimeOriginal="{text}" xmp:Rating="{text[:3]}"')))
def test_any_xmp_file_gives_facts_or_a_reason(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.getbasetemp() / "any.jpg.xmp"
    place.write_bytes(data)
    try:
        facts = sidecar_facts(str(place)) or {}
    except ValueError:
        return
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts and row_of(["a.jpg"], **facts)


@pytest.mark.parametrize("depth", [40_000])
def test_nested_lists_take_no_quadratic_time(depth: int, tmp_path: Path) -> None:
    place = tmp_path / "deep.jpg.xmp"
    place.write_bytes(xmp("", "<dc:subject>" * depth + "</dc:subject>" * depth))
    assert sidecar_facts(str(place)) == {}


def test_a_filter_by_date_says_what_has_none_and_lists_it(tmp_path: Path) -> None:
    photos, gallery = draw_photos(tmp_path / "photos", 3), tmp_path / "gallery"
    (photos / "b.jpg").write_bytes(jpeg(EDIT, {BASE.DateTimeOriginal: TEXT}, at(48, 2)))
    index_gallery(gallery, photos)
    collection = Collection(gallery)

    late, early = collection.search(undated=True), collection.search("a fish", before="2002")
    assert len(late) == 3 and "b.jpg" not in str(late.run.facts)
    assert [hit["path"].rpartition("/")[2] for hit in early.run.facts.values()] == ["b.jpg"]
    assert "undated" in codes_of(early.notes) and "undated" not in codes_of(late.notes)
    assert "unplaced" in codes_of(collection.search(near="48,2,5").notes)
    assert [
        int(chosen_rows(collection.view, FilterSettings.read(**one)).sum())
        for one in (  # type: ignore[union-attr]
            {"undated": True},
            {"before": "2002"},
        )
    ] == [3, 1]
    with pytest.raises(NothingFound, match="3 photos have no date"):
        chosen_rows(collection.view, FilterSettings.read(after="2021"))
    with pytest.raises(NothingFound, match="3 photos have no date"):
        collection.search(after="2021")
    with pytest.raises(NothingFound, match="3 photos have no position"):
        collection.search(near="10,10,5")
    with pytest.raises(NothingFound, match=r"widen it$"):
        collection.search(where="width > 100000")


def saved(folder: Path, name: str, picture: Image.Image, **tags: dict[int, str]) -> None:
    exif = Image.Exif()
    exif.update(tags.get("main", {}))
    exif.get_ifd(ExifTags.IFD.Exif).update(tags.get("photo", {}))
    picture.save(folder / name, quality=70 + len(name) % 20, exif=exif)


def test_copies_and_bursts_go_by_exact_times_alone(tmp_path: Path) -> None:
    draw_photos(tmp_path / "drawn", 2)
    (tmp_path / "photos").mkdir()
    one, two = (Image.open(place) for place in sorted((tmp_path / "drawn").rglob("*.jpg"))[:2])
    saved(tmp_path / "photos", "scan.jpg", one, photo={BASE.DateTimeDigitized: TEXT})
    saved(tmp_path / "photos", "scan edited in 2022.jpg", one, main={BASE.DateTime: EDITED})
    saved(tmp_path / "photos", "trap.jpg", two, photo={BASE.DateTimeOriginal: TEXT})
    saved(tmp_path / "photos", "trap later on.jpg", two, photo={BASE.DateTimeOriginal: "2001:05:06 09:08:09"})
    index_gallery(tmp_path / "gallery", tmp_path / "photos")

    view = Collection(tmp_path / "gallery").view
    numbers = Groups(view).numbers
    of = {
        facts["path"].rpartition("/")[2]: int(number)
        for facts, number in zip(view.facts(range(4)), numbers, strict=True)
    }
    assert of["scan.jpg"] == of["scan edited in 2022.jpg"] != -1
    assert of["trap.jpg"] == of["trap later on.jpg"] == -1


def test_a_repair_reads_dates_again_that_an_older_eyespot_left_without_a_source(tmp_path: Path) -> None:
    photos, gallery = draw_photos(tmp_path / "photos", 1), tmp_path / "gallery"
    for name, tags in (("old.jpg", {BASE.DateTimeOriginal: TEXT}), ("xmp.jpg", {})):
        (photos / name).write_bytes(jpeg(EDIT, tags, xmp=xmp('photoshop:DateCreated="2001-05-06T07:08:09"')))
    index_gallery(gallery, photos)
    with closing(sqlite.connect(gallery / "index.sqlite")) as sql, sql:
        edited = "UPDATE pictures SET more = NULL, taken = CASE WHEN taken NOT NULL AND {} THEN 1643767322 END"
        sql.execute(edited.format("number = (SELECT item FROM paths WHERE name = 'old.jpg')"))
        sql.execute(STALE_ALL)
    found = index_gallery(gallery, photos).found
    assert (found.undated, found.unsourced) == (2, 1) and rows_in(gallery)["old.jpg"]["taken"].year == 2022
    assert "date" not in virtues(rows_in(gallery)["old.jpg"], False)
    assert "title or keywords" in virtues({"sidecar_title": "Grandma's garden"}, False)

    again = index_gallery(gallery, photos, repair=True)
    assert (again.found.undated, again.found.unsourced, again.embedded) == (1, 0, 0)
    rows = rows_in(gallery)
    assert {name: rows[name].get("taken_from") for name in rows} == {
        "0.jpg": None,
        "old.jpg": "camera",
        "xmp.jpg": "XMP",
    }
    assert rows["old.jpg"]["taken"] == rows["xmp.jpg"]["taken"] == WHEN


def test_a_video_says_when_by_its_header_also_before_1970() -> None:
    apple = {"com.apple.quicktime.creationdate": "2001-05-06T07:08:09+0200"}
    wrong = {"creation_time": "2024-01-01T00:00:00Z"}
    begun = datetime(1958, 5, 6, 7, 8, 9)
    said = [video_facts(apple | wrong, begun), video_facts(wrong, begun), video_facts(wrong), video_facts({})]
    said += [video_facts({}, datetime(1904, 1, 1, 0, 0, 5)), video_facts({"creation_time": "1970-01-01T00:00:00Z"})]
    found = [(facts.get("taken"), facts.get("taken_from")) for facts in said]
    assert found == [
        (WHEN, "video"),
        (begun, "video (UTC)"),
        (datetime(2024, 1, 1), "video (UTC)"),
        *[(None, None)] * 3,
    ]


# -- titles, descriptions and keywords inside the files -----------------------------------------------------------


PACKET = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Garza cuca</rdf:li></rdf:Alt></dc:title>
<dc:description><rdf:Alt><rdf:li>At the lake</rdf:li></rdf:Alt></dc:description>
<dc:subject><rdf:Bag><rdf:li>heron</rdf:li><rdf:li>Ñuble</rdf:li></rdf:Bag></dc:subject>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


def described(**how: object) -> bytes:
    file = BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", **how)  # type: ignore[arg-type]
    return file.getvalue()


def texts(data: bytes) -> tuple[str | None, str | None, str | None]:
    facts = open_picture(data).facts
    return facts.get("embedded_title"), facts.get("embedded_description"), facts.get("embedded_keywords")


def exif(**blocks: object) -> Image.Exif:
    made = Image.Exif()
    for tag, value in blocks.items():
        made[int(tag.removeprefix("t"))] = value
    return made


def test_xmp_gives_title_description_and_keywords() -> None:
    assert texts(described()) == (None, None, None)
    assert texts(described(xmp=PACKET.encode())) == ("Garza cuca", "At the lake", "heron; Ñuble")


def test_exif_gives_a_description_in_utf8_and_the_texts_of_windows() -> None:
    as_pillow_reads = "Café am See".encode().decode("latin-1")
    windows = exif(t40091="Title\0".encode("utf-16-le"), t40094="a;b\0".encode("utf-16-le"))
    assert embedded_texts({}, {}, {270: as_pillow_reads}, {})["embedded_description"] == "Café am See"
    assert texts(described(exif=exif(t270="At the lake")))[1] == "At the lake"
    assert texts(described(exif=windows)) == ("Title", None, "a; b")


def test_iptc_gives_its_texts() -> None:
    fields = [(5, b"A heron"), (120, "Ca\u00f1\u00f3n".encode()), (25, b"bird"), (25, b"lake")]
    data = with_iptc(*fields)
    assert texts(data) == ("A heron", "Cañón", "bird; lake")


@pytest.mark.parametrize("description", ["OLYMPUS DIGITAL CAMERA", "SONY DSC", "   ", "\0\0"])
def test_what_cameras_write_everywhere_is_no_description(description: str) -> None:
    assert texts(described(exif=exif(t270=description)))[1] is None


@pytest.mark.parametrize(
    "packet",
    [
        b"<not xml",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        PACKET.replace("Garza", "\x01").encode(),
        b"\xff\xfe\x00",
        b"<a>" * 100_000,
    ],
)
def test_damaged_and_hostile_xmp_costs_its_texts_alone(packet: bytes) -> None:
    image = Image.new("RGB", (8, 8))
    image.info["xmp"] = packet
    assert Exif.of(image).facts((8, 8), "JPEG") == {"width": 8, "height": 8, "format": "JPEG"}


def test_index_keeps_them_as_columns_of_shards_that_have_some_also_when_it_is_lost(tmp_path: Path) -> None:
    photos = draw_photos(tmp_path / "photos", 1)
    index_gallery(tmp_path / "gallery", photos)
    (photos / "b.jpg").write_bytes(described(xmp=PACKET.encode()))
    index_gallery(tmp_path / "gallery", photos)
    for file in tmp_path.glob("gallery/index.sqlite*"):
        file.unlink()
    index_gallery(tmp_path / "gallery", photos)

    without, shard = (items_table.read_items(shard) for shard in disk.shard_paths(tmp_path / "gallery"))
    assert "embedded_title" not in without.column_names
    (fact,) = shard.select(["embedded_title", "embedded_keywords"]).to_pylist()
    assert fact == {"embedded_title": "Garza cuca", "embedded_keywords": "heron; Ñuble"}
