"""What an audit says of the relevant photos that nobody has seen: drawn evenly, or by depth.

The stopping rule looks at labels, so whatever is computed from the same labels is flattered by it: a ranking is left
where it happened to be poor. The audit is drawn after the rule has fired, from the photos nobody has looked at, all
with the same chance. Given where the rule fired, the relevant photos in it follow the hypergeometric distribution and
nothing else, whatever the ranking was like; so the interval holds at the stop, for one audit whose size was fixed
before. An annotator who stops because of what the interval says draws another audit.

No other draw can promise as much for fewer looks: 15 photos hidden anywhere among millions are met only by who looks at
a fifth of them. What a ranking is worth enters as a condition: the relevant photos that nobody has seen lie no deeper
than spread evenly over the logarithm of the rank, so that each doubling of the depth holds no more of them than the one
before. Then a look near the stop covers a larger share of the logarithm than one far down, and the bound below holds
for a draw of any such shape. Ranks that were seen cover nothing: a photo that was skipped near the head, or an earlier
audit, moves no hidden photo there.

Each unseen relevant photo is met with a chance that falls with its depth; by the condition its mean is at least that of
photos spread evenly over the logarithm. A number met below its mean is then no likelier than for as many independent
photos with that chance (Hoeffding 1956; draws without replacement are still less spread, Hoeffding 1963), so the upper
end inverts a binomial tail as Clopper and Pearson (1934) do.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError

LEVEL = 0.95
HALF = 0.5  # of a find and of a miss: Jeffreys' prior
DRAWS = 4000


@dataclass(frozen=True)
class Audit:
    """A random draw from what nobody had looked at: `drawn` of `rest` photos, `relevant` of them relevant."""

    rest: int
    drawn: int
    relevant: int

    def __post_init__(self) -> None:
        if not 0 <= self.relevant <= self.drawn <= self.rest:
            numbers = f"{self.rest}, {self.drawn} and {self.relevant}"
            raise UsageError(
                f"an audit has photos, drawn and relevant ones, each at most the one before, not {numbers}"
            )

    @property
    def counts(self) -> tuple[int, int, int]:
        """Its three numbers."""
        return self.rest, self.drawn, self.relevant


class Remaining(NamedTuple):
    """How many relevant photos are still unseen: the unbiased estimate, and a 95 % interval."""

    expected: float
    low: int
    high: int

    def __str__(self) -> str:
        """The estimate if it lies in the middle half of its interval, else the interval alone."""
        quarter = (self.high - self.low) / 4
        if self.low + quarter <= self.expected <= self.high - quarter:
            return f"about {self.expected:.0f} ({self.low} to {self.high})" if self.high else "none"
        return f"{self.low} to {self.high}" if self.low else f"at most {self.high}"

    def without(self, found: int, unseen: int) -> Remaining:
        """What remains once `found` more relevant photos of the rest turned up and `unseen` are left to look at."""
        left = (min(max(number - found, 0), unseen) for number in self)
        expected, low, high = left
        return Remaining(expected, int(low), int(high))


def remaining(parts: Sequence[Audit], level: float = LEVEL) -> Remaining:
    """The relevant photos that audits of the parts of a rest did not show, with an interval at this level.

    The estimate counts each photo that was drawn as often as photos of its part it stands for (Horvitz and Thompson
    1952). One part alone has the interval of Clopper and Pearson (1934) on the hypergeometric distribution, right at
    least as often as promised. Several are added up by draws of a beta-binomial each. Their prior is Jeffreys' for all
    parts together: shared alike at the low end and by size at the high end, so that many parts without a find neither
    add up to finds nor bound what hides in the largest. Raises `UsageError` for a level outside 0 to 1.
    """
    if not 0 < level < 1:
        raise UsageError(f"a level lies between 0 and 1, not {level}")
    parts = _pooled(parts)
    if len(parts) == 1:
        return _by_tails(parts[0], level)
    expected = math.fsum(part.relevant / part.drawn * (part.rest - part.drawn) for part in parts)
    alike, whole = HALF / len(parts), sum(part.rest for part in parts)
    near = _drawn_sums(parts, [alike] * len(parts))
    wide = _drawn_sums(parts, [max(HALF * part.rest / whole, alike) for part in parts])
    tail = int((1 - level) / 2 * DRAWS)
    return Remaining(expected, int(near[tail]), int(max(near[-1 - tail], wide[-1 - tail])))


def _pooled(parts: Sequence[Audit]) -> list[Audit]:
    """Each part of which nothing was drawn goes to the one before, or the first to the next."""
    pooled: list[Audit] = []
    for part in parts:
        if pooled and not (part.drawn and pooled[-1].drawn):
            before = pooled.pop()
            part = Audit(*(one + other for one, other in zip(before.counts, part.counts, strict=True)))
        pooled.append(part)
    return pooled


def _drawn_sums(parts: Sequence[Audit], prior: Sequence[float]) -> NDArray[np.int64]:
    """Relevant photos that may remain in all parts together, (draws,), ascending."""
    rng, sums = np.random.default_rng(0), np.zeros(DRAWS, np.int64)
    for part, finds in zip(parts, prior, strict=True):
        share = rng.beta(part.relevant + finds, part.drawn - part.relevant + HALF, DRAWS)
        sums += rng.binomial(part.rest - part.drawn, share)
    return np.sort(sums)


def _by_tails(audit: Audit, level: float) -> Remaining:
    tail = (1 - level) / 2
    least, most = audit.relevant, audit.rest - (audit.drawn - audit.relevant)
    low = _first(least, most, lambda count: 1 - _at_most(audit, count, audit.relevant - 1) > tail) if least else 0
    high = _first(least, most + 1, lambda count: _at_most(audit, count, audit.relevant) <= tail) - 1
    expected = audit.relevant / audit.drawn * (audit.rest - audit.drawn) if audit.drawn else math.nan
    return Remaining(expected, low - least, max(high, low, least) - least)


def _first(start: int, end: int, holds: Callable[[int], bool]) -> int:
    """The first count from `start` for which it holds, `end` if for none; once it holds it goes on to."""
    while start < end:
        middle = (start + end) // 2
        start, end = (start, middle) if holds(middle) else (middle + 1, end)
    return start


# -- the hypergeometric distribution --------------------------------------------------------------------------------


def _at_most(audit: Audit, count: int, shown: int) -> float:
    """The chance of at most so many relevant photos in the audit where `count` of the rest are."""
    return math.fsum(_probability(audit, count, fewer) for fewer in range(shown + 1))


def _probability(audit: Audit, count: int, shown: int) -> float:
    """That `shown` relevant photos are drawn where `count` of the rest are relevant."""
    hidden = audit.drawn - shown
    if shown > count or hidden > audit.rest - count:
        return 0.0
    ways = _choices(count, shown) + _choices(audit.rest - count, hidden) - _choices(audit.rest, audit.drawn)
    return math.exp(ways)


def _choices(many: int, few: int) -> float:
    """The logarithm of the ways to choose a few of many."""
    return math.lgamma(many + 1) - math.lgamma(few + 1) - math.lgamma(many - few + 1)


Reals = NDArray[np.float64]

EVEN_SHARE = 0.2  # of an audit is drawn with the same chance everywhere
# An audit of at least such a share of the rest is drawn evenly altogether. In a rest of a few thousand photos it gives
# a useful interval; in a larger one it is worth it only where it can call a labelling complete by itself.
FEW, SHARE_OF_FEW, SHARE_OF_MANY = 3000, 0.1, 0.22
BANDS_PER_OCTAVE = 2
REACH = 16  # ranks that an audit by depth goes down, for each of its photos
TAIL = 0.05  # the share of wrong statements, at most
FALL = 3  # of the chances with the rank: a steep fall takes few looks, and leaves some far down
WORTH_A_START = 0.3  # of the logarithm of the rank: then some finds below still leave a useful bound
SPARSE = 0.5  # of the photos of a band: with fewer unseen, those are what somebody skipped
SUSPECT = 0.2  # finds that lie so deep with less than this chance contradict the condition


class Band(NamedTuple):
    """The ranks from `first` to `last`: how many photos in it were unseen, and which of them were drawn at random."""

    first: int
    last: int
    unseen: int
    drawn: list[str]

    @property
    def inclusion(self) -> float:
        """The chance with which each unseen photo of the band was drawn; nothing is missed where none was unseen."""
        return len(self.drawn) / self.unseen if self.unseen else 1.0

    @property
    def span(self) -> float:
        """How much of the logarithm of the rank its unseen photos cover: where all were seen, none can hide."""
        return math.log(self.last / max(self.first - 1, 1)) * self.unseen_share

    @property
    def unseen_share(self) -> float:
        """Of its photos."""
        return min(1.0, self.unseen / (self.last - self.first + 1))


class DepthDesign(NamedTuple):
    """How an audit was drawn: the photos that had the same chance everywhere, and the bands, the nearest first."""

    even: list[str]
    bands: list[Band]


def even_part(size: int, rest: int) -> int:
    """How many photos of an audit are drawn with the same chance everywhere."""
    share = SHARE_OF_FEW if rest <= FEW else SHARE_OF_MANY
    return size if size >= share * rest else math.ceil(EVEN_SHARE * size)


def reach(depth: int, size: int, photos: int) -> int:
    """The rank down to which an audit by depth must know the ranking."""
    return min(photos, depth + REACH * size)


def edges(depth: int, end: int, photos: int) -> list[int]:
    """The ranks after which a band ends, beginning with the labelled depth: evenly spaced down to `end`, then one."""
    count = max(1, math.ceil(BANDS_PER_OCTAVE * math.log2(end / max(depth, 1))))
    inner = np.geomspace(max(depth, 1), end, count + 1)[1:].round().astype(int).tolist()
    return sorted({depth, *inner, end, photos})


def allocated(first: Sequence[int], unseen: Sequence[int], size: int) -> list[int]:
    """How many of the unseen photos of each band to draw, so many in all where there are as many.

    Chances are 1 down to some rank and fall with a power of the rank from there: a look counts for as much of the
    logarithm as it is near, and a few looks farther down tell whether the ranking is what it is taken for.
    """
    ranks, free = np.asarray(first, float), np.asarray(unseen, float)
    if free.sum() <= size:
        return list(unseen)
    low, high = 0.0, 2 * float(ranks.max()) * max(1.0, math.sqrt(size))
    for _ in range(60):
        middle = (low + high) / 2
        enough = (free * np.minimum(1, (middle / ranks) ** FALL)).sum() >= size
        low, high = (low, middle) if enough else (middle, high)
    # Rounded together, so none is lost
    ends = np.cumsum(free * np.minimum(1, (low / ranks) ** FALL)).round().astype(int)
    return np.minimum(np.diff(ends, prepend=0), np.asarray(unseen)).tolist()  # type: ignore[no-any-return]


def draw_bands(
    ranks_of: Mapping[str, int],
    even: AbstractSet[str],
    further: int,
    rng: np.random.Generator,
    *,
    end: int,
    photos: int,
    rest: int,
) -> list[Band]:
    """Draw so many further photos besides the even ones, most of them near, and give all of them by their depth.

    `ranks_of` are the ranks of unseen photos, known as far down as `end`; `photos` are all, `rest` all that are unseen.
    """
    ranks = edges(min(ranks_of.values(), default=end + 1) - 1, end, photos)
    near: list[list[str]] = [[] for _ in ranks[1:]]
    for image, rank in ranks_of.items():
        near[bisect_left(ranks, rank) - 1].append(image)
    free = [[image for image in band if image not in even] for band in near]
    firsts = [rank + 1 for rank in ranks[:-1]]
    bands = []
    for place, count in enumerate(allocated(firsts, [len(band) for band in free], further)):
        chosen = [free[place][number] for number in rng.choice(len(free[place]), count, replace=False)] if count else []
        drawn = [image for image in near[place] if image in even] + chosen
        bands.append(Band(firsts[place], ranks[place + 1], len(near[place]), drawn))
    if photos > end:  # nobody knows the ranks down there
        deep = [image for image in even if image not in ranks_of]
        bands[-1] = bands[-1]._replace(unseen=rest - len(ranks_of), drawn=deep)
    return bands


# -- what an audit says ---------------------------------------------------------------------------------------------


def least_inclusion(bands: Sequence[Band]) -> float:
    """The mean chance of being drawn of photos spread evenly over the logarithm of the rank, or nearer, at least."""
    # A chance that rose with the depth would not be on the safe side of the condition
    inclusions = np.minimum.accumulate([band.inclusion for band in bands])
    spans = np.array([band.span for band in bands])
    return float(inclusions @ spans / spans.sum()) if spans.sum() else 1.0


def below_skipped(bands: Sequence[Band]) -> Sequence[Band]:
    """The bands without a head where most photos were seen, and those that somebody skipped there are all drawn.

    Few as they are, they cannot hold the share of the relevant photos that the condition gives to ranks so near.
    """
    complete = next((place for place, band in enumerate(bands) if band.inclusion < 1), len(bands))
    sparse = (place for place, band in enumerate(bands[:complete], 1) if band.unseen_share < SPARSE)
    return bands[max(sparse, default=0) :]


def hidden_at_most(bands: Sequence[Band], relevant: Collection[str], rest: int) -> int:
    """How many relevant photos are hidden at most (95 %) under the condition, `relevant` of those drawn being so.

    The condition speaks of all that lies below any rank, so where the head of the bands is drawn completely the bound
    may begin below it: what was found there then says nothing of the depth. Where it begins is decided by the design
    alone, before anything is found.
    """
    bands = below_skipped(bands)
    complete = next((place for place, band in enumerate(bands) if band.inclusion < 1), len(bands))
    starts = [place for place in range(1, complete + 1) if least_inclusion(bands[place:]) >= WORTH_A_START]
    below = bands[max(starts, default=0) :]
    found = sum(image in relevant for band in below for image in band.drawn)
    return most_hidden(found, least_inclusion(below), rest + found)


def most_hidden(found: int, probability: float, most: int) -> int:
    """How many relevant photos an audit has not shown at most that found some, each with at least this chance.

    There are no more than `most` with those that it found.
    """
    if probability >= 1:
        return 0
    return _first(found, most + 1, lambda count: at_most(found, count, probability) <= TAIL) - 1 - found


def too_deep(bands: Sequence[Band], relevant: Collection[str]) -> bool:
    """Whether what an audit found lies deeper than the condition lets one expect."""
    bands = below_skipped(bands)
    found = np.array([sum(image in relevant for image in band.drawn) for band in bands])
    weight = np.array([band.inclusion * band.span for band in bands])
    if not (total := int(found.sum())):
        return False
    for start in range(1, len(bands)):
        below = int(found[start:].sum())
        share = float(weight[start:].sum() / weight.sum())
        if below and 1 - at_most(below - 1, total, share) < SUSPECT:
            return True
    return False


def at_most(shown: int, count: int, probability: float) -> float:
    """The chance of at most so many out of a count, each with the same chance."""
    if shown >= count or probability <= 0:
        return 1.0
    if probability >= 1:
        return 0.0
    odds = (math.log(probability), math.log1p(-probability))
    ways = (math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(shown + 1))
    return min(1.0, math.fsum(math.exp(way + k * odds[0] + (count - k) * odds[1]) for k, way in enumerate(ways)))
