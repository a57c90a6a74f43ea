"""What people see while they wait and afterwards: progress and notes on stderr, data on stdout."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from eyespot.types import Progress

SOME_FAILED, GATE_FAILED = 3, 4
SHOWN = 20  # failures that are named on stderr
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they show gpj.exe as exe.jpg

_STREAMS: ContextVar[tuple[TextIO, TextIO] | None] = ContextVar("_STREAMS", default=None)


@contextmanager
def printed_to(out: TextIO, err: TextIO) -> Iterator[None]:
    """What this thread prints in the block goes there, in place of stdout and stderr."""
    token = _STREAMS.set((out, err))
    try:
        yield
    finally:
        _STREAMS.reset(token)


def _stdout() -> TextIO:
    return (_STREAMS.get() or (sys.stdout, sys.stderr))[0]


def sentence_of(error: Exception) -> str:
    """What an error says, with settings named as options of the command line."""
    return str(error.on_line() if hasattr(error, "on_line") else error)


def warn(sentence: str) -> None:
    """A warning or hint, on stderr."""
    with suppress(OSError):  # what was found counts, also where nobody can be told more
        print(f"eyespot: {escaped(sentence)}", file=(_STREAMS.get() or (sys.stdout, sys.stderr))[1])


def warn_all(sentences: Iterable[str]) -> None:
    """A warning for each sentence."""
    for sentence in sentences:
        warn(sentence)


def warn_first(sentences: Sequence[str], rest: Callable[[int], str]) -> None:
    """A warning for each of the first; what `rest` says of the number of the others is one more."""
    warn_all(sentences[:SHOWN])
    if len(sentences) > SHOWN:
        warn(rest(len(sentences) - SHOWN))


def exit_if_failed(failed: object) -> None:
    """Exit code 3 where something failed and the rest is done."""
    if failed:
        import typer

        raise typer.Exit(SOME_FAILED)


def refuse_over_input(out: Path, *inputs: Path | None) -> None:
    """`UsageError` where the output is one of the inputs, which it would replace."""
    from eyespot.types import UsageError

    if out.exists() and any(place and place.exists() and out.samefile(place) for place in inputs):
        raise UsageError(f"{out} is an input of this line, and would be replaced; name another file for the output")


def print_summary(sentence: str) -> None:
    """The closing line of a long verb, for a person at a terminal."""
    if sys.stderr.isatty():
        conclude(sentence)


def conclude(sentence: str) -> None:
    """The closing line of a verb that prints nothing else, on stderr also where that is not a terminal."""
    with suppress(OSError):
        print(escaped(sentence), file=sys.stderr)


def print_line(text: str) -> None:
    """A line for people on stdout, in whatever characters their terminal has."""
    encoding = _stdout().encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=_stdout())


def print_raw(path: str, end: bytes) -> None:
    """A path for programs on stdout, byte for byte as the file system has it."""
    _stdout().buffer.write(os.fsencode(path) + end)


def print_json(value: Any) -> None:
    """One JSON document on stdout, in UTF-8; what is not a finite number is null."""
    text = json.dumps(_finite(value), ensure_ascii=False, indent=2, default=lambda it: it.isoformat(), allow_nan=False)
    # Bytes of a path that are not UTF-8 become \udcXX, as JSON writes them.
    _stdout().buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")


def print_result(value: Any, lines: Iterable[str], json: bool) -> None:
    """The value as JSON, or lines for people."""
    if json:
        print_json(value)
        return
    for line in lines:
        print_line(line)


def escaped(text: str) -> str:
    """The text on one line; what would break it or act on the terminal is spelled out as `\\n` or `\\x1b`."""
    if text.isprintable():
        return text
    parts = []
    for char in text:
        if "\udc80" <= char <= "\udcff":  # a byte of a path that is not UTF-8
            char = f"\\x{ord(char) - 0xDC00:02x}"
        elif unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _TURNING:
            char = char.encode("unicode_escape").decode()
        parts.append(char)
    return "".join(parts)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress_bar(unit: str = "pictures", delay: float = 0.0) -> Iterator[Progress]:
    """A bar with rate and time left on a terminal, shown after `delay` seconds; silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from tqdm import tqdm

    bar: tqdm[Any] = tqdm(unit=f" {unit}", dynamic_ncols=True, delay=delay)

    def tell(what: str, done: int, total: int) -> None:
        bar.set_description(what, refresh=False)
        if bar.total != (total or None) or done < bar.n:  # of something else than before
            bar.reset(total=total or None)
        bar.update(done - bar.n)

    try:
        yield tell
    finally:
        bar.close()
