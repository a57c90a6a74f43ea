"""`eyespot eval` with the stages of a search: its numbers are those of the same chain in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eyespot
from eyespot import rooms
from eyespot.benchmarks.own import MEASURES
from eyespot.gallery.describing import Describing, describe
from eyespot.metrics import evaluate
from eyespot.runs import read_qrels, write_run
from eyespot.search import Adapted, Chain, Collection, LocalRerank, Nearest, QueryExpansion, TopK
from eyespot.types import Query, Run
from tests.cli.conftest import copy_of_sample_gallery, run_json
from tests.command import refuses
from tests.lazy_import import requires
from tests.worlds import benchmarks as worlds
from tests.worlds.adapters import checkpoint

pytestmark = requires("cv2")
DEPTH = 100  # images that `eval` ranks at least, all of the sample


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = copy_of_sample_gallery(tmp_path_factory.mktemp("staged") / "gallery")
    describe(place, rooms.load("descriptors", "sift"), Describing())
    return place


@pytest.fixture(scope="module")
def collection(gallery: Path) -> Collection:
    return eyespot.open(gallery)


@pytest.fixture(scope="module")
def words(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queries in words; relevant is what the plain search has at ranks 2, 4 and 6."""
    texts = {"castle": "a castle", "owl": "an owl"}
    run = Nearest.of(collection, 10)([Query.words(text, id) for id, text in texts.items()])
    truth = {id: [hit.image for hit in run[id][1:6:2]] for id in texts}
    rows = [{"id": id, "text": text} for id, text in texts.items()]
    return worlds.own_set(tmp_path_factory.mktemp("words") / "data", rows, truth)


def pictures(collection: Collection) -> dict[str, Path]:
    """Pictures of the gallery as queries, by their ids there."""
    paths = [Path(facts["path"]) for facts in collection.view.facts([3, 17])]
    return {path.stem: path for path in paths}


