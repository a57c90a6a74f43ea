"""Re-ranking by local features: numbers by hand, and a turned photo found again among fifty others."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import eyespot
from eyespot import rooms, sample
from eyespot.gallery.describing import Describing, describe
from eyespot.gallery.local import Described
from eyespot.search.chain import chain_of
from eyespot.search.collection import Collection
from eyespot.search.local.chamfer import Chamfer
from eyespot.search.local.spatial import Spatial, mutual_matches
from eyespot.search.local_rerank import LocalRerank
from eyespot.settings.search import StageSettings
from eyespot.types import EyespotError, LocalFeatures, Query, Run, UsageError
from tests.lazy_import import requires
from tests.search.conftest import BRIDGE
from tests.wording import check_wording, raises
from tests.worlds import make_gallery

pytestmark = requires("cv2")


def features(descriptors: object, keypoints: object = None) -> LocalFeatures:
    rows = np.array(descriptors, np.float16)
    return LocalFeatures(rows, np.zeros((len(rows), 2), np.float32) if keypoints is None else np.array(keypoints))


def test_chamfer_is_the_mean_of_the_best_cosines() -> None:
    query = features([[3, 0], [0, 1]])  # east, north
    image = features([[0, 2], [1, 1]])  # north, north-east

    assert Chamfer().score(query, image) == pytest.approx((np.sqrt(0.5) + 1) / 2, abs=1e-6)
    assert Chamfer().score(features([[1, 0]]), features([[-1, 0]])) == -1


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 500, (count, 2)).astype(np.float32)


def turned(places: np.ndarray) -> np.ndarray:
    """Turned by 90 degrees, halved and moved."""
    return (places[:, ::-1] * [0.5, -0.5] + [10, 300]).astype(np.float32)


def test_the_score_counts_the_points_that_moved_together() -> None:
    """Twelve descriptors, each its own direction; three of their places are elsewhere in the image."""
    places = points(12)
    moved = turned(places)
    moved[[1, 5, 7]] += [[90, 70], [-80, 120], [60, -140]]

    assert Spatial().score(features(np.eye(12), places), features(np.eye(12), moved)) == 9


@pytest.mark.parametrize(("matches", "score"), [(3, 0), (4, 0), (5, 5)])
def test_four_matches_say_nothing_for_some_homography_fits_any_four(matches: int, score: int) -> None:
    places = points(matches)

    assert Spatial().score(features(np.eye(matches), places), features(np.eye(matches), turned(places))) == score


def test_places_that_span_no_plane_say_nothing() -> None:
    line = np.repeat(np.arange(8, dtype=np.float32)[:, None], 2, axis=1)

    assert Spatial().score(features(np.eye(8), line), features(np.eye(8), points(8))) == 0


def test_a_match_must_be_mutual_and_stand_out() -> None:
    """Two descriptors of the query want the first of the image; the third's two candidates are nearly equal."""
    query = features([[1, 0, 0], [0.9, 0.1, 0], [0, 0, 1]])
    image = features([[1, 0, 0], [0, 0.02, 1], [0, -0.02, 1]])

    assert [rows.tolist() for rows in mutual_matches(query, image, 0.8)] == [[0], [0]]
    assert [rows.tolist() for rows in mutual_matches(query, image, 1)] == [[0, 2], [0, 1]]


@pytest.mark.parametrize(
    ("room", "spec"), [("search.local", "spatial:2"), ("search.local", "chamfer:3"), ("descriptors", "sift:3")]
)
def test_settings_that_there_are_not_are_refused(room: str, spec: str) -> None:
    with raises(UsageError):
        rooms.load(room, spec)


@pytest.fixture
def another_view(tmp_path: Path) -> Path:
    return another_view_of(tmp_path)


