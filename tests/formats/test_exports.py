"""What is exported: all that was chosen, with its facts and rights, without places and owners, whole or not at all.

What the peers ask for is there and fits together: COCO, BEIR, packages of camera traps.
"""

from __future__ import annotations

import csv
import json
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageSequence

from eyespot import rooms
from eyespot.formats.exporting import ExportOptions, ExportReport, export
from eyespot.formats.folders import FileNames, safe_name
from eyespot.formats.pictures import PictureFile, bare_gif, bare_jpeg, picture_of
from eyespot.gallery.view import Gallery, View
from eyespot.runs import beir
from eyespot.runs.judged import JudgedQueries
from eyespot.types import NothingFound, Qrels, UsageError
from tests.examples import examples
from tests.lazy_import import requires
from tests.wording import raises
from tests.worlds import draw, draw_photos, index_gallery
from tests.worlds.galleries import facts_of, opened
from tests.worlds.outside import loaded

NAMES = ["file_name", "title", "license", "author", "taken", "latitude", "longitude", "species", "boxes"]
PROFILE = Path(__file__).parent / "camtrap-dp-1.0.2"
GPS, ARTIST, ORIENTATION, LATITUDE = 0x8825, 0x013B, 0x0112, 2


def labelled(photos: Path, rows: list[list[str]]) -> Path:
    with (photos / "metadata.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return photos


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Nine photos: eight with a licence and an author, one with an author alone."""
    folder = tmp_path_factory.mktemp("licensed")
    rows = [["file_name", "title", "license", "author", "kind"]]
    for at in range(9):
        kind = "bird" if at % 2 else "a/b: c"
        rows.append([f"{at}.jpg", f"Nr {at}", "CC BY 4.0" if at else "", f"Ann {at}", kind])
    index_gallery(folder / "gallery", labelled(draw_photos(folder / "photos", 9), rows))
    return opened(folder / "gallery")


def written(name: str, view: View, out: Path, **options: Any) -> ExportReport:
    return export(view, rooms.module("formats.exports", name).write, out, ExportOptions(**options))


@requires("datasets")
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(
    ("name", "ending"), [("a.JPEG", ".jpeg"), ("a.jfif", ".jfif"), ("a.png", ".jpg"), ("a", ".jpg")]
)
def test_an_ending_stays_where_it_is_one_of_the_format(tmp_path: Path, name: str, ending: str, bare: bool) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / name, "JPEG")
    found = picture_of([str(tmp_path / name)], bare)
    assert isinstance(found, PictureFile) and (found.name, found.suffix) == ("a", ending)


@pytest.mark.parametrize(("name", "options"), [("imagefolder", {"category": "kind"}), ("parquet", {"pictures": True})])
def test_datasets_reads_pictures_and_every_fact(view: View, tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    report = written(name, view, tmp_path / "out", **options)

    (split,) = loaded("datasets", tmp_path / "out")["default"].values()
    first = split["first"]
    (fact,) = [fact for fact in facts_of(view.gallery.path) if fact["id"] == first["id"]]
    assert (split["rows"], report.rows, report.failed) == (9, 9, [])
    assert first["image"] == [fact["width"], fact["height"]]
    assert [first[column] for column in ("title", "license", "kind")] == [fact["title"], fact["license"], fact["kind"]]
    assert first["author"] == (fact["author"] if fact["license"] else None)
    assert "latitude" not in split["columns"]


@pytest.mark.parametrize(("name", "place"), [("webdataset", "."), ("parquet", "data/train.parquet")])
def test_archives_are_indexed_again_with_their_facts(view: View, tmp_path: Path, name: str, place: str) -> None:
    written(name, view, tmp_path / "out", **({"shard_rows": 4} if name == "webdataset" else {"pictures": True}))

    index_gallery(tmp_path / "again", tmp_path / "out" / place)
    galleries = (tmp_path / "again", view.gallery.path)
    again, before = (sorted((fact["id"], fact["title"]) for fact in facts_of(gallery)) for gallery in galleries)
    assert again == before
    members = []
    for path in sorted((tmp_path / "out").glob("*.tar")):
        with tarfile.open(path) as tar:
            members.append(len(tar.getnames()))
    assert members == ([12, 12, 3] if name == "webdataset" else [])


def test_coco_has_categories_licences_and_boxes_in_pixels(photos: Path, tmp_path: Path) -> None:
    boxes = json.dumps([["animal", 0.9, 0.5, 0.1, 0.25, 0.2]])
    rows = [["file_name", "kind", "license", "boxes"], ["photo1.jpg", "gull", "CC0", boxes]]
    labelled(photos, rows)
    index_gallery(tmp_path / "gallery", photos)
    written("coco", opened(tmp_path / "gallery"), tmp_path / "out", category="kind")

    dataset = json.loads((tmp_path / "out" / "annotations.json").read_text())
    names = {one["id"]: one["name"] for one in dataset["categories"]}
    (image,) = [one for one in dataset["images"] if "license" in one]
    pairs = {names[one["category_id"]]: one for one in dataset["annotations"]}
    assert len(dataset["images"]) == 9
    assert pairs.keys() == {"gull", "animal"} and {one["image_id"] for one in pairs.values()} == {image["id"]}
    assert pairs["animal"]["bbox"] == [60, 9, 30, 18]
    assert dataset["licenses"][image["license"] - 1]["name"] == "CC0"


@pytest.mark.parametrize("name", [name for name in rooms.names("formats.exports") if name != "camtrap_dp"])
def test_only_what_was_chosen_is_written_and_progress_is_told(view: View, tmp_path: Path, name: str) -> None:
    chosen = np.zeros(9, np.bool_)
    chosen[[2, 5]] = True
    judged = JudgedQueries(
        {"gull": {"text": "a gull"}}, Qrels({"gull": {fact["id"]: 1 for fact in facts_of(view.gallery.path)}})
    )
    steps: list[tuple[int, int]] = []
    how = {"chosen": chosen, "judged": judged, "progress": lambda _, done, total: steps.append((done, total))}
    report = written(name, view, tmp_path / "out", **how)

    assert report.rows == 2 and steps[-1] == (2, 2)


@pytest.mark.parametrize(
    ("name", "options"), [("beir", {}), ("coco", {"category": "colour"}), ("coco", {"category": "latitude"})]
)
def test_what_an_export_lacks_is_named_first(view: View, tmp_path: Path, name: str, options: dict[str, str]) -> None:
    with raises(UsageError):
        written(name, view, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out*"))


def test_splits_are_those_of_a_column(view: View, tmp_path: Path) -> None:
    written("imagefolder", view, tmp_path / "out", split="KIND")
    splits = {path.parent.name: pq.read_table(path) for path in (tmp_path / "out").rglob("metadata.parquet")}
    assert {name: len(table) for name, table in splits.items()} == {"bird": 4, "a_b_c": 5}
    assert "{split: bird, path: bird/**}" in (tmp_path / "out" / "README.md").read_text()


def test_pictures_that_are_gone_or_damaged_are_named_and_the_rest_is_written(photos: Path, tmp_path: Path) -> None:
    index_gallery(tmp_path / "gallery", photos)
    (photos / "photo1.jpg").unlink()
    (photos / "photo2.jpg").write_bytes(b"\xff\xd8\xff\xe0 no picture")
    report = written("imagefolder", opened(tmp_path / "gallery"), tmp_path / "out")
    assert report.rows == 7 == len(list((tmp_path / "out").rglob("*.jpg")))
    assert {Path(one.path).name for one in report.failed} == {"photo1.jpg", "photo2.jpg"}


def test_nothing_is_left_where_no_picture_can_be_read(view: View, tmp_path: Path) -> None:
    index_gallery(tmp_path / "gallery", draw(tmp_path / "photos" / "a.jpg", 1).parent)
    (tmp_path / "photos" / "a.jpg").unlink()
    with raises(NothingFound):
        written("webdataset", opened(tmp_path / "gallery"), tmp_path / "out")
    (tmp_path / "empty").mkdir()
    index_gallery(tmp_path / "other", tmp_path / "empty")
    with raises(NothingFound):
        written("coco", Gallery(tmp_path / "other").view(view.stem), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.text(), st.sampled_from([".jpg", ""])), max_size=30))
def test_names_stay_in_their_folder_and_are_distinct(tmp_path_factory: pytest.TempPathFactory, wanted: Any) -> None:
    names = FileNames()
    taken = [names.take(text, suffix) for text, suffix in wanted]
    folder = tmp_path_factory.mktemp("names")
    for name in taken:
        (folder / name).touch()
    assert len({name.casefold() for name in taken}) == len(taken) == len(list(folder.iterdir()))
    assert not any(name.startswith((".", "-")) for name in taken)


@pytest.mark.parametrize(
    ("text", "name"),
    [("../../etc/passwd", "_.._etc_passwd"), ("a\0b\nc", "a_b_c"), ("con", "_con"), ("", "_"), ("-rf", "_-rf")],
)
def test_hostile_names_become_harmless(text: str, name: str) -> None:
    assert safe_name(text) == name


def telling(size: tuple[int, int], orientation: int, **options: Any) -> bytes:
    """A JPEG of noise with a position, an artist and a comment."""
    exif, jpeg = Image.Exif(), BytesIO()
    exif[ARTIST], exif[ORIENTATION] = "Ann Owner", orientation
    exif.get_ifd(GPS)[LATITUDE] = (47.0, 33.0, 12.0)
    pixels = np.random.default_rng(sum(size)).integers(0, 255, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(jpeg, "JPEG", exif=exif, comment=b"by Ann Owner", **options)
    return jpeg.getvalue()


@settings(max_examples=examples(60), deadline=None)
@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from([b"", b"\0" * 9, b"\xff\xd8\xff\xe1 another picture, with its own GPS"]),
)
def test_a_bare_jpeg_is_its_pixels(size: tuple[int, int], orientation: int, progressive: bool, behind: bytes) -> None:
    data = telling(size, orientation, progressive=progressive, icc_profile=b"a profile", quality=95)
    bare = bare_jpeg(data + behind)

    assert b"Ann Owner" not in bare and b"its own GPS" not in bare
    with Image.open(BytesIO(data)) as was, Image.open(BytesIO(bare)) as now:
        np.testing.assert_array_equal(np.asarray(was), np.asarray(now))
        assert not now.getexif().get_ifd(GPS)
        assert now.getexif().get(ORIENTATION, 1) == orientation
        assert now.info["icc_profile"] == b"a profile"


def test_with_all_columns_pictures_are_copied_and_odd_formats_become_jpeg(tmp_path: Path) -> None:
    data = telling((20, 30), 6)
    (tmp_path / "a.jpg").write_bytes(data)
    Image.new("RGB", (8, 6)).save(tmp_path / "a.tif")
    whole = picture_of([str(tmp_path / "gone.jpg"), str(tmp_path / "a.jpg")], bare=False)
    got = picture_of([str(tmp_path / "a.tif")], bare=True)
    assert not isinstance(whole, str) and whole.data == data and not isinstance(got, str)
    assert (got.converted, got.name, got.suffix, got.size, got.data[:3]) == (True, "a", ".jpg", (8, 6), b"\xff\xd8\xff")


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_a_bare_png_or_webp_loses_only_its_metadata(tmp_path: Path, format: str) -> None:
    exif = Image.Exif()
    exif[ARTIST], exif[ORIENTATION] = "Ann Owner", 6
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    place = tmp_path / f"a.{format.lower()}"
    Image.fromarray(pixels).save(place, format, exif=exif, lossless=True)
    got = picture_of([str(place)], bare=True)

    assert not isinstance(got, str) and b"Ann" not in got.data and not got.converted
    with Image.open(BytesIO(got.data)) as now:
        np.testing.assert_array_equal(np.asarray(now.convert("RGB")), pixels)
        assert now.getexif().get(ORIENTATION) == 6


def frames_of(data: bytes) -> list[bytes]:
    with Image.open(BytesIO(data)) as image:
        return [frame.convert("RGB").tobytes() for frame in ImageSequence.Iterator(image)]


def test_a_bare_gif_has_every_frame_and_nothing_that_tells(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "green", "blue")]
    out = BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], loop=0, duration=80, comment=b"by Ada")
    xmp = b"<x:xmpmeta><exif:GPSLatitude>53,5N</exif:GPSLatitude></x:xmpmeta>"
    block = b"\x21\xff\x0bXMP DataXMP" + xmp + b"\x01" + bytes(range(255, -1, -1)) + b"\x00"
    before, head, after = out.getvalue().partition(b"\x21\xff\x0bNETSCAPE2.0")
    data = before + block + head + after + b"GPS behind the end"
    (tmp_path / "a.gif").write_bytes(data)
    bare, whole = (picture_of([str(tmp_path / "a.gif")], bare) for bare in (True, False))

    assert not isinstance(bare, str) and not isinstance(whole, str)
    assert b"Ada" in data and b"GPS" not in bare.data and b"Ada" not in bare.data
    assert frames_of(bare.data) == frames_of(data) and b"NETSCAPE2.0" in bare.data
    assert (whole.data, bare.suffix, bare_gif(bare.data)) == (data, ".gif", bare.data)
    for length in range(0, 300, 7):  # cut short, it ends without an error
        assert bare_gif(data[:length]).endswith(b";")


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Nine photos; the first five have a time and a position, the first two a species, the fifth a box."""
    folder, rows = tmp_path_factory.mktemp("dated"), [NAMES]
    boxes = json.dumps([["animal", 0.75, 0.5, 0.5, 0.25, 0.25], ["vehicle", 0.5, 0, 0, 1.5, 1]])
    for at in range(9):
        where = (f"2024-05-0{at + 1} 10:00:00", str(47 + at // 3), "8.5") if at < 5 else ("", "", "")
        seen = ("Vulpes vulpes" if at < 2 else "", boxes if at == 4 else "")
        rows.append([f"{at}.jpg", f"Nr {at}", "CC BY 4.0", f"Ann {at}", *where, *seen])
    index_gallery(folder / "gallery", labelled(draw_photos(folder / "photos", 9), rows))
    return opened(folder / "gallery")


@pytest.fixture
def judged(dated: View) -> JudgedQueries:
    """Judgements of four photos and of one that nobody has."""
    ids = [fact["id"] for fact in dated.facts(range(9))]
    grades = {"fox": {ids[0]: 2, ids[1]: 0, "nobody": 1}, "q2": {ids[7]: 1, ids[8]: 0}, "q3": {"nobody": 1}}
    return JudgedQueries({"fox": {"text": "a red fox"}}, Qrels(grades))


def test_a_beir_folder_has_the_corpus_texts_and_judgements(dated: View, judged: JudgedQueries, tmp_path: Path) -> None:
    report = written("beir", dated, tmp_path / "out", judged=judged)
    read = beir.read(tmp_path / "out")
    assert {query: facts["text"] for query, facts in read.queries.items()} == {"fox": "a red fox", "q2": "q2"}
    assert [sorted(read.qrels[query].values()) for query in ("fox", "q2")] == [[0, 2], [0, 1]]
    said = {fact["id"]: [fact["title"], fact["license"], fact["author"]] for fact in dated.facts(range(9))}
    assert {id: [one["text"], one["license"], one["author"]] for id, one in read.images.items()} == said
    assert len(report.notes) == 1 and "2 judgements " in report.notes[0]


def test_judgements_of_other_pictures_are_no_set_and_positions_stay_unless_asked(dated: View, tmp_path: Path) -> None:
    with raises(NothingFound):
        written("beir", dated, tmp_path / "out", judged=JudgedQueries({}, Qrels({"q": {"nobody": 1}})))
    with raises(UsageError):
        written("camtrap_dp", dated, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def tables(out: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for path in out.glob("*.csv"):
        with path.open(newline="") as file:
            found[path.stem] = list(csv.DictReader(file))
    return found


def test_a_camera_trap_package_fits_together_and_has_the_columns_of_the_standard(dated: View, tmp_path: Path) -> None:
    report = written("camtrap_dp", dated, tmp_path / "out", all_columns=True)

    read, about = tables(tmp_path / "out"), json.loads((tmp_path / "out" / "datapackage.json").read_text())
    media = {row["mediaID"]: row for row in read["media"]}
    assert (report.rows, len(report.failed), len(media)) == (5, 4, 5)
    assert {row["deploymentID"] for row in media.values()} == {row["deploymentID"] for row in read["deployments"]}
    assert all((tmp_path / "out" / row["filePath"]).is_file() for row in media.values())
    seen = sorted((row["observationType"], row["scientificName"], row["bboxWidth"]) for row in read["observations"])
    foxes, boxes = [("animal", "Vulpes vulpes", "")] * 2, [("animal", "", "0.25"), ("vehicle", "", "1.0")]
    assert seen == sorted([*foxes, *boxes, *[("unclassified", "", "")] * 2])
    assert len({row["observationID"] for row in read["observations"]}) == 6
    assert [one["title"] for one in about["contributors"]] == ["eyespot", *(f"Ann {at}" for at in range(5))]
    assert about["licenses"] == [{"title": "CC BY 4.0", "scope": "media", "name": "CC-BY-4.0"}]
    for table in ("deployments", "media", "observations"):
        fields = json.loads((PROFILE / f"{table}-table-schema.json").read_text())["fields"]
        required = [field["name"] for field in fields if field.get("constraints", {}).get("required")]
        assert [*read[table][0]] == [field["name"] for field in fields]
        assert all(row[name] for row in read[table] for name in required)
