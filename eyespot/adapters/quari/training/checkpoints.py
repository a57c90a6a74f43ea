"""What a training leaves on disk: where it stands (`checkpoint.pt`), its course (`log.csv`), its best (`candidate/`).

When a training ends the candidate gets its card, and `model/` is the same, if it is named.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch

from eyespot.adapters.quari import files
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


def load_state(out: Path, device: torch.device) -> dict[str, Any] | None:
    """The state last kept, or None; `UsageError` if the file is damaged or holds anything but tensors and numbers."""
    if not (out / STATE).exists():
        return None
    try:
        state: dict[str, Any] = torch.load(out / STATE, map_location=device, weights_only=True)
    except Exception as error:  # torch raises what its parts raise
        reason = " ".join(str(error).split())[:160] or "it is cut short"
        raise UsageError(f"{out / STATE} cannot be read ({reason}); remove it to train from the start") from None
    return state


def candidate(out: Path) -> files.Weights:
    """The best weights so far; `UsageError` with the way out if they are damaged."""
    try:
        return files.read(out / CANDIDATE)[1]
    except UsageError as error:
        reason = str(error).partition(";")[0]
        raise UsageError(f"{reason}; remove {out / STATE} to train from the start") from None


class Log:
    """The course of a training, a line a step, as far as it was kept: what comes after is written again."""

    def __init__(self, out: Path, step: int) -> None:
        path = out / LOG
        # Lines that are whole; a killed training may have left half of one
        if not path.exists():
            rows = []
        else:
            with path.open(newline="", encoding="utf-8") as rows_file:
                rows = [row for row in list(csv.reader(rows_file))[1:] if len(row) == len(COLUMNS) and row[0].isdigit()]
        history = [row for row in rows if int(row[0]) <= step]
        text = io.StringIO()
        csv.writer(text).writerows([COLUMNS, *history])
        write_whole(path, lambda file: file.write(text.getvalue().encode()))
        self._file = path.open("a", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)

    def add(self, point: LogPoint) -> None:
        """One more line, there at once for those who watch."""
        self._writer.writerow(["" if value is None else value for value in point])
        self._file.flush()

    def close(self) -> None:
        """Nothing more is added."""
        self._file.close()
