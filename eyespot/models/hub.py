"""A model's files: from the hub or a folder, with their digests; and loading that tells in one sentence what failed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from eyespot.extras import causes, misfit
from eyespot.models.downloads import cache_of, to_cache
from eyespot.models.repository import Repository, listed
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError, UsageError

HAND = "copy the weights by hand and name the folder"
STARTER = "use the built-in encoder: -e starter"
LARGE = 1 << 20  # bytes from which on a digest is remembered
SETTLED = 2_000_000_000  # nanoseconds
SMALL_FILES = ("*.json", "*.txt", "*.model", "*.jinja", "*.yml")  # settings, vocabularies, chat templates of a model


@dataclass(frozen=True)
class Checkpoint:
    """A model's files in one folder: its weights and the exact commit they came from ("" for a folder of one's own)."""

    folder: Path
    weights: list[Path]
    revision: str


def fetch(
    repo: str, revision: str | None, weights: Sequence[str], instead: str = f"{HAND}, or {STARTER}"
) -> Checkpoint:
    """A model from the hub's cache, or from the hub; `weights` are file patterns, the preferred one first.

    What is cached is not fetched again: a gallery's vectors must not change because a model was updated. What is
    fetched goes on where it was cut, and has the digests that the hub promises.
    """
    cached = _cached(repo, revision)
    for pattern in weights if cached else ():
        if cached and (found := _weights(cached, pattern)):
            return Checkpoint(cached, found, cached.name)
    repository = listed(repo, revision, instead="its cached copy is cut short" if cached else instead)
    for pattern in weights:
        if any(fnmatchcase(file.path, pattern) for file in repository.files):
            folder = _brought(repository, revision, (*SMALL_FILES, pattern))
            if found := _weights(folder, pattern):
                return Checkpoint(folder, found, folder.name)
    raise EyespotError(f"{repo} has no whole weights named {' or '.join(weights)}; name another model")


def described(repo: str, revision: str | None) -> Path:
    """A model's config.json alone, from the hub's cache or the hub; its folder bears the commit as its name."""
    cached = _cached(repo, revision)
    if cached is None or not (cached / "config.json").is_file():
        cached = _brought(listed(repo, revision, instead=HAND), revision, ["config.json"])
    return cached / "config.json"


def _brought(repository: Repository, revision: str | None, patterns: Sequence[str]) -> Path:
    """The folder of a commit in the hub's cache with those of its files that match; a bar on a terminal."""
    from huggingface_hub.utils.tqdm import tqdm as library

    chosen = [one for one in repository.files if any(fnmatchcase(one.path, pattern) for pattern in patterns)]
    wanted, tqdm = [one for one in chosen if "/" not in one.path], cast("Any", library)
    if not wanted:
        raise EyespotError(f"{repository.name} has no {' or '.join(patterns)}; name another model")
    total = sum(one.size for one in wanted)
    with tqdm(desc=repository.name, total=total, unit="B", unit_scale=True, disable=not sys.stderr.isatty()) as bar:
        return to_cache(repository, wanted, revision, lambda _unit, done, _total: bar.update(done - bar.n))


def cached_commit(repo: str) -> str | None:
    """The newest commit of a model in the hub's cache; None if there is none, or no client of the hub."""
    try:
        snapshots = cache_of(repo) / "snapshots"
    except ModuleNotFoundError:
        return None
    commits = [folder for folder in snapshots.glob("*") if any(folder.iterdir())] if snapshots.is_dir() else []
    return max(commits, key=lambda folder: folder.stat().st_mtime).name if commits else None


def checkpoint_of(kind: str, spec: str, weights: Sequence[str]) -> tuple[Checkpoint, str]:
    """The files of FOLDER or ORG/NAME[@REVISION], and the name KIND:… that loads them again."""
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return local_checkpoint(folder, weights), f"{kind}:{folder.resolve()}"
    return fetch(*repository_of(spec), weights), f"{kind}:{spec}"


def repository_of(spec: str) -> tuple[str, str | None]:
    """The repository and the revision of ORG/NAME[@REVISION]; `UsageError` if it is none."""
    repo, _, revision = spec.partition("@")
    if spec.startswith((".", "/", "~")) or repo.count("/") != 1:
        raise UsageError(f"{spec!r} is neither a folder nor a model's name on the hub, ORG/NAME")
    return repo, revision or None


