"""The options of `eyespot eval`, and what they name: the benchmark, its tasks, their rankings and the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli._judge_options import tell_plan as tell_estimate
from eyespot.cli.console import note, note_all
from eyespot.cli.settings import names_as_options, searched_here
from eyespot.search.parts import judge_options, judge_stage, ledger_of, rewriter
from eyespot.settings.judge import DEPTH, JudgeSettings
from eyespot.settings.search import StageSettings
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, GallerySearcher, Jury, Result, Task
    from eyespot.search.adapted import SearchBackend
    from eyespot.types import Run


@dataclass(frozen=True)
class EvalOptions:
    """The options of the verb by their names; `means` searches in place of this process.

    `opened` holds what several rows read once: tasks, galleries and the vectors of queries.
    """

    benchmark: str | None = None
    data: Path | None = None
    run: Sequence[str] | None = None
    run_format: str | None = None
    gallery: Path | None = None
    encoder: str | None = None
    index: str | None = None
    adapt: str | None = None
    by: str = "look"
    adapt_depth: int | None = None
    neighbours: int | None = None
    alpha: float | None = None
    rerank_local: str | None = None
    expand: str | None = None
    rerank: str | None = None
    depth: int = DEPTH
    blend: float | None = None
    blend_from: str | None = None
    judge: Sequence[str] | None = None
    budget_calls: int | None = None
    budget_money: float | None = None
    wording: str | None = None
    prices: Path | None = None
    ledger: Path | None = None
    measure: Sequence[str] | None = None
    split: str | None = None
    ids: str | None = None
    match: str | None = None
    allow_missing: bool = False
    sample: int | None = None
    seed: int = 0
    pool: int | None = None
    system: str | None = None
    beside: Sequence[Path] | None = None
    out: Path | None = None
    map: str | None = None
    images: Path | None = None
    page: str | None = None
    means: SearchBackend | None = None
    opened: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def data_folder(self) -> Path:
        """The folder with the benchmark's files; `UsageError` if none is given."""
        if self.data is None:
            raise UsageError(f"give the folder with its files: eyespot eval {self.benchmark} --data DIR [--check]")
        return Path(self.data).expanduser()


def known(options: EvalOptions) -> tuple[Benchmark, Path, str]:
    """The benchmark, its data folder and the split."""
    from eyespot.benchmarks import benchmark

    if options.benchmark is None:
        raise UsageError("name a benchmark, as in: eyespot eval inquire-rerank --data DIR; all: eyespot eval list")
    found = benchmark(options.benchmark)
    data = options.data_folder
    split = options.split or found.splits[0]
    if split not in found.splits:
        raise UsageError(f"{found.name} has no split {split!r}; there are: {', '.join(found.splits)}")
    return found, data, split


def tasks_of(options: EvalOptions) -> tuple[Benchmark, Sequence[Task], Sequence[Task]]:
    """The benchmark, all its tasks, and those of them to evaluate, sampled if that is wanted."""
    from eyespot.benchmarks import BenchmarkRequest, sampled
    from eyespot.metrics import parse

    _refuse_useless(options)
    if "tasks" not in options.opened:  # no row of a table has tasks of its own
        found, data, split = known(options)
        more = [parse(spelling) for spelling in options.measure or ()]
        tasks = found.tasks(data, BenchmarkRequest(split, options.ids))
        whole = [replace(task, measures=[*task.measures, *more]) for task in tasks]
        part = sampled(whole, options.sample, options.seed) if options.sample else whole
        options.opened["tasks"] = found, whole, part
    tasks_found: tuple[Benchmark, Sequence[Task], Sequence[Task]] = options.opened["tasks"]
    return tasks_found


