"""`person:NAME`: a person at the terminal, asked picture by picture: y, n, d for doubt (counts as no), q to stop.

Without a name it is who is logged in. Questions go to stderr, so that stdout stays data.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from eyespot.judges._prompt import FreeJudge, described
from eyespot.llms.budget import BudgetSpent
from eyespot.storage.digests import text_digest
from eyespot.types import Answer, Pair, UsageError, Verdict

SPELLING = "person:NAME"
KIND = "person"
OFFLINE = True
NEEDS = "a terminal, and somebody at it"
QUESTION = "Does this picture show what is looked for?"
KEYS = "[y]es, [n]o, [d]oubt, [q]uit, then Enter: "
VERDICTS = {"y": Verdict(1.0, 1), "n": Verdict(0.0, 0), "d": Verdict(0.0, 0, reason="doubt", confidence=0.5)}
Ask: TypeAlias = Callable[[str], str]  # the text on the screen to the typed line; "" at the end of the input


class Stopped(BudgetSpent):
    """The person stopped: as with a spent budget, given answers count and the rest waits."""


@dataclass(frozen=True)
class PersonJudge(FreeJudge):
    """A person who looks at the pictures."""

    name: str
    prompt: str
    ask: Ask

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """An answer for each pair in its order; `Stopped` once the person types q or the input ends."""
        for number, pair in enumerate(pairs, 1):
            place = f"{number} of {len(pairs)}"
            about = f'{place}: "{_plain(described(pair.query))}"\n  {_plain(str(pair.path))}\n'
            typed = self.ask(f"{about}{QUESTION} {KEYS}")
            while typed and typed.strip().lower()[:1] not in {*VERDICTS, "q"}:
                typed = self.ask(f"please type one of {KEYS}")
            key = typed.strip().lower()[:1] or "q"
            if key == "q":
                raise Stopped(f"{self.name} stopped; run the same line again to go on with the rest")
            yield Answer(pair, VERDICTS[key])


def at_terminal(shown: str) -> str:
    """What is typed below what is shown, "" by Ctrl-C; `UsageError` where there is no terminal to show it on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("a person is asked on a terminal, or on the page (eyespot serve); or choose another judge")
    typed = ""
    with suppress(KeyboardInterrupt):  # who leaves by Ctrl-C loses nothing, even while the question is being written
        sys.stderr.write(shown)
        sys.stderr.flush()
        typed = sys.stdin.readline()
    if not typed:
        sys.stderr.write("\n")
    return typed


def load(rest: str = "", *, ask: Ask = at_terminal, **_unused: Any) -> PersonJudge:
    """The person of this name; `ask` shows a question and returns what the person types."""
    name = rest.strip()
    if not name:
        with suppress(OSError, KeyError, ImportError):
            name = getpass.getuser()
    if not name:
        raise UsageError("your name is not known here; add it, as in person:ada")
    return PersonJudge(f"person:{name}", text_digest(QUESTION), ask)


def _plain(text: str) -> str:
    """Nothing in a file's name may act on the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
