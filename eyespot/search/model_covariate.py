"""A model's answers in the ledger, beside a person's verdicts on the same ranking: they may narrow the count.

made = with_covariate(Calibrated(stage, 30)(query, run), query, stage.ledger)
made.count, made.covariate  # 8 to 12; quick's 100 answers narrowed it from 6 to 19

No model is asked. The one with the most answers on the hits that the count covers is taken; a model that made the
ranking itself is not, because its answers repeat the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.ledger.judgements import PERSON, Judgements, query_digest
from eyespot.search.calibrated import Calibration, Covariate
from eyespot.search.calibration import assisted
from eyespot.search.judge_rerank import points
from eyespot.types import Query, Run

Reals = NDArray[np.float64]

OWN_ENCODER = "own_encoder"  # the only model that answered is the one that made the ranking


def with_covariate(made: Calibration, query: Query, ledger: Judgements) -> Calibration:
    """The calibration by a person's verdicts, narrowed by a model's answers where they help; else as it was.

    `covariate` says which model it was and whether it helped; it is None where no model answered, and where the
    verdicts are a model's own.
    """
    if not made.judge.startswith(PERSON):
        return made
    digest, hits = query_digest(query), made.run[query.id][: made.curve.hits]
    ids = [made.run.facts.get(hit.image, {}).get("id", "") for hit in hits]
    models = [voice for voice in ledger.voices(digest) if not voice.judge.startswith(PERSON)]
    answers: dict[str, Reals] = {}  # of each model, the fullest under one prompt
    for voice in models:
        judgements = ledger.known(digest, ids, voice.judge, voice.prompt)
        verdicts = (judgements[id].verdict if id in judgements else None for id in ids)
        given = np.array([np.nan if verdict is None else min(1.0, points(verdict)) for verdict in verdicts])  # (hits,)
        if _answered(given) > _answered(answers.get(voice.judge, np.zeros(0))):
            answers[voice.judge] = given
    ranked = sorted(answers, key=lambda judge: (made_ranking(judge, made.run), -_answered(answers[judge])))
    if not ranked:
        return made
    judge = ranked[0]
    if made_ranking(judge, made.run):
        return replace(made, covariate=Covariate(judge, _answered(answers[judge]), OWN_ENCODER, made.count, 0.0))
    found = assisted(made.curve, answers[judge])
    covariate = Covariate(judge, _answered(answers[judge]), found.code, found.alone, found.narrowed)
    return replace(made, curve=found.curve, covariate=covariate)


def _answered(answers: Reals) -> int:
    return int((~np.isnan(answers)).sum())


def made_ranking(judge: str, run: Run) -> bool:
    """Whether a model ranked these hits itself, also under another kind of judge; one that may have counts as well."""
    rankers = set(_encoders(run.header))
    if not rankers:
        return judge.startswith("encoder:")
    return not {_model(judge), _model(_model(judge))}.isdisjoint({*rankers, *map(_model, rankers)})


def _model(name: str) -> str:
    """A model's name without its kind and revision: `encoder:starter` is `starter`."""
    return name.partition(":")[2].partition("@")[0] or name


def _encoders(header: Mapping[str, Any]) -> Iterator[str]:
    """The encoders that made a run, also those of the runs it was fused from."""
    if "encoder" in header:
        yield str(header["encoder"])
    for part in header.get("of", ()):
        yield from _encoders(part)
