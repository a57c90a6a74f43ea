"""A server that speaks the part of the hub's protocol which its client uses to fetch: commits, files, ranges, refusals.

/api/{models,datasets}/OWNER/NAME/revision/REV    the commit and the files of a revision
/[datasets/]OWNER/NAME/resolve/COMMIT/FILE        HEAD: size, ETag, commit; large files redirect to /blobs/DIGEST
/blobs/DIGEST                                     the bytes, whole or from the byte of a Range header on
/chunked/DIGEST                                   the bytes in chunks without a length; the line breaks before the end
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.worlds.servers import Quiet, listening

LARGE = 1 << 12  # bytes from which on a file lies elsewhere, as those in the hub's large storage
API = re.compile(r"/api/(models|datasets)/(?P<repo>[^/]+/[^/]+)(/revision/(?P<revision>[^/?]+))?")
TREE = re.compile(r"/api/(models|datasets)/(?P<repo>[^/]+/[^/]+)/tree/(?P<revision>[^/?]+)")
RESOLVE = re.compile(r"(/datasets)?/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")


@dataclass
class HubMirror:
    """Repositories by name, each with its files; `cut` bytes of a large file are sent once, then the line breaks.

    flip: the last bit of large files comes wrong. busy: so many of them are refused for now. expired: so many of their
    addresses are none any more. tokens: of each request. endless: each page of a list of files has one more behind it.
    """

    repos: Mapping[str, Mapping[str, bytes]]
    gated: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
    earlier: dict[str, Mapping[str, Mapping[str, bytes]]] = field(default_factory=dict)  # all repositories at a commit
    cut: int | None = None
    flip: bool = False
    busy: int = 0
    endless: bool = False
    expired: int = 0
    tokens: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0  # bytes of files and answers
    requests: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def storage(self) -> str:
        """The other host that large files lie on, by its name."""
        return self.url.replace("127.0.0.1", "localhost")

    def commit(self, repo: str) -> str:
        """The one commit of a repository: forty hex digits that its content decides."""
        return hashlib.sha1(repr(sorted(self.repos[repo].items())).encode()).hexdigest()

    def change(self, repo: str, **files: bytes) -> str:
        """A new commit of a repository with other files; the commit before it, which stays to be had."""
        before, changed = self.commit(repo), {name.replace("__", "."): data for name, data in files.items()}
        self.earlier[before] = self.repos
        self.repos = {**self.repos, repo: {**self.repos[repo], **changed}}
        return before

    def files(self, repo: str, revision: str | None) -> Mapping[str, bytes]:
        return self.earlier.get(revision or "", self.repos)[repo]

    def blobs(self) -> dict[str, bytes]:
        every = [files for repos in (self.repos, *self.earlier.values()) for files in repos.values()]
        return {hashlib.sha256(data).hexdigest(): data for files in every for data in files.values()}


class HubAnswer(Quiet):
    """One connection to the self.mirror."""

    mirror: HubMirror

    def do_GET(self) -> None:
        self.mirror.requests.append(f"{self.command} {self.path}")
        path = self.path.partition("?")[0]
        self.mirror.tokens.append((path, self.headers.get("Authorization")))
        if path.startswith("/blobs/") and self.mirror.busy:
            self.mirror.busy -= 1
            self._send(503, b"", {"Retry-After": "0"})
        elif path.startswith("/blobs/") and self.mirror.expired:
            self.mirror.expired -= 1
            self._send(403, b"")
        elif path.startswith("/blobs/"):
            self._blob(self.mirror.blobs()[path.removeprefix("/blobs/")])
        elif path.startswith("/chunked/"):
            self._broken_chunks(self.mirror.blobs()[path.removeprefix("/chunked/")])
        elif match := RESOLVE.fullmatch(path):
            self._file(match)
        elif match := TREE.match(path) or API.fullmatch(path):
            self._info(match, "/tree/" in path)
        else:
            self._refuse(404, "EntryNotFound")

    do_HEAD = do_GET

    def _repo(self, match: re.Match[str]) -> str | None:
        """The repository, if it is there, its revision too, and it is open; else the refusal is sent."""
        repo, revision = match["repo"], match["revision"]
        if repo in self.mirror.private:
            self._refuse(401, "RepoNotFound")
        elif repo not in self.mirror.repos:
            self._refuse(404, "RepoNotFound")
        elif revision not in (None, "main", self.mirror.commit(repo), *self.mirror.earlier):
            self._refuse(404, "RevisionNotFound")
        else:
            return repo
        return None

    def _info(self, match: re.Match[str], tree: bool) -> None:
        if (repo := self._repo(match)) is None:
            return
        files = self.mirror.files(repo, match["revision"])
        names = sorted(files)
        siblings = [{"rfilename": name} for name in names]
        found: object = {
            "id": repo,
            "sha": match["revision"] if match["revision"] in self.mirror.earlier else self.mirror.commit(repo),
            "siblings": siblings,
            "private": False,
            "tags": [],
        }
        if tree:
            found = [tree_entry(name, files[name]) for name in names]
        more = {"Link": f'<{self.mirror.url}{match[0]}?at={len(self.mirror.requests)}>; rel="next"'}
        about = {"Content-Type": "application/json", **(more if tree and self.mirror.endless else {})}
        self._send(200, json.dumps(found).encode(), about)

    def _file(self, match: re.Match[str]) -> None:
        if (repo := self._repo(match)) is None:
            return
        if repo in self.mirror.gated:
            self._refuse(403, "GatedRepo")
            return
        data = self.mirror.files(repo, match["revision"]).get(match["file"])
        if data is None:
            self._refuse(404, "EntryNotFound")
            return
        digest = hashlib.sha256(data).hexdigest()
        about = {"X-Repo-Commit": self.mirror.commit(repo), "ETag": f'"{digest}"', "Accept-Ranges": "bytes"}
        if len(data) >= LARGE:
            linked = {"X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{digest}"'}
            self._send(302, b"", {**about, **linked, "Location": f"{self.mirror.storage}/blobs/{digest}"})
        else:
            self._blob(data, about)

    def _blob(self, data: bytes, about: Mapping[str, str] = {}) -> None:
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "Accept-Ranges": "bytes", **about}
        if self.mirror.flip and len(data) >= LARGE:
            data = data[:-1] + bytes([data[-1] ^ 1])
        range_header = self.headers.get("Range")
        start = int(range_header.removeprefix("bytes=").partition("-")[0]) if range_header else 0
        if range_header:
            self.mirror.ranges.append(range_header)
            if start >= len(data):
                self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        if self.mirror.cut is not None and self.command == "GET" and len(data) >= LARGE:
            self._send(200 if not range_header else 206, data[start:], headers, self.mirror.cut)
            self.mirror.cut = None
            self.close_connection = True
        else:
            self._send(206 if range_header else 200, data[start:], headers)

    def _broken_chunks(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data[: len(data) // 2])
        self.close_connection = True

    def _refuse(self, code: int, name: str) -> None:
        self._send(code, b"", {"X-Error-Code": name, "X-Error-Message": name})

    def _send(self, code: int, data: bytes, headers: Mapping[str, str], most: int | None = None) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.mirror.sent += len(data[:most])
            self.wfile.write(data[:most])


def tree_entry(name: str, data: bytes) -> dict[str, object]:
    """A file as the hub lists it: git's own digest, and the SHA-256 of one in the large storage."""
    found: dict[str, object] = {"type": "file", "path": name, "size": len(data)}
    found["oid"] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return found | (
        {"lfs": {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}}
        if len(data) >= LARGE
        else {}
    )


@contextmanager
def hub(mirror: HubMirror) -> Iterator[HubMirror]:
    """The mirror at work; its address is `mirror.url`."""
    with listening(type("Answer", (HubAnswer,), {"mirror": mirror})) as place:
        mirror.url = f"http://{place}"
        yield mirror
