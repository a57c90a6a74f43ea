"""Evaluations of `eyespot eval`: one with how it was made, and with `--row` a table of several, one after the other."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._eval_inputs import EvalInputs, is_file, results_of
from eyespot.cli.console import exit_if_failed, print_json, print_line, progress_bar, sentence_of, warn
from eyespot.cli.settings import gallery_here
from eyespot.settings import DEPTH
from eyespot.types import EyespotError, NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, Evaluation, GallerySearcher, Task
    from eyespot.settings.measure import EvalSettings
    from eyespot.types import Run

PLACES = ("data", "gallery", "ledger", "prices", "images")
NAMES_OR_FILES = ("rerank", "wording", "expand")
LINEAR = "linear:"
OF_A_ROW = (
    *("run", "run_format", "gallery", "encoder", "index", "adapt", "adapt_depth", "neighbours", "alpha", "by", "teach"),
    *("rerank_local", "expand", "rerank", "depth", "blend", "wording", "match", "pool"),
)
OF_ONE_SYSTEM = {"system": "--name", "beside": "--beside", "images": "--images"}
SIGNATURE = "row.json"


@dataclass(frozen=True)
class Ranked:
    """The tasks of a benchmark with their rankings; `searched` if a gallery was searched, `by_judge` if one follows."""

    benchmark: Benchmark
    whole: Sequence[Task]
    tasks: Sequence[Task]
    runs: dict[str, Run]
    searched: GallerySearcher | None
    by_judge: bool

    @property
    def judged(self) -> bool:
        """Whether any image of these tasks is known to be relevant."""
        return any(task.judged.qrels.grade.any() for task in self.tasks)


def ranked_by(inputs: EvalInputs) -> Ranked:
    """The rankings that the settings name."""
    by_judge = inputs.judged()  # an unknown judge is refused before a search is paid
    benchmark, whole, tasks = inputs.tasks()
    runs, searched = inputs.rankings(whole, tasks)
    return Ranked(benchmark, whole, tasks, runs, searched, by_judge)


def evaluation_of(inputs: EvalInputs, ranked: Ranked) -> Evaluation:
    """The results with how they were made: the options, and the digest of every file that they depend on.

    Rankings are scored as they are, with a second stage whose scores are there, or after a judge has seen them.
    """
    from eyespot.benchmarks import Evaluation, Rescored, files_of, made_by, scored
    from eyespot.runs import read_run

    options, searched, tasks = inputs.settings, ranked.searched, ranked.tasks
    depth = options.depth or DEPTH
    if ranked.by_judge:
        with inputs.jury(searched) as jury:
            results = results_of(
                tasks, ranked.runs, lambda task, run: jury.result(task, run, jury.ask(task, run), options.pool)
            )
    else:
        rescored = Rescored(read_run(Path(options.rerank).expanduser()), depth) if options.rerank else None
        results = results_of(tasks, ranked.runs, lambda task, run: scored(task, run, rescored, options.pool))
    header = results[0].run.header
    files = files_of(ranked.whole, options.run)
    more = {"gallery": str(searched.view.gallery.path), "space": searched.view.space.digest} if searched else {}
    of_judge = ("judge", "prompt", "blend", "served", "fingerprints", "not_accepted")
    judge = {name: header[name] for name in of_judge if name in header}
    read = map(_absolute, _files_of(inputs, files, searched))
    place = more.get("gallery") or (gallery_here(options.gallery) if "judge" in header else None)
    made = made_by(_arguments_of(options, place), read, seed=options.seed, **more, **judge)
    split = options.split or ranked.benchmark.splits[0]
    system = options.system or _system(options, files, searched)
    return Evaluation(ranked.benchmark, split, system, results, made, depth if options.rerank else None)


def _system(options: EvalSettings, files: Sequence[Path], searched: GallerySearcher | None) -> str:
    """The name of a system: the first stage, and what re-ranks it or changes how it searches."""
    place = Path((options.adapt or "").removeprefix(LINEAR))
    training = place.parent.name
    # Every training calls its adapter `model`; its folder says more.
    adapter = training if place.name == "model" and training not in ("", "..") else place.name
    by = {"look": "", "words": "words"}.get(options.by or "look", "words and look")
    expansion = "" if options.neighbours is None else f"QE-{options.neighbours}"
    first = files[0].name if files or searched is None else searched.view.space.encoder
    return " + ".join(filter(None, (first, adapter, options.rerank_local, by, expansion)))


def lacks_verdicts(evaluation: Evaluation) -> bool:
    """Whether a judge left hits without a verdict."""
    verdicts = [result.run.header.get("verdicts", {}) for result in evaluation.results]
    return any(count.get("failed") or count.get("unscored") for count in verdicts)


# -- how it was made ----------------------------------------------------------------------------------------------


def _files_of(inputs: EvalInputs, files: Sequence[Path], searched: GallerySearcher | None = None) -> Iterator[Path]:
    """The files that the numbers depend on, but for the vectors of a gallery."""
    from eyespot.benchmarks import check
    from eyespot.search.index_choice import EXACT, SETTINGS, folder_of

    options = inputs.settings
    yield from files
    yield from (Path(value) for value in (getattr(options, name) for name in NAMES_OR_FILES) if is_file(value))
    yield from _adapter_files(options.adapt)
    places = [state.place for state in check(*inputs.known())]
    yield from (place for place in places if place is not None and place.is_file())
    searches = not (options.adapt and options.neighbours is None and options.adapt_depth is None)
    if searched is not None and options.index != EXACT and not options.run and searches:
        yield folder_of(searched.view, options.index) / SETTINGS


def _adapter_files(adapt: str | None) -> list[Path]:
    place = Path((adapt or "").removeprefix(LINEAR)).expanduser()
    if adapt and place.is_dir():
        return sorted(path for path in place.iterdir() if path.is_file())
    return [place] if adapt and place.is_file() else []


def _arguments_of(options: EvalSettings, gallery: Path | str | None = None) -> dict[str, Any]:
    """The options, with places that hold wherever the evaluation is repeated."""
    given = options.model_dump(mode="json", exclude={"dry_run"})
    given |= {name: str(_absolute(given[name])) for name in PLACES if given[name]}
    given |= {name: str(_absolute(given[name])) for name in NAMES_OR_FILES if is_file(given[name])}
    if gallery is not None:
        given["gallery"] = str(_absolute(gallery))
    runs = []
    for run in options.run:
        task, sign, path = run.partition("=")
        has_task = bool(sign) and not Path(run).exists()
        runs.append(f"{task}={_absolute(path)}" if has_task else str(_absolute(run)))
    adapt = options.adapt
    if adapt is not None and _adapter_files(adapt):
        adapt = f"{LINEAR if adapt.startswith(LINEAR) else ''}{_absolute(adapt.removeprefix(LINEAR))}"
    given |= {"run": runs, "adapt": adapt}
    return {name: value for name, value in given.items() if value is not False or name == "teach"}


def _absolute(path: Path | str) -> Path:
    return Path(path).expanduser().absolute()


# -- rows of a table ----------------------------------------------------------------------------------------------


def rows_in(context: typer.Context, settings: EvalSettings, rows: Sequence[str]) -> list[EvalSettings]:
    """The settings of each row: those of the command, and its own in their place.

    `UsageError` for a row without a name, two of one name, and options that all rows share.
    """
    if rows and (alone := [spelled for name, spelled in OF_ONE_SYSTEM.items() if getattr(settings, name)]):
        raise UsageError(f"{alone[0]} is about one system; leave it out, or leave out --row")
    from eyespot.settings.measure import EvalSettings

    found = []
    for row in rows:
        name, _, rest = row.partition("=")
        if not name.strip() or name.strip().startswith("-"):
            raise UsageError(f"--row {row!r} has no name; write it first, as in: --row 'QE-1 = --neighbours 1'")
        given = _given(context, row, rest)
        if strange := [one.replace("_", "-") for one in given if one not in OF_A_ROW]:
            raise UsageError(f"--row {row!r}: {strange[0]} is the same for all rows; give it to eyespot eval itself")
        found.append(EvalSettings.read(**{**settings.model_dump(), **given, "system": name.strip()}))
    names = Counter(_folder_name(one) for one in found)
    if twice := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"--row has {twice[0]!r} twice; give each row a name of its own")
    return found


def _given(context: typer.Context, row: str, rest: str) -> dict[str, Any]:
    """The parameters that a row names, read as the command line reads them."""
    try:
        inner = context.command.make_context(context.info_name, shlex.split(rest), parent=context.parent)
    except ValueError as error:
        raise UsageError(f"--row {row!r} cannot be read ({error}); check its quotes") from None
    except Exception as error:  # of click, whose copy in typer has no public name
        if not hasattr(error, "format_message"):
            raise
        raise UsageError(f"--row {row!r}: {error.format_message()}; see eyespot eval --help") from None
    sources = {name: inner.get_parameter_source(name) for name in inner.params}
    return {name: inner.params[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def _folder_name(row: EvalSettings) -> str:
    """The folder of a row's report below --out; letters of any script stay."""
    return re.sub(r"[^\w.-]+", "-", str(row.system)).strip("-.") or "row"


