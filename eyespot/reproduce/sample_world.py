"""Miniatures of the benchmarks in their official layouts, made of eyespot's sample photos: every command can be tried.

The queries are made up: "a windmill" for the photos of windmills. Nothing here is a number of a paper. A miniature is a
folder of `samples/`; its `pictures.csv` says which sample photo lies where.
"""

from __future__ import annotations

import csv
import shutil
from importlib.resources import files
from pathlib import Path

from eyespot import sample
from eyespot.storage.atomic import make_folder, whole_folder
from eyespot.types import UsageError

DATA, MARK, PICTURES = "data", "made-by-sample.txt", "pictures.csv"
WORLDS = ("inquire", "inquire-rerank", "ilias", "inquire-and-ilias", "rmir", "recos")
_FOLDER = Path(str(files("eyespot.reproduce") / "samples"))


def make_world(name: str, work: Path) -> None:
    """The data of a miniature below `work/data`, whole or not there; left as it is if it is there.

    `UsageError` if other data are there: those of a table, or of another miniature.
    """
    if name not in WORLDS:
        raise UsageError(f"no miniature {name!r}; there are: {', '.join(WORLDS)}")
    make_folder(work)
    if (work / DATA).exists():
        if _world_in(work) != name:
            raise UsageError(f"{work / DATA} holds other data than this miniature; choose another folder with --work")
        return
    with whole_folder(work / DATA) as data:
        for part in name.split("-and-"):
            shutil.copytree(_FOLDER / part, data, dirs_exist_ok=True)
            for row in csv.DictReader((data / PICTURES).read_text("utf-8").splitlines()):
                make_folder((data / row["place"]).parent)
                shutil.copy(sample.photos() / row["photo"], data / row["place"])
            (data / PICTURES).unlink()
        (data / MARK).write_text(name + "\n", encoding="utf-8")


def refuse_sample(work: Path) -> None:
    """`UsageError` for a folder with the made-up data of a miniature, which a table must not take for its own."""
    if _world_in(work) is not None:
        raise UsageError(f"{work} holds a miniature, whose data are made up; choose another folder with --work")


def _world_in(work: Path) -> str | None:
    mark = work / DATA / MARK
    return mark.read_text(encoding="utf-8").strip() if mark.is_file() else None
