"""Re-ranking sets: from any run and its judgements, queries whose candidates are worth putting in another order.

A query's candidates are the first images of the run. It is kept if neither too few nor too many of them are relevant:
with none there is nothing to find, with most there is nothing to order (INQUIRE, section 3.3: 1 to 50 of 100).

This is one selection that takes seconds and asks no model, so it is not a pipeline of `eyespot.pipelines`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import eyespot
from eyespot.pipelines.data_card.markdown import table
from eyespot.runs import reranking, table as run_table
from eyespot.runs.judged import ID, TEXT, Columns, JudgedQueries, groups
from eyespot.settings.build import RerankSetSettings
from eyespot.storage.atomic import whole_folder, write_whole
from eyespot.storage.digests import file_sha256
from eyespot.storage.tables import write_csv
from eyespot.types import NothingFound, Qrels, RankedImage, Run, UsageError

VAL, TEST = "val", "test"
USUAL_SHARE = 0.2  # of the queries is for validation
NOT_LISTED, NOT_RANKED, NOT_JUDGED = "not among the queries", "not in the run", "not judged"


def validation_seats(settings: RerankSetSettings, queries: int) -> int:
    """How many of these queries are for validation; half a query counts as a whole one."""
    if settings.val is None:
        share = USUAL_SHARE if settings.val_share is None else settings.val_share
        return math.floor(Fraction(str(share)) * queries + Fraction(1, 2))
    if settings.val > queries:
        raise UsageError(f"{settings.val} validation queries are wanted, and only {queries} are left; choose fewer")
    return settings.val


class DroppedQuery(NamedTuple):
    """A query that is not in the set, and why."""

    query: str
    reason: str
    relevant: int
    candidates: int


@dataclass(frozen=True)
class RerankSet:
    """Queries with their candidates, all of them graded; `unjudged` are the (query, image) whose 0 is not a judgement.

    `judged.queries` say `split`, `relevant` and `candidates` besides the columns they came with. `notes` are sentences
    for the user.
    """

    judged: JudgedQueries
    unjudged: frozenset[tuple[str, str]]
    dropped: list[DroppedQuery]
    settings: RerankSetSettings
    notes: list[str]

    @property
    def run(self) -> Run:
        """The candidates in the order of the run."""
        assert self.judged.candidates is not None
        return self.judged.candidates

    def split(self, name: str) -> JudgedQueries:
        """The queries of one split."""
        return self.judged.among("split", name)

    @property
    def splits(self) -> list[str]:
        """Their names, validation first, the test last."""
        names = {facts["split"] for facts in self.judged.queries.values()}
        return sorted(names, key=lambda name: (name == TEST, name != VAL, name))


def select(run: Run, judged: JudgedQueries, limits: RerankSetSettings) -> RerankSet:
    """The queries of a run that are worth re-ranking, in the order of their ids, not yet split.

    `judged.queries` give the columns and say which queries there are; where they are empty, those of the judgements
    are. Raises `NothingFound` if no query is kept.
    """
    wanted = sorted(judged.queries or judged.qrels, key=natural)
    ranked = {}
    for query in wanted:
        if query in run:
            hits = run[query]
            if limits.judged_only:
                grades = judged.qrels.grades.get(query, {})
                hits = [hit for hit in hits if grades.get(hit.image, -1) >= 0]
            ranked[query] = hits[: limits.depth]
    verdicts = [_verdict(query, ranked, judged.qrels, limits) for query in wanted]
    dropped = [verdict for verdict in verdicts if verdict.reason]
    fitting = {verdict.query: ranked[verdict.query] for verdict in verdicts if not verdict.reason}
    if not fitting:
        if not len(run.score) or (run.graded(judged.qrels) < 0).all():
            raise NothingFound("no ranked image is judged; check that both files name queries and images alike")
        reason, count = Counter(one.reason for one in dropped).most_common(1)[0]
        why = f"{count} of {len(dropped)} are dropped as {reason!r}"
        raise NothingFound(f"no query is kept: {why}; change --depth, --least or --most")
    others = sorted({*run, *judged.qrels} - set(wanted), key=natural)
    reason = NOT_LISTED if judged.queries else NOT_JUDGED
    dropped += [DroppedQuery(query, reason, 0, 0) for query in others]
    return _assembled(fitting, judged, run=run, dropped=dropped, limits=limits)


def divide(made: RerankSet, by: str | None = None) -> RerankSet:
    """The set with its queries split in `val` and `test`, in proportion to the values of the column `by`.

    Raises `UsageError` for a column that no query has, and if there are fewer queries than are asked for.
    """
    queries = made.judged.queries
    strata = {"": list(queries)} if by is None else groups(queries, by)
    val = draw_stratified(strata, validation_seats(made.settings, len(queries)), made.settings.seed)
    return _with_splits(made, {query: VAL if query in val else TEST for query in queries})


def keep_split(made: RerankSet) -> RerankSet:
    """The set with the split that its queries came with, as INQUIRE-Rerank keeps INQUIRE's."""
    splits = {query: str(facts.get("split") or "").strip() for query, facts in made.judged.queries.items()}
    without = [query for query, split in splits.items() if not split]
    if without:
        raise UsageError(f"{len(without)} queries say no split, {without[0]!r} the first; give them one, or use --val")
    return _with_splits(made, splits)


