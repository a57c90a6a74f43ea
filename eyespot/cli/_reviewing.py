"""Reviewing on a terminal: each open case is shown on stderr, and a letter decides it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from eyespot.cli.console import escaped

if TYPE_CHECKING:
    from eyespot.pipelines.human_review import Case, Queue

KEYS = "a accept, m edit, d drop, s skip, b back, q quit"


class Leave(Exception):
    """The person wants to stop."""


def review(queue: Queue, who: str) -> None:
    """Show what is open, one case after the other, until all are decided or the person leaves.

    Each decision is on the disk before the next case is shown; `b` shows the one before once more.
    """
    cases, at = queue.open(), 0
    while at < len(cases):
        case = cases[at]
        place = f"{at + 1} of {len(cases)}"
        _say(f"\n{place}  {escaped(case.id)}\n  {escaped(case.why)}")
        for picture in case.pictures:
            _say(f"  picture  {escaped(picture)}")
        for name, text in case.texts.items():
            _say(f"  {escaped(name)}: {escaped(text)}")
        try:
            at = max(0, at + _decide(queue, case, who))
        except Leave:
            return


def _decide(queue: Queue, case: Case, who: str) -> int:
    """The person's decision goes to the queue; returns how far to go on: one case, or one back."""
    while True:
        key = _read_answer(f"{KEYS}: ").lower()[:1]
        if key == "q":
            raise Leave
        if key in ("s", "b"):
            return 1 if key == "s" else -1
        if key == "a":
            queue.decide(case, "accept", who)
            return 1
        if key == "d":
            queue.decide(case, "drop", who, note=_read_answer("  why (Enter for nothing): "))
            return 1
        if key == "m" and (texts := _edited_texts(case)):
            queue.decide(case, "mend", who, texts=texts)
            return 1


def _edited_texts(case: Case) -> dict[str, str]:
    """The texts that the person writes anew."""
    if not case.texts:
        _say("  there is no text to edit; accept or drop it")
    lines = {name: _read_answer(f"  {escaped(name)} (Enter leaves it): ") for name in case.texts}
    return {name: text for name, text in lines.items() if text and text != case.texts[name]}


def _read_answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise Leave
    return line.strip()


def _say(text: str) -> None:
    print(text, file=sys.stderr)
