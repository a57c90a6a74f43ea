"""A gallery of more files than the server may open is refused in a sentence, whose ways out work."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyespot import rooms
from eyespot.gallery.indexing import Options, index
from tests.worlds import draw

pytest.importorskip("resource", reason="ulimit is of Unix")
pytestmark = pytest.mark.long
LIMIT = 170  # of open files: 50 shards and some 20 other files fit, with 51 more shards beside them 20 are missing


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """Fifty shards of one photo each, with codes."""
    for seed in range(50):
        draw(tmp_path / "photos" / f"{seed}.jpg", seed)
    encoders = [rooms.load("encoders", "starter")]
    index(tmp_path / "gallery", [str(tmp_path / "photos")], encoders, Options(shard_rows=1, codes=True))
    assert len(list((tmp_path / "gallery" / "shards").iterdir())) == 50
    return tmp_path / "gallery"


@contextlib.contextmanager
def serving(gallery: Path, limit: int) -> Iterator[str]:
    """The server of this gallery with so many open files; its address."""
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", "0", "--no-history"]
    shell = f"ulimit -n {limit}; exec {shlex.join(line)}"
    with subprocess.Popen(["/bin/sh", "-c", shell], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        found = re.search(r"http://[\d.:]+", told)
        assert found, told + process.stderr.read()
        try:
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def readiness(address: str) -> str:
    until = time.monotonic() + 90
    while (told := get(f"{address}/readyz"))[0] != 200 and "come again in a moment" in told[1]:
        assert time.monotonic() < until
        time.sleep(0.2)
    return told[1]


def search(address: str, words: str = "a+disc") -> dict[str, list[object]]:
    status, body = get(f"{address}/v1/search?q={words}&ungrouped=true&limit=500")
    assert status == 200, body
    return json.loads(body)


def test_too_many_shards_are_one_sentence_and_both_ways_out_work(gallery: Path) -> None:
    with serving(gallery, 130) as address:
        told = readiness(address)
        assert "50 shards take 100 open files more" in told
        assert "50 shards take 100 open files more" in get(f"{address}/v1/search?q=disc")[1]
    limit = int(re.findall(r"ulimit -n (\d+)", told)[0])
    with serving(gallery, limit) as address:
        assert readiness(address) == "ready\n" and len(search(address)["items"]) == 50
    subprocess.run(
        [sys.executable, "-m", "eyespot.cli", "compact", "-g", str(gallery)], check=True, capture_output=True
    )
    with serving(gallery, 130) as address:
        assert readiness(address) == "ready\n" and len(search(address)["items"]) == 50


def test_what_cannot_be_opened_beside_the_old_snapshot_is_said_and_the_old_one_goes_on(gallery: Path) -> None:
    with serving(gallery, LIMIT) as address:
        assert readiness(address) == "ready\n" and len(search(address)["items"]) == 50
        draw(gallery.parent / "photos" / "new.jpg", 99)
        line = [sys.executable, "-m", "eyespot.cli", "index", "-g", str(gallery)]
        subprocess.run(line, check=True, capture_output=True)
        found = search(address, "stripes")
        assert len(found["items"]) == 50
        assert any("51 shards take 102 open files more" in str(note) for note in found["notes"])
    with serving(gallery, LIMIT) as address:
        assert readiness(address) == "ready\n" and len(search(address)["items"]) == 51
