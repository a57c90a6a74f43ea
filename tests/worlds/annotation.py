"""A gallery whose truth is known: small pictures, and vectors of which some lie near the words that are looked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from eyespot import rooms
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.formats.imports import clip_retrieval
from eyespot.formats.imports.registered import take_in
from eyespot.types import Encoder, Vectors

WORDS = "a heron"


@cache
def starter() -> Encoder:
    encoder: Encoder = rooms.load("encoders", "starter")
    return encoder


def vectors(photos: int, relevant: int, seed: int = 0) -> Vectors:
    """Unit vectors, the first ones nearer to the words than the others are, (photos, dim)."""
    words = starter().encode_texts([WORDS])[0]
    noise = np.random.default_rng(seed).normal(size=(photos, len(words)))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    near = np.where(np.arange(photos) < relevant, 0.5, 0.1)[:, None]
    made = near * words + noise
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def gallery(folder: Path, photos: int = 60, relevant: int = 10) -> Path:
    """A gallery of pictures 00.jpg, 01.jpg, …, of which the first are herons; `kind` says so."""
    for name in ("img_emb", "metadata", "pictures"):
        (folder / "source" / name).mkdir(parents=True)
    names = [f"pictures/{number:04d}.jpg" for number in range(photos)]
    for number, name in enumerate(names):
        shade = (40, 160, 120) if number < relevant else (90 + number % 120, 90, 90)
        Image.new("RGB", (48, 36), shade).save(folder / "source" / name)
    kinds = ["heron" if number < relevant else "other" for number in range(photos)]
    np.save(folder / "source/img_emb/img_emb_0.npy", vectors(photos, relevant))
    facts = {"image_path": [str(folder / "source" / name) for name in names], "key": names, "kind": kinds}
    pq.write_table(pa.table(facts), folder / "source/metadata/metadata_0.parquet")
    take_in(folder / "gallery", clip_retrieval.source([folder / "source"]), "starter")
    return folder / "gallery"


def desk(folder: Path, photos: int = 10, **facts: str) -> AnnotationStore:
    """A desk with the query `q` over photos 0, 1, 2, …"""
    made = AnnotationStore(folder / "ledger.sqlite")
    made.take_in([AnnotationQuery("q", WORDS, dict(facts))])
    made.extend("q", (Candidate(str(number), f"{number}.jpg") for number in range(photos)))
    return made
