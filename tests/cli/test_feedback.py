"""`eyespot search` moved by judged photos: those of the line, and those that are recorded."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.gallery.indexing import index
from eyespot.judges.person import VERDICTS
from eyespot.ledger.judgements import Judgements
from eyespot.types import Judgement, Query
from tests.command import run_eyespot
from tests.worlds import draw


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("feedback")
    for seed in range(24):
        draw(folder / "x" / f"{seed:02d}.png", seed)
    index(folder / "gallery", [str(folder / "x")], [rooms.load("encoders", "starter")])
    return folder / "gallery"


@pytest.fixture
def gallery(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "gallery"))


def search(gallery: Path, *words: str) -> Any:
    ran = run_eyespot("search", "stripes", "-k", "24", "--json", "-g", str(gallery), *words)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def record(gallery: Path, image: str, key: str, who: str) -> None:
    query = Query.words("stripes")
    with Judgements(gallery / "ledger.sqlite") as judgements:
        digest = judgements.enter([query])[query]
        judgements.record([Judgement(digest, image, f"person:{who}", "p", VERDICTS[key], at=time.time())])


@pytest.mark.long
def test_photos_of_the_line_move_the_search_and_the_output_says_so(gallery: Path) -> None:
    plain = search(gallery)
    first, *_, last = (item["id"] for item in plain["items"])

    moved = search(gallery, "--yes", last, "--no", first)
    ran = run_eyespot("search", "stripes", "-g", str(gallery), "--yes", last, "--no", first, "--why")

    assert "moved" not in plain
    assert moved["moved"] == {"yes": 1, "no": 1, "missing": 0, "by": ""}
    assert moved["items"][0]["id"] == last
    assert "moved by 1 yes and 1 no" in ran.stderr
    assert "photos changed the searched look" in ran.stdout


@pytest.mark.long
def test_the_record_moves_the_search_where_it_is_wanted(gallery: Path) -> None:
    first, *_, last = (item["id"] for item in search(gallery)["items"])
    record(gallery, last, "y", "ada")
    record(gallery, first, "n", "bob")

    assert "moved" not in search(gallery)
    assert search(gallery, "--feedback")["moved"] == {"yes": 1, "no": 1, "missing": 0, "by": "2 people"}
    assert search(gallery, "--feedback-from", "ada")["moved"] == {"yes": 1, "no": 0, "missing": 0, "by": "ada"}
    both = search(gallery, "--feedback-from", "person:ada", "--no", last)["moved"]
    assert both == {"yes": 0, "no": 1, "missing": 0, "by": "ada and this line"}


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (
            ["stripes", "--yes", "nothing"],
            2,
            "no picture 'nothing' with vectors of starter; --yes and --no take the id",
        ),
        (["stripes", "--feedback-from", " "], 2, "give a person or a judge, or --feedback"),
        (["--feedback"], 2, "give words or a picture"),
        (["stripes", "--feedback", "--calibrate", "30", "--rerank", "encoder:starter"], 2, "cannot measure it"),
        (["stripes", "--feedback", "--by", "words"], 2, "search by look"),
        (["stripes", "--feedback-from", "eve"], 4, "those who have: nobody"),
    ],
)
def test_what_cannot_be_moved_is_refused_with_the_way_out(gallery: Path, words: list[str], code: int, why: str) -> None:
    ran = run_eyespot("search", "-g", str(gallery), *words)

    assert (ran.returncode, why in ran.stderr) == (code, True), ran.stderr


@pytest.mark.long
def test_a_photo_that_is_both_and_a_ledger_that_is_not_there_are_sentences(gallery: Path, tmp_path: Path) -> None:
    first = search(gallery)["items"][0]["id"]
    line = ("search", "stripes", "-g", str(gallery), "--paths")

    both = run_eyespot(*line, "--yes", first, "--no", first)
    lost = run_eyespot(*line, "--feedback", "--ledger", str(tmp_path / "typo.sqlite"))

    assert "not moved: no judged photo counts; 1 judged photo is a yes and a no at once" in both.stderr
    assert "typo.sqlite yet; without --ledger the gallery's own is read" in lost.stderr and lost.returncode == 0
    assert not (tmp_path / "typo.sqlite").exists()


@pytest.mark.long
def test_the_commands_of_the_page_run_and_training_on_too_few_pairs_says_what_to_do(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    commands = re.findall("```sh\n(.*?)```", (root / "docs" / "feedback.md").read_text(encoding="utf-8"), re.DOTALL)
    python = f'eyespot() {{ "{sys.executable}" -m eyespot.cli "$@"; }}; python() {{ "{sys.executable}" "$@"; }}; set -e'
    env = {**os.environ, "PYTHONPATH": str(root)}

    page = subprocess.run(
        ["bash", "-c", "\n".join([python, *commands])], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    training = run_eyespot("train", "quari", str(tmp_path / "clicked"), "--out", str(tmp_path / "model"), cwd=tmp_path)

    assert page.returncode == 0, page.stderr
    assert "moved by 20 yes and 0 no of encoder:starter" in page.stderr
    assert (training.returncode, "give pairs of other queries too" in training.stderr) == (2, True), training.stderr
