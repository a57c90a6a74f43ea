"""A repository of the model hub by the hub's own protocol: the commit of a revision, and its files with their digests.

The address (HF_ENDPOINT) and the token (HF_TOKEN) are those of the hub's client. The client itself fetches no weights
for us: it neither goes on where a run was killed nor compares digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from eyespot.models.installed import is_inside
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError, UsageError

TIMEOUT = 60  # seconds without a byte
WAY = "fetch it while online"
Kind = Literal["models", "datasets"]
_REFUSED = {  # the hub's X-Error-Code → what it means, and what to do
    "GatedRepo": "its terms are not accepted yet; accept them there, then log in with: hf auth login",
    "RepoNotFound": "there is no such repository, or it is private; check the name",
    "RevisionNotFound": "there is no such revision; check it",
    "EntryNotFound": "there is no such file; check its name",
}


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
        return hashlib.sha1(f"blob {self.size}\0".encode() + place.read_bytes()).hexdigest() == self.digest


@dataclass(frozen=True)
class Repository:
    """The files of one commit, 40 hex digits."""

    name: str
    kind: Kind
    commit: str
    files: tuple[HubFile, ...]

    def address(self, path: str) -> str:
        """Where a file can be fetched."""
        return f"{endpoint()}/{_folder(self.kind)}{self.name}/resolve/{self.commit}/{quote(path)}"


def listed(name: str, revision: str | None = None, *, kind: Kind = "models", instead: str = WAY) -> Repository:
    """The files of a revision, `main` for None. `EyespotError` says why the hub does not tell them, or `instead`."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "ON", "YES"):
        raise EyespotError(f"could not get {name} from the model hub (HF_HUB_OFFLINE is set); {instead}")
    api = f"{endpoint()}/api/{kind}/{name}"
    try:
        commit = str(_answer(f"{api}/revision/{quote(revision or 'main', safe='')}", name, instead)[0]["sha"])
        if not re.fullmatch("[0-9a-f]{40}", commit):
            raise EyespotError(f"{endpoint()} names no commit of {name}; it does not speak the hub's protocol")
        files, page, read = [], f"{api}/tree/{commit}?recursive=true", set[str]()
        while page and page not in read:
            read.add(page)
            entries, page = _answer(page, name, instead)
            files += [_file(name, entry) for entry in entries if entry.get("type") == "file"]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # of JSON that is another's
        raise EyespotError(f"{urlsplit(api).netloc} does not speak the hub's protocol; check HF_ENDPOINT") from None
    return Repository(name, kind, commit, tuple(files))


def _answer(url: str, name: str, instead: str) -> tuple[Any, str]:
    """What the hub says, and the address of the next page, "" for none."""
    ours = urlsplit(url).netloc == urlsplit(endpoint()).netloc
    with opened(Request(url, headers=authorization() if ours else {}), name, instead) as answer:
        following = re.search('<([^>]+)>; *rel="next"', answer.headers.get("Link") or "")
        return json.load(answer), following[1] if following else ""


def _file(name: str, entry: Any) -> HubFile:
    path, large = str(entry.get("path")), entry.get("lfs") or {}
    digest = str(large.get("oid") or entry.get("oid") or "")
    if not is_inside(path):
        raise EyespotError(f"{name} names a file outside its folder, {path!r}; nothing was fetched")
    if not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", digest) or type(entry.get("size")) is not int or entry["size"] < 0:
        raise EyespotError(f"{endpoint()} promises no digest for {path} of {name}; fetch it from another mirror")
    return HubFile(path, entry["size"], digest)


def endpoint() -> str:
    """The hub's address. `UsageError` if it is none."""
    from huggingface_hub.constants import ENDPOINT

    address = str(os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).netloc:
        raise UsageError(f"{address} is no address of a hub; give https://… in HF_ENDPOINT or --from")
    return address


def authorization() -> dict[str, str]:
    """The header that says who asks; empty without a token."""
    from huggingface_hub import get_token

    found = get_token()
    return {"Authorization": f"Bearer {found}"} if found else {}


def _folder(kind: Kind) -> str:
    return "datasets/" if kind == "datasets" else ""


# -- asking ---------------------------------------------------------------------------------------------------------


class _Redirects(HTTPRedirectHandler):
    """A token is for the host that it was given to, and for no other that this host leads to."""

    def redirect_request(self, req: Any, *answer: Any) -> Any:
        made = super().redirect_request(req, *answer)
        if made is not None and urlsplit(made.full_url).netloc != urlsplit(req.full_url).netloc:
            made.remove_header("Authorization")
        return made


class HostBusy(EyespotError):
    """The host answers later, or the line broke; `wait` is how long to wait, in seconds."""

    def __init__(self, sentence: str, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.wait = wait


@contextmanager
def opened(request: Request, source: str, instead: str = WAY) -> Iterator[HTTPResponse]:
    """What the host sends, redirects followed. `HostBusy` or `EyespotError` in one sentence; 416 stays an HTTPError."""
    request.add_header("User-Agent", "eyespot")
    request.add_header("Accept-Encoding", "identity")
    try:
        with build_opener(_Redirects).open(request, timeout=TIMEOUT) as answer:
            yield answer
    except HTTPError as error:
        if error.code == 416:
            raise
        error.close()
        why = _REFUSED.get(error.headers.get("X-Error-Code") or "")
        if why is not None:
            raise EyespotError(f"could not get {source}: {why}, or {instead}") from None
        elsewhere = urlsplit(error.url or "").netloc != urlsplit(request.full_url).netloc  # a signed address expires
        if error.code == 429 or error.code >= 500 or (elsewhere and error.code == 403):
            pause = error.headers.get("Retry-After") or ""
            sentence = f"cannot get {source}: the host answers {error.code}; try again later"
            raise HostBusy(sentence, float(pause) if pause.isdigit() else 1.0) from None
        raise EyespotError(f"cannot get {source}: {reason(error.code)}, and {instead}") from None
    except (URLError, TimeoutError, HTTPException) as error:
        why = str(getattr(error, "reason", error)) or type(error).__name__
        raise HostBusy(f"cannot get {source} ({why}); check the connection and run the same line again") from None


def reason(code: int) -> str:
    """What a refusal of a host means, and the way out."""
    known = {
        401: "it wants a login; download it in a browser",
        403: "access is not granted; accept its terms there and download it in a browser",
        404: "it is not there any more; look for its new place",
    }
    return known.get(code, f"the host answers {code}; try again later, or download it in a browser")
