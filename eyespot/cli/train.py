"""`eyespot train`: adapters from pairs of a text's and an image's vector, and backbones from pairs with pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._options import flag, group
from eyespot.cli._train_inputs import CAPTIONS, ENCODER, PAIRS, Data, PairInput, captions_of, linear, read
from eyespot.cli._train_report import report
from eyespot.cli.console import note, print_json, print_result, print_summary, progress_bar
from eyespot.cli.settings import json_option
from eyespot.storage.atomic import make_folder
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.adapters.quari.config import Config
    from eyespot.adapters.quari.training import TrainingData, TrainingSettings

app = group("Train adapters on pairs of text and image vectors.")
MINED = "semi-positives.npz"
MOST_HELD_OUT = 5_000  # images
FEWEST_HELD_OUT = 400  # half of which choose a model, and half test it
LEAST_SHARE, MOST_SHARE = 0.05, 0.2


@app.command("quari")
def quari(
    pairs: Path = PAIRS,
    out: Path = typer.Option(
        ..., "--out", help="The output folder, with the checkpoint in model/ and the progress in log.csv."
    ),
    captions: list[str] = CAPTIONS,
    encoder: str = ENCODER,
    held_out: Path = typer.Option(None, help="Pairs for validation.", show_default="a share of the images"),
    held_out_captions: list[str] = typer.Option(
        [], metavar="FILE|COLUMN", help="For a gallery, the captions for validation, as --captions; repeatable."
    ),
    held_out_share: float = typer.Option(
        None,
        min=0,
        max=0.9,
        help=f"The share of images for validation, at most {MOST_HELD_OUT}; 0: no validation.",
        show_default=f"{FEWEST_HELD_OUT} images, but {LEAST_SHARE:g} to {MOST_SHARE:g} of them",
    ),
    semi_positives: Path = typer.Option(
        None, help="The output of eyespot mine semipositives PAIRS.", show_default="mined exactly"
    ),
    preset: str = typer.Option(
        "identity",
        help="Architecture and recipe: identity (starts at the frozen space), released (the authors' code), paper.",
    ),
    loss: str = typer.Option(
        None,
        help="symmetric (the paper's), linear (the released image-to-query term).",
        show_default="symmetric",
    ),
    keep_anyway: bool = flag(
        "--keep-anyway", "Name the model also if it is not shown to find more than the vectors as they are."
    ),
    without: list[str] = typer.Option([], help="Leave out: one-step, no-semi-positives, no-noise; repeatable."),
    rank: int = typer.Option(None, help="The rank of each map's factors.", show_default="16; published 64"),
    hidden: int = typer.Option(None, help="The width of the hypernetwork.", show_default="128; published 512"),
    steps: int = typer.Option(None, help="The number of refinement steps of a map.", show_default="2; published 4"),
    layers: int = typer.Option(None, help="The number of layers, shared by the steps.", show_default="2; published 4"),
    heads: int = typer.Option(None, help="The number of attention heads.", show_default="4; published 8"),
    dropout: float = typer.Option(0.0, min=0, max=0.9),
    batch: int = typer.Option(
        None, help="Pairs per batch; they are each other's negatives.", show_default="128; published 320"
    ),
    epochs: int = typer.Option(None, show_default="10"),
    accumulate: int = typer.Option(None, help="Batches per step.", show_default="1; released 2"),
    rate: float = typer.Option(None, help="The highest learning rate.", show_default="1e-4; released 5e-4; paper 1e-5"),
    noise: float = typer.Option(None, help="The strength of the noise on queries.", show_default="0.02; published 1"),
    temperature: float = typer.Option(None, show_default="0.07"),
    clip: float = typer.Option(None, help="The maximum norm of the gradient; 0: no limit.", show_default="1; paper 0"),
    patience: int = typer.Option(
        None, help="Stop after this many validations without improvement; 0: never.", show_default="5"
    ),
    validate_every: int = typer.Option(
        None, help="Batches between validations; a short training has 20 validations.", show_default="500"
    ),
    checkpoint_every: int = typer.Option(None, help="Steps between checkpoints.", show_default="500"),
    seed: int = typer.Option(None, show_default="0"),
    device: str = typer.Option(None, help="The device: cpu, cuda, cuda:1.", show_default="cuda if there is one"),
    precision: str = typer.Option(
        None, help="The precision: float32, bfloat16, float16.", show_default="bfloat16 on cuda, else float32"
    ),
    activations: str = typer.Option(
        None, help="Activations: kept, or recomputed (less memory).", show_default="by their size"
    ),
    dry_run: bool = flag("--dry-run", "Only print the amount of data, steps and memory."),
    json: bool = json_option(),
) -> None:
    """Train a QuARI hypernetwork; run it again to continue."""
    from eyespot import rooms
    from eyespot.adapters.quari.config import Config
    from eyespot.adapters.quari.mining import Mining, mine_into
    from eyespot.adapters.quari.mining import read as read_mined
    from eyespot.adapters.quari.training import SIZES, ablated
    from eyespot.adapters.quari.training import preset as preset_of
    from eyespot.cli.mine import searching

    given = {name: value for name, value in locals().items() if name in TRAINED and value is not None}
    sizes = {SIZED[name]: value for name, value in locals().items() if name in SIZED and value is not None}
    recipe, form = preset_of(preset)
    source = PairInput(pairs, captions, encoder)
    data = read(source)
    form = form | SIZES.get(preset, {}) | sizes
    shape = Config(data.pairs.dim, dropout=dropout, feature_extractor=data.space, **form)
    settings = replace(recipe, **given)
    for ablation in without:
        shape, settings = ablated(shape, settings, ablation)
    material = _material(data, source, settings.seed, pairs=held_out, captions=held_out_captions, share=held_out_share)
    _print_plan(material, shape, settings, json and dry_run)
    if dry_run:
        return
    with rooms.needs("training"):
        from eyespot.adapters.quari.training.loop import train
    if settings.semi_positives:
        if semi_positives is None and not (out / MINED).is_file():
            make_folder(out)  # over all images, so that a file of all pairs fits; none is one held out
            how = searching("exact", Mining())
            with progress_bar() as progress:
                mine_into(out / MINED, material.pairs.images, material.pairs.ids, how, progress)
        material = material.with_semi_positives(read_mined(semi_positives or out / MINED))
    with _course() as tell:
        done = train(material, shape, settings, out, tell)
    report(done, material, settings, json)


app.command("linear")(linear)


@app.command("backbone")
def backbone(
    gallery: Path = typer.Argument(help="A gallery with vectors of the model to train."),
    out: Path = typer.Option(
        ..., "--out", help="The output folder, with the model in model/ and the progress in log.csv."
    ),
    captions: list[str] = CAPTIONS,
    encoder: str = typer.Option(
        None, "-e", "--encoder", help="The hf: or open_clip: model.", show_default="the gallery's"
    ),
    blocks: int = typer.Option(
        None, min=0, help="How many of the last blocks of each tower to train.", show_default="all"
    ),
    epochs: int = typer.Option(5, help="Passes over all captions."),
    batch: int = typer.Option(64, help="Pairs per batch; they are each other's negatives."),
    rate: float = typer.Option(1e-5, help="The highest learning rate."),
    checkpoint_every: int = typer.Option(500, help="Steps between checkpoints."),
    seed: int = typer.Option(0),
    dry_run: bool = flag("--dry-run", "Only print the number of pairs and steps."),
    json: bool = json_option(),
) -> None:
    """Fine-tune the model itself, QuARI's other baseline; run it again to continue."""
    from eyespot import encoders
    from eyespot.adapters import FineTuneRecipe, finetune, steps
    from eyespot.storage.atomic import whole_folder

    recipe = FineTuneRecipe(blocks, epochs, batch, rate, seed=seed, checkpoint_every=checkpoint_every)
    collection, material = _pictured(PairInput(gallery, captions, encoder))
    model = encoders.trainable(collection.encoder)
    note(f"{len(material.texts)} pairs, {steps(len(material.texts), recipe)} steps of {batch}")
    if dry_run:
        return
    encoders.refuse_if_lost(model)
    towers: Any = model.towers
    with _course() as tell:
        done = finetune(towers, material, recipe, out, tell)
    # Written once, whole; a training that had ended before has written it.
    folder = out / "model"
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
    print_summary(f"{done.step} steps, loss {done.loss:.3f}; index with it: eyespot index -g {gallery} -e {name}")


