"""Options of `export`, `convert` and `import`, each with a value that changes what is written."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from eyespot import sample
from eyespot.cli import app
from eyespot.gallery.view import Gallery

FILTERS = ("--where", "--after", "--before", "--near", "--label", "--ids")
TABLES = ["parquet", "imagefolder", "coco", "webdataset", "hdf5", "lance", "milvus", "vespa", "npy", "clip-retrieval"]
FORMATS = [*TABLES, "beir", "mteb", "label-studio", "camtrap-dp"]
NEEDS = {"hdf5": "h5py", "lance": "lancedb"}


def run_json(*words: object, code: int = 0) -> Any:
    shown = CliRunner().invoke(app, [*(str(word) for word in words), "--json"])
    assert shown.exit_code == code, shown.output + str(shown.exception)
    return json.loads(shown.stdout)


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
            rows.writerow([f"{at}.jpg", f"Nr {at}", kind, "Turdus merula", f"2024-05-0{at + 1}", 47 + at / 10, 8.5])
    run_json("index", folder / "photos", "-g", folder / "gallery")
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
    [("--where", "01235"), ("--after", "12345"), ("--before", "01234"), ("--near", "01234"), ("--label", "024")],
)
def test_each_filter_chooses_alone(place: Path, tmp_path: Path, option: str, numbers: str) -> None:
    line = ("export", "parquet", tmp_path / "out", "-g", place / "gallery", option, filters(place)[option])
    assert run_json(*line)["rows"] == len(numbers)

    titles = [
        title for path in (tmp_path / "out").rglob("*.parquet") for title in pq.read_table(path)["title"].to_pylist()
    ]
    assert sorted(titles) == [f"Nr {number}" for number in numbers]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_all_filters_together(place: Path, tmp_path: Path, name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "json"))
    line = ["export", name, "-g", place / "gallery", "-e", "starter"]
    line += [word for pair in filters(place).items() for word in pair]
    line += ["--qrels", place / "qrels.txt", "--queries", place / "queries.csv"] if name in ("beir", "mteb") else []
    line += ["--all-columns"] if name in ("camtrap-dp", "label-studio") else []
    done = run_json(*line[:2], tmp_path / "out", *line[2:])

    assert done["rows"] == 1 and any((tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["beir", "mteb"])
def test_judgements_of_one_judge_go_out_by_default_from_the_ledger(place: Path, tmp_path: Path, name: str) -> None:
    gallery = tmp_path / "gallery"
    shutil.copytree(place / "gallery", gallery)
    run_json("search", "a bird", "-g", gallery, "--rerank", "encoder:starter", "--depth", 3)
    done = run_json("export", name, tmp_path / "out", "-g", gallery, "--by", "encoder:starter")
    CliRunner().invoke(app, ["export", name, str(tmp_path / "no"), "-g", str(gallery), "--by", "person:nobody"])

    assert done["rows"] == 6 and not (tmp_path / "no").exists()


def test_vectors_are_halved_and_pictures_are_put_into_tables(place: Path, tmp_path: Path) -> None:
    line = ("-g", place / "gallery", "--label", "kind=bird")
    run_json("export", "parquet", tmp_path / "small", *line, "--float16")
    run_json("export", "parquet", tmp_path / "large", *line, "--pictures")
    small, large = (pq.read_schema(next((tmp_path / name).rglob("*.parquet"))) for name in ("small", "large"))

    assert "halffloat" in str(small) and "halffloat" not in str(large)
    assert set(large.names) - set(small.names) == {"image"}


def test_lance_tables_hold_half_precision_where_asked(place: Path, tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    run_json("export", "lance", tmp_path / "out", "-g", place / "gallery", "--float16")

    (table,) = (tmp_path / "out").glob("*.lance")
    assert "halffloat" in str(lancedb.connect(tmp_path / "out").open_table(table.stem).schema)


def test_columns_become_categories_and_splits(place: Path, tmp_path: Path) -> None:
    gallery = place / "gallery"
    run_json("export", "coco", tmp_path / "coco", "-g", gallery, "--category", "species")
    run_json("export", "imagefolder", tmp_path / "split", "-g", gallery, "--category", "kind", "--split", "kind")
    categories = json.loads((tmp_path / "coco" / "annotations.json").read_text())["categories"]

    assert [category["name"] for category in categories] == ["Turdus merula"]
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
    (tmp_path / "min.json").write_text(json.dumps(result))
    done = run_json("import", "label-studio", tmp_path / "min.json", "-g", tmp_path / "gallery")

    assert 1 in done.values()


@pytest.mark.parametrize("detector", ["megadetector", "speciesnet"])
def test_detections_are_looked_for_below_the_folder_of_photos(place: Path, tmp_path: Path, detector: str) -> None:
    shutil.copytree(place / "gallery", tmp_path / "gallery")
    box = {"category": "1", "label": "animal", "conf": 0.9, "bbox": [0, 0, 0.5, 0.5]}
    image = {"file": "photos/0.jpg", "filepath": "photos/0.jpg", "detections": [box]}
    key = "images" if detector == "megadetector" else "predictions"
    (tmp_path / "found.json").write_text(json.dumps({key: [image], "detection_categories": {"1": "animal"}}))
    line = ("import", detector, tmp_path / "found.json", "-g", tmp_path / "gallery")
    away = CliRunner().invoke(app, list(map(str, line)))

    assert "say where its paths begin with --photos" in str(away.exception)
    assert run_json(*line, "--photos", place)["known"] == 1


SYSTEMS = {
    "timelapse": {"cards.csv": "File,RelativePath,Species\n0.jpg,photos,deer\n1.jpg,photos,fox\ncut\n"},
    "wildlife-insights": {
        "images.csv": "project_id,deployment_id,image_id,filename,common_name\n1,d,a,photos/0.jpg,Deer\ncut\n",
        "deployments.csv": "deployment_id,latitude,longitude\nd,1,2\n",
    },
    "camtrap-dp": {
        "datapackage.json": "{}",
        "media.csv": "mediaID,deploymentID,timestamp,filePath\nm,d,2020-05-30T02:57:37Z,photos/0.jpg\ncut\n",
        "observations.csv": "observationID,mediaID,observationType,scientificName\no,m,animal,Cervus elaphus\n",
        "deployments.csv": "deploymentID,latitude,longitude\nd,1,2\n",
    },
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_camera_traps_are_imported_and_what_is_refused_is_listed(place: Path, tmp_path: Path, system: str) -> None:
    shutil.copytree(place / "gallery", tmp_path / "gallery")
    (tmp_path / "export").mkdir()
    for name, text in SYSTEMS[system].items():
        (tmp_path / "export" / name).write_text(text)
    source = tmp_path / "export" / ("cards.csv" if system == "timelapse" else "")
    line = ("import", system, source, "--gallery", tmp_path / "gallery")
    if system == "timelapse":  # the others are also found by the end of their paths
        away = CliRunner().invoke(app, list(map(str, line)))
        assert "say where its paths begin with --photos" in str(away.exception)
    done = run_json(*line, "--photos", place, code=3)

    assert (done["known"], done["photos"]) == ((2, 3) if system == "timelapse" else (1, 2))
    assert [failure["reason"].partition(" where")[0] for failure in done["failed"]] == ["has 1 fields"]


def test_two_exports_of_one_name_stay_beside_each_other(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "gallery", tmp_path / "gallery")
    name = "long name " * 20
    for number, card in enumerate(("a", "b")):
        (tmp_path / card).mkdir()
        (tmp_path / card / f"{name}.csv").write_text(f"File,RelativePath,Beast\n{number}.jpg,photos,beast {number}\n")
    lists = [
        run_json("import", "timelapse", tmp_path / card / f"{name}.csv", "-g", tmp_path / "gallery", "--photos", place)[
            "list"
        ]
        for card in ("a", "b", "a")
    ]

    opened = Gallery(tmp_path / "gallery")
    view = opened.view(opened.stem())
    assert lists[0] == lists[2] != lists[1] and len(list((tmp_path / "gallery" / "facts").iterdir())) == 2
    beasts = {fact["beast"] for fact in view.facts(range(int(view.starts[-1])))}
    assert beasts == {"beast 0", "beast 1", None}


def test_convert_takes_a_file_for_what_it_is_said_to_be(place: Path, tmp_path: Path) -> None:
    (tmp_path / "either.json").write_text(json.dumps({"q": {"a": 1, "b": 2}}))
    run = run_json("convert", tmp_path / "either.json", tmp_path / "run.txt", "--run")
    (tmp_path / "run.dat").write_text("q Q0 a 1 0.5 t\n")
    named = run_json("convert", tmp_path / "run.dat", tmp_path / "named.json", "--run", "--format", "trec")

    assert run["holds"] == "run" and (tmp_path / "run.txt").read_text().startswith("q Q0 b 1 ")
    assert named["rows"] == 1
