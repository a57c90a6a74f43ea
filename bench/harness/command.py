"""The command line of a benchmark: its options, the environment it runs in, what it prints and its exit code."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

import numpy as np

from bench.harness.measurement import Measurement
from eyespot.extras import EXTRAS, install_line, needed
from eyespot.kernels import compiled
from eyespot.types import EyespotError


def processor_name() -> str:
    """The processor of this machine, as the system names it: several generations may have one name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    found = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "model name" not in found:
        return platform.processor() or platform.machine()
    kind = [f"{part} {found[name]}" for name, part in (("cpu family", "family"), ("model", "model")) if name in found]
    return f"{found['model name']} ({', '.join(kind)})" if kind else found["model name"]


class BenchmarkError(EyespotError):
    """Why there is no number: data that is missing, or answers that differ from the peer's."""

    exit_code = 4


class Command(argparse.ArgumentParser):
    """Options that all benchmarks have: `--quick`, `--json`, `--folder`; a benchmark adds its own.

    `threads` is what BLAS and OpenMP get, `quick` says what `--quick` does; `fast`: its goals are for compiled kernels.
    """

    def __init__(
        self,
        about: str | None,
        *,
        threads: int | None = None,
        quick: str = "a tenth of the size",
        fast: bool = False,
    ) -> None:
        about = f"{about}\nIt measures compiled kernels and needs the extra [fast]." if fast else about
        super().__init__(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.threads, self.fast = threads, fast
        self.add_argument("--quick", action="store_true", help=quick)
        self.add_argument("--json", action="store_true", help="print one line of JSON for each number")
        self.add_argument("--folder", type=Path, help="where there is room; default: the system's temporary folder")

    def run(self, measure: Callable[[argparse.Namespace], Iterable[Measurement]]) -> NoReturn:
        """Print each number as it comes, and exit: 0, or 4 if a goal is missed, a number unsure or data missing.

        `measure` gets the options; `options.folder` is a new folder that is removed at the end.
        """
        options = self.parse_args()
        restart(self.threads)
        machine = f"{processor_name()}, {os.cpu_count()} cores"
        say(f"{machine}; threads: {self.threads or 'the default'}; numpy {np.__version__}")
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="eyespot-bench-") as folder:
            options.folder = Path(folder).resolve()
            try:
                if self.fast and not compiled():
                    raise BenchmarkError(needed("this benchmark", "numba"))
                met = [show(each, options.json) for each in measure(options)]
                code = 0 if all(met) else 4
            except (EyespotError, ModuleNotFoundError) as error:
                say(sentence(error))
                code = 4
        sys.exit(code)


def restart(threads: int | None) -> None:
    """Start again without OPENBLAS_CORETYPE, which slows the peers, and with these threads: BLAS reads both once."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    if environment != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def show(measurement: Measurement, as_json: bool) -> bool:
    """Print a number, unless the machine was too busy; whether it is sure and its goal met."""
    if measurement.noisy:
        noise = f"the peer's p90/p10 is {measurement.noise:.1f}"
        say(f"{measurement.name}: thrown away, the machine is too busy to tell ({noise}); run again")
        return False
    print(measurement.json() if as_json else measurement, flush=True)
    return measurement.met


def say(line: str) -> None:
    """Progress, and what has no goal: on stderr."""
    print(line, file=sys.stderr, flush=True)


def sentence(error: Exception) -> str:
    """What is missing and the line that installs it, if a package is."""
    if not isinstance(error, ModuleNotFoundError):
        return str(error)
    package = str(error.name).partition(".")[0]
    if package in EXTRAS:
        return needed("this benchmark", package)
    return f"this benchmark needs {package}: {install_line('dev')}"
