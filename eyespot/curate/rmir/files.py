"""An RMIR set on disk: tables as `eyespot eval rmir` and `datasets` read them (`columns.toml`), and MTEB's three.

Queries and qrels stand in `hub/` once more, a file for each split, for `datasets` knows a split by its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller
from pathlib import Path
from typing import Any

from eyespot.curate.rmir import panel
from eyespot.curate.rmir.candidates import PoolSettings, pooled
from eyespot.curate.rmir.panel import TEST, TRAIN, voted_on
from eyespot.curate.rmir.pipeline import POOLED, RmirPipeline
from eyespot.curate.set_folder import SharePicture, attributions, shared_picture, write_table
from eyespot.pipelines import Context, Record, Records, StepResult
from eyespot.pipelines.data_card import Tables
from eyespot.pipelines.outcomes import line_of
from eyespot.runs.rmir import UNKNOWN
from eyespot.storage.atomic import write_whole
from eyespot.storage.text_files import toml_of
from eyespot.types import no_progress


@dataclass(frozen=True)
class FinishedSteps:
    """The finished steps of a pipeline."""

    pipe: RmirPipeline
    done: Sequence[StepResult]

    def of(self, name: str) -> StepResult:
        """A finished step."""
        return next(one for one in self.done if one.step.name == name)

    def records(self, name: str) -> Records:
        """What it kept."""
        return self.of(name).records

    @cached_property
    def queries(self) -> list[Record]:
        """The queries of both splits."""
        return list(self.records("split"))

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of questions."""
        return list(self.pipe.settings("questions").kinds)

    @cached_property
    def triplets(self) -> list[Record]:
        """Every triplet that was voted on, those on which a judge was silent among them, without controls."""
        found = (*voted_on(self.records("judged")), *self.pooled.values())
        return [one for one in found if "control" not in one]

    @cached_property
    def sure(self) -> list[Record]:
        """The triplets that the panel is sure of."""
        before = next(at for at, one in enumerate(self.done) if one.step.name == "queries") - 1
        return list(self.done[before].records)

    @cached_property
    def pooled(self) -> dict[str, Record]:
        """Triplets that were found in the pool alone, with the votes that they have, by id."""
        judged = next((one for one in self.done if one.step.name == f"{POOLED}-judged"), None)
        return {one["id"]: one for one in (voted_on(judged.records) if judged else ()) if "pooled" in one}

    @cached_property
    def nearest(self) -> list[Record]:
        """A triplet for each photo of the pool that is among the first of a query, by any encoder of the gallery."""
        how = next((self.pipe.settings(POOLED) for one in self.done if one.step.name == POOLED), PoolSettings())
        earlier = {name: self.records(name) for name in ("seeds", "checked")}
        context = Context(POOLED, 0, lambda _prompt: {}, no_progress, earlier)
        queries = {one["id"] for one in self.queries}
        sure = [one for one in self.sure if one["query"] in queries]
        found = (one.record for one in pooled(self.pipe.world, how, self.pipe.settings("candidates"), sure, context))
        return [one for one in found if "votes" not in one]

    @cached_property
    def unjudged(self) -> list[Record]:
        """Those of `nearest` that nobody voted on."""
        judged = {(one["query"], one["candidate"]) for one in (*self.triplets, *self.controls)}
        return [one for one in self.nearest if (one["query"], one["candidate"]) not in judged]

    @cached_property
    def controls(self) -> list[Record]:
        """Triplets that cannot answer, by the reason in `control`, with their votes."""
        return [one for one in voted_on(self.records("judged")) if "control" in one]

    @cached_property
    def hits(self) -> dict[str, list[Record]]:
        """The judged hits of the first image index for each query, in their order."""
        return panel.ranked(self.triplets, self.pipe.lists.space)

    @cached_property
    def counted(self) -> set[str]:
        """The triplets whose votes tell reliability, by their ids."""
        records = {name: self.records(name) for name in ("judged", "confident")}
        return {one["id"] for one in panel.counted(records, self.pipe.settings("split"))}

    @cached_property
    def seats(self) -> list[str]:
        """The names of the judges."""
        return [seat.name for seat in self.pipe.seats]

    @cached_property
    def seeds(self) -> dict[str, Record]:
        """The seed set, by photo; also what left it."""
        return {one["id"]: one for one in self.records("seeds")}

    @cached_property
    def attributions(self) -> dict[str, dict[str, str | None]]:
        """By photo of the pool and of the queries, as far as they are in the gallery: licence, author and url."""
        images = {**dict.fromkeys(self.pool), **dict.fromkeys(query["image"] for query in self.queries)}
        return attributions(self.pipe.world, images, self.pipe.settings("seeds").space)

    @cached_property
    def doubted(self) -> set[str]:
        """Photos that left the seed set; none where doubt concerns a query only."""
        settings: panel.ConfidentSettings = self.pipe.settings("confident")
        return {one["candidate"] for one in self._in_doubt} if settings.doubt == "everywhere" else set()

    @cached_property
    def unknown(self) -> dict[str, list[str]]:
        """By query the photos of the pool of which nobody can say whether they answer it."""
        pool, queries = set(self.pool), {query["id"] for query in self.queries}
        found: dict[str, list[str]] = {}
        sure = {one["id"] for one in self.sure}
        for one in (*self._in_doubt, *(one for id, one in self.pooled.items() if id not in sure)):
            if one["query"] in queries and one["candidate"] in pool:
                found.setdefault(one["query"], []).append(one["candidate"])
        return found

    @cached_property
    def _in_doubt(self) -> list[Record]:
        least, found = self.pipe.settings("confident").least, self.records("candidates")
        return list(panel.doubtful(self.records("judged"), found, len(self.seats), least))

    @cached_property
    def pool(self) -> list[str]:
        """The photos that are ranked, in the order of the seed set."""
        settings: panel.SplitSettings = self.pipe.settings("split")
        targets = {target for query in self.queries for target in query["targets"]}
        wanted = targets if settings.pool == "targets" else set(self.seeds) - self.doubted
        return [id for id in self.seeds if id in wanted]

    def barred(self, query: Record) -> set[str]:
        """Photos of the pool that are not ranked for a query: its own input, and what is in doubt."""
        return {query["image"], *self.unknown.get(query["id"], ())}.intersection(self.pool)

    def votes(self) -> Iterator[Mapping[str, Any]]:
        """Every vote, a row each."""
        for one in self.triplets:
            for vote in one["votes"]:
                yield {"query": one["query"], "image": one["candidate"], "triplet": one["id"], **vote}

    def in_split(self, name: str) -> list[Record]:
        """The queries of a split."""
        return [query for query in self.queries if query["split"] == name]


