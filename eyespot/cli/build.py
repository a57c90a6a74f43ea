"""`eyespot build`: makes judged collections, and captions to train on. Each kind is a command of this group."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli import _building
from eyespot.cli.console import (
    conclude,
    escaped,
    exit_if_failed,
    print_result,
    print_summary,
    progress_bar,
    warn,
    warn_all,
)
from eyespot.cli.settings import COUNT_ONLY, gallery_here, gallery_option, group, json_option
from eyespot.llms.budget import Budget
from eyespot.search.parts import ledger_of
from eyespot.settings.build import InatSettings, LabelledSettings, PairSetSettings, RerankSetSettings
from eyespot.settings.judge import BudgetSettings, LedgerSetting
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.curate.captions import Captioner
    from eyespot.curate.inat.curating import Curated
    from eyespot.curate.pair_set import PairSource, PairsResult
    from eyespot.pipelines.human_review import Case, Queue

app = group("Build judged collections.")
BY = "category"
KEYS = "a accept, m edit, d drop, s skip, b back, q quit"


@app.command("rerank")
def rerank(given: RerankSetSettings, json: bool = json_option()) -> None:
    """Make a re-ranking set: queries with candidates, of which some but not most are relevant."""
    from eyespot.curate.rerank import counted, divide, keep_split, select, write
    from eyespot.runs import read_judged, read_queries, read_run

    judged = read_judged(given.qrels, given.format)
    if given.queries is not None:
        judged = replace(judged, queries=read_queries(given.queries))
    if given.by is not None and not any(judged.queries.values()):
        raise UsageError("a split by a column needs the columns of the queries; name their file with --queries")
    column = given.by or (BY if any(BY in facts for facts in judged.queries.values()) else None)
    selected = select(read_run(given.run, given.run_format), judged, given)
    made = keep_split(selected) if given.keep_split else divide(selected, column)
    if not given.keep_split and any("split" in facts for facts in judged.queries.values()):
        warn("the queries have a split, which a new one replaces; --keep-split keeps theirs")
    warn_all(made.notes)
    if not given.dry_run:
        write(made, column)
    counts = counted(made, column)
    splits = counts["splits"].items()
    lines = [f"{name:<6} " + "  ".join(f"{count} {what}" for what, count in split.items()) for name, split in splits]
    lines += [f"{'out':<6} {quantity(count, 'query')}: {reason}" for reason, count in counts["dropped"].items()]
    print_result({"out": str(given.out), **counts, "notes": made.notes}, lines, json)
    print_summary("nothing was written" if given.dry_run else f"written to {given.out}")


@app.command("review")
def review(
    queue: Path = typer.Argument(help="The queue: a .jsonl file written by a step of a pipeline."),
    who: str | None = typer.Option(None, "--as", help="Your name.", show_default="the name of your account"),
    second: bool = typer.Option(False, "--second", help="Decide also on what others decided, without their choices."),
    json: bool = json_option(),
) -> None:
    """Review the cases a pipeline is in doubt about: accept, edit (m) or drop; each decision is saved at once."""
    import getpass

    from eyespot.pipelines.human_review import Queue

    opened = Queue(queue)
    _building.tell_lapsed([queue])
    _review(opened, who or getpass.getuser(), second)
    counts, agreement = opened.counts(), opened.agreement()
    lines = ["  ".join(f"{count} {what}" for what, count in counts.items())]
    if agreement["cases"]:
        values = [f"{name} {agreement[name]:.2f}" for name in ("kappa", "alpha") if agreement[name] is not None]
        numbers = f"{quantity(agreement['cases'], 'case')} decided by several people, {agreement['disputed']} disputed"
        lines.append("; ".join(filter(None, [numbers, *values, agreement["why"]])))
    fields = {"queue": str(queue), "decisions": str(opened.decided), **counts, "agreement": agreement}
    print_result(fields, lines, json)


def _review(queue: Queue, who: str, second: bool) -> None:
    """Show what is open, one case after the other, until all are decided or the person leaves.

    Each decision is on the disk before the next case is shown; `b` shows the one before once more.
    """
    cases, at = queue.open(who if second else None), 0
    chosen = {} if second else queue.opinions()
    while at < len(cases):
        case = cases[at]
        print(f"\n{at + 1} of {len(cases)}  {escaped(case.id)}\n  {escaped(case.why)}", file=sys.stderr)
        for picture in case.pictures:
            conclude(f"  picture  {picture}")
        for name, text in case.texts.items():
            conclude(f"  {name}: {text}")
        others = [one for one in chosen.get(case.id, []) if one.who != who]
        for one in others:
            conclude(f"  {escaped(one.who)}: {one.choice}")
        try:
            at = max(0, at + _decide(queue, case, who, bool(others)))
        except EOFError:
            return


def _decide(queue: Queue, case: Case, who: str, settles: bool) -> int:
    """The person's decision goes to the queue; returns how far to go on: one case, or one back."""
    while True:
        key = _read_answer(f"{KEYS}: ").lower()[:1]
        if key == "q":
            raise EOFError
        if key in ("s", "b"):
            return 1 if key == "s" else -1
        if key in ("a", "d"):
            why = _read_answer("  why (Enter for nothing): ") if key == "d" else ""
            queue.decide(case, "drop" if key == "d" else "accept", who, note=why, settles=settles)
            return 1
        if key == "m":
            if not case.texts:
                conclude("  there is no text to edit; accept or drop it")
            lines = {name: _read_answer(f"  {escaped(name)} (Enter leaves it): ") for name in case.texts}
            texts = {name: text for name, text in lines.items() if text and text != case.texts[name]}
            if texts:
                queue.decide(case, "mend", who, texts=texts, settles=settles)
                return 1


