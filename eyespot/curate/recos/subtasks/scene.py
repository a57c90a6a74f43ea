"""Scene: what kind of place it is."""

from __future__ import annotations

from eyespot.curate.recos.subtasks import COARSE, Subtask


def load() -> Subtask:
    """The sub-task."""
    return Subtask(
        "scene",
        COARSE,
        50,
        "Says what kind of place is shown: indoors or out, which landscape, street or room, which weather.",
        ("scene", "weather", "time of day"),
        ("a beach", "a street", "a forest", "a kitchen", "a mountain", "snow", "a field", "a city"),
    )
