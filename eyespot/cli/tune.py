"""`eyespot tune`: build, measure and keep an approximate index, for galleries that exact search takes too long over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import note, print_result, print_summary, progress_bar
from eyespot.cli.settings import encoder_option, flag, gallery_option, json_option, searched_here
from eyespot.rooms import needs
from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    from eyespot.search.collection import Collection
    from eyespot.search.index_choice import Measured
    from eyespot.search.tuning import Tuned, TuningQueries


def run(
    gallery: Path = gallery_option("The gallery to tune for."),
    encoder: str = encoder_option("Tune this encoder's space."),
    recall: float = typer.Option(0.99, help="The share of the true 50 nearest pictures that must be found."),
    kind: str = typer.Option("auto", help="auto, pq, ivf, rabitq or hnsw."),
    queries: Path = typer.Option(
        None,
        metavar="FILE",
        help="Queries for the measurement: words (.txt, one per line) or vectors (.npy); 200 are enough.",
        show_default="200 pictures and 200 words",
    ),
    plot: Path = typer.Option(
        None, metavar="FILE.png", help="Plot recall against time, as .png and .svg; needs [plots]."
    ),
    html: Path = typer.Option(None, metavar="FILE", help="Write a page with the plot and the table."),
    json: bool = json_option(),
    dry_run: bool = flag("--dry-run", "Only print what would be built, and its size."),
) -> None:
    """Build approximate indexes and store the fastest with enough recall; search it with --index."""
    import eyespot
    from eyespot.search.tuning import Tuning, candidates, refuse_few

    # What could not be drawn is refused before anything is built.
    for place in (place for place in (plot, html) if place is not None):
        if not place.parent.is_dir():
            raise UsageError(f"there is no folder {place.parent} to write {place.name} to; make it first")
        with needs("a figure"):
            import matplotlib  # noqa: F401
    if plot is not None and plot.suffix not in (".png", ".svg"):
        raise UsageError(f"--plot draws .png and .svg, not {plot.name!r}")
    collection = eyespot.open(searched_here(gallery, encoder), encoder)
    view = collection.view
    refuse_few(int(view.live.sum()))
    kinds = candidates(kind, int(view.starts[-1]), view.space.dim)
    if dry_run:
        rows = int(view.live.sum())
        builds = [{"name": one.name, "index": one.index, **one.settings, "bytes": one.bytes} for one in kinds]
        lines = (f"{one.name:<32} about {one.bytes / 1e6:,.1f} MB on the disk" for one in kinds)
        print_result({"rows": rows, "builds": builds}, lines, json)
        if not json:
            print_summary(f"{rows} pictures would be searched; nothing was built")
        return
    with progress_bar("settings") as progress:
        tuned = Tuning(view, recall, _tuning_queries(collection, queries), progress).run(kinds)
    _draw(tuned, plot, html)
    _print(tuned, recall, json)
    measured, index = tuned.measured, tuned.chosen.candidate.index
    note(f"measured on {measured.queries} queries that chose nothing: {_shares(measured)}")
    if measured.exact:
        note(f"{measured.exact:.0%} of them were answered exactly, because their own estimate was too low")
    if tuned.seconds >= tuned.exact_seconds:
        note("exact search is no slower here, and misses nothing")
    print_summary(f"search it with: eyespot search --index {index}")


def _tuning_queries(collection: Collection, place: Path | None) -> list[TuningQueries]:
    """Queries from a file; or pictures of the gallery moved a little, and words, if its encoder can be loaded."""
    import numpy as np

    from eyespot.gallery.files import map_array
    from eyespot.search.embedding import embed
    from eyespot.search.query_language import parse
    from eyespot.search.tuning import TuningQueries, pictures_moved, words
    from eyespot.storage.text_files import text_of

    if place is None:
        pictures = pictures_moved(collection.view)
        try:
            return [pictures, words(collection.encoder)]
        except EyespotError as error:
            note(f"tuned for pictures only, not for words: {error}")
            return [pictures]
    place = place.expanduser()
    if place.suffix == ".npy":
        if not place.is_file():
            raise UsageError(f"there is no file {place}")
        vectors = np.asarray(map_array(place), np.float32)
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)  # (queries, dim)
        return [TuningQueries(unit, place.name)]
    texts = list(dict.fromkeys(text for text in text_of(place).splitlines() if text.strip()))
    if not texts:
        raise UsageError(f"{place} holds no query; write one a line")
    return [TuningQueries(embed([parse(text) for text in texts], collection.encoder), place.name)]


# -- output -------------------------------------------------------------------------------------------------


def _print(tuned: Tuned, recall: float, json: bool) -> None:
    lines = [f"{'index':<32} {'probes':>6} {'depth':>6} {'recall@50':>9} {'ms':>9}"]
    for name, probes, depth, share, ms, mark in _rows(tuned):
        lines.append(f"{name:<32} {probes:>6} {depth:>6} {share:>9} {ms:>9}  {mark}".rstrip())
    lines.append(f"{'exact':<32} {'':>6} {'':>6} {1:>9.4f} {_ms(tuned.exact_seconds):>9.3f}")
    place, tries = tuned.beside
    tried = []
    for one in tries:
        tried.append({"name": one.candidate.name, **one.settings, "recall": one.recall, "ms": _ms(one.seconds)})
    measured = {**asdict(tuned.measured), "ms": _ms(tuned.seconds), "exact_ms": _ms(tuned.exact_seconds)}
    chosen = {"index": tuned.chosen.candidate.index, "settings": dict(tuned.chosen.settings)}
    size = sum(part.stat().st_size for part in place.rglob("*") if part.is_file())
    fields = {**chosen, "wanted": recall, "measured": measured, "path": str(place), "bytes": size, "tried": tried}
    print_result(fields, lines, json)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def _rows(tuned: Tuned) -> Sequence[tuple[str, ...]]:
    """The settings as a table has them, fastest first: index, probes, depth, recall, milliseconds, mark of the kept."""
    rows = []
    for one in sorted(tuned.beside[1], key=lambda one: one.seconds):
        settings = str(one.settings["probes"]), str(one.settings["depth"])
        mark = "kept" if one is tuned.chosen else ""
        rows.append((one.candidate.name, *settings, f"{one.recall:.4f}", f"{_ms(one.seconds):.3f}", mark))
    return rows


def _shares(measured: Measured) -> str:
    """What was found by each kind of queries."""
    found = (f"{100 * share:.1f} % by {source}" for source, share in measured.shares.items())
    return f"of the true 50 it found {', '.join(found)}"


# -- what is drawn ------------------------------------------------------------------------------------------


def _draw(tuned: Tuned, plot: Path | None, html: Path | None) -> None:
    if plot is None and html is None:
        return
    from eyespot.reports.figures import MethodPoint, as_svg, save, time_accuracy
    from eyespot.reports.folder import Pictured, page_of_table
    from eyespot.reports.tables import ReportTable
    from eyespot.storage.atomic import write_whole

    points = []
    for one in tuned.beside[1]:
        label = f"{one.settings['probes']}/{one.settings['depth']}"
        points.append(MethodPoint(label, one.seconds, one.recall, group=one.candidate.name))
    points.append(MethodPoint("exact", tuned.exact_seconds, 1.0, group="exact"))
    figure = time_accuracy(points, "share of the true 50 nearest", time="seconds of CPU time per query")
    if plot is not None:
        save(figure, plot.with_suffix(""))
    if html is not None:
        about = "A point is probes/depth; the line joins what nothing else beats in both."
        measured = tuned.measured
        exact = ("exact", "", "", "1.0000", f"{_ms(tuned.exact_seconds):.3f}", "")
        basis = (
            f"Measured on {measured.queries} queries that chose nothing: {_shares(measured)}. "
            "The numbers below are of the queries that chose it."
        )
        columns = ("index", "probes", "depth", "recall@50", "ms of CPU time", "")
        table = ReportTable("Approximate indexes", columns, [*_rows(tuned), exact], basis)
        page = page_of_table(table, Pictured([(about, as_svg(figure))]), f"kept: {tuned.chosen.name}")
        write_whole(html, lambda file: file.write(page.encode()))
