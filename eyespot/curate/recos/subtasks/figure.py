"""Figure: people by what can be seen of them, never by name."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "figure",
        COARSE,
        50,
        "Describes a person by what can be seen: age, clothes, posture; never who it is.",
        ("clothes", "age", "posture", "count"),
        ("a man", "a woman", "a child", "a person standing", "people sitting"),
    )
