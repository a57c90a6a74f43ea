"""`person:NAME`: a person at the terminal, asked picture by picture: y, n, d for doubt (counts as no), q to stop.

Without a name it is who is logged in. Questions go to stderr, so that stdout stays data.
"""

from __future__ import annotations

import getpass
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from eyespot.judges._wording import described
from eyespot.llms.budget import BudgetSpent
from eyespot.types import Answer, AnswerStream, Pair, SequentialAnswers, UsageError, Verdict

SPELLING = "person:NAME"
KIND = "person"
OFFLINE = True
NEEDS = "a terminal, and somebody at it"
QUESTION = "Does this picture show what is looked for?"
KEYS = "[y]es, [n]o, [d]oubt, [q]uit: "
VERDICTS = {
    "y": Verdict(1.0, 1),
    "n": Verdict(0.0, 0),
    "d": Verdict(0.0, 0, reason="doubt", confidence=0.5),
}
Ask: TypeAlias = Callable[[str], str]  # what is shown to what is typed; "" where nobody will type any more


class Stopped(BudgetSpent):
    """The person stopped: as with a spent budget, given answers count and the rest waits."""


@dataclass(frozen=True)
class PersonJudge:
    """A person who looks at the pictures."""

    name: str
    prompt: str
    ask: Ask

    @property
    def fallbacks(self) -> Mapping[str, str]:
        """None: every answer is a key."""
        return {}

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def language_model(self) -> None:
        """None: a person answers."""

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """An answer for each pair in its order; `Stopped` once the person types q or the input ends."""
        return SequentialAnswers(self._answers(pairs))

    def _answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
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
    """What is typed below what is shown; `UsageError` where there is no terminal to show it on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("a person can only be asked on a terminal; run this line in one, or choose another judge")
    sys.stderr.write(shown)
    sys.stderr.flush()
    return sys.stdin.readline()


def load(rest: str = "", *, ask: Ask = at_terminal, **_unused: Any) -> PersonJudge:
    """The person of this name; `ask` shows a question and gives what was typed."""
    return PersonJudge(
        f"person:{rest.strip() or _logged_in()}", hashlib.sha256(QUESTION.encode()).hexdigest()[:16], ask
    )


def _logged_in() -> str:
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    raise UsageError("nobody knows who you are here; say it, as in person:ada")


def _plain(text: str) -> str:
    """Nothing in a file's name may act on the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
