"""The second stage: a judge looks at the first pictures of every ranking, and what it said once is never asked again.

stage = Judged(judge_named("encoder:starter"), Judgements(Path(".eyespot/ledger.sqlite")), depth=100)
run = stage(queries, run)
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot import rooms
from eyespot.judges import JudgeStats, ask as ask_judge, known, on_one_scale, prompts_of, scale_of, served_by, unknown
from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import BudgetSpent
from eyespot.metrics import Measure, evaluate
from eyespot.photos.places import picture_of
from eyespot.search.embedding import embed, embed_picture
from eyespot.search.fused import STEPS, scaled
from eyespot.search.hit_pairs import HitPairs, JudgedPairs, Key, hits_at
from eyespot.search.query_language import format_query
from eyespot.search.rescored import Rescored, falling
from eyespot.storage.digests import text_digest
from eyespot.types import (
    Answer,
    AnswerStream,
    Encoder,
    Judge,
    Judgement,
    Note,
    Pair,
    Qrels,
    Query,
    RankedImage,
    Run,
    SequentialAnswers,
    Space,
    UsageError,
    Vectors,
    Verdict,
    kind_text,
    quantity,
    refusing,
)

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable

BEHIND = "they go behind the judged"  # what has no verdict
NO_PICTURE, NO_VERDICT, STOPPED = "no_picture", "no_verdict", "stopped"  # codes of notes
OTHER_SCALE, STAND_IN, SEVERAL_MODELS = "other_scale", "stand_in", "several_models"
LISTED = 5  # names of pictures in a note


class RerankEstimate(NamedTuple):
    """What re-ranking would take: pairs that can be judged, how many the ledger lacks, and hits without a picture."""

    pairs: int
    to_ask: int
    pictureless: int


@dataclass(frozen=True)
class JudgeResult:
    """What a judge said of the first hits: by query id and the run's own name of the image.

    `answers` are as they came, under the judge's `prompts`. `stopped` is why not everything was asked, where a budget
    was spent or a person had enough; `pictureless` counts hits of which no picture is known.
    """

    answers: Mapping[str, Mapping[str, Judgement]]
    stats: JudgeStats
    stopped: str = ""
    pictureless: int = 0
    prompts: Sequence[str] = ()

    @cached_property
    def judgements(self) -> Mapping[str, Mapping[str, Judgement]]:
        """The same, those of each query on one scale."""
        return {query: on_one_scale(answers, self.prompts) for query, answers in self.answers.items()}

    def verdict(self, query: str, image: str) -> Verdict | None:
        """What was said of a hit, or None."""
        judgement = self.judgements.get(query, {}).get(image)
        return None if judgement is None else judgement.verdict

    @property
    def failures(self) -> list[str]:
        """Why there are hits without a verdict, each reason once."""
        every = (judgement for answers in self.answers.values() for judgement in answers.values())
        return list(dict.fromkeys(judgement.failure for judgement in every if judgement.verdict is None))

    @property
    def unscored(self) -> list[str]:
        """The images with a verdict that is on another scale than its ranking."""
        return [
            image
            for query, judgements in self.judgements.items()
            for image, judgement in judgements.items()
            if judgement.verdict is None and self.answers[query][image].verdict is not None
        ]

    def and_then(self, more: JudgeResult) -> JudgeResult:
        """What was said in both of two rounds."""
        answers = {
            query: {**self.answers.get(query, {}), **more.answers.get(query, {})}
            for query in dict.fromkeys([*self.answers, *more.answers])
        }
        pictureless = self.pictureless + more.pictureless
        stats, stopped = self.stats.and_then(more.stats), self.stopped or more.stopped
        return JudgeResult(answers, stats, stopped, pictureless, self.prompts or more.prompts)


@dataclass(frozen=True)
class JudgeRerank:
    """A second stage: the first `depth` of every ranking by the judge's probability, the rest behind as they were.

    Equals stand as the first stage had them, in scores that fall; `scores` has them as equals, for measures. What has
    no verdict (no picture, no answer) keeps its order below what has. `blend` is how much the judge counts: below 1 a
    hit scores blend · probability + (1 - blend) · its first score, from 0 for the lowest of the first `depth` to 1 for
    the best. The run's facts say which picture an image is: `id` and `path`.
    """

    judge: Judge
    ledger: Judgements
    depth: int = 100
    blend: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.blend <= 1:
            raise UsageError(f"the judge counts between 0 (not at all) and 1 (alone), not {self.blend:g}")

    @classmethod
    def of(
        cls, collection: Searchable, judge: Any, depth: int = 100, blend: float = 1.0, **options: Any
    ) -> JudgeRerank:
        """The stage for a collection, whose ledger keeps the verdicts; `options` are those of `judge_named`."""
        ledger = Judgements(collection.gallery.path / "ledger.sqlite")
        return cls(judge_named(judge, **options), ledger, depth, blend)

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """The re-ranked run; its header says who judged, with which prompt, and what that cost."""
        if run is None:
            raise UsageError("a judge re-ranks a run; put a first stage, such as Nearest, before this one")
        return self.reranked(run, self.ask(queries, run))

    def plan(self, queries: Sequence[Query], run: Run, ranks: Iterable[int] | None = None) -> RerankEstimate:
        """What `ask` of the same would take, without asking."""
        named = self._pairs(queries, run, ranks)
        to_ask = unknown(self.judge, named.pairs, self.ledger)
        return RerankEstimate(len(named.pairs), len(to_ask), named.pictureless)

    def ask(self, queries: Sequence[Query], run: Run, ranks: Iterable[int] | None = None) -> JudgeResult:
        """The judge's word on the hits of these queries at these ranks, from 1, the first `depth` for None.

        Each answer is in the ledger before the next one is waited for; a budget that is spent ends it early.
        """
        return self.ask_pairs(self._pairs(queries, run, ranks))

    def _pairs(self, queries: Sequence[Query], run: Run, ranks: Iterable[int] | None) -> HitPairs:
        return HitPairs(hits_at(queries, run, range(1, self.depth + 1) if ranks is None else ranks), run.facts)

    def ask_pairs(self, named: JudgedPairs) -> JudgeResult:
        """The judge's word on pairs made elsewhere, under the names that they have there."""
        asking = ask_judge(self.judge, named.pairs, self.ledger, named.ranks)
        found: dict[Key, Judgement] = {}
        stopped = ""
        try:
            for judgement in asking:
                found[judgement.query, judgement.image] = judgement
        except BudgetSpent as spent:
            stopped = str(spent)
            # Answers that were under way are in the ledger.
            images: dict[str, set[str]] = {}
            for pair in named.pairs:
                images.setdefault(asking.digests[pair.query], set()).add(pair.image)
            for query, some in images.items():
                judgements = known(self.judge, self.ledger, query, some)
                found |= {(query, image): judgement for image, judgement in judgements.items()}
        digests = {query.id: digest for query, digest in asking.digests.items()}
        answers = named.by_name(found, digests)
        return JudgeResult(answers, asking.stats, stopped, named.pictureless, prompts_of(self.judge))

    def reranked(self, run: Run, result: JudgeResult) -> Run:
        """The run in the order of what was said, for people and programs that show it: no two scores are equal."""
        rescored, _ = Rescored(self.scores(run, result), self.depth)(run)
        rankings = {query: falling(hits) for query, hits in rescored.items()}
        made = rescored.reranked(rankings, **self.header(result))
        made.notes += self.notes(run, result)
        return made

    def notes(self, run: Run, result: JudgeResult, unsaid: str = BEHIND) -> list[str]:
        """What should be known before the order is trusted; `unsaid` is what becomes of hits without a verdict."""
        names = [Path(run.facts.get(image, {}).get("path") or image).name for image in result.unscored]
        listed = ", ".join([*names[:LISTED], "…"] if len(names) > LISTED else names)
        text = (
            f"{len(names)} hits were answered on another scale than the rest of their ranking, most often without "
            f"token probabilities ({listed}); {unsaid}; --judge answer=words asks for all in words"
        )
        scales = [Note(OTHER_SCALE, text)] * bool(result.unscored) + list(self._stand_ins(result))
        models = self.header(result).get("served", {})
        served = ", ".join(f"{model} ({count:,})" for model, count in models.items())
        several = f"the model changed among the answers of {self.judge.name}: {served}; name one version of it"
        changed = [Note(SEVERAL_MODELS, several)] * (len(models) > 1)
        return [*notes_of(result, unsaid), *scales, *changed, *self.judge.notes]

    def _stand_ins(self, result: JudgeResult) -> Iterator[str]:
        """What stands in for the judge's own way, in the rankings of which most was answered so."""
        scales = {query: scale_of(some.values(), result.prompts) for query, some in result.answers.items() if some}
        for prompt, sentence in self.judge.fallbacks.items():
            every = [
                one for query, scale in scales.items() if scale == prompt for one in result.answers[query].values()
            ]
            matches = [one.prompt == prompt for one in every if one.verdict is not None and not one.refused]
            lacking = "gives no token probabilities"
            if not all(matches):
                lacking = f"gave no token probabilities for {sum(matches)} of {quantity(len(matches), 'picture')}"
            if matches:
                yield Note(STAND_IN, f"{self.judge.name} {lacking}; {sentence}")

    def scores(self, run: Run, result: JudgeResult) -> Run:
        """The judged hits alone, best first, with what the verdicts are worth, for measures: equals stay equal."""
        ranked_images = {}
        for query, hits in run.items():
            head = hits[: self.depth]
            first = scaled([hit.score for hit in head]).tolist() if self.blend < 1 else [0.0] * len(head)
            blended = (
                RankedImage(hit.image, self.blend * points(verdict) + (1 - self.blend) * score)
                for hit, score in zip(head, first, strict=True)
                if (verdict := result.verdict(query, hit.image)) is not None
            )
            ranked_images[query] = sorted(blended, key=lambda hit: -hit.score)
        return Run(ranked_images)

    def header(self, result: JudgeResult) -> dict[str, Any]:
        """Who judged, asked how, served by which model without what it does not accept, and what that took."""
        stats, every = result.stats, (one for some in result.answers.values() for one in some.values())
        counts = {"from_ledger": stats.known, "asked": stats.answers, "refused": stats.refused, "failed": stats.failed}
        counts["unscored"] = len(result.unscored)
        weight = {"blend": self.blend} if self.blend < 1 else {}
        by = {"judge": self.judge.name, "prompt": self.judge.prompt, "depth": self.depth}
        served = served_by(self.judge.name, every, self.ledger)
        unknown: dict[str, Any] = {} if stats.priced else {"money": None}
        return {**by, **weight, **served, "verdicts": {**counts, **stats.spent._asdict(), **unknown}}


