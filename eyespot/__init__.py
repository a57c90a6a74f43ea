"""eyespot finds the picture an expert means, proves how well it does, and builds the test sets that prove it.

    photos = eyespot.index("~/Pictures")
    photos.search("a heron at the water's edge", k=12)

Everything here is imported when it is first used, so `import eyespot` costs nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` takes as long to import as Python to start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, TypeAlias

    from eyespot.metrics import Comparison, Measure, Resampling, Rules, Scores
    from eyespot.search import Chain, Collection, Hit, Hits
    from eyespot.types import Adapter, Encoder, EyespotError, Index, Judge, LanguageModel, Qrels, Query, Run, Vectors

    Rankings: TypeAlias = Run | Hits | Mapping[str, Any] | Path | str
    Grades: TypeAlias = Qrels | Mapping[str, Mapping[str, float]] | Path | str
    Wanted: TypeAlias = str | Measure | Callable[[list[str], Mapping[str, float]], float]

__all__ = [
    "Chain",
    "Collection",
    "EyespotError",
    "Hit",
    "Hits",
    "Qrels",
    "Query",
    "Run",
    "__version__",
    "compare",
    "evaluate",
    "index",
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

if not TYPE_CHECKING:  # a type checker reads the imports above, so an unknown name stays an error
    _PLACES = {"search": "Chain Collection Hit Hits", "types": "EyespotError Qrels Query Run"}

    def __getattr__(name: str) -> Any:
        if not any(name in names.split() for names in _PLACES.values()):  # a room, before its first import
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from eyespot.rooms import lazy

        return lazy(__name__, _PLACES)[0](name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def index(
    photos: Path | str | Sequence[Path | str], gallery: Path | str = ".eyespot", encoder: str | None = None
) -> Collection:
    """The gallery of a folder of photos, or of several, brought up to date and opened; prints one line.

    `encoder`: its own encoders for None and "auto"; of a new gallery "starter", or the best on this machine for "auto".
    Raises `UsageError` for paths that cannot be indexed; `eyespot.gallery.index` takes more options.
    """
    from pathlib import Path

    from eyespot.encoders.model import chosen
    from eyespot.gallery import disk
    from eyespot.gallery.indexing import index
    from eyespot.photos.sources import roots_of
    from eyespot.types import UsageError, quantity, refusing

    with refusing("photos are a folder, or a list of them", photos):
        folders = [photos] if isinstance(photos, str | Path) else list(photos)
        places = [str(Path(folder).expanduser()) for folder in folders]
    if missing := [root.place for place in places for root in roots_of(place) if not os.path.exists(root.place)]:
        raise UsageError(f"there is nothing at {missing[0]}; check the path")
    place, waiting = Path(gallery).expanduser(), list[str]()
    encoders = chosen(encoder, disk.growing_encoders(place), waiting.append)
    summary, name = index(place, places, encoders), encoders[0].space.encoder
    failed = [f"{quantity(len(summary.failures), 'file')} cannot be read"] if summary.failures else []
    counts = f"{quantity(summary.pictures, 'picture')} in {place}, {summary.embedded:,} of them new to {name}"
    print("; ".join([counts, *failed, *waiting]))  # noqa: T201 - a person or a notebook reads it
    return open(place, None if encoder in (None, "auto") else name)


def open(gallery: Path | str, encoder: str | None = None, index: str = "exact") -> Collection:
    """A gallery ready to be searched, in the space of one of its encoders (the default one for None).

    An address ("s3://bucket/birds") is that of a published gallery; its local copy is made, or brought up to date.
    `index`: "exact", or the name of an approximate one that `eyespot tune` made ("faiss"). Raises `UsageError` if
    there is no gallery, or it has no vectors of that encoder.
    """
    from eyespot.search.collection import Collection

    if ":/" in str(gallery):
        from eyespot.gallery.remote import address_of, fetch

        url = address_of(gallery)
        gallery = gallery if url is None else fetch(url)
    return Collection(gallery, encoder, index)


# -- scores -----------------------------------------------------------------------------------------------------


def evaluate(
    run: Rankings, qrels: Grades, measures: Wanted | Iterable[Wanted] = "inquire", rules: Rules | None = None
) -> Scores:
    """The value of every measure for every judged query, 0 to 1, with means, intervals and definitions.

    `run` and `qrels` may be files, `Hits`, or {query: {image: score}} and {query: {image: grade}}. `measures`: the name
    of a preset ("inquire", "trec", …: `eyespot.metrics.PRESETS`), or measures such as `["nDCG@10", AP(50)]`; a function
    of a ranking's images, best first, and {image: grade} to a number is one, too. `rules` says how missing queries and
    ties count; None takes the preset's. Raises `UsageError` for an unknown preset, measure or parameter.
    """
    from eyespot import metrics
    from eyespot.metrics import PRESETS, Rules, parse, preset
    from eyespot.types import Qrels, Run, UsageError, kind_text, refusing

    if rules is not None and not isinstance(rules, Rules):
        raise UsageError(f"rules are eyespot.metrics.Rules, not {kind_text(rules)}")
    ranked, judged = _as(Run, run), _as(Qrels, qrels)
    if not isinstance(measures, str):
        with refusing("measures are names, as in ['nDCG@10'], or functions", measures):
            several = [measures] if callable(measures) else list(measures)
        return metrics.evaluate(ranked, judged, several, rules or Rules())
    if measures in PRESETS:
        chosen, preset_rules = preset(measures).scoring
        return metrics.evaluate(ranked, judged, chosen, rules or preset_rules)
    try:
        measure = parse(measures)
    except UsageError as error:
        raise UsageError(f"{error}; presets: {', '.join(PRESETS)}") from None
    return metrics.evaluate(ranked, judged, [measure], rules or Rules())


def _as(kind: Any, value: Any) -> Any:
    """A run or judgements from a file, a mapping, or the hits of a search."""
    from eyespot import runs
    from eyespot.types import Qrels, Run, UsageError

    if isinstance(value, str | os.PathLike):
        return (runs.read_qrels if kind is Qrels else runs.read_run)(os.path.expanduser(value))
    value = getattr(value, "run", value)
    made = value if isinstance(value, kind) else kind(value)
    if made is not value and kind is Run and (made.rank[1:] > 1)[made.score[1:] > made.score[:-1]].any():
        raise UsageError("the scores of a ranking rise; give its hits best first, or as {image: score} in any order")
    return made


def compare(
    baseline: Rankings,
    run: Rankings,
    qrels: Grades,
    measures: Wanted | Iterable[Wanted] = "inquire",
    how: Resampling | None = None,
) -> Comparison:
    """Whether `run` is better than `baseline`: paired differences over the same queries, one entry per measure.

    Each has a 95% bootstrap interval, the p of the paired randomisation test (Fisher 1935), corrected for the number
    of measures (Holm 1979), and wins, ties and losses. `measures` as for `evaluate`; `how`: 10,000 samples from seed
    0 if None. The runs are named "baseline" and "run". Raises `UsageError` as `evaluate` does.
    """
    from eyespot import metrics
    from eyespot.metrics import Resampling
    from eyespot.types import UsageError, kind_text

    if how is not None and not isinstance(how, Resampling):
        raise UsageError(f"how is eyespot.metrics.Resampling, not {kind_text(how)}")
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
    import numpy as np

    from eyespot import rooms
    from eyespot.types import refusing

    with refusing("vectors are an array (n, dim) of numbers, or several", vectors):
        if not isinstance(vectors, np.ndarray) and not all(isinstance(block, np.ndarray) for block in vectors):
            vectors = np.asarray(vectors, np.float32)
    found: Index = rooms.load("indexes", name, vectors, **options)
    return found


def load_adapter(place: Path | str) -> Adapter:
    """A trained QuARI from its folder or `hub:OWNER/NAME`: queries (n, dim) to their own views of the space.

    Source: Xing et al., QuARI: Query Adaptive Retrieval Improvement (NeurIPS 2025). Raises `UsageError` if the place
    holds no checkpoint.
    """
    from eyespot.adapters import quari
    from eyespot.types import refusing

    with refusing("an adapter is loaded from a folder, or hub:OWNER/NAME", place):
        return quari.load(place)


def load_judge(name: str | Callable[[str, str], Any], **options: Any) -> Judge:
    """A judge, which gives pairs of query and picture a probability of relevance: "encoder:starter", "openai:MODEL", …

    A function of a query's text and a picture's path to a probability, True or False is one, too.
    `options` are what `--judge KEY=VALUE` takes (docs/research/judges.md). Raises `UsageError` for an unknown name or
    option, and `EyespotError` with the line to install if the judge needs an extra.
    """
    from eyespot.search.judge_rerank import judge_named

    return judge_named(name, **options)


def load_language_model(name: str, **options: Any) -> LanguageModel:
    """A language model behind an endpoint: "openai:MODEL", "anthropic:MODEL"; `options` as for `eyespot.llms.load`.

    Nothing is sent before the first question; give a `budget` (`eyespot.llms.Budget`) to limit what it may cost in
    requests, tokens and US dollars. Raises `UsageError` for an unknown name or option.
    """
    from eyespot import llms
    from eyespot.types import refusing

    with refusing("a language model is loaded by its name, as in openai:MODEL", name):
        return llms.load(name, **options)
