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


def done(*words: object) -> str:
    ran = run_eyespot(*words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.long
def test_a_backbone_is_trained_on_the_train_split_alone_and_tested_before_and_after(
    tmp_path: Path, gallery: Path
) -> None:
    pytest.importorskip("transformers")
    shutil.copytree(gallery, tmp_path / "photos")
    # the demonstration is seldom in doubt: a lower threshold leaves nothing to train on
    made(recipe(tmp_path, gallery, split="threshold = 0.9"), tmp_path)
    photos, model = ("-g", tmp_path / "photos"), f"hf:{tiny_models.hf_clip(tmp_path / 'clip')}"
    done("build", "pairs", "rmir", tmp_path / "set", "--out", tmp_path / "pairs")
    done("index", *photos, "-e", model)
    small = ("--batch", 2, "--epochs", 1, "--rate", 1e-3, "--out", tmp_path / "tuned")

    line = ("train", "backbone", tmp_path / "photos", "-e", model, *small, "--captions", f"{tmp_path}/pairs/")
    tuned = done(*line).strip()
    done("index", *photos, "-e", tuned)

    queries = list(rmir.read(tmp_path / "set").queries.values())
    rows = pq.read_table(next((tmp_path / "pairs").rglob("captions.parquet"))).to_pylist()
    asked = {(one["text"], one["image"]) for one in queries if one["split"] == "train"}
    assert {(row["caption"], row["asked_with"]) for row in rows} == asked
    tests = sum(query["split"] == "test" for query in queries)
    for encoder in (model, tuned):
        report = json.loads(done("eval", "rmir", "--data", tmp_path / "set", *photos, "-e", encoder, "--json"))
        assert (report["tasks"][0]["queries"], report["split"], report["tasks"][0]["published"]) == (tests, "test", [])
