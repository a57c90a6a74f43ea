"""How rankings are scored, and what a benchmark is evaluated by."""

from __future__ import annotations

from pathlib import Path

from eyespot.settings import DEPTH
from eyespot.settings.fields import ENCODER, GALLERY, Settings, Texts, setting
from eyespot.settings.judge import JudgeOptions
from eyespot.settings.search import ADAPT, ExpandSetting, IndexSetting, StageSettings, Way

USUAL = ("AP@50", "nDCG@50", "RR", "R@20")
NORM, TIES = "all", "rank"


class ScoringSettings(Settings):
    """Measures and their rules."""

    measure: Texts = setting(
        f"A measure, repeatable: {', '.join(USUAL)} (the default).", default=(), spelled=("-m", "--measure")
    )
    preset: str | None = setting("The measures and rules of a benchmark.")
    norm: str | None = setting("What AP divides by: min-k, all or retrieved.", usual=NORM)
    ties: str | None = setting("How to treat equal scores: average, or rank (as given).", usual=TIES)
    ignore_self: bool = setting("Leave out of each ranking the image of the query's own id.", default=False)


class PageSettings(Settings):
    """What a page of rankings shows beside numbers."""

    images: Path | None = setting("A folder with the pictures that the page shows.", metavar="DIR")
    page: str | None = setting("A running eyespot serve that the page links to.", metavar="ADDRESS", env="EYESPOT_PAGE")


class EvalSettings(PageSettings, JudgeOptions, ExpandSetting, StageSettings, IndexSetting):
    """The evaluation of one system on a benchmark: what ranks, what is measured, and what is shown."""

    benchmark: str | None = setting("The benchmark, or `list`.", argument=True)
    data: Path | None = setting("The folder with the benchmark's files.")
    run: Texts = setting("Rankings, or a similarity matrix (.npz).", default=(), metavar="[TASK=]FILE")
    run_format: str | None = setting("The format of the rankings.")
    gallery: Path | None = setting("Search this gallery, end to end.", **GALLERY)
    encoder: str | None = setting("Search this encoder's space.", **ENCODER)
    by: Way | None = setting("By look, by words (labels, titles, names) or both.", default="look", metavar="WAY")
    adapt: str | None = setting(f"Search, or re-rank --run, with an adapter: {ADAPT}.", metavar="CKPT")
    rerank: str | None = setting("A judge (encoder:starter, openai:…), or scores as rankings.", metavar="JUDGE|FILE")
    depth: int | None = setting("How many hits of the first stage the second one re-ranks.", default=DEPTH, ge=1)
    blend_from: str | None = setting("Learn --blend on the judgements of this split.", metavar="SPLIT")
    measure: Texts = setting(
        "A measure besides the benchmark's own, repeatable: P@10, RBP(p=0.5).", default=(), spelled=("-m", "--measure")
    )
    split: str | None = setting("The split to evaluate.", usual="the benchmark's first")
    ids: str | None = setting("INQUIRE: the column with the names of images (image_id, image_path).")
    match: str | None = setting("The column of the gallery that identifies judged images.", metavar="COLUMN")
    allow_missing: bool = setting("Continue even if judged images are not in the gallery.", default=False)
    sample: int | None = setting("Evaluate a random sample of this many queries.", ge=1)
    seed: int = setting("The seed of the sample.", default=0)
    pool: int | None = setting("How many images each query ranks (for the scores by chance).", ge=1)
    system: str | None = setting("The name of the system in tables.", spelled=("--name",), usual="run or encoder")
    beside: tuple[Path, ...] = setting("A report to show beside it; repeatable.", default=(), metavar="DIR")
    out: Path | None = setting("Write the report here: run, values, tables, figures, page.", metavar="DIR")
