"""QuARI: a hypernetwork that gives every query its own low-rank view of a frozen embedding space.

    adapter = load("quari-checkpoint")            # a folder of config.yml and weights
    (view,) = adapter.adapt(query_vectors)        # q̂ and factors, never the dense matrix
    train(TrainingData(pairs, held_out, test=paired_gain), Config(512), TrainingSettings(), Path("run"))  # [torch]

Xing et al., QuARI: Query Adaptive Retrieval Improvement (NeurIPS 2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eyespot.adapters.quari.card import (
    AdapterCard as AdapterCard,
    FrozenComparison as FrozenComparison,
    PairedTest as PairedTest,
    Significance as Significance,
)
from eyespot.adapters.quari.config import Config as Config
from eyespot.adapters.quari.files import card_in, folder_of, read
from eyespot.adapters.quari.forward import Hypernetwork as Hypernetwork
from eyespot.rooms import lazy
from eyespot.types import AdaptedQuery, Vectors
from eyespot.types.kinds import checked_names

if TYPE_CHECKING:
    from eyespot.adapters.quari.training.data import Pairs as Pairs, TrainingData as TrainingData
    from eyespot.adapters.quari.training.loop import (
        TrainingResult as TrainingResult,
        train as train,
    )  # which needs torch
    from eyespot.adapters.quari.training.settings import TrainingSettings as TrainingSettings
else:  # so that type checkers refuse a name that is not there
    __getattr__, __all__ = lazy(
        __name__,
        {
            "card": "AdapterCard FrozenComparison PairedTest Significance",
            "config": "Config",
            "forward": "Hypernetwork",
            "training.data": "Pairs TrainingData",
            "training.loop": "TrainingResult train",
            "training.settings": "TrainingSettings",
        },
    )
    __all__ += ["Quari", "load"]


@dataclass(frozen=True)
class Quari:
    """A checkpoint as an adapter: `space` is the encoder it was trained on, as its config names it."""

    config: Config
    network: Hypernetwork
    card: AdapterCard | None = None

    def __repr__(self) -> str:
        shown = self.caution or ("has a card of its validation" if self.card else "without a card")
        return f"<QuARI adapter for {self.dim} numbers of {self.space or 'an encoder that nobody names'}; {shown}>"

    @property
    def caution(self) -> str | None:
        """One sentence if it was not shown to be better than the vectors as they are; None of one without a card."""
        return None if self.card is None else self.card.caution

    @property
    def space(self) -> str | None:
        """The encoder whose vectors it takes, if the checkpoint says."""
        return self.config.feature_extractor

    @property
    def dim(self) -> int:
        """The length of the vectors it takes."""
        return self.config.embedding_dim

    def adapt(self, queries: Vectors) -> list[AdaptedQuery]:
        """A view for each unit vector of queries (n, dim)."""
        return self.network.adapt(queries)


def load(place: Path | str) -> Quari:
    """A checkpoint's folder, or `hub:OWNER/NAME`; `UsageError` if it is none."""
    folder = folder_of(place)
    config, weights = read(folder)
    return Quari(config, Hypernetwork(config, weights), card_in(folder))


globals().update(checked_names(globals(), ("Hypernetwork", "load")))
