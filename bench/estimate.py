"""Does a 95 % interval for the share of each group hold the true share, and how much narrower is it than a plain one?

Worlds of known truth are ranked, looked at by plan, judged, and estimated, many times with fresh draws. Real ones: the
lists of INQUIRE-Search that experts marked, two seasons of a species and diet each, and milkweed by month. Made ones:
groups of unlike size and share, a head of look-alikes, groups without any, twelve months, judges that err at a stated
rate, and a model whose answers are right, or wrong in one group.

The peer is a plain random sample of each group with as many looks, and the beta-binomial interval of Jeffreys' prior. A
ratio is our mean width over the peer's; the goal is .9 over all worlds, with a coverage of .93 in each and of .87 in
every group. `claims` is the share of runs with a wrong claim on a pair of groups of the same share (goal: .07 over
twelve equal months), `power` the share of pairs that differ by .1 or more and are told apart.

    python bench/estimate.py [--quick] [--json] [--only WORLD] [--first SEED] [--runs N] [--figures docs/research]
"""

from __future__ import annotations

import csv
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bench.harness import SHARED, Command, Measurement, Reals, say
from eyespot.search.calibration import Accuracy
from eyespot.search.estimates import GroupedEstimate, estimate, plan_groups
from eyespot.search.estimates.charts import png, svg

Ints = NDArray[np.int64]

PEER = "a plain random sample"
LOOKS = (60, 120, 240)
LISTS = SHARED / "data" / "inquire_search"
LOOKED_AT = {"cs1": 500, "cs4": 200}  # rows of a list: what stands below has no mark because nobody looked
BIRDS = {
    "Turdus_migratorius_Fruit": "robin, fruit",
    "Turdus_migratorius_Invertebrate": "robin, invertebrates",
    "Melanerpes_carolinus_Seed": "woodpecker, seeds",
    "Melanerpes_carolinus_Fruit": "woodpecker, fruit",
    "Melanerpes_carolinus_Invertebrate": "woodpecker, invertebrates",
}
COVERED, LEAST, WIDTH, WRONG = 0.93, 0.87, 0.9, 0.07
EFFORT = (60, 70, 120, 220, 420, 520, 560, 480, 300, 130, 70, 50)
SEASON = 0.01 + 0.34 * np.exp(1.8 * (np.cos(2 * np.pi * (np.arange(12) - 6) / 12) - 1))


class World(NamedTuple):
    """Units in rank order: the group of each, whether it is relevant, and what a model answers, if any does."""

    group: Ints
    relevant: Ints
    answers: Reals | None = None


class Kind(NamedTuple):
    """How a world is made for a seed, and how often its judge is right."""

    make: Callable[[np.random.Generator], World]
    judge: Accuracy = Accuracy()


@dataclass(frozen=True, kw_only=True)
class Covered(Measurement):
    """Shares of runs, over all groups with an interval."""

    covered: float
    lowest: float  # group
    together: float  # runs in which the bands of all groups hold
    claims: float  # runs with a wrong claim
    power: float  # of pairs that differ by .1 or more

    @property
    def met(self) -> bool:
        """A standard error of each share is allowed for."""
        error = (0.05 * 0.95 / self.n) ** 0.5
        held = self.covered >= COVERED - error and self.lowest >= LEAST - 2 * error and self.together >= COVERED - error
        return bool(held and self.claims <= WRONG + 2 * error)

    @property
    def verdict(self) -> str:
        """The end of the line for people."""
        return f"; goal {COVERED}, {LEAST} and {WRONG}: {'met' if self.met else 'MISSED'}"

    def __str__(self) -> str:
        return (
            f"{self.name:<44}: covers {self.covered:.3f} (lowest group {self.lowest:.2f}, all at once "
            f"{self.together:.3f}), width {self.ratio:.2f}; wrong claims {self.claims:.2f}, power {self.power:.2f}"
            f"{self.verdict}"
        )


# -- worlds -----------------------------------------------------------------------------------------------------------


