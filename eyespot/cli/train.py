"""`eyespot train`: adapters from pairs of a text's and an image's vector, and backbones from pairs with pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import GATE_FAILED, print_result, print_summary, progress_bar, warn, warn_all
from eyespot.cli.settings import group, json_option
from eyespot.settings.train import MOST_HELD_OUT, BackboneSettings, LinearSettings, PairSettings, QuariSettings
from eyespot.storage.atomic import make_folder
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.adapters.quari import FrozenComparison
    from eyespot.adapters.quari.config import Config
    from eyespot.adapters.quari.training import Pairs, TrainingData, TrainingSettings
    from eyespot.adapters.quari.training.loop import TrainingResult
    from eyespot.search.captioned import CaptionRows
    from eyespot.types import Progress, Vectors

app = group("Train adapters on pairs of text and image vectors.")
MINED = "semi-positives.npz"
FEWEST = 6  # held-out images, of which a sign-flip test can reach p < 0.05: twice 1 of 2⁶ outcomes
VISIBLE = 0.0005  # the smallest lead that is printed as one
NEW_FOLDER = "in a new folder"
MOST_CROPS, CROPS_AT_ONCE = 400, 64  # held-out pictures of a gallery that ask as crops of themselves


@app.command("quari")
def quari(given: QuariSettings, json: bool = json_option()) -> None:
    """Train a QuARI hypernetwork; run it again to continue."""
    from eyespot import rooms
    from eyespot.adapters.quari.config import Config
    from eyespot.adapters.quari.mining import Mining, mine_into, read as read_mined
    from eyespot.adapters.quari.training import SIZES, TrainingSettings, ablated, preset as preset_of
    from eyespot.cli.mine import searching

    out, (recipe, form) = given.out, preset_of(given.preset)
    data = read(given)
    form = form | SIZES.get(given.preset, {}) | given.of(Config)
    shape = Config(data.pairs.dim, feature_extractor=data.space, **form)
    settings = replace(recipe, **given.of(TrainingSettings))
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
    with progress_bar("steps") as progress:
        done = train(material, shape, settings, out, lambda *at: _tell(progress, *at))
    report(done, material, settings, json)


@app.command("linear")
def linear(given: LinearSettings, json: bool = json_option()) -> None:
    """Train a static linear adapter (TA), QuARI's baseline: by labels, else each image with its texts is a class."""
    import numpy as np

    from eyespot.adapters.linear import save, train

    if given.labels is not None:
        vectors, classes, space = _by_label(given, given.labels)
    else:  # each image with its texts is a class of its own
        data = read(given)
        shown, of_text = np.unique(data.pairs.of), data.pairs.image[data.pairs.of]
        vectors = np.concatenate([data.pairs.images[shown], data.pairs.texts])
        classes, space = np.concatenate([data.pairs.image[shown], of_text]), data.space
    how = given.model_dump(include={"width", "epochs", "batch", "seed"})
    with progress_bar() as progress:
        trained = train(vectors, classes, **how, tell=lambda *at: progress("training", *at[:2]))
    save(given.out, replace(trained, space=space))
    counts = {"vectors": len(vectors), "classes": len(np.unique(classes)), "width": given.width}
    print_result({"out": str(given.out), **counts}, (), json)
    print_summary(f"a map from {trained.dim} to {given.width} components in {given.out}")


