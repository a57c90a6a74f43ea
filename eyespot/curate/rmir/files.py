"""An RMIR set on disk: tables as `eyespot eval rmir` and `datasets` read them, and MTEB's three.

queries  id, split, kind, image, question, target_description, reasoning, description, tsr, file, licence, author, url
qrels    query, image, grade (1 a target; 0 a photo of the pool that the whole panel refused; -1 one in doubt)
pool     image, file, description, licence, author, url
judgements  query, image, triplet, judge, verdict, reasoning: every vote, also on what was left out
losses   step, came, added, kept, reason, records, seconds, calls, tokens_in, tokens_out, money

Queries and qrels stand in `hub/` once more, a file for each split, for `datasets` knows a split by its file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from eyespot.curate._attribution import Attribution
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.curate.rmir.split import TEST, TRAIN
from eyespot.formats.positions import PictureBytes, as_it_is, without_position
from eyespot.photos.pictures import BadPicture
from eyespot.photos.sources import read_again
from eyespot.pipelines.data_card import Tables
from eyespot.pipelines.outcomes import line_of
from eyespot.runs.rmir import UNKNOWN
from eyespot.storage.atomic import write_whole
from eyespot.types import UsageError

RIGHTS = Attribution._fields
TEXT, WHOLE, SHARE = "string", "int64", "float64"
COLUMNS: dict[str, dict[str, str]] = {
    "queries": {
        **dict.fromkeys(("id", "split", "kind", "image", "question", "target_description", "reasoning"), TEXT),
        **{"description": TEXT, "tsr": SHARE},
        **dict.fromkeys(("file", *RIGHTS), TEXT),
    },
    "qrels": {"query": TEXT, "image": TEXT, "grade": WHOLE},
    "pool": dict.fromkeys(("image", "file", "description", *RIGHTS), TEXT),
    "judgements": dict.fromkeys(("query", "image", "triplet", "judge", "verdict", "reasoning"), TEXT),
    "losses": {
        **{"step": TEXT, "came": WHOLE, "added": WHOLE, "kept": WHOLE, "reason": TEXT, "records": WHOLE},
        **{"seconds": SHARE, "calls": WHOLE, "tokens_in": WHOLE, "tokens_out": WHOLE, "money": SHARE},
    },
}
QUERY = ("id", "split", "kind", "image", "question", "reasoning", "description", "tsr")  # as the step `split` has them
PICTURES = ("queries", "corpus")  # tables of MTEB that show pictures
BY_SPLIT = ("queries", "qrels")
HUB, MTEB = "hub", "mteb"


def write_tables(made: FinishedSteps, folder: Path) -> None:
    """Our own layout, each table as parquet and as JSON lines."""
    rights = made.attributions
    queries = [
        {name: one[name] for name in QUERY}
        | {"target_description": one["target"], "file": Path(one["path"]).name, **rights.get(one["image"], {})}
        for one in made.queries
    ]
    pool = [
        {"image": seed["id"], "file": Path(seed["path"]).name, "description": seed["description"]}
        | rights.get(seed["id"], {})
        for seed in (made.seeds[id] for id in made.pool)
    ]
    rows: dict[str, Callable[[], Iterable[Mapping[str, Any]]]] = {
        "queries": lambda: queries,
        "qrels": lambda: qrels(made),
        "pool": lambda: pool,
        "judgements": made.votes,
        "losses": lambda: _losses(made),
    }
    for name, columns in COLUMNS.items():
        _write_parquet(folder / f"{name}.parquet", rows[name](), columns)
        write_whole(folder / f"{name}.jsonl", methodcaller("writelines", map(line_of, rows[name]())))
    (folder / HUB).mkdir()
    for split in _splits(made):
        ids = {query["id"] for query in made.in_split(split)}
        for name, key in zip(BY_SPLIT, ("id", "query"), strict=True):
            mine = (row for row in rows[name]() if row[key] in ids)
            _write_parquet(folder / HUB / f"{name}-{split}.parquet", mine, COLUMNS[name])


def _splits(made: FinishedSteps) -> list[str]:
    return [name for name in (TEST, TRAIN) if made.in_split(name)]


def qrels(made: FinishedSteps) -> Iterator[dict[str, Any]]:
    """What is judged of each query's pool: its targets, photos that the whole panel refused, and those in doubt."""
    pool = set(made.pool)
    for query in made.queries:
        unknown = made.unknown.get(query["id"], [])
        for grade, images in ((1, query["targets"]), (0, query["negatives"]), (UNKNOWN, unknown)):
            yield from ({"query": query["id"], "image": image, "grade": grade} for image in images if image in pool)


