"""Fifty people searching at once, and one alone: the search page of a gallery of 200,000 vectors, for five minutes.

Each searcher opens the page of a new search, reads it for 1 to 3 seconds and searches again. The ratio is the 95th
percentile of their waiting over the median of a lone searcher on the same server just before (goal: at most 10, and no
error); and the server's memory at the end over that after the first fifth (goal: at most 1.1).

Whether the goal can be met on a machine follows from three numbers, which are printed. Fifty people who read for 2
seconds ask for at most 25 pages a second; with the processor time of a page that is the share of the processors that
they need. Beyond what is free they queue, and each of them waits about 50 pages' time less those 2 seconds, so that
where a lone page takes longer than 2 s / (50 - 10) = 50 ms of a processor that nothing else is free beside, even the
mean is beyond 10 times the lone median. The load of the machine before it began is printed for that.

Twenty people do the same with the sample photos while two others load 200 of them, as a zip and as original files, over
and over (goal: at most 10).

Small answers, as for a verdict, over a connection that stays open, against uvicorn alone with the same bytes (goal: at
most 10 times as long; without TCP_NODELAY it is 20 to 60 times).

Server and searchers share the machine.

    python bench/serve.py [--quick] [--json] [--seconds N]
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote_plus

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa

from bench.harness import ROOT, BenchmarkError, Command, Measurement, Race, clusters, say
from eyespot import rooms, sample
from eyespot.gallery import disk, items_table, word_table
from eyespot.gallery.facts import FIXED
from eyespot.photos.places import Root
from eyespot.storage.atomic import new_folder
from eyespot.storage.systems import usable_cores
from eyespot.types import Space

SEARCHERS, BESIDE_DOWNLOADS, THINKING = 50, 20, 2.0  # people, people, seconds
SHARD = 50_000  # rows
WORDS = "heron egret lake stone river bridge red green old small bird tree boat night snow wing nest fish tower".split()  # noqa: SIM905
KINDS = ["heron", "egret", "coot", "grebe"]


@dataclass
class Waited:
    """How long each page took, in seconds, and the errors."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


# -- a gallery without photos -----------------------------------------------------------------------------------


def make_gallery(folder: Path, rows: int) -> Path:
    """Clustered unit vectors in the built-in encoder's space, with dates, places and labels."""
    space: Space = rooms.load("encoders", "starter").space
    rng, world = np.random.default_rng(5), clusters(300, space.dim)
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, SHARD)):
        count = min(SHARD, rows - start)
        with new_folder(disk.shard_path(folder, number)) as shard:
            items_table.write_items(shard, facts(rng, start, count))
            vectors = world.draw(count)
            disk.write_vectors(shard, vectors, disk.SpaceNote(space, [], vectors[:3].astype(float).tolist()))
    stem = disk.stem_of(space)
    disk.write_header(folder, disk.Header({0: Root("/photos", "folder")}, {stem: space}, stem, rows))
    word_table.complete(folder)
    return folder


def facts(rng: np.random.Generator, start: int, count: int) -> pa.Table:
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
    fixed = [pa.array(columns[column.name]).cast(column.type) for column in FIXED]
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


def small_answers(port: int, rounds: int) -> Iterator[Measurement]:
    """How much longer a small answer takes than one of uvicorn alone just before and after it."""
    with connection_to(port) as ours:
        item = json.loads(ours("/v1/items?limit=1"))["items"][0]["id"]
        for name, path in (("healthz", "/healthz"), ("v1-items", f"/v1/items/{item}")):
            with uvicorn_alone(ours(path)) as peer_port, connection_to(peer_port) as peer:
                yield pings(f"serve/small-{name}", partial(ours, path), partial(peer, "/"), rounds)


