"""From photos to an answer: a gallery's photos ranked, drawn, judged blind and counted by group.

found = eyespot.open("robins").estimate("a robin eating fruit", by="month", judge="person:ada")
found.table, found.plot(), found.compare(1, 7), found.methods
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.ledger.judgements import PERSON, Judgements, query_digest
from eyespot.llms.budget import BudgetSpent
from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.places import read_again
from eyespot.search.calibrated import fullest_answers, made_ranking, refuse_unverified
from eyespot.search.calibration import Accuracy
from eyespot.search.estimates.charts import page, svg
from eyespot.search.estimates.estimating import GroupedEstimate, GroupEstimate, estimate
from eyespot.search.estimates.frame import Frame, stored_frame
from eyespot.search.estimates.pairs import GroupPair
from eyespot.search.estimates.planning import GroupPlan, plan_groups
from eyespot.search.estimates.wording import Study, methods
from eyespot.search.hit_pairs import HitPairs
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, judge_named, points
from eyespot.search.parts import accuracy_named, judge_stage, ledger_of
from eyespot.search.query_language import format_query
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import rows_of, write_csv
from eyespot.types import EyespotError, Judgement, Pair, Query, RankedImage, Run

if TYPE_CHECKING:
    from eyespot.settings.estimate import EstimateSettings

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

YES = 0.5  # and more
DOUBT = "doubt"  # why a person's no is none: nobody could tell
SHOWN = 1600  # pixels of the longer side of a photo that a person judges
RECHECKED = 1  # the turn of the second verdict on a photo
DESIGN, LOOKS = "design.json", "looks.csv"


class BlindPairs(HitPairs):
    """Photos to judge under no rank, so that a ledger says of none where it stood."""

    @property
    def ranks(self) -> dict[tuple[str, str], int]:
        """None at all."""
        return {}


@dataclass(frozen=True, eq=False)
class CollectionEstimate:
    """The answer of a gallery: `found` by group, of the photos of `frame`, with the verdicts on `found.plan.units`.

    `missing` looks were planned and are not there; `agreement` is that of a second look, in words.
    """

    found: GroupedEstimate
    frame: Frame
    study: Study
    verdicts: Reals
    choices: dict[str, Any]
    missing: int = 0
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> dict[Any, GroupEstimate]:
        """The groups by their labels."""
        return self.found.groups

    @property
    def pairs(self) -> tuple[GroupPair, ...]:
        """All pairs of groups that can be compared."""
        return self.found.pairs

    @property
    def methods(self) -> str:
        """The paragraph for a paper."""
        return methods(self.found, self.study)

    @property
    def advice(self) -> tuple[str, ...]:
        """What limits the answer, and what would make it better."""
        judges = " and ".join(name.removeprefix(PERSON) for name in self.study.judges)
        whose = () if self.study.agreement else (f"relevant is what {judges} accepts; --recheck 20 says how steadily",)
        return (*self.notes, *whose, *self.found.advice)

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """A row for each group, by the names of the CSV file."""
        plan, photos = self.found.plan, np.array(self.frame.photos)
        rows = []
        for at, one in enumerate(self.groups.values()):
            ends = {f"relevant_{end}": getattr(one.relevant, end) for end in ("median", "low", "high")}
            ends["share"] = one.share.median
            ends |= {f"share_{end}": getattr(one.share, end) for end in ("low", "high")}
            ends |= {f"together_{end}": getattr(one.together, end) for end in ("low", "high")}
            known = ends if one.basis else dict.fromkeys(ends)
            head = {"group": one.label, "units": one.units, "photos": int(photos[plan.members[at]].sum())}
            rows.append(head | {"looked_at": one.judged, "yes": one.yes, "basis": one.basis} | known)
        return rows

    @property
    def pair_table(self) -> list[dict[str, Any]]:
        """A row for each pair of groups."""
        names = ("median", "low", "high")
        rows = []
        for pair in self.pairs:
            row: dict[str, Any] = {"first": pair.first, "second": pair.second}
            row |= {f"difference_{name}": getattr(pair.difference, name) for name in names}
            row |= {f"ratio_{name}": getattr(pair.ratio, name) for name in names}
            low, high = pair.needed or (None, None)
            row |= {"apart": pair.apart, "apart_together": pair.apart_together}
            rows.append(row | {"more_looks_low": low, "more_looks_high": high})
        return rows

    def plot(self) -> str:
        """The figure: shares with intervals over the effort, as an <svg> element."""
        return svg(self.found, bool(self.choices.get("together")))

    def compare(self, first: Any, second: Any) -> GroupPair:
        """Two groups that were named before anybody judged."""
        return self.found.compare(first, second)

    def write_csv(self, place: Path) -> None:
        """The groups, beside them the pairs as NAME-pairs.csv, and the files of which the answer is made again."""
        for path, rows in ((place, self.table), (place.with_name(f"{place.stem}-pairs.csv"), self.pair_table)):
            write_csv(path, [list(rows[0]) if rows else [], *(row.values() for row in rows)])
        self.write_data(place.parent)

    def write_html(self, place: Path) -> None:
        """The page with figures, tables and the methods paragraph, and the files of which it is made again."""
        text = page(self.found, self.study, self.advice, bool(self.choices.get("together")))
        write_whole(place, lambda file: file.write(text.encode()))
        self.write_data(place.parent)

    def write_data(self, folder: Path) -> None:
        """`looks.csv` and `design.json`, of which `again` makes the same answer to the digit."""
        plan = self.found.plan
        design = {"study": vars(self.study), "frame": vars(self.frame), "choices": self.choices, "plan": plan.as_json()}
        write_whole(folder / DESIGN, lambda file: file.write(json.dumps(design).encode()))
        rows: list[list[Any]] = [["look", "round", "id", "group", "rank", "verdict"]]
        round_of = np.searchsorted(plan.rounds, np.arange(len(plan.units)), side="right") + 1
        for at, (unit, verdict) in enumerate(zip(plan.units.tolist(), self.verdicts, strict=True)):
            label, rank = plan.labels[plan.group[unit]], int(plan.ranks[unit])
            stated = "" if np.isnan(verdict) else int(verdict)
            rows.append([at + 1, int(round_of[at]), self.frame.ids[unit], label, rank, stated])
        write_csv(folder / LOOKS, rows)


def again(folder: Path) -> CollectionEstimate:
    """The answer that was written to a folder, made again of `looks.csv` and `design.json`."""
    design = json.loads((folder / DESIGN).read_text("utf-8"))
    answers = [row["verdict"] for _line, row in rows_of(folder / LOOKS)]
    verdicts = np.array([np.nan if one in (None, "") else float(one) for one in answers])
    fields: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in design["study"].items()
    }
    study = Study(**fields)
    found = _estimated(GroupPlan.of_json(design["plan"]), verdicts, design["choices"])
    return CollectionEstimate(found, Frame(**design["frame"]), study, verdicts, design["choices"])


def _estimated(plan: GroupPlan, verdicts: Reals, choices: dict[str, Any]) -> GroupedEstimate:
    answers = choices.get("answers")
    given = None if answers is None else np.array([np.nan if one is None else one for one in answers])
    accuracy = Accuracy(*choices["accuracy"])
    how = {name: choices[name] for name in ("borrow", "strict")}
    return estimate(plan, verdicts, accuracy=accuracy, answers=given, **how)


# -- judging ----------------------------------------------------------------------------------------------------


def estimate_collection(
    collection: Any, query: Query, settings: EstimateSettings, judge: Any = None
) -> CollectionEstimate:
    """The answer for a gallery; `judge` is a function in place of the judge that the settings name.

    Verdicts are in the ledger one by one, so that a run that ends early goes on where it was; until a round is whole
    its verdicts are not counted. Raises `UsageError` for a model without an accuracy, and columns and groups that are
    not there.
    """
    accuracy = accuracy_named(settings.accuracy)
    with _stage(collection, settings, judge) as stage:
        if judge is None:
            refuse_unverified(stage.judge.name, accuracy)
        folder = ledger_of(settings.ledger, collection.gallery.path).parent / "estimates"
        frame = stored_frame(collection, query, settings, folder)
        plan = _plan(frame, settings)
        result = _judged(collection, stage, query, [frame.ids[at] for at in plan.units])
        there = [result.verdict(query.id, frame.ids[at]) is not None for at in plan.units]
        missing = there.count(False)
        plan = plan.until(there.index(False)) if result.stopped and missing else plan
        verdicts = np.array([_verdict_of(result, query, frame.ids[at]) for at in plan.units])
        agreement = ""
        if settings.recheck:
            places = _to_recheck(plan, verdicts, settings.recheck)
            first = {frame.ids[plan.units[at]]: float(verdicts[at]) for at in places}
            with _pictures(collection, stage, query, list(first)) as pairs:
                agreement = _rechecked(stage, pairs.pairs, query_digest(query), first)
        by_person = stage.judge.name.startswith(PERSON)
        choices = _choices(settings, accuracy, _answers(query, frame, stage.ledger) if by_person else None)
        study = _study(collection, query, settings, frame)
        study = replace(study, judges=(stage.judge.name,), agreement=agreement)
    found = _estimated(plan, verdicts, choices)
    notes = _notes(collection, frame, missing, result)
    return CollectionEstimate(found, frame, study, verdicts, choices, missing, notes)


@contextmanager
def _stage(collection: Any, settings: EstimateSettings, judge: Any) -> Iterator[JudgeRerank]:
    if judge is None:
        with judge_stage(settings.judging, collection.gallery.path) as stage:
            yield stage
        return
    with Judgements(ledger_of(settings.ledger, collection.gallery.path)) as ledger:
        yield JudgeRerank(judge_named(judge), ledger)


def _plan(frame: Frame, settings: EstimateSettings) -> GroupPlan:
    labels = {str(label): label for label in [*frame.order, *frame.groups]}
    compare = [labels.get(name, name) for name in settings.named_groups]
    how: dict[str, Any] = {"order": frame.order, "compare": compare, "depth": settings.depth}
    return plan_groups(frame.groups, settings.looks, settings.seed, **how)


def _judged(collection: Any, stage: JudgeRerank, query: Query, ids: Sequence[str]) -> JudgeResult:
    """The judge's word on these photos, in this order; people see copies without names, dates and places."""
    with _pictures(collection, stage, query, ids) as pairs:
        return stage.ask_pairs(pairs)


