"""What a server is told when it starts: the gallery, who may come in, and what it refuses."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from eyespot.types import UsageError

SHORTEST_TOKEN = 16  # characters; a shorter one can be guessed
LONGEST_NAME = 60  # characters, of what the owner allows


class Role(IntEnum):
    """What somebody may do; each may do what those before it may."""

    READER = 1  # search and look
    ANNOTATOR = 2  # judge
    OWNER = 3  # see how the server fares

    @classmethod
    def from_name(cls, name: str) -> Role:
        """The role by its name; `UsageError` if there is none."""
        try:
            return cls[name.upper()]
        except KeyError:
            raise UsageError(f"no role {name!r}; there are: {', '.join(role.name.lower() for role in cls)}") from None


class User(NamedTuple):
    """Who asks. Without a token the name is what somebody said of themselves, a label and no proof."""

    name: str
    role: Role
    proven: bool
    internal: bool = False  # a program of this machine with the token of `Access.internal`


@dataclass(frozen=True)
class Access:
    """A token that lets somebody in; only its digest is kept.

    internal: it is for programs of this machine, opens nothing from elsewhere, and is listed among no people.
    """

    name: str
    role: Role
    digest: bytes
    internal: bool = False

    @classmethod
    def by(cls, token: str, name: str, role: Role, internal: bool = False) -> Access:
        """Access for whoever has the token; `UsageError` for one that could be guessed."""
        if len(token) < SHORTEST_TOKEN:
            better = f"take {SHORTEST_TOKEN} or more, such as {secrets.token_urlsafe(16)}"
            raise UsageError(f"the token of {name} has {len(token)} characters; {better}")
        return cls(name, role, digest_of(token), internal)


def digest_of(token: str) -> bytes:
    """What is kept of a token; tokens are long and random, so a plain digest is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def read_access(path: Path) -> tuple[Access, ...]:
    """The tokens of a file with one `ROLE NAME TOKEN` a line; `#` opens a comment. `UsageError` names a bad line."""
    access = []
    for number, line in enumerate(_lines(path, "tokens"), 1):
        words = line.split()
        if len(words) not in (0, 3):
            raise UsageError(f"{path}:{number} is not a line of ROLE NAME TOKEN, such as: annotator ada 9fK2…")
        if words:
            access.append(Access.by(words[2], words[1], Role.from_name(words[0])))
    return tuple(access)


def read_refused(path: Path) -> tuple[str, ...]:
    """The words of a file, one word or phrase a line, that no query may hold; `#` opens a comment."""
    return tuple(text for line in _lines(path, "refused words") if (text := line.strip()))


def _lines(path: Path, what: str) -> list[str]:
    """The lines of a file without their comments."""
    try:
        return [line.partition("#")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the {what} cannot be read from {path} ({error}); give a text file") from None


def read_named(option: str, given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """What `NAME=VALUE` says, each name once; `UsageError` for what does not."""
    named: dict[str, str] = {}
    for one in given:
        name, sign, value = (part.strip() for part in one.partition("="))
        if not (sign and name and value) or len(name) > LONGEST_NAME or not name.isprintable():
            raise UsageError(f"{option} takes NAME=VALUE with a short name, as in mine={value or name}, not {one!r}")
        if name in named:
            raise UsageError(f"{option} names {name!r} twice; give each its own name")
        named[name] = value
    return tuple(named.items())


@dataclass(frozen=True)
class Judging:
    """Which judges may re-rank, and what they may cost as long as the server runs.

    judges: the name that people see, and how the judge is spelled, as in ("quick", "encoder:starter").
    depth: how many of the first hits they look at.
    calls, money: in requests and US dollars, of all of them together; None is no limit.
    prices: a table of prices besides the usual ones.
    """

    judges: tuple[tuple[str, str], ...] = ()
    depth: int = 100
    calls: int | None = None
    money: float | None = None
    prices: Path | None = None


@dataclass(frozen=True)
class ServerSettings:
    """How a server is set up.

    hosts: names under which it may be reached, besides those of this machine; None takes any, which is safe where
        every request from afar brings a token.
    trust_loopback: whether whoever sits at this machine needs no token; false behind a proxy, for then everybody
        seems to.
    refused: words and phrases that no query may hold.
    cache: where thumbnails and uploads lie; None: in the gallery's folder.
    reviews: queues of cases that people decide on these pages.
    adapters: the checkpoints that may be chosen, by the names that people see.
    originals: the role from which on people may open the files themselves, with all that they hold.
    ray, workers: the address of a Ray cluster whose workers search, and how many of them; None: this process searches.
    index: the name of an index that was made by `eyespot tune`, or `exact`.
    allowed: what assistants may do beyond reading: `judge`, `positions`.
    """

    gallery: Path
    encoder: str | None = None
    access: tuple[Access, ...] = ()
    hosts: tuple[str, ...] | None = ()
    trust_loopback: bool = True
    refused: tuple[str, ...] = ()
    cache: Path | None = None
    reviews: tuple[Path, ...] = ()
    upload_bytes: int = 20 << 20
    seconds: float = 30.0
    adapters: tuple[tuple[str, str], ...] = ()
    judging: Judging = Judging()
    originals: Role = Role.OWNER
    ray: str | None = None
    workers: int = 0
    index: str = "exact"
    allowed: tuple[str, ...] = ()

    @property
    def ledger(self) -> Path:
        """Where judgements are kept."""
        return self.gallery / "ledger.sqlite"
