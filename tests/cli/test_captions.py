"""`eyespot build captions`: the page runs as it stands, and what cannot be done is one sentence."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest

from tests.command import run_eyespot
from tests.pages import ROOT, blocks, tools

PAGE = ROOT / "docs" / "captions.md"


@pytest.mark.long
def test_the_page_runs_as_it_stands(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / ".eyespot").symlink_to(sample_gallery)
    (script,) = blocks(PAGE, "sh")

    ran = subprocess.run(["sh", "-ec", script], cwd=tmp_path, env=tools(tmp_path), capture_output=True, text=True)

    assert (ran.returncode, ran.stderr) == (0, "")
    with (tmp_path / "captions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "caption"] and len(rows) == 20
    assert (tmp_path / "own.parquet").stat().st_size > 0


def test_a_dry_run_writes_nothing(sample_gallery: Path, tmp_path: Path) -> None:
    words = ("build", "captions", "--out", "c.csv", "-g", sample_gallery, "--json")

    dry, wet = run_eyespot(*words, "--dry-run", cwd=tmp_path), run_eyespot(*words, cwd=tmp_path)

    report = json.loads(dry.stdout)
    assert (dry.returncode, report) == (0, json.loads(wet.stdout))
    assert (report["captions"], report["without"]) == (20, {"no label to speak of": 188})
    assert [place.name for place in tmp_path.iterdir()] == ["c.csv"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--species", "taxon"), 2, "no column 'taxon'; there are:"),
        (("--templates", "none.txt"), 2, "there is no file none.txt"),
        (("--out", "c.txt"), 2, "written as .parquet or .csv"),
        (("--common", "camera", "--species", "camera"), 4, "no picture has a caption"),
        (("-g", "nowhere"), 2, "there is no gallery at nowhere"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    sample_gallery: Path, tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    ran = run_eyespot("build", "captions", "--out", "c.csv", "-g", sample_gallery, *words, cwd=tmp_path)

    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (code, "", 1)
    assert sentence in ran.stderr and not (tmp_path / "c.csv").exists()
