"""A benchmark's tasks and the rankings of one system to numbers: with floor, breakdowns and the bound on re-ranking.

A judge may be the second stage: what it is asked of each task, and what becomes of its rankings.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot import __version__
from eyespot.benchmarks._benchmark import Benchmark, Group, Task
from eyespot.benchmarks._fitting import fitted
from eyespot.judges import unknown
from eyespot.llms.budget import BudgetSpent
from eyespot.metrics import Floor, Scores, aligned, evaluate, floor, labels_of
from eyespot.search.hit_pairs import CaptionPairs, HitPairs, JudgedPairs, hits_at
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate, learned_blend
from eyespot.search.rescored import Rescored
from eyespot.storage.digests import file_sha256, json_sha256
from eyespot.types import (
    EyespotError,
    Note,
    NothingFound,
    Query,
    RankedImage,
    Run,
    UsageError,
    prefixed,
    quantity,
    without_code,
)

if TYPE_CHECKING:
    from eyespot.benchmarks._searching import GallerySearcher


@dataclass(frozen=True)
class Result:
    """What one system scores in one task.

    `groups` by the name of the breakdown; `floors` what a random order scores, by measure; `stages` the steps of a
    two-stage search, of which `scores` is the last that was measured.
    """

    task: Task
    run: Run
    scores: Scores
    groups: Mapping[str, Sequence[Group]]
    floors: Mapping[str, Floor]
    stages: Sequence[RankingStage] = ()
    notes: Sequence[str] = ()
    pool: int | None = None  # how many images each query ranked; None: its candidates, or not known
    ranked: int | None = None  # the same as far as the run or who asks says it, and not the size of a full collection

    @cached_property
    def judgements(self) -> str:
        """The SHA-256 of the judgements that it was scored by, whatever their order."""
        qrels = self.task.judged.qrels
        rows = zip(qrels.query.tolist(), qrels.image.tolist(), qrels.grade.tolist(), strict=True)
        return json_sha256(sorted(rows))

    @cached_property
    def ceilings(self) -> dict[str, float]:
        """The most that each measure can be here: that of a ranking of the judged images by their grade."""
        graded = ((query, self.task.judged.qrels[query].items()) for query in self.scores.queries)
        best = Run({query: [RankedImage(*one) for one in sorted(of, key=lambda one: -one[1])] for query, of in graded})
        return evaluate(best, self.task.judged.qrels, self.task.measures, self.task.rules).means


@dataclass(frozen=True)
class Evaluation:
    """The results of one system on one benchmark; `made` says how: arguments, versions, digests, hardware."""

    benchmark: Benchmark
    split: str
    system: str
    results: Sequence[Result]
    made: dict[str, Any] = field(default_factory=dict)
    depth: int | None = None

    @property
    def notes(self) -> list[str]:
        """What should be known before the numbers are trusted, each sentence once."""
        everywhere = set.intersection(*(set(result.notes) for result in self.results)) if self.results else set()
        sentences = [
            note if note in everywhere else prefixed(result.task.name, note)
            for result in self.results
            for note in result.notes
        ]
        return list(dict.fromkeys(sentences))


def scored(task: Task, run: Run, second: Rescored | None = None, pool: int | None = None) -> Result:
    """One task's result; `pool` is how many images each query ranked, where the task does not say.

    Raises `NothingFound` if the run holds none of the task's queries, or nothing of its pool, and `UsageError` for a
    `pool` of fewer images than a query ranks or has relevant.
    """
    ranked, notes = fitted(task, run)
    of_queries = [*ranked.values(), *map(task.judged.qrels.relevant, task.judged.qrels)]
    if pool is not None and pool < (most := max(map(len, of_queries), default=0)):
        raise UsageError(f"a pool of {pool} is too small for a query with {most} images ranked or relevant")
    stages: list[RankingStage] = []
    if second is not None:
        stages, ranked, stage_notes = two_stages(task, ranked, second)
        notes += stage_notes
    scores = evaluate(ranked, task.judged.qrels, task.measures, task.rules)
    if not scores.queries:
        raise NothingFound(f"no query of {task.name} is left to score; the run and the rules leave out all")
    groups = {by.name: found for by in task.by if (found := by(ranked, task, scores))}
    lacking = [query for query in task.judged.queries if query not in task.judged.qrels]
    notes += [*run.notes, *scores.notes]
    itself = [query for query in ranked.self_hits() if task.judged.qrels.grades.get(query, {}).get(query, 0) <= 0]
    if task.exclude_input and itself:
        of_all = f"{len(itself)} of {len(ranked)} queries rank an image of their own id, which counts as not relevant"
        notes.append(f"{of_all}; a column image that names it leaves it out")
    if lacking:
        whole = len(task.judged.queries)
        notes.append(f"{len(lacking)} of {whole} queries have no judgements (such as {lacking[0]!r}) and are left out")
    if task.listed is not None and "listed" not in ranked.header:
        outside = task.listed.outside(set(ranked.images.tolist()).difference(task.judged.images))
        ranked.header = {**ranked.header, "unlisted": outside}
        strange = f"{outside:,} images of the rankings are not in the list of {task.listed.title}"
        notes += [f"{strange}: they ranked something else"] if outside else []
    known = pool or ranked.header.get("pool")
    full = task.size  # how many images a run is known to rank that does not say it itself
    if full is None and task.listed is not None and not ranked.header.get("unlisted"):
        full = task.listed.count + len(task.judged.images)
    size = None if task.judged.candidates is not None else known or full
    return Result(task, ranked, scores, groups, _floors(task, scores, size), stages, notes, size, known)


def _floors(task: Task, scores: Scores, size: int | None) -> dict[str, Floor]:
    """What a random order scores for the same queries: of the candidates, or of the pool where its size is known."""
    candidates = task.judged.candidates
    if size is None and candidates is None:
        return {}
    ranked = Run({query: [] for query in scores.queries}) if candidates is None else candidates
    rankings = aligned(ranked.only(set(scores.queries)), task.judged.qrels)
    sizes = None
    if size is not None:  # the pool of each query, (q,), without what is left out, and with all that is relevant
        left = [len(task.excluded(query) & task.pool.keys()) for query in rankings.queries]
        sizes = np.maximum(np.subtract(size, left), rankings.relevant)
    found: dict[str, Floor] = {}
    for label, measure in labels_of(list(task.measures)).items():
        try:
            found[label] = floor(measure, rankings, sizes)
        except (UsageError, NotImplementedError):  # Judged@k says nothing of relevance
            continue
    return found


UNSCORED = "unscored"  # the code of the note that counts hits without a score


@dataclass(frozen=True)
class RankingStage:
    """One ranking of a two-stage search: the first, the re-ranked, and the best that re-ranking could do."""

    name: str
    scores: Scores


def two_stages(task: Task, run: Run, second: Rescored) -> tuple[list[RankingStage], Run, list[str]]:
    """The steps with their numbers, the re-ranked run, and notes on it.

    Raises `NothingFound` if the second stage has a score for none of what it should re-rank.
    """
    heads = [min(len(hits), second.depth) for hits in run.values()]
    reranked, without = second(run)
    if without == sum(heads):
        first = f"the first {second.depth} hits of {task.name}"
        raise NothingFound(f"the second stage scores none of {first}; check that both files use the same names")
    # Who knows the grades re-ranks best; what lies deeper stays behind, as it does for every other second stage.
    judged = task.judged.qrels
    grades = Run({query: [RankedImage(image, float(grade)) for image, grade in judged[query].items()] for query in run})
    best, _ = Rescored(grades, second.depth)(run)
    runs = {"first stage": run, f"best possible of the first {second.depth}": best, "re-ranked": reranked}
    stages = [RankingStage(name, evaluate(each, judged, task.measures, task.rules)) for name, each in runs.items()]
    short = sum(head < second.depth for head in heads)
    silent = f"{without} of the first {second.depth} hits have no score in the second stage"
    unscored = f"{silent}; they go behind the scored"
    fewer = f"fewer than {second.depth} images are ranked for {quantity(short, 'query')}; there all are re-ranked"
    return stages, reranked, [*[Note(UNSCORED, unscored)] * bool(without), *[fewer] * bool(short)]


NONE = "(none)"


@dataclass(frozen=True)
class ByColumn:
    """By a column of the queries; a list of values counts in each, an empty value as a row of its own.

    Values that differ only in case are one group, under the spelling that comes first.
    """

    name: str

    def __call__(self, run: Run, task: Task, scores: Scores) -> list[Group]:
        """The groups in order of their names; none where no query has a value."""
        if not any(facts.get(self.name) not in (None, "", [], ()) for facts in task.judged.queries.values()):
            return []
        rows: dict[str, list[int]] = {}
        shown: dict[str, str] = {}
        for row, query in enumerate(scores.queries):
            value = task.judged.queries.get(query, {}).get(self.name)
            several = value if isinstance(value, list | tuple) else [value]
            values = [str(one) if one not in (None, "") else NONE for one in several] or [NONE]
            for value in dict.fromkeys(shown.setdefault(value.casefold(), value) for value in values):
                rows.setdefault(value, []).append(row)
        return [group_of(value, scores.take(chosen)) for value, chosen in sorted(rows.items())]


def group_of(value: str, scores: Scores) -> Group:
    """A group from the scores of its queries."""
    return Group(value, len(scores.queries), scores.means, {label: scores.interval(label) for label in scores.values})


def columns(*names: str) -> tuple[ByColumn, ...]:
    """A breakdown for each column."""
    return tuple(ByColumn(name) for name in names)


PACKAGES = ("numpy", "numba", "onnxruntime", "torch", "open-clip-torch", "transformers")
DIGESTED = 1 << 30  # bytes; larger files are known by their size alone


def made_by(arguments: Mapping[str, Any], inputs: Iterable[Path], **more: Any) -> dict[str, Any]:
    """How a number was made, to make it again: versions, arguments, digests of the inputs, and the machine."""
    versions, digests = {"python": platform.python_version()}, {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    for path in dict.fromkeys(inputs):
        if path.is_file():
            size = path.stat().st_size
            digests[str(path)] = f"sha256:{file_sha256(path)}" if size <= DIGESTED else f"{size} bytes"
    return {
        "eyespot": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "arguments": {name: value for name, value in arguments.items() if value is not None and value not in ([], ())},
        "inputs": digests,
        "versions": versions,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        **{name: value for name, value in more.items() if value is not None},
    }


# -- a judge as the second stage ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jury:
    """A judge with the gallery whose pictures it looks at."""

    stage: JudgeRerank
    searcher: GallerySearcher

    def plan(self, batches: Sequence[JudgedPairs]) -> RerankEstimate:
        """What looking at the pairs of these tasks would take, without looking; a pair of several counts once."""
        every = {(pair.query.terms, pair.image): pair for batch in batches for pair in batch.pairs}
        to_ask = unknown(self.stage.judge, list(every.values()), self.stage.ledger)
        return RerankEstimate(len(every), len(to_ask), sum(batch.pictureless for batch in batches))

    def ask(self, task: Task, run: Run) -> JudgeResult:
        """What the judge says; each answer is kept, so that a run that was cut goes on where it was.

        Raises `BudgetSpent` where the budget is not enough, for numbers of half the pictures would mean nothing, and
        `EyespotError` if there is not one verdict.
        """
        judged = self.stage.ask_pairs(self.pairs(task, run))
        if judged.stopped:
            raise BudgetSpent(f"{self.stage.judge.name}: {judged.stats}; {judged.stopped}")
        if not judged.stats.known and judged.stats.failed == judged.stats.answers:
            why = judged.failures[0] if judged.failures else "the gallery has none of the pictures"
            raise EyespotError(f"{self.stage.judge.name} has no verdict on {task.name} ({why}); see to that")
        return judged

    def result(self, task: Task, run: Run, judged: JudgeResult, pool: int | None = None) -> Result:
        """The numbers of both stages; the run's header says who judged."""
        ranked, _ = fitted(task, run)
        second = Rescored(self.stage.scores(ranked, judged), self.stage.depth)
        result = scored(task, run, second, pool)
        result.run.header |= self.stage.header(judged)
        unasked = len(ranked) - len(judged.judgements)
        silent = [f"queries whose picture is not here, so that their hits were not judged: {unasked}"] * bool(unasked)
        judge_notes = [f"{self.stage.judge.name}: {judged.stats}", *silent, *self.stage.notes(run, judged)]
        # The judge's own notes count the hits without a score, with the reason
        return replace(result, notes=[*without_code(list(result.notes), UNSCORED), *judge_notes])

    def learned(self, task: Task, run: Run) -> Jury:
        """The same with the weight under which this task, of another split, scores best by its first measure."""
        ranked, _ = fitted(task, run)
        judged = self.ask(task, run)
        blend = learned_blend(self.stage, ranked, judged, task.judged.qrels, task.measures[0])
        return Jury(replace(self.stage, blend=blend), self.searcher)

    def pairs(self, task: Task, run: Run) -> JudgedPairs:
        """What the judge is asked of a task; `NothingFound` if its captions have no text."""
        ranked, _ = fitted(task, run)
        if task.way != "i2t":
            queries = [query for query in self.searcher.runnable_queries(task) if query.id in ranked]
            pictured = self.searcher.pictured(task, ranked, self.stage.depth)
            return HitPairs(hits_at(queries, pictured, range(1, self.stage.depth + 1)), pictured.facts)
        # Of image→text the first captions of every picture that is here
        heads = {name: [hit.image for hit in hits[: self.stage.depth]] for name, hits in ranked.items()}
        texts = {caption: task.pool.get(caption, {}).get("text") for each in heads.values() for caption in each}
        if silent := [caption for caption, text in texts.items() if not text]:
            raise NothingFound(f"{len(silent)} of its captions have no text here (such as {silent[0]!r})")
        pictures = self.searcher.query_pictures(task)
        words = {caption: Query.words(str(text), caption) for caption, text in texts.items()}
        captions = {name: [words[caption] for caption in each] for name, each in heads.items() if name in pictures}
        return CaptionPairs(captions, pictures)
