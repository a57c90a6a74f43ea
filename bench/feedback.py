"""Judged photos as the adapter: AP on the unjudged after 5, 10 and 20 clicks, by method.

43 text tasks over four sets of real photos (bench/harness/text_tasks.py) in the vectors of `starter`. Somebody judges
the first 5, 10 or 20 hits of the plain ranking, right or with 10 % errors; each method moves the search by these
clicks; AP of what was not judged (residual collection), the same photos for every method. Paired by task: the gain over
no clicks with its 95 % bootstrap interval. Tasks whose photos are all judged have no part.

Methods: "eyespot" is what the library does (the direction that tells the photos from the gallery, by a shrunken
covariance, half the words); Rocchio's formula with .75 and .15; a logistic probe against the clicks and the gallery; a
view I + βPPᵀ of the space made of the clicks, as QuARI's; SeeSaw's query alignment (arXiv 2208.06497: a logistic loss
with the terms of norm, query and neighbours). The default should never be significantly worse than no clicks, and best
on average. A ratio is the AP without clicks over that of a method; the goals are gains of .06, .09 and .12 without
errors. "Which to show next": the same number of clicks in rounds of five, on the best unjudged hits or on the
most uncertain ones, among half of the photos; AP over the other half.

    python bench/feedback.py [--quick] [--json] [--data DIR]
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from bench.harness import SHARED, Command, Floats, Measurement, Reals, say
from bench.harness.text_tasks import TextTask, photo_vectors, task_photos, tasks
from eyespot import rooms
from eyespot.curate.annotate.active import telling_first
from eyespot.search import paired_gain
from eyespot.search.feedback import moved
from eyespot.search.taught import Contrast
from eyespot.types import Encoder

CLICKS = (5, 10, 20)
GOALS = {5: 0.06, 10: 0.09, 20: 0.12}  # gains in AP
ERRORS = 0.1
SEEDS = 5  # of the errors
ROUND = 5  # clicks between two rankings
LIKE, UNLIKE = 0.75, 0.15  # Rocchio's usual weights (Manning et al. 2008, section 9.1.1)
Rows = NDArray[np.int64]
Scoring = Callable[[Floats, Rows, Rows, "Gallery"], Reals]  # query (dim,), rows of yes and of no → scores (m,)


class Gallery:
    """The vectors of all photos, and what methods compute once."""

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors
        self.contrast = Contrast(vectors)

    @cached_property
    def neighbours(self) -> Reals:
        """XᵀLX / m of the normalised Laplacian L of the graph of ten nearest photos, (dim, dim)."""
        alike = self.vectors @ self.vectors.T
        np.fill_diagonal(alike, -1)
        near = np.argsort(-alike, axis=1)[:, :10]
        edges = np.zeros(alike.shape)
        rows = np.arange(len(alike))[:, None]
        edges[rows, near] = np.exp((alike[rows, near] - 1) / 0.05)
        edges = np.maximum(edges, edges.T)
        degrees = np.sqrt(edges.sum(axis=1))
        laplacian = np.eye(len(alike)) - edges / degrees[:, None] / degrees
        return np.asarray(self.vectors.T @ laplacian @ self.vectors / len(alike))


# -- methods --------------------------------------------------------------------------------------------------------


def none(query: Floats, yes: Rows, no: Rows, gallery: Gallery) -> Reals:
    return np.asarray(gallery.vectors @ query)


def eyespot(query: Floats, yes: Rows, no: Rows, gallery: Gallery) -> Reals:
    vectors = gallery.vectors
    return np.asarray(vectors @ moved(query, vectors[yes], vectors[no], gallery.contrast))


def rocchio_vector(query: Floats, yes: Rows, no: Rows, gallery: Gallery) -> Floats:
    toward = LIKE * gallery.vectors[yes].mean(axis=0) if len(yes) else 0.0
    away = UNLIKE * gallery.vectors[no].mean(axis=0) if len(no) else 0.0
    return np.asarray(query + toward - away, np.float32)


def rocchio(query: Floats, yes: Rows, no: Rows, gallery: Gallery) -> Reals:
    return np.asarray(gallery.vectors @ rocchio_vector(query, yes, no, gallery))


def view(query: Floats, yes: Rows, no: Rows, gallery: Gallery, beta: float = 0.3) -> Reals:
    """Rocchio's query in a view that stretches the directions of the first four components of the yes."""
    if not len(yes):
        return rocchio(query, yes, no, gallery)
    own = np.linalg.svd(gallery.vectors[yes], full_matrices=False)[2][:4]
    seen = gallery.vectors + beta * (gallery.vectors @ own.T) @ own
    return np.asarray((seen @ rocchio_vector(query, yes, no, gallery)) / np.linalg.norm(seen, axis=1))


