"""Does the suite notice faults? A sample of small ones is put into each room, and the tests that run them must fail.

    python scripts/mutants.py [--rooms ROOM ...] [--each 25] [--seed TEXT] [--json FILE]

All happens in a copy of the checkout. The tests of a room run once under coverage.py, which says what test runs what
line; each mutant, one a line, then meets those that run its line, the quickest first. What is compiled runs no lines:
there it meets the tests that run a line which names its function, and is compiled anew. A run that takes too long is
killed with all processes of its group, which ends loops in compiled code too, and counts as noticed.

Mutants of which somebody has seen that they change nothing stand in `mutants_equal.txt` beside this file, a line each
(FILE: BEFORE → AFTER), and are not drawn. Prints the survivors and the score of each room; ends with 1 if the share of
mutants that were noticed is below the floor.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from scripts.mutations import Mutation, mutations

PLUGIN = Path(__file__).resolve().parent / "mutants_plugin"
EQUAL = Path(__file__).resolve().parent / "mutants_equal.txt"
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "_build")
COVERAGE = """[run]
source = {package}
data_file = {data}
parallel = true
context = ${{MUTANTS_TEST-}}
sigterm = true
disable_warnings = no-data-collected,module-not-imported,module-not-measured,dynamic-conflict
"""
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants_plugin", "-m", "not slow and not long"]
SEEDED = ["--hypothesis-seed=0"] if find_spec("hypothesis") else []  # else what is drawn differs from mutant to mutant
KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
SLACK = 5.0  # how many times as long as without a fault its tests may take


@dataclass(frozen=True)
class Mutant:
    """A fault in a file of a room."""

    room: str
    file: str
    fault: Mutation

    def __str__(self) -> str:
        return f"{self.file}:{self.fault.line}: {_short(self.fault.before)} → {_short(self.fault.after)}"


@dataclass(frozen=True)
class Verdict:
    """What the tests said of a mutant."""

    room: str
    file: str
    line: int
    before: str
    after: str
    outcome: str
    tests: int  # that were to run
    seconds: float


@dataclass(frozen=True)
class Settings:
    """Where and how to draw and to test."""

    root: Path
    package: str
    each: int
    seed: str
    seconds: float  # of tests
    grace: float  # seconds that a run may take beyond its tests, to start and to compile


def main() -> int:
    """The exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rooms", nargs="+", metavar="ROOM", help="all if none is named")
    options.add_argument("--each", type=int, default=25, metavar="N", help="mutants a room (25)")
    options.add_argument("--seed", default="eyespot", help="another one draws others")
    options.add_argument("--json", type=Path, metavar="FILE", help="write what became of each mutant")
    options.add_argument("--floor", type=float, default=85, metavar="PERCENT", help="end with 1 below this score (85)")
    options.add_argument("--seconds", type=float, default=60, help="of tests a mutant, the quickest first (60)")
    options.add_argument("--grace", type=float, default=60, help="seconds to start and to compile before a kill (60)")
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants tested at once (1)")
    options.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the checkout")
    options.add_argument("--package", default="eyespot")
    given = options.parse_args()
    if not find_spec("coverage"):
        options.error("coverage.py is missing; install it with: pip install coverage")
    settings = Settings(given.root.resolve(), given.package, given.each, given.seed, given.seconds, given.grace)
    rooms = rooms_of(settings.root / settings.package)
    if unknown := set(given.rooms or ()) - rooms.keys():
        options.error(f"no room {', '.join(sorted(unknown))}; there are: {', '.join(rooms)}")
    os.nice(10)
    verdicts: list[Verdict] = []
    for room in given.rooms or rooms:
        verdicts += examine(room, rooms[room], settings, given.jobs)
    if given.json:
        given.json.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1, ensure_ascii=False))
    score = report(verdicts)
    return 1 if score < given.floor else 0


def rooms_of(package: Path) -> dict[str, list[Path]]:
    """The files of each room: a folder of the package, or a file beside them."""
    rooms: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).parts[0].removesuffix(".py")
        if not name.startswith("__"):
            rooms.setdefault(name, []).append(path)
    return rooms


def examine(room: str, files: list[Path], settings: Settings, jobs: int) -> list[Verdict]:
    """Draw a room's mutants, and test each."""
    mutants = draw(room, files, settings)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies = [Workshop(settings, Path(scratch) / str(number)) for number in range(jobs)]
        coverage = copies[0].measure(tests_of(room, files, settings))
        free: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        for workshop in copies:
            free.put(workshop)

        def test(mutant: Mutant) -> Verdict:
            workshop = free.get()
            try:
                verdict = workshop.test(mutant, coverage)
            finally:
                free.put(workshop)
            print(f"{verdict.outcome:9} {mutant} ({verdict.tests} tests, {verdict.seconds:.0f} s)", file=sys.stderr)
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(test, mutants))


