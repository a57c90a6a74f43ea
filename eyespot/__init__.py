"""eyespot finds the picture an expert means, proves how well it does, and builds the test sets that prove it.

    run = eyespot.open(".eyespot").search("a heron", k=50)

Everything here is imported when it is first used, so `import eyespot` costs nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.metrics import Comparison, Measure, Resampling, Rules, Scores
    from eyespot.search import Chain, Collection
    from eyespot.types import Adapter, Encoder, Index, Judge, LanguageModel, Qrels, Query, Run, Vectors

__all__ = [
    "Chain",
    "Collection",
    "Qrels",
    "Query",
    "Run",
    "__version__",
    "compare",
    "evaluate",
    "load_adapter",
    "load_encoder",
    "load_index",
    "load_judge",
    "load_language_model",
    "open",
]
__version__ = "0.1.0"
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):  # read when the library is first imported
    os.environ.setdefault(_name, "1")  # ONNX Runtime 1.32 reports every session and keeps a device id otherwise
logging.getLogger("eyespot").addHandler(logging.NullHandler())  # silent, unless a program or --verbose asks for it

if not TYPE_CHECKING:  # a type checker reads the imports above, so an unknown name stays an error
    _PLACES = {
        "Chain": "search.chain",
        "Collection": "search.collection",
        "Qrels": "types",
        "Query": "types",
        "Run": "types",
    }

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:  # also asked for the rooms themselves, before their first import
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from eyespot.rooms import lazy

        return lazy(__name__, _PLACES)(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def open(gallery: Path | str, encoder: str | None = None, index: str = "exact") -> Collection:
    """A gallery ready to be searched, in the space of one of its encoders (the default one for None).

    An address ("s3://bucket/birds") is that of a published gallery; its local copy is made, or brought up to date.
    `index`: "exact", or the name of an approximate one that `eyespot tune` made ("faiss"). Raises `UsageError` if
    there is no gallery, or it has no vectors of that encoder.
    """
    # Imported on use, so that `import eyespot` costs nothing.
    from eyespot.search.collection import Collection

    if ":/" in str(gallery):
        from eyespot.gallery.remote import FACTS, address_of, fetch

        url = address_of(gallery)
        gallery = gallery if url is None else fetch(url, part=FACTS)  # vectors come with the view
    return Collection(gallery, encoder, index)


# -- scores -----------------------------------------------------------------------------------------------------


def evaluate(
    run: Run, qrels: Qrels, measures: str | Iterable[Measure | str] = "inquire", rules: Rules | None = None
) -> Scores:
    """The value of every measure for every judged query, 0 to 1, with means, intervals and definitions.

    `measures`: the name of a preset ("inquire", "trec", …: `eyespot.metrics.PRESETS`), or measures such as
    `["nDCG@10", AP(50)]`. `rules` says how missing queries and ties count; None takes the preset's. Raises
    `UsageError` for an unknown preset, measure or parameter.
    """
    from eyespot import metrics
    from eyespot.metrics import PRESETS, Rules, parse, preset
    from eyespot.types import UsageError

    if not isinstance(measures, str):
        return metrics.evaluate(run, qrels, measures, rules or Rules())
    if measures in PRESETS:
        chosen, preset_rules = preset(measures).scoring
        return metrics.evaluate(run, qrels, chosen, rules or preset_rules)
    try:
        measure = parse(measures)
    except UsageError as error:
        raise UsageError(f"{error}; presets: {', '.join(PRESETS)}") from None
    return metrics.evaluate(run, qrels, [measure], rules or Rules())


def compare(
    baseline: Run,
    run: Run,
    qrels: Qrels,
    measures: str | Iterable[Measure | str] = "inquire",
    how: Resampling | None = None,
) -> Comparison:
    """Whether `run` is better than `baseline`: paired differences over the same queries, one entry per measure.

    Each has a 95% bootstrap interval, the p of the paired randomisation test (Fisher 1935), corrected for the number
    of measures (Holm 1979), and wins, ties and losses. `measures` as for `evaluate`; `how`: 10,000 samples from seed
    0 if None. The runs are named "baseline" and "run". Raises `UsageError` as `evaluate` does.
    """
    from eyespot import metrics
    from eyespot.metrics import Resampling

    scores = {"baseline": evaluate(baseline, qrels, measures), "run": evaluate(run, qrels, measures)}
    return metrics.compare(scores, how or Resampling())


# -- members of rooms -------------------------------------------------------------------------------------------


def load_encoder(name: str, **options: Any) -> Encoder:
    """Pictures and words to unit vectors (n, dim): "starter", "open_clip:ViT-B-32/openai", "hf:MODEL", "onnx:FOLDER".

    `eyespot encoders list` lists the names; most take `device` and `batch`. Raises `UsageError` for an unknown name,
    and `EyespotError` with the line to install if the encoder needs an extra.
    """
    from eyespot import rooms

    encoder: Encoder = rooms.load("encoders", name, **options)
    return encoder


def load_index(vectors: Vectors | Sequence[Vectors], name: str = "exact", **options: Any) -> Index:
    """An index over vectors (n, dim), one array or several blocks, that finds the k rows of largest inner product.

    `name`: "exact" or "faiss"; their `load` describes the options. Raises `UsageError` for an unknown name or
    option, and `EyespotError` with the line to install if the index needs an extra.
    """
    from eyespot import rooms

    index: Index = rooms.load("indexes", name, vectors, **options)
    return index


def load_adapter(place: Path | str) -> Adapter:
    """A trained QuARI from its folder or `hub:OWNER/NAME`: queries (n, dim) to their own views of the space.

    Source: Xing et al., QuARI: Query Adaptive Retrieval Improvement (NeurIPS 2025). Raises `UsageError` if the place
    holds no checkpoint.
    """
    from eyespot.adapters import quari

    return quari.load(place)


def load_judge(name: str, **options: Any) -> Judge:
    """A judge, which gives pairs of query and picture a probability of relevance: "encoder:starter", "openai:MODEL", …

    `options` are what `--judge KEY=VALUE` takes (docs/judges.md). Raises `UsageError` for an unknown name or option,
    and `EyespotError` with the line to install if the judge needs an extra.
    """
    from eyespot.search.judge_rerank import judge_named

    return judge_named(name, **options)


def load_language_model(name: str, **options: Any) -> LanguageModel:
    """A language model behind an endpoint: "openai:MODEL", "anthropic:MODEL"; `options` as for `eyespot.llms.load`.

    Nothing is sent before the first question; give a `budget` (`eyespot.llms.Budget`) to limit what it may cost in
    requests, tokens and US dollars. Raises `UsageError` for an unknown name or option, and `EyespotError` with the line
    to install without the extra [llm].
    """
    from eyespot import llms, rooms

    with rooms.needs(name):
        return llms.load(name, **options)
