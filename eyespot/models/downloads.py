"""Files of the hub and of other hosts, on disk: resumed where a run was cut, checked, and each whole or not there.

download("hub:datasets/evendrow/INQUIRE-Rerank@main", Path("data"))
download("https://example.org/annotations.csv", Path("data"))
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from eyespot.models import web
from eyespot.models.repository import HubFile, Kind, Repository, authorization, listed
from eyespot.storage.atomic import make_folder, put_file, write_whole
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError, Progress, UsageError, no_progress

HUB = re.compile(r"hub:(?P<kind>datasets/)?(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
TRIES = 3  # of a file of the hub, in one run
LONGEST_WAIT = 60.0  # seconds between two of them


@dataclass(frozen=True)
class Downloaded:
    """Where it lies, the commit of the hub ("" elsewhere), the bytes that came now, the SHA-256 of a single file."""

    place: Path
    revision: str
    bytes: int
    sha256: str = ""


def download(
    source: str,
    out: Path,
    patterns: list[str] | None = None,
    tell: Progress = no_progress,
    *,
    sha256: str | None = None,
) -> Downloaded:
    """A repository of the hub, or those of its files that match, or one file of a host, into the folder `out`.

    sha256: that the file of a host must have. Raises `UsageError` for another kind of address, `EyespotError` with the
    way out if it cannot be had.
    """
    if match := HUB.fullmatch(source):
        kind: Kind = "datasets" if match["kind"] else "models"
        repository = listed(match["repo"], match["revision"], kind=kind, instead=f"put its files into {out} by hand")
        wanted = patterns or ["*"]
        chosen = [file for file in repository.files if any(fnmatchcase(file.path, one) for one in wanted)]
        if not chosen:
            raise EyespotError(f"{source} has no file that matches {', '.join(wanted)}; check --files")
        return Downloaded(out, repository.commit, fetch(repository, chosen, out, tell))
    if not web.is_address(source):
        raise UsageError(
            f"{web.public(source)} is not an address; give https://…, hub:OWNER/NAME or hub:datasets/OWNER/NAME@TAG"
        )
    if patterns:
        raise UsageError("--files chooses among the files of a repository of the hub; leave it out for an address")
    done = _of_host(source, out, tell)
    if sha256 and done.sha256 != sha256.lower():
        raise EyespotError(f"{done.place} has SHA-256 {done.sha256} and not {sha256}; delete it and download it again")
    return done


# -- the hub ----------------------------------------------------------------------------------------------------


def fetch(
    repository: Repository, files: Sequence[HubFile], out: Path, tell: Progress = no_progress, *, root: str = ""
) -> int:
    """Files of a commit into a folder, each with the digest that the hub promises; how many bytes came now.

    A file that is here with its digest is not fetched again, and one that is in the hub's own cache is taken there.
    root: what stands before their paths in the repository.
    """
    places = {replace(file, path=root + file.path): out.joinpath(*PurePosixPath(file.path).parts) for file in files}
    return _fetched(repository, places, tell, cache_of(repository.name, repository.kind) / "blobs")


def to_cache(repository: Repository, files: Sequence[HubFile], revision: str | None, tell: Progress) -> Path:
    """Files of a commit in the cache of the hub's client, laid out as it does; the folder of the commit there."""
    home = cache_of(repository.name, repository.kind)
    folder = home / "snapshots" / repository.commit
    blobs = {file: home / "blobs" / file.digest for file in files}
    _fetched(repository, blobs, tell)
    for file, blob in blobs.items():
        place = folder.joinpath(*PurePosixPath(file.path).parts)
        make_folder(place.parent)
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(blob, place.parent))
    if revision != repository.commit:
        ref = home / "refs" / (revision or "main")
        make_folder(ref.parent)
        write_whole(ref, lambda file: file.write(repository.commit.encode()))
    return folder


def cache_of(name: str, kind: Kind = "models") -> Path:
    """The folder of a repository in the cache of the hub's client."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE) / f"{kind}--{name.replace('/', '--')}"


def _fetched(repository: Repository, places: Mapping[HubFile, Path], tell: Progress, cache: Path | None = None) -> int:
    """Files to their places, linked from the cache where they are in it; how many bytes came now."""
    total, before, came = sum(file.size for file in places), 0, 0
    for file, place in places.items():
        make_folder(place.parent)
        if not file.is_whole(place) and not (cache and _linked(file, cache / file.digest, place)):
            came += _of_hub(repository, file, place, lambda unit, done, _, so=before: tell(unit, so + done, total))  # type: ignore[misc]
        before += file.size
        tell("bytes", before, total)
    return came


def _linked(file: HubFile, cached: Path, place: Path) -> bool:
    if file.is_whole(cached):
        with suppress(OSError):  # on another disk
            place.unlink(missing_ok=True)
            os.link(cached, place)
            return True
    return False


def _of_hub(repository: Repository, file: HubFile, place: Path, tell: Progress) -> int:
    """One file, tried again where the line breaks; what has come stays for the next run."""
    part = place.with_name(f".{place.name}.{file.digest[:16]}.part")
    before, source = part.stat().st_size if part.exists() else 0, f"{repository.name}/{file.path}"
    way = f"put it into {place.parent} by hand"
    for attempt in range(1, TRIES + 1):
        try:
            url = repository.address(file.path)
            web.grow(part, url, source, size=file.size, headers=authorization(), tell=tell, way=way)
            break
        except web.HostBusy as error:
            if attempt == TRIES:
                raise
            time.sleep(min(error.wait, LONGEST_WAIT))
    if not file.is_whole(part):
        part.unlink()
        raise EyespotError(
            f"{source} came with other bytes than the hub promises ({file.digest[:16]}…) and was thrown away; "
            "run the same line again, or fetch it from another mirror"
        )
    put_file(part, place)
    return file.size - min(before, file.size)


# -- other hosts ------------------------------------------------------------------------------------------------


def _of_host(source: str, out: Path, tell: Progress) -> Downloaded:
    name, address = unquote(PurePosixPath(urlsplit(source).path).name), web.public(source)
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise UsageError(f"{address} does not end with the name of a file; give the address of the file itself")
    make_folder(out)
    place, got = out / name, 0
    if not place.exists():
        part, tag = out / f".{name}.part", out / f".{name}.part.etag"
        got = web.grow(part, source, address, tag=tag, tell=tell, way=f"put it into {out}")
        put_file(part, place)
        tag.unlink(missing_ok=True)
    return Downloaded(place, "", got, file_sha256(place))
