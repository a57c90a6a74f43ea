"""The command line: each verb calls one room. Heavy imports happen inside the verbs, so that help is instant.

A search that a server answers imports nothing at all that Python has not loaded as it starts.
"""

from __future__ import annotations

import gc
import os
import sys

from eyespot.cli._ask_server import VALUES, answer, search_line

TYPE_CHECKING = False  # `typing` takes as long to import as Python to start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


def __getattr__(name: str) -> Any:
    """`app`, the command line with all verbs, made when somebody wants it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eyespot.cli._verbs import app

    return app


def main(argv: Sequence[str] | None = None) -> None:
    """The `eyespot` command: errors are one sentence on stderr, and the exit code says which kind.

    `argv` are the words after the name of the program; without them those of this process.
    """
    gc.set_threshold(50_000)  # a start makes many objects and frees few
    _open_streams()
    if argv is None and sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        # The locale has Python take names of files as something else, whose bytes no gallery finds
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONUTF8": "1"})
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            if not answer(words):
                if argv is None:
                    _end_by_signals()
                _run(words)
        finally:
            sys.stdout.flush()  # here, where an error can still be reported
    except BrokenPipeError:
        _leave_stdout()
        sys.exit(1)
    except KeyboardInterrupt:  # while a server is at work; verbs end so by themselves
        _leave_stdout()
        sys.exit(130)
    except Exception as error:
        if "--debug" in words or os.environ.get("EYESPOT_DEBUG"):
            import traceback

            traceback.print_exc()
        _explain(error)
    sys.exit(0)


def _run(words: list[str]) -> None:
    """Run a line: a plain search where no model of settings is loaded, or any other, which ends by `SystemExit`."""
    if words[:1] == ["search"] and "eyespot.settings.search" not in sys.modules:
        pairs = zip(["", *words], words, strict=False)
        line = search_line([word for before, word in pairs if word != "--no-server" or before in VALUES])
        if line is not None:
            from eyespot.cli._searching import search_plainly

            if search_plainly(*line):
                return
    from eyespot.cli._verbs import app

    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # or it looks for some in all packages that are installed
    defaults = None
    if os.path.lexists("eyespot.toml"):  # all verbs are loaded to check it
        from eyespot.cli.settings import from_toml

        defaults = from_toml(app)
    app(words, prog_name="eyespot", default_map=defaults)


def _open_streams() -> None:
    """Let the streams that a caller closed, as with `2>&-`, lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 # until the process ends


def _end_by_signals() -> None:
    """Let a closed terminal or `kill` end the process as an error does, which removes its temporary files."""
    import signal

    for one in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(one) == signal.SIG_DFL:  # nohup ignores it
            signal.signal(one, lambda number, _frame: sys.exit(128 + number))


def _explain(error: Exception) -> NoReturn:
    """End with one sentence on what went wrong and the way out."""
    from eyespot.cli.console import sentence_of
    from eyespot.storage.atomic import trouble
    from eyespot.types import EyespotError

    if isinstance(error, EyespotError):
        _fail(sentence_of(error), error.exit_code)
    if isinstance(error, MemoryError):
        _fail("out of memory; close other programs, or use fewer --workers")
    if isinstance(error, OSError):
        if error.filename is None:
            _fail(f"what was found or made cannot be written {trouble(error, other='send it elsewhere')}")
        way_out = trouble(error, other="check that it is there and of the kind that the line needs")
        _fail(f"{os.path.normpath(str(error.filename))} cannot be used {way_out}")
    if type(error).__module__ == "sqlite3":
        _fail(f"a file of the gallery cannot be used {trouble(error, damaged='run eyespot doctor, which says which')}")
    kind = type(error).__name__
    what = " ".join(f"{kind}: {error}".split()) if str(error) else kind
    _fail(f"eyespot stumbled over {what}; run the same line with eyespot --debug … to see where, and report it")


def _fail(sentence: str, code: int = 1) -> NoReturn:
    from eyespot.cli.console import warn

    warn(sentence)
    _leave_stdout()
    sys.exit(code)


def _leave_stdout() -> None:
    """Discard what is still to be written, so that Python does not report it once more as it exits."""
    from contextlib import suppress

    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