@contextmanager
def _pictures(collection: Any, stage: JudgeRerank, query: Query, ids: Sequence[str]) -> Iterator[BlindPairs]:
    rows = collection.view.rows_by_id(ids)
    facts = {str(one["id"]): one for one in collection.view.facts(rows[rows >= 0].tolist())}
    with TemporaryDirectory(prefix="eyespot-") as folder:
        if stage.judge.name.startswith(PERSON):
            judged = stage.ledger.known(query_digest(query), ids, stage.judge.name, stage.judge.prompt)
            for number, id in enumerate(ids, 1):
                if id in facts and id not in judged:
                    copied = _copied(str(facts[id]["path"] or ""), Path(folder) / f"{number:04}.jpg")
                    facts[id] = facts[id] | {"path": copied}
        heads = {query: {at: RankedImage(id, 0.0) for at, id in enumerate(ids, 1)}}
        yield BlindPairs(heads, facts)


def _copied(path: str, place: Path) -> str | None:
    """A photo as a JPEG that says nothing but what it shows; None for one that cannot be read."""
    try:
        place.write_bytes(thumbnail(read_again(path), SHOWN))
    except (OSError, BadPicture):
        return None
    return str(place)


def _verdict_of(result: JudgeResult, query: Query, id: str) -> float:
    """1 or 0; NaN for a photo without a verdict, and where a person could not tell."""
    verdict = result.verdict(query.id, id)
    return np.nan if verdict is None or verdict.reason == DOUBT else float(points(verdict) >= YES)


