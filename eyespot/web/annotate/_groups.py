"""Which photos of a query are copies or frames of one burst, for a grid that shows them as one tile."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from eyespot.curate.annotate.annotation_store import Candidate
from eyespot.web.found.snapshot import Snapshot

REMEMBERED = 64  # lists


class ListGroups:
    """The groups of lists as they were last; any number of threads may ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], tuple[int, dict[str, int]]] = OrderedDict()

    def of(self, query: str, listed: Sequence[Candidate], snapshot: Snapshot) -> dict[str, int]:
        """For each photo of a query's list the number of its group; what is in none is left out."""
        key = query, snapshot.version
        with self._lock:
            known, groups = self._known.get(key, (0, {}))
            if known != len(listed):
                # A list only grows at its end
                groups = groups | _numbers([photo.image for photo in listed[known:]], snapshot)
                self._known[key] = len(listed), groups
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return groups


def _numbers(images: Sequence[str], snapshot: Snapshot) -> dict[str, int]:
    numbers = snapshot.groups.numbers
    rows = ((image, snapshot.row_of(image)) for image in images)
    found = {image: int(numbers[row]) for image, row in rows if row is not None}
    return {image: number for image, number in found.items() if number >= 0}


def units(listed: Sequence[Candidate], groups: dict[str, int]) -> list[list[str]]:
    """The photos of a list as they are labelled: groups where their first photo stands, and single photos."""
    found: dict[object, list[str]] = {}
    for photo in listed:
        found.setdefault(groups.get(photo.image, photo.image), []).append(photo.image)
    return list(found.values())
