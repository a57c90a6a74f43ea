"""Action: what is being done."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "action",
        COARSE,
        50,
        "Says what somebody or something is doing.",
        ("action", "object"),
        ("running", "jumping", "sitting", "eating", "swimming", "playing"),
    )
