"""Query → its own view of the space: one file or folder for each way of adapting a search."""

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.adapters._finetune import (
        FineTuneData as FineTuneData,
        FineTuneRecipe as FineTuneRecipe,
        finetune as finetune,
        steps as steps,
    )
else:  # so that type checkers refuse a name that is not there
    __getattr__, __all__ = lazy(
        __name__,
        {
            "_finetune": "FineTuneData FineTuneRecipe finetune steps",
        },
    )
