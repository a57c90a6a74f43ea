"""`eyespot train linear`: the static adapter (TA), from pairs or from labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.cli._train_inputs import CAPTIONS, ENCODER, PAIRS, PairInput, read
from eyespot.cli.console import note, print_json, print_summary, progress_bar
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.types import Vectors


class _Classes(NamedTuple):
    """Vectors (n, dim) with their classes (n,), and the encoder that made them, if that is known."""

    vectors: Vectors
    classes: Any
    space: str | None


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
    data = _by_image(source) if labels is None else _by_label(source, labels)
    recipe = LinearRecipe(width, epochs, batch, seed=seed)
    with progress_bar() as progress:
        trained = train(data.vectors, data.classes, recipe, lambda *at: progress("training", *at[:2]))
    save(out, replace(trained, space=data.space))
    if json:
        classes = len(np.unique(data.classes))
        print_json({"out": str(out), "vectors": len(data.vectors), "classes": classes, "width": width})
    print_summary(f"a map from {trained.dim} to {width} components in {out}")


def _by_image(source: PairInput) -> _Classes:
    """Each image with its texts is a class of its own."""
    import numpy as np

    data = read(source)
    shown, of_text = np.unique(data.pairs.of), data.pairs.image[data.pairs.of]
    vectors = np.concatenate([data.pairs.images[shown], data.pairs.texts])
    return _Classes(vectors, np.concatenate([data.pairs.image[shown], of_text]), data.space)


def _by_label(source: PairInput, labels: str) -> _Classes:
    """Images of a label, with their texts where there are captions, are a class."""
    import numpy as np

    if not (source.place / "gallery.toml").is_file():
        data = read(source)
        lines = _lines(Path(labels).expanduser())
        if len(lines) != len(data.pairs.images):
            raise UsageError(f"{labels} has {len(lines)} lines for {len(data.pairs.images)} images; give one for each")
        vectors, of = np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of
        classes, space = np.array(lines), data.space
    else:
        vectors, of, classes, space = _of_gallery(source, labels)
    every = np.concatenate([classes, classes[of]])
    good = np.flatnonzero((every != "") & np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
    return _Classes(vectors[good], every[good], space)


def _of_gallery(source: PairInput, labels: str) -> tuple[Vectors, Any, Any, str]:
    """Images (m, dim) and then texts (n, dim), the row of each text's image (n,), and the images' labels (m,)."""
    import numpy as np

    import eyespot
    from eyespot.search.captioned import pictures
    from eyespot.search.labelled import labels_of

    view = eyespot.open(source.place, source.encoder).view
    found = labels_of(view, labels)
    for sentence in found.notes:
        note(sentence)
    there = zip(found.labels, view.live.tolist(), strict=True)
    classes = np.array([label or "" for label, live in there if live])
    images, _ = pictures(view)
    if not source.captions:
        return images, np.zeros(0, np.int64), classes, view.space.encoder
    data = read(source)
    return np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of, classes, view.space.encoder


def _lines(path: Path) -> list[str]:
    from eyespot.storage.text_files import text_of

    return [line.strip() for line in text_of(path).splitlines()]