def points(verdict: Verdict) -> float:
    """What a verdict is worth: its probability, or its grade where it has none."""
    return verdict.probability if verdict.probability is not None else float(verdict.grade or 0)


def notes_of(result: JudgeResult, unsaid: str = BEHIND) -> list[str]:
    """Why hits have no verdict; `unsaid` is what becomes of them."""
    lacking = f"not judged: {quantity(result.pictureless, 'hit')} without a picture here; {unsaid}"
    failed = f"{quantity(result.stats.failed, 'hit')} without a verdict ({'; '.join(result.failures[:2])}); {unsaid}"
    notes = {
        NO_PICTURE: (result.pictureless, lacking),
        NO_VERDICT: (result.stats.failed, failed),
        STOPPED: (result.stopped, result.stopped),
    }
    return [Note(code, sentence) for code, (count, sentence) in notes.items() if count]


# -- weights ----------------------------------------------------------------------------------------------------


def learned_blend(
    stage: JudgeRerank, run: Run, result: JudgeResult, qrels: Qrels, measure: Measure | str = "AP@50"
) -> float:
    """How much the judge should count, by queries with judgements: the best of 0, 0.05, …, 1; of equals the largest.

    Learn it on a validation split: on the queries that are reported it flatters.
    """

    def mean(blend: float) -> float:
        reranked, _ = Rescored(replace(stage, blend=blend).scores(run, result), stage.depth)(run)
        (value,) = evaluate(reranked, qrels, [measure]).means.values()
        return float(value)

    return max((step / STEPS for step in range(STEPS + 1)), key=lambda blend: (mean(blend), blend))