def probe(query: Floats, yes: Rows, no: Rows, gallery: Gallery) -> Reals:
    """Logistic regression that starts from the query and is drawn to it; a quarter of the gallery weighs as one no."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    centre, others = gallery.vectors.mean(axis=0), gallery.vectors[::4]
    known = np.concatenate([gallery.vectors[yes], gallery.vectors[no], others]) - centre
    labels = np.repeat([1.0, -1.0], [len(yes), len(no) + len(others)])
    weights = np.repeat([1.0, max(1, len(yes)) / len(others)], [len(yes) + len(no), len(others)])
    start = np.append(0.2 * query / (gallery.vectors @ query).std(), 0.0)

    def loss(at: Reals) -> tuple[float, Reals]:
        margins = labels * (known @ at[:-1] + at[-1])
        slopes = -weights * labels / (1 + np.exp(np.minimum(margins, 500)))
        drawn = at[:-1] - start[:-1]
        value = float((weights * np.logaddexp(0, -margins)).sum() + drawn @ drawn / 20)
        return value, np.append(known.T @ slopes + drawn / 10, slopes.sum())

    return np.asarray(gallery.vectors @ minimize(loss, start, jac=True, method="L-BFGS-B", options=STEPS).x[:-1])


def seesaw(query: Floats, yes: Rows, no: Rows, gallery: Gallery) -> Reals:
    """Query alignment: log loss + λ|w|²/2 + λ_q (1 - cos(w, query)) + λ_D w'ᵀMw' with w' of unit length."""
    from scipy.optimize import minimize

    norm, aligned, near = 1.0, 10.0, 100.0
    known = gallery.vectors[np.concatenate([yes, no])]
    labels = np.repeat([1.0, -1.0], [len(yes), len(no)])

    def loss(at: Reals) -> tuple[float, Reals]:
        margins = labels * (known @ at)
        slopes = -labels / (1 + np.exp(np.minimum(margins, 500)))
        length = np.linalg.norm(at) + 1e-9
        unit = at / length
        pulled, cosine = gallery.neighbours @ unit, float(unit @ query)
        value = np.logaddexp(0, -margins).sum() + norm * at @ at / 2 + aligned * (1 - cosine) + near * (unit @ pulled)
        slope = known.T @ slopes + norm * at - aligned * (query - cosine * unit) / length
        return float(value), slope + 2 * near * (pulled - (unit @ pulled) * unit) / length

    return np.asarray(
        gallery.vectors @ minimize(loss, query.astype(np.float64), jac=True, method="L-BFGS-B", options=STEPS).x
    )


METHODS: dict[str, Scoring] = {
    "eyespot": eyespot,
    "Rocchio": rocchio,
    "probe": probe,
    "view of the clicks": view,
    "SeeSaw": seesaw,
}
OWN = ("", "eyespot")
STEPS = {"maxiter": 100}  # of L-BFGS


# -- clicks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Gain(Measurement):
    """The mean gain in AP over no clicks, with its 95 % interval; the goal is the least gain."""

    means: tuple[float, float]  # without clicks and with
    interval: tuple[float, float]
    least: float | None = None

    @property
    def gain(self) -> float:
        return self.means[1] - self.means[0]

    @property
    def met(self) -> bool:
        return self.least is None or self.gain >= self.least

    def __str__(self) -> str:
        low, high = self.interval
        goal = "" if self.least is None else f"; goal {self.least:+.2f}: {'met' if self.met else 'MISSED'}"
        before, after = self.means
        return (
            f"{self.name:<48} {before:.3f} → {after:.3f}  {self.gain:+.3f} [{low:+.3f}, {high:+.3f}] n {self.n}{goal}"
        )


def average_precision(scores: Reals, relevant: NDArray[np.bool_]) -> float:
    """NaN where nothing is relevant."""
    ranks = np.flatnonzero(relevant[np.argsort(-scores, kind="stable")])
    return float((np.arange(1, len(ranks) + 1) / (ranks + 1)).mean()) if len(ranks) else float("nan")