def _answers(query: Query, frame: Frame, ledger: Judgements) -> list[float | None] | None:
    """What a model answered on these photos, for it to narrow what a person says; one that ranked them has no say."""
    ranked = Run({})
    ranked.header = {"encoder": frame.ranked_by.partition(" ")[0]}
    found = fullest_answers(query, frame.ids, ranked, ledger)
    if found is None or made_ranking(found[0], ranked):
        return None
    return [None if np.isnan(one) else float(one) for one in found[1]]


def _rechecked(stage: JudgeRerank, pairs: Sequence[Pair], digest: str, first: Mapping[str, float]) -> str:
    """How often a second look agrees with the `first` verdicts, by their photos; in words."""
    judge, ledger = stage.judge, stage.ledger
    given = digest, list(first), judge.name, judge.prompt
    known = ledger.known(*given, RECHECKED)
    with suppress(BudgetSpent):  # who stops goes on with the same line
        for answer in judge.judge([pair for pair in pairs if pair.image not in known]):
            how: dict[str, Any] = {"failure": answer.failure, "at": time.time(), "spent": answer.spent}
            one = Judgement(digest, answer.pair.image, judge.name, judge.prompt, answer.verdict, **how)
            ledger.record([one], RECHECKED)
    second = {id: points(one.verdict) >= YES for id, one in ledger.known(*given, RECHECKED).items() if one.verdict}
    same = sum(yes == first[id] for id, yes in second.items())
    return f" A second look at {len(second)} photos, blind, agreed with the first in {same}." if second else ""


