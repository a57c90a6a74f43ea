"""`eyespot eval`: a published benchmark, or your own queries, to numbers with their report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._eval_inputs import EvalOptions, known, tell_plan
from eyespot.cli._eval_made import PLACES, evaluation_of, ranked_by, some_failed
from eyespot.cli._eval_rows import evaluate_rows, row_option, rows_in
from eyespot.cli._judge_options import SOME_FAILED, calls_option, ledger_option, money_option, prices_option
from eyespot.cli._ray import means_on, ray_option, refuse_on_cluster, workers_option
from eyespot.cli.console import escaped, note, print_json, print_line
from eyespot.cli.settings import gallery_option, index_option, json_option, option_of
from eyespot.settings.judge import DEPTH, JudgeSettings
from eyespot.settings.search import ADAPT, SearchSettings, StageSettings
from eyespot.storage.atomic import make_folder
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.benchmarks import Benchmark, Evaluation, GallerySearcher, Task
    from eyespot.reports.tables import Summary
    from eyespot.types import Run

LIST = "list"
NOT_OPTIONS = ("again", "json", "check", "ray", "workers", "dry_run", "row")


def run(
    context: typer.Context,
    benchmark: str = typer.Argument(None, help="The benchmark, or `list`."),
    data: Path = typer.Option(None, help="The folder with the benchmark's files."),
    check: bool = typer.Option(
        False, "--check", help="List the files that are present or missing, and where to get them."
    ),
    run: list[str] = typer.Option(
        None, "--run", metavar="[TASK=]FILE", help="Rankings, or a similarity matrix (.npz)."
    ),
    run_format: str = typer.Option(None, help="The format of the rankings."),
    gallery: Path = gallery_option("Search this gallery, end to end."),
    encoder: str = typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Search this encoder's space."),
    index: str = index_option(),
    ray: str = ray_option(),
    workers: int = workers_option(),
    adapt: str = typer.Option(None, metavar="CKPT", help=f"Search, or re-rank --run, with an adapter: {ADAPT}."),
    adapt_depth: int = option_of(StageSettings, "adapt_depth"),
    neighbours: int = option_of(StageSettings, "neighbours"),
    alpha: float = option_of(StageSettings, "alpha"),
    by: str = option_of(StageSettings, "by", default="look", show_default=True),
    rerank_local: str = option_of(StageSettings, "rerank_local"),
    row: list[str] = row_option(),
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
    map: str = typer.Option(
        None, metavar="QUERY", help="Draw a map of the vectors around this query (with -g, --out)."
    ),
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
        _list(json)
    elif check:
        _check(options, json)
    elif dry_run:
        tell_plan(options, json)
    elif rows:
        evaluate_rows([replace(one, means=options.means) for one in rows], json)
    else:
        _evaluate(options, json, earlier)


# -- what there is ----------------------------------------------------------------------------------------------


def _list(json: bool) -> None:
    from eyespot.benchmarks import benchmark, names

    known_ones = [benchmark(name) for name in names()]
    if json:
        fields = ("name", "title", "about", "home", "licence", "citation", "splits")
        print_json([{name: getattr(one, name) for name in fields} for one in known_ones])
        return
    for one in known_ones:
        print_line(f"{one.name:<17} {one.about}")


def _check(options: EvalOptions, json: bool) -> None:
    """The files of the benchmark that are there, and where to get the others."""
    from eyespot.benchmarks import check

    benchmark, data, split = known(options)
    states = check(benchmark, data, split)
    if json:
        rows = []
        for state in states:
            place = None if state.place is None else str(state.place)
            rows.append({**state.needed._asdict(), "state": state.state, "place": place, "reason": state.reason})
        print_json(rows)
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
    for sentence in [*evaluation.notes, *changed]:
        note(sentence)
    beside = comparable(evaluation, [read_summary(Path(place)) for place in options.beside or ()])
    if options.out:
        _write(options, evaluation, beside, searched)
    if json:
        print_json(summary_of(evaluation))
    else:
        print_line("\n\n".join(as_text(table) for table in tables_of(evaluation, beside)))
    if some_failed(evaluation):
        raise typer.Exit(SOME_FAILED)


# -- once more ----------------------------------------------------------------------------------------------------


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
    return options if out is not None else replace(options, map=None, beside=None, images=None), made.get("inputs", {})


# -- the report -------------------------------------------------------------------------------------------------


def _write(
    options: EvalOptions, evaluation: Evaluation, beside: Sequence[Summary], searched: GallerySearcher | None
) -> None:
    from eyespot.cli._report_pictures import examples_for
    from eyespot.reports.folder import write

    def maps() -> Iterator[Any]:
        """The map of `--map`, of the first task that has the query."""
        from eyespot.reports.drawing import map_of

        query = options.map
        if query is not None and searched is not None:
            tasks = [result.task for result in evaluation.results]
            task = next((task for task in tasks if query in task.judged.queries and task.way != "i2t"), tasks[0])
            around = searched.around(task, query, options.seed)
            yield map_of(query, around, searched.adapted(around))

    assert options.out is not None  # the caller checks
    out = options.out.expanduser()
    examples = examples_for(options, evaluation, beside, searched)
    written = write(evaluation, out, beside, maps, examples)
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