# -- judges by name ---------------------------------------------------------------------------------------------


def is_judge(spec: str) -> bool:
    """Whether this names a judge, as `encoder:starter` does, and not a file."""
    return not Path(spec).exists() and spec.partition(":")[0] in rooms.names("judges")


@dataclass(frozen=True)
class FunctionJudge:
    """A judge that is a function of a query's text and a picture's path: to a probability, True or False, or a verdict.

    Its answers are in the ledger under its code, so that another function of the same name is another judge.
    """

    function: Callable[[str, str], Any]
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    language_model: None = None

    @property
    def name(self) -> str:
        """`function:` and the name of the function."""
        return f"function:{getattr(self.function, '__qualname__', type(self.function).__name__)}"

    @property
    def prompt(self) -> str:
        """A digest of its code, and of the values that it brings along."""
        call = getattr(self.function, "__code__", None) or type(self.function).__call__.__code__
        values = [cell.cell_contents for cell in getattr(self.function, "__closure__", None) or ()]
        return text_digest(marshal.dumps(call).hex(), repr(getattr(self.function, "__defaults__", None)), repr(values))

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """One answer for every pair, in their order; `UsageError` for what is not a probability."""
        return SequentialAnswers(Answer(pair, self._verdict(pair)) for pair in pairs)

    def _verdict(self, pair: Pair) -> Verdict:
        value = self.function(format_query(pair.query), str(pair.path))
        with refusing("a judge gives a probability from 0 to 1, True or False, or a Verdict", value):
            return value if isinstance(value, Verdict) else Verdict(float(value))


