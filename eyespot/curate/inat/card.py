"""The data card of a curated collection: the funnel, the map, the licences, the settings, and a datasheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.curate.inat.collection import ATTRIBUTIONS, FUNNEL, LABELS, TAXONOMY, CollectionInputs, CollectionTally
from eyespot.curate.inat.coverage import Cell, drawn_map
from eyespot.curate.inat.settings import CollectionSettings
from eyespot.pipelines import StepResult
from eyespot.pipelines.data_card import (
    CardContent,
    CardFigure,
    CardTable,
    QualityCheck,
    card_of,
    write_card,
    write_croissant,
)


class CollectionFacts(NamedTuple):
    """The parts of the card of a finished collection."""

    steps: Sequence[StepResult]
    tally: CollectionTally
    cells: Sequence[Cell]
    drawn: Mapping[str, Any]
    notes: Sequence[str]
    checks: Sequence[QualityCheck]


def write(out: Path, facts: CollectionFacts, inputs: CollectionInputs, settings: CollectionSettings) -> None:
    """Write `card.md` and `card.html` with their drawings, and `croissant.json`."""
    tally = facts.tally
    rows = [(licence.name, licence.url, f"{count:,}") for licence, count in tally.licences.most_common()]
    licences = CardTable("Licences", ("licence", "text", "pictures"), rows)
    content = CardContent(
        out.absolute().name,
        f"{len(tally.species):,} pictures of {len(set(tally.species)):,} species, each of one observation; drawn so "
        "that there are as many places, days and observers as possible.",
        settings.sampling.seed,
        answers=_answers(facts, settings),
        tables=[licences, _evenness(facts.drawn)],
        drawings=[CardFigure("coverage", "Where it was seen, before and after the draw", drawn_map(facts.cells))],
        notes=facts.notes,
        checks=facts.checks,
        citation=inputs.citation,
        licence="each picture under its own licence; attributions.csv names it with the holder",
    )
    made = card_of(facts.steps, content)
    write_card(made, out)
    tables = {"pictures": LABELS, "attributions": ATTRIBUTIONS, "taxonomy": TAXONOMY, "funnel": FUNNEL}
    write_croissant(made, {name: {"whole": place} for name, place in tables.items()}, out)


def _evenness(drawn: Mapping[str, Any]) -> CardTable:
    """The mean effective number of cells over species that were cut."""
    names = {"spread_before": "all candidates", "spread_random": "as many by lot", "spread_drawn": "this draw"}
    rows = [(title, f"{drawn[name]:.1f}") for name, title in names.items() if drawn.get(name) is not None]
    note = (
        f"Effective number (exponential of the entropy) of equal-area cells, 2 degrees wide at the equator, mean over "
        f"the {drawn['over_cap']:,} species of which not every observation was taken."
    )
    return CardTable("How widely the draw is spread", ("", "cells"), rows, note)


def _answers(facts: CollectionFacts, settings: CollectionSettings) -> dict[str, dict[str, str]]:
    tally = facts.tally
    sampling, positions = settings.sampling, settings.positions
    if settings.pictures.folder is None:
        people = "Nobody checked: the pictures were missing."
    elif "face" not in settings.pictures.checks:
        people = "Faces were not looked for."
    else:
        people = "Pictures in which a detector saw a face are left out unless a person accepted them; it misses some."
    return {
        "composition": {
            "items": "One picture of one observation, with its species, day, place, licence and holder.",
            "labels": "The species that the source's community or the owner of the table gave the observation.",
            "people": people,
            "sensitive": f"{tally.coarse:,} positions are published as cells of {positions.degrees:g} degrees: of "
            f"listed taxa, and those less accurate than {positions.limit:g} m.",
        },
        "collection": {
            "period": f"Observations from {tally.first} to {tally.last}.",
            "sampling": f"At most {sampling.cap} of a species, from up to {sampling.clusters} clusters of groups "
            f"({sampling.km:g} km on one day), new groups and observers first; seed {sampling.seed}.",
        },
        "distribution": {"third": "Holders keep their rights; attributions.csv names holder and licence of each."},
    }
