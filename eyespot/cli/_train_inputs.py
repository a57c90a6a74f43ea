"""What `eyespot train` is given: files of pairs, or a gallery with its captions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.cli.console import note
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.adapters.quari.training import Pairs
    from eyespot.search.captioned import CaptionRows

PAIRS = typer.Argument(
    help="A file or folder of pairs (.npy, .npz, .pt, .parquet, webdataset's .tar, clip-retrieval), or a gallery."
)
CAPTIONS = typer.Option(
    [],
    "--captions",
    metavar="FILE|COLUMN",
    help="For a gallery, the captions: a file with the columns id (or file_name) and caption (optionally asked_with, "
    "the picture of a question), a folder of eyespot build pairs, or a column of its labels; repeatable.",
)
ENCODER = typer.Option(None, "-e", "--encoder", help="The encoder of the vectors; for a gallery, the one to use.")


class PairInput(NamedTuple):
    """Where pairs come from; captions and encoder are of a gallery."""

    place: Path
    captions: list[str]
    encoder: str | None


class Data(NamedTuple):
    """Pairs and the encoder that made them, if that is known."""

    pairs: Pairs
    space: str | None


def read(source: PairInput) -> Data:
    from eyespot.adapters.quari.training.reading import read_pairs

    if (source.place / "gallery.toml").is_file():
        from eyespot.adapters.quari.training import Pairs
        from eyespot.search.captioned import captioned

        collection, captions = captions_of(source)
        found = Data(Pairs(*captioned(collection.view, collection.encoder, captions)), collection.view.space.encoder)
    elif source.captions:
        raise UsageError(f"--captions speaks of the pictures of a gallery, and {source.place} is none")
    else:
        read = read_pairs(source.place)
        for sentence in read.notes:
            note(sentence)
        found = Data(read.pairs, source.encoder)
    good = found.pairs.with_direction()
    if len(good) < len(found.pairs):
        note(f"{len(found.pairs) - len(good)} pairs have a vector that is 0 or not finite, and are left out")
    return found._replace(pairs=good)


def captions_of(source: PairInput) -> tuple[Any, list[CaptionRows]]:
    """A gallery, and the captions of its pictures."""
    import eyespot
    from eyespot.search.captioned import said_in

    if not source.captions:
        raise UsageError(f"{source.place} is a gallery; say where its texts are: --captions FILE or --captions COLUMN")
    collection = eyespot.open(source.place, source.encoder)
    caption_rows = [one for captions in source.captions for one in said_in(collection.view, captions)]
    for sentence in (sentence for one in caption_rows for sentence in one.notes):
        note(sentence)
    return collection, caption_rows
