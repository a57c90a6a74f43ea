"""Digests of the files that a pipeline reads: large ones are not read again while size and time stay the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyespot.pipelines.step import digest_of
from eyespot.storage.files import write_whole


def digests_of(files: Mapping[str, Path], memory: Path) -> dict[str, str]:
    """The SHA-256 of each file; `memory` is the JSON file that keeps what is known of them."""
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    digests = {name: _digest(path, known) for name, path in files.items()}
    entries = {str(path): [*_state(path), digests[name]] for name, path in files.items()}
    write_whole(memory, lambda file: file.write(json.dumps(entries, indent=1).encode()))
    return digests


def _digest(path: Path, known: Mapping[str, Any]) -> str:
    entry = known.get(str(path))
    if isinstance(entry, list) and entry[:2] == _state(path):
        return str(entry[2])
    return digest_of(path)


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
