"""Lists of images that a benchmark ranks beside its positives: five million names, or a hundred."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from weakref import ref

from eyespot.gallery.view import View
from eyespot.search.matching import ListedRows, listed_rows, stems_of
from eyespot.types import UsageError


@dataclass(frozen=True, eq=False)
class ImageList:
    """Names of images, read anew from their file by `names`; `title` is what people call the set."""

    title: str
    names: Callable[[], Iterator[str]]
    _known: dict[str | None, tuple[ref[View], ListedRows]] = field(default_factory=dict, repr=False)

    @cached_property
    def count(self) -> int:
        """How many images it names."""
        return sum(len(texts) for texts in stems_of(self.names()))

    def rows(self, view: View, column: str | None, lacks: bool = False) -> ListedRows:
        """The rows of a gallery that it names; read once for every system that searches the same view.

        `UsageError` if the gallery lacks some, unless `lacks` allows that, if it has none, and for a list of nothing.
        """
        known = self._known.get(column)
        if known is None or known[0]() is not view:
            known = self._known[column] = (ref(view), listed_rows(view, self.names(), column))
        found = known[1]
        if not found.total:
            raise UsageError(f"the list of {self.title} names no image; eyespot eval --check says where to get it")
        if found.there < found.total and not (lacks and found.there):
            raise UsageError(
                f"{self.sentence(found)}; name the column that holds their ids with --match, index the rest, or go on "
                "without them with --allow-missing"
            )
        return found

    def sentence(self, found: ListedRows) -> str:
        """How many of its images a gallery lacks."""
        lacking = f"{found.total - found.there:,} of {found.total:,} images of {self.title}"
        return f"{lacking} are not in the gallery (such as {found.lacking!r})"

    def outside(self, images: Iterable[str]) -> int:
        """How many of these images it does not name."""
        left = {text for texts in stems_of(images) for text in texts.to_pylist()}
        for texts in stems_of(self.names()) if left else ():
            left.difference_update(texts.to_pylist())
            if not left:
                break
        return len(left)
