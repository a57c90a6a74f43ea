"""A library as Lightroom, digiKam and Google Takeout leave it, by their documentation: all of it is found again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from PIL import Image

from eyespot.photos.kinds import reads_raw
from eyespot.search.collection import Collection
from eyespot.types import NothingFound
from tests.worlds import draw, index_gallery
from tests.worlds.dng import dng

NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "tiff": "http://ns.adobe.com/tiff/1.0/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "lr": "http://ns.adobe.com/lightroom/1.0/",
    "crs": "http://ns.adobe.com/camera-raw-settings/1.0/",
    "digiKam": "http://www.digikam.org/ns/1.0/",
    "MicrosoftPhoto": "http://ns.microsoft.com/photo/1.0/",
}


def packet(attributes: dict[str, str], lists: dict[str, tuple[str, list[str]]]) -> bytes:
    """Attributes of one description, and its lists by name, each a Bag, Seq or Alt."""
    spaces = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    named = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    inside = ""
    for name, (kind, items) in lists.items():
        language = ' xml:lang="x-default"' if kind == "Alt" else ""
        each = "".join(f"<rdf:li{language}>{item}</rdf:li>" for item in items)
        inside += f"<{name}><rdf:{kind}>{each}</rdf:{kind}></{name}>"
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
        f'{spaces} {named}>{inside}</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def lightroom(word: str, year: int, latitude: str) -> bytes:
    """A packet of Lightroom Classic, in a JPEG or beside a RAW file."""
    return packet(
        {
            "xmp:Rating": "4",
            "xmp:CreateDate": f"{year}-05-06T07:08:09.25",
            "photoshop:DateCreated": f"{year}-05-06T07:08:09.25",
            "photoshop:SidecarForExtension": "DNG",
            "exif:GPSLatitude": latitude,
            "exif:GPSLongitude": "2,17.7E",
            "crs:Exposure2012": "+0.50",
        },
        {
            "dc:title": ("Alt", [f"{word}title"]),
            "dc:description": ("Alt", [f"{word}caption"]),
            "dc:subject": ("Bag", [f"{word}keyword"]),
            "lr:hierarchicalSubject": ("Bag", [f"{word}top|{word}middle|{word}keyword"]),
        },
    )


def digikam(word: str, year: int, latitude: str) -> bytes:
    """A sidecar of digiKam, with the tags that it writes for other programs."""
    return packet(
        {
            "xmp:Rating": "5",
            "MicrosoftPhoto:Rating": "99",
            "digiKam:PickLabel": "3",
            "tiff:DateTime": "2024-01-01T00:00:00",
            "exif:DateTimeOriginal": f"{year}-05-06T07:08:09",
            "exif:GPSLatitude": latitude,
            "exif:GPSLongitude": "2,17.70000000E",
            "exif:GPSMapDatum": "WGS-84",
        },
        {
            "dc:title": ("Alt", [f"{word}title"]),
            "tiff:ImageDescription": ("Alt", [f"{word}caption"]),
            "digiKam:TagsList": ("Seq", [f"{word}top/{word}middle/{word}keyword"]),
            "MicrosoftPhoto:LastKeywordXMP": ("Bag", [f"{word}top/{word}window"]),
        },
    )


def takeout(word: str, year: int, latitude: float) -> str:
    begin = {"latitude": 0.0, "longitude": 0.0, "altitude": 0.0}
    stamp = {"timestamp": str((year - 1970) * 31556952 + 10_000_000), "formatted": "…"}
    facts: dict[str, Any] = {"title": f"{word}.jpg", "description": f"{word}caption", "photoTakenTime": stamp}
    facts |= {"geoData": begin, "geoDataExif": begin | {"latitude": latitude, "longitude": 2.295}}
    return json.dumps(facts | {"people": [{"name": f"{word}person"}], "url": "https://photos.google.com/photo/x"})


LONG = "original_e7a8d3c1-6f2b-4f0e-9a55-0b1c2d3e4f50_P"  # 46 characters before Takeout cuts


def write_library(folder: Path) -> dict[str, dict[str, Any]]:
    """The library; each photo by its path, with its year, its latitude, and the words that find it alone."""
    known: dict[str, dict[str, Any]] = {}
    written = ("title", "caption", "keyword", "top", "middle")

    def photo(path: str, word: str, parts: tuple[str, ...] = written) -> tuple[Path, int, int]:
        number = len(known)
        year, latitude = 1991 + number, 10 + 3 * number
        words = [f"{word}{part}" for part in parts]
        known[path] = {"year": year, "latitude": latitude, "words": words}
        return draw(folder / path, number), year, latitude

    place, year, latitude = photo("Lightroom/embedded.jpg", "amber")
    with Image.open(place) as picture:
        picture.save(place, xmp=lightroom("amber", year, f"{latitude},30N"))
    if reads_raw():
        known["Lightroom/raw.dng"] = {"year": 1992, "latitude": 13, "words": [f"birch{part}" for part in written]}
        (folder / "Lightroom/raw.dng").write_bytes(dng(Image.new("RGB", (320, 240), (90, 120, 30))))
        (folder / "Lightroom/raw.xmp").write_bytes(lightroom("birch", 1992, "13,30N"))
    place, year, latitude = photo("digiKam/beside.jpg", "cedar", (*written, "window"))
    Path(f"{place}.xmp").write_bytes(digikam("cedar", year, f"{latitude},30.00000000N"))
    beside = {
        "IMG_1.jpg": "IMG_1.jpg.json",
        "IMG_2.jpg": "IMG_2.jpg.supplemental-metadata.json",
        "IMG_2(1).jpg": "IMG_2.jpg.supplemental-metadata(1).json",
        "IMG_3(2).jpg": "IMG_3.jpg(2).json",
        "IMG_20240102_a_rather_long_name.jpg": "IMG_20240102_a_rather_long_name.jpg.supplement.json",
        f"{LONG}.jpg": f"{LONG[:46]}.json",
    }
    for number, (name, sidecar) in enumerate(beside.items()):
        word = f"dune{'abcdef'[number]}"
        place, year, latitude = photo(f"Takeout/Fotos von 2022/{name}", word, ("caption", "person"))
        place.with_name(sidecar).write_text(takeout(word, year, latitude + 0.5))
        Path(f"{place}.xmp").write_bytes(packet({}, {"dc:subject": ("Bag", [f"{word}later"])}))  # of another program
        known[f"Takeout/Fotos von 2022/{name}"]["words"].append(f"{word}later")
    (folder / "digiKam/copy").mkdir()
    copy = shutil.copy(folder / "digiKam/beside.jpg", folder / "digiKam/copy/twin.jpg")
    Path(f"{copy}.xmp").write_bytes(packet({}, {"dc:subject": ("Bag", ["cedarcopy"])}))
    known["digiKam/beside.jpg"]["words"].append("cedarcopy")
    draw(folder / "Takeout/Fotos von 2022/IMG_1-bearbeitet.jpg", 70)
    (folder / "Takeout/Fotos von 2022/Metadaten.json").write_text(json.dumps({"title": "Fotos von 2022"}))
    return known


def test_every_word_date_and_position_of_a_library_is_found(tmp_path: Path) -> None:
    known = write_library(tmp_path / "photos")
    done = index_gallery(tmp_path / "gallery", tmp_path / "photos")
    assert (done.found.undated, done.found.unplaced, done.failures) == (0, 0, [])
    assert {Path(name).name for name, _ in done.found.respelled} == {f"{LONG[:46]}.json"}
    assert done.found.skipped.examples["sidecars and data"] == [
        str(tmp_path / "photos/Takeout/Fotos von 2022/Metadaten.json")
    ]
    collection = Collection(tmp_path / "gallery")

    def found(words: str | None = None, **how: Any) -> set[str]:
        try:
            run = collection.search(words, grouped=False, k=50, **how).run
        except NothingFound:
            return set()
        photos = str(tmp_path / "photos") + "/"
        return {facts["path"].removeprefix(photos) for facts in run.facts.values()}

    edited = {"Takeout/Fotos von 2022/IMG_1-bearbeitet.jpg"}
    for path, facts in known.items():
        here = {path} | (edited if path.endswith("IMG_1.jpg") else set())
        for word in facts["words"]:
            assert found(word, by="words") == here - (edited if word.endswith("later") else set()), word
        assert found(after=f"{facts['year']}", before=f"{facts['year'] + 1}") == here
        assert found(near=f"{facts['latitude'] + 0.5},2.295,20") == here
    assert found(where="sidecar_rating = 5") == {"digiKam/beside.jpg"}
