"""`eyespot train`, `eyespot mine` and `eyespot build pairs`: to the end, killed on the way, and from a gallery.

In one process, since torch takes seconds to load; what is killed or goes without torch is a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models
import yaml
from click.testing import Result
from typer.testing import CliRunner

from eyespot import sample
from eyespot.cli import app
from eyespot.extras import install_line
from eyespot.gallery.view import Gallery
from eyespot.types import UsageError
from tests.lazy_import import lazy_import, requires
from tests.worlds import draw

torch = lazy_import("torch")
pytestmark = requires("torch")
SMALL = [
    *("--rank", "2", "--hidden", "8", "--steps", "2", "--layers", "1", "--heads", "2"),
    *("--batch", "16", "--validate-every", "10", "--device", "cpu"),
]
SMALL += ["--preset", "released"]
ANYWAY = ["--keep-anyway"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(128, 8)).astype(np.float32)
    folder = tmp_path_factory.mktemp("pairs")
    np.save(folder / "images.npy", images)
    np.save(folder / "texts.npy", (images + 0.3 * rng.normal(size=images.shape)).astype(np.float32))
    return folder


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four sample photos, each with a caption in its labels."""
    folder = tmp_path_factory.mktemp("captioned")
    photos = sorted(path for path in Path(sample.photos()).rglob("*.jpg"))[:24]
    rows = [f'{path},"{path.parent.name} {path.stem}"' for path in photos]
    (folder / "list.csv").write_text("path,caption\n" + "\n".join(rows) + "\n")
    done("index", folder / "list.csv", "-g", folder / "gallery")
    return folder / "gallery"


def eyespot(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: object) -> Result:
    ran = eyespot(*words)
    assert ran.exit_code == 0, ran.output or ran.exception
    return ran


def trained(pairs: Path, out: Path, *more: object) -> Result:
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
    ran = eyespot("train", "quari", pairs, "--out", tmp_path / "out", *SMALL, "--epochs", 1, "--json")
    again = eyespot("train", "quari", pairs, "--out", tmp_path / "out", *SMALL, "--epochs", 1, "--keep-anyway")

    report = json.loads(ran.stdout)
    assert ran.exit_code == 4 and report["model"] is None and report["validation"]["better"] is False
    assert "no model is named" in ran.stderr and "an estimate from this spread" in ran.stderr
    assert again.exit_code == 0 and again.stdout.strip() == str(tmp_path / "out" / "model")
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
def test_held_out_captions_of_a_gallery_validate_what_others_train(gallery: Path, pairs: Path, tmp_path: Path) -> None:
    names = [Path(path).name for path in sorted(Path(sample.photos()).rglob("*.jpg"))[:24]]
    for file, some in (("train.csv", names), ("held.csv", names[20:])):
        (tmp_path / file).write_text("file_name,caption\n" + "".join(f"{name},a photo {name}\n" for name in some))
    captions = ("--captions", tmp_path / "train.csv", "--held-out-captions", tmp_path / "held.csv")

    ran = trained(gallery, tmp_path / "out", *captions, "--batch", 4, "--dry-run", "--json")
    wrong = eyespot("train", "quari", pairs, "--out", tmp_path, "--held-out-captions", "held.csv")

    report = json.loads(ran.stdout)
    assert (report["pairs"], report["held_out"]) == (20, 4)
    assert isinstance(wrong.exception, UsageError) and "give arrays with --held-out" in str(wrong.exception)


