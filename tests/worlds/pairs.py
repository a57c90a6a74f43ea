"""Small files in the layouts that pairs of pictures and words are made from: an RMIR set, CC12M's shards, BioTrove."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LABELS = {
    **{"scientificName": "Ardea cinerea", "kingdom": "Animalia", "phylum": "Chordata", "class": "Aves"},
    **{"order": "Pelecaniformes", "family": "Ardeidae", "genus": "Ardea", "species": "cinerea"},
}


def rmir(folder: Path) -> Path:
    """Two questions to train on, one of them with two answers and a refused one, and one that tests."""
    folder.mkdir()
    queries = [("q1", "a", "train"), ("q2", "b", "train"), ("q3", "c", "test"), ("q4", "d", "train")]
    records = [{"id": id, "image": image, "question": f"why {id}?", "split": split} for id, image, split in queries]
    grades = [("q1", "x", 1), ("q1", "y", 1), ("q1", "z", 0), ("q2", "x", 1), ("q3", "y", 1), ("q4", "z", 0)]
    judged = [dict(zip(("query", "image", "grade"), one, strict=True)) for one in grades]
    tables = {"queries": records, "qrels": judged, "pool": [{"image": image} for image in "xyz"]}
    for name, lines in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return folder


def metadata(path: Path, ids: Sequence[int | None]) -> Path:
    """Herons, of which every second has an English name."""
    url = "http://inaturalist-open-data.s3.amazonaws.com/photos/{}/medium.jpg"
    columns = {name: [value] * len(ids) for name, value in LABELS.items()}
    common = ["Grey Heron" if (id or 0) % 2 else None for id in ids]
    table = {"photo_id": ids, **columns, "common_name": common, "photo_url": [url.format(id) for id in ids]}
    pq.write_table(pa.table(table), path)
    return path
