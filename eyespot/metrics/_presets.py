"""The measures of published benchmarks, with the rules that their official evaluators follow."""

from __future__ import annotations

from dataclasses import dataclass

from eyespot.metrics._measure import Measure
from eyespot.metrics._parsing import parse
from eyespot.metrics._scores import Rules
from eyespot.types import UsageError


@dataclass(frozen=True)
class Preset:
    """What one benchmark measures: `source` says where that is written."""

    name: str
    measures: tuple[Measure, ...]
    rules: Rules
    source: str

    @property
    def scoring(self) -> tuple[tuple[Measure, ...], Rules]:
        """For `evaluate(run, qrels, *preset.scoring)`."""
        return self.measures, self.rules


_CUTS = (1, 3, 5, 10, 20, 100, 1000)  # MTEB's
_GIVEN, _TREC, _SCORED = Rules(), Rules("skip", "zero", "trec"), Rules("skip", "skip")

_MEASURES: dict[str, tuple[list[str], Rules, str]] = {
    "inquire": (
        ["AP(norm='min-k', ties='average')@50", "nDCG(gain='binary', ties='average')@50", "RR(ties='average')@50"],
        _GIVEN,
        "INQUIRE (Vendrow et al. 2024), section 5 and appendix G; its released metrics.py for ties",
    ),
    "inquire-rerank": (
        ["AP(norm='min-k', ties='average')", "nDCG(gain='binary', ties='average')", "RR(ties='average')"],
        _GIVEN,
        "INQUIRE-Rerank: the same over the whole candidate list, R = relevant among the candidates",
    ),
    "ilias": (
        ["AP(norm='min-k', ties='average')@1000", "Oracle@1000"],
        _SCORED,
        "ILIAS (Kordopatis-Zilos et al. 2025) and its released evaluation: only queries with results are scored",
    ),
    "rmir": (["R@20", "R@50"], _GIVEN, "RMIR, table 2: recall, the mean over all queries"),
    "recos": (["Hit@1", "Hit@5", "Hit@10"], _GIVEN, "ReCoS: what it calls Recall@K is Hit@K"),
    "coco": (["Hit@1", "Hit@5", "Hit@10"], _GIVEN, "COCO 5k (Karpathy split): what papers call R@K is Hit@K"),
    "flickr": (["Hit@1", "Hit@5", "Hit@10"], _GIVEN, "Flickr30K 1k (Karpathy split): what papers call R@K is Hit@K"),
    "eccv": (["mAP@R", "Rprec", "Hit@1"], _GIVEN, "ECCV Caption (Chun et al. 2022) and its released package"),
    "pmrp": (["Rprec"], _GIVEN, "PMRP (Chun et al. 2021) as in the package eccv-caption: R plausible matches"),
    "circo": (
        [f"AP(norm='min-k')@{k}" for k in (5, 10, 25, 50)],
        _GIVEN,
        "CIRCO (Baldrati et al. 2023), src/evaluation.py; its Recall@K is Hit@K on qrels of the target image alone",
    ),
    "trec": (
        ["AP", "Rprec", "RR", *(f"P@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000))],
        _TREC,
        "trec_eval 10's default measures, as far as they are here: order by score, ties by descending id",
    ),
    "mteb": (
        [f"{name}@{k}" for name in ("nDCG", "AP", "R", "P", "RR") for k in _CUTS],
        _TREC,
        "MTEB's retrieval tasks (pytrec_eval)",
    ),
}
PRESETS: dict[str, str] = {name: f"{', '.join(m)}; {source}" for name, (m, _, source) in _MEASURES.items()}


def preset(name: str) -> Preset:
    """The measures and rules of a benchmark; `UsageError` lists the names there are."""
    if name not in _MEASURES:
        raise UsageError(f"no preset {name!r}; there are: {', '.join(_MEASURES)}")
    spellings, rules, source = _MEASURES[name]
    return Preset(name, tuple(parse(spelling) for spelling in spellings), rules, source)