def _pictured(source: PairInput) -> tuple[Any, Any]:
    """A gallery with its encoder, and its captions with what reads their pictures."""
    import numpy as np

    from eyespot.adapters import FineTuneData
    from eyespot.search.captioned import reading

    if not (source.place / "gallery.toml").is_file():
        raise UsageError(
            f"{source.place} is no gallery; index the pictures first, with the model that is to be trained"
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


TRAINED = (
    *("batch", "epochs", "accumulate", "rate", "noise", "temperature", "clip", "patience", "validate_every"),
    *("checkpoint_every", "seed", "device", "precision", "activations", "loss", "keep_anyway"),
)
SIZED = {"rank": "low_rank_dim", "hidden": "hidden_dim", "steps": "num_steps", "layers": "num_layers", "heads": "nhead"}


def _material(
    data: Data, source: PairInput, seed: int, *, pairs: Path | None, captions: list[str], share: float | None
) -> TrainingData:
    """What is trained on, and what validates it: pairs, other captions of the gallery, or a share of the images.

    The test compares with the frozen space.
    """
    from eyespot.adapters.quari.training import Pairs, TrainingData
    from eyespot.search import paired_gain

    if captions:
        if not (source.place / "gallery.toml").is_file():
            raise UsageError("--held-out-captions speaks of the pictures of a gallery; give arrays with --held-out")
        found = read(source._replace(captions=captions)).pairs
        apart = Pairs(found.texts, data.pairs.images, found.of, data.pairs.ids)
    elif pairs is not None:
        apart = read(PairInput(pairs, [], data.space)).pairs
    else:
        fair = min(MOST_SHARE, max(LEAST_SHARE, FEWEST_HELD_OUT / data.pairs.captioned_images))
        share = fair if share is None else share
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
