"""`eyespot import` and `eyespot export`: galleries from and to the formats others use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import note, print_json, print_summary, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.formats.imports.registered import ImportSource, VectorImport

importing = typer.Typer(no_args_is_help=True, help="Bring vectors, facts and labels of other programs into a gallery.")
exporting = typer.Typer(no_args_is_help=True, help="Write a gallery, or judgements, in another format.")

_INTO = "Where the gallery lies or shall lie."
# No environment variable here: what stands there for indexing says nothing of who made these vectors.
_MADE_BY = typer.Option(None, "-e", "--encoder", help="The encoder that made the vectors.")
_COPY = typer.Option(
    False, "--copy", help="Copy the vectors and scale them to unit length; otherwise they stay where they are."
)


@importing.command("clip-retrieval")
def import_clip_retrieval(
    folder: Path = typer.Argument(..., help="The folder with img_emb/img_emb_N.npy and metadata/metadata_N.parquet."),
    gallery: Path = gallery_option(_INTO),
    encoder: str = _MADE_BY,
    copy: bool = _COPY,
    json: bool = json_option(),
) -> None:
    """Import the output folder of clip-retrieval inference, in place."""
    from eyespot.formats.imports import clip_retrieval

    _import(clip_retrieval.source([folder]), gallery_here(gallery, writes=True), _checked(encoder), _way(copy), json)


@importing.command("npy")
def import_npy(
    places: list[Path] = typer.Argument(..., help="A folder with vectors.npy and items.parquet or .csv; or two files."),
    gallery: Path = gallery_option(_INTO),
    encoder: str = _MADE_BY,
    copy: bool = _COPY,
    json: bool = json_option(),
) -> None:
    """Import an array of vectors and its table, in place."""
    from eyespot.formats.imports import npy

    _import(npy.source(places), gallery_here(gallery, writes=True), _checked(encoder), _way(copy), json)


@importing.command("hdf5")
def import_hdf5(
    places: list[Path] = typer.Argument(..., help="HDF5 files with features and index, or folders of them."),
    gallery: Path = gallery_option(_INTO),
    encoder: str = _MADE_BY,
    copy: bool = _COPY,
    json: bool = json_option(),
) -> None:
    """Import HDF5 files of vectors in the form of ILIAS, in place if possible."""
    from eyespot.formats.imports import hdf5

    way = _way(copy) if copy else hdf5.WhereItCan()
    _import(hdf5.source(places), gallery_here(gallery, writes=True), _checked(encoder), way, json)


@importing.command("inquire-cache")
def import_inquire_cache(
    cache: Path = typer.Argument(
        ..., help="Scores that INQUIRE's authors released: MODEL--cache.npy, or MODEL--top-1000.pkl of a CLIP model."
    ),
    data: Path = typer.Option(..., "--data", help="The queries: INQUIRE-Rerank's folder, or that of the CSV files."),
    clone: Path = typer.Option(
        None, "--clone", help="A clone of INQUIRE's code, which has the prompts of MODEL--cache.npy; it is not run."
    ),
    to: Path = typer.Option(..., "--to", help="The run to write (.parquet, .txt, .json)."),
    model: str = typer.Option(None, "--model", help="The model of the cache.", show_default="the file's name says it"),
    json: bool = json_option(),
) -> None:
    """Convert released scores of a model to a run, without unpickling them, for eyespot eval --run."""
    from eyespot.judges import wording
    from eyespot.runs import inquire_cache, read_judged, write_run

    if cache.suffix == inquire_cache.LISTS:
        run, other = inquire_cache.read_lists(cache, *inquire_cache.listed_queries(data))
    elif clone is None:
        raise UsageError(f"the scores of {cache.name} stand under prompts; name a clone of INQUIRE's code with --clone")
    else:
        judged = read_judged(data)
        words = wording(f"inquire:{clone}", f"cache:{model or inquire_cache.model_of(cache)}")
        prompts = {query: words.text_for(str(facts.get("text") or "")) for query, facts in judged.queries.items()}
        names = {str(facts["path"]): image for image, facts in judged.images.items() if facts.get("path")}
        run, other = inquire_cache.read(cache, prompts, names)
    write_run(run, to)
    if other:
        note(f"{other:,} scores are of other queries or prompts and are left out")
    if json:
        print_json({"run": str(to), "queries": len(run), "scores": len(run.codes), "left_out": other})
    print_summary(f"{len(run.codes):,} scores of {len(run):,} queries written to {to}")


@importing.command("label-studio")
def import_label_studio(
    file: Path = typer.Argument(..., help="Label Studio's export of the project, as JSON or JSON-MIN."),
    gallery: Path = gallery_option("The gallery whose photos were labelled."),
    json: bool = json_option(),
) -> None:
    """Import what people said in Label Studio about tasks of eyespot export label-studio."""
    from eyespot.curate.annotate import label_studio
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.gallery.disk import read_items
    from eyespot.gallery.view import Gallery

    opened = Gallery(gallery_here(gallery, writes=True))
    tasks = label_studio.read(file)
    view = opened.view(opened.stem())
    known = {str(id) for shard in view.shards for id in read_items(shard, ["id"])["id"].to_pylist()}
    with AnnotationStore(opened.path / "ledger.sqlite") as store:
        done = label_studio.take_in(store, tasks, known)
    if json:
        print_json({"gallery": str(opened.path), **done._asdict()})
    print_summary(f"{done.marks} marks of {done.tasks} tasks are new in {opened.path}")


def _checked(encoder: str | None) -> str:
    from eyespot import rooms

    known = rooms.names("encoders")
    if encoder is None:
        raise UsageError(
            "say which encoder made the vectors, or words cannot be searched: -e open_clip:ViT-B-32/laion2b_s34b_b79k"
        )
    if encoder.partition(":")[0] not in known:
        raise UsageError(
            f"{encoder} is no encoder eyespot knows (there are: {', '.join(known)}); for CLIP models write "
            "-e open_clip:MODEL/WEIGHTS"
        )
    return encoder


def _way(copy: bool) -> VectorImport:
    from eyespot.formats.imports.registered import Copied, InPlace

    return Copied() if copy else InPlace()


def _import(source: ImportSource, gallery: Path, encoder: str, way: VectorImport, json: bool) -> None:
    from eyespot.formats.imports.registered import take_in

    with progress_bar() as progress:
        done = take_in(gallery, source, encoder, way, progress)
    for sentence in done.notes:
        note(sentence)
    if json:
        print_json({"gallery": str(gallery), "rows": done.rows, "added": done.added, "shards": done.shards})
    print_summary(f"{done.added} of {done.rows} rows imported now into {gallery}")
