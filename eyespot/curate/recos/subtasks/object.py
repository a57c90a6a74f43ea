"""Object: what a thing is."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "object",
        COARSE,
        50,
        "Names an object and what tells it from others of its kind.",
        ("object", "material", "part"),
        ("a tool", "a vehicle", "a machine", "furniture", "an animal", "a household object"),
    )