def pings(name: str, ours: Callable[[], bytes], theirs: Callable[[], bytes], rounds: int) -> Measurement:
    peer = "uvicorn alone with the same bytes"
    pinging = Race(name, peer, lambda _: ours(), lambda _: theirs(), 10, time.perf_counter, same=bytes.__eq__)
    for number in range(10):
        pinging.warm(number)
    for number in range(rounds):
        pinging.run(number)
    return pinging.measurement()


@contextmanager
def connection_to(port: int) -> Iterator[Callable[[str], bytes]]:
    """One connection that stays open; gives the body of each answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(path: str) -> bytes:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, path
        return body

    yield get
    connection.close()


@contextmanager
def uvicorn_alone(body: bytes) -> Iterator[int]:
    """uvicorn with an application that answers with these bytes; gives its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", PEER, str(port)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(body)
    process.stdin.close()
    with ready(process, port, "/"):
        yield port


# -- the server and its searchers -------------------------------------------------------------------------------


@contextmanager
def serving(gallery: Path) -> Iterator[tuple[int, int]]:
    """eyespot's server in its own process, ready; gives its port and the process's number."""
    port = free_port()
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", str(gallery), "--port", str(port)]
    process = subprocess.Popen(line, stderr=subprocess.DEVNULL, cwd=ROOT)
    with ready(process, port, "/readyz"):
        yield port, process.pid


@contextmanager
def ready(process: subprocess.Popen[bytes], port: int, path: str) -> Iterator[None]:
    """A block that begins once the server answers, and ends the server."""
    try:
        while asyncio.run(status(port, path)) != 200:
            if process.poll() is not None:
                raise BenchmarkError(f"the server ended with code {process.returncode} before it answered")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def status(port: int, path: str) -> int:
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


async def search(port: int, waited: Waited, rng: random.Random) -> None:
    """One new search, which no cache has."""
    words = " ".join(rng.sample(WORDS, 3)) + f" {rng.randrange(10**9)}"
    begun = time.perf_counter()
    try:
        code, body = await fetch(port, f"/?q={quote_plus(words)}")
    except OSError as error:
        waited.errors.append(str(error))
        return
    waited.seconds.append(time.perf_counter() - begun)
    if code != 200 or body.count(b'<li class="tile') != 60:
        waited.errors.append(f"{code} for {words}")


async def searcher(port: int, waited: Waited, rng: random.Random, until: float) -> None:
    """A person who searches, reads, and searches again."""
    await asyncio.sleep(rng.uniform(0, THINKING))  # people do not start all at once
    while time.monotonic() < until:
        await search(port, waited, rng)
        await asyncio.sleep(rng.uniform(0.5, 1.5) * THINKING)


async def lone(port: int, searches: int) -> Waited:
    """One searcher alone."""
    waited, rng = Waited(), random.Random(1)
    for _ in range(searches):
        await search(port, waited, rng)
    return waited


async def downloader(port: int, waited: Waited, path: str, until: float) -> None:
    """Somebody who loads the same file over and over."""
    while time.monotonic() < until:
        code, body = await fetch(port, path)
        if code != 200 or len(body) < 1 << 20:
            waited.errors.append(f"{code} and {len(body)} bytes for {path}")


async def beside_downloads(port: int, run: str, seconds: float) -> Waited:
    """Twenty searchers, and two who load the photos of a search."""
    waited, until = Waited(), time.monotonic() + seconds
    people = [searcher(port, waited, random.Random(n), until) for n in range(2, 2 + BESIDE_DOWNLOADS)]
    files = [f"/v1/runs/{run}?format={kind}&depth=200" for kind in ("zip", "originals")]
    await asyncio.gather(*people, *(downloader(port, waited, path, until) for path in files))
    return waited


async def crowd(port: int, pid: int, seconds: float) -> tuple[Waited, list[float]]:
    """All of them at once, and the server's memory after the first fifth and at the end, in bytes."""
    waited, until = Waited(), time.monotonic() + seconds
    everybody = [asyncio.create_task(searcher(port, waited, random.Random(n), until)) for n in range(2, 2 + SEARCHERS)]
    await asyncio.sleep(seconds / 5)
    early = memory(pid)
    await asyncio.gather(*everybody)
    return waited, [early, memory(pid)]


