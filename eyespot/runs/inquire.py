"""INQUIRE: the CSV files of queries and annotations, and INQUIRE-Rerank as it lies on the Hugging Face hub.

The annotations list relevant pairs; a column `relevant` (0 or 1) of our own adds judged negatives. Images are named
by iNat24's `image_id`, or by `image_path` where that is asked for. A trap: in the released embeddings' tables
`image_path` has no `.jpg`, in the annotations it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eyespot.runs.judged import Columns, JudgedQueries, queries_of_table
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse, required
from eyespot.types import Qrels, RankedImage, Run

HUB_QUERY = ("query_id", "query", "supercategory", "category", "iconic_group")
HUB_PAIR = ("inat24_image_id", "inat24_file_name", "relevant", "clip_score")
HUB_IMAGE = (
    *("inat24_species_id", "inat24_species_name", "latitude", "longitude", "location_uncertainty"),
    *("date", "license", "rights_holder"),
)


def read(queries: Path, annotations: Path | None = None, image: str = "image_id") -> JudgedQueries:
    """The queries, and what the annotations say of them; those of other queries (the other split) are passed over."""
    found = read_queries(queries)
    if annotations is None:
        return JudgedQueries(found, Qrels({query: {} for query in found}, {"source": str(queries)}))
    grades: dict[str, dict[str, int]] = {query: {} for query in found}
    images: dict[str, Columns] = {}
    for line, row in rows_of(annotations):
        query, name = required(annotations, line, row, "query_id"), required(annotations, line, row, image)
        relevant = _relevant(annotations, line, row)
        if query in grades:
            _judge(annotations, line, grades[query], query=query, image=name, relevant=relevant)
            images[name] = {"path": row.get("image_path"), "image_id": row.get("image_id")}
    return JudgedQueries(found, Qrels(grades, {"source": str(annotations)}), images)


def read_queries(path: Path) -> dict[str, Columns]:
    """Queries by id: `text` and the columns by which results are broken down (an unnamed first column is dropped)."""
    found = queries_of_table(path)
    if (silent := next((query for query, facts in found.items() if not facts.get("text")), None)) is not None:
        refuse(path, f"query {silent!r}", "has no query_text")
    return found


def read_qrels(path: Path, image: str = "image_id") -> Qrels:
    """The annotations alone."""
    grades: dict[str, dict[str, int]] = {}
    for line, row in rows_of(path):
        query, name = required(path, line, row, "query_id"), required(path, line, row, image)
        _judge(path, line, grades.setdefault(query, {}), query=query, image=name, relevant=_relevant(path, line, row))
    return Qrels(grades, {"source": str(path), "image": image})


def read_rerank(files: Iterable[Path]) -> JudgedQueries:
    """INQUIRE-Rerank's parquet files: each row a query with one of its 100 candidates; pictures are not read.

    `candidates` ranks by the `clip_score` of the files: the order in which CLIP ViT-H-14 found them.
    """
    queries: dict[str, Columns] = {}
    grades: dict[str, dict[str, int]] = {}
    images: dict[str, Columns] = {}
    ranked: dict[str, list[RankedImage]] = {}
    columns = (*HUB_QUERY, *HUB_PAIR, *HUB_IMAGE)
    rows = ((path, line, row) for path in sorted(files) for line, row in rows_of(path, columns))
    for path, line, row in rows:
        query = required(path, line, row, "query_id", "query")
        image = required(path, line, row, "inat24_image_id", "inat24_file_name")
        if "relevant" not in row:
            refuse(path, f"row {line}", f"has no column relevant; there are: {', '.join(row)}")
        text = {"text": row.get("query"), **{name: row.get(name) for name in HUB_QUERY[2:]}}
        queries.setdefault(query, text)
        relevant = _relevant(path, line, row)
        _judge(path, line, grades.setdefault(query, {}), query=query, image=image, relevant=relevant)
        facts = {name: row[name] for name in HUB_IMAGE if row.get(name) is not None}
        images[image] = {"path": row.get("inat24_file_name"), **facts}
        hits = ranked.setdefault(query, [])
        score = row.get("clip_score")
        if isinstance(score, bool) or not isinstance(score, int | float | None) or score != score:
            refuse(path, f"row {line}", f"has {score!r} as clip_score; expected a number")
        clip_score = -float(len(hits) + 1) if score is None else float(score)
        hits.append(RankedImage(image, clip_score))
    candidates = Run({query: sorted(hits, key=lambda hit: -hit[1]) for query, hits in ranked.items()})
    return JudgedQueries(queries, Qrels(grades, {"source": "INQUIRE-Rerank"}), images, candidates)


def _judge(path: Path, line: int, judged: dict[str, int], *, query: str, image: str, relevant: bool) -> None:
    if image in judged:
        refuse(path, f"line {line}", f"judges query {query!r}, image {image!r} a second time")
    judged[image] = int(relevant)


def _relevant(path: Path, line: int, row: Columns) -> bool:
    value = row.get("relevant", 1)
    unread = (name for name, one in row.items() if name and name != "query_id" and str(one) in ("0", "0.0", "False"))
    if "relevant" not in row and (name := next(unread, None)):  # its rows of 1 and 0 would all be relevant
        refuse(path, f"line {line}", f"has {row[name]!r} as {name}; call the column of judgements relevant or grade")
    if str(value) not in ("0", "1", "True", "False", "0.0", "1.0"):
        refuse(path, f"line {line}", f"has {value!r} as relevant; expected 0 or 1")
    return str(value) in ("1", "True", "1.0")
