"""Models that `eyespot models get` brought: `model:NAME[@COMMIT][:VARIANT]`, or NAME alone; `auto` is the best one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eyespot import rooms
from eyespot.models.installed import installed
from eyespot.models.table import REPOSITORY, entries
from eyespot.types import Encoder, EyespotError, UsageError

SPELLING = "NAME of eyespot models list"
NEEDS = "nothing more; eyespot models get NAME"


def load(spec: str, **options: Any) -> Encoder:
    """A model that is here, by the name of the table or ORG/NAME; `batch` as for `onnx:FOLDER`.

    Raises: UsageError with the line that fetches it if it is not here, or if another commit is.
    """
    if spec == "auto":
        found: Encoder = rooms.load("encoders", best_here(), **options)
        return found
    from eyespot.encoders._installing import encoder_of, model_here  # with all that opens exports
    from eyespot.encoders._layouts import VARIANTS

    name, _, variant = spec.partition(":")
    bare = name.partition("@")[0]
    if bare not in entries() and not REPOSITORY.fullmatch(bare):
        members = ", ".join(rooms.names("encoders"))
        raise UsageError(f"no {bare!r} in encoders; there are: {members}, and models: {', '.join(entries())}")
    if variant and variant not in VARIANTS:
        raise UsageError(f"no variant {variant!r}; there are: {', '.join(VARIANTS)}")
    return encoder_of(model_here(name, variant or "fp32"), **options)


def chosen(name: str | None, known: Sequence[str], tell: Callable[[str], object]) -> list[Encoder]:
    """The encoder of that name; for None and "auto" those that a gallery has, else "starter", or the best one here.

    One of a gallery that cannot be loaded waits, as `tell` hears. Raises: EyespotError if none of them can.
    """
    if name == "auto" and not known:
        name = best_here()
        tell(f"the best encoder on this machine is {name}")
    if not known or name not in (None, "auto"):
        return [rooms.load("encoders", name or "starter")]
    encoders: list[Encoder] = []
    waiting = []
    for one in known:
        try:
            encoders.append(rooms.load("encoders", one))
        except EyespotError as error:
            waiting.append(f"{one} gets no vectors for now: {error}")
    if not encoders:
        raise EyespotError(f"choose an encoder, as in -e starter; of this gallery none can be loaded: {waiting[0]}")
    for sentence in waiting:
        tell(sentence)
    return encoders


def best_here() -> str:
    """The best model on this machine in the order of the table, `starter` if there is none."""
    from eyespot.encoders._layouts import VARIANTS

    of_variant = {(model.name, model.variant): model.encoder for model in installed()}
    names = dict.fromkeys([*entries(), *(name for name, _ in of_variant)])
    found = (of_variant.get((name, variant)) for name in names for variant in VARIANTS)
    return next(filter(None, found), "starter")