_TABLE = toml_of(Path(__file__).with_name("columns.toml"))
_MTEB: Mapping[str, Mapping[str, str]] = _TABLE.pop("mteb")
COLUMNS: Mapping[str, Mapping[str, str]] = _TABLE
WHOLE_TABLES: Tables = {name: {"whole": f"{name}.parquet"} for name in COLUMNS}  # our own layout
QUERY = ("id", "split", "kind", "image", "question", "reasoning", "description", "tsr")  # as the step `split` has them
PICTURES = ("queries", "corpus")  # tables of MTEB that show pictures
BY_SPLIT = ("queries", "qrels")
HUB, MTEB, MAIN = "hub", "mteb", "queries.parquet"


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
    losses = []
    for one in made.done:
        step = {"step": one.step.name, "came": one.counts.came, "added": one.counts.added, "kept": one.counts.kept}
        cost = {"seconds": round(one.cost.seconds, 3), **one.step.cost(one.cost.spent)}
        dropped = (one.counts.dropped or {"": 0}).items()
        losses += [{**step, "reason": reason, "records": count, **cost} for reason, count in dropped]
    rows: dict[str, Callable[[], Iterable[Mapping[str, Any]]]] = {
        "queries": lambda: queries,
        "qrels": lambda: qrels(made),
        "pool": lambda: pool,
        "judgements": made.votes,
        "losses": lambda: losses,
    }
    for name, columns in COLUMNS.items():
        write_table(folder / f"{name}.parquet", rows[name](), columns)
        write_whole(folder / f"{name}.jsonl", methodcaller("writelines", map(line_of, rows[name]())))
    (folder / HUB).mkdir()
    for split in _splits(made):
        ids = {query["id"] for query in made.in_split(split)}
        for name, key in zip(BY_SPLIT, ("id", "query"), strict=True):
            subset = (row for row in rows[name]() if row[key] in ids)
            write_table(folder / HUB / f"{name}-{split}.parquet", subset, COLUMNS[name])


