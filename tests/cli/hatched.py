"""`eyespot` in processes of its own, hatched from one that has the usual imports behind it.

Hundreds of command lines would spend a third of their time on the same imports. A process hatched here is forked from
one that runs nothing else and has no threads; it gets arguments, folder, environment and files of its own, and ends as
any other does. How `eyespot` starts from nothing is what the tests of pages, kills and `--help` see.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parents[2]
USUAL = (
    "eyespot.cli._verbs",
    "typer._adapters",
    "pydantic.main",
    "numpy",
    "pyarrow.parquet",
    "PIL.Image",
    "eyespot.search.collection",
    "eyespot.search.chain",
    "eyespot.gallery.indexing",
    "eyespot.encoders.starter",
    "eyespot.indexes.exact",
    "eyespot.kernels.scans",
    "eyespot.metrics",
    "tokenizers",
    "pyarrow.compute",
)


class Nest:
    """A process that hatches others; one for each worker of the suite. It is not `ready` where it cannot be forked."""

    def __init__(self) -> None:
        self._turn = Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line = [sys.executable, "-m", "tests.cli.hatched", str(theirs.fileno())]
        env = os.environ | {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # pyarrow has a thread else
        self._process = subprocess.Popen(line, cwd=ROOT, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._socket = ours
        self.ready = bool(ours.recv(99))

    def run(
        self, words: Sequence[str], cwd: Path | None, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """What `subprocess.run` gives for `eyespot WORDS`, its output as text."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._hatched(words, cwd, env, timeout, (out, err))
            outputs = [_text(file) for file in (out, err)]
        return subprocess.CompletedProcess(["eyespot", *words], code, *outputs)

    def _hatched(
        self,
        words: Sequence[str],
        cwd: Path | None,
        env: Mapping[str, str],
        timeout: float,
        files: tuple[IO[bytes], ...],
    ) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs, self._turn:
                order = json.dumps([list(words), str(cwd or Path.cwd()), dict(env)]).encode()
                socket.send_fds(self._socket, [order], [theirs.fileno(), *(file.fileno() for file in files)])
            pid = int(ours.recv(99))
            if not select.select([ours], [], [], timeout)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["eyespot", *words], timeout)
            return int(ours.recv(99))

    def close(self) -> None:
        self._socket.close()  # which it takes as the sign to end
        self._process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


# -- in the process that hatches -----------------------------------------------------------------------------------


def brood(orders: socket.socket) -> None:
    """Fork for each order; a keeper of each waits for its end and says how it ended."""
    for name in USUAL:
        importlib.import_module(name)
    if os.listdir("/proc/self/task") != [str(os.getpid())]:
        return  # what has threads is not safely forked
    gc.freeze()  # else each child copies most of this memory when it ends, only to see that nothing of it is garbage
    orders.send(b"ready")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    while True:
        order, fds, _, _ = socket.recv_fds(orders, 1 << 22, 3)
        if not order:
            return
        if os.fork() == 0:
            orders.close()
            _keep(*json.loads(order), *fds)
        for fd in fds:
            os.close(fd)


def _keep(words: list[str], cwd: str, env: dict[str, str], answers: int, *files: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(answers)
        _become(words, cwd, env, files)
    with socket.socket(fileno=answers) as channel:
        channel.send(str(pid).encode())
        channel.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _become(words: list[str], cwd: str, env: dict[str, str], files: Sequence[int]) -> NoReturn:
    """Python's own way to its end, as if the process had been `python -m eyespot.cli WORDS`."""
    for fd, file in zip((1, 2), files, strict=True):
        os.dup2(file, fd)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["eyespot", *words]
    runpy.run_module("eyespot.cli", run_name="__main__", alter_sys=True)
    raise SystemExit


if __name__ == "__main__":
    brood(socket.socket(fileno=int(sys.argv[1])))
