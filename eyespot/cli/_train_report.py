"""How a training of QuARI ended: the model, or why none is named and what it would need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import GATE_FAILED, note, note_all, print_json, print_line, print_summary

if TYPE_CHECKING:
    from eyespot.adapters.quari import FrozenComparison
    from eyespot.adapters.quari.training import TrainingData, TrainingSettings
    from eyespot.adapters.quari.training.loop import TrainingResult

FEWEST = 6  # held-out images, of which a sign-flip test can reach p < 0.05: twice 1 of 2⁶ outcomes
VISIBLE = 0.0005  # the smallest lead that is printed as one
NEW_FOLDER = "in a new folder"


def report(done: TrainingResult, material: TrainingData, settings: TrainingSettings, json: bool) -> None:
    """Print the model, or why there is none; then the exit code is 4."""
    needs = [] if done.ahead else list(_needs(done, material, settings))
    if json:
        model = None if done.model is None else str(done.model)
        summary: dict[str, Any] = {"model": model, "step": done.step, "steps": done.total}
        summary |= {"loss": done.loss, "RR": done.best, "best_step": done.best_step, "RR_frozen": done.frozen}
        validation = None if done.comparison is None else asdict(done.comparison) | {"better": done.comparison.better}
        print_json({**summary, "stopped_early": not done.patient, "validation": validation, "needs": needs})
    elif done.model is not None:
        print_line(str(done.model))
    early = "" if done.patient else f" (of {done.total}: no better validation any more)"
    if done.ahead:
        print_summary(f"{done.step} steps{early}, loss {done.loss:.3f}; search with: --adapt {done.model}")
        note(f"the model finds more than the vectors as they are: {done.comparison}")
        return
    note_all(needs)
    if done.model is None:
        note("no model is named, and searching as before is best; --keep-anyway on the same line keeps this one")
        raise typer.Exit(GATE_FAILED)


def _needs(done: TrainingResult, material: TrainingData, settings: TrainingSettings) -> Iterator[str]:
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
        return
    apart = settings.validation_steps(done.total)
    if done.best is not None and done.frozen is not None and done.best <= done.frozen:
        yield (
            f"no validation of {done.step} steps was above the frozen space; more pairs, or a lower --rate, may help "
            f"({NEW_FOLDER})"
        )
    elif done.patient and done.best_step > done.step - apart:
        more = f"--epochs {2 * settings.epochs} ({NEW_FOLDER})"
        yield f"the validation still rose at step {done.best_step}, the last; more steps may help: {more}"


def _test_needs(found: FrozenComparison, pairs: int) -> Iterator[str]:
    """What would show whether the model helps."""
    if found.better:
        return
    if found.images < FEWEST:
        yield (
            f"fewer than {FEWEST} images to test on can show of no model that it helps; hold out more with "
            f"--held-out-share, or train on more pairs ({NEW_FOLDER})"
        )
    elif not found.spread:
        yield f"the model changed the rank of none of the {found.queries} texts of the test"
    elif found.needed is not None and found.difference >= VISIBLE:
        needed = float(f"{found.needed / max(1, found.images) * pairs:.2g}")  # to two digits, as an estimate has
        yield (
            f"an estimate from this spread: about {found.needed} held-out images like these {found.images} would show "
            f"such a lead in 80 % of the cases, or {needed:,.0f} pairs with the same share"
        )
    else:
        yield (
            f"an estimate from this spread: {found.images} held-out images show a lead of {found.smallest:.3f} in 80 % "
            f"of the cases; a model learns one from more than these {pairs} pairs, if at all"
        )