@pytest.fixture(scope="module")
def looks(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two queries by picture; relevant is what the plain search has at ranks 2, 4 and 6."""
    queries = [Query.picture(path, id) for id, path in pictures(collection).items()]
    run = Nearest.of(collection, 10)(queries)
    truth = {query.id: [hit.image for hit in run[query.id][1:6:2]] for query in queries}
    rows = [{"id": id, "image": str(path)} for id, path in pictures(collection).items()]
    return worlds.own_set(tmp_path_factory.mktemp("looks") / "data", rows, truth)


def mean(found: dict[str, Any]) -> float:
    value: float = found["tasks"][0]["measures"]["AP@50"]["mean"]
    return value


def scored(run: Run, data: Path) -> float:
    return float(evaluate(run, read_qrels(data / "qrels.json"), MEASURES).means["AP@50"])


def by_words() -> list[Query]:
    return [Query.words("a castle", "castle"), Query.words("an owl", "owl")]


# -- end to end -------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_query_expansion_scores_as_the_chain_does(gallery: Path, collection: Collection, words: Path) -> None:
    shown = run_json("eval", "own", "--data", words, "-g", gallery, "--neighbours", "3")

    chain = Chain(Nearest.of(collection, 3), QueryExpansion.of(collection, 3, DEPTH))
    assert mean(shown) == pytest.approx(scored(chain(by_words()), words), abs=1e-9)
    assert mean(shown) != mean(run_json("eval", "own", "--data", words, "-g", gallery))
    assert (shown["system"], shown["made"]["arguments"]["neighbours"]) == ("starter + QE-3", 3)


@pytest.mark.long
@pytest.mark.parametrize("neighbours", [None, 2])
def test_local_descriptors_score_as_the_chain_does(
    gallery: Path, collection: Collection, looks: Path, neighbours: int | None
) -> None:
    more = [] if neighbours is None else ["--neighbours", neighbours]

    shown = run_json("eval", "own", "--data", looks, "-g", gallery, "--rerank-local", "spatial", *more)

    queries = [Query.picture(path, id) for id, path in pictures(collection).items()]
    first = [Nearest.of(collection, 1000)]
    if neighbours is not None:
        first = [Nearest.of(collection, neighbours), QueryExpansion.of(collection, neighbours, 1000)]
    run = Chain(*first, LocalRerank.of(collection, "spatial"), TopK(DEPTH))(queries)
    assert mean(shown) == pytest.approx(scored(run, looks), abs=1e-9)


@pytest.mark.long
def test_all_stages_come_together_with_wordings_and_a_judge(gallery: Path, words: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.json").write_text('{"castle": ["an old fort"]}')

    shown = run_json(
        "eval",
        *("own", "--data", words, "-g", gallery, "--neighbours", "2", "--expand", tmp_path / "terms.json"),
        *("--rerank", "encoder:starter", "--depth", "5", "--ledger", tmp_path / "ledger.sqlite"),
    )

    assert [stage["stage"] for stage in shown["tasks"][0]["stages"]][-1] == "re-ranked"


def test_the_same_numbers_again_from_their_summary_but_not_from_a_later_version(
    gallery: Path, words: Path, tmp_path: Path
) -> None:
    first = run_json("eval", "own", "--data", words, "-g", gallery, "--neighbours", "3", "--out", tmp_path / "report")
    summary = tmp_path / "report" / "summary.json"
    again = run_json("eval", "--from", summary)
    fields = json.loads(summary.read_text())
    fields["made"]["arguments"]["from_the_future"] = 1
    summary.write_text(json.dumps(fields))

    assert mean(again) == mean(first)
    refuses("eval", "--from", summary)


# -- a run, re-ranked ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adapter(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("quari"), collection.view.space.dim)


def test_an_adapter_re_ranks_the_first_hits_of_a_run(
    gallery: Path, collection: Collection, words: Path, adapter: Path, tmp_path: Path
) -> None:
    run = Nearest.of(collection, 30)(by_words())
    write_run(run, tmp_path / "run.txt")

    shown = run_json(
        "eval",
        *("own", "--data", words, "--run", tmp_path / "run.txt", "-g", gallery, "--adapt", adapter),
        *("--depth", "6", "--out", tmp_path / "report"),
    )

    by_hand = Adapted.of(collection, adapter, 6)(by_words(), run)
    assert mean(shown) == pytest.approx(scored(by_hand, words), abs=1e-9)
    assert shown["system"] == f"run.txt + {adapter.name}"


def test_hits_that_the_gallery_lacks_stay_behind_and_are_counted(
    gallery: Path, collection: Collection, words: Path, adapter: Path, tmp_path: Path
) -> None:
    run = Nearest.of(collection, 5)(by_words())
    write_run(Run({id: [("elsewhere", 9.0), *run[id]] for id in run}), tmp_path / "run.txt")

    shown = run_json("eval", "own", "--data", words, "--run", tmp_path / "run.txt", "-g", gallery, "--adapt", adapter)

    assert "2 of the first 100 hits are not in the gallery; they go behind those that are" in shown["notes"]
    by_hand = Adapted.of(collection, adapter, 5)(by_words(), run)
    assert mean(shown) == pytest.approx(scored(by_hand, words), abs=1e-9)


def test_local_descriptors_re_rank_a_run(gallery: Path, collection: Collection, looks: Path, tmp_path: Path) -> None:
    queries = [Query.picture(path, id) for id, path in pictures(collection).items()]
    run = Nearest.of(collection, 20)(queries)
    write_run(run, tmp_path / "run.txt")

    shown = run_json(
        "eval",
        *("own", "--data", looks, "--run", tmp_path / "run.txt", "-g", gallery, "--rerank-local", "spatial"),
        *("--depth", "8"),
    )

    assert mean(shown) == pytest.approx(scored(LocalRerank.of(collection, "spatial", 8)(queries, run), looks), abs=1e-9)
