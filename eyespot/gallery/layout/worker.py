"""Makes a map in a process of its own, which tells how far it is in lines of JSON: a server stays as quick as it is.

Run as `python -m eyespot.gallery.layout.worker GALLERY SPACE compute|place`.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress

from eyespot.gallery.layout.stored import extend_layout, make_layout, read_layout
from eyespot.gallery.view import Gallery
from eyespot.types import EyespotError


def main(gallery: str, stem: str, work: str) -> None:
    """Compute the map of a space anew, or place what is new; an error is the last line."""

    def tell(what: str, done: int, total: int) -> None:
        sys.stdout.write(json.dumps({"what": what, "done": done, "total": total}) + "\n")
        sys.stdout.flush()

    with suppress(BrokenPipeError):  # nobody waits for it any more
        try:
            view = Gallery(gallery).view(stem)
            known = read_layout(view) if work == "place" else None
            if known is None:
                make_layout(view, progress=tell)
            else:
                extend_layout(view, known, tell)
        except EyespotError as error:
            sys.stdout.write(json.dumps({"problem": str(error)}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