def made(sizes: tuple[int, ...], shares: Reals, *, heads: int | None = None, model: str = "") -> Kind:
    """Groups with exactly these shares, ranked by a score with some information.

    In the group `heads` a quarter of what is irrelevant stands above all. A `model` is right in 90 of 100 cases, or
    answers at random in the first group ("blind").
    """

    def make(rng: np.random.Generator) -> World:
        group, relevant = np.repeat(np.arange(len(sizes)), sizes), np.zeros(sum(sizes), np.int64)
        for at, share in enumerate(shares):
            relevant[rng.choice(np.flatnonzero(group == at), round(share * sizes[at]), replace=False)] = 1
        score = 1.5 * relevant + rng.standard_normal(len(relevant))
        if heads is not None:
            score += 3.5 * ((group == heads) & (relevant == 0) & (rng.random(len(relevant)) < 0.25))
        order = np.argsort(-score)
        group, relevant = group[order], relevant[order]
        if not model:
            return World(group, relevant)
        right = rng.random(len(group)) < np.where((group == 0) & (model == "blind"), 0.5, 0.9)
        return World(group, relevant, np.where(right, relevant, 1 - relevant) * 0.8 + 0.1)

    return Kind(make)


def erring(kind: Kind, rate: float) -> Kind:
    """The same world under a judge that errs so often either way, which is stated."""
    return kind._replace(judge=Accuracy(1 - rate, 1 - rate))


MADE = {
    "shares .10 and .20": made((1500, 500), np.array([0.1, 0.2])),
    "shares .05 and .15": made((800, 800), np.array([0.05, 0.15])),
    "the same share": made((1500, 500), np.array([0.15, 0.15])),
    "look-alikes head one group": made((700, 600), np.array([0.2, 0.3]), heads=1),
    "six groups, three without any": made((400,) * 6, np.array([0.1, 0.15, 0.05, 0, 0, 0])),
    "twelve months": made(EFFORT, SEASON),
    "twelve equal months": made((200,) * 12, np.full(12, 0.15)),
    "a judge errs in 5 %": erring(made((1500, 500), np.array([0.1, 0.2])), 0.05),
    "a judge errs in 15 %": erring(made((1500, 500), np.array([0.1, 0.2])), 0.15),
    "a model is right": made((1500, 500), np.array([0.1, 0.2]), model="right"),
    "a model is blind in one group": made((1500, 500), np.array([0.1, 0.2]), model="blind"),
}


def tables() -> dict[str, dict[str, list[dict[str, str]]]]:
    """The rows that the authors looked at, by list and by season or stage; none without the data."""
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    for path in sorted(LISTS.glob("*.csv")):
        text = path.read_text(encoding="utf-8")
        rows = list(csv.DictReader(text.splitlines(), delimiter=";" if ";" in text.partition("\n")[0] else ","))
        stem, _, season = path.stem.rpartition("_")
        found.setdefault(stem, {})[season] = rows[: LOOKED_AT[path.name[:3]]]
    return found


