"""From photos to an answer: a gallery's photos ranked, drawn, judged blind and counted by group.

found = eyespot.open("robins").estimate("a robin eating fruit", by="month", judge="person:ada")
found.table, found.plot(), found.compare(1, 7), found.methods
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.ledger.judgements import PERSON, Judgements, query_digest
from eyespot.llms.budget import BudgetSpent
from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.places import read_again
from eyespot.search.calibrated import fullest_answers, made_ranking, refuse_unverified
from eyespot.search.calibration import Accuracy
from eyespot.search.estimates.charts import page, png, svg
from eyespot.search.estimates.estimating import GroupedEstimate, estimate
from eyespot.search.estimates.frame import Frame, stored_frame
from eyespot.search.estimates.planning import UNKNOWN, GroupPlan, plan_groups
from eyespot.search.estimates.wording import Study, unfinished
from eyespot.search.hit_pairs import HitPairs
from eyespot.search.judge_rerank import JudgeRerank, judge_named, points
from eyespot.search.parts import accuracy_named, judge_stage, ledger_of
from eyespot.search.query_language import format_query
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import rows_of, write_csv
from eyespot.types import (
    Judgement,
    Note,
    Progress,
    Query,
    RankedImage,
    Run,
    UsageError,
    Verdict,
    codes_of,
    no_progress,
    quantity,
)

if TYPE_CHECKING:
    from eyespot.settings.estimate import EstimateSettings

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

YES = 0.5  # and more
DOUBT = "doubt"  # why a person's no is none: nobody could tell
SHOWN = 1600  # pixels of the longer side of a photo that a person judges
RECHECKED = 1  # the turn of the second verdict on a photo
DESIGN, LOOKS = "design.json", "looks.csv"
LABELS = {"group", "first", "second"}  # columns of groups, which a parquet file has as texts
ENDS = {  # the columns of a table with the ends of a group's intervals
    **{f"relevant_{end}": f"relevant.{end}" for end in ("median", "low", "high")},
    **{"share": "share.median", "share_low": "share.low", "share_high": "share.high"},
    **{"together_low": "together.low", "together_high": "together.high"},
    **{"rate": "rate.median", "rate_low": "rate.low", "rate_high": "rate.high"},
}


class BlindPairs(HitPairs):
    """Photos to judge under no rank, so that a ledger says of none where it stood."""

    @property
    def ranks(self) -> dict[tuple[str, str], int]:
        """None at all."""
        return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectionEstimate(GroupedEstimate):
    """The answer of a gallery, of the photos of `frame`, with the `verdicts` (looks,) on the units of its plan.

    `choices` are what it depends on besides; `waiting` are the photos of planned looks that have no verdict, in order.
    """

    frame: Frame
    study: Study
    verdicts: Reals
    choices: dict[str, Any]
    waiting: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: GroupPlan, verdicts: Reals, choices: dict[str, Any], **rest: Any) -> CollectionEstimate:
        """The answer that verdicts on a plan give, with what else the fields are."""
        how = {name: choices[name] for name in ("borrow", "strict")}
        answers = choices["answers"] and np.array([np.nan if one is None else one for one in choices["answers"]])
        found = estimate(plan, verdicts, accuracy=Accuracy(*choices["accuracy"]), answers=answers, **how)
        return cls(**{**vars(found), "verdicts": verdicts, "choices": choices, **rest})

    @property
    def advice(self) -> tuple[str, ...]:
        """What limits the answer, and what would make it better."""
        judges = " and ".join(name.removeprefix(PERSON) for name in self.study.judges)
        whose = () if self.study.agreement else (f"what {judges} accepts is relevant; --recheck 20 says how steadily",)
        return (*self.notes, *whose, *super().advice)

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """A row for each group, by the names of the CSV file."""
        photos, rows = np.array(self.frame.photos), []
        for members, one in zip(self.plan.members, self.groups.values(), strict=True):
            row = {"group": one.label, "units": one.units, "photos": int(photos[members].sum())}
            row |= {"looked_at": one.judged, "yes": one.yes, "basis": one.basis, "effort": one.effort}
            rows.append(row | {name: attrgetter(path)(one) if one.basis else None for name, path in ENDS.items()})
        return rows

    @property
    def pair_table(self) -> list[dict[str, Any]]:
        """A row for each pair of groups."""
        rows = []
        for pair in self.pairs:
            row: dict[str, Any] = {"first": pair.first, "second": pair.second}
            for name in ("difference", "ratio"):
                row |= {f"{name}_{end}": value for end, value in vars(getattr(pair, name)).items()}
            low, high = pair.needed or (None, None)
            row |= {"apart": pair.apart, "apart_together": pair.apart_together}
            rows.append(row | {"more_looks_low": low, "more_looks_high": high})
        return rows

    def as_json(self) -> dict[str, Any]:
        """What programs read."""
        fields: dict[str, Any] = {
            "groups": self.table,
            "pairs": self.pair_table,
            "advice": self.advice,
            "methods": self.methods or None,
        }
        fields |= {"codes": codes_of(self.notes), "misdated": self.frame.misdated}
        return {**fields, "missing": len(self.waiting), "design": self.plan.as_json()["strata"]}

    def plot(self) -> str:
        """The figure: shares with intervals over the effort, as an <svg> element."""
        return svg(self, bool(self.choices["together"]))

    def write_figure(self, place: Path) -> None:
        """The figure as SVG or PNG, by the ending of the file."""
        if place.suffix.lower() not in (".svg", ".png"):
            raise UsageError(f"a figure is an .svg or a .png, not {place.name}")
        drawing = png(self.plot()) if place.suffix.lower() == ".png" else self.plot().encode()
        write_whole(place, lambda file: file.write(drawing))

    def write_table(self, place: Path) -> None:
        """The groups as CSV or parquet, the pairs beside them as NAME-pairs, and what `again` makes the answer of."""
        beside = place.with_name(f"{place.stem}-pairs{place.suffix}")
        for path, rows in ((place, self.table), (beside, self.pair_table)):
            if place.suffix == ".parquet":
                texts = [row | {name: str(row[name]) for name in LABELS & row.keys()} for row in rows]
                write_whole(path, partial(pq.write_table, pa.Table.from_pylist(texts)))
            else:
                write_csv(path, [list(rows[0]) if rows else [], *(row.values() for row in rows)])
        self.write_data(place)

    def write_html(self, place: Path) -> None:
        """The page with figures, tables and the methods paragraph, and the files of which it is made again."""
        write_whole(place, lambda file: file.write(page(self).encode()))
        self.write_data(place)

    def write_data(self, place: Path) -> None:
        """Beside `answer.html` `answer-looks.csv` and `answer-design.json`, of which `again` makes the same answer."""
        plan = self.plan
        design = {"study": vars(self.study), "frame": vars(self.frame), "choices": self.choices, "plan": plan.as_json()}
        stated_in, looks = _data_of(place)
        write_whole(stated_in, lambda file: file.write(json.dumps(design).encode()))
        rows: list[list[Any]] = [["look", "round", "id", "group", "rank", "verdict"]]
        round_of = np.searchsorted(plan.rounds, np.arange(len(plan.units)), side="right") + 1
        for at, (unit, verdict) in enumerate(zip(plan.units.tolist(), self.verdicts, strict=True)):
            label, rank = plan.labels[plan.group[unit]], int(plan.ranks[unit])
            stated = "" if np.isnan(verdict) else int(verdict)
            rows.append([at + 1, int(round_of[at]), self.frame.ids[unit], label, rank, stated])
        write_csv(looks, rows)


def _data_of(place: Path) -> tuple[Path, Path]:
    """Where the design and the looks of an answer lie: beside its page or table."""
    return place.with_name(f"{place.stem}-{DESIGN}"), place.with_name(f"{place.stem}-{LOOKS}")


def again(place: str | Path) -> CollectionEstimate:
    """The answer whose page or table this is, made again to the digit of its design and looks beside it."""
    stated_in, looks = _data_of(Path(place))
    if not stated_in.is_file():
        raise UsageError(f"there is no {stated_in}; name the page or table of the answer, such as answer.html")
    design = json.loads(stated_in.read_text("utf-8"))
    stated = [row["verdict"] for _, row in rows_of(looks)]
    verdicts = np.array([np.nan if one in (None, "") else float(one) for one in stated])
    study = Study(**design["study"] | {"judges": tuple(design["study"]["judges"])})
    plan, frame = GroupPlan.of_json(design["plan"]), Frame(**design["frame"])
    return CollectionEstimate.of(plan, verdicts, design["choices"], frame=frame, study=study)


# -- judging ----------------------------------------------------------------------------------------------------


def estimate_collection(
    collection: Any, query: Query, settings: EstimateSettings, judge: Any = None, progress: Progress = no_progress
) -> CollectionEstimate:
    """The answer for a gallery; `judge` is a function in place of the judge that the settings name.

    Verdicts are in the ledger one by one, so that a run that ends early goes on where it was; until a round is whole
    its verdicts are not counted. Raises `UsageError` for a model without an accuracy, and columns and groups that are
    not there.
    """
    accuracy = accuracy_named(settings.accuracy)
    with _stage(collection, settings, judge, progress) as stage:
        if judge is None:
            refuse_unverified(stage.judge.name, accuracy)
        frame, plan = _planned(collection, query, settings)
        ids = [frame.ids[at] for at in plan.units]
        with _pictures(collection, stage, query, ids) as pairs:
            result = stage.ask_pairs(pairs)
        known = {id: result.verdict(query.id, id) for id in ids}
        waiting = tuple(id for id in ids if known[id] is None)
        planned = plan
        plan = plan.until(ids.index(waiting[0])) if result.stopped and waiting else plan
        verdicts = np.array([_yes(known[id]) for id in ids[: len(plan.units)]])
        places = _to_recheck(plan, verdicts, settings.recheck)
        first = {frame.ids[plan.units[at]]: float(verdicts[at]) for at in places}
        agreement = _rechecked(collection, stage, query, first) if first else ""
        every = dict(zip(ids, verdicts.tolist(), strict=False))
        agreement += _overlap(stage.ledger, query, stage.judge.name, every)
        answers = _answers(query, frame, stage.ledger) if stage.judge.name.startswith(PERSON) else None
        study = _study(collection, query, settings, frame, judges=(stage.judge.name,), agreement=agreement)
    notes = _notes(collection, frame)
    if waiting:
        why = result.stopped or f"{len(waiting)} have no verdict; run the same line again to judge them"
        notes = [unfinished(why, len(ids) - len(waiting), planned, len(plan.units)), *notes]
    rest = {"frame": frame, "study": study, "waiting": waiting, "notes": tuple(notes)}
    return CollectionEstimate.of(plan, verdicts, _choices(settings, accuracy, answers), **rest)


def estimate_of_verdicts(
    collection: Any, query: Query, settings: EstimateSettings, ledger: Judgements, asked: tuple[str, str]
) -> CollectionEstimate:
    """The answer by the verdicts of a person that are in the ledger, up to the last round that is whole.

    `asked` is the person and the digest of the question. Before a round is whole no group has an interval.
    """
    frame, plan = _planned(collection, query, settings)
    ids = [frame.ids[at] for at in plan.units]
    known = ledger.known(query_digest(query), ids, *asked)
    there = {id: one.verdict for id, one in known.items() if one.verdict is not None}
    waiting = tuple(id for id in ids if id not in there)
    plan = plan.until(ids.index(waiting[0])) if waiting else plan
    verdicts = np.array([_yes(there[id]) for id in ids[: len(plan.units)]])
    agreement = _overlap(ledger, query, asked[0], dict(zip(ids, verdicts.tolist(), strict=False)))
    study = _study(collection, query, settings, frame, judges=(asked[0],), agreement=agreement)
    notes = _notes(collection, frame)
    rest = {"frame": frame, "study": study, "waiting": waiting, "notes": notes}
    return CollectionEstimate.of(plan, verdicts, _choices(settings, accuracy_named(None), None), **rest)


def _choices(settings: EstimateSettings, accuracy: Accuracy, answers: list[float | None] | None) -> dict[str, Any]:
    """What an answer depends on besides the plan and the verdicts, as a file holds it."""
    choices = {name: getattr(settings, name) for name in ("borrow", "strict", "together")}
    return {**choices, "accuracy": list(vars(accuracy).values()), "answers": answers}


@contextmanager
def _stage(collection: Any, settings: EstimateSettings, judge: Any, progress: Progress) -> Iterator[JudgeRerank]:
    if judge is None:
        with judge_stage(settings.judging, collection.gallery.path, progress) as stage:
            yield stage
        return
    with Judgements(ledger_of(settings.ledger, collection.gallery.path)) as ledger:
        yield JudgeRerank(judge_named(judge), ledger)


def _planned(collection: Any, query: Query, settings: EstimateSettings) -> tuple[Frame, GroupPlan]:
    """The photos of a question as they were ranked when it was first put, and which of them are looked at."""
    folder = ledger_of(settings.ledger, collection.gallery.path).parent / "estimates"
    frame = stored_frame(collection, query, settings, folder)
    labels = {str(label): label for label in [*frame.order, *frame.groups, *frame.beside]}
    compare = [labels.get(name, name) for name in settings.named_groups]
    how: dict[str, Any] = {"order": frame.order, "compare": compare, "depth": settings.depth, "beside": frame.beside}
    return frame, plan_groups(frame.groups, settings.looks, settings.seed, **how)


@contextmanager
def _pictures(collection: Any, stage: JudgeRerank, query: Query, ids: Sequence[str]) -> Iterator[BlindPairs]:
    """These photos to judge, in this order; people see copies without names, dates and places."""
    rows = collection.view.rows_by_id(ids)
    facts = {str(one["id"]): one for one in collection.view.facts(rows[rows >= 0].tolist())}
    with TemporaryDirectory(prefix="eyespot-") as folder:
        if stage.judge.name.startswith(PERSON):
            judged = stage.ledger.known(query_digest(query), ids, stage.judge.name, stage.judge.prompt)
            for number, id in enumerate(ids, 1):
                if id in facts and id not in judged:
                    copy, photo = Path(folder) / f"{number:04}.jpg", str(facts[id]["path"] or "")
                    facts[id] = {**facts[id], "path": None}  # as it stays where the photo cannot be read
                    with suppress(OSError, BadPicture):
                        copy.write_bytes(thumbnail(read_again(photo), SHOWN))
                        facts[id]["path"] = str(copy)
        heads = {query: {at: RankedImage(id, 0.0) for at, id in enumerate(ids, 1)}}
        yield BlindPairs(heads, facts)


def _yes(verdict: Verdict | None) -> float:
    """1 or 0; NaN for a photo without a verdict, and where a person could not tell."""
    return np.nan if verdict is None or verdict.reason == DOUBT else float(points(verdict) >= YES)


def _answers(query: Query, frame: Frame, ledger: Judgements) -> list[float | None] | None:
    """What a model answered on these photos, for it to narrow what a person says; one that ranked them has no say."""
    ranked = Run({})
    ranked.header = {"encoder": frame.ranked_by.partition(" ")[0]}
    found = fullest_answers(query, frame.ids, ranked, ledger)
    if found is None or made_ranking(found[0], ranked):
        return None
    return [None if np.isnan(one) else float(one) for one in found[1]]


def _rechecked(collection: Any, stage: JudgeRerank, query: Query, first: Mapping[str, float]) -> str:
    """How often a second look agrees with the `first` verdicts, by their photos; in words."""
    judge, ledger = stage.judge, stage.ledger
    given = query_digest(query), list(first), judge.name, judge.prompt
    known = ledger.known(*given, RECHECKED)
    with _pictures(collection, stage, query, list(first)) as pictures, suppress(BudgetSpent):  # the same line goes on
        for answer in judge.judge([pair for pair in pictures.pairs if pair.image not in known]):
            how: dict[str, Any] = {"failure": answer.failure, "at": time.time(), "spent": answer.spent}
            one = Judgement(given[0], answer.pair.image, judge.name, judge.prompt, answer.verdict, **how)
            ledger.record([one], RECHECKED)
    both, same = _agreed(first, ledger.known(*given, RECHECKED))
    return f" A second look at {quantity(both, 'photo')}, blind, agreed with the first in {same}." if both else ""


def _overlap(ledger: Judgements, query: Query, judge: str, verdicts: Mapping[str, float]) -> str:
    """How often other people, who judged some of these photos without their rank too, say the same; in words."""
    people = ledger.people(query_digest(query), None, list(verdicts))
    texts = []
    for name, judgements in people.items():
        both, same = _agreed(verdicts, {id: one for id, one in judgements.items() if one.rank is None})
        if both and name.startswith(PERSON) and name != judge:
            texts.append(f" {name} judged {both} of these photos too, and agreed in {same}.")
    return "".join(texts)


def _agreed(first: Mapping[str, float], second: Mapping[str, Judgement]) -> tuple[int, int]:
    """How many photos have a yes or no of both, and how many of them the same."""
    pairs = [(first[id], _yes(one.verdict)) for id, one in second.items()]
    both = [one == other for one, other in pairs if not np.isnan(one + other)]
    return len(both), sum(both)


def _to_recheck(plan: GroupPlan, verdicts: Reals, number: int) -> Ints:
    """Places of so many looks, one of each group and verdict in turn, at random."""
    mixed = np.random.default_rng([plan.seed, 4]).permutation(np.flatnonzero(~np.isnan(verdicts)))
    kinds = [(int(plan.group[plan.units[at]]), float(verdicts[at])) for at in mixed]
    turn = [kinds[:at].count(kind) for at, kind in enumerate(kinds)]
    return mixed[np.argsort(turn, kind="stable")][:number]


def _study(collection: Any, query: Query, settings: EstimateSettings, frame: Frame, **rest: Any) -> Study:
    names = settings.frame.keys() - {"by", "unit", "of"}
    given: dict[str, Any] = {name: one for name, one in settings.frame.items() if one and name in names}
    texts = {name: "; ".join(map(str, one)) if isinstance(one, list | tuple) else one for name, one in given.items()}
    where = ", ".join(name if one is True else f"{name} {one}" for name, one in texts.items())
    of = f" of {collection.gallery.path.resolve().parent.name} ({where or 'all photos'}; ranked {frame.at})"
    units = f"one count for each {settings.unit}" if settings.unit else "copies and bursts counted once"
    if not settings.unit and len(frame.ids) == sum(frame.photos):
        units = "photos counted one by one"
    if settings.of:
        units += f"; shares are of {len(frame.groups) + len(frame.beside):,} photos: those ranked, and {settings.of}"
    return Study(sum(frame.photos), format_query(query), of, frame.ranked_by, settings.by or "group", units, **rest)


def _notes(collection: Any, frame: Frame) -> list[str]:
    notes = []
    if (now := int(collection.view.live.sum())) != frame.live:
        grown = f"the gallery had {quantity(frame.live, 'photo')} when it was ranked ({frame.at}) and has {now:,} now"
        notes.append(f"{grown}; the answer is of those; --fresh ranks it anew")
    if frame.misdated:
        dates = quantity(frame.misdated, "date is", "dates are")
        text = f"{dates} of a clock that nobody set, or of the future; their photos are in {UNKNOWN}"
        notes.append(Note("misdated", text))
    return notes
