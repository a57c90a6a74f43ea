"""Digests of the files that a pipeline reads: large ones are not read again while size and time stay the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eyespot.pipelines.step import digest_of
from eyespot.storage.atomic import write_whole


def digests_of(files: Mapping[str, Path], memory: Path) -> dict[str, str]:
    """The SHA-256 of each file; `memory` is the JSON file that keeps what is known of them."""
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    digests: dict[str, str] = {}
    entries: dict[str, list[int | str]] = {}
    for name, path in files.items():
        status, entry = path.stat(), known.get(str(path))
        state = [status.st_size, status.st_mtime_ns]
        digests[name] = str(entry[2]) if isinstance(entry, list) and entry[:2] == state else digest_of(path)
        entries[str(path)] = [*state, digests[name]]
    write_whole(memory, lambda file: file.write(json.dumps(entries, indent=1).encode()))
    return digests
