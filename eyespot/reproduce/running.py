"""The commands of a recipe, one after the other; a finished one is not run again, and a killed run goes on.

`state.json` in the work folder says which lines have ended well. The lock of the folder is handed on to the command
that runs, so that a command whose `eyespot reproduce` was killed still keeps a second one away.
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from eyespot import sample
from eyespot.reproduce.recipes import TableCommand
from eyespot.storage.atomic import make_folder, whole_folder, write_whole
from eyespot.storage.locks import locked_for_children
from eyespot.storage.text_files import holds_something, json_of
from eyespot.types import EyespotError, UsageError

STATE = "state.json"
WELL = (0, 3)  # 3: done, but some items failed, which the command has listed
PROGRAMS = {"eyespot": [sys.executable, "-m", "eyespot.cli"], "python": [sys.executable]}  # those of this environment
Tell = Callable[[str], None]


class WorkState:
    """Which lines have begun and ended well in a work folder, by the line; a line that changes is run again."""

    def __init__(self, work: Path) -> None:
        self.work, self.path = work, work / STATE
        read = json_of(self.path) if self.path.is_file() else {}
        self.lines: dict[str, dict[str, Any]] = read if isinstance(read, dict) else {}

    def is_finished(self, command: TableCommand) -> bool:
        """Whether the line has ended well, and what it made is still there."""
        there = not command.makes or any(map(holds_something, self.work.glob(command.makes)))
        if command.line.startswith("eyespot download") and command.makes and command.line not in self.lines:
            return there  # somebody put it there by hand; what a killed download left is not whole
        return there and "ended" in self.lines.get(command.line, {})

    def begin(self, command: TableCommand) -> None:
        """Note that a line is at work; it is on the disk when this returns."""
        self._write(command, {"step": command.id})

    def finish(self, command: TableCommand, code: int, seconds: float) -> None:
        """Note that a line has ended well; it is on the disk when this returns."""
        ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._write(command, {"step": command.id, "exit_code": code, "seconds": round(seconds, 1), "ended": ended})

    def _write(self, command: TableCommand, about: dict[str, Any]) -> None:
        self.lines[command.line] = about
        data = json.dumps(self.lines, indent=1, ensure_ascii=False).encode()
        write_whole(self.path, lambda file: file.write(data))


def run_commands(commands: Sequence[TableCommand], work: Path, tell: Tell) -> dict[str, str]:
    """Every line that is not finished, in order, in the work folder; its stdout goes into `logs/`.

    A line of some systems that fails ends these alone; why is returned by their names. Raises `EyespotError` with the
    line of the whole table that failed; everything before it stays finished.
    """
    make_folder(work / "logs")
    failed: dict[str, str] = {}
    with locked_for_children(work) as handles:
        state = WorkState(work)
        for number, command in enumerate(commands, 1):
            where = f"[{number}/{len(commands)}]"
            hopeless = command.systems and failed.keys() >= {*command.systems}
            done = "left out: " if hopeless else "finished: " if state.is_finished(command) else ""
            tell(f"{where} {done}{command.line}")
            if done:
                continue
            state.begin(command)
            start = time.monotonic()
            with (work / "logs" / f"{number:02d}.out").open("wb") as file:
                running = subprocess.Popen(words_of(command.line, work), cwd=work, stdout=file, pass_fds=tuple(handles))
                code = _waited(running)
            if code in WELL:
                state.finish(command, code, time.monotonic() - start)
                continue
            message = f"step {number} ({command.id}) ended with {code}; see the message above"
            if not command.systems:
                raise EyespotError(f"{message}, and run the same line again to go on from here")
            tell(message)
            failed |= dict.fromkeys(command.systems, message)
    return failed


def words_of(line: str, work: Path) -> list[str]:
    """A line in words. No shell: a name with a quote in it means itself, and patterns mean the files that are there."""
    words: list[str] = []
    for word in shlex.split(line):
        found = sorted(str(path.relative_to(work)) for path in work.glob(word)) if "*" in word else []
        words += found or [word]
    return [*PROGRAMS.get(words[0], words[:1]), *words[1:]]


def _waited(running: subprocess.Popen[bytes]) -> int:
    """The exit code of a command, which ends with this process."""
    try:
        return running.wait()
    except BaseException:
        with suppress(OSError):
            running.terminate()
        running.wait()
        raise


# -- miniatures of the benchmarks in their official layouts, made of sample photos; their queries are made up ---------


DATA, MARK, PICTURES = "data", "made-by-sample.txt", "pictures.csv"
WORLDS = ("inquire", "inquire-rerank", "ilias", "inquire-and-ilias", "rmir", "recos")
_FOLDER = Path(str(files("eyespot.reproduce") / "samples"))


def make_world(name: str, work: Path) -> None:
    """The data of a miniature below `work/data`, whole or not there; left as it is if it is there.

    `UsageError` if other data are there: those of a table, or of another miniature.
    """
    if name not in WORLDS:
        raise UsageError(f"no miniature {name!r}; there are: {', '.join(WORLDS)}")
    make_folder(work)
    if (work / DATA).exists():
        if _world_in(work) != name:
            raise UsageError(f"{work / DATA} holds other data than this miniature; choose another folder with --work")
        return
    with whole_folder(work / DATA) as data:
        for part in name.split("-and-"):
            shutil.copytree(_FOLDER / part, data, dirs_exist_ok=True)
            for row in csv.DictReader((data / PICTURES).read_text("utf-8").splitlines()):
                make_folder((data / row["place"]).parent)
                shutil.copy(sample.photos() / row["photo"], data / row["place"])
            (data / PICTURES).unlink()
        (data / MARK).write_text(name + "\n", encoding="utf-8")


def refuse_sample(work: Path) -> None:
    """`UsageError` for a folder with the made-up data of a miniature, which a table must not take for its own."""
    if _world_in(work) is not None:
        raise UsageError(f"{work} holds a miniature, whose data are made up; choose another folder with --work")


def _world_in(work: Path) -> str | None:
    mark = work / DATA / MARK
    return mark.read_text(encoding="utf-8").strip() if mark.is_file() else None
