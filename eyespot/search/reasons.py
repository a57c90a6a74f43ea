"""Why a hit is there: by its look, by a label, a title, a name; as a code and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot.search.named import NameReader
from eyespot.search.word_matches import keys_of, plain_words, without_parts, word_matches
from eyespot.types import Note, Query

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable


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
    read = NameReader(collection.words).read if "names" in header else plain_words
    words = list(dict.fromkeys(word for text in texts for word in read(text)))
    matches = word_matches(collection.words, collection.view, query, read)
    counted = np.isin(rows, (matches if by == "words" else without_parts(matches)).rows).tolist()
    keys = keys_of(collection.view, np.array(rows, np.int64)).tolist()
    sources = collection.words.sources(words, [key for key, counts in zip(keys, counted, strict=True) if counts])
    look = [] if by == "words" else [Note("look", "it looks like the query")]
    if query.id in header.get("taught", {}):
        look += [Note("taught", "it looks like photos that bear these words")]
    what = "words of the query, or other names of what they name," if "names" in header else "words of the query"
    look += judged
    return [[*(_of_source(name, what) for name in dict.fromkeys(sources.get(key, ()))), *look] for key in keys]


def as_fields(notes: Sequence[Note]) -> list[dict[str, str]]:
    """Notes as JSON has them."""
    return [{"code": note.code, "sentence": str(note)} for note in notes]


def _of_source(name: str, what: str) -> Note:
    return Note(name, f"{what} stand in its {name}")
