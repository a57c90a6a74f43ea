"""Try each extra alone: the built wheel with only that extra in a fresh environment, and the commands it is for.

    python scripts/extras.py [NAME ...] [--changed] [--python PATH | --all-pythons]

The commands are in `extras.toml` beside this file; without names all are tried, with `--changed` those that the commits
of the last days reach (`changed.py`) and those that are tried each time. The wheel is built from the source
distribution, as an index would have it, and installed by uv. The base install (`none`) is tried on every Python from
3.11 on that this machine has, on PATH or from pyenv; an extra on the Python that runs this, unless an option says
otherwise. Ends with 1 if something failed, and says what.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeAlias

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))
from eyespot.extras import EXTRAS  # noqa: E402
from scripts.changed import Change, changed_rows, commit_that_passed  # noqa: E402

PLACE = CHECKOUT / ".eyespot-extras"  # git ignores it
TABLE = tomllib.loads((CHECKOUT / "scripts" / "extras.toml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])) or "uv"
PHOTOS = "categorization__[dfw]*"
OLDEST = (3, 11)  # the first Python that eyespot runs on
VERSION = "import ensurepip, sys, venv; print(*sys.version_info[:2], sys.implementation.name)"
SECONDS = 1_200  # for one command of the table, installs included
TAIL = 4_000  # characters of output that are shown of what failed


Package: TypeAlias = Future[tuple[Path, Path]]  # the source distribution, and the wheel


class Failed(Exception):
    """A command ended with another code than 0; the message has the end of what it printed."""


class Interpreter(NamedTuple):
    """A Python of this machine; `minor` is 12 for 3.12."""

    path: str
    minor: int

    @classmethod
    def at(cls, path: str) -> Interpreter | None:
        """The one at a path; None if it cannot make environments, is too old or no CPython."""
        done = subprocess.run([path, "-I", "-c", VERSION], capture_output=True, text=True)
        major, minor, kind = done.stdout.split() if done.returncode == 0 else (0, 0, "")
        return cls(path, int(minor)) if (int(major), int(minor)) >= OLDEST and kind == "cpython" else None


OURS = Interpreter(sys.executable, sys.version_info.minor)


def main() -> int:
    """The exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(TABLE)}")
    options.add_argument("--changed", action="store_true", help="what the commits since CI passed last reach")
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="tried at once (1)")
    which = options.add_mutually_exclusive_group()
    which.add_argument("--python", metavar="PATH", help="try everything on this Python alone")
    which.add_argument("--all-pythons", action="store_true", help="try extras, too, on every Python of this machine")
    given = options.parse_args()
    chosen = Interpreter.at(given.python) if given.python else OURS
    if chosen is None:
        options.error(f"{given.python} is no CPython from {OLDEST[0]}.{OLDEST[1]} on that can make environments")
    if unknown := set(given.names) - TABLE.keys():
        options.error(f"no {', '.join(sorted(unknown))} in extras.toml; there are: {', '.join(TABLE)}")
    names = given.names or (reached() if given.changed else list(TABLE))
    rows = []
    for name in names:
        everywhere = given.all_pythons or (name == "none" and not given.python)
        rows += [Row(name, python) for python in (pythons() if everywhere else [chosen])]
    with ThreadPoolExecutor(1) as building, ThreadPoolExecutor(given.jobs) as pool:
        package = building.submit(built)  # meanwhile the first rows make their environments
        passed = list(pool.map(lambda row: row.attempt(package), rows))
    failures = [str(row) for row, well in zip(rows, passed, strict=True) if not well]
    say(f"failed: {', '.join(failures)}" if failures else "all passed")
    return 1 if failures else 0


def reached() -> list[str]:
    """The names that a change since CI passed last reaches; says why, and what is left out."""
    chosen = changed_rows(Change.since(commit_that_passed()), TABLE, EXTRAS)
    for name, why in chosen.items():
        say(f"{name} is tried: {why}")
    left = [name for name in TABLE if name not in chosen]
    say(f"left out, as what they stand on has not changed since CI passed last: {', '.join(left) or 'nothing'}")
    return list(chosen)


def pythons() -> list[Interpreter]:
    """The Python that runs this, and of every other version the first on PATH, or from pyenv."""
    named = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], OLDEST[1] + 9)]
    places = [*(path for path in named if path), *sorted(map(str, Path.home().glob(".pyenv/versions/3.*/bin/python")))]
    ours = {OURS.minor: OURS}
    for python in filter(None, map(Interpreter.at, places)):
        ours.setdefault(python.minor, python)
    return list(ours.values())


def built() -> tuple[Path, Path]:
    """The source distribution of this checkout, and the wheel that is built out of it."""
    begun = time.perf_counter()
    out = PLACE / "dist"
    shutil.rmtree(out, ignore_errors=True)
    found = os.environ | {"PATH": os.pathsep.join([str(Path(UV).parent), os.environ["PATH"]])}  # by `build`
    run([sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(out), str(CHECKOUT)], CHECKOUT, found)
    ((sdist,), (wheel,)) = out.glob("*.tar.gz"), out.glob("*.whl")
    say(f"built {wheel.name} in {time.perf_counter() - begun:.0f} s")
    return sdist, wheel