def _refuse_useless(options: EvalOptions) -> None:
    """`UsageError` for options that would do nothing."""
    _stages(options)
    drawn = [name for name, value in (("--map is", options.map), ("--images are", options.images)) if value]
    if drawn and not options.out:
        raise UsageError(f"{drawn[0]} drawn in the report; say where to write it with --out DIR")
    if not options.run:
        return
    if options.map:
        raise UsageError("a map needs the vectors of a gallery; give one with -g in place of --run")
    by = None if options.by == "look" else options.by
    for option, value in (("--expand", options.expand), ("--neighbours", options.neighbours), ("--by", by)):
        if value is not None:
            raise UsageError(f"{option} changes how a gallery is searched; give one with -g in place of --run")
    needs = (("an adapter needs the vectors", options.adapt), ("--rerank-local needs pictures", options.rerank_local))
    for what, value in needs:
        if value and options.gallery is None:
            raise UsageError(f"{what} of a gallery; give one with -g, next to --run or in place of it")


# -- rankings ---------------------------------------------------------------------------------------------------


def rankings(
    options: EvalOptions, whole: Sequence[Task], tasks: Sequence[Task]
) -> tuple[dict[str, Run], GallerySearcher | None]:
    """A run for each task that has one, and the searcher where a gallery was searched."""
    if options.run:
        from eyespot.benchmarks import runs_of, unknown

        runs = runs_of(whole, options.run, options.run_format)
        note_all(unknown(whole, runs))
        if not (options.adapt or options.rerank_local):
            return runs, None
        searcher = _searcher(options)  # re-ranks the first hits of each
        fit = _fit([task for task in tasks if task.name in runs], searcher)
        depth = options.adapt_depth or options.depth
        return {task.name: searcher.rerank(task, runs[task.name], depth) for task in fit}, searcher
    if not any(task.judged.queries for task in tasks):
        raise NothingFound("there is nothing to ask in this split; choose another with --split")
    searcher = _searcher(options)
    made: dict[str, Run] = {}
    for task in _fit(tasks, searcher):
        # An earlier task with the same queries and pool: its ranking serves this one too
        asked = task.way, task.judged.queries, task.pool
        same = (t.name for t in tasks if t.name in made and (t.way, t.judged.queries, t.pool) == asked)
        earlier = next(same, None)
        made[task.name] = searcher(task) if earlier is None else made[earlier]
    from eyespot.search.query_rewriting import Reworded

    if isinstance(reword := searcher.reword, Reworded):
        note(f"{reword.worded} of {reword.queries} queries have further wordings by {options.expand}")
    return made, searcher


def _fit(tasks: Sequence[Task], searcher: GallerySearcher) -> list[Task]:
    """The tasks that the stages can rank; `UsageError` if they can rank none, else a note for each other."""
    from eyespot.benchmarks import unfit

    reasons = {task.name: unfit(task, searcher.stages) for task in tasks}
    if reasons and all(reasons.values()):
        raise UsageError(next(iter(reasons.values())))
    note_all(filter(None, reasons.values()))
    return [task for task in tasks if not reasons[task.name]]


@names_as_options()
def _stages(options: EvalOptions) -> StageSettings:
    """The settings of the stages; `UsageError` where they do not go together."""
    names = ("adapt", "adapt_depth", "neighbours", "alpha", "rerank_local", "by")
    return StageSettings.read(**{name: getattr(options, name) for name in names})


def _searcher(options: EvalOptions) -> GallerySearcher:
    from eyespot.benchmarks import LEAST, GallerySearcher
    from eyespot.search.adapted import adapter_named
    from eyespot.search.collection import Collection

    place = searched_here(options.gallery, options.encoder)
    if options.gallery is None and not (place / "gallery.toml").is_file():
        search = "give rankings with --run FILE, or a gallery to search with -g GALLERY"
        raise UsageError("say with -g which gallery has the pictures for the judge" if options.run else search)
    depth = options.depth if options.rerank else 0
    adapter = adapter_named(options.adapt) if options.adapt else None
    reword = rewriter(options.expand, ledger_of(options.ledger, place)) if options.expand else None
    key = place, options.encoder, options.index or "exact"
    if key not in options.opened:  # once for all rows of a table, with the queries that were encoded for it
        options.opened[key] = Collection(*key), {}
        options.opened[key][0].backend = options.means
    collection, known_queries = options.opened[key]
    return GallerySearcher(
        collection,
        options.data_folder,
        options.match,
        options.allow_missing,
        max(LEAST, depth),
        looked_at=depth,
        reword=reword,
        adapter=adapter,
        stages=_stages(options),
        known_queries=known_queries,
    )


