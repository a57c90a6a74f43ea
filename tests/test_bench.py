"""Benchmarks share one harness, and each of them says on `--help` what it compares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.harness import Measurement, Race, race

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = sorted((ROOT / "bench").glob("*.py"))
HELP = """
import runpy, sys
for path in sys.argv[1:]:
    sys.argv = [path, "--help"]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        assert end.code == 0, path
heavy = {"faiss", "hnswlib", "ir_measures", "pytrec_eval", "ray", "scann", "simsimd", "svs", "torch", "transformers"}
heavy.add("usearch")
sys.exit(f"loaded for --help: {loaded}" if (loaded := heavy & set(sys.modules)) else 0)
"""
SCRIPT = """
import os
from bench.harness import BenchmarkError, Command, Measurement, shared

def measurements(options):
    open(options.folder / "scratch", "w").close()
    yield Measurement("rows", 0.5, "a peer", 0.4, 0.6, 21, options.goal, noise=options.noise)
    yield Measurement.from_mean("threads", int(os.environ["OMP_NUM_THREADS"]), "one", 1.0)
    yield Measurement.from_mean("pinned", "OPENBLAS_CORETYPE" in os.environ, "none", 0.0)
    {last}

command = Command("What it compares.", threads=1)
command.add_argument("--goal", type=float)
command.add_argument("--noise", type=float, default=1.5)
command.run(measurements)
"""


def run(folder: Path, *words: str, last: str = "") -> subprocess.CompletedProcess[str]:
    """A benchmark of one's own, where BLAS is pinned and has other threads."""
    (folder / "mine.py").write_text(SCRIPT.replace("{last}", last), encoding="utf-8")
    environment = os.environ | {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "7", "PYTHONPATH": str(ROOT)}
    line = [sys.executable, str(folder / "mine.py"), "--folder", str(folder), *words]
    return subprocess.run(line, env=environment, capture_output=True, text=True)


def test_every_benchmark_answers_help_without_loading_its_peers() -> None:
    done = subprocess.run([sys.executable, "-c", HELP, *map(str, BENCHMARKS)], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == len(BENCHMARKS)


def test_a_line_of_json_has_the_fields_that_scripts_read(tmp_path: Path) -> None:
    done = run(tmp_path, "--json", "--goal", "0.5")

    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    assert first == {"name": "rows", "ratio": 0.5, "peer": "a peer", "p10": 0.4, "p90": 0.6, "n": 21, "goal": 0.5}


def test_it_runs_with_its_threads_and_an_unpinned_blas_and_says_where(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert done.stdout.splitlines()[1:] == [
        "threads: 1 (n=1) of one; goal 1: met",
        "pinned: 0 (n=1) of none; goal 0: met",
    ]
    assert f"{os.cpu_count()} cores; threads: 1" in done.stderr


@pytest.mark.parametrize(
    ("words", "last", "message"),
    [
        (["--goal", "0.4"], "", "goal 0.4: MISSED"),
        (["--noise", "2.1"], "", "rows: thrown away, the machine is too busy to tell (the peer's p90/p10 is 2.1)"),
        ([], "raise BenchmarkError('the answers differ')", "the answers differ"),
        ([], "shared('data/of/nobody')", "this benchmark needs "),
        ([], "import faiss_of_nobody", "this benchmark needs faiss_of_nobody: "),
    ],
)
def test_a_goal_that_is_missed_or_unsure_ends_with_4(tmp_path: Path, words: list[str], last: str, message: str) -> None:
    done = run(tmp_path, *words, last=last)

    assert done.returncode == 4
    assert message in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert ("rows:" in done.stdout) == ("--noise" not in words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py"]


def test_the_peer_runs_before_and_after_each_call_in_random_order() -> None:
    calls: list[str] = []
    ticks = iter(range(10**6))

    def calling(name: str) -> Race:
        def task(who: str, number: int) -> None:
            calls.append(f"{name}{number} {who}")

        return Race(name, "peer", lambda n: task("ours", n), lambda n: task("peer", n), clock=lambda: next(ticks))

    first, second = race([(calling("a"), range(21)), (calling("b"), range(21))])

    trials = [calls[at : at + 3] for at in range(4, len(calls), 3)]
    assert all([call.split()[1] for call in trial] == ["peer", "ours", "peer"] for trial in trials)
    order = [trial[0].split()[0] for trial in trials]
    assert sorted(order) == sorted(f"{name}{number}" for name in "ab" for number in range(1, 21))
    assert order != sorted(order, key=lambda name: (name[0], int(name[1:])))
    assert (first.name, first.n, first.ratio, second.noise) == ("a", 20, 1.0, 1.0)


def test_a_ratio_is_ours_over_the_mean_of_the_peer() -> None:
    times = iter([0.0, 2.0, 2.0, 5.0, 5.0, 9.0])  # the peer 2, ours 3, the peer 4
    single = Race("one", "peer", lambda _: None, lambda _: None, clock=lambda: next(times))

    single.run(None)

    assert single.measurement().ratio == 1.0
    assert single.measurement().noise == pytest.approx(3.8 / 2.2)
    assert Measurement.from_trials("t", range(1, 12), "peer").times(2).p90 == 20.0
