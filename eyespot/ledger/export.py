"""Judgements for other programs: as qrels, where several judges vote, or every column of the ledger as a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from eyespot.ledger.judgements import WITHDRAWN, JudgementRow, Judgements
from eyespot.storage.atomic import write_whole
from eyespot.types import Exchange, Qrels, UsageError, Verdict

CHUNK = 1 << 16  # rows that are turned into parquet at once
ALL = "all"
KINDS: dict[str, Any] = {  # of a table's columns, in their order
    **dict.fromkeys(("query", "name", "image", "judge", "prompt"), "string"),
    **{"turn": "int64", "probability": "float64", "grade": "int64", "reason": "string", "confidence": "float64"},
    **{"failure": "string", "refused": "bool", "rank": "int64", "at": "float64"},
    **{"calls": "int64", "tokens_in": "int64", "tokens_out": "int64", "money": "float64"},
}
COLUMNS = tuple(KINDS)
SAID = ("probability", "grade", "reason", "confidence")  # of a verdict


@dataclass(frozen=True)
class Reading:
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
    is the lower median of the votes: of yes and no the majority, and no where they are even, as doubt is not relevance.
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
    count = 0

    def facts() -> Iterator[dict[str, Any]]:
        nonlocal count
        for row in rows:
            count += 1
            one, verdict = row.judgement, row.judgement.verdict
            fields = {name: verdict and getattr(verdict, name) for name in SAID}
            found = {name: getattr(one, name, None) for name in KINDS} | fields | one.spent.as_json()
            found |= {"name": names.get(one.query), "turn": row.turn}
            yield found if ledger is None else found | {"exchanges": _exchanges(ledger.exchanges([one], row.turn))}

    def lines() -> Iterator[bytes]:
        return (json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n" for row in facts())

    is_parquet = path.name.lower().endswith(".parquet")
    write_whole(path, lambda file: _parquet(facts(), file) if is_parquet else file.writelines(lines()))
    return count


def _exchanges(exchanges: Iterable[Exchange]) -> str:
    several = []
    for exchange in exchanges:
        reply = None
        if exchange.reply is not None:
            changes = [change._asdict() for change in exchange.changes]
            reply = exchange.reply._asdict() | {"usage": exchange.reply.usage._asdict(), "changes": changes}
        several.append(exchange._asdict() | {"reply": reply})
    return json.dumps(several, ensure_ascii=False)


def _parquet(rows: Iterable[dict[str, Any]], file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    coming = iter(rows)
    first = next(coming, {})
    kinds = {**KINDS, "exchanges": "string"}
    schema = pa.schema([(name, pa.type_for_alias(kinds[name])) for name in first or KINDS])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        coming = chain([first] if first else [], coming)
        while chunk := list(islice(coming, CHUNK)):
            writer.write_table(pa.Table.from_pylist(chunk, schema))
