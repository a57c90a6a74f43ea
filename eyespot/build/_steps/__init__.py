"""A step runner: records → records, each step declared in a recipe, none done twice, nothing lost on the way.

A pipeline is a list of `Step`s. What a step does is an `Each` (one record at a time), a `Whole` (all together) or a
`Table` (all as a file); each record that comes ends as `Kept`, `Dropped` with a reason, or `Failed`. `run` does what
is not finished, `plan` says what that would be.
"""

from eyespot.build._steps.folder import Counts, drops
from eyespot.build._steps.memory import Cost, Origin
from eyespot.build._steps.outcomes import (
    Added,
    Dropped,
    Failed,
    Kept,
    NoAnswer,
    Outcome,
    Record,
    Records,
    Unaccounted,
)
from eyespot.build._steps.planning import Planned, plan
from eyespot.build._steps.recipe import Declared, Makers, Recipe, read_recipe
from eyespot.build._steps.running import Client, Done, Running, run
from eyespot.build._steps.spending import BudgetSpent, Limits, Provenance, Spent, Till
from eyespot.build._steps.step import Context, Each, Prompt, Step, Table, Whole, digest_of

__all__ = [
    "Added",
    "BudgetSpent",
    "Client",
    "Context",
    "Cost",
    "Counts",
    "Declared",
    "Done",
    "Dropped",
    "Each",
    "Failed",
    "Kept",
    "Limits",
    "Makers",
    "NoAnswer",
    "Origin",
    "Outcome",
    "Planned",
    "Prompt",
    "Provenance",
    "Recipe",
    "Record",
    "Records",
    "Running",
    "Spent",
    "Step",
    "Table",
    "Till",
    "Unaccounted",
    "Whole",
    "digest_of",
    "drops",
    "plan",
    "read_recipe",
    "run",
]
