"""Location: where things stand to one another."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "location",
        COARSE,
        50,
        "Says where things stand to one another: on, under, beside, in front of, behind, left or right of.",
        ("location", "object"),
        (
            "one thing on top of another",
            "beside each other",
            "under a roof",
            "in front of a building",
            "behind a fence",
        ),
    )
