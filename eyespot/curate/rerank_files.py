"""A re-ranking set on disk with its card: our own folder, or as INQUIRE-Rerank lies on the hub."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import eyespot
from eyespot.curate.rerank import VAL, RerankSet
from eyespot.pipelines.data_card.markdown import table
from eyespot.runs import reranking
from eyespot.runs import table as run_table
from eyespot.runs.inquire import HUB_IMAGE, HUB_QUERY
from eyespot.runs.judged import ID, TEXT, Columns, groups
from eyespot.storage.atomic import whole_folder, write_whole
from eyespot.storage.digests import file_sha256
from eyespot.storage.tables import write_csv
from eyespot.types import Qrels, UsageError

PRESET = "inquire-rerank"
COUNTS = ("queries", "candidates", "relevant", "unjudged")

_UNJUDGED = {
    True: "Images without a judgement are not among them.",
    False: "A candidate without a judgement counts as not relevant; `unjudged` says how many there are.",
}


@dataclass(frozen=True)
class RerankInputs:
    """How a set was made: the files by their part in it, the settings, and the column of the breakdown."""

    inputs: Mapping[str, Path]
    settings: Mapping[str, Any] = field(default_factory=dict)
    by: str | None = None


def counted(made: RerankSet, by: str | None = None) -> dict[str, Any]:
    """Queries, candidates, relevant and unjudged of each split; queries of each value of a column; what was dropped."""
    parts = {name: made.split(name) for name in made.splits}
    splits, columns = {}, {}
    for name, part in parts.items():
        unjudged = sum(query in part.queries for query, _ in made.unjudged)
        counts = len(part.queries), len(part.qrels.grade), int((part.qrels.grade > 0).sum()), unjudged
        splits[name] = dict(zip(COUNTS, counts, strict=True))
    if by is not None:
        columns[by] = {
            value: {name: sum(query in part.queries for query in ids) for name, part in parts.items()}
            for value, ids in groups(made.judged.queries, by).items()
        }
    dropped = dict(Counter(one.reason for one in made.dropped).most_common())
    return {"queries": len(made.judged.queries), "splits": splits, "by": columns, "dropped": dropped}


def card(name: str, made: RerankSet, making: RerankInputs) -> str:
    """The set described in Markdown: counts, random floor, what was left out, how and from what it was made."""
    from eyespot.metrics import aligned, floor, preset

    counts, limits, measures = counted(made, making.by), made.limits, preset(PRESET).measures
    parts = {name: made.split(name) for name in made.splits}
    rankings = {name: aligned(part.candidates, part.qrels) for name, part in parts.items() if part.candidates}
    floors = ([name, *(f"{floor(measure, of).mean:.4f}" for measure in measures)] for name, of in rankings.items())
    floor_table = table(["split", *(measure.name for measure in measures)], floors)
    few = f"{len(made.judged.queries)} queries, each with up to {limits.depth} candidates to put in a better order; "
    text = f"{few}{limits.least} to {limits.most} of them are relevant. {_UNJUDGED[limits.judged_only]}"
    splits = ([split, *numbers.values()] for split, numbers in counts["splits"].items())
    values = ([value or "(none)", *numbers.values()] for value, numbers in counts["by"].get(making.by, {}).items())
    settings = ((setting, value) for setting, value in making.settings.items() if value is not None)
    inputs = ([part, path.name, digest(path)] for part, path in making.inputs.items())
    sections = [
        [f"# {name}", text, table(["split", *COUNTS], splits), table([making.by, *counts["splits"]], values)],
        ["## The floor", f"What a random order of the same candidates scores (preset `{PRESET}`).", floor_table],
        ["## Left out", table(["why", "queries"], counts["dropped"].items()) or "No query."],
        ["## How it was made", f"By eyespot {eyespot.__version__}.", table(["setting", "value"], settings)],
        [table(["input", "file", "sha256"], inputs), *(f"* {note}" for note in made.notes)],
    ]
    return "\n\n".join(part for section in sections for part in section if part) + "\n"


def digest(place: Path) -> str:
    """The SHA-256 of a file, or of the names and digests of all files in a folder."""
    if place.is_dir():
        files = sorted(path for path in place.rglob("*") if path.is_file())
        lines = (f"{path.relative_to(place).as_posix()} {digest(path)}\n" for path in files)
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
    return file_sha256(place)


CARD, DROPPED = "card.md", "dropped.csv"
OWN = ("split", "relevant", "candidates")  # what the set itself says of a query


def write(made: RerankSet, out: Path, making: RerankInputs, layout: str = "rerank-set") -> None:
    """The set with its card and what was dropped, in a new folder, whole or not at all.

    `layout` is a name of `LAYOUTS`. Raises `UsageError` for a folder that holds something and for ids and splits that
    the layout cannot hold.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"no layout {layout!r}; there are: {', '.join(LAYOUTS)}")
    described = card(out.absolute().name, made, making)
    with whole_folder(out) as folder:
        LAYOUTS[layout](made, folder)
        write_csv(folder / DROPPED, [["query_id", "reason", "relevant", "candidates"], *made.dropped])
        write_whole(folder / CARD, lambda file: file.write(described.encode("utf-8", "surrogatepass")))