def _read_answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()


@app.command("inat")
def inat(given: InatSettings, json: bool = json_option()) -> None:
    """Build a collection like iNat24 from millions of observations: balanced, licensed, clean and documented."""
    from eyespot.curate.inat import curating

    out, photos = given.out, given.photos
    if given.dry_run:
        with progress_bar("steps") as tell:
            planned = curating.foretell(given, tell)
        _tell_funnel(planned, json, first=given.sample)
        print_summary("nothing was written")
        return
    if out is None:
        raise UsageError("the collection needs a folder; name one with --out, or only count with --dry-run")
    with progress_bar("steps") as tell:
        done = curating.curate(given, out, tell)
    _tell_funnel(done, json, out=str(out), pictures=done.pictures)
    if photos is None:
        warn(f"no --photos: {out / 'download.csv'} lists what to fetch; run the line again with the folder")
    if done.waiting:
        waiting = f"{quantity(done.waiting, 'picture waits', 'pictures wait')} for a person"
        warn(f"{waiting}: eyespot build review {out / 'review.jsonl'}, then run again")
    print_summary(f"{quantity(done.pictures, 'picture')} in {out}")
    if done.failed:
        warn(f"missing or damaged: {quantity(done.failed, 'picture')}; {out / 'card.md'} counts them")
    exit_if_failed(done.failed)


def _tell_funnel(done: Curated, json: bool, **more: object) -> None:
    warn_all(done.notes)
    lines = []
    for step in done.steps:
        dropped = "".join(f"; {count:,} {reason}" for reason, count in step["dropped"].items())
        lines.append(f"{step['step']:<12} {step['came']:,} in, {step['kept']:,} kept{dropped}")
    counts = {"draw": dict(done.drawn), "waiting": done.waiting, "failed": done.failed}
    print_result({"steps": done.steps, **counts, **more}, lines, json)


app.command("rmir")(_building.rmir)
app.command("recos")(_building.recos)
app.command("transcript")(_building.transcript)
app.command("compare")(_building.compare)


