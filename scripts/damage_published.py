"""Damage a published gallery at random, and count what the command that `eyespot search -g URL` names does about it.

    python scripts/damage_published.py                  100 faults in a folder, some minutes
    python scripts/damage_published.py --s3             in a bucket of moto's S3 server, on this machine
    python scripts/damage_published.py --count 10 --seed 7

A gallery of sample photos is published. Each fault flips a byte, cuts or deletes a file that is
published, tears `gallery.json`, lets two galleries be published at once, or kills a publisher. Then somebody without a
copy searches. Either the answer is that of a gallery that was published, or there is one sentence with a command:
where the gallery lies, exactly this command is run, and the next search must find all that the gallery finds. Ends with
1 if a fault is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec

from eyespot import rooms, sample
from eyespot.gallery.indexing import Options, index
from eyespot.gallery.remote import MANIFEST, OURS

KINDS = ("flipped", "cut", "deleted", "torn", "two publishers", "killed")
COMMAND = re.compile(r"eyespot publish \S+(?: --check)?")
ROOT = Path(__file__).resolve().parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run_process(*words: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`eyespot …` in a process of its own."""
    return subprocess.run(line_of(*words), cwd=cwd, env=os.environ | env, capture_output=True, text=True)


def line_of(*words: object) -> list[str]:
    """What runs `eyespot …`."""
    return [sys.executable, "-m", "eyespot.cli", *map(str, words)]


