"""Digests that stand on disk: of a file, of texts, and of a value of JSON.

Their bytes never change: by them galleries, ledgers and data sets know what is theirs.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

BLAKE2B = partial(hashlib.blake2b, digest_size=16)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_blake2b(path: Path) -> str:
    """The BLAKE2b of a file, faster than SHA-256, in 32 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, BLAKE2B).hexdigest()


def text_digest(*texts: str) -> str:
    """Sixteen hex digits over texts in their order, also of file names that are not UTF-8."""
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def json_sha256(value: Any) -> str:
    """The SHA-256 of a value of JSON, whatever the order of its keys, in 64 hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
