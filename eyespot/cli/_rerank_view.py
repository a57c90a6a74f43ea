"""What a judge changes in the output of a search: nothing, the order, or a probability for each hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli.console import print_json, print_line, progress_bar, warn
from eyespot.search.parts import judge_stage
from eyespot.settings import FEW
from eyespot.types import RankedImage, Run, quantity, without_code

if TYPE_CHECKING:
    from eyespot.search.calibrated import Calibrated, Calibration
    from eyespot.search.calibration import Accuracy
    from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate
    from eyespot.settings.judge import JudgeOptions
    from eyespot.settings.search import SearchSettings
    from eyespot.types import Judgement, Note, Query


@dataclass(frozen=True)
class SearchOutput:
    """What is printed: the hits, what a judge said of each by its image, and more fields of the JSON.

    `sheet` holds the same hits with the numbers of a contact sheet; `column` names the numbers of a table; `why` says
    what put a hit there, by its image.
    """

    run: Run
    sheet: Run
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)
    result: JudgeResult | None = None
    column: str = "score"
    why: Mapping[str, Sequence[Note]] = field(default_factory=dict)


@dataclass(frozen=True)
class RerankView:
    """The judge, the accuracy of its calibration (None: it makes an order), and the gallery whose pictures it sees."""

    settings: SearchSettings
    accuracy: Accuracy | None
    gallery: Path

    def output(self, run: Run, query: Query) -> SearchOutput:
        """The first k hits after the judge; without k the usual number, or all that are likely."""
        from eyespot.search.collection import NO_MATCH

        with progress_bar("requests", delay=1.0) as tell, judge_stage(self.settings, self.gallery, tell) as stage:
            if self.accuracy is not None:
                return self._calibrated(run, query, stage)
            result = stage.ask([query], run)
            warn(f"{stage.judge.name}: {result.stats}")
            first = _first(stage.reranked(run, result), self.settings.k or FEW)
            judgements = result.judgements.get(query.id, {})
            verdicts = {hit.image: _verdict(judgements.get(hit.image)) for hit in first[query.id]}
            if any((verdict["probability"] or 0) >= 0.5 for verdict in verdicts.values()):
                first.notes = without_code(first.notes, NO_MATCH)  # the judge says yes to one
            return SearchOutput(first, first, verdicts, _header(first), result, "probability")

    def tell_plan(self, run: Run, query: Query, json: bool) -> None:
        """What the judge would judge; the most of a calibration."""
        with judge_stage(self.settings, self.gallery) as stage:
            calibrated = None if self.accuracy is None else self._calibration(stage, self.accuracy)
            plan = stage.plan([query], run) if calibrated is None else calibrated.plan(query, run)
            tell_plan(self.settings, stage, plan, json)

    def _calibration(self, stage: JudgeRerank, accuracy: Accuracy) -> Calibrated:
        """The calibration by this stage's judge; `UsageError`, before any request, for what it cannot answer."""
        from eyespot.search.calibrated import Calibrated, refuse_unverified

        if self.settings.likely is not None:
            refuse_unverified(stage.judge.name, accuracy)
        return Calibrated(stage, self.settings.calibrate or 0, accuracy)

    def _calibrated(self, run: Run, query: Query, stage: JudgeRerank) -> SearchOutput:
        """The ranking as it was with a probability for each hit; a message says how many are relevant."""
        from eyespot.search.calibrated import with_covariate

        assert self.accuracy is not None
        k, likely = self.settings.k, self.settings.likely
        made = with_covariate(self._calibration(stage, self.accuracy)(query, run), query, stage.ledger)
        warn(f"{stage.judge.name}: {made.result.stats}")
        if not made.verified:
            return _opinion(made, k or FEW)
        count, accuracy = made.count, made.curve.accuracy
        sentences = [
            f"{count.expected:.1f} relevant pictures are expected among the first {made.curve.hits:,} (95% interval "
            f"{count.low:,} to {count.high:,}), by {quantity(len(made.curve.sample.ranks), 'verdict')}"
            + ("" if accuracy.exact else f" of {made.judge}, if it is right as often as --accuracy says")
        ]
        if (model := made.covariate) is not None and model.helped:
            narrowed = f"{model.answers:,} answers of {model.judge} narrowed the interval by {model.narrowed:.0%}"
            sentences[0] += f"; {narrowed}, from {model.alone.low:,} to {model.alone.high:,}"
        warn(sentences[0])  # before the cut, which may not exist
        cut = None if likely is None else made.likely(likely)
        numbers = {"relevant": {"among": made.curve.hits, **count._asdict(), "expected": round(count.expected, 2)}}
        numbers |= {} if accuracy.exact else {"accuracy": asdict(accuracy)}
        numbers |= {} if model is None else {"covariate": model.as_json()}
        if cut is not None:
            numbers["likely"] = cut._asdict()
            share = f"a share of {cut.precision:.2f} (95% interval {cut.low:.2f} to {cut.high:.2f})"
            sentences.append(f"of the first {cut.hits:,} {share} is expected to be relevant")
            warn(sentences[1])
        # Hits are shown down to the cut, but no more than -k.
        most = (k or FEW) if cut is None else min(k or cut.hits, cut.hits)
        return _with_probabilities(made, most, sentences, numbers)


