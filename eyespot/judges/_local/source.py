"""Which model is meant: a folder or a name on the hub, pinned to one revision, and described."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.models import hub
from eyespot.types import EyespotError, UsageError

WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
INSTEAD = "ask the judge that needs no download: encoder:starter"


class ModelSource(NamedTuple):
    """A model, pinned.

    `revision` is the commit of the hub, or a digest of the weights of a folder of one's own, so that a judge's name
    stands for one set of weights for ever, wherever the folder is moved.
    """

    kind: str  # the judge it is for: "transformers"
    model: str  # its name on the hub, or the folder's name
    revision: str
    place: str  # what a library loads it by: the name on the hub, or the folder
    config: Mapping[str, Any]  # its config.json

    @property
    def name(self) -> str:
        """The judge's name: "transformers:llava-hf/llava-1.5-7b-hf@6ceb2ed…"."""
        return f"{self.kind}:{self.model}@{self.revision}"

    @property
    def commit(self) -> str | None:
        """The commit of the hub; None for a folder."""
        return None if Path(self.place).is_dir() else self.revision

    def folder(self) -> Path:
        """The folder with all of its files, fetched if they are not in the hub's cache."""
        return Path(self.place) if self.commit is None else hub.fetch(self.place, self.commit, WEIGHTS).folder


def source(kind: str, spec: str) -> ModelSource:
    """The model `ORG/NAME[@REVISION]` or `FOLDER`; of the hub only its small config.json is fetched.

    Raises: UsageError if it is neither, EyespotError if it cannot be had.
    """
    with loading(f"{kind}:{spec}"):
        folder = Path(spec).expanduser()
        if folder.is_dir():
            folder = folder.resolve()
            weights = hub.local_checkpoint(folder, WEIGHTS).weights
            config = _config(folder / "config.json")
            return ModelSource(kind, folder.name, hub.digest(weights)[:16], str(folder), config)
        repo, _, revision = spec.partition("@")
        if spec.startswith((".", "/", "~")) or repo.count("/") != 1:
            raise UsageError(f"{spec!r} is neither a folder nor a model's name on the hub, ORG/NAME")
        file = hub.described(repo, revision or None)
        return ModelSource(kind, repo, file.parent.name, repo, _config(file))


@contextmanager
def loading(name: str) -> Iterator[None]:
    """The libraries kept quiet, and errors as one sentence."""
    with hub.loading(name, INSTEAD):
        yield


def _config(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        raise EyespotError(f"{file.parent} holds no config.json; name the folder that save_pretrained wrote")
    found = json.loads(file.read_text("utf-8"))
    if not isinstance(found, dict) or not isinstance(found.get("model_type"), str):
        raise EyespotError(f"{file} names no model_type; name a model of the transformers library")
    return found
