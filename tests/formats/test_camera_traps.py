"""Exports of camera-trap systems, and boxes and species of detectors: their columns, paths, times and odd habits."""

# ruff: noqa: E501 (rows of exports stand as they are)

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eyespot.formats.imports import camtrap_dp, detections
from eyespot.formats.imports.photo_facts import ImportedFacts, PhotoFacts, take_in
from eyespot.types import UsageError
from tests.wording import check_wording, raises
from tests.worlds import draw, index_gallery
from tests.worlds.galleries import facts_by_name, facts_of, opened

Taken = Callable[[Iterator[PhotoFacts], Path], tuple[ImportedFacts, dict[str, dict[str, Any]]]]

DEPLOYMENTS = """deploymentID,locationID,locationName,latitude,longitude,coordinateUncertainty,deploymentStart,\
deploymentEnd,setupBy,cameraID,timestampIssues,deploymentTags,deploymentComments
d1,l1,"B_HS_val 2, brook",51.496,4.774,187,2020-05-30T04:57:37+02:00,2020-07-01T11:41:41+02:00,anonymized:3e,320,false,,
d2,l2,Meadow,51.2,5.1,,2020-05-30T04:57:37+02:00,2020-07-01T11:41:41+02:00,,,true,,"it fell, twice"
"""
MEDIA_HEAD = "mediaID,deploymentID,captureMethod,timestamp,filePath,filePublic,fileName,fileMediatype,exifData\n"
SEEN_HEAD = """observationID,deploymentID,mediaID,eventID,eventStart,eventEnd,observationLevel,observationType,\
scientificName,count,lifeStage,sex,behavior,bboxX,bboxY,bboxWidth,bboxHeight,classificationProbability
"""
ABOUT = {
    "profile": "https://raw.githubusercontent.com/tdwg/camtrap-dp/1.0.2/camtrap-dp-profile.json",
    "resources": [{"name": name, "path": f"{name}.csv"} for name in ("deployments", "media", "observations")],
    "contributors": [{"title": "Axel"}, {"title": "Institute of Nature", "role": "rightsHolder"}],
    "licenses": [{"name": "CC0-1.0", "scope": "data"}, {"path": "http://example.org/by/4.0/", "scope": "media"}],
}


@pytest.fixture
def taken(tmp_path: Path) -> Taken:
    """What an import of facts did, and the facts that the gallery of `photos` then has, by a photo's path."""

    def take(read: Iterator[PhotoFacts], folder: Path) -> tuple[ImportedFacts, dict[str, dict[str, Any]]]:
        gallery = tmp_path / "gallery"
        index_gallery(gallery, tmp_path / "photos")
        done = take_in(gallery, read, "export", folder)
        index_gallery(gallery, done.path, encoders=())
        return done, {str(Path(row["path"]).relative_to(tmp_path / "photos")): row for row in facts_of(gallery)}

    return take


def photos(tmp_path: Path, *names: str) -> None:
    for seed, name in enumerate(names):
        draw(tmp_path / "photos" / name, seed)


