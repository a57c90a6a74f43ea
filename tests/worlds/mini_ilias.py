"""A miniature ILIAS in its official layout: drawn objects, distractors in tars, both lists."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

OBJECTS, DISTRACTORS, LISTED, DECOYS = 8, 240, 150, 3
SIDE, CELLS = 96, 6


def pattern(seed: int) -> Any:
    cells = np.random.default_rng(seed).uniform(0, 255, (CELLS, CELLS, 3))
    return cells.repeat(SIDE // CELLS, axis=0).repeat(SIDE // CELLS, axis=1)


def png(pixels: Any, seed: int, noise: float) -> bytes:
    """The picture with noise of its own, so that no two files are the same."""
    noisy = pixels + np.random.default_rng((7, seed)).normal(0, noise, pixels.shape)
    file = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def core(data: Path) -> None:
    """Of every object a query picture, a query text and two positives; those of the first look like its query."""
    lists: dict[str, list[str]] = {"image_query_ids": [], "text_query_ids": [], "positive_ids": []}
    for number in range(OBJECTS):
        folder, own = data / "ilias_core" / f"thing_{number}", pattern(number)
        (folder / "query").mkdir(parents=True)
        (folder / "pos").mkdir()
        mixed = own if number == 0 else (1 - 0.12 * number) * own + 0.12 * number * pattern(500 + number)
        pictures = {"query/Q0.jpg": (own, 4), "pos/P0.jpg": (own, 8), "pos/P1.jpg": (mixed, 8)}
        for at, (name, (pixels, noise)) in enumerate(pictures.items()):
            (folder / name).write_bytes(png(pixels, 10 * number + at, noise))
        (folder / "query" / "T0.txt").write_text(f"thing number {number}\n")
        lists["image_query_ids"].append(f"{folder.name}/query/Q0.jpg,1")
        lists["text_query_ids"].append(f"{folder.name}/query/T0.txt")
        lists["positive_ids"] += [f"{folder.name}/pos/P{at}.jpg,0.{number + 1},{10 * at + 20}" for at in range(2)]
    (data / "image_ids").mkdir()
    for name, lines in lists.items():
        (data / "image_ids" / f"{name}.txt").write_text("\n".join(lines) + "\n")


def distractors(data: Path) -> None:
    """Two tars; the last pictures are decoys, all but copies of the first object's query, which mini-ILIAS has not."""
    keys = [f"{at:08x}" for at in range(DISTRACTORS)]
    (data / "yfcc100m").mkdir()
    names = []
    for shard in range(2):
        with tarfile.open(data / "yfcc100m" / f"0000{shard}.tar", "w") as tar:
            for at in range(shard * DISTRACTORS // 2, (shard + 1) * DISTRACTORS // 2):
                decoy = at >= DISTRACTORS - DECOYS
                content = png(pattern(0) if decoy else pattern(1000 + at), 0 if decoy else at, 4 if decoy else 8)
                content += bytes(DISTRACTORS - at) if decoy else b""  # other bytes, the same pixels
                info = tarfile.TarInfo(f"{keys[at]}.jpg")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
                names.append(f"0000{shard}.tar/{keys[at]}")
    (data / "image_ids" / "distractor_ids.txt.gz").write_bytes(gzip.compress("\n".join(names).encode()))
    (data / "image_ids" / "mini_ilias_yfcc100m_ids.txt").write_text("\n".join(keys[:LISTED]) + "\n")


def training(folder: Path) -> Path:
    """A list of pictures of other objects, four of each, with captions."""
    folder.mkdir()
    lines = ["path,caption"]
    for at in range(64):
        place = folder / f"{at}.png"
        place.write_bytes(png(pattern(5000 + at // 4), at, 25))
        lines.append(f"{place},thing number {100 + at // 4} seen from side {at % 4}")
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return folder / "list.csv"
