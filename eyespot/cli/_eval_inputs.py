"""What the settings of `eyespot eval` name, opened: the benchmark, its tasks, their rankings and the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli._rerank_view import tell_plan as tell_estimate
from eyespot.cli.console import progress_bar, warn, warn_all
from eyespot.cli.settings import gallery_here
from eyespot.search.parts import judge_options, judge_stage, ledger_of, rewriter
from eyespot.settings import DEPTH
from eyespot.settings.judge import OF_A_JUDGE
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, GallerySearcher, Jury, Result, Task
    from eyespot.search.adapted import SearchBackend
    from eyespot.settings.measure import EvalSettings
    from eyespot.types import Run


@dataclass(frozen=True)
class EvalInputs:
    """What an evaluation works on; `backend` searches in place of this process.

    `opened` holds what several rows read once: tasks, galleries and the vectors of queries.
    """

    settings: EvalSettings
    backend: SearchBackend | None = None
    opened: dict[Any, Any] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The folder with the benchmark's files; `UsageError` if none is given."""
        options = self.settings
        if options.data is None:
            raise UsageError(f"give the folder with its files: eyespot eval {options.benchmark} --data DIR [--check]")
        return options.data.expanduser()

    def known(self) -> tuple[Benchmark, Path, str]:
        """The benchmark, its data folder and the split."""
        from eyespot.benchmarks import benchmark

        options = self.settings
        if options.benchmark is None:
            raise UsageError("name a benchmark, as in: eyespot eval inquire-rerank --data DIR; all: eyespot eval list")
        found, data = benchmark(options.benchmark), self.data
        split = options.split or found.splits[0]
        if split not in found.splits:
            raise UsageError(f"{found.name} has no split {split!r}; there are: {', '.join(found.splits)}")
        return found, data, split

    def tasks(self) -> tuple[Benchmark, Sequence[Task], Sequence[Task]]:
        """The benchmark, all its tasks, and those of them to evaluate, sampled if that is wanted."""
        from eyespot.benchmarks import sampled
        from eyespot.metrics import parse

        options = self.settings
        _refuse_useless(options)
        if "tasks" not in self.opened:  # no row of a table has tasks of its own
            found, data, split = self.known()
            more = [parse(spelling) for spelling in options.measure]
            tasks = found.tasks(data, split, options.ids)
            whole = [replace(task, measures=[*task.measures, *more]) for task in tasks]
            part = sampled(whole, options.sample, options.seed) if options.sample else whole
            self.opened["tasks"] = found, whole, part
        tasks_found: tuple[Benchmark, Sequence[Task], Sequence[Task]] = self.opened["tasks"]
        return tasks_found

    def rankings(self, whole: Sequence[Task], tasks: Sequence[Task]) -> tuple[dict[str, Run], GallerySearcher | None]:
        """A run for each task that has one, and the searcher where a gallery was searched."""
        options = self.settings
        if options.run:
            from eyespot.benchmarks import runs_of, unknown

            runs = runs_of(whole, options.run, options.run_format)
            warn_all(unknown(whole, runs))
            if not (options.adapt or options.rerank_local):
                return runs, None
            searcher = self.searcher()  # re-ranks the first hits of each
            fit = _fit([task for task in tasks if task.name in runs], searcher)
            depth = options.adapt_depth or options.depth or DEPTH
            return {task.name: searcher.rerank(task, runs[task.name], depth) for task in fit}, searcher
        if not any(task.judged.queries for task in tasks):
            raise NothingFound("there is nothing to ask in this split; choose another with --split")
        searcher = self.searcher()
        made: dict[str, Run] = {}
        for task in _fit(tasks, searcher):
            # An earlier task with the same queries and pool: its ranking serves this one too
            key = task.way, task.judged.queries, task.pool
            same = (t.name for t in tasks if t.name in made and (t.way, t.judged.queries, t.pool) == key)
            earlier = next(same, None)
            made[task.name] = searcher(task) if earlier is None else made[earlier]
        from eyespot.search.query_rewriting import Reworded

        if isinstance(reword := searcher.reword, Reworded):
            warn(f"{reword.worded} of {quantity(reword.queries, 'query')} have further wordings by {options.expand}")
        return made, searcher

    def searcher(self) -> GallerySearcher:
        """What searches the gallery; `UsageError` where none is named or near."""
        from eyespot.benchmarks import LEAST, GallerySearcher
        from eyespot.search.adapted import adapter_named
        from eyespot.search.collection import Collection

        options = self.settings
        place = gallery_here(options.gallery)
        if options.gallery is None and not (place / "gallery.toml").is_file():
            search = "give rankings with --run FILE, or a gallery to search with -g GALLERY"
            raise UsageError("say with -g which gallery has the pictures for the judge" if options.run else search)
        depth = (options.depth or DEPTH) if options.rerank else 0
        key = place, options.encoder, options.index
        if key not in self.opened:  # once for all rows of a table, with the queries that were encoded for it
            self.opened[key] = Collection(*key), {}
            self.opened[key][0].backend = self.backend
        collection, known_queries = self.opened[key]
        return GallerySearcher(
            collection,
            self.data,
            options.match,
            options.allow_missing,
            max(LEAST, depth),
            looked_at=depth,
            reword=rewriter(options.expand, ledger_of(options.ledger, place)) if options.expand else None,
            adapter=adapter_named(options.adapt) if options.adapt else None,
            stages=options,
            known_queries=known_queries,
        )

    def judged(self) -> bool:
        """Whether a judge is to re-rank: not if nothing does, or a file of scores. `UsageError` for an unknown one."""
        from eyespot.search.judge_rerank import is_judge

        options = self.settings
        if options.rerank is None or is_file(options.rerank):
            if options.blend_from is not None:
                raise UsageError("--blend-from is about a judge; name one, as in --rerank encoder:starter")
            options.refuse_alone(*OF_A_JUDGE)
            return False
        if not is_judge(options.rerank):
            raise UsageError(f"{options.rerank} names neither a file of scores nor a judge; see: eyespot judges list")
        judge_options(options)  # an unknown one is refused before a search is paid
        return True

    @contextmanager
    def jury(self, searched: GallerySearcher | None) -> Iterator[Jury]:
        """The judge with the pictures it sees; its weight is given, or learned now on another split."""
        from eyespot.benchmarks import Jury, runs_of

        options, searcher = self.settings, searched or self.searcher()
        place = searcher.view.gallery.path
        with progress_bar("requests", delay=1.0) as tell, judge_stage(options, place, tell) as stage:
            jury = Jury(stage, searcher)
            if options.blend_from:
                found, data, split = self.known()
                if options.blend is not None:
                    raise UsageError("--blend-from learns the weight that --blend gives; drop one of them")
                if options.blend_from == split:
                    raise UsageError(f"--blend-from {split} would learn on the split that is scored; name another")
                if options.blend_from not in found.splits:
                    there = ", ".join(found.splits)
                    raise UsageError(f"{found.name} has no split {options.blend_from!r}; there are: {there}")
                task = found.tasks(data, options.blend_from, options.ids)[0]
                runs = runs_of([task], options.run, options.run_format) if options.run else {task.name: searcher(task)}
                jury = jury.learned(task, runs[task.name])
                queries = f"{quantity(len(task.judged.qrels), 'query')} of {options.blend_from}"
                warn(f"the judge counts {jury.stage.blend:g}, learned on the {queries} by {task.measures[0]}")
            yield jury

    def tell_plan(self, json: bool) -> None:
        """The requests that a judge would get; none is sent."""
        if not self.judged():
            raise UsageError("--dry-run prints what a judge would get; name one, as in --rerank person")
        _, whole, tasks = self.tasks()
        runs, searched = self.rankings(whole, tasks)
        pairs = []
        unlearned = replace(self, settings=self.settings.model_copy(update={"blend_from": None}))
        with unlearned.jury(searched) as jury:
            for task in (task for task in tasks if task.name in runs):
                try:
                    pairs.append(jury.pairs(task, runs[task.name]))
                except NothingFound as nothing:
                    warn(f"{task.name} is left out: {nothing}")
            if not pairs:
                raise NothingFound("no task of this split has hits that a judge can look at")
            tell_estimate(self.settings, jury.stage, jury.plan(pairs), json)


