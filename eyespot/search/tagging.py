"""Zero-shot labels: each picture gets the label that its vector is nearest to, or, where people judged, that is likely.

Labels compete: a picture bears the one with the highest cosine, and none where one of `others` is higher. A label with
a calibration (people's verdicts spread over its ranking) is borne by the pictures that are probably relevant, and by no
picture beyond the ranks that the verdicts speak of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.items_table import read_items
from eyespot.search.calibrated import Calibrated
from eyespot.search.chain import chain_of
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.settings.search import RankingSettings
from eyespot.types import EyespotError, Mask, Query, UsageError

DEPTHS = (1000, 300, 100, 30)  # hits over which verdicts are spread, on the page and at the terminal


@dataclass(frozen=True, slots=True)
class Tag:
    """A picture of the gallery by its row and id, with its label; `probability` is None for one without calibration."""

    row: int
    id: str
    label: str
    score: float
    probability: float | None


@dataclass(frozen=True)
class LabelSet:
    """The labels that compete, and those whose pictures get none.

    `probabilities`: of calibrated labels, how probable it is that a picture (by id) bears it; from `likely` on it does.
    """

    names: Sequence[str]
    others: Sequence[str] = ()
    probabilities: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    likely: float = 0.5

    def chosen(self, id: str, scores: NDArray[np.float32]) -> tuple[str, float | None] | None:
        """A picture's label and its probability by its cosines (names + others,); None for none of them."""
        probable = [(self.probabilities[name].get(id, 0.0), name) for name in self.names if name in self.probabilities]
        if probable and max(probable)[0] >= self.likely:
            probability, name = max(probable)
            return name, probability
        nearest = int(np.argmax(scores))
        if nearest >= len(self.names) or self.names[nearest] in self.probabilities:
            return None
        return self.names[nearest], None


def tags(collection: Collection, labels: LabelSet, allowed: Mask | None = None) -> Iterator[Tag]:
    """The label of each picture that gets one, in the order of the gallery.

    Raises `UsageError` without labels and for one that is named twice.
    """
    names = [*labels.names, *labels.others]
    if not labels.names or len(set(names)) < len(names):
        raise UsageError('name each label once, as in: eyespot tag "a heron, a penguin, a duck"')
    view = collection.view
    texts = embed([Query.words(name) for name in names], collection.encoder)  # (labels, dim)
    wanted = view.live if allowed is None else view.live & allowed
    for start, shard, block in zip(view.starts.tolist(), view.shards, view.blocks, strict=False):
        rows = np.flatnonzero(wanted[start : start + len(block)])
        if not len(rows):
            continue
        ids: list[str] = read_items(shard, ["id"])["id"].to_pylist()  # type: ignore[assignment]
        vectors = np.asarray(block[rows], np.float32)  # (rows, dim)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        for row, cosines in zip(rows.tolist(), (vectors / lengths) @ texts.T, strict=True):
            chosen = labels.chosen(ids[row], cosines)
            if chosen is not None:
                name, probability = chosen
                yield Tag(start + row, ids[row], name, float(cosines[names.index(name)]), probability)


def probabilities_by(stage: JudgeRerank, collection: Collection, label: str) -> dict[str, float] | None:
    """How probable it is that a picture bears a label, by id, from a person's verdicts that are in the ledger.

    None where no verdicts are spread over the first hits as a calibration plans them: `search --calibrate` over
    photos, the page over the best of each group of copies or frames, whose others are as probable.
    """
    query, groups = Query.words(label), Groups(collection.view)
    for grouped, depth in product((False, True) if (groups.numbers >= 0).any() else (False,), DEPTHS):
        chain = chain_of(collection, RankingSettings(by="both"), k=depth, grouped=grouped)
        (run,) = collection.answers([query], chain)
        calibrated = Calibrated(replace(stage, depth=depth))
        if len(np.setdiff1d(calibrated.first_round(query, run).ranks, calibrated.ranks_seen(query, run))):
            continue
        with suppress(EyespotError):
            found = calibrated(query, run).probability
            if not grouped:
                return found
            numbers = groups.numbers[collection.view.rows_of(list(found))].tolist()
            of_group = dict(zip(numbers, found.values(), strict=True))
            others = np.flatnonzero((groups.numbers >= 0) & np.isin(groups.numbers, list(of_group))).tolist()
            ids = [str(facts["id"]) for facts in collection.view.facts(others)]
            return {id: of_group[int(groups.numbers[row])] for id, row in zip(ids, others, strict=True)} | found
    return None