@app.command("publish")
def publish(
    folder: Path = typer.Argument(metavar="SET", help="The finished set: OUT/set of a builder."),
    to: str = typer.Option(..., "--to", help="A new folder, hub:OWNER/NAME (private), or zenodo (a draft)."),
    version: str = typer.Option("1.0.0", help="The version of this release."),
    json: bool = json_option(),
) -> None:
    """Give a finished set a version, a citation and checksums, and send it where others get it."""
    from eyespot.bridges.hubs import Release, publish

    release = Release.of(folder, version)
    if release.red:
        warn(f"{release.red} checks of its card are red; readers see them first")
    if not release.makers:
        warn("the citation names nobody; write makers = … under [card.motivation] in the recipe")
    where = publish(release, to)
    print_result({"set": str(folder), "version": version, "at": where, "red": release.red}, [where], json)


@app.command("captions")
def captions(
    budget: BudgetSettings,
    stored: LedgerSetting,
    out: Path = typer.Option(..., "--out", help="The output, .parquet or .csv, with the columns id and caption."),
    gallery: Path = gallery_option("The gallery whose labels are used."),
    common: str | None = typer.Option(
        None, metavar="COLUMN", help="The column with common names.", show_default="common_name and similar"
    ),
    species: str | None = typer.Option(
        None, metavar="COLUMN", help="The column with scientific names.", show_default="scientific_name and similar"
    ),
    templates: Path | None = typer.Option(
        None, help="Your own templates, one per line: {COLUMN} is a label, {a COLUMN} a label with its article."
    ),
    seed: int = typer.Option(0, help="Another seed selects other templates."),
    by: str | None = typer.Option(
        None,
        "--by",
        metavar="MODEL",
        help="Let a vision model write the captions: openai:MODEL.",
        show_default="templates",
    ),
    json: bool = json_option(),
    dry_run: bool = COUNT_ONLY,
) -> None:
    """Write a caption for each picture that has only labels, like a query that a person would type."""
    from eyespot.curate.captions import captioned, columns, count, write, writer_of
    from eyespot.curate.templates import Templates, parsed
    from eyespot.storage.text_files import text_of

    writer_of(out)
    place = gallery_here(gallery)
    named = {gap: column for gap, column in (("common", common), ("species", species)) if column is not None}
    captioner: Captioner
    if by is None:
        given = None if templates is None else parsed(text_of(templates))
        captioner = Templates.over(columns(place), named, given, seed=seed)
    elif templates is not None or dry_run:
        raise UsageError("--by lets a model write; leave out --templates and --dry-run")
    else:
        from eyespot import llms
        from eyespot.curate.captions import Seeing

        # The model gets the labels that templates would use.
        labels = Templates.over(columns(place), named).columns.values()
        model = llms.load(by, budget=Budget(budget.budget_calls, None, budget.budget_money))
        captioner = Seeing(by, model, ledger_of(stored.ledger, place), tuple(labels))
    pictures = captioned(place, captioner)
    written = count(pictures) if dry_run else write(pictures, out, captioner)
    failures = [asdict(failure) for failure in written.failures]
    counts = {"captions": written.captions, "different": len(written.different)}
    lines = ["  ".join(f"{count} {what}" for what, count in counts.items())]
    lines += [f"{count} without: {escaped(why)}" for why, count in written.without.items()]
    lines += [f"{escaped(failure.path)}\t{escaped(failure.reason)}" for failure in written.failures]
    fields = {"out": str(out), **counts, "without": dict(written.without), "failures": failures}
    print_result(fields, lines, json)
    print_summary("nothing was written" if dry_run else f"written to {out}")
    exit_if_failed(failures)


# -- pictures and their captions, or two pictures of one class, to train on ------------------------------------------


pairs = group("Make pairs of pictures and texts from COCO, BioTrove or RMIR, or of two pictures with one label.")