def _splits(made: FinishedSteps) -> list[str]:
    return [name for name in (TEST, TRAIN) if made.in_split(name)]


def qrels(made: FinishedSteps) -> Iterator[dict[str, Any]]:
    """What is judged of each query's pool: its targets, photos that the whole panel refused, and those in doubt."""
    pool = set(made.pool)
    for query in made.queries:
        unknown = made.unknown.get(query["id"], [])
        for grade, images in ((1, query["targets"]), (0, query["negatives"]), (UNKNOWN, unknown)):
            yield from ({"query": query["id"], "image": image, "grade": grade} for image in images if image in pool)


# -- MTEB ---------------------------------------------------------------------------------------------------------


def write_mteb(made: FinishedSteps, folder: Path, share: SharePicture | None) -> None:
    """The tables corpus, queries and qrels for each split that has queries; without `share` no pictures in them.

    Raises `EyespotError` for a picture that cannot be read.
    """

    def with_picture(row: dict[str, Any]) -> dict[str, Any]:
        path = Path(row["image"])
        if share is None:
            return {**row, "file": path.name, "image": None}
        _, picture = shared_picture(path, path.suffix, share)
        return {**row, "file": path.name, "image": {"bytes": picture.data, "path": f"{path.stem}{picture.suffix}"}}

    for name in _splits(made):
        queries = made.in_split(name)
        ids = {query["id"] for query in queries}
        tables: dict[str, Iterable[dict[str, Any]]] = {
            "corpus": ({"id": id, "modality": "image", "image": made.seeds[id]["path"]} for id in made.pool),
            "queries": (
                {"id": one["id"], "modality": "image,text", "text": one["question"], "image": one["path"]}
                for one in queries
            ),
            "top_ranked": (
                {"query-id": one["id"], "corpus-ids": [id for id in made.pool if id not in barred]}
                for one in queries
                for barred in [made.barred(one)]
            ),
            "qrels": (
                {"query-id": one["query"], "corpus-id": one["image"], "score": one["grade"]}
                for one in qrels(made)
                if one["query"] in ids and one["grade"] != UNKNOWN  # left out of its ranking by `top_ranked`
            ),
        }
        for table, rows in tables.items():
            if table not in mteb_tables(made):
                continue
            (folder / table).mkdir(parents=True, exist_ok=True)
            rows_shown = map(with_picture, rows) if table in PICTURES else rows
            write_table(folder / table / f"{name}.parquet", rows_shown, _MTEB[table])


# -- for `datasets` -----------------------------------------------------------------------------------------------


def tables_of(made: FinishedSteps) -> Tables:
    """The tables by the names that `datasets` loads them by."""
    splits = _splits(made)
    parted = {name: {split: f"{HUB}/{name}-{split}.parquet" for split in splits} for name in BY_SPLIT}
    mteb = {
        f"{MTEB}-{name}": {split: f"{MTEB}/{file}" for split, file in places.items()}
        for name, places in mteb_tables(made).items()
    }
    return {**WHOLE_TABLES, **parted, **mteb} if splits else WHOLE_TABLES


def mteb_tables(made: FinishedSteps) -> Tables:
    """Those of the folder `mteb`, by the names that MTEB's own loader knows; queries are the usual one."""
    splits = _splits(made)
    ranked = ("top_ranked",) if any(map(made.barred, made.queries)) else ()
    return {
        table: {name: f"{table}/{name}.parquet" for name in splits} for table in ("queries", "corpus", "qrels", *ranked)
    }