def evaluate_rows(inputs: EvalInputs, rows: Sequence[EvalSettings], json: bool) -> None:
    """The table of all rows; a row that fails is reported, and the others go on (exit code 3)."""
    from eyespot.reports.tables import as_latex, as_markdown, as_text, row_tables

    benchmark, _, split = inputs.known()
    summaries, failed, lacking = [], {}, False
    with progress_bar("rows") as progress:
        for number, row in enumerate(rows):
            progress(str(row.system), number, len(rows))
            try:
                summary, incomplete = _summary(replace(inputs, settings=row))
            except EyespotError as error:
                failed[str(row.system)] = sentence_of(error)
                warn(f"{row.system} is left out: {sentence_of(error)}")
                continue
            summaries.append(summary)
            lacking |= incomplete
    if not summaries:
        raise NothingFound(f"no row could be evaluated; the first: {next(iter(failed.values()))}")
    tables = row_tables(summaries)
    if rows[0].out is not None:
        out = rows[0].out.expanduser()
        _write(out / "tables.md", as_markdown(tables))
        _write(out / "tables.tex", as_latex(tables))
        warn(f"{quantity(len(summaries), 'report')} with tables in {out}; look at {out / 'tables.md'}")
    if json:
        print_json({"benchmark": benchmark.name, "split": split, "rows": summaries, "failed": failed})
    else:
        print_line("\n\n".join(map(as_text, tables)))
    exit_if_failed(failed or lacking)


