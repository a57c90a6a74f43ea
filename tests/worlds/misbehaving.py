"""A host that sends without end, a byte at a time, packed, more than was promised, or what was sent to it."""

from __future__ import annotations

import gzip
import json
import random
import string
import time
from contextlib import suppress
from functools import cache

from tests.worlds.servers import Quiet


class Host(Quiet):
    """Sends what the first part of an address says."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # the client has gone
            getattr(self, self.path.split("/")[1])()

    def head(self, status: int = 200, reason: str | None = None, **headers: str) -> None:
        self.send_response(status, reason)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def endless(self) -> None:
        self.head()
        while True:
            self.wfile.write(b" " * (1 << 16))

    def drip(self) -> None:
        self.head()
        self.dripping(b" ")

    def slow(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        self.dripping(b".")

    def trailers(self) -> None:
        self.head(Transfer_Encoding="chunked")
        self.wfile.write(b"2\r\n{}\r\n0\r\n")
        self.dripping(b"A: b\r\n")

    def dripping(self, piece: bytes) -> None:
        while True:
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(0.01)

    def packed(self) -> None:
        self.head(Content_Encoding="gzip", Content_Length=str(len(bomb())))
        self.wfile.write(bomb())

    def lying(self) -> None:
        self.head(Content_Length=str(1 << 40))
        self.wfile.write(b"{}")

    def long(self) -> None:
        self.head(Content_Length="4000")
        self.wfile.write(bytes(4000))

    def file(self) -> None:
        self.head(302, Location="file:///etc/hostname")

    def ftp(self) -> None:
        self.head(302, Location="ftp://127.0.0.1/x")

    def echo(self) -> None:
        self.head(401, f"no {self.path} {self.headers['Authorization']}")


@cache
def bomb() -> bytes:
    return gzip.compress(b" " * (1 << 26))


class Repeater(Host):
    """Answers every request in the way of the moment: `kind` is a method of a host, or repeats what it is given."""

    kind, status, reason, body = "repeat", 200, "", b""

    def do_GET(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            getattr(self, self.kind)()

    def repeat(self) -> None:
        self.head(self.status, self.reason)
        self.wfile.write(self.body)


MARK = "PLNTD"  # in each secret


def planted(dice: random.Random, host: str = "example.org") -> tuple[str, str, list[str]]:
    """An address and a key, and what of both is secret."""
    letters = string.ascii_letters + string.digits + "-._~!$&'()*+,;=\"\\"
    key, password, query = (
        MARK.join("".join(dice.choices(letters, k=dice.randint(2, 20))) for _ in "ab") for _ in range(3)
    )
    quoted = "".join(one if one.isalnum() else f"%{ord(one):02X}" for one in password)
    return f"http://ada:{quoted}@{host}/v1?token={query.replace('&', 'x').replace('+', 'y')}", key, [key, password]


def spelled(secret: str, dice: random.Random) -> str:
    """A secret as a server may write it into JSON."""
    escaped = "".join(f"\\u{ord(one):04x}" if dice.random() < 0.3 else json.dumps(one)[1:-1] for one in secret)
    return dice.choice([escaped, json.dumps(secret)[1:-1]])
