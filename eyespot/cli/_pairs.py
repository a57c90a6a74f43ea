"""`eyespot build pairs`: pictures and their captions, or two pictures of one class, to train on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._options import group
from eyespot.cli.console import escaped, exit_if_failed, note_all, print_result, print_summary, progress_bar
from eyespot.cli.settings import json_option

if TYPE_CHECKING:
    from eyespot.curate.pair_set import PairSource, PairsResult

app = group("Make pairs of pictures and texts from COCO, CC12M, BioTrove or RMIR, or of two pictures with one label.")
_OUT = typer.Option(..., "--out", help="The output folder; each file of the set gets a folder in it.")
_WITHOUT = typer.Option(None, metavar="FILE", help="Ids to leave out, one per line: those of a test set.")
_JSON = json_option()


@app.command("coco")
def coco(
    files: list[Path] = typer.Argument(help="captions_train2017.json or a similar file."),
    images: Path = typer.Option(..., help="The folder with the pictures."),
    out: Path = _OUT,
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """COCO captions: about five per picture."""
    from eyespot.curate.pairs.published import Coco

    _make(Coco(files, images, out, _ids(without)), out, json)


@app.command("cc12m")
def cc12m(
    files: list[Path] = typer.Argument(help="Webdataset shards, .tar; eyespot index reads them unchanged."),
    out: Path = _OUT,
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """Conceptual 12M: the captions in its shards."""
    from eyespot.curate.pairs.published import Cc12m

    _make(Cc12m(files, _ids(without)), out, json)


@app.command("biotrove")
def biotrove(
    files: list[Path] = typer.Argument(help="The metadata's parquet files, all of them."),
    images: Path = typer.Option(..., help="The folder with the photos, as PHOTO_ID.jpg; they can be added later."),
    out: Path = _OUT,
    count: int = typer.Option(5_000_000, min=1, help="Photos to sample."),
    captioned: int = typer.Option(500_000, min=0, help="The number of these photos that are left to be captioned."),
    seed: int = typer.Option(0, min=0, help="Another seed samples other photos."),
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """BioTrove: a random sample of photos with captions from their labels, some left to be captioned."""
    from eyespot.curate.pairs.biotrove import BioTrove, Draw

    _make(BioTrove(files, images, out, Draw(count, captioned, seed), _ids(without)), out, json)


@app.command("rmir")
def rmir(
    folder: Path = typer.Argument(metavar="SET", help="The folder of the set: queries, qrels and pool."),
    out: Path = _OUT,
    split: str = typer.Option("train", help="The split to use."),
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """An RMIR set: questions with their own picture, and the pictures that answer them."""
    from eyespot.curate.pairs.published import Rmir

    _make(Rmir(folder, split, _ids(without)), out, json)


@app.command("labelled")
def labelled(
    place: Path = typer.Argument(
        metavar="PLACE",
        help="A folder with a folder for each class, a table with a column that names files, UnED's info_files, or a "
        "gallery.",
    ),
    out: Path = _OUT,
    label: str = typer.Option(
        None, "--label", metavar="COLUMN", help="The column with the label.", show_default="of a table: label, class_id"
    ),
    images: Path = typer.Option(
        None, help="Of UnED: the folder with its pictures.", show_default="images beside info_files"
    ),
    split: str = typer.Option("train", help="Of UnED: the files to read, DATASET/SPLIT.json."),
    count: int = typer.Option(1_000_000, min=2, help="Pictures to draw, in whole classes."),
    per_class: int = typer.Option(20, "--per-class", min=2, help="Pictures of a class, at most."),
    partners: int = typer.Option(1, min=1, help="Pairs that each picture asks in."),
    held_out: float = typer.Option(0.05, "--held-out", min=0, max=0.9, help="The share of classes for validation."),
    seed: int = typer.Option(0, min=0, help="Another seed draws other classes and pairs."),
    workers: int = typer.Option(4, min=1, help="Threads that read pictures."),
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """Labelled pictures: each with another of its class, never with a copy of itself; some classes held out."""
    from eyespot.curate.pairs import labelled as pairs
    from eyespot.curate.pairs.label_lists import LabelSource

    draw = pairs.ClassDraw(count, per_class, partners, held_out, seed)
    source = pairs.LabelledSet(LabelSource(place, label, images, split), out, draw, _ids(without), workers)
    with progress_bar() as progress:
        made = pairs.make(source, progress)
    own = place if source.source.is_gallery else "GALLERY"
    _tell(made, out, json, f"train with: eyespot train linear {own} --labels {out}/train/", classes=source.classes)


def _ids(path: Path | None) -> frozenset[str]:
    from eyespot.storage.text_files import text_of

    lines = [] if path is None else text_of(path).splitlines()
    return frozenset(one.strip() for one in lines if one.strip())


def _make(source: PairSource, out: Path, json: bool) -> None:
    from eyespot.curate.pair_set import make

    with progress_bar() as progress:
        made = make(source, out, progress)
    _tell(made, out, json, f"train on them with: eyespot train quari GALLERY --captions {out}/")


def _tell(made: PairsResult, out: Path, json: bool, summary: str, **more: Any) -> None:
    """What was made, on stdout; what could not be read, on stderr, with exit code 3."""
    failures = [{"file": failure.place, "reason": failure.reason} for failure in made.failures]
    rows = {name.removesuffix(".parquet"): count for name, count in made.rows.items()}
    fields = {"out": str(out), "files": made.parts, "files_before": made.before, **rows}
    counts = [f"{made.parts} files ({made.before} before)", *(f"{n} rows of {table}" for table, n in made.rows.items())]
    lines = ["  ".join(counts)]
    for why, count in made.left_out.items():
        lines.append(f"{count} left out: {escaped(why)} ({escaped(made.examples[why])} for one)")
    print_result({**fields, "left_out": dict(made.left_out), "failures": failures, **more}, lines, json)
    note_all(f"{failure.reason}; it makes no pairs until it is fixed" for failure in made.failures)
    print_summary(summary)
    exit_if_failed(made.failures)