@pairs.command("coco")
def coco(
    target: PairSetSettings,
    files: list[Path] = typer.Argument(help="captions_train2017.json or a similar file."),
    images: Path = typer.Option(..., help="The folder with the pictures."),
    json: bool = json_option(),
) -> None:
    """COCO captions: about five per picture."""
    from eyespot.curate.pairs.published import Coco

    _make_pairs(Coco(files, images, target.out, _ids(target.without)), target.out, json)


@pairs.command("biotrove")
def biotrove(
    target: PairSetSettings,
    files: list[Path] = typer.Argument(help="The metadata's parquet files, all of them."),
    images: Path = typer.Option(..., help="The folder with the photos, as PHOTO_ID.jpg; they can be added later."),
    count: int = typer.Option(5_000_000, min=1, help="Photos to sample."),
    captioned: int = typer.Option(500_000, min=0, help="The number of these photos that are left to be captioned."),
    seed: int = typer.Option(0, min=0, help="Another seed samples other photos."),
    json: bool = json_option(),
) -> None:
    """BioTrove: a random sample of photos with captions from their labels, some left to be captioned."""
    from eyespot.curate.pairs.published import BioTrove

    _make_pairs(BioTrove(files, images, target.out, count, captioned, seed, _ids(target.without)), target.out, json)


@pairs.command("rmir")
def rmir(
    target: PairSetSettings,
    folder: Path = typer.Argument(metavar="SET", help="The folder of the set: queries, qrels and pool."),
    split: str = typer.Option("train", help="The split to use."),
    json: bool = json_option(),
) -> None:
    """An RMIR set: questions with their own picture, and the pictures that answer them."""
    from eyespot.curate.pairs.published import Rmir

    _make_pairs(Rmir(folder, split, _ids(target.without)), target.out, json)


@pairs.command("labelled")
def labelled(given: LabelledSettings, json: bool = json_option()) -> None:
    """Labelled pictures: each with another of its class, never with a copy of itself; some classes held out."""
    from eyespot.curate.pairs import labelled as by_label
    from eyespot.curate.pairs.label_lists import is_gallery

    source = by_label.LabelledSet(given, _ids(given.without))
    with progress_bar() as progress:
        made = by_label.make(source, progress)
    gallery = given.place if is_gallery(given) else "GALLERY"
    summary = f"train with: eyespot train linear {gallery} --labels {given.out}/train/"
    _tell_pairs(made, given.out, json, summary, classes=source.classes)


def _ids(path: Path | None) -> frozenset[str]:
    from eyespot.storage.text_files import text_of

    lines = [] if path is None else text_of(path).splitlines()
    return frozenset(one.strip() for one in lines if one.strip())


def _make_pairs(source: PairSource, out: Path, json: bool) -> None:
    from eyespot.curate.pair_set import make

    with progress_bar() as progress:
        made = make(source, out, progress)
    _tell_pairs(made, out, json, f"train on them with: eyespot train quari GALLERY --captions {out}/")


def _tell_pairs(made: PairsResult, out: Path, json: bool, summary: str, **more: Any) -> None:
    """What was made, on stdout; what could not be read, on stderr, with exit code 3."""
    failures = [{"file": failure.place, "reason": failure.reason} for failure in made.failures]
    rows = {name.removesuffix(".parquet"): count for name, count in made.rows.items()}
    fields = {"out": str(out), "files": made.parts, "files_before": made.before, **rows}
    counts = [f"{quantity(n, 'row')} of {table}" for table, n in made.rows.items()]
    lines = ["  ".join([f"{quantity(made.parts, 'file')} ({made.before} before)", *counts])]
    for why, count in made.left_out.items():
        lines.append(f"{count} left out: {escaped(why)} ({escaped(made.examples[why])} for one)")
    print_result({**fields, "left_out": dict(made.left_out), "failures": failures, **more}, lines, json)
    warn_all(f"{failure.reason}; it makes no pairs until it is fixed" for failure in made.failures)
    print_summary(summary)
    exit_if_failed(made.failures)


app.add_typer(pairs, name="pairs")
