"""Pictures of a collection: what is looked at and left out, what a person says, and what a later run finds changed."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot.curate.inat.curating import curate
from eyespot.curate.inat.settings import CollectionSettings, ObservationFilter, PictureSettings
from eyespot.gallery.photos.found import Labels, Seen, Unreadable
from eyespot.gallery.photos.sources import root_of, scan
from eyespot.pipelines.human_review import Queue
from tests.curate.inat.test_looks import PEOPLE, needs_faces
from tests.curate.outside import loaded
from tests.worlds.inat import TIT, coco, dropped, export, photo, pictures, seen, silent

NO_FACES = ("decode", "spectrogram", "empty")


@pytest.fixture
def photographed(tmp_path: Path) -> Path:
    """Five observations with photos at hand: a good one, one with a place in its EXIF, half a JPEG, a blank, none."""
    observations = [seen(id) for id in ("good", "placed", "corrupt", "blank", "missing")]
    export(tmp_path / "export", observations)
    photos = tmp_path / "photos"
    photos.mkdir()
    source = pictures()
    (photos / "0.jpg").write_bytes(source[0].read_bytes())
    exif = Image.Exif()
    exif[0x010F] = "Ann's camera"
    Image.open(source[1]).convert("RGB").resize((1200, 800)).save(photos / "1.jpg", exif=exif)
    (photos / "2.jpg").write_bytes(source[2].read_bytes()[:2000])
    Image.new("RGB", (300, 200), "white").save(photos / "3.jpg")
    return tmp_path


@pytest.mark.long
def test_pictures_are_decoded_looked_at_and_made_small(photographed: Path) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert dropped(done)["pictures"] == {
        "a file that does not decode": 1,
        "a photo that is not at hand": 1,
        "awaits review: empty": 1,
    }
    assert (done.pictures, done.failed, done.waiting) == (2, 2, 1)
    placed = next(one for one in coco(photographed / "out")["images"] if one["observation"] == "placed")
    with Image.open(photographed / "out" / placed["file_name"]) as picture:
        assert (picture.size, picture.mode, picture.format) == ((500, 333), "RGB", "JPEG")
        assert dict(picture.getexif()) == {} and (placed["width"], placed["height"]) == (500, 333)
    assert b"Ann" not in (photographed / "out" / placed["file_name"]).read_bytes()


@pytest.mark.long
def test_what_a_person_decides_is_done_in_the_next_run(photographed: Path) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    curate(photographed / "export", photographed / "out", how, silent)
    queue = Queue(photographed / "out" / "review.jsonl")
    (case,) = queue.open()
    queue.decide(case, "accept", "ann")
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert (case.why, done.pictures, done.waiting) == ("empty", 3, 0)
    queue.decide(case, "drop", "ann")
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert done.pictures == 2 and dropped(done)["pictures"]["dropped in review"] == 1
    assert len(list((photographed / "out" / "train").rglob("*.jpg"))) == 2


@pytest.mark.long
def test_what_annotators_flag_goes_and_comes_back(photographed: Path) -> None:
    (photographed / "flagged.csv").write_text("photo\nphoto-0\n")
    how = PictureSettings(photographed / "photos", NO_FACES, flagged=photographed / "flagged.csv")
    done = curate(photographed / "export", photographed / "out", CollectionSettings(pictures=how), silent)
    assert done.pictures == 1 and dropped(done)["pictures"]["flagged by annotators"] == 1
    (photographed / "flagged.csv").write_text("photo\nanother\n")
    assert curate(photographed / "export", photographed / "out", CollectionSettings(pictures=how), silent).pictures == 2
    assert len(list((photographed / "out" / "train").rglob("*.jpg"))) == 2


@pytest.mark.long
@pytest.mark.parametrize("text", ["Photo\nphoto-0\n", "photo_id\n0\n", "File Name\n0.JPG\n", "PHOTO UUID\nPHOTO-0\n"])
def test_flagged_photos_count_however_they_are_named(photographed: Path, text: str) -> None:
    (photographed / "flagged.csv").write_text(text)
    how = PictureSettings(photographed / "photos", NO_FACES, flagged=photographed / "flagged.csv")
    done = curate(photographed / "export", photographed / "out", CollectionSettings(pictures=how), silent)
    assert dropped(done)["pictures"]["flagged by annotators"] == 1 and not done.notes


@pytest.mark.long
def test_flagged_photos_that_are_none_of_them_are_told(photographed: Path) -> None:
    (photographed / "flagged.csv").write_text("photo\nother\n")
    how = PictureSettings(photographed / "photos", NO_FACES, flagged=photographed / "flagged.csv")
    (note,) = curate(photographed / "export", photographed / "out", CollectionSettings(pictures=how), silent).notes
    assert note.startswith("no picture is on the list")


@pytest.mark.long
def test_pictures_that_the_list_no_longer_names_are_removed(photographed: Path) -> None:
    out, how = photographed / "out", PictureSettings(photographed / "photos", NO_FACES)
    photos = [photo(id, at, license="CC0" if at == 1 else "CC-BY") for at, id in enumerate(("good", "placed"))]
    place = export(photographed / "export", [seen("good"), seen("placed", taxon_id=TIT)], photos)
    assert curate(place, out, CollectionSettings(pictures=how), silent).pictures == 2
    (out / "train" / "notes.txt").write_text("mine")
    assert (
        curate(place, out, CollectionSettings(ObservationFilter(licences=("CC0",)), pictures=how), silent).pictures == 1
    )
    left = {path.relative_to(out).as_posix() for path in (out / "train").rglob("*")}
    (one,) = coco(out)["images"]
    assert left == {"train/notes.txt", "train/metadata.parquet", one["file_name"], one["file_name"].rpartition("/")[0]}
    assert curate(place, out, CollectionSettings(pictures=how), silent).pictures == 2
    assert len(list((out / "train").rglob("*.jpg"))) == 2


def test_a_photo_that_did_not_decode_is_looked_at_again(photographed: Path) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    (photographed / "photos" / "4.jpg").write_bytes(pictures()[3].read_bytes())
    curate(photographed / "export", photographed / "out", how, silent)
    (photographed / "photos" / "2.jpg").write_bytes(pictures()[2].read_bytes())
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert (done.pictures, done.failed) == (4, 0)


def test_a_photo_in_the_place_of_another_is_looked_at_and_decided_anew(photographed: Path) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    curate(photographed / "export", photographed / "out", how, silent)
    queue = Queue(photographed / "out" / "review.jsonl")
    queue.decide(queue.open()[0], "accept", "ann")
    Image.new("RGB", (310, 200), "white").save(photographed / "photos" / "3.jpg")
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert (done.pictures, done.waiting) == (2, 1)
    assert done.notes == ["1 pictures have changed since their decision; they wait again"]


@pytest.mark.long
def test_what_was_decided_holds_where_the_photos_are_moved_to(photographed: Path) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    curate(photographed / "export", photographed / "out", how, silent)
    queue = Queue(photographed / "out" / "review.jsonl")
    queue.decide(queue.open()[0], "accept", "ann")
    (photographed / "photos").rename(photographed / "elsewhere")
    moved = CollectionSettings(pictures=PictureSettings(photographed / "elsewhere", NO_FACES))
    assert curate(photographed / "export", photographed / "out", moved, silent).pictures == 3


@pytest.mark.long
@pytest.mark.parametrize("put_before", [False, True])
def test_photos_that_are_taken_away_after_the_run_end_nothing(photographed: Path, put_before: bool) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    for at in (2, 4):
        (photographed / "photos" / f"{at}.jpg").write_bytes(pictures()[3].read_bytes())
    curate(photographed / "export", photographed / "out", how, silent)
    queue = Queue(photographed / "out" / "review.jsonl")
    queue.decide(queue.open()[0], "accept", "ann")
    if put_before:
        curate(photographed / "export", photographed / "out", how, silent)
    shutil.rmtree(photographed / "photos")
    (photographed / "photos").mkdir()
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert (done.pictures, done.failed) == ((5, 0) if put_before else (4, 1))


@pytest.mark.long
@needs_faces
@pytest.mark.skipif(not PEOPLE.exists(), reason="needs photos of people")
def test_a_face_in_the_background_waits_for_a_person(photographed: Path) -> None:
    from eyespot.curate.inat.faces import Faces

    faces = Faces()
    place = next(place for place in sorted(PEOPLE.glob("*")) if faces(Image.open(place).convert("RGB")) > 0.9)
    person, scene = (Image.open(one).convert("RGB") for one in (place, pictures()[0]))
    person.thumbnail((260, 260))
    scene = scene.resize((800, 600))
    scene.paste(person, (20, 330))
    scene.save(photographed / "photos" / "4.jpg")
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", ("decode", "face")))
    done = curate(photographed / "export", photographed / "out", how, silent)
    assert dropped(done)["pictures"]["awaits review: face"] == 1
    (case,) = Queue(photographed / "out" / "review.jsonl").open()
    assert case.id == "photo-4" and not list((photographed / "out" / "train").rglob("photo-4.jpg"))


@pytest.mark.long
def test_a_photo_that_comes_later_is_taken(photographed: Path) -> None:
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    curate(photographed / "export", photographed / "out", how, silent)
    (photographed / "photos" / "4").mkdir()
    (photographed / "photos" / "4" / "medium.jpg").write_bytes(pictures()[3].read_bytes())
    assert curate(photographed / "export", photographed / "out", how, silent).pictures == 3


def test_the_collection_opens_as_photos_with_labels(photographed: Path) -> None:
    out = photographed / "out"
    how = CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES))
    curate(photographed / "export", out, how, silent)
    for root in (root_of(str(out)), root_of(str(out / "train.json"))):
        records = list(scan(root))
        labels = {record.path: record.facts for record in records if isinstance(record, Labels)}
        assert {record.path for record in records if isinstance(record, Seen)} == set(labels)
        assert not [record for record in records if isinstance(record, Unreadable)] and len(labels) == 2
        facts = next(iter(labels.values()))
        assert (facts["category"], facts["class"], facts["license"]) == ("Passer domesticus", "Aves", "CC BY 4.0")
        assert (facts["taken"], facts["latitude"], facts["rights_holder"]) == ("2022-05-01", 50.0, 'Ann "Bird" Lee')


# -- in other hands ---------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_datasets_tells_licence_and_holder_of_every_picture(photographed: Path) -> None:
    out = photographed / "birds"
    curate(
        photographed / "export",
        out,
        CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES)),
        silent,
    )

    found = loaded("datasets", out)["default"]["train"]

    first, known = found["first"], coco(out)
    assert found["rows"] == len(known["images"]) == 2
    entry = next(one for one in known["images"] if one["observation"] == first["observation"])
    assert first["image"] == [entry["width"], entry["height"]]
    assert (first["rights_holder"], first["license"]) == (entry["rights_holder"], known["licenses"][0]["name"])
    assert first["category"] == "Passer domesticus"


@pytest.mark.long
def test_labels_beside_the_pictures_name_those_that_are_there(photographed: Path) -> None:
    """Also after a run that only lists what is to be fetched, and another draw takes pictures away."""
    out, table = photographed / "birds", photographed / "birds" / "train" / "metadata.parquet"
    curate(photographed / "export", out, CollectionSettings(), silent)
    assert not table.exists() and (out / "metadata.parquet").exists()
    curate(
        photographed / "export",
        out,
        CollectionSettings(pictures=PictureSettings(photographed / "photos", NO_FACES)),
        silent,
    )
    export(photographed / "export", [seen("good"), seen("late", observed_on="2030-01-01")])
    curate(photographed / "export", out, CollectionSettings(), silent)

    there = [str(path.relative_to(out / "train")) for path in (out / "train").rglob("*.jpg")]
    rows = pq.read_table(table).to_pylist()
    assert [row["file_name"] for row in rows] == there and len(there) == 1
    whole = {row["file_name"]: row for row in pq.read_table(out / "metadata.parquet").to_pylist()}
    assert [{**row, "file_name": f"train/{row['file_name']}"} for row in rows] == [whole[f"train/{there[0]}"]]
