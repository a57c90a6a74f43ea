"""A frozen ranking as judges see it: its first hits with their pictures, what the ledger has of them, their order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from eyespot.judges import JudgeStats as Counted
from eyespot.judges import known, prompts_of
from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.photos.pictures import BadPicture
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate, points
from eyespot.types import Judge, Query, RankedImage, Run, UsageError
from eyespot.web._search_params import SearchParams
from eyespot.web.found.results import JudgedPlace, RankedResult
from eyespot.web.found.snapshot import PicturePlace as Place
from eyespot.web.pictures.thumbnails import bytes_of


class LedgerJudge(NamedTuple):
    """A judge with the ledger that has its verdicts, and how many of the first hits it looks at."""

    judge: Judge
    ledger: Judgements
    depth: int

    @property
    def stage(self) -> JudgeRerank:
        """The same as a second stage."""
        return JudgeRerank(self.judge, self.ledger, self.depth)


def query_to_judge(frozen: RankedResult) -> Query:
    """What judges are asked; `UsageError` for a search that has neither words nor a picture."""
    if frozen.query is None:
        raise UsageError("a judge needs words or a picture to judge by; search for some, and let it look then")
    return frozen.query


def run_of(frozen: RankedResult, depth: int) -> Run:
    """The first hits under the ids of their pictures; what lies behind an address has no picture here."""
    found = frozen.slice(0, depth)
    pictures = frozen.snapshot.pictures(found.rows.tolist())
    # The last bit of a score may differ between two rounds of a search.
    scores = np.minimum.accumulate(found.scores).tolist()
    hits = [RankedImage(id, score) for (id, _), score in zip(pictures, scores, strict=True)]
    run = Run({query_to_judge(frozen).id: hits})
    run.header["encoder"] = frozen.snapshot.view.space.encoder
    for id, places in pictures:
        path = next((place.place for place in places if "://" not in place.place), None)
        run.facts[id] = {"id": id, "path": path}
    return run


def leave_out_changed(run: Run, frozen: RankedResult, ranks: Sequence[int]) -> None:
    """Hits at these ranks whose picture is gone, or is another one by now, are shown to no judge."""
    rows = frozen.slice(0, max(ranks)).rows[np.array(ranks) - 1].tolist()
    for id, places in frozen.snapshot.pictures(rows):
        run.facts[id]["path"] = next((place.place for place in places if _intact(id, place)), None)


def _intact(id: str, place: Place) -> bool:
    with suppress(OSError, BadPicture):
        bytes_of(id, place)
        return True
    return False


def planned(frozen: RankedResult, heard: LedgerJudge) -> RerankEstimate:
    """What asking the judge would take; nothing is asked or written."""
    return heard.stage.plan([query_to_judge(frozen)], run_of(frozen, heard.depth))


def in_its_order(frozen: RankedResult, params: SearchParams, heard: LedgerJudge) -> RankedResult:
    """The ranking in the judge's order by the verdicts that the ledger has; the others follow as they were."""
    query, run = query_to_judge(frozen), run_of(frozen, heard.depth)
    rank = {hit.image: at for at, hit in enumerate(run[query.id], 1)}
    answers = known(heard.judge, heard.ledger, query_digest(query), rank)
    looked = JudgeResult({query.id: answers}, Counted(), prompts=prompts_of(heard.judge))
    reranked = heard.stage.reranked(run, looked)
    row = dict(zip(rank, frozen.slice(0, heard.depth).rows.tolist(), strict=True))
    verdicts = {id: looked.verdict(query.id, id) for id in rank}
    judged = {row[id]: JudgedPlace(rank[id], points(verdict) if verdict else None) for id, verdict in verdicts.items()}
    return frozen.in_order(params, [row[hit.image] for hit in reranked[query.id]], judged)