def verdicts(relevant: NDArray[np.bool_], rows: Rows, errors: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """What somebody says of these rows."""
    return np.asarray(relevant[rows] ^ (rng.random(len(rows)) < errors))


def residual(
    task: TextTask, query: Floats, gallery: Gallery, clicks: int, judge: Callable[[Rows], NDArray[np.bool_]]
) -> dict[str, float]:
    """AP of what was not judged, by method, after clicks on the first hits."""
    plain = np.where(task.among, gallery.vectors @ query, -np.inf)
    first = np.argsort(-plain, kind="stable")[:clicks]
    right = judge(first)
    rest = task.among.copy()
    rest[first] = False
    scores = {name: of(query, first[right], first[~right], gallery) for name, of in {"": none, **METHODS}.items()}
    return {name: average_precision(its[rest], task.relevant[rest]) for name, its in scores.items()}


def gains(values: Mapping[str, Sequence[float]], names: str, goal: float | None = None) -> Iterator[Gain]:
    before = np.array(values[""])
    known = ~np.isnan(before)
    for method in values:
        if method:
            after = np.array(values[method])[known]
            low, high = paired_gain(before[known], after).interval
            means = float(before[known].mean()), float(after.mean())
            yield Gain(
                f"{names}, {method}", means[0] / means[1], "no clicks", means[0] / means[1], means[0] / means[1],
                int(known.sum()), means=means, interval=(low, high), least=goal if method == "eyespot" else None,
            )  # fmt: skip


@dataclass(frozen=True)
class Clicking:
    """Somebody who judges the first hits of every task, with a share of errors."""

    tasks: Sequence[TextTask]
    queries: Floats
    gallery: Gallery
    errors: float = 0.0
    seeds: int = 1

    def values(self, clicks: int) -> dict[str, list[float]]:
        """AP of what was not judged, by method, of each task; the mean over the seeds."""
        drawn = [self._drawn(at, clicks) for at in range(len(self.tasks))]
        return {name: [aps[name] for aps in drawn] for name in drawn[0]}

    def _drawn(self, at: int, clicks: int) -> dict[str, float]:
        task = self.tasks[at]
        seeds = [np.random.default_rng([seed, at]) for seed in range(self.seeds)]
        judges = [partial(verdicts, task.relevant, errors=self.errors, rng=rng) for rng in seeds]
        aps = [residual(task, self.queries[at], self.gallery, clicks, each) for each in judges]
        return {name: float(np.mean([one[name] for one in aps])) for name in aps[0]}


def after_clicks(clicking: Clicking) -> Iterator[Gain]:
    sets = [task.name for task in clicking.tasks]
    for clicks in CLICKS:
        values = clicking.values(clicks)
        title = f"{clicks} clicks" + (f", {clicking.errors:.0%} wrong" if clicking.errors else "")
        yield from gains(values, title, None if clicking.errors else GOALS[clicks])
        for name in dict.fromkeys(sets) if not clicking.errors else ():
            own = {method: [ap for ap, of in zip(values[method], sets, strict=True) if of == name] for method in OWN}
            for one in gains(own, f"{title}, {name}"):
                say(str(one))


# -- which to show next ---------------------------------------------------------------------------------------------


def best_first(task: TextTask, query: Floats, seen: Rows, unseen: Rows, gallery: Gallery) -> Rows:
    right = task.relevant[seen]
    scores = eyespot(query, seen[right], seen[~right], gallery)
    return unseen[np.argsort(-scores[unseen], kind="stable")[:ROUND]]


def most_telling(task: TextTask, query: Floats, seen: Rows, unseen: Rows, gallery: Gallery) -> Rows:
    right = task.relevant[seen]
    if not right.any() or right.all():
        return best_first(task, query, seen, unseen, gallery)
    order = telling_first(gallery.vectors[np.concatenate([unseen, seen])], [None] * len(unseen) + right.tolist())
    return unseen[order[:ROUND]]


def which_next(clicking: Clicking) -> Iterator[Gain]:
    """Four rounds of five clicks among half of the photos; AP over the other half."""
    values: dict[str, list[float]] = {"": [], "eyespot": []}
    found: dict[str, list[float]] = {"": [], "eyespot": []}
    for at, (task, query) in enumerate(zip(clicking.tasks, clicking.queries, strict=True)):
        half = np.random.default_rng(at).random(len(task.among)) < 0.5
        test = task.among & half
        for name, choose in (("", most_telling), ("eyespot", best_first)):
            seen = np.zeros(0, np.int64)
            for _ in range(max(CLICKS) // ROUND):
                unseen = np.setdiff1d(np.flatnonzero(task.among & ~half), seen)
                seen = np.concatenate([seen, choose(task, query, seen, unseen, clicking.gallery)])
            right = task.relevant[seen]
            scores = eyespot(query, seen[right], seen[~right], clicking.gallery)
            values[name].append(average_precision(scores[test], task.relevant[test]))
            found[name].append(float(right.sum()))
    yield from gains(values, "20 clicks in rounds, best first over most telling")
    say(f"photos found by 20 clicks: best first {np.mean(found['eyespot']):.2f}, most telling {np.mean(found['']):.2f}")


def measurements(options: Namespace) -> Iterator[Measurement]:
    encoder: Encoder = rooms.load("encoders", "starter")
    there = task_photos(options.data)
    all_tasks = tasks(there)
    queries = encoder.encode_texts([task.text for task in all_tasks])
    say(f"{len(all_tasks)} tasks over {len(there.files)} photos")
    right = Clicking(all_tasks, queries, Gallery(photo_vectors(there, encoder)))
    yield from after_clicks(right)
    yield from after_clicks(replace(right, errors=ERRORS, seeds=1 if options.quick else SEEDS))
    yield from which_next(right)


if __name__ == "__main__":
    command = Command(__doc__, threads=1, quick="one draw of the errors")
    command.add_argument("--data", type=Path, default=SHARED / "data", help="the folder of the sets")
    command.run(measurements)
