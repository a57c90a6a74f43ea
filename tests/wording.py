"""The sentences that users read when something is refused, each once, in `wording.json`.

Tests assert the class of an error, or the exit code of a command; the sentence is compared with the snapshot. Who
changes a sentence runs `make wording` and reads the difference.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

TESTS = Path(__file__).resolve().parent
SNAPSHOT = TESTS / "wording.json"
REWRITE = "EYESPOT_TESTS_REWRITE_WORDING"  # set by `make wording`
_TEMPORARY = re.compile(r"[^\s'\"(]*?/pytest-of-[^/]+/pytest-\d+/(?:popen-gw\d+/)?[^/\s'\"]+?\d+(?=\W|$)")
# what others say of the cause, and say otherwise in their next version
_THEIRS = re.compile(
    r"(?<=fit the data: ).+?(?=; text goes)|(?<=filter cannot be read: ).+?(?=; text goes)"
    r"|(?<=\()(?:lance error|Expecting|Expected '|'utf-8' codec|Parquet file|syntax error|\[Errno).*(?=\))"
)
_counts: dict[str, int] = {}  # how many sentences each test has checked so far


@contextmanager
def raises(kind: type[BaseException]) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """As `pytest.raises`, for exactly this class; its sentence is the one of the snapshot."""
    with pytest.raises(kind) as caught:
        yield caught
    assert type(caught.value) is kind, f"{type(caught.value).__name__}: {caught.value}"
    check_wording(str(caught.value))


def check_wording(sentence: str) -> None:
    """Compare the next sentence of the running test with the snapshot."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    at = _counts.get(test, 0)
    _counts[test] = at + 1
    key, found = f"{test} {at}" if at else test, general(sentence)
    if os.environ.get(REWRITE):
        _write(key, found)
    else:
        assert found == _read().get(key), f"not the sentence of wording.json under {key}; see `make wording`"


def start_over(test: str) -> None:
    """Forget what a test has checked: it begins (again)."""
    _counts.pop(test, None)


def stale() -> list[str]:
    """The keys of tests that are no more."""
    return [key for key in _read() if not _is_there(key)]


def general(sentence: str) -> str:
    """The sentence without what differs from run to run: temporary folders, this checkout, ports, reasons of others."""
    places = {sys.executable: "PYTHON", str(TESTS.parent): "CHECKOUT", f"{Path.home()}/.": "HOME/."}
    sentence = _THEIRS.sub("REASON", _TEMPORARY.sub("TMP", sentence))
    for place, name in places.items():
        sentence = sentence.replace(place, name)
    return re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1:PORT", sentence)


def _read() -> dict[str, str]:
    found: dict[str, str] = json.loads(SNAPSHOT.read_text(encoding="utf-8")) if SNAPSHOT.exists() else {}
    return found


def _write(key: str, sentence: str) -> None:
    with FileLock(Path(tempfile.gettempdir()) / "eyespot-wording.lock"):
        held = {name: text for name, text in _read().items() if _is_there(name)} | {key: sentence}
        text = json.dumps(dict(sorted(held.items())), indent=0, ensure_ascii=False)
        SNAPSHOT.write_text(text + "\n", encoding="utf-8")


def _is_there(key: str) -> bool:
    file, _, rest = key.partition("::")
    path = TESTS.parent / file
    name = re.split(r"[\[ ]", rest)[0]
    return path.exists() and name in _functions(path)


def _functions(path: Path) -> set[str]:
    stamp = path.stat().st_mtime_ns
    if _parsed.get(path, (0, set()))[0] != stamp:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        _parsed[path] = stamp, {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return _parsed[path][1]


_parsed: dict[Path, tuple[int, set[str]]] = {}
