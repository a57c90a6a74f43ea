"""Why a photo has its score: what each term of the query adds, and what the score is without a term or a word.

The score by look of a query of weighted terms is a sum: each term's weight times how alike it is to the photo, over the
length of their sum. What remains of it without a term or a word is computed anew, with that query's own vector.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eyespot.search.embedding import embed
from eyespot.search.named import NameReader
from eyespot.types import Encoder, Note, Query, Run, Term, UsageError, Vectors

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable

MOST_TERMS, MOST_WORDS = 16, 16  # of a query that are left out one by one


class TermShare(NamedTuple):
    """A term of the query: how alike it is to the photo alone, what it adds to the score, and the score without it.

    `adds` is None where the encoder reads the terms as one input; `without` where nothing is left, and for terms after
    the first 16.
    """

    name: str
    weight: float
    cosine: float
    adds: float | None
    without: float | None


@dataclass(frozen=True)
class Explanation:
    """The score of a photo by its look, its parts, and each word with the score without it; `vector` is the query's."""

    score: float
    terms: list[TermShare]
    words: list[tuple[str, float]]
    vector: Vectors  # (dim,)
    term_vectors: Vectors  # (terms, dim)


@dataclass(frozen=True)
class QueryParts:
    """A query taken apart by an encoder: its own vector, its terms', and those of what is left without a part.

    `length` is that of the terms' sum, None where the encoder reads the terms as one input.
    """

    query: Query
    vector: Vectors  # (dim,)
    term_vectors: Vectors  # (terms, dim)
    length: float | None
    without_term: list[Vectors | None]
    without_word: list[tuple[str, Vectors | None]]

    @classmethod
    def of(cls, query: Query, encoder: Encoder) -> QueryParts:
        """The parts. Raises `UsageError` as `embed` does."""
        vector = embed([query], encoder)[0]
        alone = [Query(query.id, (replace(term, weight=1.0),)) for term in query.terms]
        term_vectors = embed(alone, encoder)  # (terms, dim)
        summed = np.array([term.weight for term in query.terms]) @ term_vectors.astype(np.float64)  # (dim,)
        length = float(np.linalg.norm(summed))
        additive = length > 0 and bool(np.allclose(summed / length, vector, atol=1e-4))
        numbers = range(len(query.terms))
        left_out = numbers[:MOST_TERMS] if len(numbers) > 1 else ()
        others = [tuple(term for place, term in enumerate(query.terms) if place != at) for at in numbers]
        rests = [_embedded(replace(query, terms=others[at]), encoder) if at in left_out else None for at in numbers]
        words = [(word, _embedded(rest, encoder)) for word, rest in _left_out_words(query)]
        return cls(query, vector, term_vectors, length if additive else None, rests, words)

    def explain(self, photo: Vectors) -> Explanation:
        """Why a photo with this unit vector (dim,) has its score."""
        terms = []
        cosines = (self.term_vectors @ photo).tolist()
        for term, cosine, rest in zip(self.query.terms, cosines, self.without_term, strict=True):
            adds = None if self.length is None else term.weight * cosine / self.length
            without = None if rest is None else float(rest @ photo)
            terms.append(TermShare(term.text or "the picture", term.weight, cosine, adds, without))
        words = [(word, float(rest @ photo)) for word, rest in self.without_word if rest is not None]
        return Explanation(float(self.vector @ photo), terms, words, self.vector, self.term_vectors)


def searched_query(
    collection: Searchable, query: Query, run: Run, rewriting: Callable[[Query], Query] | None = None
) -> Query:
    """The query whose look a run compared: with the wordings of a model and the names that the encoder knows best."""
    read = query if rewriting is None else rewriting(query)
    if run.header.get("by") != "both" or collection.words.names is None:
        return read
    return NameReader(collection.words).reworded(read, collection.encoder, collection.contrast.sample)


def notes_of(explanation: Explanation, total: float, others: str = "") -> list[Note]:
    """The same in sentences, under the codes `sum`, `term` and `word`; `others` make the rest of the total score."""
    look = round(explanation.score, 3)
    rest = round(total, 3) - look if others else 0
    whole = f"{total:.3f} = look {look:.3f} + {others} {rest:.3f}" if abs(rest) > 1e-3 else f"the look has {look:.3f}"
    terms = [f"{one.name} adds {one.adds:+.3f} to the look" for one in explanation.terms if one.adds is not None]
    words = [f"the look has {without:.3f} without {word}" for word, without in explanation.words]
    added = [Note("term", text) for text in (terms if len(terms) > 1 else ())]
    return [Note("sum", whole), *added, *(Note("word", text) for text in words)]


def _embedded(query: Query, encoder: Encoder) -> Vectors | None:
    """The vector of a query (dim,); None where its terms cancel out."""
    with suppress(UsageError):
        vector: Vectors = embed([query], encoder)[0]
        return vector
    return None


def _left_out_words(query: Query) -> list[tuple[str, Query]]:
    """Each word of a term of several words, and the query without it."""
    found = []
    for at, term in enumerate(query.terms):
        words = (term.text or "").split()
        for place in range(len(words) if len(words) > 1 else 0):
            rest = Term(term.weight, text=" ".join(words[:place] + words[place + 1 :]))
            terms = (*query.terms[:at], rest, *query.terms[at + 1 :])
            found.append((words[place], replace(query, terms=terms)))
    return found[:MOST_WORDS]
