"""`eyespot doctor`: what is installed, what is slow, and whether a gallery's vectors still agree with their encoder."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer

from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.cli.telling import as_json
from eyespot.types import EyespotError

PACKAGES = ("numpy", "numba", "onnxruntime", "pyarrow", "duckdb", "pillow", "pillow-heif", "tokenizers", "torch",
            "torchvision", "transformers", "open-clip-torch")  # fmt: skip
GATE_FAILED = 4
TOLERANCE = 1e-2  # of a fingerprint's components: other CPUs differ by rounding, other weights by far more


def run(
    gallery: Path = gallery_option("A gallery whose vectors are checked against their encoders."),
    json: bool = json_option(),
) -> None:
    """Check the installation, and a gallery's spaces against their reference fingerprints."""
    place = gallery_here(gallery)
    spaces = list(_spaces(place)) if gallery is not None or (place / "gallery.toml").exists() else []
    told = {
        "versions": _versions(),
        "encoders": _encoders(),
        "threads": _threads(),
        "warnings": _warnings(),
        "spaces": spaces,
    }
    if json:
        as_json(told)
    else:
        _print(told)
    if any(space["status"] == "differs" for space in spaces):
        raise typer.Exit(GATE_FAILED)


def _versions() -> dict[str, str]:
    import eyespot

    found = {"eyespot": eyespot.__version__, "python": platform.python_version(), "system": platform.platform()}
    return found | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _encoders() -> dict[str, str]:
    from eyespot.cli.encoders import known

    return {row["name"]: row["needs"] for row in known()}


def _threads() -> dict[str, Any]:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "EYESPOT_THREADS")
    return {"cores": os.cpu_count(), "usable": affinity} | {
        name: os.environ[name] for name in variables if name in os.environ
    }


def _warnings() -> list[str]:
    return [*_pinned_blas(), *_torchvision()]


def _pinned_blas() -> Iterator[str]:
    if pinned := os.environ.get("OPENBLAS_CORETYPE"):
        yield f"OPENBLAS_CORETYPE={pinned} pins numpy to old kernels; unset it, matrix products may run twice as fast"


def _torchvision() -> Iterator[str]:
    if _version("torchvision") == "not installed" or _version("torch") == "not installed":
        return
    try:
        import torchvision  # noqa: F401
    except Exception as error:
        reason = str(error).splitlines()[0]
        pair = f"torchvision {_version('torchvision')} does not fit torch {_version('torch')}"
        yield f"{pair} ({reason}); install its matching wheel"


def _spaces(place: Path) -> Iterator[dict[str, Any]]:
    from eyespot.gallery.opened import Gallery

    gallery = Gallery(place)
    for stem, space in gallery.header.spaces.items():
        yield {
            "space": stem,
            "encoder": space.encoder,
            "rows": len(gallery.view(stem).live),
            **_parity(gallery.view(stem)),
        }


def _parity(view: Any) -> dict[str, Any]:
    """Whether the encoder installed now gives the vectors that the gallery was made with."""
    import numpy as np

    from eyespot import rooms
    from eyespot.gallery import disk
    from eyespot.gallery.fingerprints import fingerprints

    notes = [disk.read_note(shard, view.stem) for shard in view.shards]
    stored = [note.fingerprints for note in notes if note and note.fingerprints]
    if not stored:
        return {"status": "no fingerprints", "difference": None}
    try:
        now = fingerprints(rooms.load("encoders", view.space.encoder))
    except EyespotError as error:
        return {"status": f"cannot be checked: {error}", "difference": None}
    difference = max(float(np.abs(np.array(one) - np.array(now)).max()) for one in stored)
    return {"status": "agrees" if difference <= TOLERANCE else "differs", "difference": round(difference, 8)}


def _print(told: dict[str, Any]) -> None:
    for part in ("versions", "encoders", "threads"):
        typer.echo(f"{part}:")
        for name, value in told[part].items():
            typer.echo(f"  {name:<18} {value}")
    for sentence in told["warnings"]:
        typer.echo(f"warning: {sentence}")
    for space in told["spaces"]:
        difference = "" if space["difference"] is None else f", largest difference {space['difference']:.1e}"
        typer.echo(f"space {space['space']}: {space['rows']} rows, {space['status']}{difference}")
    sys.stdout.flush()
