"""Where settings come from: options, then the environment (`EYESPOT_*`), then `eyespot.toml`, then defaults.

The gallery is found as git finds a repository: `.eyespot` in this folder or the nearest one above it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import typer

from eyespot.types import UsageError

GALLERY = ".eyespot"
VERBS = ("demo", "index", "failures", "search", "metrics", "doctor")
GROUPS = {"import": ("clip-retrieval", "npy"), "export": ("clip-retrieval", "npy")}


def gallery_option(help: str) -> Any:
    """The option `-g/--gallery` with the same name, environment variable and meaning on every verb."""
    return typer.Option(None, "-g", "--gallery", envvar="EYESPOT_GALLERY", help=help, show_default="nearest .eyespot")


def json_option() -> Any:
    """The option `--json`, alike on every verb that prints."""
    return typer.Option(False, "--json", help="Print JSON on stdout.")


def gallery_here(given: Path | None) -> Path:
    """The gallery named, else the nearest `.eyespot` at or above this folder, else a new one here."""
    if given is not None:
        return given
    here = Path.cwd()
    found = (folder / GALLERY for folder in (here, *here.parents) if (folder / GALLERY / "gallery.toml").is_file())
    return next(found, here / GALLERY)


def from_toml(path: Path = Path("eyespot.toml")) -> dict[str, dict[str, Any]]:
    """Defaults for every verb: the file's top-level keys, then those of the verb's own table."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} cannot be read ({error}); mend it or move it away") from error
    common = {name: value for name, value in found.items() if not isinstance(value, dict)}
    verbs = {verb: common | found.get(verb, {}) for verb in (*VERBS, *GROUPS)}
    return verbs | {group: {member: verbs[group] for member in members} for group, members in GROUPS.items()}
