"""`eyespot build pairs labelled` and what trains on it: labels to pairs to TA and QuARI, as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from eyespot.adapters.linear import load
from eyespot.cli import app
from eyespot.gallery.view import Gallery
from eyespot.search.labelled import labels_of
from eyespot.types import NothingFound, UsageError
from tests.lazy_import import requires
from tests.worlds import draw

KINDS, EACH = 6, 4


def ran(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def run_json(*words: object) -> Any:
    done = ran(*words, "--json")
    assert done.exit_code == 0, done.output or done.exception
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six kinds of four photos, as pairs of which a third is held out, and a gallery of all of them."""
    folder = tmp_path_factory.mktemp("world")
    for kind in range(KINDS):
        for at in range(EACH):
            draw(folder / "set" / f"kind{kind}" / f"{kind}-{at}.png", 50 * kind + at)
    run_json("build", "pairs", "labelled", folder / "set", "--out", folder / "pairs", "--held-out", 0.34)
    lists = sorted((folder / "pairs").glob("*/*/pictures.parquet"))
    run_json("index", *lists, "-g", folder / "gallery")
    return folder


@pytest.mark.long
def test_every_option_of_the_builder_counts(world: Path, tmp_path: Path) -> None:
    def pairs(*words: object) -> Any:
        return run_json("build", "pairs", "labelled", *words)

    usual = pairs(world / "set", "--out", tmp_path / "usual")
    assert (usual["captions"], usual["classes"]) == (24, {"train": 6})
    assert pairs(world / "set", "--out", tmp_path / "b", "--count", 8, "--seed", 3)["captions"] == 8
    assert pairs(world / "set", "--out", tmp_path / "c", "--per-class", 2, "--workers", 1)["captions"] == 12
    assert pairs(world / "set", "--out", tmp_path / "d", "--partners", 2)["captions"] == 48
    (tmp_path / "without.txt").write_text("0-0.png\n0-1.png\n0-2.png\n")
    without = pairs(world / "set", "--out", tmp_path / "e", "--without", tmp_path / "without.txt")
    assert without["left_out"] == {"is left out by --without": 3, "is the one picture of its class": 1}
    of_gallery = pairs(world / "gallery", "--label", "label", "--out", tmp_path / "f")
    assert (of_gallery["captions"], "pictures" in of_gallery) == (24, False)


def test_files_of_universal_embeddings_are_named_by_split(world: Path, tmp_path: Path) -> None:
    entries = [{"path": f"kind{at // 2}/{at // 2}-{at % 2}.png", "class_id": at // 2} for at in range(4)]
    (tmp_path / "info_files" / "kinds").mkdir(parents=True)
    (tmp_path / "info_files" / "kinds" / "val.json").write_text(json.dumps(entries))
    words = ("--images", world / "set", "--split", "val", "--out", tmp_path / "out")

    assert run_json("build", "pairs", "labelled", tmp_path / "info_files", *words)["captions"] == 4


def test_a_gallery_needs_a_column(world: Path, tmp_path: Path) -> None:
    unnamed = ran("build", "pairs", "labelled", world / "gallery", "--out", tmp_path / "a")
    unknown = ran("build", "pairs", "labelled", world / "gallery", "--label", "colour", "--out", tmp_path / "b")

    assert isinstance(unnamed.exception, UsageError) and "say with --label" in str(unnamed.exception)
    assert isinstance(unknown.exception, NothingFound) and "has no column colour" in str(unknown.exception)


@pytest.mark.long
@requires("torch")
def test_a_linear_adapter_has_a_class_for_each_label(world: Path, tmp_path: Path) -> None:
    small = ("--width", 8, "--epochs", 1)
    by_column = run_json("train", "linear", world / "gallery", "--labels", "label", "--out", tmp_path / "a", *small)
    by_pairs = run_json(
        "train", "linear", world / "gallery", "--labels", f"{world}/pairs/train/", "--out", tmp_path / "b", *small
    )

    assert (by_column["vectors"], by_column["classes"]) == (24, 6)
    assert (by_pairs["vectors"], by_pairs["classes"]) == (16, 4)
    assert load(tmp_path / "a").space == "starter"


@requires("torch")
def test_arrays_have_a_line_for_each_image(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("texts", "images"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(6, 8)).astype(np.float32))
    (tmp_path / "labels.txt").write_text("a\na\nb\nb\n\nb\n")
    (tmp_path / "short.txt").write_text("a\n")
    line = ("train", "linear", tmp_path, "--width", 4, "--epochs", 1, "--out", tmp_path / "out")

    done = run_json(*line, "--labels", tmp_path / "labels.txt")
    short = ran(*line, "--labels", tmp_path / "short.txt")

    assert (done["vectors"], done["classes"]) == (10, 2)
    assert "has 1 lines for 6 images" in str(short.exception)


@requires("torch")
def test_quari_trains_on_pictures_that_ask_for_pictures(world: Path, tmp_path: Path) -> None:
    small = ("--rank", 2, "--hidden", 8, "--heads", 2, "--batch", 4, "--epochs", 1, "--keep-anyway", "--device", "cpu")
    sides = ("--captions", f"{world}/pairs/train/", "--held-out-captions", f"{world}/pairs/held-out/")

    done = run_json("train", "quari", world / "gallery", *sides, "--out", tmp_path / "run", *small)

    assert done["model"] == str(tmp_path / "run" / "model") and done["validation"]["gallery"] == 24


@requires("torch")
def test_a_picture_that_asks_has_the_vector_that_the_gallery_has(world: Path) -> None:
    from eyespot.search.captioned import captioned, said_in

    view = Gallery(world / "gallery").view(Gallery(world / "gallery").stem())
    (part,) = sorted((world / "pairs" / "train").glob("*/captions.parquet"))

    pairs = captioned(view, None, list(said_in(view, str(part))))  # type: ignore[arg-type]  # nothing is embedded

    assert len(pairs.texts) == 16
    assert all((pairs.images == text).all(axis=1).any() for text in pairs.texts)
    assert not (pairs.texts == pairs.images[pairs.of]).all(axis=1).any()


def test_a_backbone_is_not_trained_on_pairs_of_pictures(world: Path, tmp_path: Path) -> None:
    done = ran("train", "backbone", world / "gallery", "--captions", f"{world}/pairs/train/", "--out", tmp_path)

    assert "a backbone needs captions" in str(done.exception) or "not a model" in str(done.exception)


def test_labels_of_nothing_are_refused(world: Path, tmp_path: Path) -> None:
    view = Gallery(world / "gallery").view(Gallery(world / "gallery").stem())
    (tmp_path / "labels.csv").write_text("file_name,label\nnowhere.png,x\n")
    (tmp_path / "plain.csv").write_text("file_name\n0-0.png\n")

    with pytest.raises(NothingFound, match="has a label"):
        labels_of(view, str(tmp_path / "labels.csv"))
    with pytest.raises(UsageError, match="has no column label"):
        labels_of(view, str(tmp_path / "plain.csv"))
    with pytest.raises(UsageError, match="has no column colour"):
        labels_of(view, "colour")
