"""Celebrity: who or what well-known is shown. Nobody is looked for unless a recipe names this sub-task."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import FINE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "celebrity",
        FINE,
        30,
        "Names whoever is shown, as the given facts name them, and what they do; no name is guessed from a face.",
        ("name", "action", "clothes"),
        opt_in=True,
    )
