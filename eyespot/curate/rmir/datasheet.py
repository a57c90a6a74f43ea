"""What the pipeline itself can answer of a datasheet; a recipe's own answers go before these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eyespot.curate.rmir.files import COLUMNS
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.curate.rmir.split import TEST, TRAIN
from eyespot.pipelines.data_card import joined


def answers(made: FinishedSteps, given: Mapping[str, Any]) -> dict[str, Any]:
    """Answers by section and question; what is given for another section is handed on, to be refused there."""
    found, split = made.pipe.settings("candidates"), made.pipe.settings("split")
    depth = f"the first {found.images} of each index of pictures and the first {found.texts} by description"
    composition = {
        "items": "A record is a query: a picture, a question about it (functional, temporal or causal), and the photos "
        f"of the pool that answer it. The pool of {len(made.pool):,} photos is shared by all queries.",
        "fields": ", ".join(COLUMNS["queries"]) + ".",
        "labels": f"Targets are photos that the panel took for answers: {_model_names(made, 'judged')}.",
        "missing": f"Only {depth} were judged; a photo of the pool beyond them may answer a query and count as wrong.",
        "relations": "A picture may ask one query of each kind, and a photo may answer several.",
        "splits": f"{TEST}: reliability over {split.threshold:g}, {len(made.in_split(TEST)):,} queries to report on; "
        f"{TRAIN}: the others, {len(made.in_split(TRAIN)):,} to train with.",
        "errors": "The tables count what inputs, targets, pool and splits share, and what half of a query finds alone.",
        "elsewhere": "The photos, where mteb/ does not hold them: images are named by the digest of their file.",
    }
    seeds, inputs = made.of("seeds").counts, made.of("inputs").counts
    collection = {
        "means": f"Questions by {_model_names(made, 'questions')}; checked by {_model_names(made, 'checked')}; "
        f"candidates by {', '.join(made.pipe.settings('candidates').named(made.pipe.world))}; "
        f"judged by {_model_names(made, 'judged')}.",
        "sampling": f"Of {seeds.added:,} photos {seeds.kept:,} were drawn, from each cluster of alike ones a few; "
        f"{inputs.kept:,} of these were asked about.",
    }
    own = {"composition": composition, "collection": collection, "uses": _uses()}
    return joined(own, given)


def _uses() -> dict[str, str]:
    return {
        "caution": "Questions, rules and verdicts are those of models; what a person confirmed is in the audit alone.",
        "unfit": "To tell how people reason, or what is true of those who can be seen in the pictures.",
    }


def _model_names(made: FinishedSteps, step: str) -> str:
    return ", ".join(f"{name} ({model.get('use')})" for name, model in made.of(step).step.models.items())