def _to_recheck(plan: GroupPlan, verdicts: Reals, number: int) -> Ints:
    """Places of so many looks, one of each group and verdict in turn, at random."""
    mixed = np.random.default_rng([plan.seed, 4]).permutation(np.flatnonzero(~np.isnan(verdicts)))
    kinds = [(int(plan.group[plan.units[at]]), float(verdicts[at])) for at in mixed]
    turn = [kinds[:at].count(kind) for at, kind in enumerate(kinds)]
    return mixed[np.argsort(turn, kind="stable")][:number]


def _choices(settings: EstimateSettings, accuracy: Accuracy, answers: list[float | None] | None) -> dict[str, Any]:
    """What the answer depends on besides the plan and the verdicts, as a file holds it."""
    given = [accuracy.sensitivity, accuracy.specificity, accuracy.relevant, accuracy.irrelevant]
    names = ("borrow", "strict", "together")
    return {**{name: getattr(settings, name) for name in names}, "accuracy": given, "answers": answers}


def _study(collection: Any, query: Query, settings: EstimateSettings, frame: Frame) -> Study:
    given: dict[str, Any] = {name: one for name, one in settings.frame.items() if one and name not in ("by", "unit")}
    texts = {name: "; ".join(map(str, one)) if isinstance(one, list | tuple) else one for name, one in given.items()}
    where = ", ".join(name if one is True else f"{name} {one}" for name, one in texts.items())
    of = f" of {collection.gallery.path.resolve().parent.name} ({where or 'all photos'}; ranked {frame.at})"
    units = f"one count for each {settings.unit}" if settings.unit else "copies and bursts counted once"
    if not settings.unit and len(frame.ids) == sum(frame.photos):
        units = "photos counted one by one"
    return Study(sum(frame.photos), format_query(query), of, frame.ranked_by, settings.by or "group", units)


def _notes(collection: Any, frame: Frame, missing: int, result: JudgeResult) -> tuple[str, ...]:
    notes = [f"{missing} looks are missing; run the same line again to go on"] if missing else []
    if (now := int(collection.view.live.sum())) != frame.live:
        grown = f"the gallery had {frame.live:,} photos when it was ranked ({frame.at}) and has {now:,} now"
        notes.append(f"{grown}; the answer is of those; --fresh ranks it anew")
    return (*notes, *([result.stopped] if result.stopped else []))


def refuse_nothing(found: CollectionEstimate) -> None:
    """`EyespotError` where no group has an interval."""
    if not any(one.basis for one in found.groups.values()):
        raise EyespotError("no group has an interval; judge more, or take coarser groups")


__all__ = ["CollectionEstimate", "again", "estimate_collection", "refuse_nothing"]