def judge_named(spec: str | Callable[[str, str], Any], **options: Any) -> Judge:
    """A judge by its name, or of a function; `budget`, `wording`, `prices` are its own where they are None.

    Pictures are read as the gallery reads them, and `encoder:NAME` gets its model here. Raises `UsageError` for a name
    that nobody has, and what the judge says of options.
    """
    if not isinstance(spec, str):
        if options or not callable(spec):
            raise UsageError(f"a judge is a name, as in encoder:starter, or a function alone, not {kind_text(spec)}")
        return FunctionJudge(spec)
    name, _, rest = spec.partition(":")
    given = {option: value for option, value in options.items() if value is not None}
    handed = {"embedding": SecondModel(rest or "starter")} if name == "encoder" else {"read": picture_of}
    judge: Judge = rooms.load("judges", f"{name}:{rest}", **handed, **given)
    return judge


@dataclass(frozen=True)
class SecondModel:
    """An encoder as the judge `encoder:NAME` needs it: what it judges with are the pictures themselves."""

    name: str

    @cached_property
    def _encoder(self) -> Encoder:
        encoder: Encoder = rooms.load("encoders", self.name)
        return encoder

    @property
    def space(self) -> Space:
        """The space of its vectors."""
        return self._encoder.space

    def query(self, query: Query) -> Vectors:
        """The vector of a query, (dim,)."""
        vector: Vectors = embed([query], self._encoder)[0]
        return vector

    def picture(self, path: Path) -> Vectors:
        """The vector of a picture, (dim,); `UsageError` if it cannot be read."""
        return embed_picture(path, self._encoder)
