"""One curve for all groups: what the groups that are judged most say of those that are judged least.

The log-odds of a unit are those of its cell of log-rank in the whole ranking, as in the product's curve, plus a level
of its group and a deviation of its group in this half-decade of ranks; how far levels and deviations go is drawn too.
Each is drawn in turn, exactly on a grid, given the others (Gibbs), in several chains at once.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from eyespot.search.calibration import Accuracy, _chain

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

CHAINS, BURN = 20, 10
REPEATS = 4  # draws of the counts in each turn: cheaper than a turn, and the first says least of the tails
LEAST = -60  # of log-weights: smaller numbers are slow to add and are never drawn
SCALED = 3  # cells between two scalings of their probabilities
WIDE = 28  # steps of log-odds that a level or a deviation may go either way: 7
OFFSETS = np.arange(-WIDE, WIDE + 1)
LEVELS = np.array([0.1, 0.5, 1.0, 2.0, 3.0])  # what the standard deviation of levels may be, alike
DEVIATIONS, BELIEFS = np.array([0.05, 0.4, 0.8, 1.6, 3.0]), np.array([0.1, 0.15, 0.25, 0.25, 0.25])


def shared_draws(
    tables: tuple[Ints, Ints, Ints], *, hits: int, accuracy: Accuracy, draws: int, rng: np.random.Generator
) -> Ints:
    """Draws of the relevant units of each group, (groups, draws), of a ranking of so many hits.

    The tables, (groups, cells) each, say how many units there are, how many are judged, and how many of these have a
    yes.
    """
    units, judged, yes = tables
    group, cell = np.nonzero(units)  # the places that hold units, (places,) each
    free, first = (units - judged)[group, cell], np.unique(group, return_index=True)[1]
    sampler = _Sampler(judged, yes, hits, accuracy)
    for _ in range(BURN):
        sampler.turn(rng)
    found = []
    for _ in range(-(-draws // (REPEATS * CHAINS))):
        sampler.turn(rng, REPEATS)
        share = sampler.shares(group, cell)  # (repeats · chains, places)
        relevant = rng.binomial(free, share)
        if accuracy.exact:
            relevant += yes[group, cell]
        else:
            for count, right in ((yes, accuracy.sensitivity), (judged - yes, 1 - accuracy.sensitivity)):
                wrong = 1 - accuracy.specificity if count is yes else accuracy.specificity
                true = right * share / (right * share + wrong * (1 - share))
                relevant += rng.binomial(count[group, cell], true)
        counts = np.zeros((len(share), len(units)), np.int64)
        counts[:, group[first]] = np.add.reduceat(relevant, first, axis=1)
        found.append(counts)
    return np.concatenate(found).T[:, :draws]


def _drawn(logs: Reals, rng: np.random.Generator) -> Ints:
    """A draw from each last axis, by its log-weights."""
    return _picked(_weights(logs), rng.random(logs.shape[:-1], np.float32))


def _weights(logs: Reals) -> Reals:
    """From log-weights, 1 the largest of each last axis."""
    return np.asarray(np.exp(np.maximum(logs - logs.max(axis=-1, keepdims=True), LEAST)))


def _picked(weights: Reals, uniform: NDArray[np.float32]) -> Ints:
    """The place on each last axis that a number below 1 falls on, by weight."""
    rising = np.add.accumulate(weights, axis=-1)
    return np.asarray((rising > (uniform * rising[..., -1])[..., None]).argmax(axis=-1))


class _Sums:
    """Adds up the places (n,) of each offset that they act on; `seen` are the offsets that have any, most places first.

    A matrix would do the same in several threads, which wait for each other where the processor is busy.
    """

    def __init__(self, acts: Ints) -> None:
        order = np.argsort(acts, kind="stable")
        seen, first, places = np.unique(acts[order], return_index=True, return_counts=True)
        most = np.argsort(-places, kind="stable")
        self.seen, first, places = seen[most], first[most], places[most]
        self.rounds = [
            order[first[places > at] + at] for at in range(places.max(initial=1))
        ]  # of each offset one place

    def of(self, tables: Reals, start: Ints) -> Reals:
        """Tables (n, rows, size), of each place its row of `start` (chains, n), added up: (chains, seen, size)."""
        total: Reals = tables[self.rounds[0], start[:, self.rounds[0]]]
        for places in self.rounds[1:]:
            total[:, : len(places)] += tables[places, start[:, places]]
        return total


class _Offsets:
    """One kind of offset of the log-odds (levels, or deviations): where it acts, how far it may go, where it is."""

    def __init__(self, acts: Ints, size: int, spreads: Reals, beliefs: Reals) -> None:
        self.acts, self.sums = acts, _Sums(acts)  # (n,) the offset of each judged place
        self.unseen = np.setdiff1d(np.arange(size), acts)
        logs = (
            -0.5 * (OFFSETS[None] * _chain.STEP / spreads[:, None]) ** 2
        )  # of each offset under each, (spreads, offsets)
        self.prior: Reals = np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)), np.float32)
        self.beliefs = np.log(beliefs)  # (spreads,)
        self.value = np.zeros((1, CHAINS, size), np.int64)  # (draws, chains, offsets), in steps
        self.spread = np.ones(CHAINS, np.int64)

    @property
    def here(self) -> Ints:
        """The offset of each judged place in the first draw, (chains, n)."""
        here: Ints = self.value[0][:, self.acts]
        return here

    def draw(self, tables: Reals, start: Ints, rng: np.random.Generator, draws: int = 1) -> None:
        """Draw them by how likely the verdicts of each place are at each offset, in `tables` from its `start` on."""
        prior = self.prior[self.spread][:, None]
        self.value = np.empty((draws, *self.value.shape[1:]), np.int64)
        for which, logs in ((self.sums.seen, self.sums.of(tables, start) + prior), (self.unseen, prior)):
            uniform = rng.random((draws, CHAINS, len(which)), np.float32)
            self.value[..., which] = OFFSETS[_picked(_weights(logs), uniform)]
        far = self.prior[:, self.value[0][:, self.sums.seen] + WIDE].sum(axis=2)  # (spreads, chains)
        self.spread = _drawn(far.T + self.beliefs, rng)


class _Sampler:
    """The state of all chains, and one turn of it."""

    def __init__(self, judged: Ints, yes: Ints, hits: int, accuracy: Accuracy) -> None:
        group, cell = np.nonzero(judged)  # the places that were judged, (n,) each
        self.steps = np.stack(_chain.grid(hits).steps).astype(np.float32)  # (slopes, states, states)
        self.back = self.steps.transpose(0, 2, 1).copy()  # (slopes, to, from)
        self.states = self.steps.shape[1]
        odds = -np.log(hits) + _chain.STEP * np.arange(-2 * WIDE, self.states + 2 * WIDE)
        self.share = 1 / (1 + np.exp(-odds))
        positive = accuracy.sensitivity * self.share + (1 - accuracy.specificity) * (1 - self.share)
        counts = yes[group, cell][:, None], (judged - yes)[group, cell][:, None]
        logs = (counts[0] * np.log(positive) + counts[1] * np.log1p(-positive)).astype(np.float32)  # (n, odds)
        self.of_states, self.of_offsets = (sliding_window_view(logs, n, axis=1) for n in (self.states, len(OFFSETS)))
        self.cell, self.cells, groups = cell, _Sums(cell), len(judged)
        self.bands = np.arange(judged.shape[1]) * 2 // _chain.CELLS_PER_DECADE
        bands = int(self.bands[-1]) + 1
        self.level = _Offsets(group, groups, LEVELS, np.full(len(LEVELS), 1 / len(LEVELS)))
        self.deviation = _Offsets(group * bands + self.bands[cell], groups * bands, DEVIATIONS, BELIEFS)
        self.theta = np.zeros((CHAINS, judged.shape[1]), np.int64)

    def turn(self, rng: np.random.Generator, draws: int = 1) -> None:
        """Draw the curve, then each group's level, then the deviations, these several times."""
        logs: Reals = np.zeros((CHAINS, len(self.bands), self.states), np.float32)
        logs[:, self.cells.seen] = self.cells.of(self.of_states, self.level.here + self.deviation.here + 2 * WIDE)
        self.theta = self._curve(logs, rng)
        theta = self.theta[:, self.cell] + WIDE
        self.level.draw(self.of_offsets, theta + self.deviation.here, rng)
        self.deviation.draw(self.of_offsets, theta + self.level.here, rng, draws)

    def _curve(self, logs: Reals, rng: np.random.Generator) -> Ints:
        """The state of each cell, (chains, cells), by forward filtering and backward sampling; logs of its verdicts."""
        like = _weights(logs.transpose(1, 0, 2))  # (cells, chains, states)
        known = np.empty((len(like), len(self.steps), CHAINS, self.states), np.float32)
        before = np.full(known.shape[1:], 1 / self.states, np.float32)
        evidence = np.log([slope.belief for slope in _chain.SLOPES])[:, None] + np.zeros(CHAINS)
        for cell, seen in enumerate(like):
            np.multiply(before, seen, out=known[cell])
            if cell % SCALED == 0 or cell == len(like) - 1:  # before small numbers get too small
                total = known[cell].sum(axis=2, keepdims=True)
                evidence += np.log(total[..., 0])
                known[cell] /= total
            before = known[cell] @ self.steps
        slope, chain = _drawn(evidence.T, rng), np.arange(CHAINS)
        known, uniform = known[:, slope, chain], rng.random((len(known), CHAINS), np.float32)  # (cells, chains, states)
        drawn, weight = np.empty((len(known), CHAINS), np.int64), known[-1]
        for cell in range(len(known) - 1, -1, -1):
            drawn[cell] = _picked(weight, uniform[cell])
            weight = known[cell - 1] * self.back[slope, drawn[cell]]
        return drawn.T

    def shares(self, group: Ints, cell: Ints) -> Reals:
        """The share in these cells of these groups, (draws · chains, places); what was not judged by its prior."""
        fixed = self.theta[:, cell] + self.level.value[0][:, group] + 2 * WIDE  # (chains, places)
        band = group * (self.bands[-1] + 1) + self.bands[cell]
        return np.asarray(self.share[fixed + self.deviation.value[:, :, band]].reshape(-1, len(cell)))
