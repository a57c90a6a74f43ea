"""A judge as the second stage of a benchmark: it looks at the first pictures of every ranking that a task scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._evaluating import Result, scored
from eyespot.benchmarks._fitting import fitted
from eyespot.benchmarks._rescoring import UNSCORED
from eyespot.benchmarks._searching import GallerySearcher
from eyespot.llms.budget import BudgetSpent
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate, learned_blend
from eyespot.search.rescored import Rescored
from eyespot.types import EyespotError, NothingFound, Query, Run, without_code


@dataclass(frozen=True)
class Jury:
    """A judge with the gallery whose pictures it looks at."""

    stage: JudgeRerank
    searcher: GallerySearcher

    def plan(self, task: Task, run: Run) -> RerankEstimate:
        """What looking would take, without looking."""
        return self.stage.plan(*self._before(task, run))

    def look(self, task: Task, run: Run) -> JudgeResult:
        """What the judge says; each answer is kept, so that a run that was cut goes on where it was.

        Raises `BudgetSpent` where the budget is not enough, for numbers of half the pictures would mean nothing, and
        `EyespotError` if there is not one verdict.
        """
        looked = self.stage.look(*self._before(task, run))
        if looked.stopped:
            raise BudgetSpent(f"{self.stage.judge.name}: {looked.asked}; {looked.stopped}")
        if not looked.asked.known and looked.asked.failed == looked.asked.asked:
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
        judge_notes = [f"{self.stage.judge.name}: {looked.asked}", *silent, *self.stage.notes(run, looked)]
        # The judge's own notes count the hits without a score, with the reason
        return replace(result, notes=[*without_code(list(result.notes), UNSCORED), *judge_notes])

    def learned(self, task: Task, run: Run) -> Jury:
        """The same with the weight under which this task, of another split, scores best by its first measure."""
        ranked, _ = fitted(task, run)
        looked = self.look(task, run)
        blend = learned_blend(self.stage, ranked, looked, task.judged.qrels, task.measures[0])
        return Jury(replace(self.stage, blend=blend), self.searcher)

    def _before(self, task: Task, run: Run) -> tuple[list[Query], Run]:
        if task.way == "i2t":
            raise NothingFound("a judge looks at pictures, and this task ranks captions")
        ranked, _ = fitted(task, run)
        asked = [query for query in self.searcher.runnable_queries(task) if query.id in ranked]
        return asked, self.searcher.pictured(task, ranked, self.stage.depth)