@dataclass
class World:
    """Two galleries in folders of their own, and the address to which both are published; `env` is that of its client.

    The second has a picture more than the first, so a reader can tell them apart.
    """

    folder: Path
    url: str
    env: Mapping[str, str] = field(default_factory=dict)
    run: Run = run_process

    def __post_init__(self) -> None:
        photos = sorted(Path(sample.photos()).glob("*.jpg"))
        for name, count in (("one", 9), ("other", 10)):
            (self.folder / name / "photos").mkdir(parents=True)
            for photo in photos[:count]:
                shutil.copy(photo, self.folder / name / "photos")
            gallery = self.folder / name / ".eyespot"
            index(
                gallery,
                [str(self.folder / name / "photos")],
                [rooms.load("encoders", "starter")],
                Options(shard_rows=3),
            )
        self.fs, self.root = fsspec.core.url_to_fs(self.url)
        first = self.publish("one")
        assert first.returncode == 0, first.stderr

    def publish(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        """`eyespot publish` of one of the galleries."""
        return self.run("publish", self.url, *options, cwd=self.folder / name, **self.env)

    def contents(self, gallery: Path) -> dict[str, bytes]:
        """What a gallery is, or a copy of one: its files by name."""
        named = {path.relative_to(gallery).as_posix(): path for path in gallery.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in named.items() if OURS.fullmatch(name)}

    def search(self) -> tuple[str, dict[str, bytes]]:
        """What somebody without a copy is told who searches, empty if there are answers, and the copy."""
        cache = self.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        env = {**self.env, "XDG_CACHE_HOME": str(cache)}
        done = self.run("search", "a windmill", "-k", "3", "-g", self.url, "--json", cwd=self.folder, **env)
        if done.returncode:
            return done.stderr.strip() or "nothing", {}
        assert len(json.loads(done.stdout)["items"]) == 3
        (copy,) = (cache / "eyespot" / "galleries").iterdir()
        return "", self.contents(copy)

    def is_sound(self, found: dict[str, bytes]) -> bool:
        """Whether a copy is one of the galleries, whole."""
        return found in [self.contents(self.folder / name / ".eyespot") for name in ("one", "other")]


# -- faults -------------------------------------------------------------------------------------------------


def damage(world: World, kind: str, draw: random.Random) -> str:
    """Do one fault to what is published, and say to which file."""
    if kind == "two publishers":
        return _two_publishers(world, draw)
    if kind == "killed":
        return _killed(world, draw)
    listed = json.loads(world.fs.cat_file(f"{world.root}/{MANIFEST}"))
    sizes = {at: size for at, size, *_ in listed["files"].values()}
    names = [MANIFEST, *(name for name, size in sizes.items() if size or kind == "deleted")]
    name = MANIFEST if kind == "torn" else draw.choice(names)
    place = f"{world.root}/{name}"
    if kind == "deleted":
        world.fs.rm_file(place)
        return name
    data = bytes(world.fs.cat_file(place))
    at = draw.randrange(len(data))
    if kind == "flipped":
        data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    else:
        data = data + data[at:] if kind == "torn" and draw.random() < 0.5 else data[:at]
    world.fs.pipe_file(place, data)
    return name


def _two_publishers(world: World, draw: random.Random) -> str:
    """Both galleries at once, each some times over."""
    processes = []
    for name in draw.sample(["one", "other"], 2):
        line = line_of("publish", world.url, *(["--check"] if draw.random() < 0.3 else []))
        processes.append(_start(world, line, name))
        time.sleep(draw.random() * 0.1)
    codes = [process.wait() for process in processes]
    assert 0 in codes, "neither publication came through"
    return "both"


def _killed(world: World, draw: random.Random) -> str:
    """The other gallery, whose publisher is killed at any moment; sometimes after a picture of it is new."""
    process = _start(world, line_of("publish", world.url), "other")
    time.sleep(draw.uniform(0.2, 2.0))
    process.kill()
    process.wait()
    return "the other gallery"


def _start(world: World, line: list[str], name: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    env = os.environ | dict(world.env) | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(line, cwd=world.folder / name, env=env, **quiet)  # type: ignore[call-overload,no-any-return]


def outcome(world: World, kind: str, draw: random.Random) -> tuple[str, str]:
    """The file that was damaged, and what became of it: `not seen`, `healed`, or what is still wrong."""
    file = damage(world, kind, draw)
    sentence, found = world.search()
    became = "healed"
    if not sentence:
        became = "not seen" if world.is_sound(found) else "a copy that is neither gallery"
    elif line := COMMAND.search(sentence):
        words = shlex.split(line[0])[1:]
        done = world.run(*words, cwd=world.folder / "one", **world.env)
        sentence, found = world.search()
        if done.returncode or sentence or not world.is_sound(found):
            became = f"{line[0]} ended with {done.returncode}, then: {sentence or 'another gallery'}; {done.stderr}"
    else:
        became = f"a sentence without a command: {sentence}"
    done = world.publish("one")
    if done.returncode:
        became = f"the next publication ended with {done.returncode}: {done.stderr}"
    return file, became


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """moto's S3 server on this machine, with an empty bucket `birds`; the settings that lead clients to it."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "some", "AWS_SECRET_ACCESS_KEY": "thing", "AWS_DEFAULT_REGION": "us-east-1"}
    env = {**keys, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    before = dict(os.environ)
    os.environ.update(env)
    try:
        fsspec.get_filesystem_class("s3").clear_instance_cache()  # clients of an earlier server
        fsspec.filesystem("s3").makedirs("birds", exist_ok=True)
        yield env
    finally:
        os.environ.clear()
        os.environ.update(before)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        server.stop()


def faults(world: World, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Kind, file and outcome of each fault, drawn by a seed."""
    draw = random.Random(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield kind, *outcome(world, kind, draw)


def main() -> int:
    """The exit code."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--s3", action="store_true", help="in a bucket of moto's S3 server")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="eyespot-published-") as folder:
        if given.s3:
            with s3_server() as env:
                return _report(World(Path(folder), "s3://birds/store", env), given)
        return _report(World(Path(folder), f"file://{folder}/store"), given)


def _report(world: World, given: Any) -> int:
    counts: Counter[tuple[str, str]] = Counter()
    for kind, file, became in faults(world, given.count, given.seed):
        counts[kind, became if became in ("healed", "not seen") else "LEFT"] += 1
        print(f"{kind:<15} {file}: {became}", flush=True)
    print()
    for (kind, became), count in sorted(counts.items()):
        print(f"{kind:<15} {became:<9} {count}")
    return 1 if any(became == "LEFT" for _, became in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
