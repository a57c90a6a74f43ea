"""A pipeline that is killed (SIGKILL, no warning) at random moments ends in the same files as one left alone."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from eyespot.pipelines import CallMeter, NoAnswer, Prompt, RunOptions, run
from eyespot.pipelines.work_db import FILE
from tests.worlds.pipelines import PRICE, ask_step, files, odd_ones_go, source

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 4


def start(work: Path, count: int, log: Path, calls: int, money: float = 1e6) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "tests.worlds.pipelines", *map(str, (work, count, log, calls, money))]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def left_alone(work: Path, count: int, log: Path, calls: int) -> None:
    process = start(work, count, log, calls)
    _, complaints = process.communicate(timeout=250)
    assert process.returncode == 0, complaints.decode()


def killed_at(log: Path, until: float, process: subprocess.Popen[bytes]) -> bool:
    """Kill the process once so many requests were made; whether it was still at work."""
    while process.poll() is None and lines(log) < until:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    return process.returncode == -9


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "times"), [(240, 5), pytest.param(2400, 30, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_a_killed_pipeline_started_again_ends_in_the_same_files(tmp_path: Path, count: int, times: int) -> None:
    """At most the calls in flight at a kill are made again, and the budget holds over all runs."""
    moment, log, calls, hits = random.Random(times), tmp_path / "killed.log", count // 2 + times * WORKERS, 0
    left_alone(tmp_path / "calm", count, tmp_path / "calm.log", calls)
    for turn in range(times):  # at moments spread over the calls that are to come
        until = (turn + moment.random()) * count / 2 / times
        hits += killed_at(log, until, start(tmp_path / "killed", count, log, calls))
    left_alone(tmp_path / "killed", count, log, calls)

    assert files(tmp_path / "killed") == files(tmp_path / "calm")
    tally = Counter(log.read_text().splitlines())
    assert len(tally) == count // 2 and sum(tally.values()) <= count // 2 + hits * WORKERS
    assert hits and not list((tmp_path / "killed" / "steps").glob(".*"))


def test_what_had_no_answer_is_on_the_disk_before_the_next_is_asked(tmp_path: Path) -> None:
    """Or a kill would have it asked, and paid for, once more."""
    counts: list[int] = []

    def silent(_prompt: Prompt, till: CallMeter) -> dict[str, str]:
        with closing(sqlite3.connect(tmp_path / FILE)) as sql:
            counts.append(sql.execute("SELECT count(*) FROM outcomes WHERE failed").fetchone()[0])
        till.take()
        raise NoAnswer("not a word")

    run([source(12), odd_ones_go(), ask_step(workers=1)], tmp_path, RunOptions(client=silent))

    assert counts == [0, 1, 2, 3, 4, 5]


def test_kills_raise_no_budget_of_money(tmp_path: Path) -> None:
    """Every request that left is a line of the log, whether a kill came before it was paid or not."""
    work, log, most = tmp_path / "work", tmp_path / "log", 60
    for until in (8, 20, 32):
        killed_at(log, until, start(work, 400, log, 10_000, most * PRICE))
    last = start(work, 400, log, 10_000, most * PRICE)
    last.communicate(timeout=250)

    assert last.returncode == 1 and most - 4 * WORKERS <= lines(log) <= most
