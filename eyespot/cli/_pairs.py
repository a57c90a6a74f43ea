"""`eyespot build pairs`: lists of pictures and their captions from sets to train on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli._clicked_pairs import clicks
from eyespot.cli.console import escaped, note, print_json, print_line, print_summary, progress_bar
from eyespot.cli.settings import json_option

if TYPE_CHECKING:
    from eyespot.curate.pair_set import PairSource

app = typer.Typer(
    no_args_is_help=True,
    help="Make pairs of pictures and texts from COCO, CC12M, BioTrove, RMIR or judged photos.",
)
SOME_FAILED = 3

_OUT = typer.Option(..., "--out", help="The output folder; each file of the set gets a folder in it.")
_WITHOUT = typer.Option(None, metavar="FILE", help="Ids to leave out, one per line: those of a test set.")
_JSON = json_option()


@app.callback()
def options() -> None:
    """Make pairs of pictures and texts from COCO, CC12M, BioTrove, RMIR or judged photos; run it again to continue."""


@app.command("coco")
def coco(
    files: list[Path] = typer.Argument(help="captions_train2017.json or a similar file."),
    images: Path = typer.Option(..., help="The folder with the pictures."),
    out: Path = _OUT,
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """COCO captions: about five per picture."""
    from eyespot.curate.pairs.coco import Coco

    _make(Coco(files, images, out, _ids(without)), out, json)


@app.command("cc12m")
def cc12m(
    files: list[Path] = typer.Argument(help="Webdataset shards, .tar; eyespot index reads them unchanged."),
    out: Path = _OUT,
    without: Path = _WITHOUT,
    json: bool = _JSON,
) -> None:
    """Conceptual 12M: the captions in its shards."""
    from eyespot.curate.pairs.cc12m import Cc12m

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
    from eyespot.curate.pairs.rmir import Rmir

    _make(Rmir(folder, split, _ids(without)), out, json)


app.command("clicks")(clicks)


def _ids(path: Path | None) -> frozenset[str]:
    from eyespot.storage.files import text_of

    lines = [] if path is None else text_of(path).splitlines()
    return frozenset(one.strip() for one in lines if one.strip())


def _make(source: PairSource, out: Path, json: bool) -> None:
    from eyespot.curate.pair_set import make

    with progress_bar() as progress:
        made = make(source, out, progress)
    counts = {"files": made.parts, "files_before": made.before}
    failures = [{"file": failure.place, "reason": failure.reason} for failure in made.failures]
    if json:
        rows = {name.removesuffix(".parquet"): count for name, count in made.rows.items()}
        print_json({"out": str(out), **counts, **rows, "left_out": dict(made.left_out), "failures": failures})
    else:
        print_line(
            "  ".join(
                [f"{made.parts} files ({made.before} before)", *(f"{n} rows of {t}" for t, n in made.rows.items())]
            )
        )
        for why, count in made.left_out.items():
            print_line(f"{count} left out: {escaped(why)} ({escaped(made.examples[why])} for one)")
    for failure in made.failures:
        note(f"{failure.reason}; it makes no pairs until it is fixed")
    print_summary(f"train on them with: eyespot train quari GALLERY --captions {out}/")
    if made.failures:
        raise typer.Exit(SOME_FAILED)
