"""The first stage that also reads: labels, titles and names beside the photos are searched together with their look.

    ByWords.of(collection, k=20)([Query.words("Ardea cocoi")])

The fused score of a photo is its cosine plus `WEIGHT` · spread · share: the share of the query's words that stand
beside it, times the standard deviation of this query's cosines over the gallery, which brings both to one scale (a
convex combination of calibrated scores, as in Bruch, Gai and Ingber, An analysis of fusion functions for hybrid
retrieval, TOIS 2023). A photo that bears one word of several only moves that share of the way up to the photo that
looks most like the query. A photo without such words keeps its cosine, so that a query whose words stand nowhere is
ranked as by look alone; and the first 10 hits are those of the first 100.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.view import View
from eyespot.gallery.word_index import WordIndex
from eyespot.search.embedding import KnownVectors, embed
from eyespot.search.nearest import as_run, naming_damage, tell_recall
from eyespot.search.word_matches import ReadWords, WordMatches, keys_of, plain_words, without_parts, word_matches
from eyespot.types import Encoder, Index, Mask, NearestRows, Note, Query, Run, UsageError, Vectors

if TYPE_CHECKING:
    from eyespot.search.label_learning import Contrast
    from eyespot.search.named import NameReader
    from eyespot.search.searchable import Searchable

WEIGHT = 8.0  # of all words of a query, in standard deviations of its cosines
SAMPLE = 2048  # photos that stand for the gallery
RESCORED = 4096  # photos with words whose cosines are computed one by one
ROUNDING = 1e-6  # of a cosine, by whichever way it is computed
FIRST = 512  # of more, so many by share and by cosine are looked at first


@dataclass(frozen=True)
class ByWords:
    """The k best rows for each query by words alone, or by words and look, among those that `mask` lets through.

    teach: words that photos bear are also answered by what those photos look like. named: other names of what a query
    names, which the gallery was given, count as its own words. rescored, first: of at most `rescored` photos with words
    each is compared with the query, of more the `first` ones by words and by look, and deeper where those do not settle
    it; the run is the same.
    """

    view: View
    encoder: Encoder | KnownVectors
    index: Index
    words: WordIndex
    k: int
    mask: Mask
    by: str = "both"
    teach: bool = True
    named: bool = False
    rescored: int = RESCORED
    first: int = FIRST
    contrast: Callable[[], Contrast] | None = None  # what a collection that answers many queries has at hand

    def __post_init__(self) -> None:
        if self.by not in ("words", "both"):
            raise UsageError(f"no way {self.by!r} to search here; there are words and both, and Nearest goes by look")

    @classmethod
    def of(cls, collection: Searchable, k: int = 100, mask: Mask | None = None, by: str = "both") -> ByWords:
        """The stage for a collection: over all its pictures if `mask` is None."""
        mask = collection.allowed(mask)
        return cls(collection.view, collection.encoder, collection.index, collection.words, k, mask, by)

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run; a run that came before does not count, because this is a first stage."""
        naming = self._names
        read = plain_words if naming is None else naming.read
        every = (word_matches(self.words, self.view, query, read) for query in queries)
        matches = [one.among(self.mask[one.rows]) for one in every]  # photos outside still show what words look like
        made = self._by_words(queries, matches) if self.by == "words" else self._by_both(queries, matches, naming)
        if naming is not None and (found := {query.id: names for query in queries if (names := naming.of(query))}):
            made.header["names"] = {id: {one: names[one].names for one in names} for id, names in found.items()}
            made.notes[:0] = [Note("names", one.sentence, id) for id, names in found.items() for one in names.values()]
        made.notes += self.words.notes
        self.words.made = 0  # it is stated once
        return made

    def holding(self, queries: Sequence[Query]) -> Mask:
        """The rows that a search by words alone finds for any of these queries, (rows,)."""
        found: Mask = np.zeros(len(self.mask), bool)
        for query in queries:
            matches = word_matches(self.words, self.view, query, self._names.read if self._names else plain_words)
            found[matches.rows[matches.shares > 0]] = True
        return found & self.mask

    @cached_property
    def _names(self) -> NameReader | None:
        if not self.named or self.words.names is None:
            return None
        from eyespot.search.named import NameReader

        return NameReader(self.words)

    def _by_words(self, queries: Sequence[Query], matches: Sequence[WordMatches]) -> Run:
        """The first rows by words alone."""
        nearest = []
        for found in matches:
            wanted = found.shares > 0
            rows, shares = found.rows[wanted], found.shares[wanted]
            order = np.argsort(-shares, kind="stable")[: self.k]
            nearest.append(NearestRows(rows[order].astype(np.int64), shares[order].astype(np.float32)))
        made = as_run(queries, nearest, self.view)
        made.header |= {"by": "words", "exact": True}
        return made

    def _by_both(self, queries: Sequence[Query], matches: Sequence[WordMatches], naming: NameReader | None) -> Run:
        matches = [without_parts(found) for found in matches]
        read = queries
        if naming is not None and not isinstance(self.encoder, KnownVectors):
            read = [naming.reworded(query, self.encoder, self._contrast.sample) for query in queries]
        vectors = embed(read, self.encoder)
        teachings = {}
        for at, (query, found) in enumerate(zip(queries, matches, strict=True)):
            if self.teach and len(found.whole):
                from eyespot.search.label_learning import EVEN, FEW, MOST, learned

                few = np.linspace(0, len(found.whole) - 1, min(MOST, len(found.whole))).astype(np.int64)
                labelled = self.view.vectors(found.whole[few].tolist())
                usual = self._usual(query, found) if len(found.whole) <= FEW else EVEN
                vectors[at], teaching = learned(vectors[at], labelled, self._contrast, usual)
                if teaching.weight:
                    teachings[query.id] = replace(teaching, photos=len(found.whole))
        # Photos with words to avoid go down, and as many others move up
        avoided = max((int((found.shares < 0).sum()) for found in matches), default=0)
        with naming_damage(self.view):
            nearest = self.index.search(vectors, self.k + min(avoided, RESCORED), self.mask)
        fused = [self._fused(*each) for each in zip(vectors, nearest.rows, nearest.scores, matches, strict=True)]
        made = as_run(queries, fused, self.view)
        tell_recall(made, nearest)
        worded = [query.id for query, found in zip(queries, matches, strict=True) if len(found.rows)]
        answered = [query.id for query, found in zip(queries, matches, strict=True) if len(found.whole)]
        made.header |= {"by": "both", "worded": worded} | ({"answered": answered} if answered else {})
        changed = [pair for pair in zip(queries, read, strict=True) if pair[0] != pair[1]]
        if changed:
            from eyespot.search.named import rewording_notes

            texts = {query.id: [term.text for term in other.terms if term.text] for query, other in changed}
            made.header["wordings"] = texts
            made.notes += [note for pair in changed for note in rewording_notes(*pair)]
        if teachings:
            made.header["taught"] = {id: asdict(teaching) for id, teaching in teachings.items()}
            made.notes += [Note("taught", teaching.sentence, id) for id, teaching in teachings.items()]
        return made

    @cached_property
    def _contrast(self) -> Contrast:
        return background(self.view) if self.contrast is None else self.contrast()

    def _usual(self, query: Query, found: WordMatches) -> float:
        """How well photos of one label place each other, in the columns of the first photo that bear the words."""
        from eyespot.search.label_learning import EVEN

        read = self._names.read if self._names else plain_words
        words = [word for term in query.terms if term.text is not None for word in read(term.text)]
        sources = self.words.sources(words, keys_of(self.view, found.whole[:1]).tolist())
        labels = (name for names in sources.values() for name in names if name.startswith("label "))
        return max((self._contrast.agreed(name.removeprefix("label ")) for name in labels), default=EVEN)

    def _fused(self, vector: Vectors, near: Any, scores: Any, matches: WordMatches) -> NearestRows:
        """The k best rows by words and look, out of the nearest and those with words."""
        if not len(matches.rows):
            return NearestRows(near[: self.k], scores[: self.k])
        unit = WEIGHT * float((self._contrast.sample @ vector).std())
        avoided = matches.rows[matches.shares < 0]
        if len(avoided) > RESCORED:  # too many to have been asked for on top of k
            others = self.mask.copy()
            others[avoided] = False
            found = self.index.search(vector[None], self.k, others)
            near, scores = found.rows[0], found.scores[0]
        top = float(scores.max(initial=-1.0))
        more = self._with_words(vector, matches, unit, top)
        more = more[~np.isin(more, near)]  # `setdiff1d` would load numpy.ma
        rows = np.concatenate([near, more])
        total = np.concatenate([scores, self._cosines(more, vector)])
        at = np.minimum(np.searchsorted(matches.rows, rows), len(matches.rows) - 1)
        total = np.where(matches.rows[at] == rows, _lifted(total, matches, at, unit, top), total)
        order = np.lexsort((rows, -total))[: self.k]
        return NearestRows(rows[order].astype(np.int64), total[order].astype(np.float32))

    def _cosines(self, rows: NDArray[np.int64], vector: Vectors) -> NDArray[np.float32]:
        """The cosines of some rows, (rows,), each the same whichever rows stand beside it."""
        vectors = self.view.vectors(rows.tolist()).astype(np.float64)  # (rows, dim)
        cosines: NDArray[np.float32] = np.einsum("nd,d->n", vectors, vector.astype(np.float64)).astype(np.float32)
        return cosines

    def _with_words(self, vector: Vectors, matches: WordMatches, unit: float, top: float) -> NDArray[np.int64]:
        """The rows with words; of very many, enough for the k best by both to be among them.

        Deeper and deeper into the rows by share and by cosine, until no row beyond both depths can be among the k best
        (the threshold algorithm of Fagin, Lotem and Naor 2003).
        """
        if len(matches.rows) <= max(self.rescored, self.k):
            return matches.rows
        depth = max(self.first, 2 * self.k)
        worded = np.zeros(len(self.mask), bool)
        worded[matches.rows] = True
        while depth < len(matches.rows):
            near = self.index.search(vector[None], depth, worded)
            order = np.argpartition(-matches.shares, depth)
            deep = np.searchsorted(matches.rows, near.rows[0])
            first = order[:depth][~np.isin(order[:depth], deep)]
            cosines = np.concatenate([near.scores[0], self._cosines(matches.rows[first], vector)])
            places = np.concatenate([deep, first])
            total = _lifted(cosines, matches, places, unit, top)
            beyond = near.scores[0][-1] + unit * matches.shares[order[depth]] + ROUNDING
            if np.partition(total, -self.k)[-self.k] > beyond:
                rows: NDArray[np.int64] = matches.rows[places]
                return rows
            depth *= 4
        return matches.rows