# -- numbers ------------------------------------------------------------------------------------------------


def results_of(tasks: Sequence[Task], runs: dict[str, Run], score: Callable[[Task, Run], Result]) -> Iterator[Result]:
    """The result of every task whose queries the run holds; `NothingFound` if it holds none at all."""
    lacking: dict[str, str] = {task.name: "it has no rankings" for task in tasks}
    for task in tasks:
        if task.name not in runs:
            continue
        try:
            result = score(task, runs[task.name])
        except NothingFound as nothing:
            lacking[task.name] = str(nothing)
            continue
        del lacking[task.name]
        yield result
    if len(lacking) == len(tasks):
        raise NothingFound(next((why for name, why in lacking.items() if name in runs), "no task has rankings"))
    for name, why in lacking.items():
        note(f"{name} is left out: {why}")


# -- a judge ----------------------------------------------------------------------------------------------------


@names_as_options()
def second_of(options: EvalOptions) -> JudgeSettings | None:
    """The judge that is to re-rank; None where nothing does, or a file of scores."""
    from eyespot.search.judge_rerank import is_judge

    spec = options.rerank
    judge = None if spec is None or is_file(spec) else spec
    if judge is not None and not is_judge(judge):
        raise UsageError(f"there is no file {judge} of scores, and no judge of that name; see: eyespot judges list")
    if judge is None and options.blend_from is not None:
        raise UsageError("--blend-from is about a judge; name one with --rerank, as in --rerank encoder:starter")
    settings = JudgeSettings.read(
        rerank=judge,
        depth=options.depth if judge else None,
        blend=options.blend,
        judge=tuple(options.judge or ()),
        budget_calls=options.budget_calls,
        budget_money=options.budget_money,
        wording=options.wording,
        prices=options.prices,
        ledger=options.ledger,
    )
    if judge is not None:
        judge_options(settings)  # an unknown one is refused before a search is paid
    return None if judge is None else settings


def is_file(given: str | None) -> bool:
    """Whether an option that takes a name or a file was given a file."""
    return given is not None and Path(given).expanduser().is_file()


@contextmanager
def jury_of(options: EvalOptions, second: JudgeSettings, searched: GallerySearcher | None) -> Iterator[Jury]:
    """The judge with the pictures it looks at; its weight is given, or learned now on another split."""
    from eyespot.benchmarks import BenchmarkRequest, Jury, runs_of

    searcher = searched or _searcher(options)
    with judge_stage(second, searcher.view.gallery.path) as stage:
        jury = Jury(stage, searcher)
        if options.blend_from:
            found, data, split = known(options)
            if options.blend_from == split or options.blend is not None:
                way_out = "a split other than the one that is scored; drop --blend"
                raise UsageError(f"--blend-from learns the weight on {way_out}")
            _, _, other = known(replace(options, split=options.blend_from))
            task = found.tasks(data, BenchmarkRequest(other, options.ids))[0]
            runs = runs_of([task], options.run, options.run_format) if options.run else {task.name: searcher(task)}
            jury = jury.learned(task, runs[task.name])
            queries = f"{len(task.judged.qrels)} queries of {options.blend_from}"
            note(f"the judge counts {jury.stage.blend:g}, learned on the {queries} by {task.measures[0]}")
        yield jury


def tell_plan(options: EvalOptions, json: bool) -> None:
    """The requests that a judge would get; none is sent."""
    second = second_of(options)
    if second is None:
        raise UsageError("--dry-run says what a judge would be asked; name one with --rerank, as in --rerank person")
    _, whole, tasks = tasks_of(options)
    runs, searched = rankings(options, whole, tasks)
    pairs = []
    with jury_of(replace(options, blend_from=None), second, searched) as jury:
        for task in (task for task in tasks if task.name in runs):
            try:
                pairs.append(jury.pairs(task, runs[task.name]))
            except NothingFound as nothing:
                note(f"{task.name} is left out: {nothing}")
        if not pairs:
            raise NothingFound("no task of this split has hits that a judge can look at")
        tell_estimate(second, jury.stage, jury.plan(pairs), json)
