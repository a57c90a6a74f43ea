"""A set whose making is killed (SIGKILL, no warning) at random moments is the set of a making left alone."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.worlds.rmir import Rates, Scripted, behind, digest, files, recipe, shown_and_asked
from tests.worlds.servers import Double, Seen

ROOT = Path(__file__).resolve().parents[3]
RATES = Rates(abstains=0.1, contradicts=0.1, doubts=0.05)
WORKERS = 4
FEW = f"workers = {WORKERS}"


def start(place: Path, out: Path) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "tests.worlds.rmir", str(place), str(out)]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def left_alone(place: Path, out: Path) -> None:
    process = start(place, out)
    _, complaints = process.communicate(timeout=900)
    assert process.returncode == 0, complaints.decode()


def killed_after(requests: int, server: Double, process: subprocess.Popen[bytes]) -> bool:
    """Kill the process once it has made so many requests; whether it was still at work."""
    before = len(server.seen)
    while len(server.seen) < before + requests and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.communicate()
    return process.returncode == -9


def put(seen: Seen) -> str:
    """What was asked of whom; a judge who votes twice is asked the same twice."""
    return digest(seen.body["model"], *shown_and_asked(seen))


@pytest.mark.parametrize(
    ("count", "kills"), [(3, 3), pytest.param(6, 30, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
@pytest.mark.long
def test_a_killed_making_ends_in_the_same_set(tmp_path: Path, gallery: Path, count: int, kills: int) -> None:
    """At most the calls in flight at a kill are made again."""
    moment, hits = random.Random(kills), 0
    with Double(then=Scripted(RATES)) as server:
        workers = dict.fromkeys(("questions", "checked", "judged"), FEW)
        place = recipe(tmp_path, gallery, behind(server.url), inputs=f"count = {count}", **workers)
        left_alone(place, tmp_path / "calm")
        calm = Counter(map(put, server.seen))
        server.seen.clear()
        for _ in range(kills):
            hits += killed_after(moment.randint(1, calm.total() // (kills + 1)), server, start(place, tmp_path / "cut"))
        left_alone(place, tmp_path / "cut")
        cut = Counter(map(put, server.seen))

    assert hits >= 0.9 * kills
    assert files(tmp_path / "cut") == files(tmp_path / "calm")
    assert set(cut) == set(calm) and cut.total() <= calm.total() + hits * WORKERS
