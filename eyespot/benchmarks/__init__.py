"""Published benchmarks, and your own: one file each, what they need, what they ask, and what papers print of them.

    inquire = benchmark("inquire-rerank")
    (task,) = inquire.tasks(Path("INQUIRE-Rerank"), "test")
    result = scored(task, read_run(Path("run.txt")))

The files whose names begin with an underscore are what benchmarks are made of and used by.
"""

from eyespot import rooms
from eyespot.benchmarks._benchmark import Benchmark, Printed, Task, check
from eyespot.benchmarks._evaluating import ByColumn, Evaluation, Jury, Result, made_by, scored
from eyespot.benchmarks._fitting import files_of, runs_of, sampled, unknown
from eyespot.benchmarks._papers import Beside, beside
from eyespot.benchmarks._searching import LEAST, GallerySearcher, unfit
from eyespot.search.rescored import Rescored
from eyespot.types import UsageError

__all__ = [
    "LEAST",
    "Benchmark",
    "Beside",
    "ByColumn",
    "Evaluation",
    "GallerySearcher",
    "Jury",
    "Printed",
    "Rescored",
    "Result",
    "Task",
    "benchmark",
    "beside",
    "check",
    "files_of",
    "made_by",
    "names",
    "runs_of",
    "sampled",
    "scored",
    "unfit",
    "unknown",
]


def names() -> list[str]:
    """The benchmarks there are, as the command line spells them."""
    return [name.replace("_", "-") for name in rooms.names("benchmarks")]


def benchmark(name: str) -> Benchmark:
    """A benchmark by its name; `UsageError` lists those there are."""
    if name.replace("_", "-") not in names():
        raise UsageError(f"no benchmark {name!r}; there are: {', '.join(names())}")
    found: Benchmark = rooms.load("benchmarks", name.replace("-", "_"))
    return found
