"""`eyespot train` and `eyespot mine` as users run them: to the end, killed on the way, and from a gallery."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from .conftest import run_eyespot

SMALL = [
    *("--rank", "2", "--hidden", "8", "--steps", "2", "--layers", "1", "--heads", "2"),
    *("--batch", "16", "--validate-every", "10", "--device", "cpu"),
]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(128, 8)).astype(np.float32)
    folder = tmp_path / "pairs"
    folder.mkdir()
    np.save(folder / "images.npy", images)
    np.save(folder / "texts.npy", (images + 0.3 * rng.normal(size=images.shape)).astype(np.float32))
    return folder


def trained(pairs: Path, out: Path, *more: object) -> Any:
    ran = run_eyespot("train", "quari", pairs, "--out", out, *SMALL, *more, **ONE_THREAD)
    assert ran.returncode == 0, ran.stderr
    return ran


def test_a_training_ends_in_a_checkpoint_that_serves(pairs: Path, tmp_path: Path) -> None:
    ran = trained(pairs, tmp_path / "out", "--epochs", 2, "--json", "-e", "my encoder")
    line = ["adapt", tmp_path / "out" / "model", "--queries", pairs / "texts.npy", "--gallery", pairs / "images.npy"]
    adapted = run_eyespot(*line, "-k", 5, "--out", tmp_path / "found.npz")

    told = json.loads(ran.stdout)
    assert (told["step"], told["steps"], told["model"]) == (6, 6, str(tmp_path / "out" / "model"))
    assert "122 pairs, 6 held out, 6 steps of 2 × 16" in ran.stderr
    assert adapted.returncode == 0 and np.load(tmp_path / "found.npz")["ids"].shape == (128, 5)
    assert "my encoder" in (tmp_path / "out" / "model" / "config.yml").read_text()


def test_a_killed_training_ends_in_the_same_weights(pairs: Path, tmp_path: Path) -> None:
    how = ["--epochs", "20", "--checkpoint-every", "2", "--dropout", "0.1", "--patience", "0"]
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

    told = json.loads(ran.stdout)
    assert (told["pairs"], told["held_out"], told["steps"]) == (128, 0, 40) and told["bytes"] > 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "there is nothing at nowhere"),
        (["PAIRS", "--without", "everything"], "there are: one-step, no-semi-positives, no-noise"),
        (["PAIRS", "--captions", "text"], "names a column of a gallery"),
        (["PAIRS", "--preset", "best"], "released and paper"),
        (["PAIRS", "--batch", "500"], "make the batch smaller"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(words: list[str], told: str, pairs: Path, tmp_path: Path) -> None:
    line = [str(pairs) if word == "PAIRS" else word for word in words]

    ran = run_eyespot("train", "quari", *line, "--out", tmp_path / "out", cwd=tmp_path)

    assert ran.returncode == 2 and told in ran.stderr and ran.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_semi_positives_mined_beforehand_are_taken(pairs: Path, tmp_path: Path) -> None:
    mined = run_eyespot("mine", "semipositives", pairs / "images.npy", "--out", tmp_path / "semi.npz", "--json")
    trained(pairs, tmp_path / "out", "--epochs", 1, "--semi-positives", tmp_path / "semi.npz")

    assert json.loads(mined.stdout) == {"out": str(tmp_path / "semi.npz"), "images": 128, "keep": 2, "without": 0}
    assert not (tmp_path / "out" / "semi-positives.npz").exists()


def test_a_gallery_with_captions_is_trained_on(tmp_path: Path) -> None:
    from eyespot import sample

    photos = sorted(path for path in Path(sample.photos()).rglob("*.jpg"))[:24]
    rows = [f'{path},"{path.parent.name} {path.stem}"' for path in photos]
    (tmp_path / "list.csv").write_text("path,caption\n" + "\n".join(rows) + "\n")
    run_eyespot("index", "list.csv", "-g", tmp_path / "gallery", cwd=tmp_path)

    small = [*SMALL, "--batch", 8, "--epochs", 1, "--captions", "caption"]
    ran = run_eyespot("train", "quari", tmp_path / "gallery", "--out", tmp_path / "out", *small, **ONE_THREAD)
    found = run_eyespot(
        "search", "a heron", "-g", tmp_path / "gallery", "--adapt", tmp_path / "out" / "model", "--paths", "-k", 3
    )

    assert ran.returncode == 0 and "23 pairs, 1 held out" in ran.stderr, ran.stderr
    assert found.returncode == 0 and len(found.stdout.splitlines()) == 3, found.stderr


def test_a_linear_adapter_of_the_same_pairs(pairs: Path, tmp_path: Path) -> None:
    from eyespot.adapters.linear import load

    line = ["train", "linear", pairs, "--out", tmp_path / "out", "--width", 4, "--epochs", 1, "-e", "mine", "--json"]
    ran = run_eyespot(*line, **ONE_THREAD)

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
    assert trained.returncode == 1 and "pip install 'eyespot[torch]'" in trained.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()
