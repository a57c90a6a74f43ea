"""A repository of the model hub by the hub's own protocol: the commit of a revision, and its files with their digests.

The address (HF_ENDPOINT) and the token (HF_TOKEN) are those of the hub's client. The client itself fetches nothing for
us: it neither goes on where a run was killed nor compares digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from eyespot.models import web
from eyespot.models.installed import is_inside
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError, UsageError

MOST, PAGES = 1 << 26, 1 << 10  # bytes of all answers about a repository together, and answers
Kind = Literal["models", "datasets"]


@dataclass(frozen=True)
class HubFile:
    """A file of a commit: its path there, bytes, and the SHA-256 of a large file or git's SHA-1 of a small one."""

    path: str
    size: int
    digest: str

    def is_whole(self, place: Path) -> bool:
        """Whether these are the bytes that the hub promises; they are read."""
        if not place.is_file() or place.stat().st_size != self.size:
            return False
        if len(self.digest) == 64:
            return file_sha256(place) == self.digest
        with place.open("rb") as file:
            git = hashlib.file_digest(file, lambda: hashlib.sha1(f"blob {self.size}\0".encode()))
        return git.hexdigest() == self.digest


@dataclass(frozen=True)
class Repository:
    """The files of one commit, 40 hex digits."""

    name: str
    kind: Kind
    commit: str
    files: tuple[HubFile, ...]

    def address(self, path: str) -> str:
        """Where a file can be fetched."""
        folder = "datasets/" if self.kind == "datasets" else ""
        return f"{endpoint()}/{folder}{self.name}/resolve/{self.commit}/{quote(path)}"


def listed(name: str, revision: str | None = None, *, kind: Kind = "models", instead: str = web.WAY) -> Repository:
    """The files of a revision, `main` for None. `EyespotError` says why the hub does not tell them, or `instead`."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "ON", "YES"):
        raise EyespotError(f"could not get {name} from the model hub (HF_HUB_OFFLINE is set); {instead}")
    api = f"{endpoint()}/api/{kind}/{name}"
    try:
        answer, _, left = _answer(f"{api}/revision/{quote(revision or 'main', safe='')}", name, instead, MOST)
        commit = str(answer["sha"])
        if not re.fullmatch("[0-9a-f]{40}", commit):
            raise EyespotError(f"{_host()} names no commit of {name}; it does not speak the hub's protocol")
        files, page, read = [], f"{api}/tree/{commit}?recursive=true", set[str]()
        while page and page not in read and len(read) < PAGES:
            read.add(page)
            entries, page, left = _answer(page, name, instead, left)
            files += [_file(name, entry) for entry in entries if entry.get("type") == "file"]
        if page or len({file.path for file in files}) < len(files):
            raise ValueError(f"the list of {name} has no end, or a file twice")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # of JSON that is another's
        raise EyespotError(f"{_host()} does not speak the hub's protocol; check HF_ENDPOINT") from None
    return Repository(name, kind, commit, tuple(files))


def _answer(url: str, name: str, instead: str, most: int) -> tuple[Any, str, int]:
    """What the hub says, the address of the next page, "" for none, and how many of `most` bytes are left."""
    ours = urlsplit(url)[:2] == urlsplit(endpoint())[:2]
    with web.opened(url, name, authorization() if ours else {}, way=instead) as answer:
        following = re.search('<([^>]+)>; *rel="next"', answer.headers.get("Link") or "")
        data = b"".join(web.pieces(answer, name, most))
        return json.loads(data), following[1] if following else "", most - len(data)


def _file(name: str, entry: Any) -> HubFile:
    path, large = str(entry.get("path")), entry.get("lfs") or {}
    digest = str(large.get("oid") or entry.get("oid") or "")
    if not is_inside(path):
        raise EyespotError(f"{name} names a file outside its folder, {path[:200]!r}; nothing was fetched")
    if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", digest) or type(entry.get("size")) is not int or entry["size"] < 0:
        raise EyespotError(f"{_host()} promises no digest for {path} of {name}; fetch it from another mirror")
    return HubFile(path, entry["size"], digest)


def endpoint() -> str:
    """The hub's address. `UsageError` if it is none."""
    from huggingface_hub.constants import ENDPOINT

    address = str(os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    if not web.is_address(address):
        raise UsageError(f"{web.public(address)} is not the address of a hub; give https://… in HF_ENDPOINT or --from")
    return address


def authorization() -> dict[str, str]:
    """The header that says who asks; empty without a token."""
    from huggingface_hub import get_token

    found = get_token()
    return {"Authorization": f"Bearer {found}"} if found else {}


def _host() -> str:
    return urlsplit(web.public(endpoint())).netloc
