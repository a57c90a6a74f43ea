"""`eyespot search` asks a server of the gallery that runs here, which has everything loaded: in a tenth of the time.

Only what a server answers in the very same bytes is asked of it: plain options, no files. Its port and a token lie in a
file that only this user may read, and that it locks while it lives. This module imports nothing that takes time.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NamedTuple

import eyespot
from eyespot.storage.systems import lock_now

PATH = "/v1/command/search"
ALIVE, WAIT = 1.5, 60  # seconds: for a sign of life, for an answer
_LINE = 1 << 16  # bytes of a line of an answer's head
VALUES = {"-k", "--by", "--where", "--after", "--before", "--near", "--label", "-e", "--encoder", "-g", "--gallery"}
FLAGS = {"--teach", "--no-teach", "--grouped", "--ungrouped", "--json", "--paths", "--print0"}
_FILE = re.compile(r"[/\\~]|\.[A-Za-z0-9]{2,5}(?![A-Za-z0-9])|^[A-Za-z]:")  # what might be the name of a picture
_SETTINGS = "eyespot.toml"


class ServerNote(NamedTuple):
    """What a running server leaves for searches on this machine: where it listens, its token, and what it serves."""

    port: int
    token: str
    gallery: tuple[int, int]  # device and number of its folder
    version: str
    machine: tuple[str, ...]  # on which it runs


def answer(words: Sequence[str]) -> int | None:
    """Print what a running server says to `eyespot WORDS…`; the exit code, or None if none can be asked."""
    plain = all((stream.encoding or "").lower() in ("utf-8", "utf8") for stream in (sys.stdout, sys.stderr))
    line = search_line(words) if plain else None
    found = line and note_of(line[0])
    if not line or not found:
        return None
    reply = reply_of(found, ["search", *line[1], f"--gallery={line[0]}"])
    if reply is None:
        return None
    sys.stderr.write(reply["stderr"])
    sys.stderr.flush()
    sys.stdout.buffer.write(reply["stdout"].encode("utf-8", "surrogateescape"))
    sys.stdout.flush()
    return int(reply["code"])


def search_line(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """The same of a whole line; None also where a setting other than the gallery comes from anywhere else."""
    settings = {name for name in os.environ if name.startswith(("EYESPOT_", "_EYESPOT"))} - {"EYESPOT_GALLERY"}
    return None if words[:1] != ["search"] or settings or os.path.lexists(_SETTINGS) else plain_line(words[1:])


def plain_line(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """The gallery and the other words of a line that a server can answer; None for any other line."""
    gallery, rest = os.environ.get("EYESPOT_GALLERY"), []
    left = list(words)
    while left:
        word = left.pop(0)
        name, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in VALUES:
            if not sign and not left:
                return None
            value = value if sign else left.pop(0)
            if name in ("-g", "--gallery"):
                gallery = value
            else:
                rest += [name, value]
        elif word in FLAGS or not word.startswith("-") or word == "-" or word.startswith("- "):
            if word not in FLAGS and _FILE.search(word):
                return None
            rest.append(word)
        else:
            return None
    gallery = gallery or _nearest()
    return None if not gallery or gallery.startswith("~") or ":/" in gallery else (gallery, rest)


def _nearest() -> str | None:
    """`.eyespot` in this folder or the nearest one above it, as `gallery_here` finds it."""
    here = os.getcwd()
    while True:
        place = os.path.join(here, ".eyespot")
        if os.path.isfile(os.path.join(place, "gallery.toml")):
            return place
        if (above := os.path.dirname(here)) == here:
            return None
        here = above


def reply_of(found: ServerNote, words: list[str]) -> dict[str, Any] | None:
    """What the server says; None where it cannot answer this in the same bytes, or not at all."""
    import socket  # http.client takes as long to import as a server to search

    body = json.dumps({"words": words})
    head = f"Host: 127.0.0.1:{found.port}\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {found.token}\r\n\r\n"
    try:
        with (
            socket.create_connection(("127.0.0.1", found.port), ALIVE) as connection,
            connection.makefile("rb") as answers,
        ):
            # a server that is suspended or hangs takes requests and is silent
            connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{found.port}\r\n\r\n".encode())
            _read(answers)
            connection.settimeout(WAIT)
            connection.sendall(f"POST {PATH} HTTP/1.1\r\n{head}{body}".encode())
            status, text = _read(answers)
        reply = json.loads(text) if status == 200 else None
    except (OSError, LookupError, ValueError):
        return None
    return reply if isinstance(reply, dict) else None


def _read(answers: BinaryIO) -> tuple[int, bytes]:
    """The status of an answer and its body, whose length its head has."""
    status, length = int(answers.readline(_LINE).split()[1]), 0
    while (line := answers.readline(_LINE)).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, answers.read(length)


# -- the note ---------------------------------------------------------------------------------------------------


def _place(gallery: str) -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "eyespot", "servers", "{:x}-{:x}".format(*_identity(gallery)))


def _version() -> str:
    """The version, and which copy of it: two checkouts of one version may differ."""
    return f"{eyespot.__version__} {os.path.realpath(eyespot.__file__)}"


def _identity(gallery: str) -> tuple[int, int]:
    status = os.stat(gallery)
    return status.st_dev, status.st_ino


def _machine() -> tuple[str, ...]:
    """The boot, host and network of this process: a home may be shared with others, which have other ports."""
    boot = network = ""  # where it is not Linux
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    with suppress(OSError):
        network = os.readlink("/proc/self/ns/net")
    return os.uname().nodename, boot, network


def note_of(gallery: str) -> ServerNote | None:
    """The note of a server that runs now, is of this version and serves this gallery; nothing else is believed."""
    try:
        handle = os.open(_place(gallery), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            return None
        if not lock_now(handle, shared=True):  # the server holds it
            port, token, served, version, machine = json.loads(os.read(handle, 10_000))
            found = ServerNote(int(port), str(token), (served[0], served[1]), str(version), tuple(machine))
            own = (_identity(gallery), _version(), _machine())
            return found if (found.gallery, found.version, found.machine) == own else None
        return None
    except (OSError, ValueError, TypeError, LookupError):
        return None
    finally:
        os.close(handle)


@contextmanager
def noted(gallery: str, port: int, token: str) -> Iterator[bool]:
    """A block during which searches on this machine find the server; False where they do not.

    They do not where another server runs, settings in the environment would change it, or nothing may be written.
    """
    settings = {name for name in os.environ if name.startswith("EYESPOT_")} - {"EYESPOT_GALLERY"}
    handle, place = None, ""
    with suppress(OSError):
        place = _place(gallery)
        if not settings:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if handle is None:
        yield False
        return
    # Only this user may read the file, locked as long as this process lives; a search sees whether the lock is free by
    # holding it for a moment
    attempt = 0
    while not lock_now(handle):
        attempt += 1
        if attempt == 5:
            os.close(handle)
            yield False
            return
        time.sleep(0.02 * attempt)
    try:
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 0)
        note = ServerNote(port, token, _identity(gallery), _version(), _machine())
        os.write(handle, json.dumps(note).encode())
        yield True
    finally:
        with suppress(OSError):
            os.unlink(place)
        os.close(handle)
