"""BEIR's folder: `corpus.jsonl` with every fact, `queries.jsonl`, and judgements in `qrels/test.tsv`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write judgements as a BEIR folder, with captions and every fact of the pictures as its corpus."
OPTIONS = ("judged",)


def write(rows: ExportRows, folder: Path) -> int:
    """The corpus is what was chosen; its text is the caption or title of a picture, and empty without one."""
    from eyespot.formats.exporting import caption_column, known_facts
    from eyespot.runs import beir
    from eyespot.runs.judged import JudgedQueries

    caption, corpus = caption_column(rows), dict[str, dict[str, Any]]()
    for row in rows:
        facts = known_facts(row.facts)
        del facts["id"]
        corpus[row.id] = {"title": "", "text": str(facts.get(caption or "", ""))} | facts
    judged = rows.judged(corpus)
    texts = {query: {**facts, "text": facts.get("text") or query} for query, facts in judged.queries.items()}
    beir.write(JudgedQueries(texts, judged.qrels, corpus), folder)
    return len(corpus)
