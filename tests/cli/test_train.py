"""`eyespot train`, `eyespot mine` and `eyespot build pairs`: to the end, killed on the way, and from a gallery."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models
import typer
import yaml

from eyespot import sample
from eyespot.adapters.linear import load
from eyespot.adapters.quari import FrozenComparison
from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings
from eyespot.adapters.quari.training.reading import read_pairs
from eyespot.cli.train import report
from eyespot.extras import install_line
from eyespot.gallery.view import Gallery
from eyespot.search.captioned import labels_of
from eyespot.types import NothingFound, UsageError
from tests.cli.conftest import done, run_json
from tests.command import Done, refuses
from tests.lazy_import import lazy_import, requires
from tests.wording import raises
from tests.worlds import draw
from tests.worlds.kills import killed_at

torch = lazy_import("torch")
pytestmark = requires("torch")
SMALL = [
    *("--rank", "2", "--hidden", "8", "--steps", "2", "--layers", "1", "--heads", "2"),
    *("--batch", "16", "--validate-every", "10", "--device", "cpu"),
]
SMALL += ["--preset", "released"]
ANYWAY = ["--keep-anyway"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def noisy_pairs(folder: Path, count: int) -> Path:
    """So many images of eight components, and texts near them."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(count, 8)).astype(np.float32)
    np.save(folder / "images.npy", images)
    np.save(folder / "texts.npy", (images + 0.3 * rng.normal(size=images.shape)).astype(np.float32))
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return noisy_pairs(tmp_path_factory.mktemp("pairs"), 128)


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four sample photos, each with a caption in its labels."""
    folder = tmp_path_factory.mktemp("captioned")
    photos = sorted(path for path in Path(sample.photos()).rglob("*.jpg"))[:24]
    rows = [f'{path},"{path.parent.name} {path.stem}"' for path in photos]
    (folder / "list.csv").write_text("path,caption\n" + "\n".join(rows) + "\n")
    done("index", folder / "list.csv", "-g", folder / "gallery")
    return folder / "gallery"


def trained(pairs: Path, out: Path, *more: object) -> Done:
    return done("train", "quari", pairs, "--out", out, *SMALL, *more)


def test_a_training_ends_in_a_checkpoint_that_serves(pairs: Path, tmp_path: Path) -> None:
    ran = trained(pairs, tmp_path / "out", "--epochs", 2, "--json", "-e", "my encoder", *ANYWAY)
    line = ["adapt", tmp_path / "out" / "model", "--queries", pairs / "texts.npy", "--gallery", pairs / "images.npy"]
    done(*line, "-k", 5, "--out", tmp_path / "found.npz")

    report = json.loads(ran.stdout)
    assert (report["step"], report["steps"], report["model"]) == (6, 6, str(tmp_path / "out" / "model"))
    assert "102 pairs, 26 held out, 6 steps of 2 × 16" in ran.stderr
    assert np.load(tmp_path / "found.npz")["ids"].shape == (128, 5)
    # Texts are their images with some noise: the vectors as they are find all but all, six steps of nothing much.
    assert report["RR_frozen"] > 0.9 > report["RR"] and report["validation"]["gallery"] == 128
    assert "the model finds less than the vectors as they are: RR" in ran.stderr
    config = yaml.safe_load((tmp_path / "out" / "model" / "config.yml").read_text())
    assert config["card"]["encoder"] == "my encoder" == config["feature_extractor"]
    assert config["card"]["validation"]["images"] == 13 and config["card"]["pairs"] == 102


def test_a_model_that_does_not_help_is_not_named(pairs: Path, tmp_path: Path) -> None:
    line = ("train", "quari", pairs, "--out", tmp_path / "out", *SMALL, "--epochs", 1)
    ran, again = done(*line, "--json", code=4), done(*line, "--keep-anyway")

    report = json.loads(ran.stdout)
    assert report["model"] is None and report["validation"]["better"] is False
    assert "no model is named" in ran.stderr and "an estimate from this spread" in ran.stderr
    assert again.stdout.strip() == str(tmp_path / "out" / "model")
    assert (tmp_path / "out" / "model" / "config.yml").is_file()


@pytest.mark.long
def test_a_model_that_helps_is_named_by_the_default_preset(tmp_path: Path) -> None:
    """Texts have an aspect that no image has: the identity start learns to look away from it."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(600, 16)).astype(np.float32)
    texts = np.concatenate([images[:, :12], 3 * rng.normal(size=(600, 4))], axis=1).astype(np.float32)
    np.savez(tmp_path / "pairs.npz", images=images, texts=texts)
    small = ("--rank", 4, "--hidden", 32, "--steps", 1, "--layers", 1, "--heads", 2, "--batch", 32, "--epochs", 12)

    ran = done(
        *("train", "quari", tmp_path / "pairs.npz", "--out", tmp_path / "out", *small, "--noise", 0),
        *("--rate", 3e-3, "--device", "cpu", "--json", "--without", "no-semi-positives"),
    )

    report = json.loads(ran.stdout)
    assert report["validation"]["better"] and report["model"] and report["needs"] == []
    assert "the model finds more than the vectors as they are: RR" in ran.stderr


