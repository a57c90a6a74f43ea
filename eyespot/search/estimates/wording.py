"""An estimate in words: what limits it, what would help, and the paragraph for a paper."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.search.calibration import Accuracy
    from eyespot.search.estimates.pairs import GroupPair
    from eyespot.search.estimates.planning import GroupPlan

PHOTOS_ONLY = "share of the photos, not of the animals"
FEWEST = 8  # looks in a group before it has an interval
SKIPPED = 0.1  # of a group's looks without a verdict: from here on advice names it
CLAIMED = {
    "pointwise": "two groups were called different if the 95 % interval of the difference of their rates excluded 0",
    "agreement": "two groups were called different if the 95 % interval of the difference of their rates excluded 0 "
    "and a curve shared over the groups gave its side 99 %, and 95 % to all sides that were called at once",
    "strict": "two groups were called different by Holm's rule over all pairs, at 5 % together",
}


@dataclass(frozen=True)
class Study:
    """The question and its photos: what a methods paragraph names besides the design."""

    photos: int
    query: str
    of: str = ""  # the gallery, its digest and filter
    ranked_by: str = ""
    column: str = "group"
    units: str = "photos counted one by one"
    judges: tuple[str, ...] = ()
    agreement: str = ""


def advice(found: Any) -> tuple[str, ...]:
    """What limits the answer, and what would make it better."""
    lines = [text for text in (few_looks(found.plan, len(found.plan.units)), PHOTOS_ONLY) if text]
    for one in found.groups.values():
        if one.beyond:
            lines.append(
                f"{one.label}: nobody looked below rank {one.units - one.beyond:,}: of {one.beyond:,} photos there, "
                "any number may be relevant, so the share is at least what is shown"
            )
        planned = one.judged + one.skipped
        if planned and one.skipped / planned > SKIPPED:
            lines.append(f"{one.label}: {one.skipped} of {planned} looks have no verdict and count as not looked at")
        if one.basis == "own" and one.units > 2000 and one.judged >= 20 and one.yes <= 1:
            lines.append(f"{one.label}: so few among so many take a better query or filter, not more looks")
    lines += [text for pair in found.pairs if (text := _more_looks(found, pair))]
    if any(one.beyond for one in found.groups.values()) and not found.pairs:
        lines.append("shares are not compared: the groups were looked at to different parts of their ranks")
    return tuple(lines)


def unfinished(why: str, judged: int, planned: GroupPlan, used: int) -> str:
    """How an estimate ended before all its looks were judged, how it goes on, and what it rests on."""
    basis = f"the answer is of the first {used}" if used else f"the first answer comes after {planned.rounds[0]}"
    return f"after {judged} of {len(planned.units)} looks {why}; nothing is lost, and {basis}"


def few_looks(plan: Any, looks: int) -> str:
    """What helps where this number of looks leaves groups without an interval; empty where it is enough."""
    sizes = zip(plan.labels, plan.sizes.clip(max=plan.depth).tolist(), strict=True)
    groups = [size for label, size in sizes if size and label in (plan.compare or plan.labels)]
    needed = sum(min(size, FEWEST) for size in groups)
    if not looks or looks >= needed:
        return ""
    return (
        f"{looks} looks are too few for {len(groups)} groups, an interval takes {FEWEST} in each: judge {needed} "
        "photos or more, or take coarser groups"
    )


def pair_sentence(found: Any, pair: GroupPair) -> str:
    """What is claimed of two groups, with the relevant photos seen in each; the empty text where nothing is."""
    if not pair.apart_together:
        return ""
    first, second = found.groups[pair.first], found.groups[pair.second]
    more, less = (first, second) if pair.apart_together > 0 else (second, first)
    low, high = sorted(abs(end) for end in (pair.difference.low, pair.difference.high))
    return (
        f"{more.label} has more than {less.label}: by {low:.0%} to {high:.0%} of the photos ({more.yes} relevant seen "
        f"in {more.judged} looks, {less.yes} in {less.judged})"
    )


def _more_looks(found: Any, pair: GroupPair) -> str:
    if pair.needed is None:
        return ""
    low, high = pair.needed
    names = f"{pair.first} and {pair.second}"
    if low == inf:
        return f"{names}: no number of looks at these photos can tell them apart; it takes more photos"
    looks = sum(found.groups[label].judged for label in (pair.first, pair.second))
    least = max(round(low), looks)
    ends = f"{least} or more" if high == inf else f"{least} to {max(round(high), least)}"
    return f"{names}: telling them apart takes {ends} looks in both together, by what is seen so far"


def methods(found: Any) -> str:
    """The paragraph for a paper, every number filled in; empty while nothing is judged that it could be about."""
    if not len(found.plan.units):
        return ""
    plan, groups, units = found.plan, list(found.groups.values()), len(found.plan.group)
    study = found.study or Study(units, "the query")
    judged, skipped = sum(one.judged for one in groups), sum(one.skipped for one in groups)
    joined = f" ({units:,} after joining copies and bursts)" if study.photos != units else ""
    by = f" ({study.ranked_by})" if study.ranked_by else ""
    each = [one.judged + one.skipped for one in groups if one.units and one.label in (plan.compare or found.groups)]
    spread = " to ".join(map(str, sorted({min(each), max(each)})))
    who = ", ".join(study.judges) or "one observer"
    named = ", all from {} and {}, which were named before".format(*plan.compare) if plan.compare else ""
    depth = "" if plan.depth is None else f" Only the first {plan.depth:,} ranks of each group were sampled."
    borrowed = [str(one.label) for one in groups if one.basis == "borrowed"]
    curves = "[own ranks]" if not borrowed else f"[levels and shapes shared over groups for {', '.join(borrowed)}]"
    rounds = f" The result was read after {len(plan.rounds)} rounds at most." if len(plan.rounds) > 1 else ""
    known = sum(bool(one.basis) for one in groups)
    bands = f", and bands simultaneous over {known} groups" if known > 1 else ""
    claimed = f"; {CLAIMED[found.rule]}" if found.pairs else ""
    return (
        f"We ranked {study.photos:,} photos{joined}{study.of} by their similarity to {study.query!r}{by}. Within each "
        f"{study.column}, photos were stratified by rank (two strata per decade); {len(plan.units):,} were drawn at "
        f"random without replacement, {spread} per {study.column} by stratum size to the power {plan.power:g} (seed "
        f"{plan.seed}){named}, and judged by {who}, blind to {study.column}, place, date and rank; {judged:,} got "
        f"a verdict, {skipped:,} could not be judged.{rounds}{depth}{study.agreement} The share of photos showing it "
        f"was estimated per {study.column} from the draw by a Bayesian curve of relevance along log-rank that may stay,"
        f" fall, jump or rise {curves}, with 95 % intervals{bands}{claimed}. {_correction(found.accuracy)} Shares are "
        "of photos, not of animals; they do not correct for photographers' choice of what to photograph "
        f"({study.units}). Data: the files of looks and design."
    )


def _correction(accuracy: Accuracy) -> str:
    if accuracy.exact:
        return "The intervals cover sampling of photos and chance in their number, not the observer's errors."
    of = "" if accuracy.relevant is None else f", measured on {accuracy.relevant} and {accuracy.irrelevant} photos"
    return (
        f"Verdicts were corrected for a sensitivity of {accuracy.sensitivity:g} and a specificity of "
        f"{accuracy.specificity:g}{of}, taken to be the same in all groups."
    )


def group_note(one: Any) -> str:
    """How many of the units that were looked at are relevant, and how many there are."""
    return f"{one.yes} of {one.judged} / {one.units:,}"


def group_line(one: Any, width: int = 12) -> str:
    """One line of a table on the terminal; labels take `width` letters."""
    shown = one.basis and (one.yes or one.basis == "whole")  # of none seen there is a most, and no middle
    share = f"{one.share.median:6.1%}  {one.share.low:6.1%} to {one.share.high:6.1%}" if shown else ""
    return f"{one.label!s:>{width}}  {share:26}  {one.sentence}{' (borrowed)' if one.basis == 'borrowed' else ''}"
