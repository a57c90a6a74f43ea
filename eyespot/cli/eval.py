"""`eyespot eval`: a published benchmark, or your own queries, to numbers with their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli._eval_inputs import EvalOptions, known, tell_plan
from eyespot.cli._eval_rows import PLACES, evaluate_rows, evaluation_of, lacks_verdicts, ranked_by, rows_in
from eyespot.cli._judge_options import calls_option, ledger_option, money_option, prices_option
from eyespot.cli._options import ENCODER, RUN_FORMAT, flag
from eyespot.cli._ray import means_on, ray_option, refuse_on_cluster, workers_option
from eyespot.cli.console import escaped, exit_if_failed, note, note_all, print_json, print_line, print_result
from eyespot.cli.settings import gallery_here, gallery_option, index_option, json_option, option_of
from eyespot.settings.judge import DEPTH, JudgeSettings
from eyespot.settings.search import ADAPT, SearchSettings, StageSettings
from eyespot.storage.atomic import make_folder
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, Evaluation, GallerySearcher, Task
    from eyespot.reports.examples import Examples
    from eyespot.reports.moved import Picture
    from eyespot.reports.summary import Summary
    from eyespot.types import Run

LIST = "list"
NOT_OPTIONS = ("again", "json", "check", "ray", "workers", "dry_run", "row")


def run(
    context: typer.Context,
    benchmark: str = typer.Argument(None, help="The benchmark, or `list`."),
    data: Path = typer.Option(None, help="The folder with the benchmark's files."),
    check: bool = flag("--check", "List the files that are present or missing, and where to get them."),
    run: list[str] = typer.Option(
        None, "--run", metavar="[TASK=]FILE", help="Rankings, or a similarity matrix (.npz)."
    ),
    run_format: str = RUN_FORMAT,
    gallery: Path = gallery_option("Search this gallery, end to end."),
    encoder: str = ENCODER,
    index: str = index_option(),
    ray: str = ray_option(),
    workers: int = workers_option(),
    adapt: str = typer.Option(None, metavar="CKPT", help=f"Search, or re-rank --run, with an adapter: {ADAPT}."),
    adapt_depth: int = option_of(StageSettings, "adapt_depth"),
    neighbours: int = option_of(StageSettings, "neighbours"),
    alpha: float = option_of(StageSettings, "alpha"),
    by: str = option_of(StageSettings, "by", default="look", show_default=True),
    rerank_local: str = option_of(StageSettings, "rerank_local"),
    row: list[str] = typer.Option(
        None,
        metavar="NAME=OPTIONS",
        help="A row of a table: a system's name, and what makes it, as in 'QE-1 = --neighbours 1'; repeatable.",
    ),
    expand: str = option_of(SearchSettings, "expand"),
    rerank: str = typer.Option(
        None, metavar="JUDGE|FILE", help="A second stage: a judge (encoder:starter, openai:…), or scores as rankings."
    ),
    depth: int = typer.Option(DEPTH, min=1, help="How many hits of the first stage the second one re-ranks."),
    blend: float = option_of(JudgeSettings, "blend"),
    blend_from: str = typer.Option(None, metavar="SPLIT", help="Learn --blend on the judgements of this split."),
    judge: list[str] = option_of(JudgeSettings, "judge"),
    budget_calls: int = calls_option(),
    budget_money: float = money_option(),
    wording: str = option_of(JudgeSettings, "wording"),
    prices: Path = prices_option(),
    ledger: Path = ledger_option(),
    dry_run: bool = option_of(JudgeSettings, "dry_run"),
    measure: list[str] = typer.Option(
        None, "-m", "--measure", help="A measure besides the benchmark's own, repeatable: P@10, RBP(p=0.5)."
    ),
    split: str = typer.Option(None, help="The split to evaluate.", show_default="the benchmark's first"),
    ids: str = typer.Option(None, help="INQUIRE: the column with the names of images (image_id, image_path)."),
    match: str = typer.Option(None, metavar="COLUMN", help="The column of the gallery that identifies judged images."),
    allow_missing: bool = typer.Option(False, help="Continue even if judged images are not in the gallery."),
    sample: int = typer.Option(None, min=1, help="Evaluate a random sample of this many queries."),
    seed: int = typer.Option(0, help="The seed of the sample."),
    pool: int = typer.Option(None, min=1, help="How many images each query ranks (for the scores by chance)."),
    system: str = typer.Option(None, "--name", help="The name of the system in tables.", show_default="run or encoder"),
    beside: list[Path] = typer.Option(
        None, metavar="DIR", help="A report to show in the same tables and figures; repeatable."
    ),
    out: Path = typer.Option(None, metavar="DIR", help="Write the report here: run, values, tables, figures, page."),
    images: Path = typer.Option(None, metavar="DIR", help="A folder with the pictures that the report shows."),
    page: str = typer.Option(
        None, metavar="ADDRESS", envvar="EYESPOT_PAGE", help="A running eyespot serve that the report links into."
    ),
    again: Path = typer.Option(None, "--from", metavar="FILE", help="Repeat the evaluation of a summary.json."),
    json: bool = json_option(),
) -> None:
    """Score a benchmark from rankings, from a similarity matrix, or end to end over a gallery."""
    options = EvalOptions(**{name: value for name, value in context.params.items() if name not in NOT_OPTIONS})
    rows = rows_in(context, options, row or ())
    for one in (options, *rows):
        refuse_on_cluster(one.adapt, ray)
    earlier: dict[str, str] = {}
    if again is not None:
        options, earlier = _again(again, out)
    options = replace(options, means=context.with_resource(means_on(ray, workers)))
    if options.benchmark == LIST:
        from eyespot.benchmarks import benchmark as benchmark_named
        from eyespot.benchmarks import names

        every = [benchmark_named(name) for name in names()]
        shown = ("name", "title", "about", "home", "licence", "citation", "splits")
        listed = [{name: getattr(one, name) for name in shown} for one in every]
        print_result(listed, (f"{one.name:<17} {one.about}" for one in every), json)
    elif check:
        _check(options, json)
    elif dry_run:
        tell_plan(options, json)
    elif rows:
        evaluate_rows([replace(one, means=options.means) for one in rows], json)
    else:
        _evaluate(options, json, earlier)


# -- what there is ----------------------------------------------------------------------------------------------


def _check(options: EvalOptions, json: bool) -> None:
    """The files of the benchmark that are there, and where to get the others."""
    from eyespot.benchmarks import check

    benchmark, data, split = known(options)
    states = check(benchmark, data, split)
    if json:
        rows = [one._asdict() for one in states]
        print_json(
            [{**row.pop("needed")._asdict(), **row, "place": row["place"] and str(row["place"])} for row in rows]
        )
    else:
        for state in states:
            shown = str(state.place or state.needed.path.partition("|")[0])
            print_line(f"{state.state:<8} {escaped(shown)}: {state.needed.what}")
            if state.reason:
                print_line(f"{'':<8} {state.reason}")
            if state.place is None or state.state in ("missing", "absent"):
                print_line(f"{'':<8} get it: {state.needed.where}")
        print_line(f"licence: {benchmark.licence}; cite: {benchmark.citation or 'nothing'}")
    if lacking := sum(state.stops for state in states):
        raise NothingFound(f"{lacking} of {len(states)} parts are missing in {data}; see how to get them above")


# -- numbers ----------------------------------------------------------------------------------------------------


def _evaluate(options: EvalOptions, json: bool, earlier: dict[str, str]) -> None:
    """`earlier`: the digests of the inputs of the evaluation that is repeated."""
    from eyespot.reports.folder import comparable
    from eyespot.reports.summary import read_summary, summary_of
    from eyespot.reports.tables import as_text, tables_of

    ranked = ranked_by(options)
    if not ranked.judged:
        _submit(options, ranked.benchmark, ranked.tasks[0], ranked.runs)
        return
    searched, evaluation = ranked.searched, evaluation_of(options, ranked)
    now = evaluation.made["inputs"]
    changed = [f"{path} has changed since" for path, digest in earlier.items() if now.get(path) != digest]
    note_all([*evaluation.notes, *changed])
    beside = comparable(evaluation, [read_summary(Path(place)) for place in options.beside or ()])
    if options.out:
        _write(options, evaluation, beside, searched)
    if json:
        print_json(summary_of(evaluation))
    else:
        print_line("\n\n".join(as_text(table) for table in tables_of(evaluation, beside)))
    exit_if_failed(lacks_verdicts(evaluation))


def _again(place: Path, out: Path | None) -> tuple[EvalOptions, dict[str, str]]:
    """The arguments of an earlier evaluation, to make its numbers once more, and the digests of its inputs."""
    from eyespot.reports.summary import read_summary

    made = read_summary(place)["made"]
    if not isinstance(made, dict) or not isinstance(made.get("arguments"), dict):
        raise UsageError(f"{place} does not say how its numbers were made; give a summary.json of eyespot eval --out")
    arguments = made["arguments"]
    if unknown := arguments.keys() - {field.name for field in fields(EvalOptions)}:
        raise UsageError(f"{place} has options that this version does not know ({min(unknown)}); update eyespot")
    places = {name: Path(arguments[name]) for name in PLACES if arguments.get(name)}
    options = EvalOptions(**{**arguments, **places, "out": out})
    return options if out is not None else replace(options, beside=None, images=None), made.get("inputs", {})


# -- the report -------------------------------------------------------------------------------------------------


def _write(
    options: EvalOptions, evaluation: Evaluation, beside: Sequence[Summary], searched: GallerySearcher | None
) -> None:
    from eyespot.reports.folder import write

    assert options.out is not None  # the caller checks
    out = options.out.expanduser()
    examples = _examples_for(options, evaluation, beside, searched)
    written = write(evaluation, out, beside, examples)
    note(f"{len(written)} files in {out}; look at {out / 'report.html'}")


def _submit(options: EvalOptions, benchmark: Benchmark, task: Task, runs: dict[str, Run]) -> None:
    """Rankings of a split whose truths are not public, as its server takes them."""
    from eyespot.runs import write_run

    if options.out is None or benchmark.submission is None:
        way = f"; --out DIR writes what to send there: {benchmark.home}" if benchmark.submission else ""
        what = f"no image of this split of {benchmark.name} is judged relevant: there is nothing to score"
        raise NothingFound(what + way)
    ranked = runs[task.name].only(task.judged.queries)
    if lacking := len(task.judged.queries) - len(ranked):
        note(f"{lacking} of {len(task.judged.queries)} queries have no ranking; the server may want all")
    out = Path(options.out).expanduser()
    make_folder(out)
    write_run(ranked, out / "submission.json", benchmark.submission)
    note(f"the truths of this split are not public; send {out / 'submission.json'} to {benchmark.home}")


# -- the queries that the report shows ----------------------------------------------------------------------------


def _examples_for(
    options: EvalOptions, evaluation: Evaluation, beside: Sequence[Summary], searched: GallerySearcher | None
) -> Examples:
    """What to look at: by the run of this evaluation, and below it by those of the reports beside it."""
    from eyespot.html import checked_address
    from eyespot.reports.examples import Examples, examples_of
    from eyespot.reports.moved import shown_images
    from eyespot.runs import read_run

    page = checked_address(options.page)
    several = len(evaluation.results) > 1
    files = {one.task.name: f"run-{one.task.name}.parquet" if several else "run.parquet" for one in evaluation.results}
    others: dict[str, dict[str, Run]] = {}
    for summary, given in zip(beside, options.beside or (), strict=True):
        place = Path(given).expanduser()
        folder = place if place.is_dir() else place.parent
        there = {task: folder / name for task, name in files.items() if (folder / name).is_file()}
        others[str(summary["system"])] = {task: read_run(path) for task, path in there.items()}
    groups = examples_of(evaluation, others)
    wanted = shown_images(section for group in groups for section in group.sections)
    tasks = [result.task for result in evaluation.results if result.task.way != "i2t"]
    return Examples(groups, _pictures(options, tasks, wanted, searched) if wanted else {}, page)


def _pictures(
    options: EvalOptions, tasks: Sequence[Task], wanted: Sequence[str], searched: GallerySearcher | None
) -> dict[str, Picture]:
    """From the folder that is named, the gallery that was searched or is named or near, and the benchmark's folder."""
    from eyespot.reports.moved import GALLERY_ID, from_gallery

    found = _in_folder(options.images, tasks, wanted) if options.images else {}
    if searched is not None:
        ids: dict[str, str] = {}  # by the names under which the benchmark knows them
        for task in tasks:
            ids = {name: GALLERY_ID + id for name, id in searched.ids_of(task, wanted).items()} | ids
        by_id = from_gallery(searched.view.gallery.path, list(dict.fromkeys(ids.values())))
        found = {name: by_id[id] for name, id in ids.items() if id in by_id} | found
    elif options.gallery or (gallery_here(None) / "gallery.toml").is_file():
        found = from_gallery(gallery_here(options.gallery), wanted) | found
    lacking = [image for image in wanted if image not in found]
    return (_in_folder(options.data_folder, tasks, lacking) if lacking else {}) | found


def _in_folder(folder: Path, tasks: Sequence[Task], wanted: Sequence[str]) -> dict[str, Picture]:
    """The pictures of a folder, by their names or by the paths that the benchmark's files give them."""
    from eyespot.reports.moved import from_folder

    paths: dict[str, str] = {}
    for task in tasks:
        paths |= {name: str(path) for name in wanted if (path := task.image_facts.get(name, {}).get("path"))}
    there = from_folder(Path(folder).expanduser(), [*wanted, *paths.values()])
    places = {name: there.get(name) or there.get(paths.get(name, name)) for name in wanted}
    return {name: picture for name, picture in places.items() if picture is not None}
