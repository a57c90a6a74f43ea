"""A model's files: from the hub or a folder, with their digests; and loading that tells in one sentence what failed."""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from eyespot.extras import causes, misfit
from eyespot.storage.digests import file_sha256
from eyespot.types import EyespotError

SMALL_FILES = ("*.json", "*.txt", "*.model", "*.jinja")  # settings, vocabularies, chat templates of a model


class Checkpoint(NamedTuple):
    """A model's files in one folder: its weights and the exact commit they came from ("" for a folder of one's own)."""

    folder: Path
    weights: list[Path]
    revision: str


def fetch(repo: str, revision: str | None, weights: Sequence[str]) -> Checkpoint:
    """A model from the hub's cache, or from the hub; `weights` are file patterns, the preferred one first.

    What is cached is not asked for again: a gallery's vectors must not change because a model was updated.
    """
    for local in (True, False):
        for pattern in weights:
            folder = _fetched(repo, revision, [*SMALL_FILES, pattern], local)
            snapshot_found = [] if folder is None else _weights(folder, pattern)
            found = Checkpoint(folder, snapshot_found, folder.name) if folder is not None and snapshot_found else None
            if found is not None:
                return found
    names = " or ".join(weights)  # without a connection the client hands out a cached copy, whole or not
    raise EyespotError(f"{repo} has no weights named {names}, or its cached copy is cut short; fetch it while online")


def described(repo: str, revision: str | None) -> Path:
    """A model's config.json alone, from the hub's cache or the hub; its folder bears the commit as its name."""
    for local in (True, False):
        folder = _fetched(repo, revision, ["config.json"], local)
        if folder is not None and (folder / "config.json").is_file():
            return folder / "config.json"
    raise EyespotError(f"{repo} has no config.json, or its cached copy is cut short; fetch it while online")


def cached_commit(repo: str) -> str | None:
    """The newest commit of a model in the hub's cache; None if there is none, or no client of the hub."""
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ModuleNotFoundError:
        return None
    snapshots = Path(HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}" / "snapshots"
    commits = [folder for folder in snapshots.glob("*") if any(folder.iterdir())] if snapshots.is_dir() else []
    return max(commits, key=lambda folder: folder.stat().st_mtime).name if commits else None


def local_checkpoint(folder: Path, weights: Sequence[str]) -> Checkpoint:
    """A model in a folder of one's own."""
    for pattern in weights:
        found = _weights(folder, pattern)
        if found:
            return Checkpoint(folder, found, "")
    raise EyespotError(f"{folder} holds no weights named {' or '.join(weights)}")


def digest(files: Sequence[Path]) -> str:
    """SHA-256 over the contents of files; a file in the hub's cache bears its own as its name and is not read again."""
    contents = []
    for file in files:
        blob = file.resolve()
        if blob.parent.name == "blobs" and re.fullmatch("[0-9a-f]{64}", blob.name):
            content = blob.name
        else:
            content = file_sha256(file)
        contents.append(content)
    return hashlib.sha256("".join(contents).encode()).hexdigest()


def _fetched(repo: str, revision: str | None, wanted: Sequence[str], local: bool) -> Path | None:
    """The folder of a commit with these files, or None if it was to be in the cache and is not."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            repo, revision=revision, allow_patterns=list(wanted), ignore_patterns="*/*", local_files_only=local
        )
    except LocalEntryNotFoundError:
        if local:
            return None
        raise
    return Path(folder)


def _weights(folder: Path, pattern: str) -> list[Path]:
    """The weight files, or none if the folder's index of shards names one that is not there."""
    suffix = pattern.rpartition(".")[2]
    indexes = [json.loads(file.read_text("utf-8")) for file in folder.glob(f"*.{suffix}.index.json")]
    listed = {part for index in indexes for part in index["weight_map"].values()}
    complete = all((folder / part).is_file() for part in listed)
    return sorted(folder.glob(pattern)) if complete else []


# -- loading with care --------------------------------------------------------------------------------------


@contextmanager
def loading(name: str, instead: str = "use the built-in encoder: -e starter") -> Iterator[None]:
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


_HUB = {  # exception of the hub's client, of httpx, of urllib → what it means
    "OfflineModeIsEnabled": "HF_HUB_OFFLINE is set",
    "GatedRepoError": "its terms are not accepted yet",
    "RepositoryNotFoundError": "there is no such model, or it is private",
    "RevisionNotFoundError": "there is no such revision",
    "ConnectError": "no connection",
    "ConnectTimeout": "no answer",
    "ReadTimeout": "no answer",
    "URLError": "no connection",
    "LocalEntryNotFoundError": "no connection",
}
_WAY_OUT = {
    "GatedRepoError": "accept them there, then log in with: hf auth login",
    "RepositoryNotFoundError": "check the name",
    "RevisionNotFoundError": "check the revision",
}


def _sentence(name: str, error: BaseException, instead: str) -> str:
    # The names of the exceptions behind an error, innermost first: the innermost knows the reason
    chain = list(causes(error))
    kinds = [kind.__name__ for link in reversed(chain) for kind in type(link).__mro__]
    kind = next((kind for kind in kinds if kind in _HUB), None)
    if kind is not None:
        way_out = _WAY_OUT.get(kind, "copy the weights by hand and name the folder")
        return f"could not get {name} from the model hub ({_HUB[kind]}); {way_out}, or {instead}"
    if why := misfit(error):
        return why
    if "weights_only" in _error_chain_text(error).lower() or isinstance(error, pickle.UnpicklingError):
        return f"{name} holds more than weights, and code in it is not run; save its state dict alone"
    if isinstance(error, LookupError | EOFError | AttributeError | TypeError):
        return f"could not load {name}: its files are not those of a model, or are cut short"
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return f"could not load {name}: {first_line}"


def _error_chain_text(error: BaseException) -> str:
    return " ".join(str(link) for link in causes(error))


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
