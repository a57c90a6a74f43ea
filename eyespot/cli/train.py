"""`eyespot train`: adapters from pairs of a text's and an image's vector, and backbones from pairs with pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from eyespot.cli._train_inputs import Data, captions_of, linear, read
from eyespot.cli._train_report import report
from eyespot.cli.console import note, print_json, print_result, print_summary, progress_bar
from eyespot.cli.settings import group, json_option
from eyespot.settings.train import (
    FEWEST_HELD_OUT,
    LEAST_SHARE,
    MOST_HELD_OUT,
    MOST_SHARE,
    BackboneSettings,
    QuariSettings,
)
from eyespot.storage.atomic import make_folder
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.adapters.quari.config import Config
    from eyespot.adapters.quari.training import TrainingData, TrainingSettings

app = group("Train adapters on pairs of text and image vectors.")
MINED = "semi-positives.npz"


@app.command("quari")
def quari(given: QuariSettings, json: bool = json_option()) -> None:
    """Train a QuARI hypernetwork; run it again to continue."""
    from eyespot import rooms
    from eyespot.adapters.quari.config import Config
    from eyespot.adapters.quari.mining import Mining, mine_into
    from eyespot.adapters.quari.mining import read as read_mined
    from eyespot.adapters.quari.training import SIZES, TrainingSettings, ablated
    from eyespot.adapters.quari.training import preset as preset_of
    from eyespot.cli.mine import searching

    out, (recipe, form) = given.out, preset_of(given.preset)
    data = read(given)
    form = form | SIZES.get(given.preset, {}) | given.of(Config)
    shape, settings = (
        Config(data.pairs.dim, feature_extractor=data.space, **form),
        replace(recipe, **given.of(TrainingSettings)),
    )
    for ablation in given.without:
        shape, settings = ablated(shape, settings, ablation)
    material = _material(data, given, settings.seed)
    _print_plan(material, shape, settings, json and given.dry_run)
    if given.dry_run:
        return
    with rooms.needs("training"):
        from eyespot.adapters.quari.training.loop import train
    if settings.semi_positives:
        if given.semi_positives is None and not (out / MINED).is_file():
            make_folder(out)  # over all images, so that a file of all pairs fits; none is one held out
            how = searching("exact", Mining())
            with progress_bar() as progress:
                mine_into(out / MINED, material.pairs.images, material.pairs.ids, how, progress)
        material = material.with_semi_positives(read_mined(given.semi_positives or out / MINED))
    with _course() as tell:
        done = train(material, shape, settings, out, tell)
    report(done, material, settings, json)


app.command("linear")(linear)


@app.command("backbone")
def backbone(given: BackboneSettings, json: bool = json_option()) -> None:
    """Fine-tune the model itself, QuARI's other baseline; run it again to continue."""
    from eyespot import encoders
    from eyespot.adapters import FineTuneRecipe, finetune, steps
    from eyespot.storage.atomic import whole_folder

    names = ("blocks", "epochs", "batch", "rate", "seed", "checkpoint_every")
    recipe = FineTuneRecipe(**given.model_dump(include=set(names)))
    collection, material = _pictured(given)
    model = encoders.trainable(collection.encoder)
    note(f"{len(material.texts)} pairs, {steps(len(material.texts), recipe)} steps of {given.batch}")
    if given.dry_run:
        return
    encoders.refuse_if_lost(model)
    towers: Any = model.towers
    with _course() as tell:
        done = finetune(towers, material, recipe, given.out, tell)
    # Written once, whole; a training that had ended before has written it.
    folder = given.out / "model"
    files = [path for path in folder.rglob("*") if path.is_file()]
    if lost := next((path for path in files if not path.stat().st_size), None):
        raise UsageError(f"{lost} is empty (a power cut?); remove {folder} and run the same line again")
    if not files:
        with whole_folder(folder) as building:
            encoders.save(model, building)
    name = encoders.name_in(model, folder)
    print_result({"model": name, **asdict(done)}, [name], json)
    if done.unread:
        note(f"{done.unread} times a picture could not be read, and its pair was left out")
    print_summary(f"{done.step} steps, loss {done.loss:.3f}; index with it: eyespot index -g {given.pairs} -e {name}")


