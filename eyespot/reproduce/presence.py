"""What of a table's needs is here: files, weights in the hub's cache, packages, keys, room; no network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from eyespot.extras import EXTRAS, install_line
from eyespot.models.hub import cached_commit
from eyespot.reproduce.recipes import UNKNOWN, NeededData, TableRecipe
from eyespot.storage.text_files import holds_something


class Presence(NamedTuple):
    """One need: `here` or not, what is known of it, and the way to get it; `stops` if nothing can be run without it."""

    kind: str  # data, weights, extra, key, disk
    what: str
    here: bool
    about: str
    way: str = ""
    stops: bool = False


def presences(recipe: TableRecipe, work: Path) -> list[Presence]:
    """Every need of a table, with whether it is here."""
    return [*_data(recipe, work), *_weights(recipe), *_packages(recipe), *_keys(recipe), _disk(recipe, work)]


def _data(recipe: TableRecipe, work: Path) -> Iterator[Presence]:
    for one in recipe.data:
        here = any(map(holds_something, work.glob(one.place)))
        way = f"eyespot reproduce {recipe.name} downloads it" if one.source else one.how
        about = f"{one.place}, {size(one.bytes)}, licence: {one.licence}" + ("" if one.required else ", optional")
        yield Presence("data", one.what, here, about, way, stops=not here and one.required and not one.source)


def _weights(recipe: TableRecipe) -> Iterator[Presence]:
    for one in recipe.weights:
        commit = cached_commit(one.hub)
        about = f"{size(one.bytes)}{f' ({one.how})' if one.how else ''}, revision {commit or one.revision}; "
        about += f"the id is known from {one.id_known_from}"
        yield Presence("weights", one.hub, commit is not None, about, "fetched from the hub when it is first used")


def _packages(recipe: TableRecipe) -> Iterator[Presence]:
    for extra in recipe.extras:
        packages = [name for name, brings in EXTRAS.items() if brings == extra and name != "torchvision"]
        here = all(find_spec(name) is not None for name in packages)
        yield Presence("extra", f"[{extra}]", here, ", ".join(packages), install_line(extra), stops=not here)


def _keys(recipe: TableRecipe) -> Iterator[Presence]:
    for key in recipe.keys:
        yield Presence("key", key, bool(os.environ.get(key)), "a key of the API", f"export {key}=…")


def _disk(recipe: TableRecipe, work: Path) -> Presence:
    """Whether the bytes that are still to come fit; files that are here and whose size is not known do not count."""
    coming = sum(_bytes_to_come(one, work) for one in recipe.data)
    near = next(folder for folder in (work, *work.absolute().parents) if folder.exists())
    free = shutil.disk_usage(near).free
    about = f"{size(coming)} of known size to come, {size(free)} free"
    return Presence("disk", str(near), coming <= free, about, "choose another place with --work", stops=coming > free)


def _bytes_to_come(one: NeededData, work: Path) -> int:
    return 0 if one.bytes is None or not one.source or any(map(holds_something, work.glob(one.place))) else one.bytes


def size(count: int | None) -> str:
    """Bytes for people; "not known" for None."""
    if count is None:
        return UNKNOWN
    for scale, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:,} bytes"
