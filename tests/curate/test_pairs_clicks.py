"""Image–image pairs out of verdicts: which photos pair, and that training takes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import eyespot
from eyespot.adapters.quari.training.reading import read_pairs
from eyespot.curate.pairs.clicks import MOST, clicked_pairs, write
from eyespot.judges.person import VERDICTS
from eyespot.ledger.judgements import Judgements
from eyespot.search.collection import Collection
from eyespot.types import Judgement, NothingFound, Query, UsageError
from tests.command import run_eyespot
from tests.wording import raises
from tests.worlds import make_gallery


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """24 drawn photos."""
    return eyespot.open(make_gallery(tmp_path_factory.mktemp("clicks"), 24))


def ledger_of(folder: Path, clicks: dict[str, dict[str, str]], who: str = "person:ada") -> Path:
    """The ledger of these verdicts: words → image → y, n or d."""
    path = folder / "ledger.sqlite"
    with Judgements(path) as judgements:
        for words, verdicts in clicks.items():
            query = Query.words(words)
            digest = judgements.enter([query])[query]
            judgements.record(
                Judgement(digest, image, who, "p", VERDICTS[key], at=1) for image, key in verdicts.items()
            )
    return path


def ids(collection: Collection) -> list[str]:
    return [str(facts["id"]) for facts in collection.view.facts(range(24))]


def test_every_two_photos_with_a_yes_for_a_query_pair_both_ways(collection: Collection, tmp_path: Path) -> None:
    a, b, c, d, *_ = ids(collection)
    ledger = ledger_of(tmp_path, {"x": {a: "y", b: "y", c: "n"}, "y": {d: "y"}, "z": {a: "y", "gone": "y"}})

    made = clicked_pairs(collection.view, ledger)

    assert made.rows.tolist() == [[0, 1], [1, 0]]
    assert made.queries == 1
    assert made.left_out["queries have fewer than two photos with a yes"] == 2
    assert made.left_out["photos are not in this space"] == 1


def test_a_query_with_very_many_photos_gives_some_of_their_pairs(collection: Collection, tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, {"x": dict.fromkeys(ids(collection), "y")})
    first, again, other = (clicked_pairs(collection.view, ledger, seed=seed).rows.tolist() for seed in (0, 0, 1))
    assert len(first) == MOST
    assert first == again != other


def test_training_reads_the_vectors_of_the_pairs(collection: Collection, tmp_path: Path) -> None:
    a, b, c, *_ = ids(collection)
    ledger = ledger_of(tmp_path, {"x": {a: "y", b: "y", c: "y"}})

    write(collection.view, clicked_pairs(collection.view, ledger), tmp_path / "out")

    pairs = read_pairs(tmp_path / "out").pairs
    vectors = collection.view.vectors([0, 1, 2])
    assert pairs.ids == [a, b, c]
    assert np.array_equal(pairs.images, vectors)
    assert np.array_equal(np.asarray(pairs.texts), vectors[[0, 0, 1, 1, 2, 2]])
    assert pairs.of.tolist() == [1, 2, 0, 2, 0, 1]
    with raises(UsageError):
        write(collection.view, clicked_pairs(collection.view, ledger), tmp_path / "out")


def test_without_two_yes_there_is_nothing_to_train_on(collection: Collection, tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, {"x": {ids(collection)[0]: "y"}})
    for place in (ledger, tmp_path / "none.sqlite"):
        with raises(NothingFound):
            clicked_pairs(collection.view, place)


def test_the_command_counts_pairs_and_takes_one_persons(collection: Collection, tmp_path: Path) -> None:
    a, b, c, *_ = ids(collection)
    ledger = ledger_of(tmp_path, {"x": {a: "y", b: "y"}})
    ledger_of(tmp_path, {"y": {b: "y", c: "y"}}, "person:bob")
    line = ["build", "pairs", "clicks", collection.gallery.path, "--ledger", ledger, "--json"]

    every, bobs = (
        json.loads(run_eyespot(*line, "--out", tmp_path / name, *more).stdout)
        for name, more in (("all", []), ("bob", ["--feedback", "bob", "-e", "starter", "--seed", "3"]))
    )

    assert (every["pairs"], every["queries"], every["left_out"]) == (4, 2, {})
    assert (bobs["pairs"], bobs["queries"]) == (2, 1)
