"""Options of `eyespot train` and `eyespot mine`, each with a value that changes what comes out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from click.testing import Result
from typer.testing import CliRunner

from eyespot.adapters.quari.training.reading import read_pairs
from eyespot.cli import app
from eyespot.types import UsageError
from tests.lazy_import import requires
from tests.worlds import draw

pytestmark = requires("torch")
SMALL = [
    *("--rank", "2", "--hidden", "8", "--steps", "1", "--layers", "1", "--heads", "1", "--batch", "8"),
    *("--epochs", "1", "--accumulate", "1", "--device", "cpu", "--dropout", "0.0", "--patience", "0"),
    *("--preset", "released", "--held-out-share", "0.05", "--keep-anyway"),
]


def done(*words: object) -> Result:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output or ran.exception
    return ran


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty texts and images of eight components."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("pairs")
    images = rng.normal(size=(40, 8)).astype(np.float32)
    np.save(folder / "images.npy", images)
    np.save(folder / "texts.npy", (images + 0.3 * rng.normal(size=images.shape)).astype(np.float32))
    return folder


def log(pairs: Path, out: Path, *more: object) -> list[dict[str, str]]:
    """The log of a short training, step by step."""
    done("train", "quari", pairs, "--out", out, *SMALL, *more)
    return list(csv.DictReader((out / "log.csv").read_text().splitlines()))


@pytest.fixture(scope="module")
def usual(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return log(pairs, tmp_path_factory.mktemp("usual") / "out")


def plan(pairs: Path, *more: object) -> dict[str, int]:
    ran = done("train", "quari", pairs, "--out", "never", *SMALL, *more, "--dry-run", "--json")
    report: dict[str, int] = json.loads(ran.stdout)
    return report


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--noise", 0),
        ("--temperature", 0.5),
        ("--clip", 0.001),
        ("--rate", 0.1),
        ("--seed", 1),
        ("--precision", "bfloat16"),
        ("--loss", "linear"),
    ],
)
def test_what_changes_a_training(
    option: str, value: object, pairs: Path, usual: list[dict[str, str]], tmp_path: Path
) -> None:
    changed = log(pairs, tmp_path / "out", option, value)

    assert len(changed) == len(usual) and changed != usual


def test_a_training_is_told_by_the_epoch(usual: list[dict[str, str]]) -> None:
    """Of 40 pairs 2 are held out: 38 make four batches of 8 an epoch."""
    assert [float(row["epoch"]) for row in usual] == [0.25, 0.5, 0.75, 1.0]


def test_accumulated_batches_are_fewer_steps(pairs: Path) -> None:
    assert plan(pairs)["steps"] == 2 * plan(pairs, "--accumulate", 2)["steps"] == 4


def test_activations_that_are_recomputed_need_less_memory(pairs: Path) -> None:
    deep = ("--layers", 4, "--steps", 4)

    assert (
        plan(pairs, *deep, "--activations", "recomputed")["bytes"]
        < plan(pairs, *deep, "--activations", "kept")["bytes"]
    )


def test_pairs_that_are_held_out_are_not_trained_on(pairs: Path, tmp_path: Path) -> None:
    arrays = {name: np.load(pairs / f"{name}.npy") for name in ("texts", "images")}
    for name, array in arrays.items():
        np.save(tmp_path / name, array[:10].astype(np.float16))
    ran = done("train", "quari", pairs, "--out", tmp_path / "out", *SMALL, "--held-out", tmp_path, "--dry-run")

    assert "30 pairs, 10 held out" in ran.stderr and "10 pairs share an image or a text" in ran.stderr
    with pytest.raises(UsageError, match="is held out"):
        read_pairs(pairs).pairs.without(read_pairs(pairs).pairs)


def test_the_seed_of_a_linear_adapter(pairs: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        done("train", "linear", pairs, "--out", tmp_path / str(seed), "--width", 4, "--epochs", 1, "--seed", seed)

    weights = [{path.name: path.read_bytes() for path in (tmp_path / str(seed)).iterdir()} for seed in (0, 1)]
    assert weights[0].keys() == weights[1].keys() and weights[0] != weights[1]


def mined(pairs: Path, out: Path, *more: object) -> tuple[np.ndarray, np.ndarray]:
    done("mine", "semipositives", pairs / "images.npy", "--out", out, *more)
    with np.load(out) as arrays:
        return arrays["rows"], arrays["weights"]


def test_semi_positives_are_kept_of_neighbours_and_weighed(pairs: Path, tmp_path: Path) -> None:
    rows, weights = mined(pairs, tmp_path / "usual.npz")
    more, _ = mined(pairs, tmp_path / "more.npz", "--keep", 3)
    near, heavy = mined(pairs, tmp_path / "near.npz", "--neighbours", 3)
    same, warm = mined(pairs, tmp_path / "warm.npz", "--temperature", 1.0)

    assert (rows.shape, more.shape) == ((40, 2), (40, 3))
    assert np.array_equal(near, rows) and (heavy > weights).all()  # fewer share the softmax
    assert np.array_equal(same, rows) and (warm < weights[:, :1]).all()


@pytest.mark.long
def test_the_seed_of_a_backbone(tmp_path: Path) -> None:
    """The order of the captions is drawn by it."""
    pytest.importorskip("transformers")
    model = tiny_models.hf_clip(tmp_path / "clip")
    rows = [f'{draw(tmp_path / f"{at}.png", at)},"caption {at}"' for at in range(8)]
    (tmp_path / "list.csv").write_text("path,caption\n" + "\n".join(rows) + "\n")
    done("index", tmp_path / "list.csv", "-g", tmp_path / "g", "-e", f"hf:{model}")
    small = ("--captions", "caption", "--batch", 4, "--epochs", 1, "--json")

    losses = [
        json.loads(
            done("train", "backbone", tmp_path / "g", "--out", tmp_path / str(seed), "--seed", seed, *small).stdout
        )["loss"]
        for seed in (0, 1)
    ]

    assert losses[0] != losses[1]
