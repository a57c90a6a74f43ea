"""`eyespot serve` in a process of its own, for what a thread cannot show: kills, limits, streams, what is fetched."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.command import environment


class ServerProcess:
    """A running server: where it listens, the token of its owner if it has one, and what it wrote so far."""

    def __init__(
        self,
        gallery: Path,
        log: Path,
        *words: object,
        port: int = 0,
        before: Sequence[str] = (),
        script: str = "from eyespot.cli import main; main()",
        **env: str,
    ) -> None:
        line = [*before, sys.executable, "-c", script, "serve", "-g", gallery, "--port", port, *words]
        self.log, self.since = log, time.monotonic()
        with log.open("wb") as file:
            self.process = subprocess.Popen([*map(str, line)], env=environment(**env), stdout=file, stderr=file)
        until(lambda: "look at " in self.told or self.process.poll() is not None)
        found = re.search(r"look at (\S+);.*\n", self.told)
        assert found, self.told
        self.begun = found.end()
        address, _, self.token = found[1].partition("login#token=")
        self.address = address.replace("0.0.0.0", "127.0.0.1").rstrip("/")
        until(lambda: "come again in a moment" not in self.readiness)  # it has opened the gallery, or cannot

    @property
    def told(self) -> str:
        return self.log.read_text(encoding="utf-8")

    @property
    def readiness(self) -> str:
        return self.ask("readyz")[1]

    def ask(self, path: str, body: Any = None, token: str = "", **headers: str) -> tuple[int, str]:
        """Status and text of an answer; a body is sent as JSON unless it is bytes."""
        auth = {"Authorization": f"Bearer {token}"} if token else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data and not headers else {}
        request = urllib.request.Request(f"{self.address}/{path}", data, {**auth, **kind, **headers})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode(errors="replace")

    def search(self, words: str, **more: object) -> Any:
        return json.loads(self.ask(f"v1/search?{urlencode({'q': words, **more})}", token=self.token)[1])


@contextmanager
def started(gallery: Path, log: Path, *words: object, **how: Any) -> Iterator[ServerProcess]:
    server = ServerProcess(gallery, log, *words, **how)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait()


def until(holds: Callable[[], object], seconds: float = 250) -> None:
    """Wait for a condition; so long only that a test which hangs ends."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
