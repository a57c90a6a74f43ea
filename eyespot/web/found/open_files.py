"""The files that a snapshot needs open, counted before the first of them is opened."""

from __future__ import annotations

import math
from shlex import quote

from eyespot.gallery.files import SPARE, let_open
from eyespot.gallery.view import View
from eyespot.kernels.codes import MAPPED
from eyespot.types import EyespotError

NEEDED = (
    2  # of each shard: its vectors and its ids; Arrow closes what it maps, and codes are opened where there is room
)


class TooManyFilesError(EyespotError):
    """A snapshot needs more open files than this process may have."""


def refuse_too_many(view: View) -> None:
    """`TooManyFilesError`, with the limit to set, if the gallery's shards are more than this process may open."""
    shards = len(view.shards)
    if let_open(NEEDED * shards):
        return
    both = 2 * (NEEDED + MAPPED) * shards  # the next snapshot is opened beside this one
    limit = math.ceil((both + 2 * SPARE) / 1024) * 1024
    raise TooManyFilesError(
        f"the gallery's {shards} shards take {NEEDED * shards} open files more, which this program may not have; merge"
        f" them with: eyespot compact -g {quote(str(view.gallery.path))}, or raise the limit with: ulimit -n {limit}"
    )