def memory(pid: int) -> float:
    """What a process holds in memory, in bytes, as Linux has it."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def processor_time(pid: int) -> float:
    """The processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fifty(port: int, pid: int, seconds: float) -> Iterator[Measurement]:
    """The waiting of fifty searchers, and the growth of the server's memory."""
    load = os.getloadavg()[0]
    asyncio.run(lone(port, 10))
    before = processor_time(pid)
    alone = asyncio.run(lone(port, 30))
    between = processor_time(pid)
    together, (early, late) = asyncio.run(crowd(port, pid, seconds))
    after = processor_time(pid)
    if errors := alone.errors + together.errors:
        raise BenchmarkError(f"{len(errors)} of {len(together.seconds)} searches failed, such as: {errors[0]}")
    single = float(np.median(alone.seconds))
    say(f"alone {single * 1000:.0f} ms; {len(together.seconds)} searches in {seconds:.0f} s")
    pages = (between - before) / len(alone.seconds), (after - between) / len(together.seconds)
    need = pages[1] * SEARCHERS / THINKING
    say(f"a page takes {pages[0] * 1000:.0f} ms of processor time alone and {pages[1] * 1000:.0f} ms among fifty;")
    say(f"who never wait for it need {need:.2f} of {usable_cores()} processors; load before: {load:.1f}")
    p10, p50, p90, p95 = (np.percentile(together.seconds, [10, 50, 90, 95]) / single).tolist()
    say(f"median of the fifty: {p50:.2f} of that; memory {early / 2**20:.0f} -> {late / 2**20:.0f} MiB")
    yield Measurement("serve/p95", p95, "the median of a lone searcher", p10, p90, len(together.seconds), 10)
    yield Measurement.from_mean("serve/memory", late / early, "the same server after a fifth of the time", 1.1)


def twenty(folder: Path, seconds: float) -> Iterator[Measurement]:
    """The waiting of twenty searchers beside two downloads, of the sample photos."""
    line = [sys.executable, "-m", "eyespot.cli", "index", str(sample.photos()), "-g", str(folder)]
    subprocess.run(line, check=True, stderr=subprocess.DEVNULL, cwd=ROOT)
    with serving(folder) as (port, _):
        with connection_to(port) as get:
            run = json.loads(get("/v1/search?q=a+windmill"))["run"]
        asyncio.run(lone(port, 10))
        alone = asyncio.run(lone(port, 30))
        together = asyncio.run(beside_downloads(port, run, seconds))
    if errors := alone.errors + together.errors:
        raise BenchmarkError(f"{len(errors)} requests failed, such as: {errors[0]}")
    single = float(np.median(alone.seconds))
    p10, p50, p90, p95 = (np.percentile(together.seconds, [10, 50, 90, 95]) / single).tolist()
    say(f"alone {single * 1000:.0f} ms; median of the twenty beside downloads: {p50:.2f} of that")
    peer, many = "the median of a lone searcher", len(together.seconds)
    yield Measurement("serve/p95-beside-downloads", p95, peer, p10, p90, many, 10)


def measurements(options: Namespace) -> Iterator[Measurement]:
    rows, seconds, rounds = (20_000, 30.0, 100) if options.quick else (200_000, 300.0, 1000)
    gallery = make_gallery(options.folder / "gallery", rows)
    with serving(gallery) as (port, pid):
        yield from small_answers(port, rounds)
        yield from fifty(port, pid, options.seconds or seconds)
    yield from twenty(options.folder / "sample", options.seconds or seconds)


if __name__ == "__main__":
    command = Command(__doc__, quick="a tenth of the gallery and of the time")
    command.add_argument("--seconds", type=float, help="how long the fifty search")
    command.run(measurements)
