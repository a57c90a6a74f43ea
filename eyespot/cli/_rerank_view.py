"""What a judge changes in the output of a search: nothing, the order, or a probability for each hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.cli._judge_options import tell_cost, tell_plan
from eyespot.cli.console import note
from eyespot.search.parts import judge_stage
from eyespot.settings.fields import SettingsConflict
from eyespot.settings.search import FEW
from eyespot.types import RankedImage, Run

if TYPE_CHECKING:
    from eyespot.search.calibrated import Calibrated, Calibration
    from eyespot.search.calibration import Accuracy, Cut
    from eyespot.search.judge_rerank import JudgeRerank, JudgeResult
    from eyespot.settings.search import SearchSettings
    from eyespot.types import Judgement, Note, Query


class SearchOutput(NamedTuple):
    """What is printed: the hits, what a judge said of each by its image, and more fields of the JSON.

    `sheet` holds the same hits with the numbers of a contact sheet; `column` names the numbers of a table; `why` says
    what put a hit there, by its image.
    """

    run: Run
    verdicts: Mapping[str, Mapping[str, Any]]
    header: Mapping[str, Any]
    sheet: Run
    looked: JudgeResult | None = None
    column: str = "score"
    why: Mapping[str, Sequence[Note]] = {}


@dataclass(frozen=True)
class RerankView:
    """The judge, whether it makes an order or a calibration, and the gallery whose pictures it sees."""

    settings: SearchSettings
    curve: CalibrationOptions | None
    gallery: Path

    def output(self, run: Run, query: Query, k: int | None) -> SearchOutput:
        """The first k hits after the look; None: the usual number, or all that are likely."""
        if self.settings.rerank is None:
            return SearchOutput(run, {}, {}, run)
        with judge_stage(self.settings, self.gallery) as stage:
            if self.curve is not None:
                return self.curve.output(run, query, k, stage)
            looked = stage.ask([query], run)
            tell_cost(stage, looked)
            first = _first(stage.reranked(run, looked), k or FEW)
            (hits,) = first.values()
            judgements = looked.judgements.get(query.id, {})
            verdicts = {hit.image: _verdict(judgements.get(hit.image)) for hit in hits}
            return SearchOutput(first, verdicts, _header(first), first, looked, "probability")

    def tell_plan(self, run: Run, query: Query, json: bool) -> None:
        """What the judge would judge; the most of a calibration."""
        with judge_stage(self.settings, self.gallery) as stage:
            plan = stage.plan([query], run) if self.curve is None else self.curve.of(stage).plan(query, run)
            tell_plan(self.settings, stage, plan, json)


def _first(run: Run, k: int) -> Run:
    (query,) = run
    first = Run({query: run[query][:k]})
    first.header, first.facts, first.notes = run.header, run.facts, list(run.notes)
    return first


def _header(run: Run) -> dict[str, Any]:
    names = ("judge", "depth", "served", "fingerprints", "not_accepted", "verdicts")
    return {name: run.header[name] for name in names if name in run.header}


def _verdict(judgement: Judgement | None) -> dict[str, Any]:
    """A judgement as fields of a hit."""
    if judgement is None or judgement.verdict is None:
        return {"probability": None, "judge": None}
    verdict = judgement.verdict
    more = {"grade": verdict.grade, "reason": verdict.reason or None, "refused": judgement.refused or None}
    fields = {"probability": verdict.probability, "judge": judgement.judge}
    return fields | {name: value for name, value in more.items() if value is not None}


# -- a probability for each hit -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CalibrationOptions:
    """The calibration that the command line asks for."""

    verdicts: int
    likely: float | None
    accuracy: Accuracy

    def of(self, stage: JudgeRerank) -> Calibrated:
        """The calibration by this stage's judge; `UsageError`, before any request, for what it cannot answer."""
        from eyespot.search.calibrated import Calibrated, refuse_unverified

        if self.likely is not None:
            refuse_unverified(stage.judge.name, self.accuracy)
        return Calibrated(stage, self.verdicts, self.accuracy)

    def output(self, run: Run, query: Query, k: int | None, stage: JudgeRerank) -> SearchOutput:
        """The ranking as it was with a probability for each hit; a note says how many are relevant."""
        from eyespot.search.calibrated import with_covariate

        made = with_covariate(self.of(stage)(query, run), query, stage.ledger)
        tell_cost(stage, made.result)
        if not made.verified:
            return _opinion(made, k or FEW)
        count, hits, exact = made.count, made.curve.hits, made.curve.accuracy.exact
        sentences = [
            f"{count.expected:.1f} relevant pictures are expected among the first {hits:,} (95% interval {count.low:,} "
            f"to {count.high:,}), by {len(made.curve.sample.ranks):,} verdicts"
            + ("" if exact else f" of {made.judge}, if it is right as often as --accuracy says")
        ]
        if (model := made.covariate) is not None and model.helped:
            narrowed = f"{model.answers:,} answers of {model.judge} narrowed the interval by {model.narrowed:.0%}"
            sentences[0] += f"; {narrowed}, from {model.alone.low:,} to {model.alone.high:,}"
        note(sentences[0])  # before the cut, which may not exist
        cut = None if self.likely is None else made.likely(self.likely)
        if cut is not None:
            sentences.append(
                f"of the first {cut.hits:,} a share of {cut.precision:.2f} is expected to be relevant (95% interval "
                f"{cut.low:.2f} to {cut.high:.2f})"
            )
            note(sentences[1])
        # Hits are shown down to the cut, but no more than -k.
        most = (k or FEW) if cut is None else min(k or cut.hits, cut.hits)
        return _calibrated(made, most, cut, sentences)


