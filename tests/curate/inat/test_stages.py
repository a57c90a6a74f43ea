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
from tests.worlds.inat import export, seen, silent
from tests.worlds.inat_export import make

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


@pytest.mark.long
def test_the_same_seed_makes_the_same_and_another_draws_again_while_groups_stay(made: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        curate(made, tmp_path / name, settings(made), silent)
    before = digests(tmp_path / "one")
    assert before == digests(tmp_path / "two")
    again = curate(made, tmp_path / "two", settings(made), silent)
    assert not any(one["ran"] for one in again.steps) and digests(tmp_path / "two") == before

    other = replace(settings(made), sampling=Sampling(cap=100, seed=1))
    done = curate(made, tmp_path / "one", other, silent)
    assert [one["step"] for one in done.steps if one["ran"]] == ["drawn"]
    assert digests(tmp_path / "one")["train.json"] != before["train.json"]


@pytest.mark.long
def test_an_export_that_changed_is_read_again(tmp_path: Path) -> None:
    place = export(tmp_path / "export", [seen("a")])
    curate(place, tmp_path / "out", CollectionSettings(), silent)
    export(place, [seen("a"), seen("b")])
    done = curate(place, tmp_path / "out", CollectionSettings(), silent)
    assert done.pictures == 2 and all(one["ran"] for one in done.steps)


@pytest.mark.long
def test_a_build_that_is_killed_ends_in_the_same(made: Path, tmp_path: Path) -> None:
    """SIGKILL, no warning, while a table, a later table and the list of pictures are written."""
    curate(made, tmp_path / "whole", settings(made), silent)
    cut, tables = tmp_path / "cut", tmp_path / "cut" / ".work" / "tables" / "steps"
    line = [sys.executable, "-m", "eyespot.cli", "build", "inat", str(made), "--out", str(cut), "--cap", "100"]
    line += ["--targets", str(made / "targets.csv"), "--mapping", str(made / "mapping.csv")]
    kills = 0
    for folder, name in ((tables, "02-filtered"), (tables, "05-grouped"), (cut, "train.json")):
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            while child.poll() is None and not {name, f".{name}.part"}.intersection(listdir(folder)):
                time.sleep(0.005)
            child.kill()
        kills += child.returncode == -signal.SIGKILL
    curate(made, cut, settings(made), silent)
    assert kills and digests(cut) == digests(tmp_path / "whole")
    assert not [path for path in cut.rglob(".*.part") if path.is_dir()]


def listdir(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []
