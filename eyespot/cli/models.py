"""`eyespot models`: CLIP-class models that run without torch: which there are, fetched, checked and taken away."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import GATE_FAILED, print_line, print_result, progress_bar, warn
from eyespot.cli.settings import GALLERY, flag, group, json_option
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.models.installed import Installed

app = group("CLIP-class models without torch: list, get, check and remove them. Alone it lists them.")
NAME = typer.Argument(metavar="NAME", help="A name of `models list`, or ORG/NAME of the hub; also NAME@COMMIT.")
FIGURES = ("imagenet", "coco_r1", "xm3600_en")
HEADING = "                     download   memory  numbers   pixels ImageNet COCO R@1   XM3600  licence"
VARIANT = typer.Option("fp32", "--variant", metavar="KIND", help="fp32, or smaller: fp16, int8, q4.")


@app.callback(invoke_without_command=True, no_args_is_help=False)
def alone(context: typer.Context) -> None:
    """List the models where no verb is named."""
    if context.invoked_subcommand is None:
        listing(every=False, json=False)


@app.command("list")
def listing(
    every: bool = flag("--all", "All figures and their sources, and the models that are left out, with why."),
    json: bool = json_option(),
) -> None:
    """List the models of the table: what each is good for, its size and licence, published figures; ✓ is here."""
    from eyespot.models.installed import installed
    from eyespot.models.table import RECOMMENDED, SMALL, TABLE, Entry, entries
    from eyespot.storage.systems import physical_memory
    from eyespot.storage.text_files import toml_of

    there, hidden = list(installed()), {"image", "text", "sha256", "golden", "folder", "tokenizer", "logits"}
    others = {one.name: Entry(name=one.name, licence=one.licence) for one in there if one.name not in entries()}
    rows = [
        one.model_dump(exclude=hidden, exclude_defaults=True)
        | {"here": [model.variant for model in there if model.name == name], "unpinned": one.unpinned}
        for name, one in (entries() | others).items()
    ]
    memory = physical_memory() or 0
    best = SMALL if 0 < memory < 6e9 else RECOMMENDED  # which then leaves little for anything else
    has = f"this machine has {memory / 1e9:.0f} GB of memory; " if memory else ""
    lines = [f"{has}recommended: {best}. Get one: eyespot models get NAME", HEADING]
    lines += [line for row in rows for line in _lines(row, every)]
    if every:
        rows += [{"name": name, "left_out": why, "here": []} for name, why in toml_of(TABLE)["left_out"].items()]
        about = {f"left out: {row['name']}": row["left_out"] for row in rows if "left_out" in row}
        lines += [f"{name}: {text}" for name, text in (about | toml_of(TABLE)["sources"]).items()]
    newest = ", ".join(name for name, one in entries().items() if one.repo and "commit" in one.unpinned)
    lines += [f"Without a commit of their own yet, so fetched at the hub's newest: {newest}"] if newest else []
    print_result(rows, [*lines, "Figures are published zero-shot ones, none is eyespot's own."], json)


def _lines(row: Mapping[str, Any], every: bool) -> list[str]:
    figures = {name: f"{value:g} {source}" for name, (value, source) in row.get("figures", {}).items()}
    sizes = [row.get("mb", 0) / 1e3, row.get("ram", 0) * 1.048576e-3]  # GB
    cells = [f"{size:.1f} GB" if size else "–" for size in sizes] + [row.get("dim", "–"), row.get("size", "–")]
    columns = "".join(f"{cell:>9}" for cell in [*cells, *(figures.get(name, "–") for name in FIGURES)])
    licence = row.get("licence", "") + (", not for commercial use" if row.get("commercial") is False else "")
    about = [f"{row['about']}; weak at: {row['weak']}"] if row.get("about") else []
    more = [f"{name} {figure}" for name, figure in figures.items() if every and name not in FIGURES]
    more += [f"not pinned yet: {row['unpinned']}"] if every and row.get("unpinned") else []
    first = f"{'✓' if row['here'] else ' '} {row['name']:<18}{columns}  {licence}"
    return [first, *(f"    {line}" for line in [*about, ", ".join(more)] if line)]


@app.command("get")
def get(
    name: str = NAME,
    variant: str = VARIANT,
    source: str = typer.Option(None, "--from", metavar="FOLDER|URL", help="The export's folder, or a hub's mirror."),
    accept: bool = flag("--accept-licence", "The licence forbids commercial use, and that is all right."),
    json: bool = json_option(),
) -> None:
    """Fetch a model, check its bytes and try it; run it again to go on where it was cut."""
    from eyespot import encoders
    from eyespot.models.table import entry

    wanted = entry(name)
    if variant not in encoders.VARIANTS:
        raise UsageError(f"no variant {variant!r}; there are: {', '.join(encoders.VARIANTS)}")
    if not wanted.commercial and not accept:
        why = f"{name} is not for commercial use ({wanted.licence})"
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(f"{why}; with --accept-licence it is fetched")
        typer.confirm(f"{why}. Fetch it?", abort=True, err=True)
    if source and "://" in source:
        os.environ["HF_ENDPOINT"] = source
    if source and "://" not in source:
        made = encoders.bring(wanted, variant, Path(source).expanduser())
    else:
        offered = encoders.offer(wanted, variant)
        ram = f", {wanted.ram} MiB of memory when it runs" if wanted.ram else ""
        terms = wanted.licence or "unknown; see its README"
        warn(f"{name}: {offered.bytes / 1e6:,.0f} MB to fetch{ram}; licence: {terms}")
        if not wanted.revision:
            warn(f"the table names no commit of {name} yet; this is {offered.repository.commit[:12]}, the newest")
        if variant in ("int8", "q4"):
            warn(f"{variant} ranks worse than fp32; its vectors are a space of their own")
        with progress_bar("bytes") as progress:
            made = encoders.get(wanted, variant, offered, progress)
    following = f"next: eyespot index PHOTOS -e {made.encoder.removeprefix('model:')}"
    print_result(_row(made), [str(made.folder), following], json)


@app.command("check")
def check(name: str = NAME, variant: str = VARIANT, json: bool = json_option()) -> None:
    """Read every byte of a model again, and embed two pictures and four texts."""
    from eyespot import encoders

    found = encoders.model_here(name, variant)
    damaged = found.damaged()
    compared = not damaged and encoders.try_out(found)
    lines = [f"{one} is not what was installed; get it again: eyespot models get {name}" for one in damaged]
    works = "its vectors are those of the table" if compared else "it works"
    lines = lines or [f"{name}: {quantity(len(found.files), 'file')}, whole; {works}"]
    print_result(_row(found) | {"damaged": damaged, "compared": compared}, lines, json)
    if damaged:
        raise typer.Exit(GATE_FAILED)


@app.command("where")
def where(name: str = NAME, variant: str = VARIANT) -> None:
    """Print the folder of a model."""
    from eyespot import encoders

    print_line(str(encoders.model_here(name, variant).folder))


@app.command("remove")
def remove(
    name: str = NAME,
    variant: str = VARIANT,
    force: bool = flag("--force", "Also if a gallery was made with it."),
    json: bool = json_option(),
) -> None:
    """Take a model away."""
    from eyespot import encoders

    found = encoders.model_here(name, variant)
    galleries = _galleries()
    using = [place for place, names in galleries.items() if any(one.endswith(found.encoder) for one in names)]
    if using and not force:
        raise UsageError(f"{using[0]} was made with {name}, and is not searched without it; or add --force")
    freed, known = found.remove(), ", ".join(map(str, galleries)) or "no gallery"
    lines = [f"freed {freed / 1e6:,.0f} MB; looked at {known}: another gallery that was made with it needs it again"]
    row = {"name": name, "variant": variant, "freed": freed, "galleries": [*map(str, galleries)]}
    print_result(row, lines, json)


def _galleries() -> dict[Path, list[str]]:
    """The galleries that a model was used for here, at or above this folder, at home, and copies of published ones."""
    from eyespot.gallery.disk import growing_encoders
    from eyespot.gallery.remote.fetching import copies
    from eyespot.models.installed import known_galleries

    near = [Path(place).expanduser() for place in (*known_galleries(), os.environ.get("EYESPOT_GALLERY")) if place]
    near += [folder / GALLERY for folder in (Path.cwd(), *Path.cwd().parents, Path.home(), Path.home() / "Pictures")]
    places = dict.fromkeys(one.absolute() for one in [*near, *copies().glob("*")] if (one / "gallery.toml").is_file())
    return {place: growing_encoders(place) for place in places}


def _row(model: Installed) -> dict[str, Any]:
    return {"name": model.name, "variant": model.variant, "encoder": model.encoder, "place": str(model.folder),
            "revision": model.revision, "licence": model.licence, "bytes": model.bytes}  # fmt: skip
