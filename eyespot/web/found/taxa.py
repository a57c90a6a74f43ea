"""Columns of labels as numbers, and those that nest: order, family, genus, species become one tree.

Columns nest where each value of the lower one lies in one value of the upper one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.filters import fold_case

# from the widest down; names of one row mean the same rank
RANKS = (
    ("kingdom",),
    ("phylum", "division"),
    ("class", "supercategory", "iconic_group"),
    ("order",),
    ("family",),
    ("genus",),
    ("species", "scientific_name", "scientificname"),
)
Codes = NDArray[np.signedinteger[Any]]


class Coded:
    """A column of labels: its values, and for each row the number of its value, (rows,); -1 where nothing is known.

    Spellings that differ in upper and lower case are one value, as a filter has it.
    """

    def __init__(self, values: list[str], codes: Codes | Callable[[], Codes]) -> None:
        self.values, self._codes = values, codes
        self._making = Lock()

    @property
    def codes(self) -> Codes:
        """The numbers, made when they are first needed."""
        with self._making:
            if callable(self._codes):
                self._codes = self._codes()
            return self._codes

    def number(self, value: str) -> int:
        """The number of a value, however it is spelled; -1 if no row has it."""
        wanted = fold_case(value)
        return next((at for at, known in enumerate(self.values) if fold_case(known) == wanted), -1)


class TaxonNode(NamedTuple):
    """A value of a column of the tree, by its number."""

    column: str
    number: int


@dataclass(frozen=True)
class Taxa:
    """The columns that nest, the widest first, and for each taxon the one above it; none where fewer than two nest."""

    columns: Sequence[str] = ()
    coded: Mapping[str, Coded] = field(default_factory=dict)
    above: Mapping[TaxonNode, TaxonNode] = field(default_factory=dict)

    @property
    def units(self) -> dict[str, str]:
        """For each column of the tree the name that all of them share."""
        return dict.fromkeys(self.columns, self.columns[0]) if self.columns else {}

    @cached_property
    def below(self) -> dict[TaxonNode, list[TaxonNode]]:
        """The taxa right under each."""
        made: dict[TaxonNode, list[TaxonNode]] = {}
        for taxon, parent in self.above.items():
            made.setdefault(parent, []).append(taxon)
        return made

    def taxon(self, label: str) -> TaxonNode | None:
        """What COLUMN=VALUE names; None if it is not in the tree."""
        column, _, value = label.partition("=")
        number = self.coded[column].number(value) if column in self.columns else -1
        return None if number < 0 else TaxonNode(column, number)

    def ancestors(self, taxon: TaxonNode) -> list[TaxonNode]:
        """All that lie above a taxon, the nearest first."""
        found = []
        while (parent := self.above.get(taxon)) is not None:
            found.append(parent)
            taxon = parent
        return found

    def narrowest(self, labels: Sequence[str]) -> tuple[str, ...]:
        """The labels without those that another one of them lies in: a species narrows its family down."""
        named = {label: self.taxon(label) for label in labels}
        above = {one for taxon in named.values() if taxon for one in self.ancestors(taxon)}
        return tuple(label for label, taxon in named.items() if taxon is None or taxon not in above)


Pairs = Callable[[str, str], NDArray[np.int64]]


def taxa_of(coded: Mapping[str, Coded], pairs: Pairs | None = None) -> Taxa:
    """The columns among these that nest by their names and values.

    `pairs` gives the numbers of values of two columns that come together in a row, each pair once, (2, pairs); None:
    they are looked up in the columns' codes.
    """
    found = cache(pairs or (lambda lower, upper: pairs_of(coded[lower].codes, coded[upper].codes)))

    # The columns with the names of ranks, the widest first, each of which lies in those before it: it has values, and
    # each has at most one value of the wider column
    ranks = {name: rank for rank, names in enumerate(RANKS) for name in names}
    plain = {column: column.lower().removeprefix("taxon_").removeprefix("taxon") for column in coded}
    known = {column: ranks[name] for column, name in plain.items() if name in ranks}
    chain: list[str] = []
    for column in sorted(known, key=lambda one: known[one]):
        same_rank = chain and known[column] == known[chain[-1]]
        if not same_rank and all(
            (both := found(column, upper)).shape[1] == len(np.unique(both[0])) > 0 for upper in chain
        ):
            chain.append(column)
    if len(chain) < 2:
        return Taxa()
    above: dict[TaxonNode, TaxonNode] = {}
    for at, column in enumerate(chain[1:], 1):
        for upper in chain[at - 1 :: -1]:  # the nearest rank that is known
            for number, parent in found(column, upper).T.tolist():
                above.setdefault(TaxonNode(column, number), TaxonNode(upper, parent))
    return Taxa(chain, {column: coded[column] for column in chain}, above)


def pairs_of(lower: Codes, upper: Codes) -> NDArray[np.int64]:
    """The numbers that come together in a row of two columns, each pair once, (2, pairs); unknown ones left out."""
    both = (lower >= 0) & (upper >= 0)
    width = int(upper.max(initial=0)) + 1
    return np.stack(np.divmod(np.unique(lower[both].astype(np.int64) * width + upper[both]), width))
