"""Query → its own view of the space: one file or folder for each way of adapting a search."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.adapters._finetune import FineTuneData, FineTuneRecipe, finetune, steps

__all__ = ["FineTuneData", "FineTuneRecipe", "finetune", "steps"]

if not TYPE_CHECKING:  # so that type checkers refuse a name that is not there
    __getattr__ = lazy(__name__, dict.fromkeys(__all__, "_finetune"))