def draw(room: str, files: Sequence[Path], settings: Settings) -> list[Mutant]:
    """As many lines of the room as are asked for, and of each line one fault; the same for the same seed."""
    chance = random.Random(f"{settings.seed} {room}")
    equal = set(EQUAL.read_text(encoding="utf-8").splitlines()) if EQUAL.exists() else set()
    lines: dict[tuple[str, int], list[Mutation]] = {}
    for path in files:
        file = path.relative_to(settings.root).as_posix()
        for fault in mutations(path.read_text(encoding="utf-8")):
            if f"{file}: {fault.before} → {fault.after}" not in equal:
                lines.setdefault((file, fault.line), []).append(fault)
    drawn: list[Mutant] = []
    for file, line in chance.sample(sorted(lines), len(lines)):
        fault = chance.choice(lines[file, line])
        if len(drawn) < settings.each and fault.apply((settings.root / file).read_text(encoding="utf-8")):
            drawn.append(Mutant(room, file, fault))
    return drawn


def tests_of(room: str, files: Iterable[Path], settings: Settings) -> list[str]:
    """The files of a room's tests: its folder's, and those elsewhere that import a module which these do not."""
    tests = settings.root / "tests"
    found = [*sorted((tests / room).rglob("test_*.py")), *sorted(tests.glob(f"test_{room}.py"))]
    known = set().union(*map(_imports, found))
    modules = {".".join(path.relative_to(settings.root).with_suffix("").parts) for path in files}
    lacking = {module.removesuffix(".__init__") for module in modules} - known
    found += [path for path in sorted(tests.rglob("test_*.py")) if path not in found and lacking & _imports(path)]
    return [path.relative_to(settings.root).as_posix() for path in found]


def _imports(path: Path) -> set[str]:
    """What a file imports: modules, and names of modules."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


# -- what test runs what ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    """Which test runs which line, and how long each takes."""

    files: Mapping[str, Mapping[int, set[str]]]  # {file: {line: tests}}
    seconds: Mapping[str, float]
    mentions: Mapping[str, Sequence[tuple[str, int, str]]]  # {name: where it stands: file, line, function}

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that may notice a mutant, the quickest first."""
        fault = mutant.fault
        if not fault.function:  # it runs when the file is imported, by whatever test does so first
            found = set().union(*self.files.get(mutant.file, {}).values())
        elif self.is_seen(mutant):
            found = self._on(mutant.file, fault.first, fault.last)
        else:
            found = self._naming(fault.function)
        return sorted(found & self.seconds.keys(), key=lambda test: (self.seconds[test], test))

    def is_seen(self, mutant: Mutant) -> bool:
        """Whether Python runs it; else it is compiled, or no test runs it."""
        return bool(self._on(mutant.file, mutant.fault.first, mutant.fault.last))

    def _on(self, file: str, first: int, last: int) -> set[str]:
        lines = self.files.get(file, {})
        return set().union(*(lines.get(line, set()) for line in range(first, last + 1)))

    def _naming(self, name: str) -> set[str]:
        """Tests that run a line which names a function, or names one that is not seen to run and names it.

        Of a file of tests that names it all are meant.
        """
        found: set[str] = set()
        names, seen = [name], {name}
        while names:
            for file, line, function in self.mentions.get(names.pop(), ()):
                tests = self._on(file, line, line) or {test for test in self.seconds if test.startswith(f"{file}::")}
                found |= tests
                if not tests and function and function not in seen:
                    names.append(function)
                    seen.add(function)
        return found