@pytest.mark.long
def test_a_killed_training_ends_in_the_same_weights(pairs: Path, tmp_path: Path) -> None:
    how = ["--epochs", "20", "--checkpoint-every", "10", "--dropout", "0.1", "--patience", "0", *ANYWAY]
    line = [sys.executable, "-m", "eyespot.cli", "train", "quari", str(pairs), "--out", str(tmp_path / "cut"), *SMALL]
    started = subprocess.Popen([*line, *how], env=os.environ | ONE_THREAD, stderr=subprocess.DEVNULL)
    while not (tmp_path / "cut" / "checkpoint.pt").exists():
        assert started.poll() is None
        time.sleep(0.01)
    started.send_signal(signal.SIGKILL)
    started.wait()

    resumed = trained(pairs, tmp_path / "cut", *how, "--json")
    whole = trained(pairs, tmp_path / "whole", *how, "--json")

    assert started.returncode == -signal.SIGKILL
    assert json.loads(resumed.stdout) | {"model": ""} == json.loads(whole.stdout) | {"model": ""}
    for name in ("log.csv", "model/weights.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_dry_run_counts_and_writes_nothing(pairs: Path, tmp_path: Path) -> None:
    ran = trained(pairs, tmp_path / "out", "--dry-run", "--json", "--without", "one-step", "--held-out-share", 0)

    report = json.loads(ran.stdout)
    assert (report["pairs"], report["held_out"], report["steps"]) == (128, 0, 40) and report["bytes"] > 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "there is nothing at nowhere"),
        (["PAIRS", "--without", "everything"], "there are: one-step, no-semi-positives, no-noise"),
        (["PAIRS", "--captions", "text"], "speaks of the pictures of a gallery"),
        (["PAIRS", "--preset", "best"], "identity, released, paper, arxiv-2025-05"),
        (["PAIRS", "--batch", "500"], "give a smaller --batch"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(words: list[str], message: str, pairs: Path, tmp_path: Path) -> None:
    line = [str(pairs) if word == "PAIRS" else word for word in words]

    ran = eyespot("train", "quari", *line, "--out", tmp_path / "out")

    assert isinstance(ran.exception, UsageError) and message in str(ran.exception)
    assert not (tmp_path / "out").exists()


def test_semi_positives_mined_beforehand_are_taken(pairs: Path, tmp_path: Path) -> None:
    mined = done("mine", "semipositives", pairs / "images.npy", "--out", tmp_path / "semi.npz", "--json")
    trained(pairs, tmp_path / "out", "--epochs", 1, "--semi-positives", tmp_path / "semi.npz", *ANYWAY)

    assert json.loads(mined.stdout) == {"out": str(tmp_path / "semi.npz"), "images": 128, "keep": 2, "without": 0}
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


def test_a_gallery_asks_where_its_texts_are(gallery: Path, tmp_path: Path) -> None:
    ran = eyespot("train", "linear", gallery, "--out", tmp_path / "out")

    assert isinstance(ran.exception, UsageError) and "--captions FILE or --captions COLUMN" in str(ran.exception)


@pytest.mark.long
def test_a_backbone_is_trained_and_indexes_the_same_gallery(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = tiny_models.hf_clip(tmp_path / "clip")
    rows = [f'{draw(tmp_path / f"{at}.png", at)},"caption {at}"' for at in range(8)]
    (tmp_path / "list.csv").write_text("path,caption\n" + "\n".join(rows) + "\n")
    gallery = ("-g", tmp_path / "gallery")
    done("index", tmp_path / "list.csv", *gallery, "-e", f"hf:{model}")
    small = ("--out", tmp_path / "out", "--captions", "caption", "--batch", 4, "--epochs", 1)

    first = done("train", "backbone", gallery[1], *small, "--blocks", 1)
    again = done("train", "backbone", gallery[1], *small, "--blocks", 1, "--json")
    done("index", *gallery, "-e", first.stdout.strip())

    report = json.loads(again.stdout)
    assert "8 pairs, 2 steps of 4" in first.stderr
    assert (report["step"], report["unread"], report["model"]) == (2, 0, first.stdout.strip())
    assert Gallery(gallery[1]).encoders == [f"hf:{model}", report["model"]]


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


@pytest.mark.long
def test_a_training_killed_while_it_writes_the_model_is_finished_by_the_next(
    pictured: Path, tmp_path: Path, child_env: dict[str, str]
) -> None:
    small = ("--out", tmp_path / "out", "--captions", "caption", "--batch", 4, "--epochs", 1, "--blocks", 1)
    line = [sys.executable, "-m", "eyespot.cli", "train", "backbone", pictured, *small]
    half = tmp_path / "out" / ".model.part"
    with subprocess.Popen([*map(str, line)], env=child_env, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (half.is_dir() and any(half.iterdir())):
            time.sleep(0.001)
        process.kill()
    assert half.is_dir() and not (tmp_path / "out" / "model").exists()

    again = done("train", "backbone", pictured, *small)
    alone = done("train", "backbone", pictured, *small[:1], tmp_path / "alone", *small[2:])

    models = [Path(ran.stdout.strip().removeprefix("hf:")) for ran in (again, alone)]
    assert contents(models[0]) == contents(models[1]) and contents(models[0])
    assert not half.exists()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_that_is_no_model_is_not_taken_for_one(pictured: Path, tmp_path: Path) -> None:
    """As a power cut left it when its files were not flushed: empty, or with empty files."""
    small = ("--captions", "caption", "--batch", 4, "--epochs", 1)
    line = ("train", "backbone", pictured, "--out", tmp_path / "out", *small)
    done(*line)
    model = tmp_path / "out" / "model"
    whole = contents(model)
    (model / "model.safetensors").write_bytes(b"")
    lost = eyespot(*line)
    shutil.rmtree(model)
    model.mkdir()

    done(*line)

    assert f"remove {model} and run the same line again" in str(lost.exception)
    assert contents(model) == whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["GALLERY", "--captions", "caption"], "starter cannot be trained"),
        (["PAIRS", "--captions", "caption"], "is no gallery; index the pictures first"),
        (["GALLERY"], "--captions FILE or --captions COLUMN"),
    ],
)
def test_what_no_backbone_can_be_trained_on_is_told(words: list[str], message: str, pairs: Path, gallery: Path) -> None:
    line = [{"GALLERY": gallery, "PAIRS": pairs}.get(word, word) for word in words]

    ran = eyespot("train", "backbone", *line, "--out", pairs / "out")

    assert isinstance(ran.exception, UsageError) and message in str(ran.exception)


