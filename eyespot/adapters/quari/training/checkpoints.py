"""What a training leaves on disk: where it stands (`checkpoint.pt`), its course (`log.csv`), its best (`candidate/`).

When a training ends the candidate gets its card, and `model/` is the same, if it is named.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from eyespot.adapters.quari import files
from eyespot.models.torch_models import tensors_in
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import UsageError

STATE, LOG, SAID, CANDIDATE, MODEL = "checkpoint.pt", "log.csv", "training.json", "candidate", "model"
COLUMNS = ("step", "epoch", "loss", "rate", "gradient", "RR")


class LogPoint(NamedTuple):
    """One step's line of the log; `RR` is None where the step was not validated."""

    step: int
    epoch: float
    loss: float
    rate: float
    gradient: float
    RR: float | None


def begin(out: Path, identity: dict[str, Any]) -> None:
    """Note what is trained; `UsageError` if the folder holds a training of something else."""
    path = out / SAID
    if path.exists():
        try:
            there: Any = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UsageError(f"{path} is damaged ({error}); name a new folder") from None
        for name in {**there, **identity}:
            if there.get(name) != identity.get(name):
                raise UsageError(
                    f"{path.parent} holds a training with {name} {there.get(name)}, not {identity.get(name)}; name "
                    "a new folder"
                )
        return
    if (out / STATE).exists() or (out / MODEL).exists():
        raise UsageError(f"{out} holds a training without its {SAID}; name a new folder")
    make_folder(out)
    write_whole(path, lambda file: file.write(json.dumps(identity, indent=2).encode()))


def keep(out: Path, state: dict[str, Any]) -> None:
    """The state of a training, whole or not at all."""
    packed = io.BytesIO()
    torch.save(state, packed)
    write_whole(out / STATE, lambda file: file.write(packed.getbuffer()))


def resume(out: Path, device: torch.device, restore: Callable[[dict[str, Any]], None]) -> None:
    """Restore the state last stored, if any; `UsageError` if it is damaged, is another's, or holds code."""
    if not (out / STATE).exists():
        return
    try:
        restore(tensors_in(out / STATE, device))
    except Exception as error:  # torch raises what its parts raise
        reason = " ".join(str(error).split())[:160] or "it is cut short"
        raise UsageError(f"{out / STATE} cannot be read ({reason}); remove it to train from the start") from None


def candidate(out: Path) -> files.Weights:
    """The best weights so far; `UsageError` with the way out if they are damaged."""
    try:
        return files.read(out / CANDIDATE)[1]
    except UsageError as error:
        reason = str(error).partition(";")[0]
        raise UsageError(f"{reason}; remove {out / STATE} to train from the start") from None


class SteppedTraining(Protocol):
    """A training that goes on to `total` steps, or while it is `patient`; `state` is all that a resumed one needs."""

    step: int
    total: int

    @property
    def patient(self) -> bool: ...

    def take_step(self) -> LogPoint: ...

    def state(self) -> dict[str, Any]: ...


def run(training: SteppedTraining, out: Path, every: int, tell: Callable[[LogPoint, int], None]) -> None:
    """Step by step to the end, a line of the log each, and a checkpoint after `every` of them and after the last.

    `tell` gets each step and how many there are. The log goes as far as the checkpoint: what comes after it is written
    again.
    """
    path = out / LOG
    lines = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
    # Lines that are whole; a killed training may have left half of one
    rows = [row for row in csv.reader(lines) if len(row) == len(COLUMNS) and row[0].isdigit()]
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, *(row for row in rows if int(row[0]) <= training.step)])
    write_whole(path, lambda file: file.write(text.getvalue().encode()))
    with path.open("a", newline="", encoding="utf-8") as log:
        while training.step < training.total and training.patient:
            point = training.take_step()
            csv.writer(log).writerow(["" if value is None else value for value in point])
            log.flush()  # there at once for those who watch
            tell(point, training.total)
            if training.step % every == 0 or training.step == training.total or not training.patient:
                keep(out, training.state())
