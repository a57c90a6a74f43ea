"""A judge as the second stage of a benchmark: what it is asked of each task, and what becomes of its rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._evaluating import UNSCORED, Result, scored
from eyespot.benchmarks._fitting import fitted
from eyespot.judges import unknown
from eyespot.llms.budget import BudgetSpent
from eyespot.search.hit_pairs import CaptionPairs, HitPairs, JudgedPairs, first_hits
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate, learned_blend
from eyespot.search.rescored import Rescored
from eyespot.types import EyespotError, NothingFound, Query, Run, without_code

if TYPE_CHECKING:
    from eyespot.benchmarks._searching import GallerySearcher


@dataclass(frozen=True)
class Jury:
    """A judge with the gallery whose pictures it looks at."""

    stage: JudgeRerank
    searcher: GallerySearcher

    def plan(self, batches: Sequence[JudgedPairs]) -> RerankEstimate:
        """What looking at the pairs of these tasks would take, without looking; a pair of several counts once."""
        every = {(pair.query.terms, pair.image): pair for its in batches for pair in its.pairs}
        to_ask = unknown(self.stage.judge, list(every.values()), self.stage.ledger)
        return RerankEstimate(len(every), len(to_ask), sum(its.pictureless for its in batches))

    def look(self, task: Task, run: Run) -> JudgeResult:
        """What the judge says; each answer is kept, so that a run that was cut goes on where it was.

        Raises `BudgetSpent` where the budget is not enough, for numbers of half the pictures would mean nothing, and
        `EyespotError` if there is not one verdict.
        """
        looked = self.stage.ask_pairs(self.pairs(task, run))
        if looked.stopped:
            raise BudgetSpent(f"{self.stage.judge.name}: {looked.stats}; {looked.stopped}")
        if not looked.stats.known and looked.stats.failed == looked.stats.answers:
            why = looked.failures[0] if looked.failures else "the gallery has none of the pictures"
            raise EyespotError(
                f"{self.stage.judge.name} has no verdict on any picture of {task.name} ({why}); see to that"
            )
        return looked

    def result(self, task: Task, run: Run, looked: JudgeResult, pool: int | None = None) -> Result:
        """The numbers of both stages; the run's header says who judged."""
        ranked, _ = fitted(task, run)
        second = Rescored(self.stage.scores(ranked, looked), self.stage.depth)
        result = scored(task, run, second, pool)
        result.run.header |= self.stage.header(looked)
        unasked = len(ranked) - len(looked.judgements)
        silent = [f"{unasked} queries ask with a picture that is not here; their hits were not judged"] * bool(unasked)
        judge_notes = [f"{self.stage.judge.name}: {looked.stats}", *silent, *self.stage.notes(run, looked)]
        # The judge's own notes count the hits without a score, with the reason
        return replace(result, notes=[*without_code(list(result.notes), UNSCORED), *judge_notes])

    def learned(self, task: Task, run: Run) -> Jury:
        """The same with the weight under which this task, of another split, scores best by its first measure."""
        ranked, _ = fitted(task, run)
        looked = self.look(task, run)
        blend = learned_blend(self.stage, ranked, looked, task.judged.qrels, task.measures[0])
        return Jury(replace(self.stage, blend=blend), self.searcher)

    def pairs(self, task: Task, run: Run) -> JudgedPairs:
        """What the judge is asked of a task; `NothingFound` if its captions have no text."""
        ranked, _ = fitted(task, run)
        if task.way != "i2t":
            queries = [query for query in self.searcher.runnable_queries(task) if query.id in ranked]
            pictured = self.searcher.pictured(task, ranked, self.stage.depth)
            return HitPairs(first_hits(queries, pictured, self.stage.depth), pictured.facts)
        # Of image→text the first captions of every picture that is here
        heads = {name: [hit.image for hit in hits[: self.stage.depth]] for name, hits in ranked.items()}
        texts = {caption: task.pool.get(caption, {}).get("text") for each in heads.values() for caption in each}
        if silent := [caption for caption, text in texts.items() if not text]:
            raise NothingFound(f"{len(silent)} of its captions have no text here (such as {silent[0]!r})")
        pictures = self.searcher.query_pictures(task)
        asked = {caption: Query.words(str(text), caption) for caption, text in texts.items()}
        captions = {name: [asked[caption] for caption in each] for name, each in heads.items() if name in pictures}
        return CaptionPairs(captions, pictures)