def merged(lists: dict[str, list[dict[str, str]]]) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of two seasons in one ranking, and the season of each."""
    both = sorted((at, season, row) for season, rows in lists.items() for at, row in enumerate(rows))
    return [row for _, _, row in both], [season for _, season, _ in both]


def marked() -> dict[str, Kind]:
    """The real lists: seasons of a species and diet merged by rank, milkweed by month; none without the data."""
    found: dict[str, Kind] = {}
    for stem, lists in tables().items():
        if stem.startswith("cs4"):
            found |= {
                f"{stem} {stage} by month": _real(rows, [row["month"] for row in rows]) for stage, rows in lists.items()
            }
        else:
            found[stem] = _real(*merged(lists))
    return {name: kind for name, kind in found.items() if kind.make(np.random.default_rng(0)).relevant.sum() >= 3}


def seasons() -> dict[str, tuple[GroupedEstimate, list[float]]]:
    """What two birds eat, of 240 looks: the estimate, and the share of each season by all marks."""
    found = {}
    for stem, lists in tables().items():
        if stem.startswith("cs1"):
            rows, groups = merged(lists)
            plan = plan_groups(groups, 240, 0)
            estimated = estimate(plan, [_is_marked(rows[at]) for at in plan.units])
            found[BIRDS[stem[4:]]] = estimated, [float(np.mean([*map(_is_marked, one)])) for one in lists.values()]
    return {name: found[name] for name in BIRDS.values() if name in found}


def season_rows() -> list[str]:
    """The rows of the table of seasons in docs/research/estimates.md."""
    found = []
    for name, (estimated, counted) in seasons().items():
        cells = [name]
        for one, share in zip(estimated.groups.values(), counted, strict=True):
            low, high = (round(100 * end) for end in (one.share.low, one.share.high))
            seen = f"{one.share.median:.0%} ({low} to {high})" if one.yes else f"none seen in 120: at most {high} %"
            cells += [seen.replace("% (", " % ("), f"{share:.0%}".replace("%", " %")]
        found.append(f"| {' | '.join([*cells, 'yes' if estimated.pairs[0].apart else 'no'])} |")
    return found


def draw_seasons(place: Path) -> None:
    """Three of the rows as bars, side by side."""
    drawn = [name for name in seasons() if name in ("robin, fruit", "robin, invertebrates", "woodpecker, seeds")]
    bars = [Image.open(BytesIO(png(svg(seasons()[name][0]), 2))) for name in drawn]
    joined = Image.new("RGB", (sum(one.width for one in bars), bars[0].height + 40), "white")
    left, pen = 0, ImageDraw.Draw(joined)
    for name, one in zip(drawn, bars, strict=True):
        joined.paste(one, (left, 40))
        pen.text((left + 20, 10), name, "#222", ImageFont.load_default(26))
        left += one.width
    joined.save(place)


def milkweed() -> dict[str, dict[int, tuple[str, str]]]:
    """Flowering and seeds by month from 120 looks each: for each month our estimate and what all marks say, in words.

    None without the data.
    """
    found: dict[str, dict[int, tuple[str, str]]] = {}
    for path in sorted(LISTS.glob("cs4_*.csv")):
        estimated, rows = milkweed_estimate(path)
        by_month = found.setdefault(path.stem.rpartition("_")[2], {})
        for month, one in estimated.groups.items():
            marks = [row["marked"] == "1" for row in rows if int(row["month"]) == month]
            by_month[month] = one.sentence, f"{sum(marks)} of {len(marks)}"
    return found


def milkweed_estimate(path: Path) -> tuple[GroupedEstimate, list[dict[str, str]]]:
    """The estimate of a list from 120 looks, and the rows that its authors looked at."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))[: LOOKED_AT["cs4"]]
    plan = plan_groups([int(one["month"]) for one in rows], 120, 0)
    return estimate(plan, [rows[at]["marked"] == "1" for at in plan.units]), rows


def _real(rows: list[dict[str, str]], groups: list[str]) -> Kind:
    _, group = np.unique(groups, return_inverse=True)
    relevant = np.array([_is_marked(row) for row in rows]).astype(np.int64)
    return Kind(lambda _rng: World(group, relevant))


def _is_marked(row: dict[str, str]) -> bool:
    return row["marked"].lower() in ("1", "true")


# -- the measurement --------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """One estimate: for each group with an interval whether it holds, its width and the peer's; claims on pairs."""

    held: dict[int, bool]
    together: bool
    width: float
    peer: float
    wrong: bool
    told: list[bool]


def ran(kind: Kind, looks: int, seed: int) -> Run:
    """A world judged by plan with one seed."""
    rng = np.random.default_rng([seed, looks])
    world = kind.make(rng)
    plan = plan_groups(world.group, looks, seed)
    relevant = world.relevant[plan.units] == 1
    said = rng.random(len(relevant)) < np.where(relevant, kind.judge.sensitivity, 1 - kind.judge.specificity)
    found = estimate(plan, said, accuracy=kind.judge, answers=world.answers)
    sizes = np.bincount(world.group)
    shares = np.bincount(world.group, world.relevant) / sizes
    known = {label: one for label, one in found.groups.items() if one.basis}
    near = 1e-9
    held = {label: one.share.low - near <= shares[label] <= one.share.high + near for label, one in known.items()}
    bands = all(one.together.low - near <= shares[label] <= one.together.high + near for label, one in known.items())
    width = float(np.mean([one.share.high - one.share.low for one in known.values()]))
    peer = float(np.mean([plain(int(sizes[label]), one.judged, shares[label], rng) for label, one in known.items()]))
    return Run(held, bands, width, peer, *_claims(found, shares))