def _by_label(source: PairSettings, labels: str) -> tuple[Vectors, Any, str | None]:
    """Images of a label, with their texts where there are captions, are a class."""
    import numpy as np

    from eyespot.storage.text_files import text_of

    if not source.is_gallery:
        data = read(source)
        lines = [line.strip() for line in text_of(Path(labels).expanduser()).splitlines()]
        if len(lines) != len(data.pairs.images):
            images = quantity(len(data.pairs.images), "image")
            raise UsageError(f"{labels} has {quantity(len(lines), 'line')} for {images}; give one for each")
        vectors, of = np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of
        classes, space = np.array(lines), data.space
    else:
        import eyespot
        from eyespot.search.captioned import labels_of, pictures

        view = eyespot.open(source.pairs, source.encoder).view
        found, notes = labels_of(view, labels)
        warn_all(notes)
        there = zip(found, view.live.tolist(), strict=True)
        classes, space = np.array([label or "" for label, live in there if live]), view.space.encoder
        vectors, of = pictures(view)[0], np.zeros(0, np.int64)
        if source.captions:
            data = read(source)
            vectors, of = np.concatenate([data.pairs.images, data.pairs.texts]), data.pairs.of
    every = np.concatenate([classes, classes[of]])
    good = np.flatnonzero((every != "") & np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
    return vectors[good], every[good], space


@app.command("backbone")
def backbone(given: BackboneSettings, json: bool = json_option()) -> None:
    """Fine-tune the model itself, QuARI's other baseline; run it again to continue."""
    from eyespot import encoders
    from eyespot.adapters.quari.training.finetune import finetune, steps
    from eyespot.storage.atomic import whole_folder

    collection, material = _pictured(given)
    model = encoders.trainable(collection.encoder)
    count = len(material.texts)
    warn(f"{quantity(count, 'pair')}, {quantity(steps(count, given), 'step')} of {given.batch}")
    if given.dry_run:
        return
    encoders.refuse_if_lost(model)
    with progress_bar("steps") as progress:
        done = finetune(model, material, given, lambda *at: _tell(progress, *at))
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
        warn(f"a picture could not be read {quantity(done.unread, 'time')}, and its pair was left out")
    print_summary(
        f"{quantity(done.step, 'step')}, loss {done.loss:.3f}; index with it: eyespot index -g {given.pairs} -e {name}"
    )


def _pictured(source: BackboneSettings) -> tuple[Any, Any]:
    """A gallery with its encoder, and its captions with what reads their pictures."""
    import numpy as np

    from eyespot.adapters.quari.training.finetune import FineTuneData
    from eyespot.search.captioned import reading

    if not source.is_gallery:
        raise UsageError(f"{source.pairs} is not a gallery; index the pictures first, with the model to be trained")
    collection, caption_rows = captions_of(source)
    if not all(text for one in caption_rows for text in one.texts):
        raise UsageError("pairs of pictures train an adapter; a backbone needs captions: eyespot train quari or linear")
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
        if not (share := given.share_of(data.pairs.captioned_images)):
            return TrainingData(data.pairs)
        rest, apart = data.pairs.split(share, MOST_HELD_OUT, seed)
        return TrainingData(rest, apart, test=paired_gain, crops=_crops(data, apart))
    rest = data.pairs.without(apart)
    if shared := len(data.pairs) - len(rest):
        warn(f"not trained on: {quantity(shared, 'pair')} with an image or a text of those held out")
    return TrainingData(rest, apart, test=paired_gain, crops=_crops(data, apart))


def _crops(data: Data, held_out: Pairs) -> Pairs | None:
    """Of held-out pictures of a gallery the vectors of their middles, two thirds of each side; None of arrays."""
    import numpy as np

    from eyespot.adapters.quari.training import Pairs
    from eyespot.search.captioned import reading

    if data.collection is None or held_out.images is not data.pairs.images:
        return None
    view, encoder = data.collection.view, data.collection.encoder
    rows, vectors = np.unique(held_out.of)[:MOST_CROPS], []
    for at in range(0, len(rows), CROPS_AT_ONCE):
        pictures = reading(view)(np.flatnonzero(view.live)[rows[at : at + CROPS_AT_ONCE]].tolist())
        for number, picture in zip(rows[at : at + CROPS_AT_ONCE].tolist(), pictures, strict=True):
            if picture is not None:
                wide, high = picture.size
                middle = picture.crop((wide // 6, high // 6, wide - wide // 6, high - high // 6))
                vectors.append((number, encoder.encode_pixels(encoder.read(middle)[None])[0]))
    if not vectors:
        return None
    of, crops = zip(*vectors, strict=True)
    return Pairs(np.stack(crops), data.pairs.images, np.array(of, np.int64), data.pairs.ids)


def _print_plan(material: TrainingData, shape: Config, settings: TrainingSettings, json: bool) -> None:
    from eyespot.adapters.quari.training.data import TrainingBatches
    from eyespot.adapters.quari.training.memory import needed

    batches = TrainingBatches(material, settings.batch, 0, settings.seed)
    steps = settings.epochs * max(1, batches.per_epoch // settings.accumulate)
    memory = needed(shape, settings)
    held = 0 if material.held_out is None else len(material.held_out)
    if json:
        payload = {"pairs": len(material.pairs), "held_out": held, "steps": steps, "bytes": memory.total}
        print_result({**payload, "memory": memory._asdict()}, (), json)
        return
    planned = f"{quantity(len(material.pairs), 'pair')}, {held} held out, {quantity(steps, 'step')} of"
    shares = {"layers": memory.activations, "maps": memory.factors, "loss": memory.loss, "weights": memory.weights}
    parts = ", ".join(f"{name} {size / 1e9:.2g}" for name, size in shares.items())
    planned += f" {settings.accumulate} × {settings.batch}; a batch takes about {memory.total / 1e9:.2g} GB in float32"
    warn(f"{planned} ({parts})")


def _tell(progress: Progress, point: Any, total: int) -> None:
    progress(f"loss {point.loss:.3f}" + ("" if point.RR is None else f", RR {point.RR:.3f}"), point.step, total)


# -- what is given ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Pairs and the encoder that made them, if that is known; `collection` is the gallery that they come from."""

    pairs: Pairs
    space: str | None
    collection: Any = None


def read(source: PairSettings) -> Data:
    from eyespot.adapters.quari.training.reading import read_pairs

    if source.is_gallery:
        from eyespot.adapters.quari.training import Pairs
        from eyespot.search.captioned import captioned

        collection, captions = captions_of(source)
        found = Data(Pairs(*captioned(collection.view, collection.encoder, captions)), collection.view.space.encoder)
        found = replace(found, collection=collection)
    elif source.captions:
        raise UsageError(f"--captions speaks of the pictures of a gallery, and {source.pairs} is none")
    else:
        found = Data(read_pairs(source.pairs, warn), source.encoder)
    good = found.pairs.with_direction()
    if len(good) < len(found.pairs):
        warn(f"left out: {quantity(len(found.pairs) - len(good), 'pair')} with a vector that is 0 or not finite")
    return replace(found, pairs=good)


def captions_of(source: PairSettings) -> tuple[Any, list[CaptionRows]]:
    """A gallery, and the captions of its pictures."""
    import eyespot
    from eyespot.search.captioned import said_in

    if not source.captions:
        raise UsageError(f"{source.pairs} is a gallery; say where its texts are: --captions FILE or --captions COLUMN")
    collection = eyespot.open(source.pairs, source.encoder)
    caption_rows = [one for captions in source.captions for one in said_in(collection.view, captions)]
    warn_all(sentence for one in caption_rows for sentence in one.notes)
    return collection, caption_rows


# -- how it ended -------------------------------------------------------------------------------------------------


def report(done: TrainingResult, material: TrainingData, settings: TrainingSettings, json: bool) -> None:
    """Print the model, or why there is none; then the exit code is 4."""
    needs = [] if done.ahead else list(_needs(done, material))
    lines = [] if done.model is None else [str(done.model)]
    summary: dict[str, Any] = {"model": next(iter(lines), None), "step": done.step, "steps": done.total}
    summary |= {"loss": done.loss, "RR": done.best, "best_step": done.best_step, "RR_frozen": done.frozen}
    validation = None if done.comparison is None else asdict(done.comparison) | {"better": done.comparison.better}
    by_picture = None if done.by_picture is None else asdict(done.by_picture) | {"worse": done.by_picture.worse}
    more = {"stopped_early": done.stopped_early, "rising": done.rising, "validation": validation}
    print_result({**summary, **more, "by_picture": by_picture, "needs": needs}, lines, json)
    warn_all(_course(done, settings))
    if done.ahead:
        print_summary(f"{quantity(done.step, 'step')}, loss {done.loss:.3f}; search with: --adapt {done.model}")
        warn(f"the model finds more than the vectors as they are: {done.comparison}")
        return
    warn_all(needs)
    if done.model is None:
        warn("no model is named, and searching as before is best; --keep-anyway on the same line keeps this one")
        raise typer.Exit(GATE_FAILED)


def _course(done: TrainingResult, settings: TrainingSettings) -> Iterator[str]:
    """How far the training came, and what it did to queries by pictures."""
    if done.stopped_early:
        yield (
            f"the training stopped early, at step {done.step} of {done.total}: for {settings.patience:g} epochs every "
            f"validation was below the best by more than its standard error; --patience 0 trains on ({NEW_FOLDER})"
        )
    elif done.rising:
        yield (
            f"the best validation is that of step {done.best_step} of {done.total}, so it still rose; more steps "
            f"(--epochs {2 * settings.epochs}) or a higher --rate may find more ({NEW_FOLDER})"
        )
    if done.by_picture is not None and done.by_picture.worse:
        yield f"asked with altered copies of pictures, it finds less than the vectors as they are: {done.by_picture}"


def _needs(done: TrainingResult, material: TrainingData) -> Iterator[str]:
    """Why the model is not shown to be better, and what would be needed."""
    found = done.comparison
    if found is None:
        yield "nothing was held out, so nothing shows whether this model finds more than the vectors as they are"
        return
    verdict = "the model finds less than the vectors as they are" if found.worse else "the model is not shown to help"
    yield f"{verdict}: {found}"
    yield from _test_needs(found, len(material.pairs))
    if done.frozen == 1:
        yield "the vectors as they are find the image of every held-out text first: there is nothing to gain on these"
    elif done.best is not None and done.frozen is not None and done.best <= done.frozen:
        way_out = "" if done.rising else f"; more pairs, or a lower --rate, may help ({NEW_FOLDER})"
        yield f"no validation of {quantity(done.step, 'step')} was above the frozen space{way_out}"


def _test_needs(found: FrozenComparison, pairs: int) -> Iterator[str]:
    if found.better:
        return
    if found.images < FEWEST:
        yield f"fewer than {FEWEST} images can show of no model that it helps; raise --held-out-share ({NEW_FOLDER})"
    elif not found.spread:
        yield f"the model changed the rank of none of the {quantity(found.queries, 'text')} of the test"
    elif found.needed is not None and found.difference >= VISIBLE:
        needed = float(f"{found.needed / max(1, found.images) * pairs:.2g}")  # to two digits, as an estimate has
        yield (
            f"an estimate from this spread: about {found.needed} held-out images like these {found.images} would show "
            f"such a lead in 80 % of the cases, or {needed:,.0f} pairs with the same share"
        )
    else:
        yield (
            f"an estimate from this spread: {found.images} held-out images show a lead of {found.smallest:.3f} in 80 % "
            f"of the cases; a model learns one from more than these {quantity(pairs, 'pair')}, if at all"
        )