def calibration_options(settings: SearchSettings) -> CalibrationOptions | None:
    """The calibration, or None without `calibrate`; `UsageError` for an accuracy that is none."""
    if settings.calibrate is None:
        return None
    from eyespot.search.calibration import Accuracy

    shares = Accuracy()
    if settings.accuracy is not None:
        try:
            sensitivity, specificity, *counts = (float(part) for part in settings.accuracy.split(","))
            relevant, irrelevant = map(int, counts) if counts else (None, None)
        except ValueError:
            raise SettingsConflict(
                "{accuracy} takes two shares, as in 0.9,0.85, or with the numbers of pictures they were measured on, "
                "as in 0.9,0.85,50,50, not {given!r}",
                given=settings.accuracy,
            ) from None
        shares = Accuracy(sensitivity, specificity, relevant, irrelevant)
    return CalibrationOptions(settings.calibrate, settings.likely, shares)


def _opinion(made: Calibration, k: int) -> SearchOutput:
    """The ranking as it was, with the judge's verdicts on the hits that it looked at."""
    opinion = made.opinion
    sentence = (
        f"{opinion.judge} says yes (0.5 or more) to {opinion.yes:,} of the {opinion.looked:,} pictures it looked at, "
        f"spread over the first {opinion.among:,}; that is its opinion, and how many are relevant is not known: judge "
        "yourself (--rerank person:NAME), or say how often it is right on labelled pictures (--accuracy)"
    )
    note(sentence)
    first, sheet = _first(made.run, k), _first(made.run, k)
    (hits,) = first.values()
    sheet.notes = [f"{sentence}.", *first.notes]
    verdicts = {hit.image: _own_verdict(made, hit.image) for hit in hits}
    return SearchOutput(first, verdicts, {**_header(first), "opinion": opinion._asdict()}, sheet, made.result)


def _calibrated(made: Calibration, k: int, cut: Cut | None, sentences: Sequence[str]) -> SearchOutput:
    """The first k hits, each with its probability and, where the judge looked, its verdict."""
    first, probability = _first(made.run, k), made.probability
    (hits,) = first.values()
    sheet = Run({made.query: [RankedImage(hit.image, probability.get(hit.image, 0.0)) for hit in hits]})
    sheet.header, sheet.facts = first.header, first.facts
    sheet.notes = [f"{'; '.join(sentences)}. Each number is a probability.", *first.notes]
    verdicts = {}
    for hit in hits:
        own = probability.get(hit.image)
        verdicts[hit.image] = {"probability": None if own is None else round(own, 4), **_own_verdict(made, hit.image)}
    count, accuracy = made.count, made.curve.accuracy
    numbers = {"relevant": {"among": made.curve.hits, **count._asdict(), "expected": round(count.expected, 2)}}
    numbers |= {} if accuracy.exact else {"accuracy": asdict(accuracy)}
    numbers |= {} if made.covariate is None else {"covariate": made.covariate.as_json()}
    numbers |= {} if cut is None else {"likely": cut._asdict()}
    return SearchOutput(first, verdicts, {**_header(first), **numbers}, sheet, made.result, "probability")


def _own_verdict(made: Calibration, image: str) -> dict[str, Any]:
    """The judge's answer on a hit as `verdict`, where it looked."""
    fields = _verdict(made.result.judgements.get(made.query, {}).get(image))
    probability = fields.pop("probability")
    return fields if fields["judge"] is None else {"verdict": probability, **fields}
