"""What `eyespot eval` is asked for: the benchmark and its tasks, their rankings, and who re-ranks them.

`given` holds the verb's options by their names throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli._judge_options import JudgeOptions, ledger_of, second_stage, wordings_of
from eyespot.cli.console import note
from eyespot.cli.settings import gallery_here
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, Jury, Result, Task
    from eyespot.types import Run


def known(given: dict[str, Any]) -> tuple[Benchmark, Path, str]:
    """The benchmark, its data folder and the split."""
    from eyespot.benchmarks import benchmark

    if given["benchmark"] is None:
        raise UsageError("name a benchmark, as in: eyespot eval inquire-rerank --data DIR; all: eyespot eval list")
    found = benchmark(given["benchmark"])
    if given["data"] is None:
        raise UsageError(f"give the folder with its files: eyespot eval {found.name} --data DIR [--check]")
    split = given["split"] or found.splits[0]
    if split not in found.splits:
        raise UsageError(f"{found.name} has no split {split!r}; there are: {', '.join(found.splits)}")
    return found, Path(given["data"]).expanduser(), split


def tasks_of(given: dict[str, Any]) -> tuple[Benchmark, Sequence[Task], Sequence[Task]]:
    """The benchmark, all its tasks, and what of them is asked for."""
    from eyespot.benchmarks import BenchmarkRequest, sampled

    found, data, split = known(given)
    # Options that would do nothing
    if given["map"] and not given["out"]:
        raise UsageError("--map is drawn in the report; say where to write it with --out DIR")
    for name, what in (("map", "a map"), ("adapt", "an adapter")):
        if given[name] and given["run"]:
            raise UsageError(f"{what} needs the vectors of a gallery; give one with -g in place of --run")
    if given["expand"] and given["run"]:
        raise UsageError("--expand changes how a gallery is searched; give one with -g in place of --run")
    whole = found.tasks(data, BenchmarkRequest(split, given["ids"]))
    return found, whole, sampled(whole, given["sample"], given["seed"]) if given["sample"] else whole


# -- rankings -----------------------------------------------------------------------------------------------


def rankings(given: dict[str, Any], whole: Sequence[Task], tasks: Sequence[Task]) -> tuple[dict[str, Run], Any]:
    """A run for each task that has one, and the searcher where a gallery was searched."""
    from eyespot.benchmarks import runs_of, unknown

    if given["run"]:
        runs = runs_of(whole, given["run"], given["run_format"])
        for sentence in unknown(whole, runs):
            note(sentence)
        return runs, None
    if not any(task.judged.queries for task in tasks):
        raise NothingFound("there is nothing to ask in this split; choose another with --split")
    searcher = _searcher(given)
    made: dict[str, Run] = {}
    for task in tasks:
        # An earlier task with the same queries and pool: its ranking serves this one too
        like = (
            t
            for t in tasks
            if t.name in made and (t.way, t.judged.queries, t.pool) == (task.way, task.judged.queries, task.pool)
        )
        same = next((t.name for t in like), None)
        made[task.name] = searcher(task) if same is None else made[same]
    if searcher.reword is not None:
        note(f"{searcher.reword.worded} of {searcher.reword.asked} queries have further wordings by {given['expand']}")
    return made, searcher


def _searcher(given: dict[str, Any]) -> Any:
    from eyespot import rooms
    from eyespot.benchmarks import LEAST, GallerySearcher
    from eyespot.search.collection import Collection

    place = gallery_here(given["gallery"])
    if given["gallery"] is None and not (place / "gallery.toml").is_file():
        search = "give rankings with --run FILE, or a gallery to search with -g GALLERY"
        raise UsageError("say with -g which gallery has the pictures for the judge" if given["run"] else search)
    depth = given["depth"] if given["rerank"] else 0
    data = Path(given["data"]).expanduser()
    names = (given["match"], given["allow_missing"])
    adapter = rooms.load("adapters", f"quari:{given['adapt']}") if given["adapt"] else None
    collection = Collection(place, given["encoder"], given["index"] or "exact")
    collection.means = given.get("means")
    found = GallerySearcher(collection, data, *names, max(LEAST, depth))
    from eyespot.search.query_rewriting import Reworded

    reword = Reworded(wordings_of(given["expand"], ledger_of(given["ledger"], place))) if given["expand"] else None
    return replace(found, looked_at=depth, reword=reword, adapter=adapter)


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


def by_scores(given: dict[str, Any]) -> Callable[[Task, Run], Result]:
    """Tasks scored as they are, or with a second stage whose scores are there."""
    from eyespot.benchmarks import Rescored, scored
    from eyespot.runs import read_run

    second = Rescored(read_run(Path(given["rerank"]).expanduser()), given["depth"]) if given["rerank"] else None
    return lambda task, run: scored(task, run, second, given["pool"])


# -- a judge ----------------------------------------------------------------------------------------------------


def second_of(given: dict[str, Any]) -> JudgeOptions | None:
    """The judge that is to re-rank; None where nothing does, or a file of scores."""
    from eyespot.search.judge_rerank import is_judge

    spec = given["rerank"]
    judge = None if spec is None or is_file(spec) else spec
    if judge is not None and not is_judge(judge):
        raise UsageError(f"there is no file {judge} of scores, and no judge of that name; see: eyespot judges list")
    options = ("blend", "blend_from", "budget_calls", "budget_money", "wording", "prices", "ledger", "judge")
    about = {name.replace("_", "-"): given[name] for name in options}
    return second_stage(judge, {**about, "depth": given["depth"] if judge else None})


def is_file(given: str | None) -> bool:
    """Whether an option that takes a name or a file was given a file."""
    return given is not None and Path(given).expanduser().is_file()


def judged(
    given: dict[str, Any], second: JudgeOptions, about: tuple[Sequence[Task], dict[str, Run], Any]
) -> list[Result]:
    """The results after a judge has looked at the first pictures of every ranking."""
    tasks, runs, searched = about
    with _jury(given, second, searched) as jury:

        def result(task: Task, run: Run) -> Result:
            return jury.result(task, run, jury.look(task, run), given["pool"])

        return list(results_of(tasks, runs, result))


@contextmanager
def _jury(given: dict[str, Any], second: JudgeOptions, searched: Any) -> Iterator[Jury]:
    """The judge with the pictures it looks at, and the weight that it was given or that is learned now."""
    from eyespot.benchmarks import Jury

    searcher = searched or _searcher(given)
    with second.stage(searcher.view.gallery.path) as stage:
        jury = Jury(stage, searcher)
        yield _learned(given, jury) if given["blend_from"] else jury


def _learned(given: dict[str, Any], jury: Jury) -> Jury:
    """How much the judge counts, by the judgements of another split."""
    from eyespot.benchmarks import BenchmarkRequest, runs_of

    found, data, split = known(given)
    if given["blend_from"] == split or given["blend"] is not None:
        raise UsageError("--blend-from learns the weight on a split other than the one that is scored; drop --blend")
    known({**given, "split": given["blend_from"]})
    task = found.tasks(data, BenchmarkRequest(given["blend_from"], given["ids"]))[0]
    runs = runs_of([task], given["run"], given["run_format"]) if given["run"] else {task.name: jury.searcher(task)}
    learned = jury.learned(task, runs[task.name])
    queries = f"{len(task.judged.qrels)} queries of {given['blend_from']}"
    note(f"the judge counts {learned.stage.blend:g}, learned on the {queries} by {task.measures[0]}")
    return learned


def tell_plan(given: dict[str, Any], json: bool) -> None:
    """What a judge would be asked, without asking."""
    from eyespot.search.judge_rerank import RerankEstimate

    second = second_of(given)
    if second is None:
        raise UsageError("--dry-run says what a judge would be asked; name one with --rerank, as in --rerank person")
    _, whole, tasks = tasks_of(given)
    runs, searched = rankings(given, whole, tasks)
    with _jury({**given, "blend_from": None}, second, searched) as jury:
        plans = [jury.plan(task, runs[task.name]) for task in tasks if task.name in runs and task.way != "i2t"]
        if not plans:
            raise NothingFound("no task of this split ranks pictures; a judge looks at nothing else")
        second.tell_plan(jury.stage, RerankEstimate(*map(sum, zip(*plans, strict=True))), json)