def write(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        packed = name.endswith(".gz")
        (folder / name).write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return folder


def package(tmp_path: Path, media: str, seen: str, **about: Any) -> Path:
    tables = {"deployments.csv": DEPLOYMENTS, "media.csv": MEDIA_HEAD + media, "observations.csv": SEEN_HEAD + seen}
    return write(tmp_path / "export", {"datapackage.json": json.dumps(ABOUT | about), **tables})


def agouti(tmp_path: Path) -> Path:
    """Every address ends in `/file`; a medium has its own observations, or only those of its event."""
    site = "https://multimedia.agouti.eu/assets"
    media = f"""m1,d1,activityDetection,2020-05-30T04:57:37+02:00,{site}/0784-0d99/file,true,2020-RCNX0001.JPG,image/jpeg,
m2,d1,activityDetection,2020-05-30T04:57:40+02:00,{site}/4013-cc7a/file,false,2020-RCNX0002.JPG,image/jpeg,
m3,d2,activityDetection,2020-05-30T04:57:41+02:00,{site}/4013-dd7a/file,true,2020-RCNX0003.JPG,image/jpeg,
"""
    seen = """o1,d1,,e1,2020-05-30T02:57:37Z,2020-05-30T02:57:44Z,event,animal,Anas platyrhynchos,2,adult,female,,,,,,
o2,d1,m1,e1,2020-05-30T02:57:37Z,2020-05-30T02:57:37Z,media,animal,Anas crecca,1,adult,male,foraging,0.1,0.2,0.3,0.4,0.85
o3,d1,m1,e1,2020-05-30T02:57:37Z,2020-05-30T02:57:37Z,media,human,,1,,,,0.5,0.5,0.1,0.1,
o4,d2,m3,e2,2020-05-30T02:57:41Z,2020-05-30T02:57:41Z,media,blank,,,,,,,,,,
"""
    return package(tmp_path, media, seen)


def test_agoutis_media_are_found_by_their_names_and_have_all_facts(tmp_path: Path, taken: Taken) -> None:
    photos(tmp_path, "2020-RCNX0001.JPG", "renamed/m2.JPG", "d2/2020-RCNX0003.JPG")
    done, facts = taken(camtrap_dp.read(agouti(tmp_path)), tmp_path / "export")

    duck, event, blank = (facts[name] for name in ("2020-RCNX0001.JPG", "renamed/m2.JPG", "d2/2020-RCNX0003.JPG"))
    assert (done.photos, done.known, done.failed, done.unknown) == (3, 3, [], [])
    assert (duck["detected"], duck["species"], duck["count"]) == ("animal; person", "Anas crecca", 2)
    assert json.loads(duck["boxes"]) == [["animal", 0.85, 0.1, 0.2, 0.3, 0.4], ["person", None, 0.5, 0.5, 0.1, 0.1]]
    assert (duck["deployment"], duck["location_name"]) == ("d1", "B_HS_val 2, brook")
    assert (duck["latitude"], duck["longitude"], str(duck["taken"])) == (51.496, 4.774, "2020-05-30 04:57:37")
    assert (duck["licence"], duck["rights_holder"]) == ("http://example.org/by/4.0/", "Institute of Nature")
    assert (duck["life_stage"], duck["sex"], duck["behavior"]) == ("adult", "male", "foraging")
    assert duck["url"] == "https://multimedia.agouti.eu/assets/0784-0d99/file"
    assert (event["species"], event["count"], event["url"]) == ("Anas platyrhynchos", 2, None)
    assert (blank["detected"], blank["species"]) == ("blank", None)


def test_a_package_is_read_from_its_zip(tmp_path: Path, taken: Taken) -> None:
    photos(tmp_path, "2020-RCNX0001.JPG")
    folder = agouti(tmp_path)
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as packed:
        for path in folder.iterdir():
            packed.write(path, f"agouti-2020/{path.name}")
    done, facts = taken(camtrap_dp.read(tmp_path / "export.zip"), tmp_path)
    assert done.known == 1 and facts["2020-RCNX0001.JPG"]["species"] == "Anas crecca"


def test_trappers_names_repeat_in_every_deployment_and_its_tokens_stay_out(tmp_path: Path, taken: Taken) -> None:
    """Each card begins with IMG_0001.JPG; a photo that is not there must not get the facts of another."""
    photos(tmp_path, "card/d1/IMG_0001.JPG", "card/d1/IMG_0002.JPG")
    site = "https://trapper.example.org/storage/resource/media"
    media = f"""1,d1,activityDetection,2022-07-20T12:56:32+0200,{site}/1/file/?rt=secret,true,IMG_0001.JPG,image/jpeg,
2,d2,activityDetection,2022-07-20T12:56:32+0200,{site}/2/file/?rt=secret,true,IMG_0001.JPG,image/jpeg,
3,d2,activityDetection,2022-07-20T12:56:32+0200,{site}/3/file/?rt=secret,true,IMG_0002.JPG,image/jpeg,
"""
    seen = """1,d1,1,,2022-07-20T12:56:32+0200,2022-07-20T12:56:32+0200,media,animal,Sus scrofa,3,,,,,,,,
2,d2,2,,2022-07-20T12:56:32+0200,2022-07-20T12:56:32+0200,media,animal,Lynx pardinus,1,,,,,,,,
"""
    done, facts = taken(camtrap_dp.read(package(tmp_path, media, seen, licenses=[])), tmp_path / "export")

    boar = facts["card/d1/IMG_0001.JPG"]
    assert (boar["species"], boar["count"], str(boar["taken"])) == ("Sus scrofa", 3, "2022-07-20 12:56:32")
    assert boar["url"] == f"{site}/1/file/" and done.unknown == ["d2/IMG_0001.JPG"]


def test_an_older_package_is_joined_by_sequences_and_its_tables_may_be_packed(tmp_path: Path, taken: Taken) -> None:
    photos(tmp_path, "a/1.jpg", "a/2.jpg")
    files = {
        "datapackage.json": json.dumps({"resources": [{"name": "media", "path": "data/media_1.csv.gz"}]}),
        "deployments.csv.gz": "\ufeffdeploymentID;longitude;latitude;start;end\nd;5,1;51.2;2019-01-01;2019-02-01\n",
        "media_1.csv.gz": "mediaID,deploymentID,sequenceID,timestamp,filePath,fileName\n"
        "m1,d,s1,2019-01-02T03:04:05Z,a/1.jpg,1.jpg\nm2,d,s2,2019-01-02T03:05:05Z,a\\2.jpg,2.jpg\nm3,d\n",
        "observations.csv.gz": "observationID,deploymentID,sequenceID,mediaID,timestamp,observationType,"
        "scientificName,vernacularName,count,behaviour\n"
        "o1,d,s1,,2019-01-02T03:04:05Z,animal,Meles meles,Badger,1,digging\n",
    }
    place = write(tmp_path / "export", files)
    done, facts = taken(camtrap_dp.read(place), tmp_path / "photos")

    badger = [facts["a/1.jpg"][name] for name in ("species", "common_name", "behavior", "longitude")]
    assert badger == ["Meles meles", "Badger", "digging", None]  # a comma is no decimal point
    assert (facts["a/2.jpg"]["species"], facts["a/2.jpg"]["latitude"]) == (None, 51.2)
    assert [place for place, _ in done.failed] == ["media_1.csv.gz, line 4"]


def test_what_could_mean_several_photos_or_an_earlier_entrys_is_refused_alone(tmp_path: Path, taken: Taken) -> None:
    """A camera begins a new folder and counts from 1 again; the export says neither folder."""
    odd = os.fsdecode(b"caf\xe9.jpg")  # no UTF-8
    photos(tmp_path, "a/x.jpg", "b/x.jpg", "c.jpg", odd)
    names = [("x.jpg", "many"), ("c.jpg", "fox"), ("c.jpg", "cat"), (odd, "odd")]
    rows = [PhotoFacts(name, {"species": species}, elsewhere=(name,)) for name, species in names]
    done, facts = taken(iter(rows), tmp_path / "away")

    assert [file for file, _ in done.failed] == ["x.jpg", "c.jpg", odd] and done.known == 1
    assert facts["c.jpg"]["species"] == "fox" and facts["a/x.jpg"].get("species") is None


@pytest.mark.parametrize("files", [{"media.csv": ""}, *({"datapackage.json": text} for text in ("{", "[]", "{}"))])
def test_what_is_no_export_is_named(tmp_path: Path, files: dict[str, str]) -> None:
    with raises(UsageError):
        list(camtrap_dp.read(write(tmp_path / "export", files)))


def test_a_table_that_is_not_utf_8_and_a_zip_that_is_none_are_named(tmp_path: Path) -> None:
    place = package(tmp_path, "m1,d1,,2020-05-30T04:57:37Z,a.jpg,true,a.jpg,image/jpeg,\n", "")
    (place / "media.csv").write_bytes("mediaID,filePath\na,café.jpg\n".encode("cp1252"))
    for found in (place, place / "media.csv", tmp_path / "none.zip"):
        with raises(UsageError):
            list(camtrap_dp.read(found))


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, "gzip"])
def test_damaged_data_in_a_download_is_named(tmp_path: Path, packing: Any) -> None:
    text = "mediaID,filePath\n" + "".join(f"{number},deer {number * number}.jpg\n" for number in range(500))
    tables = {"datapackage.json": json.dumps(ABOUT), "deployments.csv": DEPLOYMENTS, "observations.csv": SEEN_HEAD}
    if packing == "gzip":
        place = write(tmp_path / "export", {"media.csv.gz": text, **tables})
        damaged = place / "media.csv.gz"
    else:
        place = damaged = tmp_path / "export.zip"
        with zipfile.ZipFile(place, "w", packing) as packed:
            for name, table in {"media.csv": text, **tables}.items():
                packed.writestr(name, table)
    data = damaged.read_bytes()
    damaged.write_bytes(data[:60] + b"\xff" * 440 + data[500:])

    with pytest.raises(UsageError, match=r"media\.csv(\.gz)? "):
        list(camtrap_dp.read(place))


