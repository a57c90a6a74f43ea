"""Which row of a gallery a judged image is: by id, path, file name, file stem, end of a path, or a column of labels.

One way holds for all names, because mixed ways hide mistakes: the one under which most are found, and of equal ones the
first of `WAYS`. Of several rows under one name (copies, or other pictures that are called alike) the first counts, and
the name is told as ambiguous. One row may have several names: a gallery keeps the same bytes once, benchmarks do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eyespot.gallery import items_table
from eyespot.gallery.view import View
from eyespot.photos.found import is_utf8
from eyespot.photos.names import NamedFiles, folded
from eyespot.types import RankedImage, Run, UsageError

_pc: Any = pyarrow.compute
WAYS = ("id", "path", "file_name", "file_stem")  # path: relative to its root, as the gallery keeps it
PIECE = 1 << 20  # names of a list that are looked up at once
UNMATCHED = "gallery:"  # before the id of a picture that the judgements do not know


@dataclass(frozen=True)
class RowMatching:
    """Names and the rows they mean: `rows[i]` is the row of `names[i]`, -1 for none; `ids` are the rows' gallery ids.

    `way` says under which column or part of the path names were looked up, `ambiguous` names have more than one row.
    """

    way: str
    names: list[str]
    rows: NDArray[np.int64]  # (names,)
    ids: list[str | None]  # (names,)
    ambiguous: list[str]

    @property
    def unmatched(self) -> list[str]:
        """Names without a row, in their order."""
        return [name for name, row in zip(self.names, self.rows.tolist(), strict=True) if row < 0]

    @cached_property
    def by_id(self) -> dict[str, list[str]]:
        """The names of each gallery id that has any."""
        named: dict[str, list[str]] = {}
        for id, name in zip(self.ids, self.names, strict=True):
            if id is not None:
                named.setdefault(id, []).append(name)
        return named

    @property
    def notes(self) -> list[str]:
        """Sentences for the user: how many were found and by what, and which names mean more than one picture."""
        lacking = self.unmatched
        found = f"{len(self.names) - len(lacking)} of {len(self.names)}"
        rest = f" (not there: {lacking[0]!r}{', …' if len(lacking) > 1 else ''})" if lacking else ""
        notes = [f"judged images found in the gallery by {self.way}: {found}{rest}"]
        if self.ambiguous:
            notes.append(
                f"judged images that several pictures of the gallery are called by: {len(self.ambiguous)}"
                f" (such as {self.ambiguous[0]!r}); the first one counts, choose a column without doubles with --match"
            )
        return notes


def matched(view: View, names: Iterable[str], column: str | None = None) -> RowMatching:
    """The rows that judged images mean, by one column (`--match`) or by the best of `WAYS`.

    Only pictures that a search can find are looked at. Values of a column are compared as text, so the number 17 is
    "17". Raises `UsageError` for a column that the gallery has not.
    """
    distinct = list(dict.fromkeys(names))
    texts = pa.array([name if is_utf8(name) else None for name in distinct], pa.string())
    if column:  # whatever its case
        way = _way_by(view, texts, _stored_name(view, column) or column, _keys_of(view, column))
    else:  # the way under which most names are found; the first of equals
        paths = _paths(view)
        ways = [_way_by(view, texts, "id", _stored(view, "id"))]
        ways += [_way_by(view, texts, one, _shortened(paths, one)) for one in WAYS[1:]]
        lacking = pa.array(np.all([one.rows < 0 for one in ways], axis=0))
        if _pc.any(_pc.match_substring(texts.filter(lacking), "/")).as_py():
            ways.append(_by_end(view, texts.to_pylist(), _shortened(paths, "file_name")))
        way = max(ways, key=lambda one: int((one.rows >= 0).sum()))
    there = way.rows >= 0
    ids = np.full(len(distinct), None, dtype=object)
    ids[there] = _stored(view, "id").texts.take(pa.array(way.rows[there])).to_pylist()
    ambiguous = [distinct[number] for number in np.flatnonzero(way.ambiguous).tolist()]
    return RowMatching(way.name, distinct, way.rows, ids.tolist(), ambiguous)


def renamed(run: Run, matching: RowMatching) -> Run:
    """The run with names of the judgements in place of gallery ids.

    A picture of several names is ranked under each, in their order, with one score. One without a name stays as
    `gallery:ID`: it takes its rank, as any unjudged image.
    """
    by_id = matching.by_id
    named = {id: by_id.get(id, [UNMATCHED + id]) for id in run.images.tolist()}
    rankings = {
        query: [RankedImage(name, score) for image, score in hits for name in named[image]]
        for query, hits in run.items()
    }
    made = run.reranked(rankings, matched_by=matching.way)
    made.facts = {name: facts for id, facts in run.facts.items() for name in named.get(id, [])}
    return made


@dataclass(frozen=True)
class ListedRows:
    """Which rows (rows,) a list names, how many names it has, how many of them have a row, and one that has none."""

    mask: NDArray[np.bool_]
    total: int
    there: int
    lacking: str | None


def listed_rows(view: View, names: Iterable[str], column: str | None = None) -> ListedRows:
    """The rows that a list names, by the last part of a name without its ending: `00042.tar/ab12.jpg` is `ab12`.

    Looked for in a column of the gallery, else in paths or ids, whichever has more of the first names. The list is read
    once and in pieces, so it may name a hundred million images; a name that comes twice counts once in its piece.
    """
    keys = [_keys_of(view, column)] if column else [_paths(view), _stored(view, "id")]
    ways = [_shortened(texts, "file_stem") for texts in keys]
    mask, count, there, lacking = np.zeros(len(view.live), bool), 0, 0, None
    for texts in stems_of(names):
        found = []  # rows whose key is among the texts, and which texts have one
        for keys_now in ways:
            at = _pc.fill_null(_pc.index_in(keys_now.texts, value_set=texts, skip_nulls=True), -1).to_numpy()
            named, hit = (at >= 0) & view.live[keys_now.rows], np.zeros(len(texts), bool)
            hit[at[named]] = True
            found.append((keys_now.rows[named], hit))
        best = max(range(len(ways)), key=lambda number: int(found[number][1].sum()))
        ways, (rows, hit) = [ways[best]], found[best]
        mask[rows] = True
        count, there = count + len(texts), there + int(hit.sum())
        lacking = texts[int(np.argmin(hit))].as_py() if lacking is None and not hit.all() else lacking
    return ListedRows(mask, count, there, lacking)


def stems_of(names: Iterable[str]) -> Iterator[Any]:
    """The last parts of names without their endings, as Arrow arrays of a million distinct ones or fewer."""
    rest = iter(names)
    while piece := list(islice(rest, PIECE)):
        yield _pc.unique(_shortened(_Keys(pa.array(piece, pa.string()), np.arange(len(piece))), "file_stem").texts)


# -- looking up ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """What one way finds: the first row of each name, -1 for none, and which names have several; both (names,)."""

    name: str
    rows: NDArray[np.int64]
    ambiguous: NDArray[np.bool_]


@dataclass(frozen=True)
class _Keys:
    """What rows are called: a text for each place, and the row it is for."""

    texts: Any  # an Arrow column (keys,)
    rows: NDArray[np.int64]  # (keys,), ascending


def _by_end(view: View, given: Sequence[str | None], files: _Keys) -> _Way:
    """By what whole paths end in, the folder that was indexed included: `photos/a.jpg` is a.jpg in photos."""
    names = [name or "" for name in given]
    ends = pa.array({folded(name.rpartition("/")[2]) for name in names}, pa.string())
    alike = _pc.is_in(_pc.utf8_lower(_pc.utf8_normalize(files.texts, "NFC")), value_set=ends).to_numpy()
    near = np.unique(files.rows[alike & view.live[files.rows]]).tolist()
    row_of = {place: row for row, facts in zip(near, view.facts(near), strict=True) for place in facts["paths"]}
    paths = NamedFiles(row_of)
    found = [sorted({row_of[place] for place in paths.called(name, at_end=True)}) for name in names]
    several = np.array([len(rows) > 1 for rows in found], bool)
    return _Way("path_end", np.array([rows[0] if rows else -1 for rows in found], np.int64), several)


def _way_by(view: View, names: Any, way: str, keys: _Keys) -> _Way:
    """What these names (an Arrow array) mean by keys."""
    at = _pc.fill_null(_pc.index_in(keys.texts, value_set=names, skip_nulls=True), -1).to_numpy()
    hit = (at >= 0) & view.live[keys.rows]
    total = max(len(view.live), 1)
    pairs = np.unique(at[hit].astype(np.int64) * total + keys.rows[hit])  # (matches,), each row of a name once
    found, first, count = np.unique(pairs // total, return_index=True, return_counts=True)
    rows, ambiguous = np.full(len(names), -1, np.int64), np.zeros(len(names), bool)
    rows[found], ambiguous[found] = pairs[first] % total, count > 1
    return _Way(way, rows, ambiguous)


# -- what rows are called -----------------------------------------------------------------------------------


def _columns(view: View) -> list[str]:
    """Columns that hold one value a row."""
    fields = [field for table in view.tables for field in pq.read_schema(table)]
    return list(dict.fromkeys(field.name for field in fields if not pa.types.is_list(field.type)))


def _stored_name(view: View, column: str) -> str | None:
    """How the gallery spells a column."""
    return next((name for name in _columns(view) if name.casefold() == column.casefold()), None)


def _keys_of(view: View, column: str) -> _Keys:
    """What rows are called in a column of the gallery, or by one of `WAYS`; `UsageError` for all else."""
    stored = _stored_name(view, column)
    if stored is None and column not in WAYS:
        have = ", ".join(dict.fromkeys([*WAYS, *_columns(view)]))
        raise UsageError(f"the gallery has no column {column!r} to match by; there are: {have}")
    return _shortened(_paths(view), column) if stored is None else _stored(view, stored)


def _stored(view: View, column: str) -> _Keys:
    """One column as text; nulls where a shard does not have it."""
    columns: list[Any] = []
    for shard in view.shards:
        if column in pq.read_schema(shard / "items.parquet").names:
            columns.append(items_table.read_items(shard, [column])[column].cast(pa.string()))
        else:
            columns.append(pa.nulls(items_table.count_items(shard), pa.string()))
    texts = _chunked(columns)
    return _Keys(texts, np.arange(len(texts), dtype=np.int64))


def _paths(view: View) -> _Keys:
    """Every path of every row, relative to its root."""
    lists = [items_table.read_items(shard, ["paths"])["paths"].combine_chunks() for shard in view.shards]
    parents = [
        start + _pc.list_parent_indices(column).to_numpy() for start, column in zip(view.starts, lists, strict=False)
    ]
    return _Keys(_chunked(map(_pc.list_flatten, lists)), np.concatenate([np.zeros(0, np.int64), *parents]))


def _shortened(paths: _Keys, way: str) -> _Keys:
    """Paths as they are, their last parts, or those without the ending."""
    texts = paths.texts
    if way in ("file_name", "file_stem"):
        texts = _pc.replace_substring_regex(texts, "(?s)^.*/", "")
    if way == "file_stem":
        texts = _pc.replace_substring_regex(texts, r"(?s)(.)\.[^.]*$", r"\1")
    return _Keys(texts, paths.rows)


def _chunked(columns: Iterable[Any]) -> Any:
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    return pa.chunked_array(chunks, pa.string())
