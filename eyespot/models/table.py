"""The table of models whose exports can be fetched, and the names that a model goes by."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

REPOSITORY, REVISION = re.compile(r"[\w.-]+/[\w.-]+"), re.compile("[0-9a-f]{40}")
RECOMMENDED, SMALL, TABLE = "siglip2-base", "siglip-base", Path(__file__).with_name("table.toml")


class Entry(BaseModel):
    """What is known of a model; "", None and an empty table mean that it is not.

    folder: of the repository, where it holds several models. sha256: digests of files by their names there. golden: by
    variant, the first numbers of the vectors of two pictures and four texts. mb: megabytes to download in fp32. ram:
    MiB while both towers are open. figures: each with its source. tokenizer: the repository that has it, where this one
    has none. logits: `logit_scale` and `logit_bias` of the weights. released: promised to users as it is pinned. image,
    text: settings of `eyespot.toml` that no file of the export says.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str = ""
    weak: str = ""
    licence: str = ""
    commercial: bool = True
    repo: str = ""
    revision: str = ""
    folder: str = ""
    layout: str = ""
    needs: str = ""
    tokenizer: str = ""
    dim: int | None = None
    size: int | None = None
    mb: float | None = None
    ram: int | None = None
    figures: dict[str, tuple[float, str]] = {}
    sha256: dict[str, str] = {}
    golden: dict[str, list[list[float]]] = {}
    logits: dict[str, float] = {}
    released: bool = False
    image: dict[str, Any] = {}
    text: dict[str, Any] = {}

    @property
    def root(self) -> str:
        """What stands before the paths of its files in the repository."""
        return f"{self.folder}/" if self.folder else ""

    @property
    def known(self) -> dict[str, Any]:
        """What somebody knows and the files of an export may not say."""
        tables = {"image": self.image, "text": self.text, "logits": self.logits}
        return {"licence": self.licence, "dim": self.dim, **tables}

    @property
    def unpinned(self) -> str:
        """What `get` and `check` cannot compare yet: commit, digests of both towers, vectors; "" for nothing."""
        towers = sum(path.endswith(".onnx") for path in self.sha256)
        missing = {"commit": not REVISION.fullmatch(self.revision), "digests": towers < 2, "vectors": not self.golden}
        return ", ".join(name for name, lacks in missing.items() if lacks)


@cache
def entries() -> dict[str, Entry]:
    """All models of the table by name, the best first."""
    models = (item for item in toml_of(TABLE).items() if item[0] not in ("sources", "left_out"))
    return {name: Entry(name=name, **fields) for name, fields in models}


def entry(name: str) -> Entry:
    """A model by its name in the table, or any repository of the hub; NAME@COMMIT is another commit of it.

    Raises: UsageError that lists the names.
    """
    name, _, commit = name.partition("@")
    if name not in entries() and not REPOSITORY.fullmatch(name):
        raise UsageError(f"no model {name!r}; there are: {', '.join(entries())}, or any ORG/NAME of the hub")
    found = entries().get(name) or Entry(name=name, repo=name)
    if not commit or found.revision.startswith(commit):
        return found
    return found.model_copy(update={"revision": commit, "sha256": {}, "golden": {}})  # which are another commit's


def full_names(model: str) -> list[str]:
    """What a model's name may mean with its file or folder in full, or as one of the table; empty if it is neither.

    In the folder /home/ada `hf:tuned/model` gives `hf:/home/ada/tuned/model`, the name that its space bears.
    """
    bare = re.sub("@[^:]*", "", model.removeprefix("onnx:hub:").removeprefix("model:"))
    if bare.partition(":")[0] in entries() or REPOSITORY.fullmatch(bare.partition(":")[0]):
        return [f"model:{bare}"]
    starts = [match.end() for match in re.finditer("[:/]", model)]
    # Of os: Path fails for a name that is too long, somebody's home that is not there, or a folder one may not enter.
    places = [(model[:start], os.path.expanduser(model[start:])) for start in starts if model[start:]]
    return [f"{kind}{Path(place).resolve()}" for kind, place in places if os.path.exists(place)]
