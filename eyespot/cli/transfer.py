"""`eyespot import` and `eyespot export`: galleries from and to the formats others use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli import _exporting, judges
from eyespot.cli.console import exit_if_failed, print_result, print_summary, progress_bar, warn, warn_all, warn_first
from eyespot.cli.settings import gallery_here, gallery_option, group, json_option
from eyespot.settings.fields import GALLERY, Settings, setting
from eyespot.storage.digests import text_digest
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.formats.imports.photo_facts import PhotoFacts

importing = group("Bring vectors, facts and labels of other programs into a gallery.")
exporting = group("Write a gallery, or judgements, in another format.")
exporting.command("judgements")(judges.export)
_exporting.add_commands(exporting)


class VectorsFrom(Settings):
    """Where vectors of other programs go, and who made them."""

    gallery: Path | None = setting("Where the gallery lies or shall lie.", **GALLERY)
    # No environment variable here: what stands there for indexing says nothing of who made these vectors.
    encoder: str | None = setting("The encoder that made the vectors.", spelled=("-e", "--encoder"))
    copy_vectors: bool = setting("Copy the vectors, scaled to unit length.", default=False, spelled=("--copy",))


def _vectors(name: str, what: str) -> Any:
    def run(into: VectorsFrom, places: list[Path] = typer.Argument(..., help=what), json: bool = json_option()) -> None:
        from eyespot import rooms
        from eyespot.formats.imports.registered import take_in

        source = import_module(f"eyespot.formats.imports.{name.replace('-', '_')}").source(places)
        encoder, place, known = into.encoder, gallery_here(into.gallery, writes=True), rooms.names("encoders")
        if encoder is None:
            raise UsageError("say which encoder made the vectors, as in -e open_clip:ViT-B-32/laion2b_s34b_b79k")
        if encoder.partition(":")[0] not in known:
            there = f"there are: {', '.join(known)}; for CLIP models write -e open_clip:MODEL/WEIGHTS"
            raise UsageError(f"{encoder} is not an encoder eyespot knows; {there}")
        with progress_bar() as progress:
            done = take_in(place, source, encoder, copy=into.copy_vectors, progress=progress)
        warn_all(done.notes)
        fields = {"gallery": str(place), "rows": done.rows, "added": done.added, "shards": done.shards}
        print_result(fields, (), json)
        print_summary(f"{done.added} of {quantity(done.rows, 'row')} imported now into {place}")

    return run


for name, (about, what) in {
    "clip-retrieval": ("the output folder of clip-retrieval inference", "The folder with img_emb and metadata."),
    "npy": ("an array of vectors and its table", "A folder with vectors.npy and items.parquet or .csv; or two files."),
    "hdf5": ("HDF5 files of vectors in the form of ILIAS", "HDF5 files with features and index, or folders of them."),
}.items():
    importing.command(name, help=f"Import {about}, in place if possible.")(_vectors(name, what))


@importing.command("inquire-cache")
def import_inquire_cache(
    cache: Path = typer.Argument(..., help="Released scores of a vision–language model of INQUIRE: MODEL--cache.npy."),
    data: Path = typer.Option(..., "--data", help="The queries: INQUIRE-Rerank's folder."),
    clone: Path = typer.Option(..., "--clone", help="A clone of INQUIRE's code, for its prompts; it is not run."),
    to: Path = typer.Option(..., "--to", help="The run to write (.parquet, .txt, .json)."),
    model: str = typer.Option(None, "--model", help="The model of the cache.", show_default="the file's name says it"),
    json: bool = json_option(),
) -> None:
    """Convert released scores of a model to a run, without unpickling them, for eyespot eval --run."""
    from eyespot.cli.console import refuse_over_input
    from eyespot.judges import wording
    from eyespot.runs import inquire_cache, read_judged, write_run

    refuse_over_input(to, cache)
    judged = read_judged(data)
    words = wording(f"inquire:{clone}", f"cache:{model or inquire_cache.model_of(cache)}")
    prompts = {query: words.text_for(str(facts.get("text") or "")) for query, facts in judged.queries.items()}
    names = {str(facts["path"]): image for image, facts in judged.images.items() if facts.get("path")}
    run, other = inquire_cache.read(cache, prompts, names)
    write_run(run, to)
    if other:
        warn(f"left out: {quantity(other, 'score')} of other queries or prompts")
    print_result({"run": str(to), "queries": len(run), "scores": len(run.codes), "left_out": other}, (), json)
    print_summary(f"{quantity(len(run.codes), 'score')} of {quantity(len(run), 'query')} written to {to}")


@importing.command("label-studio")
def import_label_studio(
    file: Path = typer.Argument(..., help="Label Studio's export of the project, as JSON or JSON-MIN."),
    gallery: Path = gallery_option("The gallery whose photos were labelled."),
    json: bool = json_option(),
) -> None:
    """Import what people said in Label Studio about tasks of eyespot export label-studio."""
    import eyespot
    from eyespot.curate.annotate import label_studio
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.gallery.items_table import read_items

    found, view = label_studio.read(file), eyespot.open(gallery_here(gallery, writes=True)).view
    known = {str(id) for shard in view.shards for id in read_items(shard, ["id"])["id"].to_pylist()}
    with AnnotationStore(view.gallery.path / "ledger.sqlite") as store:
        done = label_studio.take_in(store, found.tasks, known)
    warn_all(found.notes)
    fields = {"gallery": str(view.gallery.path), **done, "failed": _warn_failed(found.failed, "task")}
    print_result(fields, (), json)
    older = f"; {done['older']} are older than marks that are there, which stay" if done["older"] else ""
    print_summary(f"{done['marks']} marks of {quantity(done['tasks'], 'task')} are new in {view.gallery.path}{older}")
    exit_if_failed(found.failed)


# -- facts: what detectors and camera-trap systems know of the photos of a gallery ----------------------------------


_PHOTOS = typer.Option(None, "--photos", help="Where its paths begin.", show_default="the file's folder")


def import_detections(
    file: Path = typer.Argument(..., help="The detector's JSON."),
    photos: Path = _PHOTOS,
    threshold: float = typer.Option(0.2, "--threshold", min=0, max=1, help="The confidence from which a box counts."),
    gallery: Path = gallery_option("The gallery whose photos were looked at."),
    json: bool = json_option(),
) -> None:
    """Import what a detector found in the photos of a gallery."""
    from eyespot.formats.imports import detections

    _import_facts(detections.read(file, threshold), file, photos or file.parent, gallery, json)


@importing.command("camtrap-dp")
def import_camtrap_dp(
    place: Path = typer.Argument(..., help="The package as it was saved: a folder or a zip."),
    photos: Path = _PHOTOS,
    gallery: Path = gallery_option("The gallery with the photos."),
    json: bool = json_option(),
) -> None:
    """Import what a Camtrap DP package says (Agouti, TRAPPER): observations, deployments, rights."""
    from eyespot.formats.imports import camtrap_dp

    _import_facts(camtrap_dp.read(place), place, photos or (place if place.is_dir() else place.parent), gallery, json)


for name, about in {
    "megadetector": "Import the boxes that MegaDetector found, as facts.",
    "speciesnet": "Import the species and boxes that SpeciesNet predicted, as facts.",
}.items():
    importing.command(name, help=about)(import_detections)


def _import_facts(photos: Iterable[PhotoFacts], source: Path, folder: Path, given: Path | None, json: bool) -> None:
    """Take in facts and index them, in place of those of the same file; exit code 3 if some entries were refused."""
    from eyespot.formats.imports.photo_facts import take_in

    gallery, place = gallery_here(given, writes=True), Path(os.path.abspath(source))
    # Exports of two cameras have the same file name; a long one would be cut before its digest
    done = take_in(gallery, photos, f"{place.stem[:40]}-{text_digest(str(place))[:8]}", folder)
    if done.path is None and (done.unknown or not done.failed):
        example = (*done.unknown, "none")[0]
        way_out = "say where its paths begin with --photos, or index the photos first"
        raise NothingFound(f"no photo of {source} is in {gallery}, such as {example}; {way_out}")
    done.failed += [] if done.path is None else index_list(gallery, done.path)
    if done.unknown:
        warn(f"{quantity(len(done.unknown), 'photo is', 'photos are')} not in the gallery, such as {done.unknown[0]}")
    for name, path in done.respelled[:1]:
        warn(f"matched by another spelling: {quantity(len(done.respelled), 'name')}, such as {name} for {path}")
    failed = _warn_failed(done.failed, "file")
    counts = {"photos": done.photos, "known": done.known, "unknown": len(done.unknown), "failed": failed}
    counts["respelled"] = [{"name": name, "path": path} for name, path in done.respelled]
    print_result({"gallery": str(gallery), **counts, "list": done.path and str(done.path)}, (), json)
    print_summary(f"facts of {done.known} of {quantity(done.photos, 'photo')} are in {gallery}")
    exit_if_failed(done.failed)


def _warn_failed(failed: Sequence[tuple[str, str]], kind: str) -> list[dict[str, str]]:
    """Warn of what was not imported; all of it for --json."""
    refused = [f"not imported: {name} ({reason})" for name, reason in failed]
    warn_first(refused, lambda count: f"and {count} more; --json lists them all")
    return [{kind: name, "reason": reason} for name, reason in failed]


def index_list(gallery: Path, place: Path) -> list[tuple[str, str]]:
    """Index a list of facts of the gallery's own photos; those that could not be read by now, and why."""
    from eyespot.gallery.disk import read_header
    from eyespot.gallery.indexing import Options, index

    with progress_bar() as progress:
        summary = index(gallery, [str(place)], [], Options(progress=progress))
    own = {number for number, root in read_header(gallery).roots.items() if root.place == str(place)}
    return [(failure.path, failure.reason) for failure in summary.failures if failure.root in own]
