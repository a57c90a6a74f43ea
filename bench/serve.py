"""Fifty people searching at once, beside one: the search page of a gallery of 200,000 vectors, for five minutes.

Each searcher asks for the page of a search that nobody asked before, reads it for about 2 seconds and asks again. The
ratio is the 95th percentile of their waiting over the median of a lone searcher on the same server just before (goal:
at most 10, and no error); and the server's memory at the end over that after the first fifth (goal: at most 1.1).

Small answers, as a verdict gets one, over a connection that stays open, each beside one of uvicorn alone with the same
bytes (goal: at most 10 times as long; without TCP_NODELAY it is 20 to 60 times).

Server and searchers share the machine. Exit code 4 if a goal is missed.

    python bench/serve.py [--quick] [--json] [--seconds N]
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.gallery.facts import FIXED
from eyespot.gallery.photos.sources import Root
from eyespot.types import Space, Vectors

SEARCHERS, THINKING = 50, 2.0  # people, seconds
SHARD = 50_000  # rows
WORDS = "heron egret lake stone river bridge red green old small bird tree boat night snow wing nest fish tower".split()  # noqa: SIM905
KINDS = ["heron", "egret", "coot", "grebe"]


@dataclass(frozen=True)
class Result:
    """A ratio to a named peer of the same run; below the goal is good."""

    name: str
    ratio: float
    peer: str
    p10: float
    p90: float
    n: int
    goal: float


@dataclass
class Waited:
    """How long each page took, in seconds, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


# -- a gallery without photos -----------------------------------------------------------------------------------


def make_gallery(folder: Path, rows: int) -> Path:
    """Clustered unit vectors in the built-in encoder's space, with dates, places and labels."""
    space: Space = rooms.load("encoders", "starter").space
    rng = np.random.default_rng(5)
    middles = rng.normal(size=(300, space.dim))
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, SHARD)):
        count = min(SHARD, rows - start)
        with disk.new_shard(folder, number) as shard:
            disk.write_items(shard, _facts(rng, start, count))
            vectors = _vectors(rng, middles, count)
            disk.write_vectors(shard, vectors, disk.SpaceNote(space, [], vectors[:3].astype(float).tolist()))
    stem = disk.stem_of(space)
    disk.write_header(folder, disk.Header({0: Root("/photos", "folder")}, {stem: space}, stem, rows))
    return folder


def _vectors(rng: np.random.Generator, middles: np.ndarray, count: int) -> Vectors:
    # A power-law spectrum, as real embeddings have it.
    spread = rng.normal(size=(count, middles.shape[1])) * np.arange(1, middles.shape[1] + 1) ** -0.5 * 8
    vectors = middles[rng.integers(0, len(middles), count)] + spread
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _facts(rng: np.random.Generator, start: int, count: int) -> pa.Table:
    numbers = range(start, start + count)
    columns = {
        "id": [f"{number:032x}" for number in numbers],
        "live": [True] * count,
        "roots": [[0]] * count,
        "paths": [[f"{number % 100}/{number}.jpg"] for number in numbers],
        "size": [100_000] * count,
        "mtime": [0] * count,
        "width": [640] * count,
        "height": [480] * count,
        "taken": (1_400_000_000 + rng.integers(0, 300_000_000, count)).tolist(),
        "latitude": rng.uniform(-60, 70, count).tolist(),
        "longitude": rng.uniform(-180, 180, count).tolist(),
        "camera": ["camera"] * count,
    }
    fixed = [pa.array(columns[one.name]).cast(one.type) for one in FIXED]
    kinds = pa.array([KINDS[at] for at in rng.integers(0, len(KINDS), count)])
    return pa.table([*fixed, kinds], names=[*FIXED.names, "kind"])


# -- small answers ----------------------------------------------------------------------------------------------

PEER = """
import sys
import uvicorn

async def app(scope, receive, send):
    if scope["type"] == "http":
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(BODY)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})

BODY = sys.stdin.buffer.read()
uvicorn.run(app, port=int(sys.argv[1]), http="h11", access_log=False, log_level="critical", lifespan="off")
"""


def small_answers(port: int, rounds: int) -> Iterator[Result]:
    """How much longer a small answer takes than one of uvicorn alone just before and after it."""
    with asking(port) as ours:
        ours("/v1/items?limit=1")
        item = json.loads(ours("/v1/items?limit=1")[1])["items"][0]["id"]
        for path in ("/healthz", f"/v1/items/{item}"):
            body = ours(path)[1]
            with uvicorn_alone(body) as peer_port, asking(peer_port) as peer:
                assert peer("/")[1] == body
                yield _compared(path.removesuffix(f"/{item}"), [(peer("/")[0], ours(path)[0]) for _ in range(rounds)])


def _compared(name: str, pairs: list[tuple[float, float]]) -> Result:
    peers, ours = np.array(pairs[10:]).T  # the first ones warm up
    around = (peers[:-1] + peers[1:]) / 2
    p10, p50, p90 = np.percentile(ours[:-1] / around, [10, 50, 90]).round(2).tolist()
    peer = f"uvicorn alone with the same bytes, {np.median(peers) * 1000:.2f} ms"
    return Result(f"serve/small{name.replace('/', '-')}", p50, peer, p10, p90, len(around), 10)


