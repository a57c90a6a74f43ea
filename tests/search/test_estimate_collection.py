"""An answer from a gallery: judged once, made again of its files, the same on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import eyespot
from eyespot.search.estimates.study import again
from tests.command import run_eyespot
from tests.worlds import copy_of_sample_gallery


def test_an_answer_is_asked_once_and_made_again_of_its_files(tmp_path: Path) -> None:
    asked = []

    def judge(query: str, path: str) -> bool:
        asked.append(path)
        return "tower" in path.casefold()

    collection = eyespot.open(copy_of_sample_gallery(tmp_path / "gallery"))
    found = collection.estimate("a tower", judge=judge, looks=40)
    number = len(asked)
    twice = collection.estimate("a tower", judge=judge, looks=40)

    assert number == len(asked) == found.table[0]["looked_at"] and twice.table == found.table
    (tmp_path / "out").mkdir()
    found.write_html(tmp_path / "out" / "answer.html")
    found.write_csv(tmp_path / "out" / "groups.csv")
    made = again(tmp_path / "out")
    assert made.table == found.table and made.methods == found.methods and made.plot() == found.plot()
    page = (tmp_path / "out" / "answer.html").read_text()
    assert "<script" not in page and "<svg" in page and found.groups["all"].sentence in page


def test_a_model_without_an_accuracy_is_refused_and_with_one_it_counts(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    line = ("estimate", "a tower", "-g", gallery, "--judge", "encoder:starter", "--looks", 40)
    refused = run_eyespot(*line)
    counted = run_eyespot(*line, "--accuracy", "0.9,0.9", "--json")

    assert refused.returncode == 2 and "nobody has verified encoder:starter" in refused.stderr
    assert counted.returncode == 0 and json.loads(counted.stdout)["groups"][0]["basis"] in ("own", "whole")
