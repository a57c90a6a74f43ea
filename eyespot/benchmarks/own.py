"""Your own queries and judgements: a folder with `queries` and `qrels`, scored like any benchmark."""

from __future__ import annotations

from pathlib import Path

from eyespot.benchmarks._benchmark import Benchmark, Needed, Task
from eyespot.benchmarks._evaluating import ByColumn
from eyespot.metrics import parse
from eyespot.runs import read_qrels
from eyespot.runs.judged import JudgedQueries, queries_of_table
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

MEASURES = ("AP(norm='min-k', ties='average')@50", "nDCG(ties='average')@50", "RR(ties='average')@50", "R@20", "P@10")
NOT_A_GROUP = {"", "id", "query_id", "query", "query_text", "text", "image", "split"}
MOST_GROUPS = 30
QUERIES = Needed(
    "queries.csv|queries.tsv|queries.jsonl|queries.parquet",
    "a query a row: id, text (or image, or both), and columns to break results down by",
    "write it yourself (docs/research/eval.md)",
)
QRELS = Needed(
    "qrels.txt|qrels.csv|qrels.json|qrels.parquet|qrels.tsv|qrels",
    "which images are relevant to which query, in any format of docs/research/runs.md",
    "write it yourself, or judge what a search found",
)


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """One task; a column `split` is followed where it is there, and every other column breaks the results down."""
    path = QUERIES.place(data)
    every = queries_of_table(path)
    for query, facts in every.items():
        if not facts.get("text") and not facts.get("image"):
            refuse(path, f"query {query!r}", f"has neither text nor image; there are: {', '.join(facts)}")
    queries = {q: facts for q, facts in every.items() if facts.get("split") in (None, "", split)}
    if not queries:
        there = ", ".join(sorted({str(facts.get("split")) for facts in every.values()})) or "none"
        raise UsageError(f"no query of {data} is in the split {split!r}; splits there: {there}")
    qrels = read_qrels(QRELS.place(data))
    if not any(query in qrels for query in queries):
        text = ", ".join(map(repr, [*queries][:2])) + " …" * (len(queries) > 2)
        raise UsageError(f"no query of {data} is judged; {text} are not in {qrels.header['source']}")
    judged = JudgedQueries(queries, qrels).only(queries)
    measures = [parse(measure) for measure in MEASURES]
    # The columns whose values recur: what is different for every query groups nothing
    names = dict.fromkeys(name for facts in queries.values() for name in facts if name not in NOT_A_GROUP)
    counts = {name: len({str(facts.get(name)) for facts in queries.values()}) for name in names}
    breakdowns = tuple(ByColumn(name) for name, count in counts.items() if count <= min(MOST_GROUPS, len(queries) // 2))
    return [Task("own", judged, measures, by=breakdowns, composed=True, exclude_input=True)]


def load() -> Benchmark:
    """The benchmark."""
    return Benchmark(
        "own",
        "Own queries",
        "your own queries and judgements over your own gallery",
        "",
        "yours",
        "",
        tasks,
        (QUERIES, QRELS),
        ("test", "val", "train"),
    )