def test_events_that_overlap_count_as_long_as_they_last(tmp_path: Path) -> None:
    drawn = Random(3)
    spans = [sorted((drawn.randrange(3600), drawn.randrange(3600))) for _ in range(60)]
    time = "2020-05-30T{:02}:{:02}:{:02}Z"
    hours = [time.format(second // 3600, second // 60 % 60, second % 60) for second in range(3601)]
    seen = "".join(
        f"o{number},d1,,e{number:02},{hours[start]},{hours[end]},event,animal,Cervus elaphus,1,,,,,,,,\n"
        for number, (start, end) in enumerate(spans)
    )
    media = "".join(f"m{at},d1,,{hours[at]},{at}.jpg,true,{at}.jpg,image/jpeg,\n" for at in range(0, 3601, 7))
    for at, photo in zip(range(0, 3601, 7), camtrap_dp.read(package(tmp_path, media, seen)), strict=True):
        wanted = "; ".join(f"e{number:02}" for number, (start, end) in enumerate(spans) if start <= at <= end)
        assert photo.facts["event"] == (wanted or None)


FOX = [
    {"category": "1", "conf": 0.91, "bbox": [0.1, 0.2, 0.3, 0.4], "classifications": [["4", 0.8]]},
    {"category": "2", "conf": 0.6, "bbox": [0, 0, 0.5, 0.5]},
    {"category": "3", "conf": 0.1, "bbox": [0, 0, 1, 1]},
]
MEGADETECTOR = {
    "images": [
        {"file": "photo1.jpg", "detections": FOX},
        {"file": "deep/er/photo0.jpg", "detections": []},
        {"file": "photo2.jpg", "failure": "Failure image access"},
        {"file": "elsewhere.jpg", "detections": []},
    ],
    "detection_categories": {"1": "animal", "2": "person", "3": "vehicle"},
    "classification_categories": {"4": "Vulpes vulpes"},
}
SPECIESNET = {
    "predictions": [
        {
            "filepath": "photo1.jpg",
            "detections": [{"category": "1", "label": "animal", "conf": 0.97, "bbox": [0.1, 0.2, 0.3, 0.4]}],
            "prediction": "0a1b;mammalia;carnivora;canidae;vulpes;vulpes;red fox",
            "prediction_score": 0.88,
        },
        {"filepath": "photo2.jpg", "detections": [], "prediction": "9c;;;;;;blank", "prediction_score": 0.99},
    ]
}


def found(tmp_path: Path, payload: Any) -> Iterator[PhotoFacts]:
    (tmp_path / "found.json").write_text(json.dumps(payload))
    return detections.read(tmp_path / "found.json")


def taken_in(tmp_path: Path, photos: Path, payload: Any) -> tuple[ImportedFacts, dict[str, Any]]:
    """What the import did, and the facts that the gallery then has, by the name of a photo."""
    gallery = tmp_path / "gallery"
    index_gallery(gallery, photos)
    done = take_in(gallery, found(tmp_path, payload), "found", tmp_path)
    index_gallery(gallery, done.path, encoders=())
    assert len(facts_of(gallery)) == 9 and not opened(gallery).pending
    return done, facts_by_name(gallery)


def test_megadetectors_boxes_are_facts_of_known_photos(tmp_path: Path, photos: Path) -> None:
    done, facts = taken_in(tmp_path, photos, MEGADETECTOR)

    fox, empty = facts["photo1.jpg"], facts["photo0.jpg"]
    assert (done.photos, done.known, done.unknown) == (4, 2, ["elsewhere.jpg"])
    ((failed, reason),) = done.failed
    assert failed == "photo2.jpg" and reason.endswith("Failure image access")
    assert (fox["detected"], fox["detections"], fox["detection_confidence"]) == ("animal; person", 2, 0.91)
    assert json.loads(fox["boxes"]) == [["animal", 0.91, 0.1, 0.2, 0.3, 0.4], ["person", 0.6, 0, 0, 0.5, 0.5]]
    assert (fox["species"], fox["species_confidence"]) == ("Vulpes vulpes", 0.8)
    assert (empty["detected"], empty["detections"], empty["boxes"]) == ("blank", 0, None)
    assert facts["photo2.jpg"]["detected"] is None


def test_speciesnets_answer_is_a_species_with_its_taxonomy(tmp_path: Path, photos: Path) -> None:
    _, facts = taken_in(tmp_path, photos, SPECIESNET)
    fox, blank = facts["photo1.jpg"], facts["photo2.jpg"]
    assert (fox["species"], fox["common_name"], fox["species_confidence"]) == ("Vulpes vulpes", "red fox", 0.88)
    assert fox["taxonomy"] == "mammalia;carnivora;canidae;vulpes;vulpes"
    assert (blank["species"], blank["common_name"], blank["detected"]) == (None, "blank", "blank")


def classified(conf: float, label: str, taxon: str, score: float) -> dict[str, Any]:
    """A detection as SpeciesNet 5 writes it."""
    raw = {"classes": [taxon, "x;;;;;;animal"], "scores": [score, 0.01]}
    final = {"class": taxon, "score": score, "source": "classifier"}
    category = {"whole_image_classification": "0", "animal": "1", "human": "2"}[label]
    found = {"category": category, "label": label, "conf": conf, "bbox": [0.1, 0.2, 0.3, 0.4]}
    return found | {"raw_classifications": raw, "processed_classification": final}


def test_speciesnet_5_has_a_class_for_each_box(tmp_path: Path) -> None:
    fox = "a;mammalia;carnivora;canidae;vulpes;vulpes;red fox"
    deer = "b;mammalia;cetartiodactyla;cervidae;;;deer family"
    human = "c;mammalia;primates;hominidae;homo;sapiens;human"
    both = [classified(0.9, "animal", fox, 0.88), classified(0.8, "animal", deer, 0.7)]
    weak = [classified(0.05, "human", human, 0.9)]
    whole = [classified(1.0, "whole_image_classification", deer, 0.6)]
    predictions = [
        {"filepath": "a.jpg", "failures": ["GEOLOCATION"], "detections": [*both, *weak], "model_version": "4.0.3a"},
        {"filepath": "b.jpg", "detections": whole},
        {"filepath": "c.jpg", "failures": ["DETECTOR"]},
    ]
    two, one, none = found(tmp_path, {"info": {"format_version": "20261015"}, "predictions": predictions})

    assert (two.facts["species"], two.facts["common_name"]) == ("Vulpes vulpes", "deer family; red fox")
    assert two.facts["taxonomy"] == "mammalia;carnivora;canidae;vulpes;vulpes | mammalia;cetartiodactyla;cervidae"
    assert (two.facts["detected"], two.facts["detections"], two.facts["species_confidence"]) == ("animal", 2, 0.88)
    assert (one.facts["detected"], one.facts["boxes"], one.facts["common_name"]) == ("blank", None, "deer family")
    assert none.failure == "the detector failed: DETECTOR"


def test_classes_that_megadetectors_file_describes_have_their_taxonomy(tmp_path: Path) -> None:
    payload = MEGADETECTOR | {"classification_category_descriptions": {"4": "a;mammalia;;;vulpes;vulpes;red fox"}}
    fox = next(iter(found(tmp_path, payload))).facts
    named = [fox[name] for name in ("species", "common_name", "taxonomy")]
    assert named == ["Vulpes vulpes", "red fox", "mammalia;vulpes;vulpes"]


def test_nothing_is_written_where_no_photo_is_known_or_the_file_is_cut_short(tmp_path: Path, photos: Path) -> None:
    index_gallery(tmp_path / "gallery", photos)
    done = take_in(tmp_path / "gallery", [PhotoFacts("elsewhere.jpg", {}, None)], "found", tmp_path)
    assert done.path is None
    (tmp_path / "found.json").write_text(json.dumps(MEGADETECTOR)[:300])
    with raises(UsageError):
        take_in(tmp_path / "gallery", detections.read(tmp_path / "found.json"), "found", photos)
    assert not list((tmp_path / "gallery").glob("facts/*"))


@pytest.mark.parametrize("payload", [[], {"info": {}}, {"images": {"a.jpg": []}}])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, payload: Any) -> None:
    with raises(UsageError):
        list(found(tmp_path, payload))


@pytest.mark.parametrize(
    "image",
    [
        {"detections": []},
        "a.jpg",
        {"file": "a.jpg", "detections": [{"category": "1"}]},
        {"file": "a.jpg", "detections": [{"category": "1", "conf": 1, "bbox": [1]}]},
        {"file": "a.jpg", "detections": [{"category": "1", "conf": 1, "bbox": [0, 0, 1, float("nan")]}]},
        {"file": "a.jpg", "detections": [{"category": "1", "conf": 10**400, "bbox": [0, 0, 1, 1]}]},
        {"file": "a.jpg", "detections": [{"category": "1", "conf": float("nan"), "bbox": [0, 0, 1, 1]}]},
        {"file": "a.jpg", "detections": [{"category": "1", "conf": 90, "bbox": [0, 0, 1, 1]}]},
        {"file": "a.jpg", "detections": [{"category": "9", "conf": 1, "bbox": [0, 0, 1, 1]}]},
        {"file": "a.jpg", "max_detection_conf": 0.0},
        {"file": "a.jpg", "detections": None},
    ],
)
def test_an_image_of_another_shape_is_refused_and_the_others_are_read(tmp_path: Path, image: Any) -> None:
    bad, good = found(tmp_path, {"images": [image, MEGADETECTOR["images"][0]]})
    check_wording(str(bad.failure))
    assert bad.failure and good.failure is None and good.facts["detections"] == 2


def test_a_large_file_is_read_a_photo_at_a_time(tmp_path: Path) -> None:
    """As a larger file would be, though the categories stand below the photos."""
    box = {"category": "1", "conf": 0.5, "bbox": [0.1, 0.2, 0.3, 0.4], "classifications": [["4", 0.8]]}
    line = json.dumps({"file": "x" * 4_000 + ".jpg", "detections": [box]})
    with (tmp_path / "found.json").open("w") as file:
        file.write('{"images": [' + ",\n".join([line] * 2_000) + '], "classification_categories": {"4": "Ardea"}}')
    tracemalloc.start()
    species = {photo.facts["species"] for photo in detections.read(tmp_path / "found.json")}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert species == {"Ardea"} and (tmp_path / "found.json").stat().st_size > 8e6 and peak < 7e6