# -- our own folder -----------------------------------------------------------------------------------------


def _write_set(made: RerankSet, folder: Path) -> None:
    odd = next((id for id in [*made.judged.queries] if id != id.strip() or re.search(r"[\r\n]", id)), None)
    if odd is not None:
        raise UsageError(f"the query id {odd!r} has outer spaces or a line break, which no csv keeps; rename it")
    # The text first, what the set says last; of the rest no column that would be read as the text is taken along
    columns_names = dict.fromkeys(name for facts in made.judged.queries.values() for name in facts)
    first = ["text"] if "text" in columns_names else []
    taken = {*ID[:1], *OWN, "", *(("text", TEXT[0]) if first else TEXT)}
    names = [
        *first,
        *(name for name in columns_names if name not in taken),
        *(name for name in OWN if name in columns_names),
    ]
    head = ["query_id", *("query_text" if name == "text" else name for name in names)]
    rows = ([id, *(_field(facts.get(name)) for name in names)] for id, facts in made.judged.queries.items())
    write_csv(folder / reranking.QUERIES, [[" ".join(name.split()) for name in head], *rows])
    limits = made.limits
    header = {"depth": limits.depth, "least": limits.least, "most": limits.most, "unjudged": len(made.unjudged)}
    qrels = Qrels(made.judged.qrels, header)
    pairs = zip(qrels.query.tolist(), qrels.image.tolist(), strict=True)
    judged = np.array([pair not in made.unjudged for pair in pairs], dtype=np.bool_)  # (judged,)
    run_table.write_qrels(qrels, folder / reranking.QRELS, {"judged": judged})
    run_table.write_run(made.run, folder / reranking.CANDIDATES)


def _field(value: Any) -> Any:
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else value


# -- the hub's parquet --------------------------------------------------------------------------------------


def _write_hub(made: RerankSet, folder: Path) -> None:
    """`data/SPLIT-00000-of-00001.parquet`, a row each candidate; `clip_score` is the run's score."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "data").mkdir()
    queries, images = _as_numbers(made.judged.queries), _hub_images(made.judged.images)
    for split in made.splits:
        hub_rows: list[dict[str, Any]] = []
        part = made.split(split)
        for query, hits in (part.candidates or {}).items():
            facts = part.queries[query]
            details = {name: None if facts.get(name) is None else str(facts[name]) for name in HUB_QUERY[2:]}
            for image, score in hits:
                pair = {"relevant": int(part.qrels[query][image] > 0), "clip_score": score}
                hub_rows.append(
                    {"query": facts.get("text"), "query_id": queries[query], **details, **pair, **images[image]}
                )
        rows = pa.Table.from_pylist(hub_rows)
        if not re.fullmatch(r"[\w.]+", split):
            raise UsageError(f"the split {split!r} cannot name a file; use letters, digits, _ and .")
        hub_name = "validation" if split == VAL else split
        path = folder / "data" / f"{hub_name}-00000-of-00001.parquet"
        write_whole(path, partial(pq.write_table, rows, compression="zstd"))


def _hub_images(images: Mapping[str, Columns]) -> dict[str, Columns]:
    """What the rows say of each image. An id that is not a number becomes the file name: readers take the id first."""
    numbers = _as_numbers(images)
    known = [name for name in HUB_IMAGE if any(name in facts for facts in images.values())]
    found = {}
    for image, facts in images.items():
        named = {"inat24_image_id": numbers[image], "inat24_file_name": facts.get("path")}
        if isinstance(numbers[image], str):
            named = {"inat24_file_name": image}
        found[image] = {**named, **{name: facts.get(name) for name in known}}
    return found


def _as_numbers(ids: Iterable[str]) -> dict[str, Any]:
    """Ids as the whole numbers that the hub has, if all are written as such; else as they are."""
    names = list(ids)
    plain = all(re.fullmatch(r"0|[1-9][0-9]{0,17}", id) for id in names)
    return {id: int(id) if plain else id for id in names}


LAYOUTS: dict[str, Callable[[RerankSet, Path], None]] = {"rerank-set": _write_set, "inquire-rerank": _write_hub}
