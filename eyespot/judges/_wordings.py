"""Prompts of judges by name: eyespot's own, a TOML file of the user's, or those of INQUIRE's released code."""

from __future__ import annotations

from pathlib import Path

from eyespot.judges._prompt import PLAIN, QUERY, JudgePrompt
from eyespot.judges._released import released_prompt
from eyespot.storage.toml import toml_of
from eyespot.types import UsageError

KEYS = ("name", "system", "question", "yes", "no")
WORDINGS = {PLAIN.name: PLAIN}
RELEASED = "inquire"  # inquire:CLONE are the prompts of INQUIRE's released code


def wording(named: str, judge: str = "") -> JudgePrompt:
    """One of ours by its name, or the one in a TOML file with the keys system, question, yes and no.

    `inquire:CLONE` is what INQUIRE's released code, in a clone of it, asks the model of this `judge`. Raises
    `UsageError` where it has no prompt for that model.

    Raises `UsageError` for a name that is none of ours and no file, and for keys that no wording has.
    """
    if named in WORDINGS:
        return WORDINGS[named]
    name, _, clone = named.partition(":")
    if name == RELEASED:
        if not clone:
            raise UsageError(
                "write inquire:CLONE with a clone of inquire-benchmark/INQUIRE, whose prompts are read; the wording "
                f"that was called inquire is now called {PLAIN.name}"
            )
        return released_prompt(Path(clone), judge.partition(":")[2].partition("@")[0])
    path = Path(named)
    if not path.is_file():
        raise UsageError(f"no wording {named!r}; name a TOML file, inquire:CLONE or one of: {', '.join(WORDINGS)}")
    found = toml_of(path)
    for key, value in found.items():
        if key not in KEYS or not isinstance(value, str):
            raise UsageError(f"{path}: {key} is no text of a wording; it has the keys {', '.join(KEYS)}")
    if "question" not in found:
        raise UsageError(f"{path} has no question; write one that holds {QUERY}")
    return JudgePrompt(**{"name": path.stem, "system": "", **found})
