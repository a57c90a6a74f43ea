"""Numbers of a paper stand beside those of the data it printed them of, and of no others."""

from __future__ import annotations

from pathlib import Path

from eyespot.benchmarks import Evaluation, benchmark, scored
from eyespot.reports.tables import printed_of
from eyespot.types import Run
from tests.benchmarks import worlds


def papers(name: str, task: str, data: Path, run: Run) -> set[str]:
    """Whose numbers stand beside those of a run."""
    tasks = worlds.tasks_of(name, data)
    result = scored(tasks[task], run)
    evaluation = Evaluation(benchmark(name), benchmark(name).splits[0], "ours", [result])
    return {one.source.partition(",")[0] for one in printed_of(evaluation, result)}


def test_a_recos_set_of_one_s_own_has_no_published_numbers_beside_it(tmp_path: Path) -> None:
    run = Run.from_orders({"a": ["ta"], "b": ["tb"]})

    assert papers("recos", "i2t", worlds.recos(tmp_path), run) == set()


def test_the_released_recos_has(tmp_path: Path) -> None:
    released = {f"colour/{name}.jpg": [f"caption {at} of {name}" for at in range(5)] for name in "ab"}
    worlds.write(tmp_path / "recos_v1.json", released)
    run = Run.from_orders({"colour/a.jpg": ["colour/a.jpg#0"], "colour/b.jpg": ["colour/b.jpg#0"]})

    assert papers("recos", "i2t", tmp_path, run) == {"ReCoS"}


def test_an_rmir_set_that_was_built_here_has_none_and_another_has(tmp_path: Path) -> None:
    data, run = worlds.rmir(tmp_path), Run.from_orders({"q1": ["a"]})
    before = papers("rmir", "it2i", data, run)

    (data / "losses.jsonl").write_text("{}\n")

    assert before == {"RMIR"}
    assert papers("rmir", "it2i", data, run) == set()
