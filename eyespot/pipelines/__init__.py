"""A step runner: records go from step to step, a recipe declares the steps, and nothing is done or paid for twice.

A pipeline is a list of `Step`s. The work of a step is a `MapStep` (one record at a time, several at once), a
`BatchStep` (all records together) or a `SqlStep` (all records as a file). Each record that comes ends as `Keep`, as
`Drop` with a reason, or as `Failed`; a new one is `Added`. `run` does what is not finished, `plan` says what that would
be, and `read_recipe` reads the steps, models and budget from a TOML file.
"""

from eyespot.llms.budget import BudgetSpent, CostLimits
from eyespot.pipelines.outcomes import Added, Drop, Failed, Keep, NoAnswer, Outcome, Record, Records, Unaccounted
from eyespot.pipelines.recipe import Declared, Recipe, read_recipe
from eyespot.pipelines.runner import Client, PlannedStep, RunOptions, StepResult, plan, run
from eyespot.pipelines.step import BatchStep, CallMeter, Context, MapStep, Prompt, SqlStep, Step, digest_of
from eyespot.pipelines.step_folder import drops
from eyespot.pipelines.work_db import Origin, Provenance
from eyespot.types import Spent
from eyespot.types.kinds import checked_names

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
    "StepResult",
    "Unaccounted",
    "digest_of",
    "drops",
    "plan",
    "read_recipe",
    "run",
]

globals().update(checked_names(globals(), __all__))
