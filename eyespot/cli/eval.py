"""`eyespot eval`: a published benchmark, or your own queries, to numbers with their report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli._eval_inputs import EvalInputs
from eyespot.cli._eval_rows import evaluate_rows, evaluation_of, lacks_verdicts, ranked_by, rows_in
from eyespot.cli._ray import backend_on, refuse_on_cluster
from eyespot.cli.console import escaped, exit_if_failed, print_json, print_line, print_result, warn, warn_all
from eyespot.cli.settings import PanelCommand, flag, gallery_here, json_option
from eyespot.settings.fields import EVERYDAY, JUDGES, RESEARCH
from eyespot.settings.gallery import ClusterSettings
from eyespot.settings.measure import EvalSettings
from eyespot.storage.atomic import make_folder
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.benchmarks import Evaluation, GallerySearcher, Task
    from eyespot.reports.moved import Picture
    from eyespot.reports.summary import Summary
    from eyespot.types import Run


class EvalCommand(PanelCommand):
    """A verb with its judge and its stages in panels of their own."""

    panels = (EVERYDAY, JUDGES, RESEARCH)


def run(
    context: typer.Context,
    settings: EvalSettings,
    cluster: ClusterSettings,
    check: bool = flag("--check", "List the files that are present or missing, and where to get them."),
    row: list[str] = typer.Option(
        None,
        metavar="NAME=OPTIONS",
        help="A row of a table: a system's name, and what makes it, as in 'QE-1 = --neighbours 1'; repeatable.",
    ),
    again: Path = typer.Option(None, "--from", metavar="FILE", help="Repeat the evaluation of a summary.json."),
    json: bool = json_option(),
) -> None:
    """Score a benchmark from rankings, from a similarity matrix, or end to end over a gallery."""
    if row and (settings.dry_run or again):
        raise UsageError("--dry-run and --from are about one system; leave them out, or leave out --row")
    rows = rows_in(context, settings, row or ())
    for one in (settings, *rows):
        refuse_on_cluster(one.adapt, cluster)
    earlier: dict[str, str] = {}
    if again is not None:
        settings, earlier = _again(again, settings.out)
    inputs = EvalInputs(settings, context.with_resource(backend_on(cluster)))
    if settings.benchmark == "list":
        from eyespot.benchmarks import benchmark as benchmark_named, names

        every = [benchmark_named(name) for name in names()]
        shown = ("name", "title", "about", "home", "licence", "citation", "splits")
        listed = [{name: getattr(one, name) for name in shown} for one in every]
        print_result(listed, (f"{one.name:<17} {one.about}" for one in every), json)
    elif check:
        _check(inputs, json)
    elif settings.dry_run:
        inputs.tell_plan(json)
    elif rows:
        evaluate_rows(inputs, rows, json)
    else:
        _evaluate(inputs, json, earlier)


# -- what there is ----------------------------------------------------------------------------------------------


def _check(inputs: EvalInputs, json: bool) -> None:
    """The files of the benchmark that are there, and where to get the others."""
    from eyespot.benchmarks import check

    benchmark, data, split = inputs.known()
    states = check(benchmark, data, split)
    if json:
        rows = [dict(vars(one)) for one in states]
        print_json([{**it.pop("needed")._asdict(), **it, "place": it["place"] and str(it["place"])} for it in rows])
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


def _evaluate(inputs: EvalInputs, json: bool, earlier: dict[str, str]) -> None:
    """`earlier`: the digests of the inputs of the evaluation that is repeated."""
    from eyespot.reports.folder import comparable
    from eyespot.reports.summary import read_summary, summary_of
    from eyespot.reports.tables import as_text, tables_of
    from eyespot.runs import write_run

    options, ranked = inputs.settings, ranked_by(inputs)
    if not ranked.judged:  # the truths of a split are not public: rankings as its server takes them
        benchmark, task = ranked.benchmark, ranked.tasks[0]
        if options.out is None or benchmark.submission is None:
            way = f"; --out DIR writes what to send there: {benchmark.home}" if benchmark.submission else ""
            what = f"no image of this split of {benchmark.name} is judged relevant: there is nothing to score"
            raise NothingFound(what + way)
        run = ranked.runs[task.name].only(task.judged.queries)
        if lacking := len(task.judged.queries) - len(run):
            warn(f"{lacking} of {quantity(len(task.judged.queries), 'query')} have no ranking; the server may want all")
        place = options.out.expanduser() / "submission.json"
        make_folder(place.parent)
        write_run(run, place, benchmark.submission)
        warn(f"the truths of this split are not public; send {place} to {benchmark.home}")
        return
    evaluation = evaluation_of(inputs, ranked)
    now = evaluation.made["inputs"]
    changed = [f"{path} has changed since" for path, digest in earlier.items() if now.get(path) != digest]
    warn_all([*evaluation.notes, *changed])
    beside = comparable(evaluation, [read_summary(place) for place in options.beside])
    warn_all(sentence for one in beside for sentence in one["left_out"])
    if options.out:
        _write(inputs, evaluation, beside, ranked.searched)
    if json:
        print_json(summary_of(evaluation))
    else:
        print_line("\n\n".join(as_text(table) for table in tables_of(evaluation, beside)))
    exit_if_failed(lacks_verdicts(evaluation))


def _again(place: Path, out: Path | None) -> tuple[EvalSettings, dict[str, str]]:
    """The settings of an earlier evaluation, to make its numbers once more, and the digests of its inputs."""
    from eyespot.reports.summary import read_summary

    made = read_summary(place)["made"]
    if not isinstance(made, dict) or not isinstance(made.get("arguments"), dict):
        raise UsageError(f"{place} does not say how its numbers were made; give a summary.json of eyespot eval --out")
    arguments = {name: value for name, value in made["arguments"].items() if value is not None}
    if unknown := arguments.keys() - EvalSettings.model_fields.keys():
        raise UsageError(f"{place} has options that this version does not know ({min(unknown)}); update eyespot")
    if out is None:
        for name in ("beside", "images"):
            arguments.pop(name, None)
    return EvalSettings.read(**{**arguments, "out": out}), made.get("inputs", {})


# -- the report -------------------------------------------------------------------------------------------------


def _write(
    inputs: EvalInputs, evaluation: Evaluation, beside: Sequence[Summary], searched: GallerySearcher | None
) -> None:
    """The report, with what to look at: by the run of this evaluation, and below it by those of reports beside it."""
    from eyespot.html import checked_address
    from eyespot.reports.examples import Examples, examples_of
    from eyespot.reports.folder import write
    from eyespot.reports.moved import shown_images
    from eyespot.runs import read_run

    options, results = inputs.settings, evaluation.results
    assert options.out is not None  # the caller checks
    out, page = options.out.expanduser(), checked_address(options.page)
    several = len(results) > 1
    files = {one.task.name: f"run-{one.task.name}.parquet" if several else "run.parquet" for one in results}
    others: dict[str, dict[str, Run]] = {}
    for summary, given in zip(beside, options.beside, strict=True):
        place = given.expanduser()
        folder = place if place.is_dir() else place.parent
        same = {task["task"] for task in summary["tasks"]}  # of the same judgements
        there = {task: folder / name for task, name in files.items() if task in same and (folder / name).is_file()}
        others[str(summary["system"])] = {task: read_run(path) for task, path in there.items()}
    groups = examples_of(evaluation, others)
    wanted = shown_images(section for group in groups for section in group.sections)
    tasks = [result.task for result in results if result.task.way != "i2t"]
    examples = Examples(groups, _pictures(inputs, tasks, wanted, searched) if wanted else {}, page)

    written = write(evaluation, out, beside, examples)
    warn(f"{quantity(len(written), 'file')} in {out}; look at {out / 'report.html'}")


def _pictures(
    inputs: EvalInputs, tasks: Sequence[Task], wanted: Sequence[str], searched: GallerySearcher | None
) -> dict[str, Picture]:
    """From the folder that is named, the gallery that was searched or is named or near, and the benchmark's folder."""
    from eyespot.reports.moved import GALLERY_ID, from_gallery

    options = inputs.settings
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
    return (_in_folder(inputs.data, tasks, lacking) if lacking else {}) | found


def _in_folder(folder: Path, tasks: Sequence[Task], wanted: Sequence[str]) -> dict[str, Picture]:
    """The pictures of a folder, by their names or by the paths that the benchmark's files give them."""
    from eyespot.reports.moved import from_folder

    paths: dict[str, str] = {}
    for task in tasks:
        paths |= {name: str(path) for name in wanted if (path := task.image_facts.get(name, {}).get("path"))}
    there = from_folder(folder.expanduser(), [*wanted, *paths.values()])
    places = {name: there.get(name) or there.get(paths.get(name, name)) for name in wanted}
    return {name: picture for name, picture in places.items() if picture is not None}
