"""`eyespot tune`: build, measure and keep an approximate index, for galleries that exact search takes too long over."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import print_result, print_summary, progress_bar, warn
from eyespot.cli.settings import encoder_option, flag, gallery_here, gallery_option, json_option
from eyespot.types import EyespotError, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.search.collection import Collection
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
    json: bool = json_option(),
    dry_run: bool = flag("--dry-run", "Only print what would be built, and its size."),
) -> None:
    """Build approximate indexes and store the fastest with enough recall; search it with --index."""
    import eyespot
    from eyespot.search.tuning import Tuning, candidates, refuse_few

    collection = eyespot.open(gallery_here(gallery), encoder)
    view = collection.view
    refuse_few(int(view.live.sum()))
    kinds = candidates(kind, int(view.starts[-1]), view.space.dim)
    if dry_run:
        rows = int(view.live.sum())
        builds = [{"name": one.name, "index": one.index, **one.settings, "bytes": one.bytes} for one in kinds]
        lines = (f"{one.name:<32} about {one.bytes / 1e6:,.1f} MB on the disk" for one in kinds)
        print_result({"rows": rows, "builds": builds}, lines, json)
        if not json:
            print_summary(f"{quantity(rows, 'picture')} would be searched; nothing was built")
        return
    with progress_bar("settings") as progress:
        tuned = Tuning(view, recall, _tuning_queries(collection, queries), progress).run(kinds)
    _print(tuned, recall, json)
    shares = ", ".join(f"{100 * share:.1f} % by {source}" for source, share in tuned.measured.shares.items())
    measured, index = tuned.measured, tuned.chosen.candidate.index
    warn(f"measured on {quantity(measured.queries, 'query')} that chose nothing: of the true 50 it found {shares}")
    if measured.exact:
        warn(f"{measured.exact:.0%} of them were answered exactly, because their own estimate was too low")
    if tuned.seconds >= tuned.exact_seconds:
        warn("exact search is no slower here, and misses nothing")
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
            warn(f"tuned for pictures only, not for words: {error}")
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


def _print(tuned: Tuned, recall: float, json: bool) -> None:
    """The settings that were tried as a table, fastest first, and exact search."""
    lines = [f"{'index':<32} {'probes':>6} {'depth':>6} {'recall@50':>9} {'ms':>9}"]
    place, tries = tuned.beside
    for one in sorted(tries, key=lambda one: one.seconds):
        mark, settings = "kept" if one is tuned.chosen else "", one.settings
        numbers = f"{settings['probes']:>6} {settings['depth']:>6} {one.recall:>9.4f} {_ms(one.seconds):>9.3f}"
        lines.append(f"{one.candidate.name:<32} {numbers}  {mark}".rstrip())
    lines.append(f"{'exact':<32} {'':>6} {'':>6} {1:>9.4f} {_ms(tuned.exact_seconds):>9.3f}")
    tried = [{"name": it.candidate.name, **it.settings, "recall": it.recall, "ms": _ms(it.seconds)} for it in tries]
    measured = {**asdict(tuned.measured), "ms": _ms(tuned.seconds), "exact_ms": _ms(tuned.exact_seconds)}
    chosen = {"index": tuned.chosen.candidate.index, "settings": dict(tuned.chosen.settings)}
    size = sum(part.stat().st_size for part in place.rglob("*") if part.is_file())
    fields = {**chosen, "wanted": recall, "measured": measured, "path": str(place), "bytes": size, "tried": tried}
    print_result(fields, lines, json)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
