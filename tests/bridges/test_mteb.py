"""What mteb says of an eyespot encoder over judged pictures is what eyespot says of its own search."""

from __future__ import annotations

import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eyespot.bridges.mteb import TaskNotes, model, task
from eyespot.gallery.view import Gallery
from eyespot.metrics import evaluate, parse, preset
from eyespot.runs.judged import JudgedQueries
from eyespot.sample import photos
from eyespot.search.collection import Collection
from eyespot.search.matching import matched, renamed
from eyespot.types import Encoder, Qrels, Query, Run, UsageError
from tests.lazy_import import lazy_import, requires
from tests.pages import ROOT, blocks, run_code
from tests.wording import raises
from tests.worlds import index_gallery

os.environ["HF_DATASETS_OFFLINE"] = "1"  # before mteb imports datasets
mteb = lazy_import("mteb")
pytestmark = [requires("mteb"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
CUTS = (1, 3, 5, 10, 20, 100, 1000)
ANIMALS = ["bison", "chameleon", "crocodile", "giraffe", "hedgehog", "jaguar", "kangaroo", "koala", "moose", "panda"]
THINGS = ["fish1", "fish10", "fish9", "windmill", "windmill11", "windmill13", "hammer1", "hammer2", "scissors1"]
THINGS += ["scissors2", "tajMahal", "igloo"]
NAMES = [f"categorization__{thing}.jpg" for thing in THINGS]
NAMES += [f"explore_world_animals__{animal}.jpg" for animal in ANIMALS]
FISH, MILLS, HAMMERS, SCISSORS, DOMES = NAMES[:3], NAMES[3:6], NAMES[6:8], NAMES[8:10], NAMES[10:12]


def animals(*names: str) -> list[str]:
    return [f"explore_world_animals__{name}.jpg" for name in names]


WORDS = {  # query → its text, and the grades of what is relevant
    "fish": ("a fish under water", dict.fromkeys(FISH, 1)),
    "mill": ("a windmill", dict(zip(MILLS, (2, 1, 1), strict=True))),
    "hammer": ("a hammer", dict.fromkeys(HAMMERS, 1)),
    "cut": ("scissors to cut paper", dict.fromkeys(SCISSORS, 2)),
    "tool": ("a hand tool", {**dict.fromkeys(HAMMERS, 2), **dict.fromkeys(SCISSORS, 1), FISH[0]: 0}),
    "dome": ("a building with a dome", dict.fromkeys(DOMES, 1)),
    "bear": ("a black and white bear", dict(zip(animals("panda", "koala"), (3, 1), strict=True))),
    "reptile": ("a reptile", dict.fromkeys(animals("chameleon", "crocodile"), 1)),
    "cat": ("a big cat with spots", dict.fromkeys(animals("jaguar"), 1)),
    "hoof": ("an animal with hooves", dict.fromkeys(animals("bison", "giraffe", "moose"), 1)),
    "pouch": ("it carries its young in a pouch", dict.fromkeys(animals("kangaroo", "koala"), 1)),
    "spines": ("an animal with spines", dict.fromkeys(animals("hedgehog"), 1)),
}
JUDGED = JudgedQueries(
    {query: {"text": text} for query, (text, _) in WORDS.items()},
    Qrels({query: grades for query, (_, grades) in WORDS.items()}),
)
PLACES = {name: photos() / name for name in NAMES}
TINY = {name: PLACES[name] for name in FISH}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """A gallery of the same pictures, as `eyespot index` makes it."""
    folder = tmp_path_factory.mktemp("mteb")
    (folder / "photos").mkdir()
    for name, place in PLACES.items():
        shutil.copy(place, folder / "photos" / name)
    index_gallery(folder / "gallery", folder / "photos")
    return Collection(folder / "gallery")


def theirs(encoder: Encoder, judged: JudgedQueries, name: str) -> dict[str, float]:
    result = mteb.evaluate(
        model(encoder), task(judged, PLACES, name), cache=None, co2_tracker=False, show_progress_bar=False
    )
    scores: dict[str, float] = result.task_results[0].scores["test"][0]
    return scores


def searched(collection: Collection, queries: dict[str, Query]) -> Run:
    """What eyespot's own search finds, named as the judgements name pictures."""
    found = {name: collection.search(Query("q", one.terms), k=1000, by="look").run for name, one in queries.items()}
    return Run({name: renamed(run, matched(collection.view, NAMES))["q"] for name, run in found.items()})


def ours(run: Run, qrels: Qrels) -> dict[str, float]:
    """eyespot's measures under mteb's keys, rounded as mteb rounds; its MRR is not rounded."""
    keys = {"nDCG": "ndcg", "AP": "map", "R": "recall", "P": "precision", "Hit": "hit_rate", "RR": "mrr"}
    measures, rules = preset("mteb").scoring
    means = evaluate(run, qrels, [*measures, *(parse(f"Hit@{k}") for k in CUTS)], rules).means
    named = {f"{keys[name]}_at_{k}": means[f"{name}@{k}"] for name in keys for k in CUTS}
    return {key: value if key.startswith("mrr") else round(value, 5) for key, value in named.items()}


def words(judged: JudgedQueries) -> dict[str, Query]:
    return {name: Query.words(facts["text"]) for name, facts in judged.queries.items()}


@pytest.mark.long
def test_words_score_as_in_eyespots_own_search(collection: Collection, starter: Encoder) -> None:
    """Graded judgements, every measure that both have, at every cut."""
    mine = ours(searched(collection, words(JUDGED)), JUDGED.qrels)

    scores = theirs(starter, JUDGED, "Words")

    assert 0.3 < mine["ndcg_at_10"] < 1  # neither trivial nor empty
    assert {key: scores[key] for key in mine} == pytest.approx(mine, abs=1e-12)


@pytest.mark.long
def test_pictures_with_words_score_as_in_eyespots_own_search(collection: Collection, starter: Encoder) -> None:
    """A query of both is the sum of the two unit vectors; one may have no picture and one no words."""
    images = {"fish": FISH[0], "mill": MILLS[1], "bear": animals("panda")[0], "cut": HAMMERS[0]}
    queries = {query: {"text": WORDS[query][0], "image": image} for query, image in images.items()}
    queries |= {"hammer": {"text": WORDS["hammer"][0]}, "dome": {"image": DOMES[0]}}
    judged = JudgedQueries(queries, Qrels({query: WORDS[query][1] for query in queries}))
    composed = {query: Query.composed(PLACES[image], WORDS[query][0]) for query, image in images.items()}
    composed |= {"hammer": Query.words(WORDS["hammer"][0]), "dome": Query.picture(PLACES[DOMES[0]])}

    scores = theirs(starter, judged, "Composed")

    mine = ours(searched(collection, composed), judged.qrels)
    assert {key: scores[key] for key in mine} == pytest.approx(mine, abs=1e-12)


@pytest.mark.long
def test_candidates_are_reranked_and_nothing_else(collection: Collection, starter: Encoder) -> None:
    """Every query ranks its own eight pictures; relevant ones that are not among them stay unfound."""
    candidates = {query: NAMES[at : at + 8] for at, query in enumerate(WORDS)}
    judged = replace(JUDGED, candidates=Run.from_orders(candidates))
    found = searched(collection, words(JUDGED))
    only = Run({query: [hit for hit in found[query] if hit.image in candidates[query]] for query in found})

    scores = theirs(starter, judged, "Reranked")

    mine = ours(only, JUDGED.qrels)
    assert {key: scores[key] for key in mine} == pytest.approx(mine, abs=1e-12)


@pytest.mark.long
def test_the_model_says_what_it_is(starter: Encoder) -> None:
    """mteb keeps results by name and revision: the digest of the space is in it."""
    bridge, left, right = model("starter"), np.float32([[1, 2], [3, 4]]), np.float32([[1, 1], [0, 2]])
    meta = bridge.mteb_model_meta

    assert (meta.name, meta.embed_dim, meta.modalities) == ("eyespot/starter", starter.space.dim, ["text", "image"])
    assert meta.revision == f"{starter.space.revision}-{starter.space.digest}"
    assert meta.license == "multiple"
    assert bridge.similarity(left, right).tolist() == [[3, 4], [7, 8]]
    assert bridge.similarity_pairwise(left, right).tolist() == [3, 8]


@pytest.mark.long
def test_a_row_of_picture_and_words_is_their_sum_at_unit_length(starter: Encoder) -> None:
    picture = Image.open(PLACES[FISH[0]])
    rows = [{"text": ["a fish"]}, {"image": [picture]}, {"text": ["a fish", ""], "image": [picture, picture]}]

    words, looks, both, alone = model(starter).encode(rows)

    assert both == pytest.approx((words + looks) / np.linalg.norm(words + looks), abs=1e-6)
    assert alone == pytest.approx(looks, abs=1e-6)


def test_a_transparent_picture_lies_over_white(starter: Encoder) -> None:
    """As in an eyespot gallery; Pillow alone would show what lies hidden under the transparency."""
    hidden, white = Image.new("RGBA", (32, 32), (255, 0, 0, 0)), Image.new("RGB", (32, 32), "white")

    vectors = model(starter).encode([{"image": [hidden, white]}])

    assert vectors[0] == pytest.approx(vectors[1], abs=1e-6)


def pool(made: Any) -> list[str]:
    made.load_data()
    return sorted(made.dataset["default"]["test"]["corpus"]["id"])


def judging(*images: str, **query: str) -> JudgedQueries:
    return JudgedQueries({"q": query or {"text": "a fish"}}, Qrels({"q": dict.fromkeys(images, 1)}))


@pytest.mark.parametrize("ending", ["", ".jpg"])
def test_a_folder_names_its_pictures_as_the_judgements_do(tmp_path: Path, ending: str) -> None:
    """By stem or by file name; a second picture of one name keeps its path; those in a tar are read there."""
    for place in ("a.jpg", "deep/b.jpg", "deep/a.jpg"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        shutil.copy(PLACES[FISH[0]], tmp_path / place)
    with tarfile.open(tmp_path / "deep" / "photos.tar", "w") as archive:
        archive.add(PLACES[FISH[0]], "0001.jpg")

    made = task(judging(f"a{ending}", f"b{ending}"), tmp_path, "Folder")
    in_tar = task(judging("0001"), tmp_path / "deep" / "photos.tar", "Tar")

    assert pool(made) == sorted([f"a{ending}", f"b{ending}", "deep/a.jpg"]) and pool(in_tar) == ["0001"]
    with Image.open(PLACES[FISH[0]]) as picture:
        assert in_tar.dataset["default"]["test"]["corpus"][0]["image"].size == picture.size


def test_a_gallery_gives_all_its_pictures(collection: Collection) -> None:
    """Judged ones by their file's stem, the others by the gallery's id."""
    stem = Path(FISH[0]).stem

    ids = pool(task(judging(stem), Gallery(collection.gallery.path), "Gallery"))

    assert len(ids) == len(NAMES)
    assert [name for name in ids if len(name) != 32] == [stem]


def test_a_picture_that_only_asks_is_not_ranked_where_the_pool_is_listed() -> None:
    judged = judging(FISH[0], image=FISH[1])

    assert pool(task(judged, TINY, "All")) == sorted(FISH)
    assert pool(task(replace(judged, images={FISH[0]: {}, FISH[2]: {}}), TINY, "Listed")) == sorted([FISH[0], FISH[2]])


@pytest.mark.parametrize(
    ("query", "category"),
    [({"text": "x"}, "t2i"), ({"image": FISH[0]}, "i2i"), ({"image": FISH[0], "text": "x"}, "it2i")],
)
def test_queries_with_pictures_make_another_kind_of_task(query: dict[str, str], category: str) -> None:
    notes = TaskNotes(licence="cc0-1.0", main_score="recall_at_5")

    metadata = task(judging(FISH[0], **query), TINY, "Kind", notes).metadata
    other = task(judging(*FISH[:2], **query), TINY, "Kind", notes).metadata

    assert (metadata.category, metadata.license, metadata.main_score) == (category, "cc0-1.0", "recall_at_5")
    assert other.revision != metadata.revision  # or mteb's cache would give the numbers of other judgements


@pytest.mark.parametrize(
    ("judged", "name"),
    [
        (judging(FISH[0], "gone.jpg"), "Gone"),
        (judging(), "None"),
        (judging(FISH[0], image="gone.jpg"), "Asks"),
        (judging(FISH[0], category="fish"), "Empty"),
        (judging(FISH[0]), "../a"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_a_sentence(judged: JudgedQueries, name: str, tmp_path: Path) -> None:
    with raises(UsageError):
        task(judged, TINY, name)
    with raises(UsageError):
        task(judging(FISH[0]), tmp_path / "gone", "Gone")


@pytest.mark.long
def test_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTEB_CACHE", str(tmp_path))
    (code,) = blocks(ROOT / "docs" / "research" / "mteb.md", "python")

    assert "ndcg_at_10" in run_code(code, tmp_path)