def _claims(found: GroupedEstimate, shares: Reals) -> tuple[bool, list[bool]]:
    gaps = [(pair.apart_together, shares[pair.first] - shares[pair.second]) for pair in found.pairs]
    wrong = any(sign and (abs(gap) < 0.001 or sign * gap < 0) for sign, gap in gaps)
    return wrong, [bool(sign) for sign, gap in gaps if abs(gap) >= 0.1 - 1e-9]


def plain(size: int, looks: int, share: float, rng: np.random.Generator) -> float:
    """The width of the interval of a plain random sample, of the share."""
    relevant = round(size * share)
    yes = int(rng.hypergeometric(relevant, size - relevant, min(looks, size)))
    rest = rng.binomial(size - looks, rng.beta(yes + 0.5, looks - yes + 0.5, 1000))
    low, high = np.percentile(rest, [2.5, 97.5])
    return float(high - low) / size


def measured(name: str, kind: Kind, looks: int, seeds: range) -> Covered:
    """The world with these seeds."""
    runs, n = [ran(kind, looks, seed) for seed in seeds], len(seeds)
    labels = sorted({label for run in runs for label in run.held})
    each = [float(np.mean([run.held[label] for run in runs if label in run.held])) for label in labels]
    ratios = np.array([run.width / run.peer for run in runs if run.peer])
    told = [one for run in runs for one in run.told]
    ratio = float(np.mean([run.width for run in runs]) / np.mean([run.peer for run in runs]))
    low, high = np.percentile(ratios, [10, 90]).tolist()
    return Covered(
        f"{name}, {looks} looks", ratio, PEER, low, high, n, None,
        covered=float(np.mean(each)), lowest=min(each), together=float(np.mean([run.together for run in runs])),
        claims=float(np.mean([run.wrong for run in runs])), power=float(np.mean(told)) if told else float("nan"),
    )  # fmt: skip


def measurements(options: Namespace) -> Iterator[Measurement]:
    """Each world with each number of looks, then the mean width over all."""
    if options.figures:
        for path in sorted(LISTS.glob("cs4_*.csv")):
            drawing = svg(milkweed_estimate(path)[0])
            (options.figures / f"{path.stem.removeprefix('cs4_')}.png").write_bytes(png(drawing, 2))
        draw_seasons(options.figures / "estimates.png")
        return
    if not LISTS.exists():
        say(f"without the lists of INQUIRE-Search: {LISTS} is missing")
    found: list[Covered] = []
    n = options.runs // 10 if options.quick else options.runs
    worlds = {name: kind for name, kind in {**MADE, **marked()}.items() if options.only in name}
    for name, kind in worlds.items():
        for looks in LOOKS:
            few = looks / 12 < 8 and "month" in name  # below eight looks no group has an interval
            if few or looks >= len(kind.make(np.random.default_rng(0)).group):  # all of it is looked at
                continue
            found.append(measured(name, kind, looks, range(options.first, options.first + n)))
            yield found[-1]
    # The peer knows the truth, and has no model
    ratios = [one.ratio for one in found if not one.name.startswith(("a judge", "a model"))]
    if ratios and not options.only:
        ratio = float(np.mean(ratios))
        yield Measurement("estimate/width over all worlds", ratio, PEER, ratio, ratio, len(ratios), WIDTH)


if __name__ == "__main__":
    command = Command(__doc__, quick="a tenth of the runs")
    command.add_argument(
        "--figures", type=Path, metavar="FOLDER", help="write the figures of the real lists here, and end"
    )
    command.add_argument("--only", default="", metavar="WORLD", help="only worlds with this in their names")
    command.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (default 0)")
    command.add_argument("--runs", type=int, default=200, metavar="N", help="seeds for each world (default 200)")
    command.run(measurements)