def natural(id: str) -> tuple[str, str]:
    """A key that sorts 9 before 10 and leaves text in the order of the alphabet."""
    return id.zfill(20) if id.isdecimal() else id, id


# -- a seeded split, the same whatever the order of the queries ------------------------------------------------


def apportioned(sizes: Mapping[str, int], seats: int, seed: int = 0) -> dict[str, int]:
    """How many of each stratum to take, `seats` in all, by largest remainders.

    Each stratum gets its quota seats · size / total, rounded down or up, never more than its size. Equal remainders
    are settled by lot. Raises `UsageError` for more seats than there are members.
    """
    total = sum(sizes.values())
    if not 0 <= seats <= total:
        raise UsageError(f"{seats} of {total} cannot be taken; choose 0 to {total}")
    whole = {name: seats * size // max(total, 1) for name, size in sizes.items()}
    # In whole numbers: quotas as fractions would round, and remainders that are equal would not compare so.
    remainders = {name: seats * size % max(total, 1) for name, size in sizes.items()}
    favoured = sorted(sizes, key=lambda name: (-remainders[name], _lot(seed, "stratum", name)))
    extra = set(favoured[: seats - sum(whole.values())])
    return {name: count + (name in extra) for name, count in whole.items()}


def draw_stratified(strata: Mapping[str, Iterable[str]], seats: int, seed: int = 0) -> set[str]:
    """The members taken, `seats` in all, from each stratum as many as `apportioned` says."""
    members = {name: sorted(ids, key=lambda id: _lot(seed, "member", id)) for name, ids in strata.items()}
    counts = apportioned({name: len(ids) for name, ids in members.items()}, seats, seed)
    return {id for name, ids in members.items() for id in ids[: counts[name]]}


def _lot(seed: int, kind: str, name: str) -> tuple[str, str]:
    """A place in a shuffle that depends on seed and name alone: no generator, whose draws a new release may change."""
    digest = hashlib.sha256(f"{seed}\x1f{kind}\x1f{name}".encode("utf-8", "surrogatepass")).hexdigest()
    return digest, name


# -- one query ----------------------------------------------------------------------------------------------


def _verdict(
    query: str, ranked: Mapping[str, Sequence[RankedImage]], qrels: Qrels, limits: RerankSetSettings
) -> DroppedQuery:
    """Why a query is dropped; without a reason it is kept."""
    if query not in ranked:
        return DroppedQuery(query, NOT_RANKED, 0, 0)
    if query not in qrels:
        return DroppedQuery(query, NOT_JUDGED, 0, len(ranked[query]))
    grades = qrels.grades[query]
    relevant = sum(grades.get(hit.image, 0) > 0 for hit in ranked[query])
    if not len(ranked[query]):
        reason = "no candidates"
    elif relevant > limits.most:
        reason = f"more than {limits.most} relevant among the candidates"
    elif relevant >= limits.least:
        reason = ""
    else:
        reason = "none relevant among the candidates" if not relevant else f"fewer than {limits.least} relevant"
    return DroppedQuery(query, reason, relevant, len(ranked[query]))


# -- the set ------------------------------------------------------------------------------------------------


def _assembled(
    ranked: dict[str, list[RankedImage]],
    judged: JudgedQueries,
    *,
    run: Run,
    dropped: list[DroppedQuery],
    limits: RerankSetSettings,
) -> RerankSet:
    judgements = {query: judged.qrels.grades[query] for query in ranked}
    grades = {q: {hit.image: max(judgements[q].get(hit.image, 0), 0) for hit in hits} for q, hits in ranked.items()}
    unjudged = frozenset(
        (q, hit.image) for q, hits in ranked.items() for hit in hits if judgements[q].get(hit.image, -1) < 0
    )
    facts: dict[str, Columns] = {}
    for query, of_query in grades.items():
        counts = {"relevant": sum(grade > 0 for grade in of_query.values()), "candidates": len(of_query)}
        facts[query] = {**judged.queries.get(query, {}), **counts}
    candidates = Run(ranked)
    # A set is handed on: the name of the file tells its readers something, the folder it lay in does not.
    candidates.header = {**run.header, "source": Path(str(run.header.get("source", ""))).name}
    candidates.notes = run.notes
    images = {image: judged.images.get(image, {}) for image in candidates.images.tolist()}
    made = JudgedQueries(facts, Qrels(grades), images, candidates)
    return RerankSet(made, unjudged, dropped, limits, _notes(made, run, len(unjudged), limits))


def _with_splits(made: RerankSet, splits: Mapping[str, str]) -> RerankSet:
    queries = {query: {**facts, "split": splits[query]} for query, facts in made.judged.queries.items()}
    return replace(made, judged=replace(made.judged, queries=queries))


# -- what to know before trusting it ------------------------------------------------------------------------


def _notes(made: JudgedQueries, run: Run, unjudged: int, limits: RerankSetSettings) -> list[str]:
    depth, queries, notes = limits.depth, len(made.queries), []
    if short := sum(facts["candidates"] < depth for facts in made.queries.values()):
        notes.append(f"{short} of {queries} queries have fewer than {depth} candidates; they are kept")
    longer = (run[query] for query in made.queries if len(run[query]) > depth and not limits.judged_only)
    if tied := sum(hits[depth - 1].score == hits[depth].score for hits in longer):
        equal = f"have equal scores on both sides of rank {depth}: the order of the run decides"
        notes.append(f"{tied} of {queries} queries {equal}")
    if limits.judged_only and (made.qrels.grade > 0).all():
        notes.append("every candidate is relevant: the judgements list no others, so leave out --judged-only")
    elif unjudged:
        unknown = f"{unjudged} of {len(made.qrels.grade)} candidates are unjudged and count as not relevant"
        notes.append(f"{unknown}; --judged-only leaves them out where judgements are not exhaustive")
    return notes


# -- on the disk, with its card -------------------------------------------------------------------------------------


PRESET = "inquire-rerank"
COUNTS = ("queries", "candidates", "relevant", "unjudged")

_UNJUDGED = {
    True: "Images without a judgement are not among them.",
    False: "A candidate without a judgement counts as not relevant; `unjudged` says how many there are.",
}


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


def card(made: RerankSet, by: str | None = None) -> str:
    """The set described in Markdown: counts, random floor, what was left out, how and from what it was made."""
    from eyespot.metrics import aligned, floor, preset

    counts, given, measures = counted(made, by), made.settings, preset(PRESET).measures
    parts = {name: made.split(name) for name in made.splits}
    rankings = {name: aligned(part.candidates, part.qrels) for name, part in parts.items() if part.candidates}
    floors = ([name, *(f"{floor(measure, of).mean:.4f}" for measure in measures)] for name, of in rankings.items())
    floor_table = table(["split", *(measure.name for measure in measures)], floors)
    few = f"{len(made.judged.queries)} queries, each with up to {given.depth} candidates to put in a better order; "
    text = f"{few}{given.least} to {given.most} of them are relevant. {_UNJUDGED[given.judged_only]}"
    splits = ([split, *numbers.values()] for split, numbers in counts["splits"].items())
    values = ([value or "(none)", *numbers.values()] for value, numbers in counts["by"].get(by, {}).items())
    named = {name: getattr(given, name) for name in ("depth", "least", "most", "judged_only")}
    share = USUAL_SHARE if given.val is None and given.val_share is None else given.val_share
    drawn = {"val": given.val, "share": share, "seed": given.seed}
    named |= ({"split": "that of the queries"} if given.keep_split else drawn) | {"by": by}
    settings = ((name, value) for name, value in named.items() if value is not None)
    files = {"run": given.run, "qrels": given.qrels, "queries": given.queries}
    inputs = ([part, path.name, digest(path)] for part, path in files.items() if path is not None)
    sections = [
        [f"# {given.out.absolute().name}", text],
        [table(["split", *COUNTS], splits), table([by, *counts["splits"]], values)],
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


def write(made: RerankSet, by: str | None = None) -> None:
    """The set with its card and what was dropped, in a new folder, whole or not at all.

    Raises `UsageError` for a folder that holds something, and for ids that no CSV keeps.
    """
    odd = next((id for id in [*made.judged.queries] if id != id.strip() or re.search(r"[\r\n]", id)), None)
    if odd is not None:
        raise UsageError(f"the query id {odd!r} has outer spaces or a line break, which no csv keeps; rename it")
    described = card(made, by)
    # The text first, what the set says last; of the rest no column that would be read as the text is taken along
    columns_names = dict.fromkeys(name for facts in made.judged.queries.values() for name in facts)
    first = ["text"] if "text" in columns_names else []
    taken = {*ID[:1], *OWN, "", *(("text", TEXT[0]) if first else TEXT)}
    others = [name for name in columns_names if name not in taken]
    names = [*first, *others, *(name for name in OWN if name in columns_names)]
    head = ["query_id", *("query_text" if name == "text" else " ".join(name.split()) for name in names)]

    def cell(value: Any) -> Any:
        if value is None:
            return ""
        return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else value

    rows = ([id, *(cell(facts.get(name)) for name in names)] for id, facts in made.judged.queries.items())
    limits = made.settings
    header = {"depth": limits.depth, "least": limits.least, "most": limits.most, "unjudged": len(made.unjudged)}
    qrels = Qrels(made.judged.qrels, header)
    pairs = zip(qrels.query.tolist(), qrels.image.tolist(), strict=True)
    judged = np.array([pair not in made.unjudged for pair in pairs], dtype=np.bool_)  # (judged,)
    with whole_folder(made.settings.out) as folder:
        write_csv(folder / reranking.QUERIES, [head, *rows])
        run_table.write_qrels(qrels, folder / reranking.QRELS, {"judged": judged})
        run_table.write_run(made.run, folder / reranking.CANDIDATES)
        write_csv(folder / DROPPED, [["query_id", "reason", "relevant", "candidates"], *made.dropped])
        write_whole(folder / CARD, lambda file: file.write(described.encode("utf-8", "surrogatepass")))