def local_checkpoint(folder: Path, weights: Sequence[str]) -> Checkpoint:
    """A model in a folder of one's own."""
    found = next((found for pattern in weights if (found := _weights(folder, pattern))), None)
    if found is None:
        raise EyespotError(f"{folder} holds no weights named {' or '.join(weights)}")
    return Checkpoint(folder, found, "")


def digest(files: Sequence[Path]) -> str:
    """SHA-256 over the contents of files; of large ones it is remembered, as long as the system knows no change."""
    return hashlib.sha256("".join(map(_content, files)).encode()).hexdigest()


def _content(file: Path) -> str:
    found = file.stat()
    state = [found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    if found.st_size < LARGE:
        return file_sha256(file)
    memory = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "eyespot" / "digests.json"
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        known = dict(json.loads(memory.read_bytes()))
    place = str(file.resolve())
    match known.get(place):
        case [size, changed, noted, str(digest)] if [size, changed, noted] == state:
            return digest
    digest = file_sha256(file)
    if time.time_ns() - max(state[1:]) > SETTLED:  # within a tick of the clock another change would not show
        with suppress(OSError):
            make_folder(memory.parent)
            known = {name: one for name, one in known.items() if os.path.exists(name)} | {place: [*state, digest]}
            write_whole(memory, lambda out: out.write(json.dumps(known).encode()))
    return digest


def _cached(repo: str, revision: str | None) -> Path | None:
    """The folder of a commit in the hub's cache, None if it is not there."""
    home, commit = cache_of(repo), revision or "main"
    with suppress(OSError):
        commit = (home / "refs" / commit).read_text("utf-8").strip()
    folder = home / "snapshots" / commit
    return folder if folder.is_dir() else None


def _weights(folder: Path, pattern: str) -> list[Path]:
    """The weight files, or none if the folder's index of shards names one that is not there."""
    suffix = pattern.rpartition(".")[2]
    indexes = [json.loads(file.read_text("utf-8")) for file in folder.glob(f"*.{suffix}.index.json")]
    listed = {part for index in indexes for part in index["weight_map"].values()}
    complete = all((folder / part).is_file() for part in listed)
    return sorted(folder.glob(pattern)) if complete else []


# -- loading with care --------------------------------------------------------------------------------------


@contextmanager
def loading(name: str, instead: str = STARTER) -> Iterator[None]:
    """The libraries kept quiet, and errors as one sentence; `instead` is a way out without the hub."""
    try:
        with quiet():
            yield
    except (EyespotError, ModuleNotFoundError) as error:
        if why := misfit(error):
            raise EyespotError(why) from error
        raise
    except Exception as error:  # libraries meet a stranger's files with errors of every kind
        raise EyespotError(_sentence(name, error, instead)) from error


# Exceptions of the hub's client, which some libraries use by themselves, and of what it asks by
_HUB = {"HfHubHTTPError", "OfflineModeIsEnabled", "LocalEntryNotFoundError", "ConnectError", "TimeoutException",
        "URLError"}  # fmt: skip


def _sentence(name: str, error: BaseException, instead: str) -> str:
    chain = list(causes(error))
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    if any(kind.__name__ in _HUB for link in chain for kind in type(link).__mro__):
        return f"could not get {name} from the model hub ({first_line}); {HAND}, or {instead}"
    if why := misfit(error):
        return why
    if any("weights_only" in str(link).lower() for link in chain) or isinstance(error, pickle.UnpicklingError):
        return f"{name} holds more than weights, and code in it is not run; save its state dict alone"
    if isinstance(error, LookupError | EOFError | AttributeError | TypeError):
        return f"could not load {name}: its files are not those of a model, or are cut short"
    return f"could not load {name}: {first_line}"


@contextmanager
def quiet() -> Iterator[None]:
    """No log lines, warnings or bars; downloads keep their bar on a terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            from huggingface_hub.utils.tqdm import disable_progress_bars

            with nullcontext() if sys.stderr.isatty() else disable_progress_bars():
                warnings.simplefilter("ignore")
                yield
    finally:
        logging.disable(before)
