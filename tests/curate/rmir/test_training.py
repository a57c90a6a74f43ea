"""A retriever trained on the train split of a set and tested on its test split, before and after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tiny_models

from eyespot.runs import rmir
from tests.command import run_eyespot
from tests.worlds.rmir import made, recipe

HIGH = "threshold = 0.9"  # the demonstration is seldom in doubt: a lower one leaves nothing to train on


@pytest.fixture
def world(tmp_path: Path, gallery: Path) -> Path:
    """A folder with a set in `set`, and the gallery that it was made of in `photos`."""
    shutil.copytree(gallery, tmp_path / "photos")
    made(recipe(tmp_path, gallery, split=HIGH), tmp_path)
    return tmp_path


def done(*words: object) -> str:
    ran = run_eyespot(*words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_pairs_are_of_the_train_split_alone(world: Path) -> None:
    done("build", "pairs", "rmir", world / "set", "--out", world / "pairs")

    rows = pq.read_table(next(world.rglob("captions.parquet"))).to_pylist()
    pairs = {(row["caption"], row["asked_with"]) for row in rows}
    queries = rmir.read(world / "set").queries.values()
    of = {name: {(one["text"], one["image"]) for one in queries if one["split"] == name} for name in ("train", "test")}
    assert pairs == of["train"] and pairs and of["test"]


def test_a_backbone_is_trained_on_them_and_tested_before_and_after(world: Path) -> None:
    pytest.importorskip("transformers")
    gallery, model = ("-g", world / "photos"), f"hf:{tiny_models.hf_clip(world / 'clip')}"
    done("build", "pairs", "rmir", world / "set", "--out", world / "pairs")
    done("index", *gallery, "-e", model)
    small = ("--batch", 2, "--epochs", 1, "--rate", 1e-3, "--out", world / "tuned", "--captions", f"{world}/pairs/")

    tuned = done("train", "backbone", world / "photos", "-e", model, *small).strip()
    done("index", *gallery, "-e", tuned)

    tests = sum(query["split"] == "test" for query in rmir.read(world / "set").queries.values())
    for encoder in (model, tuned):
        report = json.loads(done("eval", "rmir", "--data", world / "set", *gallery, "-e", encoder, "--json"))
        assert (report["tasks"][0]["queries"], report["split"], report["tasks"][0]["published"]) == (tests, "test", [])
