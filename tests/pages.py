"""Pages of the documentation, run as they stand: lines of `eyespot` in this process, all others by the shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eyespot.cli import app

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
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EYESPOT_")}
    return clean | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def run_page(page: Path, folder: Path, env: dict[str, str], patch: pytest.MonkeyPatch) -> list[str]:
    """Every shell block of a page, one after the other, in this folder; what each line of `eyespot` printed."""
    patch.chdir(folder)
    printed = []
    for step in steps("".join(blocks(page, "sh"))):
        if step.startswith("eyespot "):
            printed.append(_spoken(step))
        elif assigned := re.fullmatch(r"([A-Z]+)=(.*)", step.strip()):
            patch.setenv(assigned[1], _shell(f"echo {assigned[2]}", env).strip())
        else:
            _shell(step, env)
    return printed


def steps(text: str) -> Iterator[str]:
    """Commands, each with the lines that a backslash joins to it, or up to the end of its here-document."""
    lines = iter(text.splitlines(keepends=True))
    for line in lines:
        while line.endswith("\\\n"):
            line = line.removesuffix("\\\n") + " " + next(lines, "").lstrip()
        if end := re.search(r"<<'(\w+)'", line):
            for more in lines:
                line += more
                if more.strip() == end[1]:
                    break
        if line.strip():
            yield line


def _spoken(line: str) -> str:
    words = [os.path.expandvars(word) for word in shlex.split(line, comments=True)]
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, f"{line}{done.output}{done.exception}"
    return done.stdout


def _shell(script: str, env: dict[str, str]) -> str:
    done = subprocess.run(["sh", "-ec", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, script + done.stderr
    return done.stdout
