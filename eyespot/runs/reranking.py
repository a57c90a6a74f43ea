"""A re-ranking set: queries that each rank a fixed list of candidates, in the folder that `eyespot build rerank` makes.

`queries.csv` has the queries with their columns and split, `candidates.parquet` the lists in the order handed out,
`qrels.parquet` a grade for every candidate; its column `judged` is false where the 0 stands for a missing judgement.
"""

from __future__ import annotations

from pathlib import Path

from eyespot.runs import table
from eyespot.runs.judged import JudgedQueries, queries_of_table
from eyespot.types import Qrels, UsageError

QUERIES, QRELS, CANDIDATES = "queries.csv", "qrels.parquet", "candidates.parquet"


def is_layout(folder: Path) -> bool:
    """Whether a folder holds the three tables."""
    return all((folder / name).is_file() for name in (QUERIES, QRELS, CANDIDATES))


def read(folder: Path, split: str | None = None) -> JudgedQueries:
    """The set, or one split of it, with `candidates`; the `images` are those that some query has as a candidate.

    Raises `UsageError` for a split that no query has, and for a set whose tables do not name the same queries.
    """
    queries = queries_of_table(folder / QUERIES)
    qrels, candidates = table.read_qrels(folder / QRELS), table.read_run(folder / CANDIDATES)
    for name, rows in ((QRELS, qrels.queries), (CANDIDATES, candidates.queries)):
        if odd := set(rows) ^ set(queries):
            raise UsageError(f"{folder}: {QUERIES} and {name} differ on the query {min(odd)!r}; make the set again")
    ordered = Qrels({query: qrels[query] for query in queries}, qrels.header)
    whole = JudgedQueries(queries, ordered, {image: {} for image in candidates.images.tolist()}, candidates)
    if split is None:
        return whole
    splits = {str(facts.get("split", "")) for facts in whole.queries.values()}
    if split not in splits:
        raise UsageError(f"{folder} has no split {split!r}; there are: {', '.join(sorted(splits))}")
    return whole.among("split", split)
