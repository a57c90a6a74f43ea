"""What of a table's needs is here: files, weights in the hub's cache, packages, keys, room; no network."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eyespot.extras import EXTRAS, install_line
from eyespot.models.hub import cached_commit
from eyespot.reproduce.recipes import UNKNOWN, TableRecipe
from eyespot.storage.text_files import holds_something


@dataclass(frozen=True, slots=True)
class Presence:
    """One need: `here` or not, what is known of it, and the way to get it; `stops` if nothing can be run without it."""

    kind: str  # data, weights, extra, key, disk
    what: str
    here: bool
    about: str
    way: str = ""
    stops: bool = False


def presences(recipe: TableRecipe, work: Path) -> list[Presence]:
    """Every need of a table, with whether it is here."""
    found, coming = [], 0
    for data in recipe.data:
        here = any(map(holds_something, work.glob(data.place)))
        coming += 0 if here or not data.source else data.bytes or 0  # what is here, and of unknown size, does not count
        way = f"eyespot reproduce {recipe.name} downloads it" if data.source else data.how
        about = f"{data.place}, {size(data.bytes)}, licence: {data.licence}" + ("" if data.required else ", optional")
        stops = not here and data.required and not data.source
        found.append(Presence("data", data.what, here, about, way, stops))
    for command in recipe.commands(sample=False):
        program = command.line.split()[0]
        if program != "eyespot" and "://" in command.line:  # which another program fetches, as git does
            here, lacks = (work / command.makes).exists(), shutil.which(program) is None
            way = f"{f'install {program}; then ' * lacks}eyespot reproduce {recipe.name} runs: {command.line}"
            about = f"{command.makes}, {size(None)}, by {program}"
            found.append(Presence("data", command.id, here, about, way, stops=lacks and not here))
    for one in recipe.weights:
        commit = cached_commit(one.hub)
        about = f"{size(one.bytes)}{f' ({one.how})' if one.how else ''}, revision {commit or one.revision}; "
        about += f"the id is known from {one.id_known_from}"
        found.append(Presence("weights", one.hub, commit is not None, about, "fetched from the hub at its first use"))
    for extra in recipe.extras:
        packages = [name for name, brings in EXTRAS.items() if brings == extra and name != "torchvision"]
        here = all(find_spec(name) is not None for name in packages)
        found.append(Presence("extra", f"[{extra}]", here, ", ".join(packages), install_line(extra), stops=not here))
    for key in recipe.keys:
        found.append(Presence("key", key, bool(os.environ.get(key)), "a key of the API", f"export {key}=…"))
    near = next(folder for folder in (work, *work.absolute().parents) if folder.exists())
    free = shutil.disk_usage(near).free
    about = f"{size(coming)} of known size to come, {size(free)} free"
    way = "choose another place with --work"
    return [*found, Presence("disk", str(near), coming <= free, about, way, stops=coming > free)]


def size(count: int | None) -> str:
    """Bytes for people; "not known" for None."""
    if count is None:
        return UNKNOWN
    for scale, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:,} bytes"