def _pictured(source: BackboneSettings) -> tuple[Any, Any]:
    """A gallery with its encoder, and its captions with what reads their pictures."""
    import numpy as np

    from eyespot.adapters import FineTuneData
    from eyespot.search.captioned import reading

    if not source.is_gallery:
        raise UsageError(
            f"{source.pairs} is no gallery; index the pictures first, with the model that is to be trained"
        )
    collection, caption_rows = captions_of(source)
    if not all(text for one in caption_rows for text in one.texts):
        raise UsageError(
            "pairs of two pictures train an adapter; a backbone needs captions: eyespot train quari or linear"
        )
    texts = [text for one in caption_rows for text in one.texts]
    rows = np.array([row for one in caption_rows for row in one.rows], np.int64)
    asking = np.array([row for one in caption_rows for row in one.asking], np.int64)
    return collection, FineTuneData(texts, rows, reading(collection.view), asking if (asking >= 0).any() else None)


def _material(data: Data, given: QuariSettings, seed: int) -> TrainingData:
    """What is trained on, and what validates it: pairs, other captions of the gallery, or a share of the images.

    The test compares with the frozen space.
    """
    from eyespot.adapters.quari.training import Pairs, TrainingData
    from eyespot.search import paired_gain

    if given.held_out_captions:
        if not given.is_gallery:
            raise UsageError("--held-out-captions speaks of the pictures of a gallery; give arrays with --held-out")
        found = read(given.model_copy(update={"captions": given.held_out_captions})).pairs
        apart = Pairs(found.texts, data.pairs.images, found.of, data.pairs.ids)
    elif given.held_out is not None:
        other = {"pairs": given.held_out, "captions": (), "encoder": data.space}
        apart = read(given.model_copy(update=other)).pairs
    else:
        fair = min(MOST_SHARE, max(LEAST_SHARE, FEWEST_HELD_OUT / data.pairs.captioned_images))
        share = fair if given.held_out_share is None else given.held_out_share
        if not share:
            return TrainingData(data.pairs)
        return TrainingData(*data.pairs.split(share, MOST_HELD_OUT, seed), test=paired_gain)
    rest = data.pairs.without(apart)
    if shared := len(data.pairs) - len(rest):
        note(f"{shared} pairs share an image or a text with those held out, and are not trained on")
    return TrainingData(rest, apart, test=paired_gain)


def _print_plan(material: TrainingData, shape: Config, settings: TrainingSettings, json: bool) -> None:
    from eyespot.adapters.quari.training.data import TrainingBatches
    from eyespot.adapters.quari.training.memory import needed

    batches = TrainingBatches(material, settings.batch, 0, settings.seed)
    steps = settings.epochs * max(1, batches.per_epoch // settings.accumulate)
    memory = needed(shape, settings)
    held = 0 if material.held_out is None else len(material.held_out)
    if json:
        payload = {"pairs": len(material.pairs), "held_out": held, "steps": steps, "bytes": memory.total}
        print_json({**payload, "memory": memory._asdict()})
        return
    note(
        f"{len(material.pairs)} pairs, {held} held out, {steps} steps of {settings.accumulate} × {settings.batch}; a "
        f"batch takes about {memory.total / 1e9:.2g} GB in float32 (layers {memory.activations / 1e9:.2g}, maps "
        f"{memory.factors / 1e9:.2g}, loss {memory.loss / 1e9:.2g}, weights {memory.weights / 1e9:.2g})"
    )


@contextmanager
def _course() -> Iterator[Callable[[Any, int], None]]:
    """Steps with loss and validation on a terminal; silence elsewhere, where log.csv tells."""
    if not sys.stderr.isatty():
        yield lambda _point, _total: None
        return
    from tqdm import tqdm

    bar: tqdm[Any] = tqdm(unit=" steps", dynamic_ncols=True)
    postfix: dict[str, str] = {}

    def tell(point: Any, total: int) -> None:
        postfix.update({"loss": f"{point.loss:.3f}"} | ({"RR": f"{point.RR:.3f}"} if point.RR is not None else {}))
        bar.total = total
        bar.set_postfix(postfix, refresh=False)
        bar.update(point.step - bar.n)

    try:
        yield tell
    finally:
        bar.close()
