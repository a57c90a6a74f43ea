"""What is finished stays; what changed is done again with what hangs on it; a kill costs one stage at most."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from eyespot.curate.inat.curating import curate
from eyespot.curate.inat.settings import CollectionSettings, Sampling, Species
from eyespot.curate.inat.synthetic import make
from tests.worlds.inat import export, seen, silent

FILES = ("train.json", "attributions.csv", "download.csv", "taxonomy.csv", "coverage.csv", "funnel.csv")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Path(tmp_path_factory.mktemp("synthetic")) / "export"
    make(place, 3000)
    return place


def settings(place: Path) -> CollectionSettings:
    return CollectionSettings(species=Species(place / "targets.csv", place / "mapping.csv"), sampling=Sampling(cap=100))


def digests(out: Path) -> dict[str, str]:
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in FILES}


def test_the_planted_faults_are_the_ones_that_are_found(tmp_path: Path) -> None:
    planted = make(tmp_path / "export", 2000)
    done = curate(tmp_path / "export", tmp_path / "out", settings(tmp_path / "export"), silent)
    counts = {reason: count for one in done.steps for reason, count in one["dropped"].items()}
    assert counts["no date"] == planted.faults["day"] and counts["no position"] == planted.faults["position"]
    assert counts["another year"] == planted.faults["year"]
    assert counts["another quality grade"] == planted.faults["grade"]
    assert counts["no licence"] <= planted.faults["licence"]  # the rest is of the species that is gone
    assert sum(counts.values()) + done.pictures == planted.observations


def test_a_second_run_does_nothing_again_and_ends_in_the_same(made: Path, tmp_path: Path) -> None:
    curate(made, tmp_path / "out", settings(made), silent)
    before = digests(tmp_path / "out")
    done = curate(made, tmp_path / "out", settings(made), silent)
    assert not any(one["ran"] for one in done.steps) and digests(tmp_path / "out") == before


@pytest.mark.long
def test_the_same_seed_makes_the_same_collection_elsewhere(made: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        curate(made, tmp_path / name, settings(made), silent)
    assert digests(tmp_path / "one") == digests(tmp_path / "other")


@pytest.mark.long
def test_another_seed_draws_again_and_groups_stay(made: Path, tmp_path: Path) -> None:
    curate(made, tmp_path / "out", settings(made), silent)
    before = digests(tmp_path / "out")["train.json"]
    other = replace(settings(made), sampling=Sampling(cap=100, seed=1))
    done = curate(made, tmp_path / "out", other, silent)
    assert [one["step"] for one in done.steps if one["ran"]] == ["drawn"]
    assert digests(tmp_path / "out")["train.json"] != before


@pytest.mark.long
def test_an_export_that_changed_is_read_again(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a")])
    curate(place, tmp_path / "out", CollectionSettings(), silent)
    export(place, [seen("a"), seen("b")])
    done = curate(place, tmp_path / "out", CollectionSettings(), silent)
    assert done.pictures == 2 and all(one["ran"] for one in done.steps)


@pytest.mark.long
def test_a_torn_stage_is_done_again(made: Path, tmp_path: Path) -> None:
    curate(made, tmp_path / "out", settings(made), silent)
    before = digests(tmp_path / "out")
    (note,) = (tmp_path / "out" / ".work").glob("tables/steps/*-grouped/step.toml")
    note.write_text(note.read_text()[:40])
    done = curate(made, tmp_path / "out", settings(made), silent)
    assert [one["step"] for one in done.steps if one["ran"]] == ["grouped"] and digests(tmp_path / "out") == before


@pytest.mark.long
def test_killed_at_any_moment_it_ends_in_the_same(made: Path, tmp_path: Path) -> None:
    curate(made, tmp_path / "whole", settings(made), silent)
    line = [sys.executable, "-m", "eyespot.cli", "build", "inat", str(made), "--out", str(tmp_path / "cut")]
    line += ["--targets", str(made / "targets.csv"), "--mapping", str(made / "mapping.csv"), "--cap", "100"]
    for stage in ("02-filtered", "05-grouped", "train.json"):
        child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for(tmp_path / "cut", stage, child)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    curate(made, tmp_path / "cut", settings(made), silent)
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")
    assert not [path for path in (tmp_path / "cut").rglob(".*.part") if path.is_dir()]


def _wait_for(out: Path, name: str, child: subprocess.Popen[bytes]) -> None:
    """Until the stage or file is there, or being written, or the child has ended."""
    names = {name, f".{name}.part"}
    while child.poll() is None:
        folders = (out, out / ".work/tables/steps")
        there = {entry.name for folder in folders if folder.is_dir() for entry in os.scandir(folder)}
        if there & names:
            return
        time.sleep(0.005)
