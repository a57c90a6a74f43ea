"""Benchmarks end to end over the sample photos with the starter encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given as drawn_from, strategies as st

from eyespot import sample
from eyespot.adapters.quari import load
from eyespot.benchmarks import GallerySearcher, Task, check, files_of, runs_of, scored
from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.benchmarks._fitting import aliases
from eyespot.photos.pictures import open_picture
from eyespot.runs import write_run
from eyespot.search.adapted import seen_by
from eyespot.search.collection import Collection
from eyespot.types import Encoder, Run, UsageError
from tests.wording import raises
from tests.worlds import benchmarks as worlds, index_gallery
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
def test_words_rank_as_products_do(collection: Collection, vectors: dict[str, Any], tmp_path: Path, way: str) -> None:
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


def test_queries_that_the_encoder_cuts_are_counted(collection: Collection, tmp_path: Path) -> None:
    data = own(tmp_path, long={"id": "q4", "text": "a heron " * 300, "image": ""})
    run = GallerySearcher(collection, data)(tasks_of("own", data)["own"])
    (note,) = [note for note in run.notes if getattr(note, "code", "") == "cut"]
    assert note.startswith("1 of 5 queries are cut: starter reads 256 of 605 tokens")


def test_picture_with_and_without_words(collection: Collection, vectors: dict[str, Any], tmp_path: Path) -> None:
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


def test_pictures_of_the_data_folder_are_encoded_and_lost_ones_refused(collection: Collection, tmp_path: Path) -> None:
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


def test_captions_both_ways_are_products(collection: Collection, vectors: dict[str, Any], captions: Path) -> None:
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


def test_candidates_rank_in_the_query_s_view(collection: Collection, vectors: dict[str, Any], tmp_path: Path) -> None:
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


# -- files of rankings to the tasks they belong to ----------------------------------------------------------------


CAPTIONS = [str(at) for at in range(15)]  # five of each of the images 0, 1 and 2


@pytest.fixture
def coco(tmp_path: Path) -> list[Task]:
    return list(tasks_of("coco5k", worlds.karpathy(tmp_path)).values())


def hits(tasks: list[Task], runs: dict[str, Run]) -> dict[str, float]:
    return {task.name: scored(task, runs[task.name]).scores.mean("Hit@1") for task in tasks if task.name in runs}


def similarities() -> list[list[float]]:
    """(captions, images): images 0 and 1 have all their captions next to them, image 2 has none; caption 4 is lost."""
    found = np.zeros((15, 3))
    for caption in range(15):
        found[caption, 2 if caption == 4 else min(caption // 5, 1)] = 1 + caption / 100
    listed: list[list[float]] = found.tolist()
    return listed


@pytest.mark.parametrize("turned", [False, True])
def test_a_matrix_is_read_both_ways(turned: bool, coco: list[Task], tmp_path: Path) -> None:
    scores, sides = np.array(similarities()), (CAPTIONS, ["0", "1", "2"])
    rows, columns = sides[::-1] if turned else sides
    file = worlds.matrix(tmp_path / "m.npz", rows, columns, (scores.T if turned else scores).tolist())

    means = hits(coco, runs_of(coco, [str(file)]))

    # image 1 is nearest to caption 14, which is image 2's; image 2 to caption 4, which is image 0's
    assert means == pytest.approx({"i2t": 1 / 3, "t2i": 9 / 15})


def test_fg_with_the_list_of_its_pool(tmp_path: Path) -> None:
    """The list's third image stands above one of the described, for the captions of image two."""
    data = worlds.fine_grained(tmp_path)
    np.save(data / "MSCOCO_FG_img_filenames.npy", np.array(["one.jpg", "two.jpg", "more.jpg"]))
    tasks = list(tasks_of("coco5k-fg", data).values())
    rows = [f"{image}#{at}" for image in ("one", "two") for at in range(5)]
    scores = [[0.9, 0.1, 0.2]] * 5 + [[0.1, 0.6, 0.8]] * 5
    file = worlds.matrix(tmp_path / "m.npz", rows, ["one", "two", "more"], scores)

    assert hits(tasks, runs_of(tasks, [str(file)])) == {"i2t": 1, "t2i": 1 / 2}


def test_captions_and_images_of_one_number_are_not_taken_for_each_other(coco: list[Task], tmp_path: Path) -> None:
    """Captions 0, 1 and 2 are also numbers of images: a file of text→image alone says nothing of image→text."""
    file = tmp_path / "depth=5.txt"  # an equals sign in its name
    write_run(Run.from_orders({str(10 + at): ["2", "1"] for at in range(5)}), file)

    assert set(runs_of(coco, [str(file)])) == set(runs_of(coco, [f"t2i={file}"])) == {"t2i"}
    assert files_of(coco, [str(file)]) == files_of(coco, [f"t2i={file}"]) == [file]


def test_one_file_serves_every_task_whose_queries_it_has(tmp_path: Path) -> None:
    tasks = list(tasks_of("ilias", worlds.ilias(tmp_path)).values())
    file = tmp_path / "run.json"
    write_run(Run.from_orders({"o1/query/T.txt": ["x"], "o2/query/Q0.jpg": ["o2/pos/P0.jpg"]}), file)

    found = runs_of(tasks, [str(file)])

    assert found["i2i"] is found["t2i"]
    assert [scored(task, found[task.name]).scores.mean("AP@1000") for task in tasks] == [1, 0]


@pytest.mark.parametrize(
    "given",
    [["a.txt", "b.txt"], ["t2i=a.txt", "b.txt"], ["t2i=a.txt", "t2i=b.txt"], ["x2y=somewhere.txt"], ["nowhere.txt"]],
)
def test_what_is_not_clear_is_asked_back(
    given: list[str], coco: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        write_run(Run.from_orders({"0": ["0"]}), Path(name))

    with raises(UsageError):
        runs_of(coco, given)


def test_short_names_that_two_images_share_are_no_names() -> None:
    assert aliases(["a/1.jpg", "b/2.jpg"], {})[1:] == [["1.jpg", "2.jpg"], ["1", "2"]]
    assert aliases(["a/1.jpg", "b/1.jpg"], {}) == [["a/1.jpg", "b/1.jpg"]]
    assert aliases(["7"], {"7": {"path": "x/y.jpg"}}) == [["7"], ["x/y.jpg"], ["y.jpg"], ["y"]]


@drawn_from(st.lists(st.text("ab/.", min_size=1, max_size=6), min_size=1, max_size=5, unique=True))
def test_every_way_of_naming_keeps_images_apart(names: list[str]) -> None:
    assert all(len(set(way)) == len(names) for way in aliases(names, {}))


def needing(**more: int | str | bool | None) -> Benchmark:
    """A benchmark of one file, a.txt or b.txt."""
    needed = Needed("a.txt|deep/b.txt", "words", "write them", **more)  # type: ignore[arg-type]
    return Benchmark("x", "X", "", "", "", "", lambda _data, _asked: [], [needed])


SHA = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of "abc"


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "ok"),
        ({"size": 3, "sha256": SHA}, "ok"),
        ({"size": 4}, "other"),
        ({"size": 3, "sha256": "0" * 64}, "other"),
    ],
)
def test_check_compares_a_file_with_the_known_copy(tmp_path: Path, more: dict[str, int | str], state: str) -> None:
    place = worlds.write(tmp_path / "deep" / "b.txt", "abc")

    (found,) = check(needing(**more), tmp_path, "test")

    assert (found.state, found.place, found.stops) == (state, place, False)
    assert bool(found.reason) == (state == "other")
