"""How a number was made: versions, arguments, digests of the inputs, and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from eyespot import __version__
from eyespot.storage.digests import file_sha256

PACKAGES = ("numpy", "numba", "onnxruntime", "torch", "open-clip-torch", "transformers")
DIGESTED = 1 << 30  # bytes; larger files are known by their size alone


def made_by(arguments: Mapping[str, Any], inputs: Iterable[Path], **more: Any) -> dict[str, Any]:
    """What a reader needs to make the same number again."""
    return {
        "eyespot": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "arguments": {name: value for name, value in arguments.items() if value not in (None, False, [], ())},
        "inputs": {str(path): digest for path in dict.fromkeys(inputs) if (digest := _digest(path))},
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        **{name: value for name, value in more.items() if value is not None},
    }


def _digest(path: Path) -> str | None:
    if not path.is_file():
        return None
    size = path.stat().st_size
    return f"sha256:{file_sha256(path)}" if size <= DIGESTED else f"{size} bytes"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
