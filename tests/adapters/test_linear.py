"""Static task adaptation: what the map does, what is learned, and what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyespot.adapters.linear import FILE, Linear, load, save, train
from eyespot.types import NothingFound, UsageError
from tests.pages import ROOT, blocks, run_code, run_lines, run_page
from tests.wording import raises

SMALL: dict[str, Any] = {"width": 8, "epochs": 20, "batch": 16, "rate": 1e-2}


def world() -> tuple[Any, Any]:
    """Classes differ in the first two of eight components, the rest is louder and says nothing."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(8), 16)
    angles = classes * (2 * np.pi / 8)
    telling = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([telling, 1.5 * rng.normal(size=(128, 6))], axis=1).astype(np.float32), classes


def hits(vectors: Any, classes: Any) -> float:
    """How often the nearest other vector is of one's own class."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = np.where(np.eye(len(unit), dtype=bool), -2, unit @ unit.T).argmax(axis=1)
    return float(np.mean(classes[near] == classes))


def test_the_map_is_affine_and_its_images_are_of_unit_length() -> None:
    adapter = Linear(np.array([[2, 0], [0, 0]], np.float32), np.array([0, 1], np.float32))

    found = adapter.apply(np.array([[3, 0], [0, 5]], np.float32))

    assert found == pytest.approx(np.array([[2 / 5**0.5, 1 / 5**0.5], [0, 1]]))


def test_it_learns_what_tells_classes_apart() -> None:
    pytest.importorskip("torch")
    vectors, classes = world()

    adapter = train(vectors, classes, **SMALL)

    assert hits(vectors, classes) < 0.4 < 0.7 < hits(adapter.apply(vectors), classes)


def test_a_seed_means_the_same_adapter_and_it_comes_back_from_disk(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    vectors, classes = world()
    one, other = (train(vectors, classes, **{**SMALL, "epochs": 1}) for _ in range(2))

    save(tmp_path, replace(one, space="starter"))
    back = load(tmp_path)

    assert np.array_equal(one.weight, other.weight)
    assert np.array_equal(back.weight, one.weight) and np.array_equal(back.bias, one.bias) and back.space == "starter"


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with raises(UsageError):
        Linear(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)).apply(np.ones((1, 3), np.float32))
    with raises(NothingFound):
        train(np.ones((3, 2), np.float32), np.zeros(3))  # of one class
    with raises(UsageError):
        load(tmp_path)
    (tmp_path / FILE).write_bytes(b"junk")
    with raises(UsageError):
        load(tmp_path)


PAGE = ROOT / "docs" / "research" / "quari.md"


@pytest.mark.long
@pytest.mark.usefixtures("without_figures")
def test_its_lines_and_its_code_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (code,) = blocks(PAGE, "python")

    run_page(PAGE, tmp_path)

    run_code(code + "\nassert (np.load('found.npz')['ids'] == found.rows).all()", tmp_path)


@pytest.mark.long
def test_the_page_on_training_runs(tmp_path: Path) -> None:
    """The blocks of made-up and sample pictures; the others need published sets and a model from the hub."""
    pytest.importorskip("torch")
    script, published, labelled, hub = blocks(ROOT / "docs" / "research" / "training.md", "sh")

    lines = run_lines(script + labelled, tmp_path)

    assert any("320 pairs, 80 held out" in line.stderr for line in lines) and (tmp_path / "found.npz").is_file()
    assert "train2017" in published and "hf:openai" in hub