def _summary(inputs: EvalInputs) -> tuple[dict[str, Any], bool]:
    """The summary of a row, and whether a judge left some of it undone; read where an earlier command wrote it."""
    from eyespot.reports.folder import write
    from eyespot.reports.summary import read_summary, summary_of

    row = inputs.settings
    folder = None if row.out is None else row.out.expanduser() / _folder_name(row)
    signature = _signature(inputs) if folder is not None else {}
    if folder is not None:
        try:
            signed = json.loads((folder / SIGNATURE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            signed = None
        if signed == signature:
            warn(f"{row.system} is in {folder} already, from the same options and files; remove it to evaluate again")
            return read_summary(folder), False
    ranked = ranked_by(inputs)
    if not ranked.judged:
        raise NothingFound("no image of this split is judged relevant; evaluate it without --row to get its rankings")
    evaluation = evaluation_of(inputs, ranked)
    for sentence in evaluation.notes:
        warn(f"{row.system}: {sentence}")
    if folder is not None:
        (folder / SIGNATURE).unlink(missing_ok=True)  # of other options: a kill while writing must not leave it
        write(evaluation, folder)
        if not lacks_verdicts(evaluation):
            _write(folder / SIGNATURE, json.dumps(signature, indent=2) + "\n")
    return summary_of(evaluation), lacks_verdicts(evaluation)


def _signature(inputs: EvalInputs) -> dict[str, Any]:
    """What a row's numbers depend on: its options, its files, and what its gallery holds."""
    from eyespot.benchmarks import made_by
    from eyespot.gallery import disk
    from eyespot.search.collection import Collection

    row = inputs.settings
    paths = [Path(run.partition("=")[2] if not Path(run).exists() else run) for run in row.run]
    arguments = {name: value for name, value in _arguments_of(row).items() if name != "out"}
    made = made_by(arguments, _files_of(inputs, paths))
    signature = {name: made[name] for name in ("eyespot", "arguments", "inputs")}
    place = gallery_here(row.gallery)
    if (place / "gallery.toml").is_file():
        view = Collection(place, row.encoder, row.index).view
        files = {shard.name: [shard / disk.ITEMS, shard / f"{view.stem}.npy"] for shard in view.shards}
        shards = [[name, *(path.stat().st_mtime_ns for path in paths)] for name, paths in files.items()]
        signature |= {"space": view.space.digest, "pictures": int(view.live.sum()), "shards": shards}
    found: dict[str, Any] = json.loads(json.dumps(signature, default=str))
    return found


def _write(path: Path, text: str) -> None:
    from eyespot.storage.atomic import write_whole

    write_whole(path, lambda file: file.write(text.encode()))
