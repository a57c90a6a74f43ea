"""The step `grammar`: Harper, a grammar checker that runs offline, marks or drops captions with errors."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal

from eyespot.pipelines import Context, Drop, Keep, Outcome, Record
from eyespot.rooms import needs

UNGRAMMATICAL = "ungrammatical"
DIALECTS = ("american", "british", "australian", "canadian", "indian")


@dataclass(frozen=True)
class Grammar:
    """Which English, which kinds of error do not count, and whether a caption with an error is marked or dropped."""

    dialect: Literal["american", "british", "australian", "canadian", "indian"] = "american"
    ignore: tuple[str, ...] = ("Capitalization", "Formatting", "Style", "Readability", "WordChoice", "Enhancement")
    at_fault: Literal["mark", "drop"] = "mark"
    version: str = "v0"


class Checker:
    """Finds errors in English sentences; Harper is loaded with the first sentence."""

    def __init__(self, how: Grammar) -> None:
        self._how, self._lock = how, Lock()
        self._linter: Any = None

    def __call__(self, text: str) -> list[str]:
        """The errors, each as "Kind: 'words' (what to write instead)"; `EyespotError` without the extra [recos].

        Harper knows few names, so a capitalised word inside a sentence counts as a name, however it is spelled.
        """
        with self._lock:
            if self._linter is None:
                with needs("the step grammar"):
                    import harper
                self._linter = harper.Linter(DIALECTS.index(self._how.dialect))
            lints = self._linter.lint(text, language="plaintext")
        errors = []
        for lint in lints:
            before = text[: lint.span.start].rstrip(" \"'([")
            inside = before and before[-1] not in ".!?:"
            is_name = lint.lint_kind == "Spelling" and lint.problem_text[:1].isupper() and inside
            if lint.lint_kind not in self._how.ignore and not is_name:
                instead = ", ".join(fix.replacement_text for fix in lint.suggestions[:3] if fix.replacement_text)
                errors.append(f"{lint.lint_kind}: {lint.problem_text!r}{f' ({instead})' if instead else ''}")
        return errors


def checked(record: Record, _context: Context, checker: Checker, how: Grammar) -> Outcome:
    """The caption, with its errors."""
    if record.get("version") != how.version or "text" not in record:
        return Keep(record)
    errors = checker(record["text"])
    if errors and how.at_fault == "drop":
        return Drop(record, UNGRAMMATICAL, "; ".join(errors))
    return Keep({**record, "doubts": [*record.get("doubts", []), *errors]} if errors else record)
