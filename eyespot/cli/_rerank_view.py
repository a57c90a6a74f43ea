"""What a judge's look makes of a search: nothing where there is none, another order, or a probability for each hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.cli._judge_options import JudgeOptions, tell_cost
from eyespot.cli.console import note
from eyespot.types import RankedImage, Run, UsageError

if TYPE_CHECKING:
    from eyespot.search.calibrated import Calibrated, Calibration
    from eyespot.search.calibration import Accuracy, Cut
    from eyespot.search.judge_rerank import JudgeRerank, JudgeResult
    from eyespot.types import Judgement, Query

FEW = 20  # pictures, unless more are asked for


class SearchOutput(NamedTuple):
    """What is printed: hits, what was said of each by its image (None: nobody was asked), and what JSON tells besides.

    `sheet` holds the same hits with the numbers that stand in a contact sheet, `column` those of a table.
    """

    run: Run
    said: Mapping[str, Mapping[str, Any]] | None
    told: Mapping[str, Any]
    sheet: Run
    looked: JudgeResult | None = None
    column: str = "score"


@dataclass(frozen=True)
class RerankView:
    """Who looks, whether for an order or for a calibration, and at whose pictures."""

    second: JudgeOptions | None
    curve: CalibrationOptions | None
    gallery: Path

    def shown(self, found: Run, asked: Query, k: int | None) -> SearchOutput:
        """The first k hits after the look; None: the usual number, or all that are likely."""
        if self.second is None:
            return SearchOutput(found, None, {}, found)
        with self.second.stage(self.gallery) as stage:
            if self.curve is not None:
                return self.curve.shown(found, asked, k, stage)
            return _reranked(found, asked, k or FEW, stage)

    def tell_plan(self, found: Run, asked: Query, json: bool) -> None:
        """What the judge would be asked; of a calibration at most."""
        assert self.second is not None
        with self.second.stage(self.gallery) as stage:
            plan = stage.plan([asked], found) if self.curve is None else self.curve.of(stage).plan(asked, found)
            self.second.tell_plan(stage, plan, json)


# -- another order ------------------------------------------------------------------------------------------


def _reranked(found: Run, asked: Query, k: int, stage: JudgeRerank) -> SearchOutput:
    """The first k in the judge's order, with what it said."""
    looked = stage.look([asked], found)
    tell_cost(stage, looked)
    first = _first(stage.reranked(found, looked), k)
    (hits,) = first.values()
    said = {hit.image: _verdict(looked.judgements.get(asked.id, {}).get(hit.image)) for hit in hits}
    return SearchOutput(first, said, _header(first), first, looked, "probability")


def _first(run: Run, k: int) -> Run:
    (query,) = run
    first = Run({query: run[query][:k]})
    first.header, first.facts, first.notes = run.header, run.facts, list(run.notes)
    return first


def _header(run: Run) -> dict[str, Any]:
    return {name: run.header[name] for name in ("judge", "depth", "verdicts")}


def _verdict(judgement: Judgement | None) -> dict[str, Any]:
    """What a judge said of a hit."""
    verdict = None if judgement is None else judgement.verdict
    if judgement is None or verdict is None:
        return {"probability": None, "judge": None}
    more = {"grade": verdict.grade, "reason": verdict.reason or None, "refused": judgement.refused or None}
    told = {"probability": verdict.probability, "judge": judgement.judge}
    return told | {name: value for name, value in more.items() if value is not None}


# -- a probability for each hit -----------------------------------------------------------------------------


def calibrate_option() -> Any:
    """`--calibrate`, in verdicts."""
    return typer.Option(
        None,
        metavar="N",
        min=1,
        help="Judge N of the first --depth hits, and estimate how probable it is that each is relevant.",
    )


def likely_option() -> Any:
    """`--likely`, an expected precision."""
    return typer.Option(
        None, metavar="P", min=0, max=1, help="With --calibrate: show only hits down to an expected precision of P."
    )


def accuracy_option() -> Any:
    """`--accuracy`, two shares and, where they were measured, two counts."""
    return typer.Option(
        None,
        metavar="SENS,SPEC[,N,M]",
        help="With --calibrate: how often the judge is right on relevant and on other pictures, measured on N and M.",
        show_default="a person: always; a model: not known",
    )


