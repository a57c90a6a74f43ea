"""An evaluation of `eyespot eval` as a whole: its rankings, its numbers, and how they were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.cli._eval_inputs import (
    EvalOptions,
    by_scores,
    is_file,
    judged,
    known,
    rankings,
    results_of,
    second_of,
    tasks_of,
)
from eyespot.cli.settings import gallery_here

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, Evaluation, GallerySearcher, Task
    from eyespot.settings.judge import JudgeSettings
    from eyespot.types import Run

PLACES = ("data", "gallery", "ledger", "prices", "images")
NAMES_OR_FILES = ("rerank", "wording", "expand")
LINEAR = "linear:"
OF_PROCESS = ("means", "opened")  # the numbers do not depend on who computes them


class Ranked(NamedTuple):
    """The tasks of a benchmark with their rankings; `searched` where a gallery was searched."""

    benchmark: Benchmark
    whole: Sequence[Task]
    tasks: Sequence[Task]
    runs: dict[str, Run]
    searched: GallerySearcher | None
    second: JudgeSettings | None

    @property
    def judged(self) -> bool:
        """Whether any image of these tasks is known to be relevant."""
        return any(task.judged.qrels.grade.any() for task in self.tasks)


def ranked_by(options: EvalOptions) -> Ranked:
    """The rankings that the options ask for."""
    second = second_of(options)  # an unknown judge is refused before a search is paid
    benchmark, whole, tasks = tasks_of(options)
    return Ranked(benchmark, whole, tasks, *rankings(options, whole, tasks), second)


def evaluation_of(options: EvalOptions, ranked: Ranked) -> Evaluation:
    """The results with how they were made: the options, and the digest of every file that they depend on."""
    from eyespot.benchmarks import Evaluation, files_of, made_by

    if ranked.second is None:
        results = list(results_of(ranked.tasks, ranked.runs, by_scores(options)))
    else:
        results = judged(options, ranked.second, (ranked.tasks, ranked.runs, ranked.searched))
    header, searched = results[0].run.header, ranked.searched
    given, files = options, files_of(ranked.whole, options.run or ())
    if "judge" in header:
        given = EvalOptions(**{**vars(options), "gallery": gallery_here(options.gallery)})
    more = {"gallery": str(searched.view.gallery.path), "space": searched.view.space.digest} if searched else {}
    of_judge = ("judge", "prompt", "blend", "served", "fingerprints", "not_accepted")
    judge = {name: header[name] for name in of_judge if name in header}
    inputs = map(_absolute, inputs_of(options, files, searched))
    made = made_by(arguments_of(given, more), inputs, seed=options.seed, **more, **judge)
    split = options.split or ranked.benchmark.splits[0]
    system = options.system or _system(options, files, searched)
    return Evaluation(ranked.benchmark, split, system, results, made, options.depth if options.rerank else None)


def some_failed(evaluation: Evaluation) -> bool:
    """Whether a judge left hits without a verdict."""
    verdicts = [result.run.header.get("verdicts", {}) for result in evaluation.results]
    return any(count.get("failed") or count.get("unscored") for count in verdicts)


def _system(options: EvalOptions, files: Sequence[Path], searched: GallerySearcher | None) -> str:
    """The first stage, and what re-ranks it or changes how it searches."""
    parts = [files[0].name if files or searched is None else searched.view.space.encoder]
    parts += [_adapter_name(options.adapt), options.rerank_local or ""]
    parts += [] if options.by == "look" else ["words" if options.by == "words" else "words and look"]
    parts += [f"QE-{options.neighbours}"] if options.neighbours is not None else []
    return " + ".join(filter(None, parts))


def _adapter_name(adapt: str | None) -> str:
    """The last part of its place; of `model`, as every training calls it, its folder."""
    place = Path((adapt or "").removeprefix(LINEAR))
    training = place.parent.name
    return training if place.name == "model" and training not in ("", "..") else place.name


# -- how it was made ----------------------------------------------------------------------------------------------


def inputs_of(options: EvalOptions, files: Sequence[Path], searched: GallerySearcher | None = None) -> Iterator[Path]:
    """The files that the numbers depend on, but for the vectors of a gallery."""
    from eyespot.benchmarks import check
    from eyespot.search.index_choice import EXACT, SETTINGS, folder_of

    yield from files
    yield from (Path(value) for value in (vars(options)[name] for name in NAMES_OR_FILES) if is_file(value))
    yield from _adapter_files(options.adapt)
    benchmark, data, split = known(options)
    places = [state.place for state in check(benchmark, data, split)]
    yield from (place for place in places if place is not None and place.is_file())
    index = options.index or EXACT
    searches = not (options.adapt and options.neighbours is None and options.adapt_depth is None)
    if searched is not None and index != EXACT and not options.run and searches:
        yield folder_of(searched.view, index) / SETTINGS


def _adapter_files(adapt: str | None) -> Iterator[Path]:
    """The files of an adapter that lies on this machine."""
    place = Path((adapt or "").removeprefix(LINEAR)).expanduser()
    if adapt and place.is_dir():
        yield from sorted(path for path in place.iterdir() if path.is_file())
    elif adapt and place.is_file():
        yield place


def _adapter_place(adapt: str | None) -> str | None:
    """What names an adapter, wherever the evaluation is repeated."""
    if not any(_adapter_files(adapt)):
        return adapt
    text = str(adapt)
    return f"{LINEAR if text.startswith(LINEAR) else ''}{_absolute(Path(text.removeprefix(LINEAR)))}"


def arguments_of(options: EvalOptions, searched: Mapping[str, str]) -> dict[str, Any]:
    """The options, with places that hold wherever the evaluation is repeated."""
    given = vars(options)
    named = {name: _absolute(given[name]) for name in PLACES if given[name]}
    if "gallery" in searched:
        named["gallery"] = _absolute(Path(searched["gallery"]))
    named |= {name: _absolute(Path(given[name])) for name in NAMES_OR_FILES if is_file(given[name])}
    runs = []
    for run in options.run or ():
        task, sign, path = run.partition("=")
        has_task = bool(sign) and not Path(run).exists()
        runs.append(f"{task}={_absolute(Path(path))}" if has_task else str(_absolute(Path(run))))
    arguments = {**given, **named, "run": runs, "adapt": _adapter_place(options.adapt)}
    return {name: _plain(value) for name, value in arguments.items() if name not in OF_PROCESS}


def _absolute(path: Path) -> Path:
    return Path(path).expanduser().absolute()


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
