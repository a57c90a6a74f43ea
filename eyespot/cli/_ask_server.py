"""`eyespot search` asks a server of the gallery that runs here, which has everything loaded: in a tenth of the time.

Only what a server answers in the very same bytes is asked of it: plain options, no files. Its port and a token lie in a
file that only this user may read, and that it locks while it lives. Modules that Python has not loaded as it starts are
imported by none of this, for they would take longer than the answer.
"""

from __future__ import annotations

import os
import sys

import eyespot
from eyespot.storage.flock import lock_now

TYPE_CHECKING = False  # `typing` takes as long to import as Python to start
if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = "/v1/command/search"
ALIVE, WAIT = 1.5, 60  # seconds: for a sign of life, for an answer
MOST = 1 << 16  # bytes that are read at once
VALUES = {"-k", "--by", "--where", "--after", "--before", "--near", "--label", "-e", "--encoder", "-g", "--gallery"}
FLAGS = {"--teach", "--no-teach", "--grouped", "--ungrouped", "--json", "--paths", "--print0"}
_SETTINGS = "eyespot.toml"


def answer(words: Sequence[str]) -> bool:
    """Print what a running server finds for `eyespot WORDS…`; False, and nothing is printed, if none can answer."""
    plain = all((stream.encoding or "").lower() in ("utf-8", "utf8") for stream in (sys.stdout, sys.stderr))
    line = search_line(words) if plain else None
    found = line and server_of(line[0])
    reply = reply_of(*found, ["search", *line[1], f"--gallery={line[0]}"]) if line and found else None
    if reply is None:
        return False
    sys.stderr.write(reply[0].decode())
    sys.stderr.flush()
    sys.stdout.buffer.write(reply[1])
    sys.stdout.flush()
    return True


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
            if word not in FLAGS and _may_name_file(word):
                return None
            rest.append(word)
        else:
            return None
    gallery = gallery or _nearest()
    return None if not gallery or gallery.startswith("~") or ":/" in gallery else (gallery, rest)


def _may_name_file(word: str) -> bool:
    if not {".", ":"} & {*word}:
        return not {"/", "\\", "~"}.isdisjoint(word)
    import re

    return re.search(r"[/\\~]|\.[A-Za-z0-9]{2,5}(?![A-Za-z0-9])|^[A-Za-z]:", word) is not None


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


def reply_of(port: int, token: str, words: Sequence[str]) -> tuple[bytes, bytes] | None:
    """Stderr and stdout of a line that found something; None where the server cannot answer it in the same bytes.

    No word of a command line has a zero byte, so these part them. The answer begins with both lengths.
    """
    import _socket  # `socket` and `http.client` take as long to import as a server to search

    body = "\0".join(words).encode("utf-8", "surrogateescape")
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        connection.settimeout(ALIVE)
        connection.connect(("127.0.0.1", port))
        # A server that is suspended or hangs takes requests and is silent; another says at once that it is waiting
        connection.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
        if not connection.recv(MOST).startswith(b"HTTP/1.1 100 "):
            return None
        connection.settimeout(WAIT)
        connection.sendall(body)
        status, _, text = b"".join(iter(lambda: connection.recv(MOST), b"")).partition(b"\r\n\r\n")
        sizes, _, streams = text.partition(b"\n")
        first, second = map(int, sizes.split())
    except (OSError, ValueError):
        return None
    finally:
        connection.close()
    whole = status.startswith(b"HTTP/1.1 200 ") and len(streams) == first + second
    return (streams[:first], streams[first:]) if whole else None


# -- the note of a server -----------------------------------------------------------------------------------------


def note_place(gallery: str) -> str:
    """Where a server of this gallery leaves its note."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    status = os.stat(gallery)
    return os.path.join(state, "eyespot", "servers", f"{status.st_dev:x}-{status.st_ino:x}")


def identity(gallery: str) -> str:
    """The folder of a gallery, this version, which copy of it, and the boot, host and network of this process.

    Two checkouts of one version may differ, and a home may be shared with machines that have other ports.
    """
    status, boot, network = os.stat(gallery), "", ""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().strip()
        network = os.readlink("/proc/self/ns/net")
    except OSError:  # where it is not Linux
        pass
    copy = os.path.realpath(eyespot.__file__)
    named = (status.st_dev, status.st_ino, eyespot.__version__, copy, os.uname().nodename, boot, network)
    return "\n".join(map(str, named))


def server_of(gallery: str) -> tuple[int, str] | None:
    """Port and token of a server that runs now, of this version and gallery; nothing else is believed."""
    try:
        handle = os.open(note_place(gallery), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if status.st_uid != os.getuid() or status.st_mode & 0o077 or lock_now(handle, shared=True):
            return None  # the server holds the lock
        port, token, rest = os.fsdecode(os.read(handle, 10_000)).split("\n", 2)
        return (int(port), token) if rest == identity(gallery) else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
