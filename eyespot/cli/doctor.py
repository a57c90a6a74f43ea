"""`eyespot doctor`: what is installed, what is slow, and whether a gallery's vectors still agree with their encoder."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import GATE_FAILED, print_result, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import EyespotError, quantity

if TYPE_CHECKING:
    from eyespot.gallery.integrity import Fault

PACKAGES = ("numpy", "numba", "onnxruntime", "pyarrow", "duckdb", "pillow", "pillow-heif", "tokenizers", "torch",
            "torchvision", "transformers", "open-clip-torch")  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "EYESPOT_THREADS")
FASTER = (
    "the extra [fast] brings compiled kernels, which make searches of more than 100,000 pictures many times as fast, "
    "and QuARI searches a few times"
)
TOLERANCE = 1e-2  # of a fingerprint's components: other CPUs differ by rounding, other weights by far more


def run(
    gallery: Path = gallery_option("The gallery whose vectors are compared with their encoders."),
    adapt: list[str] = typer.Option(
        None, "--adapt", metavar="CKPT", help="An adapter to look at: its encoder and validation; repeatable."
    ),
    json: bool = json_option(),
) -> None:
    """Check the installation, every byte of a gallery's files, and its spaces against their fingerprints."""
    import eyespot
    from eyespot.cli.judges import known
    from eyespot.extras import install_line
    from eyespot.gallery.integrity import faults
    from eyespot.gallery.remote import address_of
    from eyespot.kernels import compiled
    from eyespot.storage.systems import usable_cores

    place = gallery_here(gallery)
    damaged: list[Fault] = []
    spaces: list[dict[str, Any]] = []
    if gallery is not None or (place / "gallery.toml").exists():
        with progress_bar() as progress:
            damaged = faults(place, progress)
        spaces = list(_spaces(place, damaged))
    versions = {"eyespot": eyespot.__version__, "python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        versions[name] = "not installed"
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    adapters = [_adapter(place) for place in adapt or ()]
    report = {
        "versions": versions,
        "encoders": {row["name"]: row["needs"] for row in known("encoders")},
        "threads": {"cores": os.cpu_count(), "usable": usable_cores()}
        | {name: os.environ[name] for name in THREADS if name in os.environ},
        "adapters": adapters,
        "warnings": [*_warnings(), *(f"{one['checkpoint']}: {one['caution']}" for one in adapters if one["caution"])],
        "advice": [] if compiled() else [f"{FASTER}: {install_line('fast')}"],
        "copy": _copy(place),
        "spaces": spaces,
        "damaged": [asdict(fault) for fault in damaged],
    }
    print_result(report, _lines(report, "" if gallery is None else f' -g "{address_of(gallery) or gallery}"'), json)
    if damaged or any(space["status"] == "differs" for space in spaces):
        raise typer.Exit(GATE_FAILED)


def _warnings() -> Iterator[str]:
    if pinned := os.environ.get("OPENBLAS_CORETYPE"):
        yield f"OPENBLAS_CORETYPE={pinned} pins numpy to old kernels; unset it, matrix products may run twice as fast"
    from eyespot.extras import misfit

    try:
        import torchvision  # noqa: F401
    except ModuleNotFoundError:
        return
    except Exception as error:
        yield misfit(error) or f"torchvision cannot be imported ({error}); install it again"


def _copy(place: Path) -> dict[str, Any] | None:
    """Where the copy of a published gallery comes from, its date, and whether all of it is here."""
    from eyespot.gallery.remote.fetching import CopyState
    from eyespot.models.web import public

    if not (state := CopyState.of(place)).url:
        return None
    then = f"{state.date(place):%Y-%m-%d %H:%M}"
    return {"address": public(state.url), "as_of": then, "whole": state.is_whole(place)}


def _spaces(place: Path, damaged: Sequence[Fault]) -> Iterator[dict[str, Any]]:
    """Each space with its rows, those in damaged shards aside."""
    from eyespot.gallery import disk, items_table
    from eyespot.gallery.view import Gallery

    if any(fault.file == disk.HEADER for fault in damaged):
        return
    for stem, space in Gallery(place).header.spaces.items():
        faulty = {fault.shard for fault in damaged if fault.stem in (stem, "")}
        sound = [shard for shard in disk.shard_paths(place) if shard.name not in faulty]
        notes = {shard: note for shard in sound if (note := disk.read_note(shard, stem))}
        stored = [note.fingerprints for note in notes.values() if note.fingerprints]
        status = {"status": "damaged", "difference": None} if faulty else _parity(space.encoder, stored)
        yield {"space": stem, "encoder": space.encoder, "rows": sum(map(items_table.count_items, notes)), **status}


def _adapter(place: str) -> dict[str, Any]:
    """What the card of a checkpoint says; a released one has none, nor has a linear adapter."""
    from eyespot.adapters import linear, quari

    if place.startswith("linear:"):
        static = linear.load(place.removeprefix("linear:"))
        nothing = dict.fromkeys(("validation", "card", "caution"))
        return {"checkpoint": place, "encoder": static.space, "dim": static.dim, **nothing}
    loaded = quari.load(place)
    validation = None if loaded.card is None or loaded.card.validation is None else str(loaded.card.validation)
    report = {"checkpoint": place, "encoder": loaded.space, "dim": loaded.dim, "validation": validation}
    return report | {"card": None if loaded.card is None else loaded.card.as_yaml(), "caution": loaded.caution}


def _parity(encoder: str, stored: Sequence[list[list[float]]]) -> dict[str, Any]:
    """Whether the encoder installed now gives the vectors that the gallery was made with."""
    import numpy as np

    from eyespot import rooms
    from eyespot.gallery.making import fingerprints

    if not stored:
        return {"status": "no fingerprints", "difference": None}
    try:
        now = np.array(fingerprints(rooms.load("encoders", encoder)))
        difference = max(float(np.abs(np.array(then, np.float64) - now).max()) for then in stored)
    except (EyespotError, ValueError, TypeError) as error:
        status = f"cannot be checked: {error}" if isinstance(error, EyespotError) else "differs"
        return {"status": status, "difference": None}
    return {"status": "agrees" if difference <= TOLERANCE else "differs", "difference": round(difference, 8)}


def _lines(report: dict[str, Any], where: str) -> Iterator[str]:
    from eyespot.gallery.integrity import Fault

    for part in ("versions", "encoders", "threads"):
        yield f"{part}:"
        for name, value in report[part].items():
            yield f"  {name:<18} {value}"
    for one in report["adapters"]:
        encoder = one["encoder"] or f"vectors of {one['dim']} components, of no encoder that it names"
        yield f"adapter {one['checkpoint']}: for {encoder}, {one['validation'] or 'no validation known'}"
    yield from (f"warning: {sentence}" for sentence in report["warnings"])
    yield from (f"advice: {sentence}" for sentence in report["advice"])
    if copy := report["copy"]:
        tail = "" if copy["whole"] else f"; it is not whole: name its address, as in -g {copy['address']}"
        yield f"copy of {copy['address']} as of {copy['as_of']}{tail}"
    for space in report["spaces"]:
        other = ": the encoder's vectors have another length" if space["status"] == "differs" else ""
        difference = other if space["difference"] is None else f", largest difference {space['difference']:.1e}"
        yield f"space {space['space']}: {quantity(space['rows'], 'row')}, {space['status']}{difference}"
    yield from (str(Fault(**fault)) for fault in report["damaged"])
    yield f"next: {_next(report, where)}"


def _next(report: dict[str, Any], where: str) -> str:
    if report["damaged"]:
        return f"eyespot index --repair{where}"
    if differing := [space["encoder"] for space in report["spaces"] if space["status"] == "differs"]:
        return f"index with {differing[0]} into a new gallery: eyespot index PHOTOS -e {differing[0]} -g NEW"
    return f'eyespot search "a heron"{where}' if report["spaces"] else "eyespot index PHOTOS, then search them"
