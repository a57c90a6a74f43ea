"""The command line in tests: in this process as a rule, in one of its own for signals, bytes and exit codes."""

from __future__ import annotations

import io
import logging
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from tests.wording import check_wording

Done = subprocess.CompletedProcess[str]


def run_eyespot(*words: object, cwd: Path | None = None, **env: str) -> Done:
    """`eyespot WORDS` through `main(argv)` with its streams captured, without the caller's own EYESPOT_ settings.

    Two at once need `run_process`: folder, environment and streams belong to the whole process.
    """
    from eyespot.cli import main

    assert not any(name.startswith(("PYTHON", "OMP_")) for name in env), "Python reads these when a process starts"
    line = [str(word) for word in words]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with _shell(out, err, cwd or Path.cwd(), environment(**env)):
        try:
            main(line)
            code: object = 0
        except SystemExit as end:
            code = end.code
    code = code if isinstance(code, int) else int(bool(code))
    return subprocess.CompletedProcess(["eyespot", *line], code, _text(out), _text(err))


def run_process(*words: object, cwd: Path | None = None, before: Sequence[str] = (), **env: str) -> Done:
    """`eyespot WORDS` in a new process; `before` is put before the line."""
    line = [*before, sys.executable, "-m", "eyespot.cli", *map(str, words)]
    return subprocess.run(line, cwd=cwd, env=environment(**env), capture_output=True, text=True, timeout=280)


def refuses(*words: object, code: int = 2, cwd: Path | None = None, **env: str) -> str:
    """`eyespot WORDS` ends with this code and the one sentence of the snapshot; the sentence."""
    done = run_eyespot(*words, cwd=cwd, **env)
    assert done.returncode == code, f"ended with {done.returncode}: {done.stderr or done.stdout}"
    sentence = done.stderr.strip().splitlines()[-1]
    check_wording(sentence)
    return sentence


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("EYESPOT_")} | more


def confined() -> list[str]:
    """What to put before a line so that file permissions hold for it, also for root; skips where that cannot be."""
    if os.geteuid() != 0:
        return []
    capabilities = "-dac_override,-dac_read_search"
    line = ["setpriv", "--bounding-set", capabilities, "--inh-caps", capabilities]
    if not shutil.which("setpriv") or subprocess.run([*line, "test", "-e", "/"], capture_output=True).returncode:
        pytest.skip("root reads everything, and no setpriv takes that from it")
    return line


@contextmanager
def _shell(out: io.TextIOWrapper, err: io.TextIOWrapper, cwd: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Streams, folder and environment of a command, its warnings and its log; afterwards all is as it was."""
    logger = logging.getLogger("eyespot")
    level, handlers, before = logger.level, list(logger.handlers), dict(os.environ)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), chdir(cwd):
        for name, stream in {"stdin": io.TextIOWrapper(io.BytesIO()), "stdout": out, "stderr": err}.items():
            patch.setattr(sys, name, stream)
        warnings.simplefilter("ignore", DeprecationWarning)  # as Python does
        _replace_environment(env)
        try:
            yield
        finally:
            _replace_environment(before)
            logger.setLevel(level)
            logger.handlers[:] = handlers


def _replace_environment(env: Mapping[str, str]) -> None:
    for name in os.environ.keys() - env.keys():
        del os.environ[name]
    os.environ.update(env)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode().replace("\r\n", "\n")
