"""Read what `eyespot export` writes with the programs that it is for, and compare it with what the gallery knows.

    python scripts/read_doors.py PHOTOS           export PHOTOS in every format, read each back; 1 if one is not so
    python scripts/read_doors.py --read DOOR PLACE       what one program finds, as JSON

A reader gives the program with its version, and by id the title, licence and author of each picture, and its size.
It imports its program itself, so the doors can be tried one by one where not all are installed.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

FACTS = ("title", "licence", "author")
SCHEMAS = Path(__file__).resolve().parent.parent / "tests" / "formats" / "camtrap-dp-1.0.2"
Found = tuple[str, dict[str, dict[str, Any]]]
"""The program, and facts by id."""


def named(program: str) -> str:
    return f"{program} {version(program)}"


def facts_of(rows: Iterable[Mapping[str, Any]], id: str = "id") -> dict[str, dict[str, Any]]:
    """By id: title, licence and author, and the size of a picture that stands in the row."""
    found = {}
    for row in rows:
        image = row.get("image")
        size = list(image.convert("RGB").size) if image is not None and hasattr(image, "convert") else None
        found[row[id]] = {name: row.get(name) for name in FACTS} | ({"size": size} if size else {})
    return found


# -- pictures with facts ----------------------------------------------------------------------------------------


def imagefolder(place: Path) -> Found:
    return named("datasets"), facts_of(_loaded(place)["train"])


def parquet(place: Path) -> Found:
    rows = _loaded(place)["train"]
    assert len(rows[0]["vector"]) == 512
    return named("datasets"), facts_of(rows)


def _loaded(place: Path) -> Any:
    """As `datasets` loads a folder of which nothing else is said."""
    import datasets

    return datasets.load_dataset(str(place), cache_dir=f"{place}-cache")


def coco(place: Path) -> Found:
    from PIL import Image

    read = import_module("pycocotools.coco").COCO(str(place / "annotations.json"))
    licences = {one["id"]: one["name"] for one in read.dataset["licenses"]}
    rows = []
    for image in read.loadImgs(read.getImgIds()):
        with Image.open(place / image["file_name"]) as picture:
            assert picture.size == (image["width"], image["height"])
            picture.load()
            author, licence = image.get("rights_holder"), licences.get(image.get("license"))
            rows.append({**image, "author": author, "licence": licence, "image": picture.copy()})
    boxes = [one for one in read.loadAnns(read.getAnnIds()) if one.get("category_id") not in read.cats]
    assert not boxes
    return named("pycocotools"), facts_of(rows, "eyespot_id")


def webdataset(place: Path) -> Found:
    shards = sorted(str(path) for path in place.glob("*.tar"))
    read = import_module("webdataset").WebDataset(shards, shardshuffle=False).decode("pil")
    return named("webdataset"), facts_of(
        {**one["json"], "image": one.get("jpg") or one.get("png") or one.get("webp")} for one in read
    )


# -- judgements -------------------------------------------------------------------------------------------------


def beir(place: Path) -> Found:
    corpus, queries, qrels = import_module("beir.datasets.data_loader").GenericDataLoader(str(place)).load(split="test")
    assert all(set(one) >= {"text", "title"} for one in corpus.values())
    _assert_judged(queries, qrels)
    lines = map(json.loads, (place / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    known = {line["_id"]: line for line in lines}
    return named("beir"), facts_of({**known[id], "id": id} for id in corpus)


def _assert_judged(queries: Mapping[str, str], qrels: Mapping[str, Mapping[str, int]]) -> None:
    """As `main` wrote them."""
    assert dict(queries) == {"mill": "a windmill"}, queries
    assert sorted(qrels["mill"].values()) == [0, 0, 0, 1, 1, 1], qrels


def label_studio(place: Path) -> Found:

    config = (place / "labels.xml").read_text(encoding="utf-8")
    interface = import_module("label_studio_sdk.label_interface").LabelInterface(config)
    tasks = json.loads((place / "tasks.json").read_text(encoding="utf-8"))
    rows = []
    for task in tasks:
        assert interface.validate_task({"data": task["data"]}), task
        assert all(interface.validate_region(one) for answer in task["annotations"] for one in answer["result"]), task
        rows.append({**task["data"], "id": task["data"]["image_id"], "image": _opened(place, task["data"]["image"])})
    table = f"{place}-csv"
    converter = import_module("label_studio_sdk.converter").Converter(config, str(place))
    converter.convert_to_csv(str(place / "tasks.json"), table, is_dir=False, sep=",", header=True)
    with open(Path(table, "result.csv"), encoding="utf-8", newline="") as file:
        labels = {(row["image_id"], row["annotator"]): row["relevance"] for row in csv.DictReader(file)}
    first, second = list(dict.fromkeys(row["id"] for row in rows))[:2]
    labels = {pair: choice for pair, choice in labels.items() if pair[1]}
    assert labels == {(first, "ada"): "relevant", (second, "ada"): "not relevant", (second, "bob"): "doubt"}, labels
    return named("label-studio-sdk"), facts_of(rows)


def camtrap_dp(place: Path) -> Found:
    """Its addresses of schemas are replaced by the same files, for this runs without a network."""
    from PIL import Image
    from referencing import Registry
    from referencing.jsonschema import DRAFT4

    about = json.loads((place / "datapackage.json").read_text(encoding="utf-8"))
    profile = json.loads((SCHEMAS / "camtrap-dp-profile.json").read_text(encoding="utf-8"))
    assert about["profile"].endswith("/1.0.2/camtrap-dp-profile.json")
    own = {**profile, "allOf": [part for part in profile["allOf"] if "$ref" not in part]}  # that one is of frictionless
    frictionless: Any = import_module("frictionless")
    shapes = Path(frictionless.__file__).parent / "assets" / "profiles" / "geojson.json"
    geojson = DRAFT4.create_resource(json.loads(shapes.read_text(encoding="utf-8")))
    registry: Registry[Any] = Registry().with_resource("http://json.schemastore.org/geojson.json", geojson)
    wrong = [
        error.message
        for error in import_module("jsonschema").Draft4Validator(own, registry=registry).iter_errors(about)
    ]
    assert not wrong, wrong
    for table in about["resources"]:
        table["schema"] = json.loads((SCHEMAS / table["schema"].rpartition("/")[2]).read_text(encoding="utf-8"))
    del about["profile"]
    package = frictionless.Package.from_descriptor(about, basepath=str(place))
    checked = package.validate()
    assert checked.valid, checked.flatten(["type", "message"])[:5]
    tags = {row["mediaID"]: row["observationTags"] for row in package.get_resource("observations").read_rows()}
    rows = []
    for medium in package.get_resource("media").read_rows():
        title = next(tag[6:] for tag in tags[medium["mediaID"]].split(" | ") if tag.startswith("title:"))
        rights = dict(part.split(" ", 1) for part in medium["mediaComments"].split("; "))
        with Image.open(place / medium["filePath"]) as picture:
            facts = {"title": title, "licence": rights["licence"], "author": rights["by"], "image": picture.copy()}
        rows.append({"id": medium["mediaID"], **facts})
    return named("frictionless"), facts_of(rows)


def _opened(place: Path, address: str) -> Any:
    """The picture that Label Studio would serve, with the folder as the root of its local files."""
    from urllib.parse import parse_qs, urlsplit

    from PIL import Image

    (inside,) = parse_qs(urlsplit(address).query)["d"]
    with Image.open(place / inside) as picture:
        picture.load()
        return picture.copy()


DOORS: dict[str, Callable[[Path], Found]] = {
    "imagefolder": imagefolder,
    "parquet": parquet,
    "coco": coco,
    "webdataset": webdataset,
    "beir": beir,
    "label-studio": label_studio,
    "camtrap-dp": camtrap_dp,
}
JUDGED = ["--qrels", "qrels.txt", "--queries", "queries.csv"]
OPTIONS = {
    "parquet": ["--pictures"],
    "coco": ["--category", "category"],
    "imagefolder": ["--category", "category"],
    "beir": JUDGED,
    "camtrap-dp": ["--all-columns"],
}


# -- the truth --------------------------------------------------------------------------------------------------


def eyespot(*words: object, codes: tuple[int, ...] = (0,)) -> str:
    """What a command prints, which ends with one of these codes."""
    line = [sys.executable, "-m", "eyespot.cli", *map(str, words)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(line)} ended with {done.returncode}")
    return done.stdout


def truth(gallery: Path) -> dict[str, dict[str, Any]]:
    """Title, licence and author of every picture of a gallery, and its size, as the gallery itself knows them."""
    from eyespot.gallery.view import Gallery

    opened = Gallery(gallery)
    view = opened.view(opened.stem())
    rows = view.facts(range(int(view.starts[-1])))
    return {
        row["id"]: {name: row.get(name) for name in FACTS} | {"size": [row["width"], row["height"]]} for row in rows
    }


def differences(found: Mapping[str, Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a program read otherwise than the gallery knows it."""
    wrong = [f"{id} is not there" for id in known if id not in found]
    wrong += [f"{id} is nobody" for id in found if id not in known]
    for id in known.keys() & found.keys():
        wrong += [
            f"{id}: {name} is {value!r}, not {known[id][name]!r}"
            for name, value in found[id].items()
            if value != known[id][name]
        ]
    return wrong


