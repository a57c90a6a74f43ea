"""Colour: which colour something has."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "colour",
        COARSE,
        50,
        "Names the colour of something in the picture; other pictures show the same thing in another colour.",
        ("colour",),
        (
            "something red",
            "something blue",
            "something green",
            "something yellow",
            "something white",
            "something black",
        ),
    )
