"""What `eyespot train` is given, files of pairs or a gallery with captions; and `eyespot train linear`, from labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.cli.console import note, note_all, print_json, print_summary, progress_bar
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.adapters.quari.training import Pairs
    from eyespot.search.captioned import CaptionRows
    from eyespot.types import Vectors

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
        note_all(read.notes)
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
    note_all(sentence for one in caption_rows for sentence in one.notes)
    return collection, caption_rows


# -- the static adapter (TA) ----------------------------------------------------------------------------------------


def linear(
    pairs: Path = PAIRS,
    out: Path = typer.Option(..., "--out", help="The output folder; in Python: eyespot.adapters.linear.load(folder)."),
    captions: list[str] = CAPTIONS,
    labels: str = typer.Option(
        None,
        metavar="FILE|COLUMN",
        help="The classes: of a gallery a column, a table with the columns id (or file_name) and label, or a folder of "
        "eyespot build pairs labelled; of arrays a text file with a line for each image.",
        show_default="each image with its texts is a class",
    ),
    encoder: str = ENCODER,
    width: int = typer.Option(512, help="The dimension of the adapted vectors."),
    epochs: int = typer.Option(5, help="Passes over all texts and images; 2 to 5 are usual."),
    batch: int = typer.Option(128),
    seed: int = typer.Option(0),
    json: bool = json_option(),
) -> None:
    """Train a static linear adapter (TA), QuARI's baseline: by labels, else each image with its texts is a class."""
    import numpy as np

    from eyespot.adapters.linear import LinearRecipe, save, train

    source = PairInput(pairs, captions, encoder)
    vectors, classes, space = _by_image(source) if labels is None else _by_label(source, labels)
    recipe = LinearRecipe(width, epochs, batch, seed=seed)
    with progress_bar() as progress:
        trained = train(vectors, classes, recipe, lambda *at: progress("training", *at[:2]))
    save(out, replace(trained, space=space))
    if json:
        counts = {"vectors": len(vectors), "classes": len(np.unique(classes))}
        print_json({"out": str(out), **counts, "width": width})
    print_summary(f"a map from {trained.dim} to {width} components in {out}")


def _by_image(source: PairInput) -> tuple[Vectors, Any, str | None]:
    """Each image with its texts is a class of its own: vectors (n, dim), classes (n,), and the encoder if known."""
    import numpy as np

    data = read(source)
    shown, of_text = np.unique(data.pairs.of), data.pairs.image[data.pairs.of]
    vectors = np.concatenate([data.pairs.images[shown], data.pairs.texts])
    return vectors, np.concatenate([data.pairs.image[shown], of_text]), data.space


def _by_label(source: PairInput, labels: str) -> tuple[Vectors, Any, str | None]:
    """Images of a label, with their texts where there are captions, are a class."""
    import numpy as np

    from eyespot.storage.text_files import text_of

    if not (source.place / "gallery.toml").is_file():
        data = read(source)
        lines = [line.strip() for line in text_of(Path(labels).expanduser()).splitlines()]
        if len(lines) != len(data.pairs.images):
            raise UsageError(f"{labels} has {len(lines)} lines for {len(data.pairs.images)} images; give one for each")
        vectors, of = np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of
        classes, space = np.array(lines), data.space
    else:
        vectors, of, classes, space = _of_gallery(source, labels)
    every = np.concatenate([classes, classes[of]])
    good = np.flatnonzero((every != "") & np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
    return vectors[good], every[good], space


def _of_gallery(source: PairInput, labels: str) -> tuple[Vectors, Any, Any, str]:
    """Images (m, dim) and then texts (n, dim), the row of each text's image (n,), and the images' labels (m,)."""
    import numpy as np

    import eyespot
    from eyespot.search.captioned import labels_of, pictures

    view = eyespot.open(source.place, source.encoder).view
    found = labels_of(view, labels)
    note_all(found.notes)
    there = zip(found.labels, view.live.tolist(), strict=True)
    classes = np.array([label or "" for label, live in there if live])
    images, _ = pictures(view)
    if not source.captions:
        return images, np.zeros(0, np.int64), classes, view.space.encoder
    data = read(source)
    return np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of, classes, view.space.encoder
