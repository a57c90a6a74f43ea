"""Files of the hub and of other hosts, on disk: resumed where a run was cut, checked, and each whole or not there.

download("hub:datasets/evendrow/INQUIRE-Rerank@main", Path("data"))
download("https://example.org/annotations.csv", Path("data"))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from eyespot import rooms
from eyespot.models.hub import loading
from eyespot.storage.atomic import make_folder, put_file
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError, Progress, UsageError, no_progress

HUB = re.compile(r"hub:(?P<kind>datasets/)?(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
PIECE = 1 << 20
TIMEOUT = 60  # seconds without a byte
_REASONS = {
    401: "it wants a login; download it in a browser",
    403: "access is not granted; accept its terms there and download it in a browser",
    404: "it is not there any more; look for its new place",
}


class Downloaded(NamedTuple):
    """Where it lies, the commit of the hub ("" elsewhere), and how many bytes came now."""

    place: Path
    revision: str
    bytes: int


def download(source: str, out: Path, patterns: list[str] | None = None, tell: Progress = no_progress) -> Downloaded:
    """A repository of the hub, or those of its files that match, or one file of a host, into the folder `out`.

    Raises `UsageError` for another kind of address, `EyespotError` with the way out if it cannot be had.
    """
    if match := HUB.fullmatch(source):
        return _of_hub(source, match, out, patterns)
    if urlsplit(source).scheme not in ("http", "https"):
        raise UsageError(f"{source} is no address; give https://…, hub:OWNER/NAME or hub:datasets/OWNER/NAME@REVISION")
    if patterns:
        raise UsageError("--files chooses among the files of a repository of the hub; leave it out for an address")
    return _of_host(source, out, tell)


def _of_hub(source: str, match: re.Match[str], out: Path, patterns: list[str] | None) -> Downloaded:
    with loading(source, f"put its files into {out} by hand"), rooms.needs(source):
        from huggingface_hub import snapshot_download

        make_folder(out)
        kind = "dataset" if match["kind"] else "model"
        snapshot_download(
            match["repo"], repo_type=kind, revision=match["revision"], allow_patterns=patterns, local_dir=out
        )
        notes = [*(out / ".cache" / "huggingface" / "download").rglob("*.metadata")]
        commits = {note.read_text("utf-8").split("\n", 1)[0] for note in notes}
    if not any(path.is_file() for path in out.iterdir()) and not any(path.name != ".cache" for path in out.iterdir()):
        raise EyespotError(f"{source} has no file that matches {', '.join(patterns or ['*'])}; check --files")
    return Downloaded(out, commits.pop() if len(commits) == 1 else "", 0)


def _of_host(source: str, out: Path, tell: Progress) -> Downloaded:
    name = unquote(PurePosixPath(urlsplit(source).path).name)
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise UsageError(f"{source} does not end with the name of a file; give the address of the file itself")
    make_folder(out)
    place = out / name
    if place.exists():
        return Downloaded(place, "", 0)
    part, tag = out / f".{name}.part", out / f".{name}.part.etag"
    before = part.stat().st_size if part.exists() and tag.exists() else 0
    headers = {"User-Agent": "eyespot", "Accept-Encoding": "identity"}
    if before:
        headers |= {"Range": f"bytes={before}-", "If-Range": tag.read_text("utf-8")}
    with _opened(Request(source, headers=headers), source, (part, tag)) as answer:
        got = 0 if answer is None else _rest(answer, source, (part, tag), before, tell)
    put_file(part, place)
    tag.unlink(missing_ok=True)
    return Downloaded(place, "", got)


def _rest(answer: HTTPResponse, source: str, files: tuple[Path, Path], before: int, tell: Progress) -> int:
    """The bytes that come, after those that are here where the host goes on there; how many came."""
    part, tag = files
    resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {before}-")
    if answer.status == 206 and not resumed:
        part.unlink(missing_ok=True)
        raise EyespotError(
            f"{source} sends another part than the one it lacks; run the same line again to get it whole"
        )
    if not resumed:  # the tag goes first: a kill in between must not leave old bytes under a new tag
        tag.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    etag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    if etag and not etag.startswith("W/"):
        tag.write_text(etag, "utf-8")
    start, coming = (before if resumed else 0), int(answer.headers.get("Content-Length") or 0)
    got, whole = 0, False
    with part.open("ab") as file:
        while not whole:
            try:
                piece = answer.read(PIECE)
            except (OSError, HTTPException):
                break
            file.write(piece)
            got += len(piece)
            tell("bytes", start + got, start + coming if coming else 0)
            whole = not piece  # the host ended by itself
    if not whole or (coming and part.stat().st_size != start + coming):
        raise EyespotError(f"{source} was cut after {start + got:,} bytes; run the same line again to go on")
    return got


@contextmanager
def _opened(request: Request, source: str, files: tuple[Path, Path]) -> Iterator[HTTPResponse | None]:
    """What the host sends; None if every byte is here, because a run was killed before the file had its name."""
    part, tag = files
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:
            yield answer
    except HTTPError as error:
        error.close()
        if error.code == 416:  # nothing to come: If-Range lets another file come whole, so the size decides
            if part.exists() and error.headers.get("Content-Range") == f"bytes */{part.stat().st_size}":
                yield None
                return
            for leftover in (part, tag):
                leftover.unlink(missing_ok=True)
            raise EyespotError(f"{source} has changed meanwhile; run the same line again to get it whole") from None
        why = _REASONS.get(error.code, f"the host answers {error.code}; try again later, or download it in a browser")
        raise EyespotError(f"cannot get {source}: {why} and put it into {part.parent}") from None
    except (URLError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise EyespotError(
            f"cannot get {source} ({reason}); check the connection and run the same line again"
        ) from None


def verify(place: Path, sha256: str) -> None:
    """`EyespotError` if a file is not the one with this digest."""
    if (found := file_sha256(place)) != sha256:
        raise EyespotError(f"{place} has SHA-256 {found} and not {sha256}; delete it and download it again")