@dataclass(frozen=True)
class CalibrationOptions:
    """What of a calibration was asked for on the command line."""

    verdicts: int
    likely: float | None
    accuracy: Accuracy

    def of(self, stage: JudgeRerank) -> Calibrated:
        """The same by this stage's judge; `UsageError` before anything is asked that it could not answer."""
        from eyespot.search.calibrated import Calibrated, refuse_unverified

        if self.likely is not None:
            refuse_unverified(stage.judge.name, self.accuracy)
        return Calibrated(stage, self.verdicts, self.accuracy)

    def shown(self, found: Run, asked: Query, k: int | None, stage: JudgeRerank) -> SearchOutput:
        """The ranking as it was with a probability for each hit; how many are relevant is told."""
        made = self.of(stage)(asked, found)
        tell_cost(stage, made.looked)
        if not made.verified:
            return _opinion(made, k or FEW)
        count, hits, exact = made.count, made.curve.hits, made.curve.accuracy.exact
        text = (
            f"{count.expected:.1f} relevant pictures are expected among the first {hits:,} (95% interval "
            f"{count.low:,} to "
            f"{count.high:,}), by {len(made.curve.sample.ranks):,} verdicts"
        ) + ("" if exact else f" of {made.judge}, if it is right as often as --accuracy says")
        sentences = [text]
        note(sentences[0])
        cut = None if self.likely is None else made.likely(self.likely)
        if cut is not None:
            down = (
                f"of the first {cut.hits:,} a share of {cut.precision:.2f} is expected to be relevant (95% interval "
                + (f"{cut.low:.2f} to {cut.high:.2f})")
            )
            sentences.append(down)
            note(sentences[1])
        return _calibrated(made, _shown_of(made, k, cut), cut, sentences)


def calibrating(verdicts: int | None, likely: float | None, accuracy: str | None) -> CalibrationOptions | None:
    """The calibration that was asked for, or None; `UsageError` for options that would say something of none."""
    if verdicts is None:
        for option, value in (("--likely", likely), ("--accuracy", accuracy)):
            if value is not None:
                raise UsageError(f"{option} is about a calibration; ask for one, as in --calibrate 30")
        return None
    return CalibrationOptions(verdicts, likely, _accuracy(accuracy))


def _accuracy(told: str | None) -> Accuracy:
    from eyespot.search.calibration import Accuracy

    if told is None:
        return Accuracy()
    try:
        sensitivity, specificity, *counts = (float(part) for part in told.split(","))
        relevant, irrelevant = map(int, counts) if counts else (None, None)
    except ValueError:
        raise UsageError(
            f"--accuracy takes two shares, as in 0.9,0.85, or with the numbers of pictures they were measured on, as "
            f"in 0.9,0.85,50,50, not {told!r}"
        ) from None
    return Accuracy(sensitivity, specificity, relevant, irrelevant)


def _shown_of(made: Calibration, k: int | None, cut: Cut | None) -> int:
    """How many hits to show: down to the cut, but no more than were asked for."""
    return (k or FEW) if cut is None else min(k or cut.hits, cut.hits)


def _opinion(made: Calibration, k: int) -> SearchOutput:
    """The ranking as it was, with the judge's word where it looked."""
    opinion = made.opinion
    sentence = (
        f"{opinion.judge} says yes (0.5 or more) to {opinion.yes:,} of the {opinion.looked:,} pictures it looked at, "
        f"spread over the first {opinion.among:,}; that is its opinion, and how many are relevant is not known: judge "
        "yourself (--rerank person:NAME), or say how often it is right on labelled pictures (--accuracy)"
    )
    note(sentence)
    first = _first(made.run, k)
    (hits,) = first.values()
    sheet = _first(made.run, k)
    sheet.notes = [f"{sentence}.", *first.notes]
    said = {hit.image: _word(made, hit.image) for hit in hits}
    return SearchOutput(first, said, {**_header(first), "opinion": made.opinion._asdict()}, sheet, made.looked)


def _calibrated(made: Calibration, k: int, cut: Cut | None, sentences: Sequence[str]) -> SearchOutput:
    first, probability = _first(made.run, k), made.probability
    (hits,) = first.values()
    sheet = Run({made.query: [RankedImage(hit.image, probability.get(hit.image, 0.0)) for hit in hits]})
    sheet.header, sheet.facts = first.header, first.facts
    sheet.notes = [f"{'; '.join(sentences)}. Each number is a probability.", *first.notes]
    said = {hit.image: _probable(made, hit.image, probability.get(hit.image)) for hit in hits}
    return SearchOutput(first, said, {**_header(first), **_numbers(made, cut)}, sheet, made.looked, "probability")


def _probable(made: Calibration, image: str, probability: float | None) -> dict[str, Any]:
    """A hit's own probability, and the judge's word on it where it looked."""
    return {"probability": None if probability is None else round(probability, 4), **_word(made, image)}


def _word(made: Calibration, image: str) -> dict[str, Any]:
    """The judge's word on a hit as `verdict`, where it looked."""
    said = _verdict(made.looked.judgements.get(made.query, {}).get(image))
    own = said.pop("probability")
    return said if said["judge"] is None else {"verdict": own, **said}


def _numbers(made: Calibration, cut: Cut | None) -> dict[str, Any]:
    count, accuracy = made.count, made.curve.accuracy
    told = {"relevant": {"among": made.curve.hits, **count._asdict(), "expected": round(count.expected, 2)}}
    told |= {} if accuracy.exact else {"accuracy": asdict(accuracy)}
    return told | ({} if cut is None else {"likely": cut._asdict()})