def test_coco_is_made_into_pairs_indexed_and_trained_on(tmp_path: Path) -> None:
    photos = sorted(path for path in Path(sample.photos()).rglob("*.jpg"))[:6]
    images = [{"id": at, "file_name": str(path.relative_to(sample.photos()))} for at, path in enumerate(photos)]
    captions = [{"id": at, "image_id": at % 6, "caption": f"photo {at % 6}, once more {at}"} for at in range(12)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images, "annotations": captions}))

    made = done(
        *("build", "pairs", "coco", tmp_path / "captions.json"),
        "--images",
        sample.photos(),
        "--out",
        tmp_path / "coco",
        "--json",
    )
    done("index", tmp_path / "coco" / "captions" / "pictures.parquet", "-g", tmp_path / "gallery")
    ran = trained(
        tmp_path / "gallery",
        tmp_path / "out",
        "--captions",
        f"{tmp_path}/coco/",
        "--batch",
        4,
        "--held-out-share",
        0,
        "--dry-run",
    )

    report = json.loads(made.stdout)
    assert (report["files"], report["pictures"], report["captions"], report["failures"]) == (1, 6, 12, [])
    assert "12 of 12 captions" in ran.stderr and "12 pairs, 0 held out" in ran.stderr


def test_files_that_make_no_pairs_are_told_and_the_code_is_3(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(
        json.dumps({"images": [{"id": 1, "file_name": "1.jpg"}], "annotations": [{"image_id": 1, "caption": "a"}]})
    )
    (tmp_path / "bad.json").write_text("[")

    ran = eyespot(
        "build",
        "pairs",
        "coco",
        tmp_path / "good.json",
        tmp_path / "bad.json",
        "--images",
        tmp_path,
        "--out",
        tmp_path / "out",
    )

    assert ran.exit_code == 3 and "bad.json: is no COCO JSON" in ran.stderr
    assert ran.stdout.splitlines()[0] == "1 files (0 before)  1 rows of pictures.parquet  1 rows of captions.parquet"


def test_a_linear_adapter_of_the_same_pairs(pairs: Path, tmp_path: Path) -> None:
    from eyespot.adapters.linear import load

    line = ["train", "linear", pairs, "--out", tmp_path / "out", "--width", 4, "--epochs", 1, "-e", "mine", "--json"]
    ran = done(*line)

    adapter = load(tmp_path / "out")
    assert json.loads(ran.stdout) == {"out": str(tmp_path / "out"), "vectors": 256, "classes": 128, "width": 4}
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
