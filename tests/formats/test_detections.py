"""Boxes and species of detectors become facts of the photos that a gallery has."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyespot.formats.imports import detections
from eyespot.formats.imports.photo_facts import ImportedFacts, PhotoFacts, take_in
from eyespot.types import UsageError
from tests.wording import check_wording, raises
from tests.worlds import index_gallery
from tests.worlds.galleries import facts_by_name, facts_of, opened

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
