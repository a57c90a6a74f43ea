"""Files of the hub and of other hosts, on disk: resumed where a run was cut, checked, and each whole or not there.

download("hub:datasets/evendrow/INQUIRE-Rerank@main", Path("data"))
download("https://example.org/annotations.csv", Path("data"))
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request

from eyespot.models.repository import HostBusy, HubFile, Kind, Repository, authorization, listed, opened
from eyespot.storage.atomic import make_folder, put_file, trouble
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError, Progress, UsageError, no_progress

HUB = re.compile(r"hub:(?P<kind>datasets/)?(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
PIECE = 1 << 20
TRIES = 3  # of a file of the hub, in one run
LONGEST_WAIT = 60.0  # seconds between two of them


@dataclass(frozen=True)
class Downloaded:
    """Where it lies, the commit of the hub ("" elsewhere), and how many bytes came now."""

    place: Path
    revision: str
    bytes: int


def download(source: str, out: Path, patterns: list[str] | None = None, tell: Progress = no_progress) -> Downloaded:
    """A repository of the hub, or those of its files that match, or one file of a host, into the folder `out`.

    Raises `UsageError` for another kind of address, `EyespotError` with the way out if it cannot be had.
    """
    if match := HUB.fullmatch(source):
        kind: Kind = "datasets" if match["kind"] else "models"
        repository = listed(match["repo"], match["revision"], kind=kind, instead=f"put its files into {out} by hand")
        wanted = patterns or ["*"]
        chosen = [file for file in repository.files if any(fnmatchcase(file.path, one) for one in wanted)]
        if not chosen:
            raise EyespotError(f"{source} has no file that matches {', '.join(wanted)}; check --files")
        return Downloaded(out, repository.commit, fetch(repository, chosen, out, tell))
    if urlsplit(source).scheme not in ("http", "https"):
        raise UsageError(f"{source} is no address; give https://…, hub:OWNER/NAME or hub:datasets/OWNER/NAME@REVISION")
    if patterns:
        raise UsageError("--files chooses among the files of a repository of the hub; leave it out for an address")
    return _of_host(source, out, tell)


def verify(place: Path, sha256: str) -> None:
    """`EyespotError` if a file is not the one with this digest."""
    if (found := file_sha256(place)) != sha256:
        raise EyespotError(f"{place} has SHA-256 {found} and not {sha256}; delete it and download it again")


# -- the hub ----------------------------------------------------------------------------------------------------


def fetch(
    repository: Repository, files: Sequence[HubFile], out: Path, tell: Progress = no_progress, *, root: str = ""
) -> int:
    """Files of a commit into a folder, each with the digest that the hub promises; how many bytes came now.

    A file that is here with its digest is not fetched again, and one that is in the hub's own cache is taken there.
    root: what stands before their paths in the repository.
    """
    total, before, came = sum(file.size for file in files), 0, 0
    for file in files:
        place = out.joinpath(*PurePosixPath(file.path).parts)
        make_folder(place.parent)

        def tell_all(unit: str, done: int, _all: int, before: int = before) -> None:
            tell(unit, before + done, total)

        if not file.is_whole(place) and not _from_cache(repository, file, place):
            came += _of_hub(repository, replace(file, path=root + file.path), place, tell_all)
        before += file.size
        tell("bytes", before, total)
    return came


def _from_cache(repository: Repository, file: HubFile, place: Path) -> bool:
    """Whether the hub's own cache had the file on the same disk; it is linked."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = f"{repository.kind}--{repository.name.replace('/', '--')}"
    cached = Path(HF_HUB_CACHE) / folder / "blobs" / file.digest
    if file.is_whole(cached):
        with suppress(OSError):
            place.unlink(missing_ok=True)
            os.link(cached, place)
            return True
    return False


def _of_hub(repository: Repository, file: HubFile, place: Path, tell: Progress) -> int:
    """One file, tried again where the line breaks; what has come stays for the next run."""
    part = place.with_name(f".{place.name}.{file.digest[:16]}.part")
    got, source = 0, f"{repository.name}/{file.path}"
    for attempt in range(1, TRIES + 1):
        before = part.stat().st_size if part.exists() else 0
        if before < file.size or not before:
            headers = authorization() | ({"Range": f"bytes={before}-"} if before else {})
            request = Request(repository.address(file.path), headers=headers)
            try:
                with opened(request, source, f"put it into {place.parent} by hand") as answer:
                    _rest(answer, source, (part, None), before, tell)
            except HostBusy as error:
                got += (part.stat().st_size if part.exists() else 0) - before
                if attempt == TRIES:
                    raise
                time.sleep(min(error.wait, LONGEST_WAIT))
                continue
            got += part.stat().st_size - before
        break
    if not file.is_whole(part):
        part.unlink()
        raise EyespotError(
            f"{source} came with other bytes than the hub promises ({file.digest[:16]}…) and was thrown away; "
            "run the same line again, or fetch it from another mirror"
        )
    put_file(part, place)
    return got


# -- other hosts ------------------------------------------------------------------------------------------------


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
    headers = {"Range": f"bytes={before}-", "If-Range": tag.read_text("utf-8")} if before else {}
    got = 0
    try:
        with opened(Request(source, headers=headers), source, f"put it into {out}") as answer:
            got = _rest(answer, source, (part, tag), before, tell)
    except HTTPError as error:  # 416, nothing to come: If-Range lets another file come whole, so the size decides
        error.close()
        if error.headers.get("Content-Range") != f"bytes */{before}":
            for leftover in (part, tag):
                leftover.unlink(missing_ok=True)
            raise EyespotError(f"{source} has changed meanwhile; run the same line again to get it whole") from None
    put_file(part, place)
    tag.unlink(missing_ok=True)
    return Downloaded(place, "", got)


def _rest(answer: HTTPResponse, source: str, files: tuple[Path, Path | None], before: int, tell: Progress) -> int:
    """The bytes that come, after those that are here where the host goes on there; how many came.

    The second file holds the host's ETag, if nothing else says that the file is still the same.
    """
    start, coming = _begun(answer, source, files, before), int(answer.headers.get("Content-Length") or 0)
    got, whole = 0, False
    try:
        with files[0].open("ab") as file:
            while not whole:
                try:
                    piece = answer.read(PIECE)
                except (OSError, HTTPException):
                    break
                file.write(piece)
                got += len(piece)
                tell("bytes", start + got, start + coming if coming else 0)
                whole = not piece  # the host ended by itself
    except OSError as error:
        raise EyespotError(f"{files[0].parent} cannot be written {trouble(error)}") from None
    if not whole or (coming and got != coming):
        raise HostBusy(f"{source} was cut after {start + got:,} bytes; run the same line again to go on")
    return got


def _begun(answer: HTTPResponse, source: str, files: tuple[Path, Path | None], before: int) -> int:
    """The byte that the host begins with; what is here goes if that is the first."""
    part, tag = files
    resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {before}-")
    if answer.status == 206 and not resumed:
        part.unlink(missing_ok=True)
        raise EyespotError(
            f"{source} sends another part than the one it lacks; run the same line again to get it whole"
        )
    if not resumed:  # the tag goes first: a kill in between must not leave old bytes under a new tag
        for old in (tag, part):
            if old is not None:
                old.unlink(missing_ok=True)
    etag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    if tag is not None and etag and not etag.startswith("W/"):
        tag.write_text(etag, "utf-8")
    return before if resumed else 0
