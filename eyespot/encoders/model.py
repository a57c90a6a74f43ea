"""Models that `eyespot models get` brought: `model:NAME[:VARIANT]`, or NAME alone; `auto` is the best one here."""

from __future__ import annotations

from typing import Any

from eyespot import rooms
from eyespot.encoders._installing import encoder_of, model_here
from eyespot.encoders._layouts import VARIANTS
from eyespot.encoders.onnx import OnnxEncoder
from eyespot.models.installed import installed
from eyespot.models.table import REPOSITORY, entries
from eyespot.types import UsageError

SPELLING = "NAME of eyespot models list"
NEEDS = "nothing more; eyespot models get NAME"


def load(spec: str, **options: Any) -> OnnxEncoder:
    """A model that is here, by the name of the table or ORG/NAME; `batch` and `threads` as for `onnx:FOLDER`.

    Raises: UsageError with the line that fetches it if it is not here, or if another commit is.
    """
    name, _, variant = spec.partition(":")
    name, _, commit = name.partition("@")
    if variant and variant not in VARIANTS:
        raise UsageError(f"no variant {variant!r}; there are: {', '.join(VARIANTS)}")
    if name not in entries() and not REPOSITORY.fullmatch(name):
        members = ", ".join(rooms.names("encoders"))
        raise UsageError(f"no {name!r} in encoders; there are: {members}, and models: {', '.join(entries())}")
    found = model_here(name, variant or "fp32")
    if commit and not found.revision.startswith(commit):
        raise UsageError(f"{name} is here at commit {found.revision or 'unknown'}, not {commit}; get that one first")
    return encoder_of(found, **options)


def best_here() -> str:
    """The best model on this machine in the order of the table, `starter` if there is none."""
    here = {model.name: model.encoder for model in installed()}
    return next((here[name] for name in (*entries(), *here) if name in here), "starter")
