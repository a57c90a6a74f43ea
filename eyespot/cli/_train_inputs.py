"""What `eyespot train` is given, files of pairs or a gallery with captions; and `eyespot train linear`, from labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eyespot.cli.console import note, note_all, print_json, print_summary, progress_bar
from eyespot.cli.settings import json_option
from eyespot.settings.train import LinearSettings, PairSettings
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.adapters.quari.training import Pairs
    from eyespot.search.captioned import CaptionRows
    from eyespot.types import Vectors


class Data(NamedTuple):
    """Pairs and the encoder that made them, if that is known."""

    pairs: Pairs
    space: str | None


def read(source: PairSettings) -> Data:
    from eyespot.adapters.quari.training.reading import read_pairs

    if source.is_gallery:
        from eyespot.adapters.quari.training import Pairs
        from eyespot.search.captioned import captioned

        collection, captions = captions_of(source)
        found = Data(Pairs(*captioned(collection.view, collection.encoder, captions)), collection.view.space.encoder)
    elif source.captions:
        raise UsageError(f"--captions speaks of the pictures of a gallery, and {source.pairs} is none")
    else:
        read = read_pairs(source.pairs)
        note_all(read.notes)
        found = Data(read.pairs, source.encoder)
    good = found.pairs.with_direction()
    if len(good) < len(found.pairs):
        note(f"{len(found.pairs) - len(good)} pairs have a vector that is 0 or not finite, and are left out")
    return found._replace(pairs=good)


def captions_of(source: PairSettings) -> tuple[Any, list[CaptionRows]]:
    """A gallery, and the captions of its pictures."""
    import eyespot
    from eyespot.search.captioned import said_in

    if not source.captions:
        raise UsageError(f"{source.pairs} is a gallery; say where its texts are: --captions FILE or --captions COLUMN")
    collection = eyespot.open(source.pairs, source.encoder)
    caption_rows = [one for captions in source.captions for one in said_in(collection.view, captions)]
    note_all(sentence for one in caption_rows for sentence in one.notes)
    return collection, caption_rows


# -- the static adapter (TA) ----------------------------------------------------------------------------------------


def linear(given: LinearSettings, json: bool = json_option()) -> None:
    """Train a static linear adapter (TA), QuARI's baseline: by labels, else each image with its texts is a class."""
    import numpy as np

    from eyespot.adapters.linear import LinearRecipe, save, train

    if given.labels is not None:
        vectors, classes, space = _by_label(given, given.labels)
    else:  # each image with its texts is a class of its own
        data = read(given)
        shown, of_text = np.unique(data.pairs.of), data.pairs.image[data.pairs.of]
        vectors = np.concatenate([data.pairs.images[shown], data.pairs.texts])
        classes, space = np.concatenate([data.pairs.image[shown], of_text]), data.space
    recipe = LinearRecipe(given.width, given.epochs, given.batch, seed=given.seed)
    with progress_bar() as progress:
        trained = train(vectors, classes, recipe, lambda *at: progress("training", *at[:2]))
    save(given.out, replace(trained, space=space))
    if json:
        counts = {"vectors": len(vectors), "classes": len(np.unique(classes))}
        print_json({"out": str(given.out), **counts, "width": given.width})
    print_summary(f"a map from {trained.dim} to {given.width} components in {given.out}")


def _by_label(source: PairSettings, labels: str) -> tuple[Vectors, Any, str | None]:
    """Images of a label, with their texts where there are captions, are a class."""
    import numpy as np

    from eyespot.storage.text_files import text_of

    if not source.is_gallery:
        data = read(source)
        lines = [line.strip() for line in text_of(Path(labels).expanduser()).splitlines()]
        if len(lines) != len(data.pairs.images):
            raise UsageError(f"{labels} has {len(lines)} lines for {len(data.pairs.images)} images; give one for each")
        vectors, of = np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of
        classes, space = np.array(lines), data.space
    else:
        import eyespot
        from eyespot.search.captioned import labels_of, pictures

        view = eyespot.open(source.pairs, source.encoder).view
        found = labels_of(view, labels)
        note_all(found.notes)
        there = zip(found.labels, view.live.tolist(), strict=True)
        classes, space = np.array([label or "" for label, live in there if live]), view.space.encoder
        vectors, of = pictures(view)[0], np.zeros(0, np.int64)
        if source.captions:
            data = read(source)
            vectors, of = np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of
    every = np.concatenate([classes, classes[of]])
    good = np.flatnonzero((every != "") & np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
    return vectors[good], every[good], space
