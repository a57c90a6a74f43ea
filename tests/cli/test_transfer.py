"""`eyespot export` and `import`: what is chosen, what is told, how it ends, and options that change what is written."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from eyespot import sample
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.worlds import index_gallery, make_gallery


@pytest.mark.long
def test_licences_travel_with_the_names_that_they_ask_for(sample_gallery: Path, tmp_path: Path) -> None:
    shown = done("export", "webdataset", "out", "-g", sample_gallery, "--shard-rows", 100, cwd=tmp_path)
    done("index", "out", "-g", "again", cwd=tmp_path)

    assert "left out: latitude, longitude" in shown.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["00000.tar", "00001.tar", "00002.tar"]
    (item,) = run_json("search", "a windmill", "-k", 1, "-g", "again", cwd=tmp_path)["items"]
    assert item["licence"] and item["author"] and item["title"]


def test_pictures_that_are_gone_are_named_and_the_exit_code_says_so(tmp_path: Path) -> None:
    gallery, gone = make_gallery(tmp_path), tmp_path / "photos" / "1.jpg"
    gone.unlink()

    shown = done("export", "imagefolder", tmp_path / "out", "-g", gallery, "--json", code=3)

    assert f"not exported: {gone}" in shown.stderr
    assert [one["path"] for one in json.loads(shown.stdout)["failed"]] == [str(gone)]
    assert len(list((tmp_path / "out").rglob("*.jpg"))) == 3


@pytest.mark.parametrize(
    ("words", "code"), [("parquet taken", 2), ("parquet out --where width<0", 4), ("camtrap-dp out", 2)]
)
def test_a_taken_folder_and_no_photo_are_refused(words: str, code: int, sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()

    refuses("export", *words.split(), "-g", sample_gallery, code=code, cwd=tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_detectors_boxes_can_be_filtered_by(tmp_path: Path) -> None:
    gallery = make_gallery(tmp_path)
    found = {"images": [{"file": "1.jpg", "detections": [{"category": "1", "conf": 0.9, "bbox": [0, 0, 0.5, 0.5]}]}]}
    (tmp_path / "found.json").write_text(json.dumps(found | {"detection_categories": {"1": "animal"}}))

    assert run_json("import", "megadetector", "found.json", "-g", gallery, cwd=tmp_path)["known"] == 1
    items = run_json("search", "anything", "--where", "detected = 'animal'", "-g", gallery)["items"]

    assert [Path(item["path"]).name for item in items] == ["1.jpg"]
    refuses("import", "speciesnet", "found.json", "-g", gallery, "--threshold", 2, cwd=tmp_path)
    (tmp_path / "unsure.json").write_text(json.dumps({"images": [{"file": "1.jpg", "max_detection_conf": 0.0}]}))
    unsure = run_json("import", "megadetector", "unsure.json", "-g", gallery, cwd=tmp_path, code=3)
    assert (unsure["known"], [one["file"] for one in unsure["failed"]]) == (0, ["1.jpg"])


FILTERS = ("--where", "--after", "--before", "--near", "--label", "--ids")
TABLES = ["parquet", "imagefolder", "coco", "webdataset", "npy"]
FORMATS = [*TABLES, "beir", "label-studio", "camtrap-dp"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six photos, taken on the first days of May 2024, each 11 km north of the one before; every other is a bird."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "photos").mkdir()
    with (folder / "photos" / "metadata.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file_name", "title", "kind", "species", "taken", "latitude", "longitude"])
        for at, path in enumerate(sorted(sample.photos().glob("*.jpg"))[:6]):
            shutil.copy(path, folder / "photos" / f"{at}.jpg")
            kind = "bird" if at % 2 == 0 else "mammal"
            rows.writerow(
                [f"{at}.jpg", f"Nr {at}", kind, "Turdus merula", f"2024-05-0{at + 1}T09:30:00", 47 + at / 10, 8.5]
            )
    index_gallery(folder / "gallery", folder / "photos")
    items = run_json("search", "anything", "-g", folder / "gallery", "-k", 6)["items"]
    ids = {item["title"]: item["id"] for item in items}
    (folder / "ids.txt").write_text("\n".join(ids[f"Nr {at}"] for at in (0, 2, 4)) + "\n")
    (folder / "qrels.txt").write_text("".join(f"q{at} 0 {ids[f'Nr {at}']} 1\n" for at in range(6)))
    (folder / "queries.csv").write_text("id,text\nq2,a blackbird\n")
    return folder


def filters(place: Path) -> dict[str, object]:
    values = ("title <> 'Nr 4'", "2024-05-02", "2024-05-06", "47.2,8.5,25", "kind=bird", place / "ids.txt")
    return dict(zip(FILTERS, values, strict=True))


@pytest.mark.parametrize(
    ("option", "numbers"),
    [
        ("--where", "01235"),
        ("--after", "12345"),
        ("--before", "01234"),
        ("--near", "01234"),
        ("--label", "024"),
        ("--ids", "024"),
    ],
)
def test_each_filter_chooses_alone(place: Path, tmp_path: Path, option: str, numbers: str) -> None:
    line = ("export", "parquet", tmp_path / "out", "-g", place / "gallery", option, filters(place)[option])
    assert run_json(*line)["rows"] == len(numbers)

    titles = [
        title for path in (tmp_path / "out").rglob("*.parquet") for title in pq.read_table(path)["title"].to_pylist()
    ]
    assert sorted(titles) == [f"Nr {number}" for number in numbers]


def test_no_photo_here_is_undated(place: Path, tmp_path: Path) -> None:
    for name in FORMATS:
        refuses("export", name, tmp_path / "out", "-g", place / "gallery", "--undated", "--all-columns", code=4)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_all_filters_together(place: Path, tmp_path: Path, name: str) -> None:
    line = ["export", name, "-g", place / "gallery", "-e", "starter"]
    line += [word for pair in filters(place).items() for word in pair]
    line += ["--qrels", place / "qrels.txt", "--queries", place / "queries.csv"] if name == "beir" else []
    line += ["--all-columns"] if name in ("camtrap-dp", "label-studio") else []
    report = run_json(*line[:2], tmp_path / "out", *line[2:])

    assert report["rows"] == 1 and any((tmp_path / "out").iterdir())


def test_judgements_of_one_judge_go_out_by_default_from_the_ledger(place: Path, tmp_path: Path) -> None:
    gallery = tmp_path / "gallery"
    shutil.copytree(place / "gallery", gallery)
    run_json("search", "a bird", "-g", gallery, "--rerank", "encoder:starter", "--depth", 3)
    report = run_json("export", "beir", tmp_path / "out", "-g", gallery, "--by", "encoder:starter")
    refuses("export", "beir", tmp_path / "no", "-g", gallery, "--by", "person:nobody")

    assert report["rows"] == 6 and not (tmp_path / "no").exists()


def test_vectors_are_halved_and_pictures_are_put_into_tables(place: Path, tmp_path: Path) -> None:
    line = ("-g", place / "gallery", "--label", "kind=bird")
    done("export", "parquet", tmp_path / "small", *line, "--float16")
    done("export", "parquet", tmp_path / "large", *line, "--pictures")
    small, large = (pq.read_schema(next((tmp_path / name).rglob("*.parquet"))) for name in ("small", "large"))

    assert "halffloat" in str(small) and "halffloat" not in str(large)
    assert set(large.names) - set(small.names) == {"image"}


def test_columns_become_categories_and_splits(place: Path, tmp_path: Path) -> None:
    gallery = place / "gallery"
    line = ("export", "coco", tmp_path / "coco", "-g", gallery, "--ids", place / "ids.txt", "--category", "species")
    run_json(*line)
    run_json("export", "imagefolder", tmp_path / "split", "-g", gallery, "--category", "kind", "--split", "kind")
    dataset = json.loads((tmp_path / "coco" / "annotations.json").read_text())

    assert [category["name"] for category in dataset["categories"]] == ["Turdus merula"]
    assert {image["eyespot_id"] for image in dataset["images"]} == set((place / "ids.txt").read_text().split())
    assert {path.parent.name for path in (tmp_path / "split").rglob("metadata.parquet")} == {"bird", "mammal"}


def test_tasks_name_the_address_that_is_given(place: Path, tmp_path: Path) -> None:
    line = ("export", "label-studio", tmp_path / "out", "-g", place / "gallery", "--images-at", "https://example.org/")
    run_json(*line)

    tasks = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert all(task["data"]["image"].startswith("https://example.org/") for task in tasks)


def test_results_of_label_studio_come_into_the_gallery_that_is_named(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "gallery", tmp_path / "gallery")
    id = (place / "ids.txt").read_text().split()[0]
    result = [{"image_id": id, "query_id": "q", "query": "a bird", "relevance": "relevant", "annotator": 7}]
    (tmp_path / "min.json").write_text(json.dumps([*result, result[0] | {"relevance": "maybe", "annotator": 8}]))
    report = run_json("import", "label-studio", tmp_path / "min.json", "-g", tmp_path / "gallery", code=3)

    assert (report["tasks"], report["marks"], [one["task"] for one in report["failed"]]) == (1, 1, ["task 2"])


@pytest.mark.parametrize("detector", ["megadetector", "speciesnet"])
def test_detections_are_looked_for_below_the_folder_of_photos(place: Path, tmp_path: Path, detector: str) -> None:
    shutil.copytree(place / "gallery", tmp_path / "gallery")
    box = {"category": "1", "label": "animal", "conf": 0.9, "bbox": [0, 0, 0.5, 0.5]}
    image = {"file": "photos/0.jpg", "filepath": "photos/0.jpg", "detections": [box]}
    key = "images" if detector == "megadetector" else "predictions"
    (tmp_path / "found.json").write_text(json.dumps({key: [image], "detection_categories": {"1": "animal"}}))
    line = ("import", detector, tmp_path / "found.json", "-g", tmp_path / "gallery")

    refuses(*line, code=4)
    first = run_json(*line, "--photos", place)
    (tmp_path / "other").mkdir()
    again = (line[0], line[1], tmp_path / "other" / ".." / "found.json", *line[3:], "--photos", place)
    assert (first["known"], run_json(*again)["list"]) == (1, first["list"])


def test_camera_traps_are_imported_and_what_is_refused_is_listed(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "gallery", tmp_path / "gallery")
    (tmp_path / "export").mkdir()
    for name, text in {
        "datapackage.json": "{}",
        "media.csv": "mediaID,deploymentID,timestamp,filePath\nm,d,2020-05-30T02:57:37Z,photos/0.jpg\ncut\n",
        "observations.csv": "observationID,mediaID,observationType,scientificName\no,m,animal,Cervus elaphus\n",
        "deployments.csv": "deploymentID,latitude,longitude\nd,1,2\n",
    }.items():
        (tmp_path / "export" / name).write_text(text)
    line = ("import", "camtrap-dp", tmp_path / "export", "--gallery", tmp_path / "gallery")
    report = run_json(*line, "--photos", place, code=3)

    assert (report["known"], report["photos"]) == (1, 2)
    assert [failure["reason"].partition(" where")[0] for failure in report["failed"]] == ["has 1 fields"]


def test_convert_takes_a_file_for_what_it_is_said_to_be(place: Path, tmp_path: Path) -> None:
    (tmp_path / "either.json").write_text(json.dumps({"q": {"a": 1, "b": 2}}))
    run = run_json("convert", tmp_path / "either.json", tmp_path / "run.txt", "--run")
    (tmp_path / "run.dat").write_text("q Q0 a 1 0.5 t\n")
    named = run_json("convert", tmp_path / "run.dat", tmp_path / "named.json", "--run", "--format", "trec")

    assert run["holds"] == "run" and (tmp_path / "run.txt").read_text().startswith("q Q0 b 1 ")
    assert named["rows"] == 1


def test_vectors_are_written_in_half_precision_and_columns_in_full(place: Path, tmp_path: Path) -> None:
    plain = run_json("export", "npy", tmp_path / "plain", "-g", place / "gallery", "-e", "starter")
    whole = run_json("export", "npy", tmp_path / "whole", "-g", place / "gallery", "--float16", "--all-columns")

    arrays = {out: next((tmp_path / out).rglob("*.npy")) for out in ("plain", "whole")}
    columns = {out: pq.read_table(next((tmp_path / out).rglob("*.parquet"))).column_names for out in arrays}
    assert [str(np.load(path).dtype) for path in arrays.values()] == ["float32", "float16"]
    assert "latitude" in plain["left_out"] and whole["left_out"] == []
    assert "latitude" not in columns["plain"] and "latitude" in columns["whole"]


def test_hdf5_is_taken_in_and_copied(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    vectors = np.eye(4, 32, dtype=np.float32) * 3
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        file["features"] = vectors
        file.create_dataset("index", data=[f"{at}.jpg" for at in range(4)], dtype=h5py.string_dtype())
    line = ("import", "hdf5", tmp_path / "v.hdf5", "-e", "open_clip:tiny/none")

    refuses(*line, "-g", tmp_path / "g", code=1)
    taken = run_json(*line, "-g", tmp_path / "g", "--copy")

    assert (taken["gallery"], taken["rows"], taken["added"]) == (str(tmp_path / "g"), 4, 4)
