"""Whether the write-ahead log that a killed run left beside a SQLite file is whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def log_damage(path: Path) -> str:
    """What is wrong with the write-ahead log that a killed run left; empty if nothing is, or there is none."""
    log = path.with_name(f"{path.name}-wal")
    data = log.read_bytes() if log.exists() else b""
    if not data:
        return ""
    order, size, salts = "big" if data[3:4] == b"\x83" else "little", int.from_bytes(data[8:12], "big"), data[16:24]
    sums = _sums(data[:24], (0, 0), order)
    if data[24:32] != _packed(sums) or data[:3] != b"\x37\x7f\x06":
        return "the head of its log is damaged"
    frames = range(32, len(data) - size - 23, size + 24)
    for start in frames:
        frame = data[start : start + size + 24]
        if frame[8:16] != salts:  # of an earlier round
            return ""
        sums = _sums(frame[:8] + frame[24:], sums, order)
        if frame[16:24] != _packed(sums):
            # A frame of a commit, here or later, was acknowledged; what ends without one was cut off by a kill
            rest = (data[later : later + 16] for later in frames[frames.index(start) :])
            commits = any(head[8:16] == salts and head[4:8] != bytes(4) for head in rest)
            return "its log is damaged, and what was recorded last is lost" if commits else ""
    return ""


def _sums(data: bytes, start: tuple[int, int], order: Any) -> tuple[int, int]:
    """SQLite's checksum, which goes on from one frame to the next."""
    one, two = start
    words = (
        memoryview(data).cast("I")
        if order == sys.byteorder
        else [int.from_bytes(data[at : at + 4], order) for at in range(0, len(data), 4)]
    )
    for at in range(0, len(words), 2):
        one = (one + words[at] + two) & 0xFFFFFFFF
        two = (two + words[at + 1] + one) & 0xFFFFFFFF
    return one, two


def _packed(sums: tuple[int, int]) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in sums)
