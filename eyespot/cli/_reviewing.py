"""Reviewing on a terminal: each open case is shown on stderr, and a letter decides it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from eyespot.cli.console import conclude, escaped

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
        print(f"\n{at + 1} of {len(cases)}  {escaped(case.id)}\n  {escaped(case.why)}", file=sys.stderr)
        for picture in case.pictures:
            conclude(f"  picture  {picture}")
        for name, text in case.texts.items():
            conclude(f"  {name}: {text}")
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
        if key in ("a", "d"):
            why = _read_answer("  why (Enter for nothing): ") if key == "d" else ""
            queue.decide(case, "drop" if key == "d" else "accept", who, note=why)
            return 1
        if key == "m":
            if not case.texts:
                conclude("  there is no text to edit; accept or drop it")
            lines = {name: _read_answer(f"  {escaped(name)} (Enter leaves it): ") for name in case.texts}
            texts = {name: text for name, text in lines.items() if text and text != case.texts[name]}
            if texts:
                queue.decide(case, "mend", who, texts=texts)
                return 1


def _read_answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise Leave
    return line.strip()