def _refuse_useless(options: EvalSettings) -> None:
    """`UsageError` for options that would do nothing."""
    options.refuse_conflicts()
    if options.images and not options.out:
        raise UsageError("--images are drawn in the report; say where to write it with --out DIR")
    beside = [place.expanduser().resolve() for place in options.beside]
    folders = [place if place.is_dir() else place.parent for place in beside]  # a report or its summary.json
    if options.out and options.out.expanduser().resolve() in folders:
        raise UsageError("--out would replace a report that --beside names; write to another folder")
    if not options.run:
        return
    by = None if options.by == "look" else options.by
    for option, value in (("--expand", options.expand), ("--neighbours", options.neighbours), ("--by", by)):
        if value is not None:
            raise UsageError(f"{option} changes how a gallery is searched; give one with -g in place of --run")
    needs = (("an adapter needs the vectors", options.adapt), ("--rerank-local needs pictures", options.rerank_local))
    for what, value in needs:
        if value and options.gallery is None:
            raise UsageError(f"{what} of a gallery; give one with -g, next to --run or in place of it")


def _fit(tasks: Sequence[Task], searcher: GallerySearcher) -> list[Task]:
    """The tasks that the stages can rank; `UsageError` if they can rank none, else a message for each other."""
    from eyespot.benchmarks import unfit

    reasons = {task.name: unfit(task, searcher.stages) for task in tasks}
    if reasons and all(reasons.values()):
        raise UsageError(next(iter(reasons.values())))
    warn_all(filter(None, reasons.values()))
    return [task for task in tasks if not reasons[task.name]]


def results_of(tasks: Sequence[Task], runs: dict[str, Run], score: Callable[[Task, Run], Result]) -> list[Result]:
    """The result of every task whose queries the run holds; `NothingFound` if it holds none at all."""
    results, lacking = [], {task.name: "it has no rankings" for task in tasks}
    for task in tasks:
        if task.name not in runs:
            continue
        try:
            results.append(score(task, runs[task.name]))
            del lacking[task.name]
        except NothingFound as nothing:
            lacking[task.name] = str(nothing)
    if not results:
        raise NothingFound(next((why for name, why in lacking.items() if name in runs), "no task has rankings"))
    warn_all(f"{name} is left out: {why}" for name, why in lacking.items())
    return results


def is_file(given: str | None) -> bool:
    """Whether an option that takes a name or a file was given a file."""
    return given is not None and Path(given).expanduser().is_file()
