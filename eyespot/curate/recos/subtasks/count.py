"""Count: how many there are."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "count",
        COARSE,
        50,
        "Says how many of something can be counted in the picture.",
        ("count",),
        ("two of them", "three of them", "four of them", "a pair", "a group of five"),
    )