def mentions_in(paths: Iterable[Path], root: Path) -> dict[str, list[tuple[str, int, str]]]:
    """Where every name stands in these files."""
    found: dict[str, list[tuple[str, int, str]]] = {}

    def walk(node: ast.AST, file: str, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        if name is not None:
            found.setdefault(name, []).append((file, node.lineno, function))  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            walk(child, file, function)

    for path in paths:
        walk(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(root).as_posix(), "")
    return found


# -- in a copy ----------------------------------------------------------------------------------------------------


class Workshop:
    """A copy of the checkout, in which one mutant at a time is tested."""

    def __init__(self, settings: Settings, place: Path) -> None:
        self.settings, self.place = settings, place
        self.root = Path(shutil.copytree(settings.root, place / "copy", ignore=LEFT_OUT, symlinks=True))

    def measure(self, tests: Sequence[str]) -> Coverage:
        """Run tests as they are under coverage.py; those that fail are left out."""
        data, seconds = self.place / "coverage", self.place / "seconds.json"
        setup = self.place / "coveragerc"
        setup.write_text(COVERAGE.format(package=self.settings.package, data=data))
        env = {"COVERAGE_PROCESS_START": str(setup), "MUTANTS_SECONDS": str(seconds)}
        code = self._pytest(tests, env, None) if tests else 5
        if code:
            print(f"the tests fail as they are, and those that do are left out: {self._tail()}", file=sys.stderr)
        if not seconds.exists():
            raise SystemExit("the tests cannot be run as they are; nothing was tried")
        combined = import_module("coverage").Coverage(data_file=str(data), config_file=str(setup))
        combined.combine([str(self.place)])
        measured = combined.get_data()
        files = {
            Path(name).relative_to(self.root).as_posix(): {
                line: set(filter(None, contexts)) for line, contexts in measured.contexts_by_lineno(name).items()
            }
            for name in measured.measured_files()
        }
        sources = [*(self.root / self.settings.package).rglob("*.py"), *(self.root / test for test in tests)]
        mentions = mentions_in(sources, self.root)
        return Coverage(files, json.loads(seconds.read_text()), mentions)

    def test(self, mutant: Mutant, coverage: Coverage) -> Verdict:
        """What the tests that run a mutant's line say of it."""
        tests: list[str] = []
        expected = 0.0
        for test in coverage.tests(mutant):
            expected += coverage.seconds[test]
            if not tests or expected <= self.settings.seconds:
                tests.append(test)
        begun = time.monotonic()
        # A compiled function keeps what it was compiled with, also of other files.
        compiled = not (mutant.fault.function and coverage.is_seen(mutant))
        env = {"NUMBA_CACHE_DIR": str(self.place / "fresh")} if compiled else {}
        limit = self.settings.grace + SLACK * min(expected, self.settings.seconds)
        outcome = self._run(mutant, tests, env, limit) if tests else SURVIVED
        fault = mutant.fault
        place = (mutant.room, mutant.file, fault.line, fault.before, fault.after)
        return Verdict(*place, outcome, len(tests), round(time.monotonic() - begun, 1))

    def _run(self, mutant: Mutant, tests: Sequence[str], env: Mapping[str, str], limit: float) -> str:
        path, original = self.root / mutant.file, self.settings.root / mutant.file
        chosen = self.place / "tests.json"
        chosen.write_text(json.dumps(tests))
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        try:
            path.write_text(mutant.fault.apply(original.read_text(encoding="utf-8")), encoding="utf-8")
            code = self._pytest(["-x", *files], {**env, "MUTANTS_CHOSEN": str(chosen)}, limit)
        finally:
            shutil.copy2(original, path)
            shutil.rmtree(self.place / "fresh", ignore_errors=True)
        if code == 5:
            raise SystemExit(f"the tests of {mutant} are not found again: {self._tail()}")
        return TIMED_OUT if code is None else KILLED if code else SURVIVED

    def _pytest(self, words: Sequence[str], env: Mapping[str, str], limit: float | None) -> int | None:
        """pytest's exit code, and None if it took too long; nothing of its group lives on."""
        path = os.pathsep.join([str(self.root), str(PLUGIN)])
        usual = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(self.place / "compiled")}
        with (self.place / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *PYTEST, *SEEDED, *words],
                cwd=self.root,
                env={**os.environ, **usual, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _tail(self) -> str:
        return (self.place / "output").read_text(errors="replace")[-2000:]


# -- telling ------------------------------------------------------------------------------------------------------


def report(verdicts: Sequence[Verdict]) -> float:
    """Print survivors and scores; the score of all."""
    for verdict in verdicts:
        if verdict.outcome == SURVIVED:
            why = f"{verdict.tests} tests pass" if verdict.tests else "no test runs it"
            place = f"{verdict.file}:{verdict.line}"
            print(f"survived  {place}: {_short(verdict.before)} → {_short(verdict.after)} ({why})")
    for room, counts in _counted(verdicts):
        total = sum(counts.values())
        noticed = f"{counts[KILLED]} killed, {counts[TIMED_OUT]} timed out, {counts[SURVIVED]} survived"
        print(f"{room:12} {100 * (total - counts[SURVIVED]) / total:5.1f} %  of {total}: {noticed}")
    survived = sum(verdict.outcome == SURVIVED for verdict in verdicts)
    return 100 * (1 - survived / len(verdicts)) if verdicts else 100


def _counted(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, Counter[str]]]:
    rooms = list(dict.fromkeys(verdict.room for verdict in verdicts))
    for room in rooms:
        yield room, Counter(verdict.outcome for verdict in verdicts if verdict.room == room)
    if len(rooms) > 1:
        yield "all", Counter(verdict.outcome for verdict in verdicts)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


if __name__ == "__main__":
    sys.exit(main())
