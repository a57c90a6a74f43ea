"""The step `grammar`: Harper, a grammar checker that runs offline, looks at each caption; what it finds is doubted."""

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
    """Which English, which kinds of fault do not count, and whether what has one is marked for a person or dropped."""

    dialect: Literal["american", "british", "australian", "canadian", "indian"] = "american"
    ignore: tuple[str, ...] = ("Capitalization", "Formatting", "Style", "Readability", "WordChoice", "Enhancement")
    at_fault: Literal["mark", "drop"] = "mark"
    version: str = "v0"


class Checker:
    """Finds faults in English sentences; loaded when the first is checked."""

    def __init__(self, how: Grammar) -> None:
        self._how, self._lock = how, Lock()
        self._linter: Any = None

    def __call__(self, text: str) -> list[str]:
        """What is wrong, each as "Kind: 'words' (what to write instead)"; `EyespotError` without the extra [recos].

        Harper knows few names: a word of a sentence that begins with a capital is one, however it is spelled.
        """
        with self._lock:
            self._linter = self._linter or _loaded(self._how.dialect)
            found = self._linter.lint(text, language="plaintext")
        error_sentences: list[str] = []
        for error_sentences_one in (one for one in found if not _is_name(one, text)):
            if error_sentences_one.lint_kind not in self._how.ignore:
                instead = ", ".join(
                    s.replacement_text for s in error_sentences_one.suggestions[:3] if s.replacement_text
                )
                error_sentences.append(
                    f"{error_sentences_one.lint_kind}: "
                    f"{error_sentences_one.problem_text!r}{f' ({instead})' if instead else ''}"
                )
        return error_sentences


def checked(record: Record, _context: Context, checker: Checker, how: Grammar) -> Outcome:
    """The caption, with what is wrong in it."""
    if record.get("version") != how.version or "text" not in record:
        return Keep(record)
    faults = checker(record["text"])
    if faults and how.at_fault == "drop":
        return Drop(record, UNGRAMMATICAL, "; ".join(faults))
    return Keep({**record, "doubts": [*record.get("doubts", []), *faults]} if faults else record)


def _loaded(dialect: str) -> Any:
    with needs("the step grammar"):
        import harper
    return harper.Linter(DIALECTS.index(dialect))


def _is_name(found: Any, text: str) -> bool:
    before = text[: found.span.start].rstrip(" \"'([")
    first = not before or before[-1] in ".!?:"
    return bool(found.lint_kind == "Spelling" and found.problem_text[:1].isupper() and not first)