def _lifted(
    cosines: NDArray[np.float32], matches: WordMatches, at: NDArray[np.int64], unit: float, top: float
) -> NDArray[np.float64]:
    """The scores of matches by words and look, (n,): one word of several lifts none above the best cosine, `top`."""
    shares = matches.shares[at]
    room = np.where(matches.single[at] & (shares > 0), np.maximum(top - cosines, 0.0), unit)
    lifted: NDArray[np.float64] = cosines + shares * np.minimum(unit, room)
    return lifted


def background(view: View) -> Contrast:
    """A sample of the gallery, the same for every filter: at most `SAMPLE` photos."""
    from eyespot.search.label_learning import Contrast

    live = np.flatnonzero(view.live)
    rows = live[np.linspace(0, len(live) - 1, min(SAMPLE, len(live))).astype(np.int64)].tolist()
    return Contrast(view.vectors(rows), lambda: view.facts(rows))


# -- reasons ---------------------------------------------------------------------------------------------------


def reasons(collection: Searchable, query: Query, header: Mapping[str, Any], rows: Sequence[int]) -> list[list[Note]]:
    """For each of these rows of a run with this header, what put it there; nothing for a run by look alone.

    Codes: `label COLUMN`, `title`, `file name`, … for what holds words of the query, `look` where the cosine counts,
    `taught` where that is also the cosine to photos that bear the words, `moved` where also to photos that were judged.
    """
    by = header.get("by", "look")
    moves = header.get("moved", {})
    counts = moves.get("yes") or moves.get("no")
    judged = [Note("moved", "it looks like photos that were judged for this query")] if counts else []
    if by == "look":
        return [judged for _ in rows]
    texts = [term.text for term in query.terms if term.text is not None and term.weight > 0]
    read: ReadWords = plain_words
    if "names" in header:
        from eyespot.search.named import NameReader

        read = NameReader(collection.words).read
    words = list(dict.fromkeys(word for text in texts for word in read(text)))
    matches = word_matches(collection.words, collection.view, query, read)
    counted = np.isin(rows, (matches if by == "words" else without_parts(matches)).rows).tolist()
    keys = keys_of(collection.view, np.array(rows, np.int64)).tolist()
    sources = collection.words.sources(words, [key for key, counts in zip(keys, counted, strict=True) if counts])
    look = [] if by == "words" else [Note("look", "it looks like the query")]
    if query.id in header.get("taught", {}):
        look += [Note("taught", "it looks like photos with these words")]
    what = "words of the query, or other names of what they name," if "names" in header else "words of the query"
    return [
        [*(Note(name, f"{what} stand in its {name}") for name in dict.fromkeys(sources.get(key, ()))), *look, *judged]
        for key in keys
    ]


def as_fields(notes: Sequence[Note]) -> list[dict[str, str]]:
    """Notes as JSON has them."""
    return [{"code": note.code, "sentence": str(note)} for note in notes]
