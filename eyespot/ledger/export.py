"""Judgements for other programs: as qrels, where several judges vote, or every column of the ledger as a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from eyespot.ledger.judgements import WITHDRAWN, JudgementRow, Judgements
from eyespot.storage.atomic import write_whole
from eyespot.types import Qrels, UsageError, Verdict

CHUNK = 1 << 16  # rows that are turned into parquet at once
ALL = "all"
COLUMNS = (
    "query",
    "name",
    "image",
    "judge",
    "prompt",
    "turn",
    "probability",
    "grade",
    "reason",
    "confidence",
    "failure",
    "refused",
    "rank",
    "at",
    "calls",
    "tokens_in",
    "tokens_out",
    "money",
)


class Reading(NamedTuple):
    """How verdicts become grades: a grade as it is, or 1 from `least_grade` on; a probability is 1 from `threshold` on.

    Only a verdict without a grade is read by its probability.
    """

    threshold: float = 0.5
    least_grade: int | None = None

    def grade(self, verdict: Verdict) -> int:
        """The grade that a verdict stands for."""
        if verdict.grade is None:
            return int((verdict.probability or 0.0) >= self.threshold)
        return verdict.grade if self.least_grade is None else int(verdict.grade >= self.least_grade)


def voters(there: Iterable[str], named: Iterable[str]) -> set[str]:
    """The judges that are named, all for `all`, and the only one where none is named.

    Raises `UsageError` where none is named and several have judged, and for one who has not.
    """
    judges, wanted = set(there), set(named)
    listed = ", ".join(sorted(judges)) or "none"
    if not wanted and len(judges) > 1:
        raise UsageError(f"several have judged ({listed}); name one with --by, several for a vote, or --by all")
    if missing := wanted - {ALL} - judges:
        raise UsageError(f"{min(missing)} has judged nothing here; there are: {listed}")
    return wanted if wanted and ALL not in wanted else judges


def qrels(rows: Iterable[JudgementRow], names: Mapping[str, str], reading: Reading) -> Qrels:
    """Qrels of the queries in `names` (digest → name); what has no verdict, or was refused, stays unjudged.

    Each judge, wording and turn has one vote on a pair, the last one given; one that was taken back is none. The grade
    is the lower median of the votes: of yes and no the majority, and no where they are even, as doubt is no relevance.
    """
    votes: dict[tuple[str, str], dict[Any, int]] = {}
    for row in rows:
        one = row.judgement
        if one.query not in names:
            continue
        pair, voter = (names[one.query], one.image), (one.judge, one.prompt, row.turn)
        if one.verdict is not None and not one.refused:
            votes.setdefault(pair, {})[voter] = reading.grade(one.verdict)
        elif one.failure == WITHDRAWN:
            votes.get(pair, {}).pop(voter, None)
    grades: dict[str, dict[str, int]] = {}
    for (query, image), given in votes.items():
        if given:
            in_order = sorted(given.values())
            grades.setdefault(query, {})[image] = in_order[(len(in_order) - 1) // 2]
    return Qrels(grades)


def distinct_names(named: Mapping[str, str]) -> dict[str, str]:
    """Names by digest, of which no two are alike: equal ones get the beginning of their digest."""
    often = Counter(named.values())
    return {digest: name if often[name] == 1 else f"{name} ({digest[:8]})" for digest, name in named.items()}


# -- tables -------------------------------------------------------------------------------------------------


def write_table(
    rows: Iterable[JudgementRow], names: Mapping[str, str], path: Path, ledger: Judgements | None = None
) -> int:
    """Every judgement with all its columns to .parquet or .jsonl, whole or not at all; how many there were.

    With its `ledger` the column `exchanges` has, as JSON, what was sent for each judgement and what came back.
    """
    facts = _Counted(_facts(row, names) | _exchanges(row, ledger) for row in rows)
    write = _parquet if path.name.lower().endswith(".parquet") else _json_lines
    write_whole(path, lambda file: write(facts, file))
    return facts.count


class _Counted(Iterator[dict[str, Any]]):
    def __init__(self, rows: Iterator[dict[str, Any]]) -> None:
        self.rows, self.count = rows, 0

    def __next__(self) -> dict[str, Any]:
        row = next(self.rows)
        self.count += 1
        return row


def _facts(row: JudgementRow, names: Mapping[str, str]) -> dict[str, Any]:
    one = row.judgement
    verdict = one.verdict
    verdict_fields_names = ("probability", "grade", "reason", "confidence")
    verdict_fields = {name: None if verdict is None else getattr(verdict, name) for name in verdict_fields_names}
    return {
        "query": one.query,
        "name": names.get(one.query),
        "image": one.image,
        "judge": one.judge,
        "prompt": one.prompt,
        "turn": row.turn,
        **verdict_fields,
        "failure": one.failure,
        "refused": one.refused,
        "rank": one.rank,
        "at": one.at,
        **one.spent._asdict(),
    }


def _exchanges(row: JudgementRow, ledger: Judgements | None) -> dict[str, Any]:
    if ledger is None:
        return {}
    several = []
    for exchange in ledger.exchanges([row.judgement], row.turn):
        reply = None
        if exchange.reply is not None:
            reply = exchange.reply._asdict() | {
                "usage": exchange.reply.usage._asdict(),
                "changes": [change._asdict() for change in exchange.changes],
            }
        several.append(exchange._asdict() | {"reply": reply})
    return {"exchanges": json.dumps(several, ensure_ascii=False)}


def _json_lines(rows: Iterable[dict[str, Any]], file: IO[bytes]) -> None:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _parquet(rows: Iterable[dict[str, Any]], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, pa.DataType] = {
        **dict.fromkeys(("query", "name", "image", "judge", "prompt", "reason", "failure", "exchanges"), pa.string()),
        **dict.fromkeys(("turn", "grade", "rank", "calls", "tokens_in", "tokens_out"), pa.int64()),
        **dict.fromkeys(("probability", "confidence", "at", "money"), pa.float64()),
        "refused": pa.bool_(),
    }
    coming = iter(rows)
    first = next(coming, {})
    schema = pa.schema([(name, kinds[name]) for name in first or COLUMNS])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        coming = chain([first] if first else [], coming)
        while chunk := list(islice(coming, CHUNK)):
            writer.write_table(pa.Table.from_pylist(chunk, schema))