def _copied(photos: Path) -> Path:
    """The photos once more, with a time, a place, and a box that a detector found."""
    world = Path(shutil.copytree(photos, "world"))
    with (photos / "metadata.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for at, row in enumerate(rows):
        where = {"latitude": f"47.{at % 7}", "longitude": f"8.{at % 5}", "taken": f"2024-05-{1 + at % 28:02d} 10:00:00"}
        row |= {**where, "boxes": json.dumps([["animal", 0.9, 0.25, 0.25, 0.5, 0.5]]) if at % 3 else ""}
    with (world / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    return world


def label(gallery: Path, ids: list[str]) -> None:
    """Every picture is listed for a query; two people have marked the first ones."""
    Path("run.txt").write_text("".join(f"mill Q0 {id} 1 {-at} r\n" for at, id in enumerate(ids)), encoding="utf-8")
    eyespot("annotate", "add", "--text", "a windmill", "--id", "mill", "-g", gallery)
    eyespot("annotate", "list", "mill", "--run", "run.txt", "-g", gallery)
    for who, marks in {"ada": {ids[0]: "y", ids[1]: "n"}, "bob": {ids[1]: "d"}}.items():
        table = "".join(f"{id},{mark}\n" for id, mark in marks.items())
        Path(f"{who}.csv").write_text(f"image,mark\n{table}", encoding="utf-8")
        eyespot("annotate", "mark", "mill", f"{who}.csv", "--as", who, "-g", gallery)


def main() -> int:
    """The exit code."""
    if sys.argv[1:2] == ["--read"]:
        program, found = DOORS[sys.argv[2]](Path(sys.argv[3]))
        print(json.dumps({"program": program, "facts": found}))
        return 0
    gallery, failed = Path("gallery"), 0
    eyespot("index", _copied(Path(sys.argv[1])), "-g", gallery)
    known = truth(gallery)
    assert len(known) > 10 and all(facts["licence"] and facts["author"] for facts in known.values())
    Path("queries.csv").write_text("id,text\nmill,a windmill\n", encoding="utf-8")
    judged = "".join(f"mill 0 {id} {at % 2}\n" for at, id in enumerate([*known][:6]))
    Path("qrels.txt").write_text(judged, encoding="utf-8")
    label(gallery, [*known])
    for door, read in DOORS.items():
        out = Path("doors", door)
        eyespot("export", door, out, "-g", gallery, *OPTIONS.get(door, []))
        program, found = read(out)
        wrong = differences(found, known)
        failed += bool(wrong)
        print(f"{door}: {program} read {len(found)} pictures{': ' + '; '.join(wrong[:3]) if wrong else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    sys.exit(main())