@contextmanager
def asking(port: int) -> Iterator[Callable[[str], tuple[float, bytes]]]:
    """One connection that stays open; gives seconds and body of each answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(path: str) -> tuple[float, bytes]:
        begun = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, path
        return time.perf_counter() - begun, body

    yield ask
    connection.close()


@contextmanager
def uvicorn_alone(body: bytes) -> Iterator[int]:
    """uvicorn with an application that answers with these bytes; gives its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", PEER, str(port)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(body)
    process.stdin.close()
    with _until_ready(process, port, "/"):
        yield port


# -- the server and its searchers -------------------------------------------------------------------------------


@contextmanager
def serving(gallery: Path) -> Iterator[int]:
    """A server in a process of its own, ready; gives its port."""
    port = free_port()
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", str(port)]
    process = subprocess.Popen(line, stderr=subprocess.DEVNULL)
    with _until_ready(process, port, "/readyz"):
        yield port


@contextmanager
def _until_ready(process: subprocess.Popen[bytes], port: int, address: str) -> Iterator[None]:
    """A block that begins once the server answers, and ends the server."""
    try:
        while asyncio.run(_status(port, address)) != 200:
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def _status(port: int, path: str) -> int:
    try:
        return (await fetch(port, path))[0]
    except OSError:
        return 0


async def fetch(port: int, path: str) -> tuple[int, bytes]:
    """Status and body of a page."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
    head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ", 2)[1]) if head else 0, body


async def look(port: int, waited: Waited, rng: random.Random) -> None:
    """One search that nobody asked before."""
    words = " ".join(rng.sample(WORDS, 3)) + f" {rng.randrange(10**9)}"
    begun = time.perf_counter()
    try:
        status, body = await fetch(port, f"/?q={quote_plus(words)}")
    except OSError as error:
        waited.wrong.append(str(error))
        return
    waited.seconds.append(time.perf_counter() - begun)
    if status != 200 or body.count(b'class="tile"') != 60:
        waited.wrong.append(f"{status} for {words}")


async def searcher(port: int, waited: Waited, rng: random.Random, until: float) -> None:
    """Somebody who searches, reads, and searches again."""
    await asyncio.sleep(rng.uniform(0, THINKING))  # people do not come all at once
    while time.monotonic() < until:
        await look(port, waited, rng)
        await asyncio.sleep(rng.uniform(0.5, 1.5) * THINKING)


async def lone(port: int, searches: int) -> Waited:
    """One searcher alone."""
    waited, rng = Waited(), random.Random(1)
    for _ in range(searches):
        await look(port, waited, rng)
    return waited


async def crowd(port: int, seconds: float) -> tuple[Waited, list[float]]:
    """All of them at once, and the server's memory after the first fifth and at the end, in bytes."""
    waited, until = Waited(), time.monotonic() + seconds
    everybody = [asyncio.create_task(searcher(port, waited, random.Random(n), until)) for n in range(2, 2 + SEARCHERS)]
    await asyncio.sleep(seconds / 5)
    early = await memory(port)
    await asyncio.gather(*everybody)
    return waited, [early, await memory(port)]


async def memory(port: int) -> float:
    """Resident bytes of the server, as it tells them."""
    found = re.search(rb"process_resident_memory_bytes (\d+)", (await fetch(port, "/metrics"))[1])
    return float(found[1]) if found else float("nan")


def measure(port: int, seconds: float) -> Iterator[Result]:
    """Both ratios; an error ends the run."""
    asyncio.run(lone(port, 10))
    alone = asyncio.run(lone(port, 30))
    together, (early, late) = asyncio.run(crowd(port, seconds))
    if wrong := alone.wrong + together.wrong:
        sys.exit(f"{len(wrong)} of {len(together.seconds)} searches went wrong, such as: {wrong[0]}")
    single = float(np.median(alone.seconds))
    print(f"alone {single * 1000:.0f} ms; {len(together.seconds)} searches in {seconds:.0f} s", file=sys.stderr)
    p10, p50, p90, p95 = (np.percentile(together.seconds, [10, 50, 90, 95]) / single).round(3).tolist()
    print(f"median of the crowd: {p50} of that; memory {early / 2**20:.0f} -> {late / 2**20:.0f} MiB", file=sys.stderr)
    yield Result("serve/p95", p95, "the median of a lone searcher", p10, p90, len(together.seconds), 10)
    grown = round(late / early, 3)
    yield Result("serve/memory", grown, "the same server after a fifth of the time", grown, grown, 1, 1.1)


def main() -> int:
    """Measure, print, and tell by the exit code whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON line per result")
    parser.add_argument("--quick", action="store_true", help="a tenth of the gallery and of the time")
    parser.add_argument("--seconds", type=float, help="how long the fifty search")
    options = parser.parse_args()
    rows, seconds = (20_000, 30.0) if options.quick else (200_000, 300.0)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="eyespot-bench-") as folder:
        gallery = make_gallery(Path(folder) / "gallery", rows)
        with serving(gallery) as port:
            small = small_answers(port, 100 if options.quick else 1000)
            for result in chain(small, measure(port, options.seconds or seconds)):
                missed += not result.ratio <= result.goal
                print(json.dumps(asdict(result)) if options.json else told(result), flush=True)
    return 4 if missed else 0


def told(result: Result) -> str:
    """A result for people."""
    verdict = "met" if result.ratio <= result.goal else "missed"
    return f"{result.name}: {result.ratio} of {result.peer}; goal {result.goal:g}: {verdict}"


if __name__ == "__main__":
    sys.exit(main())
