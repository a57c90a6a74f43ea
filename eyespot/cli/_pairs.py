"""`eyespot build pairs`: pictures and their captions, or two pictures of one class, to train on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import escaped, exit_if_failed, print_result, print_summary, progress_bar, warn_all
from eyespot.cli.settings import group, json_option
from eyespot.settings.build import LabelledSettings, PairSetSettings
from eyespot.types import quantity

if TYPE_CHECKING:
    from eyespot.curate.pair_set import PairSource, PairsResult

app = group("Make pairs of pictures and texts from COCO, BioTrove or RMIR, or of two pictures with one label.")
_JSON = json_option()


@app.command("coco")
def coco(
    target: PairSetSettings,
    files: list[Path] = typer.Argument(help="captions_train2017.json or a similar file."),
    images: Path = typer.Option(..., help="The folder with the pictures."),
    json: bool = _JSON,
) -> None:
    """COCO captions: about five per picture."""
    from eyespot.curate.pairs.published import Coco

    _make(Coco(files, images, target.out, _ids(target.without)), target.out, json)


@app.command("biotrove")
def biotrove(
    target: PairSetSettings,
    files: list[Path] = typer.Argument(help="The metadata's parquet files, all of them."),
    images: Path = typer.Option(..., help="The folder with the photos, as PHOTO_ID.jpg; they can be added later."),
    count: int = typer.Option(5_000_000, min=1, help="Photos to sample."),
    captioned: int = typer.Option(500_000, min=0, help="The number of these photos that are left to be captioned."),
    seed: int = typer.Option(0, min=0, help="Another seed samples other photos."),
    json: bool = _JSON,
) -> None:
    """BioTrove: a random sample of photos with captions from their labels, some left to be captioned."""
    from eyespot.curate.pairs.published import BioTrove

    _make(BioTrove(files, images, target.out, count, captioned, seed, _ids(target.without)), target.out, json)


@app.command("rmir")
def rmir(
    target: PairSetSettings,
    folder: Path = typer.Argument(metavar="SET", help="The folder of the set: queries, qrels and pool."),
    split: str = typer.Option("train", help="The split to use."),
    json: bool = _JSON,
) -> None:
    """An RMIR set: questions with their own picture, and the pictures that answer them."""
    from eyespot.curate.pairs.published import Rmir

    _make(Rmir(folder, split, _ids(target.without)), target.out, json)


@app.command("labelled")
def labelled(given: LabelledSettings, json: bool = _JSON) -> None:
    """Labelled pictures: each with another of its class, never with a copy of itself; some classes held out."""
    from eyespot.curate.pairs import labelled as pairs
    from eyespot.curate.pairs.label_lists import is_gallery

    source = pairs.LabelledSet(given, _ids(given.without))
    with progress_bar() as progress:
        made = pairs.make(source, progress)
    gallery = given.place if is_gallery(given) else "GALLERY"
    summary = f"train with: eyespot train linear {gallery} --labels {given.out}/train/"
    _tell(made, given.out, json, summary, classes=source.classes)


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
    counts = [f"{quantity(n, 'row')} of {table}" for table, n in made.rows.items()]
    lines = ["  ".join([f"{quantity(made.parts, 'file')} ({made.before} before)", *counts])]
    for why, count in made.left_out.items():
        lines.append(f"{count} left out: {escaped(why)} ({escaped(made.examples[why])} for one)")
    print_result({**fields, "left_out": dict(made.left_out), "failures": failures, **more}, lines, json)
    warn_all(f"{failure.reason}; it makes no pairs until it is fixed" for failure in made.failures)
    print_summary(summary)
    exit_if_failed(made.failures)
