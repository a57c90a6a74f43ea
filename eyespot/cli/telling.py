"""What people see while they wait and afterwards: progress and notes on stderr, data on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Progress


def note(sentence: str) -> None:
    """A warning or hint, on stderr."""
    print(f"eyespot: {sentence}", file=sys.stderr)


def summarise(sentence: str) -> None:
    """The closing line of a long verb, for a person at a terminal."""
    if sys.stderr.isatty():
        print(sentence, file=sys.stderr)


def as_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, date | datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar with rate and time left on a terminal; silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from tqdm import tqdm

    bar: tqdm[Any] = tqdm(unit=" pictures", dynamic_ncols=True)

    def tell(what: str, done: int, total: int) -> None:
        if bar.desc != f"{what}: ":
            bar.set_description(what, refresh=False)
            bar.reset(total=total or None)
        bar.update(done - bar.n)

    try:
        yield tell
    finally:
        bar.close()
