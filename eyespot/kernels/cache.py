"""Where compiled kernels are kept: whoever compiles some calls this before numba is imported."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_ROOMS = ("kernels", "metrics", "runs")  # that compile


def keep_compiled_kernels() -> None:
    """Let numba keep kernels in a folder named by all their sources: beside them, or in the user's cache.

    By itself numba compiles a kernel anew when its own file has changed, not when that of a function it calls has:
    after an upgrade it would go on with parts of the old one. Where no folder can be written, kernels last as long as
    the process. A folder that `NUMBA_CACHE_DIR` names is taken as it is.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    own = _PACKAGE / "kernels"
    places = {own: own / "__pycache__", there: cache / "eyespot"}
    usable = next((inner for place, inner in places.items() if os.access(place, os.W_OK)), None)
    folder = str((usable or Path(tempfile.mkdtemp(prefix="eyespot-numba-"))) / f"numba-{_digest()}")
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # another library has loaded it, which read the setting then
        sys.modules["numba"].config.CACHE_DIR = folder


def _digest() -> str:
    """That of every file with something to compile."""
    whole = hashlib.blake2b(digest_size=8)
    for file in sorted(file for room in _ROOMS for file in (_PACKAGE / room).glob("*.py")):
        if b"numba" in (text := file.read_bytes()):
            whole.update(text)
    return whole.hexdigest()
