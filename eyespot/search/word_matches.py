"""What the words beside the photos say to a query: which rows hold its words, and how much of it each holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.postings import ROWS
from eyespot.gallery.view import View
from eyespot.gallery.word_index import MatchingRows, QueryWord, WordIndex, words_of
from eyespot.types import Mask, Query

ReadWords = Callable[[str], Sequence[QueryWord]]
BM25_PART = 0.1  # of a match; the rest is the share of the query's words

# Words that name nothing in a picture: a label that holds one of them says nothing of the query.
# In English, then in German, Spanish, French, Italian, Portuguese and Dutch
STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text("utf-8").split())


class WordMatches(NamedTuple):
    """Rows of a view that hold words of a query, (n,), and how much of it, (n,): 1 is all, below 0 a word to avoid.

    `single` are those that hold one word where several are wanted, (n,); `whole` the rows that hold every word of a
    term that is wanted, (m,).
    """

    rows: NDArray[np.int64]
    shares: NDArray[np.float64]
    single: Mask
    whole: NDArray[np.int64]

    def among(self, counts: Mask) -> WordMatches:
        """Those of the rows that count, (n,)."""
        return WordMatches(self.rows[counts], self.shares[counts], self.single[counts], self.whole)


def label_words(text: str) -> list[str]:
    """The words of a text by which labels are found: without function words, single letters and single digits."""
    return [word for word in words_of(text) if word not in STOP_WORDS and (len(word) > 1 or not word.isascii())]


def plain_words(text: str) -> list[QueryWord]:
    """The words of a text by which labels are found, with nothing in their places."""
    return [QueryWord(word) for word in label_words(text)]


def word_matches(index: WordIndex, view: View, query: Query, read: ReadWords = plain_words) -> WordMatches:
    """The live rows of a view that hold words of the query's texts, which `read` finds in a text.

    Of several texts the one that fits best counts, whatever its weight; texts that are to be avoided count against it.
    """
    texts = [(read(term.text), term.weight > 0) for term in query.terms if term.text is not None]
    texts = [(words, wanted) for words, wanted in texts if words]
    live = view.live
    digest = blake2b(repr((texts, index.version)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    # Ranking, reasons and the next page ask for the same; the array is stored too, lest another one get its number
    (found,) = index.recent.get([(digest, id(live))], lambda _: [(*_word_matches(index, view, texts), live)])
    return WordMatches(*found[:-1])


def _word_matches(index: WordIndex, view: View, texts: Sequence[tuple[Sequence[QueryWord], bool]]) -> WordMatches:
    shares: dict[bool, NDArray[np.float64]] = {}
    whole, several = np.zeros((2, len(view.live)), bool)  # (rows,)
    for words, wanted in texts:
        matching = index.matching(words)
        rows, there = _rows_of(matching, view)
        best = shares.setdefault(wanted, np.zeros(len(view.live)))
        best[rows] = np.maximum(best[rows], _shares(index, matching)[there])
        several[rows] |= (matching.holds.sum(axis=1) >= min(len(words), 2))[there]
        if wanted and matching.holds.any(axis=0).all():
            every_word: Mask = np.all(matching.holds, axis=1)  # (n,)
            whole[rows[every_word[there]]] = True
    if not shares:
        return WordMatches(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64))
    total = shares.get(True, 0.0) - shares.get(False, np.zeros(len(view.live)))
    rows = np.flatnonzero((total != 0) & view.live)
    return WordMatches(rows, total[rows], ~several[rows], np.flatnonzero(whole & view.live))


def without_parts(matches: WordMatches) -> WordMatches:
    """The matches that count beside looks.

    Where some photo bears all words, they are a name, and a photo that bears a part of them has another one.
    """
    if not len(matches.whole):
        return matches
    return matches.among(np.isin(matches.rows, matches.whole) | (matches.shares < 0))


def keys_of(view: View, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The keys of rows in the table of words, (n,)."""
    shards = np.searchsorted(view.starts, rows, side="right") - 1
    numbers = np.array([disk.number_of(shard) for shard in view.shards], np.int64)
    keys: NDArray[np.int64] = numbers[shards] * ROWS + rows - np.asarray(view.starts)[shards]
    return keys


def _rows_of(matching: MatchingRows, view: View) -> tuple[NDArray[np.int64], Mask]:
    """Rows of the view, and which of the matching rows they are: shards without vectors in its space are left out."""
    numbers = np.array([disk.number_of(shard) for shard in view.shards], np.int64)  # ascending
    shard, row = matching.keys // ROWS, matching.keys % ROWS
    place = np.minimum(np.searchsorted(numbers, shard), max(len(numbers) - 1, 0))
    if not len(numbers):
        return np.zeros(0, np.int64), np.zeros(len(shard), bool)
    starts = np.asarray(view.starts, np.int64)
    there: Mask = (numbers[place] == shard) & (row < starts[place + 1] - starts[place])
    return (starts[place] + row)[there], there


def _shares(index: WordIndex, matching: MatchingRows) -> NDArray[np.float64]:
    """How much of a text each row holds, (n,): of the words by how rare they are (BM25's own weights), in (0, 1].

    A tenth of it is BM25 itself, so that among rows with the same words those go first that say little else.
    """
    counts = matching.holds.sum(axis=0)  # (words,)
    rarity = np.log1p((index.rows - counts + 0.5) / (counts + 0.5))  # (words,)
    part = np.zeros(len(matching.keys))
    for word in np.flatnonzero(counts).tolist():  # most words of most queries stand nowhere
        part += matching.holds[:, word] * rarity[word]
    part /= rarity.sum()
    top = matching.bm25.max(initial=0.0)
    bm25 = np.clip(matching.bm25 / top, 0, 1) if top > 0 else np.ones(len(part))
    return part * (1 - BM25_PART + BM25_PART * bm25)
