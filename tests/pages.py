"""Pages of the documentation, run as they stand: lines of `eyespot` in this process, all others by the shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from glob import glob
from io import StringIO
from pathlib import Path

from tests.command import Done, environment, run_eyespot
from tests.worlds import copy_of_sample_gallery

ROOT = Path(__file__).resolve().parent.parent


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def tools(tmp_path: Path) -> dict[str, str]:
    """An environment in which `eyespot` and `python` are those of this test run."""
    (tmp_path / "bin").mkdir()
    for name, words in {"eyespot": "-m eyespot.cli", "python": ""}.items():
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        script.chmod(0o755)
    return environment(PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def run_page(page: Path, folder: Path, *more: Path) -> list[Done]:
    """Every shell block of the pages, one after the other, in this folder: how each line of `eyespot` alone went."""
    return run_lines("".join(block for one in (page, *more) for block in blocks(one, "sh")), folder)


def run_lines(text: str, folder: Path) -> list[Done]:
    env, lines = tools(folder) | {"PWD": str(folder)}, []
    for step in steps(text):
        if step.strip() == "eyespot demo":
            continue  # it indexes 208 photos anew: tests/cli/test_verbs.py and `make extras` run it
        if found := re.fullmatch(r'eyespot index "\$PHOTOS"(?: -g (\w+))?', step.strip()):
            copy_of_sample_gallery(folder / (found[1] or ".eyespot"))  # the line then finds nothing new
        if _is_plain(step):
            lines.append(run_eyespot(*_words(step, folder, env), cwd=folder))
            assert lines[-1].returncode == 0, f"{step}{lines[-1].stderr}"
        elif assigned := re.fullmatch(r"([A-Z]+)=(.*)", step.strip()):
            env[assigned[1]] = _shell(f"echo {assigned[2]}", folder, env).strip()
        else:
            _shell(step, folder, env)
    return lines


def run_code(code: str, folder: Path) -> str:
    """Python of a page as a program of its own in this folder; what it printed."""
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def steps(text: str) -> Iterator[str]:
    """Commands, each with the lines that belong to it: up to the end of a here-document, a loop or a quotation."""
    lines = iter(text.splitlines(keepends=True))
    for line in lines:
        while line.endswith("\\\n"):
            line = line.removesuffix("\\\n") + " " + next(lines, "").lstrip()
        while _is_open(line):
            line += next(lines)
        if line.strip():
            yield line


def _is_open(line: str) -> bool:
    here = re.search(r"<<'(\w+)'", line)
    if end := here[1] if here else "done" if line.startswith("for ") else "":
        return line.splitlines()[-1].strip() != end
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return False


def _is_plain(line: str) -> bool:
    """Whether it is one command of eyespot, of which the shell would do no more than replace variables and patterns."""
    bare = re.sub(r"""'[^']*'|"[^"]*"|\s#.*""", "", line)
    return line.startswith("eyespot ") and not re.search(r"[|<>&;`]|\$\(", bare)


def _words(line: str, folder: Path, env: dict[str, str]) -> Iterator[str]:
    line = re.sub(r"\$([A-Z]+)", lambda name: env[name[1]], line)
    for word in shlex.split(line, comments=True)[1:]:
        yield from sorted(glob(word, root_dir=folder)) or [word]


def _shell(script: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(["sh", "-ec", script], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, script + done.stderr
    return done.stdout
