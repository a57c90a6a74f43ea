"""Benchmarks end to end over the sample photos with the starter encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot import sample
from eyespot.adapters.quari import load
from eyespot.benchmarks import GallerySearcher, Task, scored
from eyespot.photos.pictures import open_picture
from eyespot.search.adapted import seen_by
from eyespot.search.collection import Collection
from eyespot.types import Encoder, Run, UsageError
from tests.wording import raises
from tests.worlds import benchmarks as worlds
from tests.worlds import index_gallery
from tests.worlds.adapters import checkpoint
from tests.worlds.benchmarks import tasks_of

PHOTOS = sorted(path for path in sample.photos().iterdir() if path.suffix == ".jpg")[:12]
WORDS = ["a gate", "an arch", "a ball", "a tower", "a tablet", "a bucket"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve of the sample photos."""
    folder = tmp_path_factory.mktemp("photos")
    for path in PHOTOS:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.fixture(scope="module")
def collection(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    gallery = tmp_path_factory.mktemp("gallery") / "g"
    index_gallery(gallery, photos)
    return Collection(gallery)


@pytest.fixture(scope="module")
def vectors(collection: Collection) -> dict[str, Any]:
    """The vector of each photo by its file name, made anew."""
    encoder: Encoder = collection.encoder
    pixels = {path.name: encoder.read(open_picture(path.read_bytes(), encoder.min_side).image) for path in PHOTOS}
    return {name: encoder.encode_pixels(one[None])[0] for name, one in pixels.items()}


def brute(queries: dict[str, Any], images: dict[str, Any]) -> dict[str, list[str]]:
    """Rankings by plain dot products."""
    return {
        query: sorted(images, key=lambda name, vector=vector: -float(vector @ images[name]))
        for query, vector in queries.items()
    }


def ranked(run: Run) -> dict[str, list[str]]:
    return {query: [hit.image for hit in hits] for query, hits in run.items()}


def named(path: Path, way: str) -> str:
    return {"name": path.name, "stem": path.stem, "path": f"elsewhere/{path.name}"}[way]


def own(data: Path, way: str = "name", **more: dict[str, str]) -> Path:
    """Four queries of words; the n-th photo is relevant to the n-th."""
    rows = [{"id": f"q{at}", "text": WORDS[at], "image": ""} for at in range(4)] + list(more.values())
    worlds.table(data / "queries.csv", rows)
    worlds.write(data / "qrels.txt", "\n".join(f"q{at} 0 {named(PHOTOS[at], way)} 1" for at in range(len(rows))))
    return data


@pytest.mark.parametrize("way", ["name", "stem", "path"])
def test_words_rank_the_gallery_as_plain_products_do(
    collection: Collection, vectors: dict[str, Any], tmp_path: Path, way: str
) -> None:
    task = tasks_of("own", own(tmp_path, way))["own"]
    texts = dict(zip([f"q{at}" for at in range(4)], collection.encoder.encode_texts(WORDS[:4]), strict=True))

    run = GallerySearcher(collection, tmp_path)(task)

    judged = {path.name: named(path, way) for path in PHOTOS[:4]}
    expected = {q: [judged.get(name) for name in names] for q, names in brute(texts, vectors).items()}
    assert {q: [n if not n.startswith("gallery:") else None for n in names] for q, names in ranked(run).items()} == (
        expected
    )
    assert run.header["pool"] == 12 and run.header["exact"] is True
    assert set(run.header["seconds"]) == {"encode", "search"}
    assert scored(task, run).floors["P@10"].mean == pytest.approx(1 / 12)


def test_picture_and_words_together_and_the_picture_alone(
    collection: Collection, vectors: dict[str, Any], tmp_path: Path
) -> None:
    both = {"id": "both", "text": "a tower", "image": PHOTOS[5].name}
    alone = {"id": "alone", "text": "", "image": PHOTOS[6].name}
    worlds.table(tmp_path / "queries.csv", [both, alone])
    worlds.write(tmp_path / "qrels.txt", f"both 0 {PHOTOS[1].name} 1\nalone 0 {PHOTOS[2].name} 1\n")
    (task,) = tasks_of("own", tmp_path).values()

    run = GallerySearcher(collection, tmp_path)(task)

    mixed = vectors[PHOTOS[5].name] + collection.encoder.encode_texts(["a tower"])[0]
    expected = brute({"both": mixed, "alone": vectors[PHOTOS[6].name]}, vectors)
    for query, photo in (("both", PHOTOS[1]), ("alone", PHOTOS[2])):
        assert ranked(run)[query].index(photo.name) == expected[query].index(photo.name)
    assert ranked(scored(task, run).run)["alone"][0] != PHOTOS[6].name == expected["alone"][0]


def test_pictures_of_the_data_folder_are_encoded_and_those_that_are_nowhere_stop_the_search_or_leave_their_query_out(
    collection: Collection, tmp_path: Path
) -> None:
    other = next(path for path in sorted(sample.photos().iterdir()) if path.suffix == ".jpg" and path not in PHOTOS)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.jpg").write_bytes(other.read_bytes())
    pictures = {name: {"id": id, "text": "", "image": f"{name}.jpg"} for id, name in (("q4", "mine"), ("q5", "lost"))}
    data = own(tmp_path, **pictures)
    task = tasks_of("own", data)["own"]

    with raises(UsageError):
        GallerySearcher(collection, data)(task)
    run = GallerySearcher(collection, data, allow_missing=True)(task)
    assert len(run["q4"]) == 12 and "q5" not in run and run.notes
    assert scored(task, run).scores.missing == ["q5"]


def test_a_column_may_hold_the_ids(collection: Collection, tmp_path: Path) -> None:
    task = tasks_of("own", own(tmp_path))["own"]

    run = GallerySearcher(collection, tmp_path, match="file_name")(task)

    assert PHOTOS[0].name in ranked(run)["q0"]
    with raises(UsageError):
        GallerySearcher(collection, tmp_path, match="nope")(task)
    with raises(UsageError):
        GallerySearcher(collection, tmp_path, match="id")(task)


def test_missing_images_are_refused_or_said_and_still_count_as_relevant(collection: Collection, tmp_path: Path) -> None:
    data, name = own(tmp_path), PHOTOS[0].name
    worlds.write(data / "qrels.txt", f"q0 0 {name} 1\nq0 0 lost.jpg 1\n")
    task = tasks_of("own", data)["own"]

    with raises(UsageError):
        GallerySearcher(collection, data)(task)
    result = scored(task, GallerySearcher(collection, data, allow_missing=True)(task))
    assert result.scores.values["R@20"].tolist() == [0.5]
    assert result.notes
    worlds.write(data / "qrels.txt", f"q0 0 a/{name} 1\nq1 0 b/{name} 1\n")  # two of one name are not one picture
    with raises(UsageError):
        GallerySearcher(collection, data)(tasks_of("own", data)["own"])


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Six sample photos with a caption each; numbers of images and captions coincide."""
    images = [
        {
            "cocoid": at,
            "filename": PHOTOS[at].name,
            "filepath": "val2014",
            "split": "test",
            "sentences": [{"sentid": 5 - at, "raw": WORDS[at]}],
        }
        for at in range(6)
    ]
    return worlds.write(tmp_path / "data" / "dataset_coco.json", {"images": images}).parent


def test_both_ways_of_captions_are_plain_products_within_the_six(
    collection: Collection, vectors: dict[str, Any], captions: Path
) -> None:
    tasks = tasks_of("coco5k", captions)
    pictures = {str(at): vectors[PHOTOS[at].name] for at in range(6)}
    texts = {str(5 - at): vector for at, vector in enumerate(collection.encoder.encode_texts(WORDS))}
    searcher = GallerySearcher(collection, captions)

    runs = {name: searcher(task) for name, task in tasks.items()}

    assert ranked(runs["t2i"]) == brute(texts, pictures)
    assert ranked(runs["i2t"]) == brute(pictures, texts)
    assert {name: run.header["pool"] for name, run in runs.items()} == {"t2i": 6, "i2t": 6}
    assert runs["t2i"].header["seconds"] is not runs["i2t"].header["seconds"]


def test_a_pool_that_the_gallery_has_in_part_is_not_the_benchmark_s(collection: Collection, captions: Path) -> None:
    rows = json.loads((captions / "dataset_coco.json").read_text())
    rows["images"].append({**rows["images"][0], "cocoid": 9, "filename": "lost.jpg"})
    rows["images"][-1]["sentences"] = [{"sentid": 9, "raw": "x"}]
    worlds.write(captions / "dataset_coco.json", rows)
    tasks = tasks_of("coco5k", captions)

    with pytest.raises(UsageError, match="1 of 7 images"):
        GallerySearcher(collection, captions)(tasks["t2i"])
    runs = {name: GallerySearcher(collection, captions, allow_missing=True)(task) for name, task in tasks.items()}
    assert runs["t2i"].header["pool"] == 6 and "9" not in runs["i2t"]


def test_captions_without_their_text_cannot_be_searched(collection: Collection, tmp_path: Path) -> None:
    tasks = tasks_of("eccv", worlds.eccv(tmp_path))

    for name in ("eccv-t2i", "eccv-i2t"):
        with raises(UsageError):
            GallerySearcher(collection, tmp_path)(tasks[name])


def candidates(folder: Path, *rows: tuple[str, int, bool]) -> Task:
    """Words, the number of the photo and whether it is relevant, as INQUIRE-Rerank has them."""
    table = [
        {"query": words, "relevant": int(right), "inat24_image_id": at, "inat24_file_name": f"x/{PHOTOS[at].name}"}
        for words, at, right in rows
    ]
    pq.write_table(pa.Table.from_pylist(table), folder / "test.parquet")
    return tasks_of("inquire-rerank", folder)["t2i"]


def test_each_query_ranks_its_own_candidates(collection: Collection, vectors: dict[str, Any], tmp_path: Path) -> None:
    task = candidates(tmp_path, *((WORDS[q], at, at == q) for q in range(2) for at in range(q, q + 4)))
    texts = dict(zip(WORDS, collection.encoder.encode_texts(WORDS), strict=True))

    run = GallerySearcher(collection, tmp_path)(task)

    for q in range(2):
        names = {str(at): vectors[PHOTOS[at].name] for at in range(q, q + 4)}
        assert ranked(run)[WORDS[q]] == brute({"q": texts[WORDS[q]]}, names)["q"]


def test_candidates_are_ranked_in_the_query_s_own_view(
    collection: Collection, vectors: dict[str, Any], tmp_path: Path
) -> None:
    task = candidates(tmp_path, *((WORDS[0], at, at == 0) for at in range(8)))
    adapter = load(checkpoint(tmp_path / "quari", 512))
    (view,) = adapter.adapt(collection.encoder.encode_texts(WORDS[:1]))
    seen = {str(at): seen_by(view, vectors[PHOTOS[at].name][None])[0] for at in range(8)}

    run = GallerySearcher(collection, tmp_path, adapter=adapter)(task)

    assert ranked(run)[WORDS[0]] == brute({"q": view.query}, seen)["q"]
    assert ranked(run) != ranked(GallerySearcher(collection, tmp_path)(task))


def test_candidates_that_are_not_relevant_must_be_there_too(collection: Collection, tmp_path: Path) -> None:
    """Without them the others would rank better than they do."""
    rows = [
        {"query": "x", "relevant": at, "inat24_file_name": name}
        for at, name in enumerate(["x/lost.jpg", PHOTOS[0].name])
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    (task,) = tasks_of("inquire-rerank", tmp_path).values()

    with pytest.raises(UsageError, match="1 of 2 images"):
        GallerySearcher(collection, tmp_path)(task)


def test_ilias_ranks_no_pictures_that_queries_are_made_of(collection: Collection, tmp_path: Path) -> None:
    """They lie beside the positives on disk and are no part of what is searched."""
    names = [path.name for path in PHOTOS]
    worlds.write(tmp_path / "image_ids/image_query_ids.txt", f"o1/{names[0]}\no2/{names[1]}\n")
    worlds.write(tmp_path / "image_ids/text_query_ids.txt", "o1/T.txt\n")
    worlds.write(tmp_path / "image_ids/positive_ids.txt", f"o1/{names[2]},0.1,1\no2/{names[3]},0.1,1\n")
    worlds.write(tmp_path / "ilias_core/o1/T.txt", "a gate")
    tasks = tasks_of("ilias", tmp_path)

    runs = {name: GallerySearcher(collection, tmp_path)(task) for name, task in tasks.items()}

    for run in runs.values():
        assert run.header["pool"] == 10
        assert not any(image.endswith((names[0], names[1])) for image in run.images.tolist())
