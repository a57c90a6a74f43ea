"""Progress: how long work tells whoever watches it how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much (0: unknown)."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""
