"""Titles, descriptions and keywords inside the files: read at `index`, kept as facts, and never in the way."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from eyespot.gallery import disk, items_table
from eyespot.photos.embedded_facts import Exif, embedded_texts
from eyespot.photos.pictures import open_picture
from tests.photos.test_provenance import with_iptc
from tests.worlds import draw_photos, index_gallery

XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Garza cuca</rdf:li></rdf:Alt></dc:title>
<dc:description><rdf:Alt><rdf:li>At the lake</rdf:li></rdf:Alt></dc:description>
<dc:subject><rdf:Bag><rdf:li>heron</rdf:li><rdf:li>Ñuble</rdf:li></rdf:Bag></dc:subject>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


def jpeg(**how: object) -> bytes:
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
    assert texts(jpeg()) == (None, None, None)
    assert texts(jpeg(xmp=XMP.encode())) == ("Garza cuca", "At the lake", "heron; Ñuble")


def test_exif_gives_a_description_in_utf8_and_the_texts_of_windows() -> None:
    as_pillow_reads = "Café am See".encode().decode("latin-1")
    windows = exif(t40091="Title\0".encode("utf-16-le"), t40094="a;b\0".encode("utf-16-le"))
    assert embedded_texts({}, {}, {270: as_pillow_reads}, {})["embedded_description"] == "Café am See"
    assert texts(jpeg(exif=exif(t270="At the lake")))[1] == "At the lake"
    assert texts(jpeg(exif=windows)) == ("Title", None, "a; b")


def test_iptc_gives_its_texts() -> None:
    fields = [(5, b"A heron"), (120, "Ca\u00f1\u00f3n".encode()), (25, b"bird"), (25, b"lake")]
    data = with_iptc(*fields)
    assert texts(data) == ("A heron", "Cañón", "bird; lake")


@pytest.mark.parametrize("description", ["OLYMPUS DIGITAL CAMERA", "SONY DSC", "   ", "\0\0"])
def test_what_cameras_write_everywhere_is_no_description(description: str) -> None:
    assert texts(jpeg(exif=exif(t270=description)))[1] is None


@pytest.mark.parametrize(
    "packet",
    [
        b"<not xml",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        XMP.replace("Garza", "\x01").encode(),
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
    (photos / "b.jpg").write_bytes(jpeg(xmp=XMP.encode()))
    index_gallery(tmp_path / "gallery", photos)
    for file in tmp_path.glob("gallery/index.sqlite*"):
        file.unlink()
    index_gallery(tmp_path / "gallery", photos)

    without, shard = (items_table.read_items(shard) for shard in disk.shard_paths(tmp_path / "gallery"))
    assert "embedded_title" not in without.column_names
    (fact,) = shard.select(["embedded_title", "embedded_keywords"]).to_pylist()
    assert fact == {"embedded_title": "Garza cuca", "embedded_keywords": "heron; Ñuble"}