class Row(NamedTuple):
    """An extra on a Python, tried in a folder of its own."""

    name: str
    python: Interpreter

    def __str__(self) -> str:
        return self.name if self.python == OURS else f"{self.name} (3.{self.python.minor})"

    def attempt(self, package: Package) -> bool:
        """Whether its commands pass; says what went wrong. All that it made is deleted at once."""
        begun = time.perf_counter()
        say(f"{self}: …")
        work = PLACE / f"{self.name}-{self.python.minor}"
        shutil.rmtree(work, ignore_errors=True)
        case, env = TABLE[self.name], self.environment(work / "here")
        try:
            if case.get("source"):
                unpack(package.result()[0], work)
            else:
                furnish(work / "here")
                self.install(package, work, env)
            installed = time.perf_counter()
            run(["sh", "-e", "-x", "-c", case["commands"]], work / "here", env)
        except Failed as error:
            say(f"{self}: FAILED after {time.perf_counter() - begun:.0f} s\n{error}\n")
            return False
        finally:
            shutil.rmtree(work, ignore_errors=True)
        say(f"{self}: passed; {installed - begun:.0f} s to install, {time.perf_counter() - installed:.0f} s to run")
        return True

    def environment(self, here: Path) -> dict[str, str]:
        """That of a stranger's shell: nothing of the developer's Python but where `tests` lies, and no hub."""
        ours, case = ("EYESPOT_", "PYTHON", "VIRTUAL_ENV"), TABLE[self.name]
        env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        if "PIP_FIND_LINKS" in env:  # wheels of this machine, as of torch for CPUs
            env.setdefault("UV_FIND_LINKS", env["PIP_FIND_LINKS"])
        if case.get("source"):
            return env | {"DEVELOPER": sys.executable} | ({} if self.python == OURS else {"PYTHON": self.python.path})
        paths = [str(here)]
        # torchvision has no wheel for the CPU build of torch everywhere: with the tests' stub the other one loads.
        paths += [str(CHECKOUT / "tests" / "stub_site")] if case.get("stub") else []
        return env | {
            "CHECKOUT": str(CHECKOUT),
            "HF_HUB_OFFLINE": "1",
            "PATH": os.pathsep.join([str(here.parent / "venv" / "bin"), env["PATH"]]),
            "PYTHONPATH": os.pathsep.join(paths),
            "UV": UV,
            "UV_CACHE_DIR": subprocess.run([UV, "cache", "dir"], capture_output=True, text=True).stdout.strip(),
            "XDG_CACHE_HOME": str(here / "cache"),
        }

    def install(self, package: Package, work: Path, env: Mapping[str, str]) -> None:
        """A fresh environment with the extra in it; it has pip, with which messages tell people to install more."""
        extra = f"[{self.name}]" if self.name in PROJECT["optional-dependencies"] else ""
        run([UV, "venv", "-q", "--seed", "--python", self.python.path, str(work / "venv")], work, env)
        install = [UV, "pip", "install", "-q", "--python", str(work / "venv"), "-c", str(CHECKOUT / "constraints.txt")]
        if first := TABLE[self.name].get("first"):
            run([*install, *first], work, env)
        run([*install, f"eyespot{extra} @ {package.result()[1].as_uri()}"], work, env)
        run([UV, "pip", "check", "-q", "--python", str(work / "venv")], work, env)


def furnish(work: Path) -> None:
    """The folder that commands run in: some sample photos with their captions, and the tests' tiny models."""
    photos = CHECKOUT / "eyespot" / "sample" / "photos"
    (work / "photos").mkdir(parents=True)
    chosen = sorted(photos.glob(PHOTOS))
    for photo in chosen:
        shutil.copy(photo, work / "photos")
    names = {photo.name for photo in chosen}
    header, *rows = (photos / "metadata.csv").read_text(encoding="utf-8").splitlines()
    captions = [header, *(row for row in rows if row.partition(",")[0] in names)]
    (work / "photos" / "metadata.csv").write_text("\n".join(captions) + "\n", encoding="utf-8")
    (work / "tests").symlink_to(CHECKOUT / "tests")


def unpack(sdist: Path, work: Path) -> None:
    """The source distribution, without the folder that it is packed in."""
    with tarfile.open(sdist) as packed:
        packed.extractall(work, filter="data")
    (work / sdist.name.removesuffix(".tar.gz")).rename(work / "here")


def run(line: list[str], work: Path, env: Mapping[str, str]) -> None:
    """Run a command to its end; `Failed` has the last of what it printed."""
    program = shutil.which(line[0], path=env["PATH"]) or line[0]
    try:
        done = subprocess.run(
            [program, *line[1:]],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        output = late.output.decode(errors="replace") if isinstance(late.output, bytes) else str(late.output)
        raise Failed(f"{output[-TAIL:]}\nnot done after {SECONDS} s") from None
    if done.returncode:
        raise Failed(f"{done.stdout[-TAIL:]}\n{line[0]} ended with {done.returncode}")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
