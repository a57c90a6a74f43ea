"""What a set is likely to come to: its queries and its pool, and whether a setting can give a usable set at all.

Doubt decides. Each photo is a candidate in queries × candidates / photos triplets. Under the paper's rule one of them
in doubt removes the photo, so its chance to stay falls exponentially with that number; per query only its own counts.
Rates are those of the votes that lie in the folder, from a trial for instance, or else assumed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eyespot.curate.rmir.confident import ConfidentSettings, Doubt, settle_votes
from eyespot.curate.rmir.dry_run import most_records
from eyespot.curate.rmir.forms import KINDS
from eyespot.curate.rmir.panel import voted_on
from eyespot.curate.rmir.pipeline import ORDER, RmirPipeline
from eyespot.pipelines.step_folder import CachedResult, cached_result, place_of

K = 20  # the first places that Recall@20 looks at
LARGE = 10  # a pool of this many times K leaves a random order a Recall@K of a tenth
LEAST = 30 * len(KINDS)  # queries, of which no kind should have fewer than thirty
VOTES = 40  # triplets from which rates are taken


@dataclass(frozen=True)
class Rates:
    """Questions of an input that pass the check, the share of triplets in doubt, and the targets of each query."""

    questions: float = 1.8  # the paper loses about 40% of three
    doubt: float = 0.15
    targets: Sequence[int] = (1, 2)
    measured: bool = False


@dataclass(frozen=True)
class RmirSizes:
    """Photos of the seed set, those that are asked about, candidates of a query, and what doubt does."""

    seeds: int
    inputs: int
    candidates: int
    doubt: Doubt
    whole_pool: bool = False  # every photo that stays is ranked, not targets alone


@dataclass(frozen=True)
class RmirForecast:
    """What a set is likely to hold; `share` of the queries that have a target at all."""

    sizes: RmirSizes
    rates: Rates
    share: float
    queries: int
    pool: int

    @property
    def usable(self) -> bool:
        """Whether it can tell retrievers apart."""
        return self.queries >= LEAST and self.pool >= LARGE * K

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        counts = {"queries": self.queries, "share": self.share, "pool": self.pool, "pool_over_k": self.pool / K}
        return {**counts, "k": K, "doubt": self.rates.doubt, "measured": self.rates.measured, "usable": self.usable}

    def sentences(self) -> Iterator[str]:
        """What it says, and the way out where the set cannot be used."""
        basis = "as judged so far" if self.rates.measured else "assumed; a run with --limit measures it"
        yield (
            f"likely {self.queries:,} queries ({self.share:.0%} of those with a target) and a pool of {self.pool:,}, "
            f"{self.pool / K:.1f} times K = {K}; {self.rates.doubt:.0%} of triplets in doubt ({basis})"
        )
        if not self.usable:
            least = f"at least {LEAST} queries, a pool of {LARGE * K}"
            yield f"that is too small to compare retrievers ({least}); {self._way_out()}"

    def _way_out(self) -> str:
        per_query = expected(RmirSizes(**{**vars(self.sizes), "doubt": "query"}), self.rates)
        if self.sizes.doubt == "everywhere" and per_query.share > self.share + 0.1:
            rest = f"likely {per_query.queries:,} queries and a pool of {per_query.pool:,}"
            return f'write doubt = "query" in the step confident ({rest})'
        return "index more photos, or raise the number of inputs"


def forecast(pipe: RmirPipeline) -> RmirForecast:
    """What the steps of a recipe are likely to make."""
    most, split = most_records(pipe, {}), pipe.settings("split")
    each = most["judged"] // max(1, most["candidates"])
    settings: ConfidentSettings = pipe.settings("confident")
    sizes = RmirSizes(most["inputs"], most["questions"], each, settings.doubt, split.pool == "seeds")
    return expected(sizes, measured(pipe) or Rates())


def expected(sizes: RmirSizes, rates: Rates) -> RmirForecast:
    """The same from its sizes and rates."""
    questions = sizes.inputs * rates.questions
    each = min(sizes.candidates, max(0, sizes.seeds - 1))
    everywhere = sizes.doubt == "everywhere"
    stays = math.exp(-rates.doubt * questions * each / max(1, sizes.seeds)) if everywhere else 1.0
    stands = (1 - rates.doubt) * stays  # a target
    answered = [count for count in rates.targets if count]
    share = sum(1 - (1 - stands) ** count for count in answered) / max(1, len(answered))
    queries = questions * len(answered) / max(1, len(rates.targets)) * share
    left = sizes.seeds * stays
    placed = questions * sum(rates.targets) / max(1, len(rates.targets)) * stands
    pool = left if sizes.whole_pool else left * -math.expm1(-placed / left) if left else 0.0
    return RmirForecast(sizes, rates, share, round(queries), round(pool))


def measured(pipe: RmirPipeline) -> Rates | None:
    """The rates of the votes that lie in the folder, of these settings or of others; None where there are too few."""
    found: dict[str, CachedResult | None] = {
        name: cached_result(place_of(pipe.work, number, step))
        for number, (name, step) in enumerate(zip(ORDER, pipe.steps, strict=True), 1)
    }
    inputs, checked, judged = found["inputs"], found["checked"], found["judged"]
    if inputs is None or checked is None or judged is None or judged.counts.came < VOTES:
        return None
    doubts, triplets, targets = 0, 0, Counter[str]()
    settings: ConfidentSettings = pipe.settings("confident")
    for one in voted_on(judged.records):
        verdict = settle_votes(one, len(pipe.seats))
        triplets += 1
        doubts += verdict.answers is None or verdict.confidence < settings.least
        targets[one["query"]] += verdict.answers is True
    return Rates(checked.counts.kept / max(1, inputs.counts.kept), doubts / triplets, list(targets.values()), True)