def another_view_of(folder: Path) -> Path:
    """The bridge turned, cut and made smaller."""
    picture = Image.open(sample.photos() / BRIDGE).convert("RGB")
    picture = picture.rotate(35, Image.Resampling.BICUBIC, expand=True)
    width, height = picture.size
    picture = picture.crop((width // 5, height // 5, width * 4 // 5, height * 4 // 5))
    picture.resize((picture.width * 3 // 4, picture.height * 3 // 4)).save(folder / "view.jpg")
    return folder / "view.jpg"


def name_of(run: Run, rank: int = 0) -> str:
    return Path(run.facts[run["q"][rank].image]["path"]).name


def backwards(run: Run) -> Run:
    made = Run.from_orders({query: [hit.image for hit in run[query]][::-1] for query in run})
    made.facts = run.facts
    return made


def test_spatial_verification_finds_a_turned_and_cut_photo(collection: Collection, another_view: Path) -> None:
    last = backwards(collection.search(image=sample.photos() / BRIDGE, k=100).run)

    run = LocalRerank.by_name(collection.view, "spatial")([Query.picture(another_view)], last)

    assert name_of(last, -1) == BRIDGE == name_of(run)
    assert run["q"][0].score > 2 * run["q"][1].score
    assert sorted(run.image) == sorted(last.image)


@pytest.mark.parametrize("method", ["chamfer", "spatial"])
def test_a_photo_finds_itself_and_the_blank_one_stays_behind(collection: Collection, method: str) -> None:
    last = backwards(collection.search(image=sample.photos() / BRIDGE, k=100).run)

    run = LocalRerank.by_name(collection.view, method)([Query.picture(sample.photos() / BRIDGE)], last)

    assert (name_of(run), name_of(run, -1)) == (BRIDGE, "blank.png")
    assert run.notes[0].endswith(": 1")
    assert (np.diff(run.score) <= 0).all()


def test_what_lies_beyond_the_depth_keeps_its_place(collection: Collection, another_view: Path) -> None:
    first = backwards(collection.search(image=sample.photos() / BRIDGE, k=100).run)

    run = LocalRerank.by_name(collection.view, "spatial", depth=10)([Query.picture(another_view)], first)

    assert set(run.image[:10]) == set(first.image[:10])
    assert run.image[10:].tolist() == first.image[10:].tolist()


def test_equal_scores_keep_the_order_they_had_and_say_it(collection: Collection, another_view: Path) -> None:
    """In single precision, too; measures that average over equal scores find none."""
    first = collection.search(image=another_view, k=100).run

    run = LocalRerank.by_name(collection.view, "spatial")([Query.picture(another_view)], first)

    rank = {image: at for at, image in enumerate(first.image)}
    assert (np.diff(run.score.astype(np.float32)) < 0).all()
    close = [(a, b) for a, b in pairwise(run["q"]) if a.score - b.score < 1e-4]
    assert close and all(rank[a.image] < rank[b.image] for a, b in close)


def test_a_stage_without_a_run_or_a_picture_says_what_it_needs(collection: Collection, another_view: Path) -> None:
    stage, words, picture = (
        LocalRerank.by_name(collection.view, "chamfer"),
        Query.words("a"),
        Query.picture(another_view),
    )

    for query, run in ((words, None), (words, collection.search("a bridge").run), (picture, Run({}))):
        with raises(UsageError):
            stage([query], run)


def test_a_query_picture_in_which_nothing_stands_out_keeps_its_ranking(collection: Collection, tmp_path: Path) -> None:
    Image.new("RGB", (60, 60), "grey").save(tmp_path / "grey.png")
    first = collection.search(image=another_view_of(tmp_path), k=5).run
    both = Run({"grey": first["q"], "bridge": first["q"][::-1]})
    queries = [Query.picture(tmp_path / "grey.png", "grey"), Query.picture(tmp_path / "view.jpg", "bridge")]

    run = LocalRerank.by_name(collection.view, "spatial")(queries, both)

    assert run["grey"] == first["q"]
    assert Path(first.facts[run["bridge"][0].image]["path"]).name == BRIDGE
    assert str(tmp_path / "grey.png") in run.notes[0]


def test_an_older_set_of_another_setting_does_not_stand_in_the_way(collection: Collection, tmp_path: Path) -> None:
    """The older one has more features of each picture, and would come first."""
    copied = Path(shutil.copytree(collection.gallery.path, tmp_path / "gallery"))
    sift = rooms.load("descriptors", "sift")
    describe(copied, replace(sift, settings={**sift.settings, "form": "older"}), Describing(count=200))

    stage = LocalRerank.by_name(eyespot.open(copied).view, "spatial")

    assert (stage.described.note.count, stage.described.note.settings["form"]) == (100, "root")


def test_a_ranker_that_gives_no_number_is_told(collection: Collection, another_view: Path) -> None:
    class Lost:
        def score(self, query: LocalFeatures, image: LocalFeatures) -> float:
            return float("nan")

    stage = LocalRerank(Described.of(collection.view), Lost(), rooms.load("descriptors", "sift"), "lost")

    with pytest.raises(EyespotError, match="nan"):
        stage([Query.picture(another_view)], collection.search(image=another_view).run)


def test_a_gallery_described_otherwise_is_told_to_describe_again(collection: Collection) -> None:
    sift = rooms.load("descriptors", "sift")
    described = Described.of(collection.view)

    with pytest.raises(EyespotError, match="eyespot describe"):
        LocalRerank(described, Chamfer(), replace(sift, settings={"side": 512}))


def test_stages_in_a_row_give_the_k_best_under_a_filter(collection: Collection, another_view: Path) -> None:
    query, allowed = collection.query("a bridge", another_view), collection.allowed("path NOT LIKE '%pontduGard%'")

    spatial, chamfer = (StageSettings(neighbours=at, rerank_local=how) for at, how in ((2, "spatial"), (1, "chamfer")))
    (run,) = collection.answers([query], chain_of(collection, spatial, k=3))
    (others,) = collection.answers([query], chain_of(collection, chamfer, k=100, mask=allowed))

    assert (name_of(run), len(run["q"])) == (BRIDGE, 3)
    assert {"expanded": 2, "rerank_local": "spatial"}.items() <= run.header.items()
    assert len(others["q"]) == 51 and BRIDGE not in [name_of(others, rank) for rank in range(51)]


def test_a_gallery_that_was_not_described_tells_the_way(tmp_path: Path) -> None:
    with raises(UsageError):
        LocalRerank.by_name(eyespot.open(make_gallery(tmp_path, 1)).view, "chamfer")


# -- a learned re-ranker in an ONNX file: what it gets, what it says, and files that are none -------------------------


def ranker(path: Path, names: tuple[str, ...] = ("query", "image"), reduced: bool = True) -> Path:
    """A network that computes the Chamfer similarity: the mean of each query descriptor's best match."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Transpose", [names[1]], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", [names[0], "turned"], ["alike"]),
        helper.make_node("ReduceMax", ["alike", "last"], ["best"], keepdims=0),
    ]
    nodes += [helper.make_node("ReduceMean", ["best"], ["score"], keepdims=0)] if reduced else []
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None, None]) for name in names]
    output = helper.make_tensor_value_info("score" if reduced else "best", TensorProto.FLOAT, None)
    last = numpy_helper.from_array(np.array([2], np.int64), "last")
    graph = helper.make_graph(nodes, "chamfer", inputs, [output], [last])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, str(path))
    return path


def random_features(seed: int, count: int) -> LocalFeatures:
    rng = np.random.default_rng(seed)
    return LocalFeatures(rng.integers(0, 255, (count, 8), np.uint8), rng.uniform(0, 50, (count, 3)).astype(np.float32))


def test_a_network_scores_as_its_formula_in_numpy(tmp_path: Path) -> None:
    query, image = random_features(0, 5), random_features(1, 9)

    found = rooms.load("search.local", f"onnx:{ranker(tmp_path / 'r.onnx')}").score(query, image)

    left, right = (one.descriptors / np.linalg.norm(one.descriptors, axis=1, keepdims=True) for one in (query, image))
    assert found == pytest.approx((left @ right.T).max(axis=1).mean(), abs=1e-6)


def test_files_that_are_no_re_ranker_are_refused(tmp_path: Path) -> None:
    """One that is missing, one that is none, one with other inputs, and one that gives more than one number."""
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    others, whole = ranker(tmp_path / "others.onnx", ("left", "right")), ranker(tmp_path / "whole.onnx", reduced=False)

    for file in (tmp_path / "missing.onnx", tmp_path / "broken.onnx", others, whole):
        with pytest.raises(UsageError) as refused:
            rooms.load("search.local", f"onnx:{file}").score(random_features(0, 5), random_features(1, 9))
        if file.stem != "broken":  # whose sentence is that of onnxruntime
            check_wording(str(refused.value))