def _losses(made: FinishedSteps) -> Iterator[dict[str, Any]]:
    for one in made.done:
        step = {"step": one.step.name, "came": one.counts.came, "added": one.counts.added, "kept": one.counts.kept}
        cost = {"seconds": round(one.cost.seconds, 3), **one.cost.spent._asdict()}
        for reason, count in (one.counts.dropped or {"": 0}).items():
            yield {**step, "reason": reason, "records": count, **cost}


# -- MTEB ---------------------------------------------------------------------------------------------------------


Show = Callable[[str], dict[str, Any] | None]
"""What stands for a picture, by where it lies: `unshown` or `held`."""


def write_mteb(made: FinishedSteps, folder: Path, show: Show) -> None:
    """The tables corpus, queries and qrels for each split that has queries."""
    for name in _splits(made):
        queries = made.in_split(name)
        ids = {query["id"] for query in queries}
        tables: dict[str, Iterable[dict[str, Any]]] = {
            "corpus": ({"id": id, "modality": "image", "image": made.seeds[id]["path"]} for id in made.pool),
            "queries": (
                {"id": one["id"], "modality": "image,text", "text": one["question"], "image": one["path"]}
                for one in queries
            ),
            "qrels": (
                {"query-id": one["query"], "corpus-id": one["image"], "score": one["grade"]}
                for one in qrels(made)
                if one["query"] in ids and one["grade"] != UNKNOWN  # MTEB cannot leave a photo out of one ranking
            ),
        }
        for table, rows in tables.items():
            (folder / table).mkdir(parents=True, exist_ok=True)
            shown = rows
            if table in PICTURES:
                shown = ({**row, "file": Path(row["image"]).name, "image": show(row["image"])} for row in rows)
            _write_parquet(folder / table / f"{name}.parquet", shown, _MTEB[table])


def unshown(_place: str) -> None:
    """No picture: the name of its file alone stands in the table."""


def held(place: str) -> dict[str, Any]:
    """A picture with its bytes but without its position; `UsageError` if it cannot be read."""
    return _held(place, without_position)


def held_whole(place: str) -> dict[str, Any]:
    """The same with its position."""
    return _held(place, as_it_is)


def _held(place: str, share: Callable[[bytes, str], PictureBytes]) -> dict[str, Any]:
    path = Path(place)
    try:
        shared = share(read_again(place), path.suffix)
    except (OSError, BadPicture) as error:
        why = error.reason if isinstance(error, BadPicture) else error.strerror
        raise UsageError(f"the picture {place} cannot be read ({why}); leave out --pictures") from None
    return {"bytes": shared.data, "path": f"{path.stem}{shared.suffix}"}


IMAGE = "image"
_MTEB = {
    "corpus": {"id": TEXT, "modality": TEXT, "image": IMAGE, "file": TEXT},
    "queries": {"id": TEXT, "modality": TEXT, "text": TEXT, "image": IMAGE, "file": TEXT},
    "qrels": {"query-id": TEXT, "corpus-id": TEXT, "score": WHOLE},
}


# -- parquet --------------------------------------------------------------------------------------------------------


def _write_parquet(path: Path, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {TEXT: pa.string(), WHOLE: pa.int64(), SHARE: pa.float64()}
    kinds[IMAGE] = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.Table.from_pylist(list(rows), pa.schema([(name, kinds[kind]) for name, kind in columns.items()]))
    if IMAGE in columns.values():  # `datasets` reads here which columns hold pictures
        features = {
            name: {"_type": "Image"} if kind == IMAGE else {"_type": "Value", "dtype": kind}
            for name, kind in columns.items()
        }
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    write_whole(path, partial(pq.write_table, table, compression="zstd"))


# -- for `datasets` -----------------------------------------------------------------------------------------------


def tables_of(made: FinishedSteps) -> Tables:
    """The tables by the names that `datasets` loads them by."""
    splits = _splits(made)
    own = whole_tables()
    parted = {name: {split: f"{HUB}/{name}-{split}.parquet" for split in splits} for name in BY_SPLIT}
    mteb = {
        f"{MTEB}-{name}": {split: f"{MTEB}/{file}" for split, file in places.items()}
        for name, places in mteb_tables(made).items()
    }
    return own | parted | mteb if splits else own


def whole_tables() -> dict[str, dict[str, str]]:
    """Our own layout."""
    return {name: {"whole": f"{name}.parquet"} for name in COLUMNS}


def mteb_tables(made: FinishedSteps) -> Tables:
    """Those of the folder `mteb`, by the names that MTEB's own loader knows; queries are the usual one."""
    splits = _splits(made)
    return {table: {name: f"{table}/{name}.parquet" for name in splits} for table in ("queries", "corpus", "qrels")}