@pytest.mark.long
def test_a_killed_training_ends_in_the_same_weights(pairs: Path, tmp_path: Path) -> None:
    how = ["--epochs", "8", "--checkpoint-every", "10", "--dropout", "0.1", "--patience", "0", *ANYWAY]

    line = ("train", "quari", pairs, "--out", tmp_path / "cut", *SMALL, *how)
    assert killed_at(3, *line, part="checkpoint.pt")  # the first has its name, the second has not
    resumed = trained(pairs, tmp_path / "cut", *how, "--json")
    whole = trained(pairs, tmp_path / "whole", *how, "--json")

    assert json.loads(resumed.stdout) | {"model": ""} == json.loads(whole.stdout) | {"model": ""}
    for name in ("log.csv", "model/weights.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_dry_run_counts_and_writes_nothing(pairs: Path, tmp_path: Path) -> None:
    ran = trained(pairs, tmp_path / "out", "--dry-run", "--json", "--without", "one-step", "--held-out-share", 0)

    report = json.loads(ran.stdout)
    assert (report["pairs"], report["held_out"], report["steps"]) == (128, 0, 40) and report["bytes"] > 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        "quari nowhere",
        "quari {pairs} --without everything",
        "quari {pairs} --captions text",
        "quari {pairs} --held-out-captions held.csv",
        "quari {pairs} --preset best",
        "quari {pairs} --batch 500",
        "linear {gallery}",
        "backbone {gallery} --captions caption",
        "backbone {pairs} --captions caption",
        "backbone {gallery}",
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(words: str, pairs: Path, gallery: Path, tmp_path: Path) -> None:
    refuses("train", *words.format(pairs=pairs, gallery=gallery).split(), "--out", tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_semi_positives_mined_beforehand_are_taken(pairs: Path, tmp_path: Path) -> None:
    mined = run_json("mine", "semipositives", pairs / "images.npy", "--out", tmp_path / "semi.npz")
    trained(pairs, tmp_path / "out", "--epochs", 1, "--semi-positives", tmp_path / "semi.npz", *ANYWAY)

    assert mined == {"out": str(tmp_path / "semi.npz"), "images": 128, "keep": 2, "without": 0}
    assert not (tmp_path / "out" / "semi-positives.npz").exists()


def test_a_gallery_with_captions_is_trained_on(gallery: Path, tmp_path: Path) -> None:
    small = ["--batch", 8, "--epochs", 1, "--captions", "caption", *ANYWAY]
    ran = trained(gallery, tmp_path / "out", *small)
    found = done("search", "a heron", "-g", gallery, "--adapt", tmp_path / "out" / "model", "--paths", "-k", 3)

    assert "19 pairs, 5 held out" in ran.stderr
    assert len(found.stdout.splitlines()) == 3


def test_captions_of_files_join_a_gallery_and_what_is_not_there_is_told(gallery: Path, tmp_path: Path) -> None:
    photos = sorted(path.name for path in Path(sample.photos()).rglob("*.jpg"))
    table = {"file_name": photos[:30], "caption": [f"photo {name}" for name in photos[:30]]}
    pq.write_table(pa.table(table), tmp_path / "captions.parquet")

    ran = trained(
        gallery, tmp_path / "out", "--captions", tmp_path / "captions.parquet", "--captions", "caption", "--dry-run"
    )

    assert "of 30 captions of" in ran.stderr and "pictures are not there" in ran.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery of eight drawn photos with captions, in the space of a tiny model."""
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("pictured")
    model = tiny_models.hf_clip(folder / "clip")
    rows = [f'{draw(folder / f"{at}.png", at)},"caption {at}"' for at in range(8)]
    (folder / "list.csv").write_text("path,caption\n" + "\n".join(rows) + "\n")
    done("index", folder / "list.csv", "-g", folder / "gallery", "-e", f"hf:{model}")
    return folder / "gallery"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_backbone_is_trained_and_indexes_and_half_a_model_is_none(pictured: Path, tmp_path: Path) -> None:
    """As a power cut leaves it when its files were not flushed: empty, or with empty files."""
    small = ("--captions", "caption", "--batch", 4, "--epochs", 1, "--blocks", 1, "--seed", 3)
    line = ("train", "backbone", pictured, "--out", tmp_path / "out", *small)
    first = done(*line)
    model, name = tmp_path / "out" / "model", first.stdout.strip()
    whole = contents(model)
    (model / "model.safetensors").write_bytes(b"")
    refuses(*line)
    shutil.rmtree(model)
    model.mkdir()
    report = run_json(*line)
    gallery = shutil.copytree(pictured, tmp_path / "gallery")
    done("index", "-g", gallery, "-e", name)

    assert "8 pairs, 2 steps of 4" in first.stderr and contents(model) == whole
    assert (report["step"], report["unread"], report["model"]) == (2, 0, name)
    assert Gallery(gallery).encoders[1:] == [name]


def test_coco_is_made_into_pairs_indexed_and_trained_on(tmp_path: Path) -> None:
    photos = sorted(path for path in Path(sample.photos()).rglob("*.jpg"))[:6]
    images = [{"id": at, "file_name": str(path.relative_to(sample.photos()))} for at, path in enumerate(photos)]
    captions = [{"id": at, "image_id": at % 6, "caption": f"photo {at % 6}, once more {at}"} for at in range(12)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images, "annotations": captions}))

    line = ("build", "pairs", "coco", tmp_path / "captions.json", "--images", sample.photos())
    report = run_json(*line, "--out", tmp_path / "coco")
    done("index", tmp_path / "coco" / "captions" / "pictures.parquet", "-g", tmp_path / "gallery")
    small = ("--captions", f"{tmp_path}/coco/", "--batch", 4, "--held-out-share", 0)
    ran = trained(tmp_path / "gallery", tmp_path / "out", *small, "--dry-run")

    assert (report["files"], report["pictures"], report["captions"], report["failures"]) == (1, 6, 12, [])
    assert "12 of 12 captions" in ran.stderr and "12 pairs, 0 held out" in ran.stderr


def test_files_that_make_no_pairs_are_told_and_the_code_is_3(tmp_path: Path) -> None:
    whole = {"images": [{"id": 1, "file_name": "1.jpg"}], "annotations": [{"image_id": 1, "caption": "a"}]}
    (tmp_path / "good.json").write_text(json.dumps(whole))
    (tmp_path / "bad.json").write_text("[")

    files = (tmp_path / "good.json", tmp_path / "bad.json")
    ran = done("build", "pairs", "coco", *files, "--images", tmp_path, "--out", tmp_path / "out", code=3)

    assert "bad.json: is not COCO JSON" in ran.stderr
    assert ran.stdout.splitlines()[0] == "1 file (0 before)  1 row of pictures.parquet  1 row of captions.parquet"


def test_a_linear_adapter_of_the_same_pairs(pairs: Path, tmp_path: Path) -> None:

    line = ("train", "linear", pairs, "--out", tmp_path / "out", "--width", 4, "--epochs", 1, "-e", "mine")
    report = run_json(*line)

    adapter = load(tmp_path / "out")
    assert report == {"out": str(tmp_path / "out"), "vectors": 256, "classes": 128, "width": 4}
    assert adapter.apply(np.load(pairs / "texts.npy")).shape == (128, 4) and adapter.space == "mine"


def test_without_torch_mining_works_and_training_says_what_to_install(pairs: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from eyespot.cli import main; main()"

    def ran(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True)

    mined = ran("mine", "semipositives", pairs, "--out", tmp_path / "semi.npz")
    trained = ran("train", "quari", pairs, "--out", tmp_path / "out", *SMALL)

    assert mined.returncode == 0, mined.stderr
    assert trained.returncode == 1 and install_line("torch") in trained.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


TINY = [
    *("--rank", "2", "--hidden", "8", "--steps", "1", "--layers", "1", "--heads", "1", "--batch", "8"),
    *("--epochs", "1", "--accumulate", "1", "--device", "cpu", "--dropout", "0.0", "--patience", "0"),
    *("--preset", "released", "--held-out-share", "0.05", "--keep-anyway"),
]


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return noisy_pairs(tmp_path_factory.mktemp("forty"), 40)


def log(forty: Path, out: Path, *more: object) -> list[dict[str, str]]:
    done("train", "quari", forty, "--out", out, *TINY, *more)
    return list(csv.DictReader((out / "log.csv").read_text().splitlines()))


@pytest.fixture(scope="module")
def usual(forty: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return log(forty, tmp_path_factory.mktemp("usual") / "out")


def plan(forty: Path, *more: object) -> dict[str, int]:
    report: dict[str, int] = run_json("train", "quari", forty, "--out", "never", *TINY, *more, "--dry-run")
    return report


@pytest.mark.parametrize(
    "option",
    [
        "--noise 0",
        "--temperature 0.5",
        "--clip 0.001",
        "--rate 0.1",
        "--seed 1",
        "--precision bfloat16",
        "--loss linear",
    ],
)
def test_what_changes_a_training(option: str, forty: Path, usual: list[dict[str, str]], tmp_path: Path) -> None:
    changed = log(forty, tmp_path / "out", *option.split())

    assert len(changed) == len(usual) and changed != usual


def test_a_plan_knows_accumulated_batches_and_activations_that_are_recomputed(forty: Path) -> None:
    deep = ("--layers", 4, "--steps", 4, "--activations")

    assert plan(forty)["steps"] == 2 * plan(forty, "--accumulate", 2)["steps"] == 4
    assert plan(forty, *deep, "recomputed")["bytes"] < plan(forty, *deep, "kept")["bytes"]


def test_pairs_that_are_held_out_are_not_trained_on(forty: Path, tmp_path: Path) -> None:
    arrays = {name: np.load(forty / f"{name}.npy") for name in ("texts", "images")}
    for name, array in arrays.items():
        np.save(tmp_path / name, array[:10].astype(np.float16))
    ran = done("train", "quari", forty, "--out", tmp_path / "out", *TINY, "--held-out", tmp_path, "--dry-run")

    assert "30 pairs, 10 held out" in ran.stderr and "10 pairs with an image or a text" in ran.stderr
    with raises(UsageError):
        read_pairs(forty).without(read_pairs(forty))


def mined(forty: Path, out: Path, *more: object) -> tuple[np.ndarray, np.ndarray]:
    done("mine", "semipositives", forty / "images.npy", "--out", out, *more)
    with np.load(out) as arrays:
        return arrays["rows"], arrays["weights"]


def test_semi_positives_replace_no_vectors(forty: Path) -> None:
    before = (forty / "images.npy").read_bytes()
    refuses("mine", "semipositives", forty / "images.npy", "--out", forty / "images.npy")
    assert (forty / "images.npy").read_bytes() == before


def test_semi_positives_are_kept_of_neighbours_and_weighed(forty: Path, tmp_path: Path) -> None:
    rows, weights = mined(forty, tmp_path / "usual.npz")
    more, _ = mined(forty, tmp_path / "more.npz", "--keep", 3)
    near, heavy = mined(forty, tmp_path / "near.npz", "--neighbours", 3)
    same, warm = mined(forty, tmp_path / "warm.npz", "--temperature", 1.0)

    assert (rows.shape, more.shape) == ((40, 2), (40, 3))
    assert np.array_equal(near, rows) and (heavy > weights).all()  # fewer share the softmax
    assert np.array_equal(same, rows) and (warm < weights[:, :1]).all()


KINDS, EACH = 6, 4


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


@requires("torch")
def test_arrays_have_a_line_for_each_image(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("texts", "images"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(6, 8)).astype(np.float32))
    (tmp_path / "labels.txt").write_text("a\na\nb\nb\n\nb\n")
    (tmp_path / "short.txt").write_text("a\n")
    line = ("train", "linear", tmp_path, "--width", 4, "--epochs", 1, "--out", tmp_path / "out")

    found = run_json(*line, "--labels", tmp_path / "labels.txt")

    assert (found["vectors"], found["classes"]) == (10, 2)
    refuses(*line, "--labels", tmp_path / "short.txt")


@requires("torch")
def test_quari_trains_on_pictures_that_ask_for_pictures(world: Path, tmp_path: Path) -> None:
    small = ("--rank", 2, "--hidden", 8, "--heads", 2, "--batch", 4, "--epochs", 1, "--keep-anyway", "--device", "cpu")
    sides = ("--captions", f"{world}/pairs/train/", "--held-out-captions", f"{world}/pairs/held-out/")

    done = run_json("train", "quari", world / "gallery", *sides, "--out", tmp_path / "run", *small)

    assert done["model"] == str(tmp_path / "run" / "model") and done["validation"]["gallery"] == 24


def test_labels_of_nothing_are_refused(world: Path, tmp_path: Path) -> None:
    view = Gallery(world / "gallery").view(Gallery(world / "gallery").stem())
    (tmp_path / "labels.csv").write_text("file_name,label\nnowhere.png,x\n")
    (tmp_path / "plain.csv").write_text("file_name\n0-0.png\n")

    with raises(NothingFound):
        labels_of(view, str(tmp_path / "labels.csv"))
    for labels in (str(tmp_path / "plain.csv"), "colour"):
        with raises(UsageError):
            labels_of(view, labels)
    refuses("train", "backbone", world / "gallery", "--captions", f"{world}/pairs/train/", "--out", tmp_path)
    line = ("build", "pairs", "labelled", world / "gallery", "--out")
    refuses(*line, tmp_path / "a")
    refuses(*line, tmp_path / "b", "--label", "colour", code=4)


loop = lazy_import("eyespot.adapters.quari.training.loop")
VECTORS = np.eye(50, dtype=np.float32)
PAIRS = TrainingData(Pairs(VECTORS, VECTORS, np.arange(50)))


def sentences(found: FrozenComparison, frozen: float, capsys: pytest.CaptureFixture[str]) -> str:
    """What stands on stderr after six steps, of which the first was the best."""
    done = loop.TrainingResult(None, 6, 6, frozen, 1, 0.1, frozen, found)
    with pytest.raises(typer.Exit):
        report(done, PAIRS, TrainingSettings(), json=False)
    return capsys.readouterr().err


def compared(lead: float, spread: float, images: int) -> FrozenComparison:
    return FrozenComparison(0.5 + lead, 0.5, (lead - 0.1, lead + 0.1), 0.6, spread, images, images, 1000)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (compared(0.00001, 0.2, 5), "fewer than 6 images can show of no model that it helps"),
        (compared(0.0, 0.0, 40), "the model changed the rank of none of the 40 texts of the test"),
        (compared(0.00001, 0.2, 40), "40 held-out images show a lead of 0.089 in 80 % of the cases"),
        (compared(0.05, 0.2, 40), "about 126 held-out images like these 40 would show such a lead"),
    ],
)
def test_what_a_test_would_need(found: FrozenComparison, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = sentences(found, 0.5, capsys)

    assert sentence in shown and "more pairs, or a lower --rate, may help (in a new folder)" in shown
    assert shown.count("an estimate") == ("in 80 %" in sentence or "such a lead" in sentence)


@pytest.mark.parametrize(
    ("step", "best", "sentence"),
    [
        (21, 3, "the training stopped early, at step 21 of 60: for"),
        (60, 59, "the best validation is that of step 59 of 60, so it still rose; more steps"),
        (60, 30, ""),
    ],
)
def test_how_a_training_ended(step: int, best: int, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = loop.TrainingResult(Path("m"), step, 60, 0.5, best, 0.1, 0.4, replace(compared(0.2, 0.2, 40), p=0.001))
    report(done, PAIRS, TrainingSettings(), json=False)
    stated = capsys.readouterr().err

    assert sentence in stated and ("stopped early" in stated, "still rose" in stated) == (step < 60, best == 59)


def test_where_the_frozen_space_finds_all_nothing_is_to_gain(capsys: pytest.CaptureFixture[str]) -> None:
    shown = sentences(compared(0.0, 0.0, 40), 1.0, capsys)

    assert "there is nothing to gain on these" in shown and "may help" not in shown