def tell_plan(settings: JudgeOptions, stage: JudgeRerank, plan: RerankEstimate, json: bool) -> None:
    """How many requests the judge would get, and their cost; on stdout, because it is the output of a dry run."""
    from eyespot.search.parts import prices_of
    from eyespot.types import Tokens

    fields = {"judge": stage.judge.name, "prompt": stage.judge.prompt, "depth": stage.depth, **plan._asdict()}
    cost: dict[str, Any] = {"tokens": 0, "money": 0.0}
    cost_text = ""
    if stage.judge.language_model is not None:
        price = prices_of(settings).of(str(settings.rerank).partition(":")[2])
        spent = Tokens().cost(plan.to_ask, price)
        cost = {"tokens": spent.tokens_in + spent.tokens_out, "money": spent.money if price else None}
        money = spent.dollars if price else "no price is known"
        cost_text = f", about {cost['tokens']:,} tokens, {money}"
    if json:
        print_json({**fields, **cost})
        return
    known = f"{plan.pairs - plan.to_ask:,} in the ledger, {plan.to_ask:,} to ask"
    lacking = f"; {quantity(plan.pictureless, 'hit has', 'hits have')} no picture here" if plan.pictureless else ""
    print_line(f"{stage.judge.name}: {quantity(plan.pairs, 'pair')}, {known}{cost_text}{lacking}")


def _first(run: Run, k: int) -> Run:
    (query,) = run
    return run.reranked({query: run[query][:k]})


def _header(run: Run) -> dict[str, Any]:
    names = ("judge", "depth", "served", "fingerprints", "not_accepted", "verdicts")
    return {name: run.header[name] for name in names if name in run.header}


def _verdict(judgement: Judgement | None) -> dict[str, Any]:
    if judgement is None or judgement.verdict is None:
        return {"probability": None, "judge": None}
    verdict = judgement.verdict
    more = {"grade": verdict.grade, "reason": verdict.reason or None, "refused": judgement.refused or None}
    fields = {"probability": verdict.probability, "judge": judgement.judge}
    return fields | {name: value for name, value in more.items() if value is not None}


def _opinion(made: Calibration, k: int) -> SearchOutput:
    """The ranking as it was, with the judge's verdicts on the hits that it saw."""
    opinion = made.opinion
    sentence = (
        f"{made.judge} says yes (0.5 or more) to {opinion['yes']:,} of the {opinion['looked']:,} pictures it looked "
        f"at, spread over the first {opinion['among']:,}; that is its opinion, and how many are relevant is not known: "
        "judge yourself (--rerank person:NAME), or say how often it is right on labelled pictures (--accuracy)"
    )
    warn(sentence)
    first, sheet = _first(made.run, k), _first(made.run, k)
    sheet.notes = [f"{sentence}.", *first.notes]
    verdicts = {hit.image: _verdict_beside(made, hit.image) for hit in first[made.query]}
    return SearchOutput(first, sheet, verdicts, {**_header(first), "opinion": opinion}, made.result)


def _with_probabilities(made: Calibration, k: int, sentences: list[str], numbers: Mapping[str, Any]) -> SearchOutput:
    """The first k hits, each with its probability and, where the judge saw it, its verdict."""
    first, probability = _first(made.run, k), made.probability
    hits = first[made.query]
    sheet = Run({made.query: [RankedImage(hit.image, probability.get(hit.image, 0.0)) for hit in hits]})
    sheet.header, sheet.facts = first.header, first.facts
    sheet.notes = [f"{'; '.join(sentences)}. Each number is a probability.", *first.notes]
    verdicts = {}
    for hit in hits:
        value = probability.get(hit.image)
        rounded = None if value is None else round(value, 4)
        verdicts[hit.image] = {"probability": rounded, **_verdict_beside(made, hit.image)}
    return SearchOutput(first, sheet, verdicts, {**_header(first), **numbers}, made.result, "probability")


def _verdict_beside(made: Calibration, image: str) -> dict[str, Any]:
    """The judge's answer on a hit as `verdict`, where it saw it."""
    fields = _verdict(made.result.judgements.get(made.query, {}).get(image))
    probability = fields.pop("probability")
    return fields if fields["judge"] is None else {"verdict": probability, **fields}
