"""Queries to vectors: the weighted terms of each query, added up and brought back to unit length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyespot.encoders import upright_picture
from eyespot.search.query_language import refuse_halves
from eyespot.types import Composer, Encoder, Note, Pixels, Query, TextLimited, UsageError, Vectors, quantity


@dataclass(frozen=True)
class KnownVectors:
    """Unit vectors (dim,) of queries by their ids, where no encoder is needed: of pictures that a gallery has, say."""

    by_id: Mapping[str, Vectors]
    dim: int


def embed(queries: Sequence[Query], encoder: Encoder | KnownVectors) -> Vectors:
    """One unit vector for each query, (queries, dim).

    A term's vector counts with its weight, as in rclip's arithmetic; a picture and words of equal weight are one input
    where the encoder reads them so (`eyespot.types.Composer`). Raises `UsageError` for a picture that cannot be read,
    for words that are not Unicode and for terms that cancel out.
    """
    if isinstance(encoder, KnownVectors):
        return np.array([encoder.by_id[query.id] for query in queries], np.float32).reshape(len(queries), encoder.dim)
    refuse_halves([term.text for query in queries for term in query.terms if term.text is not None])
    together = [at for at, query in enumerate(queries) if isinstance(encoder, Composer) and _is_composed(query)]
    apart = sorted(set(range(len(queries))) - set(together))
    made: Vectors = np.zeros((len(queries), encoder.space.dim), np.float32)
    if together:
        made[together] = _read_together([queries[at] for at in together], encoder)
    if apart:
        made[apart] = _added_up([queries[at] for at in apart], encoder)
    lengths = np.linalg.norm(made, axis=1)
    for query, length in zip(queries, lengths, strict=True):
        if not np.isfinite(length):
            raise UsageError(f"a picture of query {query.id!r} gets no vector from this encoder; take another one")
        if length < 1e-6:
            raise UsageError(f"the terms of query {query.id!r} cancel out; change a weight or a word")
    unit: Vectors = made / lengths[:, None]
    return unit


def cut_notes(queries: Sequence[Query], encoder: Encoder) -> list[Note]:
    """What is said where the encoder does not read some queries to their end: how many, and the first of them."""
    if not isinstance(encoder, TextLimited):
        return []
    texts = ([term.text for term in query.terms if term.text is not None] for query in queries)
    cut = [found[0] for one in texts if (found := [said for text in one if (said := encoder.cut(text))])]
    return [Note("cut", f"{len(cut)} of {quantity(len(queries), 'query')} are cut: {cut[0]}")] if cut else []


def _is_composed(query: Query) -> bool:
    """Whether it is a picture and words, each wanted as much as the other."""
    weights = {term.weight for term in query.terms}
    kinds = sorted(term.text is None for term in query.terms)
    return kinds == [False, True] and len(weights) == 1 and min(weights) > 0


def _read_together(queries: Sequence[Query], encoder: Any) -> Vectors:
    terms = [term for query in queries for term in query.terms]
    pictures = [term.image for term in terms if term.image is not None]
    texts = [term.text for term in terms if term.text is not None]
    rows = []
    for at in range(0, len(queries), encoder.batch):
        some = slice(at, at + encoder.batch)
        pixels = np.stack([_pixels(picture, encoder) for picture in pictures[some]])
        rows.append(encoder.encode_composed(pixels, texts[some]))
    found: Vectors = np.concatenate(rows)
    return found


def _added_up(queries: Sequence[Query], encoder: Encoder) -> Vectors:
    texts = [term.text for query in queries for term in query.terms if term.text is not None]
    images = (term.image for query in queries for term in query.terms)
    pictures = list(dict.fromkeys(image for image in images if image is not None))
    known: dict[str | Path | None, Vectors] = {}
    if texts:
        known.update(zip(texts, encoder.encode_texts(texts), strict=True))
    if pictures:
        known.update((picture, embed_picture(picture, encoder)) for picture in pictures)
    sums = []
    for query in queries:
        # The terms' weights, the heaviest brought below 1, for some do not fit the 32 bits of a vector. By a
        # power of two, so that the unit vector of the sum stays the same to the last bit.
        _, exponent = math.frexp(max(abs(term.weight) for term in query.terms))
        weights = [math.ldexp(term.weight, -exponent) for term in query.terms]
        sums.append(
            sum(weight * known[term.text or term.image] for weight, term in zip(weights, query.terms, strict=True))
        )
    return np.array(sums, np.float32).reshape(len(queries), encoder.space.dim)


def embed_picture(picture: Path, encoder: Encoder) -> Vectors:
    """The unit vector of one picture, (dim,); `UsageError` if it cannot be read."""
    vector: Vectors = encoder.encode_pixels(_pixels(picture, encoder)[None])[0]
    return vector


def _pixels(picture: Path, encoder: Encoder) -> Pixels:
    return encoder.read(upright_picture(picture, encoder.min_side))
