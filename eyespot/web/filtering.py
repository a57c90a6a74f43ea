"""The filters of the search page: what can be ticked with counts within the result, what is on, and what to drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from eyespot.web._judging import judge_key_of
from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._search_params import FILTERS, Given, SearchParams
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role
from eyespot.web._state import State
from eyespot.web.found.facets import Facets, facets_of
from eyespot.web.found.results import Countable, Counts, label_counts, photos_left
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import TaxonNode

router = APIRouter(include_in_schema=False, dependencies=[Depends(needs(Role.READER))])
FIRST, LISTED = 8, 40  # values of a column that are seen at once, and that the page holds
WHOLE_TREE = 60  # taxa; of a larger tree a page holds what is open
FOUND = 60  # values that a search in a column lists


class Choice(NamedTuple):
    """A value to tick, with how many photos it leaves; `parent` says where a found taxon lies.

    `more`: values lie under it that the page does not hold.
    """

    column: str
    value: str
    photos: int
    ticked: bool
    children: Sequence[Choice] = ()
    more: bool = False
    parent: str = ""

    @property
    def label(self) -> str:
        """The value as an address has it."""
        return f"{self.column}={self.value}"

    @property
    def is_open(self) -> bool:
        """Whether something under it is ticked."""
        return any(child.ticked or child.is_open for child in self.children)


class FilterUnit(NamedTuple):
    """A column with its values, or columns that nest as a tree; `others` are values that the page does not hold."""

    columns: Sequence[str]
    choices: Sequence[Choice]
    others: int


class _Values:
    """The labels of a gallery with their counts in one result."""

    def __init__(self, snapshot: Snapshot, params: SearchParams, countable: Countable) -> None:
        self.facets: Facets = facets_of(snapshot)
        self.counts: dict[str, Counts] = label_counts(snapshot, params, countable)
        numbers = [(column, value) for column, _, value in (label.partition("=") for label in params.label)]
        self.ticked = {
            TaxonNode(column, self.facets.coded[column].number(value))
            for column, value in numbers
            if column in self.facets.coded
        }

    def choice(self, taxon: TaxonNode, children: Sequence[Choice] = (), more: bool = False, parent: str = "") -> Choice:
        column, number = taxon
        value, count = self.facets.coded[column].values[number], int(self.counts[column][number])
        return Choice(column, value, count, taxon in self.ticked, children, more, parent)

    def sorted(self, taxa: Sequence[TaxonNode]) -> list[TaxonNode]:
        """Those that leave photos or are ticked, the commonest first."""
        shown = [one for one in taxa if self.counts[one.column][one.number] or one in self.ticked]
        return sorted(shown, key=lambda one: (-self.counts[one.column][one.number], self.value(one)))

    def value(self, taxon: TaxonNode) -> str:
        return self.facets.coded[taxon.column].values[taxon.number]

    def of(self, column: str) -> list[TaxonNode]:
        return self.sorted([TaxonNode(column, number) for number in range(len(self.facets.coded[column].values))])

    # -- a column -------------------------------------------------------------------------------------------

    def flat(self, column: str) -> FilterUnit:
        """A column: the commonest values, those that are ticked first."""
        known = self.of(column)
        first = sorted(known, key=lambda one: one not in self.ticked)
        return FilterUnit((column,), [self.choice(one) for one in first[:LISTED]], len(known) - len(first[:LISTED]))

    # -- the tree -------------------------------------------------------------------------------------------

    def tree(self) -> FilterUnit:
        """The columns that nest: what is ticked is open, and of a small tree all is there."""
        taxa = self.facets.taxa
        tops = self.sorted([one for column in taxa.columns for one in self.of(column) if one not in taxa.above])
        count = sum(len(self.of(column)) for column in taxa.columns)
        open_taxa = self.ticked | {above for one in self.ticked for above in taxa.ancestors(one)}
        if len(tops) == 1:
            open_taxa.add(tops[0])
        choices = [self._node(one, open_taxa, count <= WHOLE_TREE) for one in tops[:LISTED]]
        return FilterUnit(taxa.columns, choices, len(tops[LISTED:]))

    def _node(self, taxon: TaxonNode, open_taxa: set[TaxonNode], whole: bool) -> Choice:
        under = self.sorted(self.facets.taxa.below.get(taxon, []))
        if not (whole or taxon in open_taxa):
            return self.choice(taxon, more=bool(under))
        return self.choice(taxon, [self._node(one, open_taxa, whole) for one in under])

    def under(self, taxon: TaxonNode) -> list[Choice]:
        """What lies right under a taxon."""
        return [self._node(one, set(), False) for one in self.sorted(self.facets.taxa.below.get(taxon, []))]

    def containing(self, columns: Sequence[str], text: str) -> list[Choice]:
        """The values that hold a text, whose first words begin with it first."""
        taxa, found = self.facets.taxa, []
        wanted = text.casefold()
        for one in (one for column in columns for one in self.of(column)):
            if wanted in self.value(one).casefold():
                above = taxa.above.get(one)
                found.append((one, self.value(above) if above else ""))
        found.sort(key=lambda one: not self.value(one[0]).casefold().startswith(wanted))
        return [self.choice(one, parent=parent) for one, parent in found[:FOUND]]


def filter_units(snapshot: Snapshot, params: SearchParams, countable: Countable) -> list[FilterUnit]:
    """All columns of labels with their values and counts; those that nest come first, as one."""
    values = _Values(snapshot, params, countable)
    taxa = values.facets.taxa
    flat = [values.flat(column) for column in values.facets.coded if column not in taxa.columns]
    units = [*([values.tree()] if taxa.columns else []), *flat]
    return [unit for unit in units if unit.choices]


def active_filters(params: SearchParams) -> list[dict[str, Any]]:
    """The filters that are on, in the order of the page: each in words (`text`), and the search `without` it."""
    texts = {"after": "from {}", "before": "before {}", "undated": "without a date", "near": "within {}", "where": "{}"}
    texts["region"] = "in the region drawn on the map"
    found = [
        {"text": texts[name].format(value), "without": params.model_copy(update={name: None})}
        for name in FILTERS
        if (value := getattr(params, name)) is not None
    ]
    for label in params.label:
        column, _, value = label.partition("=")
        others = tuple(one for one in params.label if one != label)
        text = f"{column.replace('_', ' ')}: {value}"
        found.append({"text": text, "without": params.model_copy(update={"label": others})})
    return found


def to_drop(snapshot: Snapshot, params: SearchParams, countable: Countable) -> list[dict[str, Any]]:
    """Where nothing is left: each filter without which `photos` are, those that leave the most first."""
    filters = active_filters(params)
    found = [one | {"photos": photos_left(snapshot, one["without"], countable)[1]} for one in filters]
    return sorted((one for one in found if one["photos"]), key=lambda one: -one["photos"])


class ValueRequest(BaseModel):
    """Which values of a column: those that hold a text, or what lies right under a taxon."""

    unit: str = Field(max_length=300)
    contains: str = Field("", max_length=100)
    under: str = Field("", max_length=1000)


@router.get("/values")
def values(request: Request, state: State, given: Given, wanted: Annotated[ValueRequest, Query()]) -> Response:
    """The values of a column that hold a text, or what lies under a taxon: to be laid into the filters."""
    snapshot = state.snapshots.current(given.encoder)
    taxa = facets_of(snapshot).taxa
    columns = taxa.columns if wanted.unit in taxa.columns else [wanted.unit]
    if not all(column in facets_of(snapshot).coded for column in columns):
        raise Problem(404, "there is no such column of labels")
    known = _Values(snapshot, given, state.searches.countable(given, judge_key_of(person_of(request))))
    if wanted.under:
        taxon = taxa.taxon(wanted.under)
        found = known.under(taxon) if taxon else []
    else:
        found = known.containing(columns, wanted.contains.strip())
    return page(request, "values.html", choices=found)
