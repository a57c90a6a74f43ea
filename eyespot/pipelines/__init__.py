"""A step runner: records → records, each step declared in a recipe, none done twice, nothing lost on the way.

A pipeline is a list of `Step`s. What a step does is an `Each` (one record at a time), a `Whole` (all together) or a
`Table` (all as a file); each record that comes ends as `Kept`, `Dropped` with a reason, or `Failed`. `run` does what
is not finished, `plan` says what that would be.
"""

from eyespot.pipelines.budget_limits import BudgetSpent, CallMeter, CostLimits, Provenance, Spent
from eyespot.pipelines.dry_run import PlannedStep, plan
from eyespot.pipelines.outcomes import (
    Added,
    Drop,
    Failed,
    Keep,
    NoAnswer,
    Outcome,
    Record,
    Records,
    Unaccounted,
)
from eyespot.pipelines.recipe import Declared, Makers, Recipe, read_recipe
from eyespot.pipelines.running import Client, RunOptions, StepResult, run
from eyespot.pipelines.step import BatchStep, Context, MapStep, Prompt, SqlStep, Step, digest_of
from eyespot.pipelines.step_folder import StepCounts, drops
from eyespot.pipelines.work_db import Origin, StepCost

__all__ = [
    "Added",
    "BatchStep",
    "BudgetSpent",
    "CallMeter",
    "Client",
    "Context",
    "CostLimits",
    "Declared",
    "Drop",
    "Failed",
    "Keep",
    "Makers",
    "MapStep",
    "NoAnswer",
    "Origin",
    "Outcome",
    "PlannedStep",
    "Prompt",
    "Provenance",
    "Recipe",
    "Record",
    "Records",
    "RunOptions",
    "Spent",
    "SqlStep",
    "Step",
    "StepCost",
    "StepCounts",
    "StepResult",
    "Unaccounted",
    "digest_of",
    "drops",
    "plan",
    "read_recipe",
    "run",
]
