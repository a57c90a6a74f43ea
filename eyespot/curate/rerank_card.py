"""What a re-ranking set holds, counted: for its card, which goes with it, and for the command line."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import eyespot
from eyespot.curate.rerank import RerankSet
from eyespot.pipelines.data_card.markdown import table
from eyespot.runs.judged import groups
from eyespot.storage.digests import file_sha256

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
    counts, limits = counted(made, making.by), made.limits
    few = f"{len(made.judged.queries)} queries, each with up to {limits.depth} candidates to put in a better order; "
    text = f"{few}{limits.least} to {limits.most} of them are relevant. {_UNJUDGED[limits.judged_only]}"
    splits = ([split, *numbers.values()] for split, numbers in counts["splits"].items())
    values = ([value or "(none)", *its.values()] for value, its in counts["by"].get(making.by, {}).items())
    settings = ((setting, value) for setting, value in making.settings.items() if value is not None)
    inputs = ([part, path.name, digest(path)] for part, path in making.inputs.items())
    sections = [
        [f"# {name}", text, table(["split", *COUNTS], splits), table([making.by, *counts["splits"]], values)],
        ["## The floor", f"What a random order of the same candidates scores (preset `{PRESET}`).", _floors(made)],
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


def _floors(made: RerankSet) -> str:
    from eyespot.metrics import aligned, floor, preset

    measures = preset(PRESET).measures
    splits = {name: made.split(name) for name in made.splits}
    rankings = {name: aligned(part.candidates, part.qrels) for name, part in splits.items() if part.candidates}
    rows = ([name, *(f"{floor(measure, of).mean:.4f}" for measure in measures)] for name, of in rankings.items())
    return table(["split", *(measure.name for measure in measures)], rows)
