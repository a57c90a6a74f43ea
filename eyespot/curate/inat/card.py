"""The data card of a curated collection: checks, funnel, coverage, licences, settings, and a datasheet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.curate.inat.collection import (
    ATTRIBUTIONS,
    FUNNEL,
    LABELS,
    TAXONOMY,
    CollectionInputs,
    CollectionTally,
    unmatched,
)
from eyespot.curate.inat.settings import CollectionSettings
from eyespot.curate.inat.tables import Tables
from eyespot.pipelines import StepResult
from eyespot.pipelines.data_card import (
    CardContent,
    CardTable,
    QualityCheck,
    card_of,
    level_of,
    write_card,
    write_croissant,
)
from eyespot.storage.tables import write_csv

COVERAGE = "coverage.csv"
DEGREES = 4.0  # of longitude that a cell is wide; at the equator 445 km, much more than coarsened positions hide


@dataclass(frozen=True)
class Cell:
    """A cell by its numbers east of -180° and north of the South Pole, with its observations before and after."""

    east: int
    north: int
    before: int
    after: int

    def sides(self) -> tuple[float, float, float, float]:
        """West, south, east, north in degrees."""
        west = self.east * DEGREES - 180
        sines = (north * math.radians(DEGREES) - 1 for north in (self.north, self.north + 1))
        south, north = (math.degrees(math.asin(min(1.0, max(-1.0, sine)))) for sine in sines)
        return west, south, west + DEGREES, north


def covered(tables: Tables, before: str, after: str) -> list[Cell]:
    """The cells with observations; both tables have columns latitude and longitude."""
    wide, high = round(360 / DEGREES), math.radians(DEGREES)
    cell = (
        f"SELECT CAST(floor((longitude + 180) / {DEGREES}) AS INTEGER) % {wide} AS east, "
        f"CAST(floor((sin(radians(latitude)) + 1) / {high!r}) AS INTEGER) AS north, count(*) AS times"
    )
    rows = tables.rows(
        f"SELECT b.east, b.north, b.times, COALESCE(a.times, 0) FROM ({cell} FROM {before} GROUP BY ALL) b "
        f"LEFT JOIN ({cell} FROM {after} GROUP BY ALL) a USING (east, north) ORDER BY 2, 1"
    )
    return [Cell(*row) for row in rows]


def write_coverage(cells: Sequence[Cell], out: Path) -> None:
    """Write the cells as a table: their sides in degrees, and the observations before and after the draw."""
    rows = ([*(round(side, 4) for side in cell.sides()), cell.before, cell.after] for cell in cells)
    write_csv(out / COVERAGE, [("west", "south", "east", "north", "before", "after"), *rows])


def coverage_table(cells: Sequence[Cell]) -> CardTable:
    """Observations, the cells they lie in, and the most in one cell, before and after the draw."""
    rows = []
    for name in ("before", "after"):
        counts = [getattr(cell, name) for cell in cells]
        rows.append(
            [f"{name} the draw", f"{sum(counts):,}", f"{sum(map(bool, counts)):,}", f"{max(counts, default=0):,}"]
        )
    note = f"Equal-area cells, {DEGREES:g} degrees wide at the equator; {COVERAGE} has each."
    return CardTable("Where it was seen", ("", "observations", "cells", "most in one"), rows, note)


def substitutes(later: int, unknown: int, pictures: int) -> str:
    """How many of the pictures stand for their observation without being its first photo, and why; "" for none."""
    parts = []
    if later:
        parts.append(f"{later:,} have a later photo of their observation, as the source lacks the first")
    if unknown:
        parts.append(f"{unknown:,} have the photo listed first, as the source gives no order")
    return f"of {pictures:,} pictures " + " and ".join(parts) if parts else ""


def quality_checks(
    tally: CollectionTally,
    settings: CollectionSettings,
    *,
    listed: int,
    drawn: Mapping[str, Any],
    drawn_rows: int,
    waiting: int,
    checked: bool,
    later: int,
    unknown: int,
    unmatched: int,
) -> Iterator[QualityCheck]:
    """The checks, in the order of the card.

    `listed` are the species of the target list, `waiting` pictures that wait for a person, `later` and `unknown`
    pictures that are not known to be the first of their observation, `unmatched` entries of the list of taxa to coarsen
    that match no species; `checked` says whether the pictures were there.
    """
    pictures = len(tally.species)
    yield _pictures_check(pictures, drawn_rows, waiting, checked)
    if checked:
        face_checked = "face" in settings.pictures.checks
        text = "A detector looked for faces; it misses small ones." if face_checked else "Nobody looked for faces."
        yield QualityCheck("People in the pictures", "green" if face_checked else "amber", text)
    species = len(set(tally.species))
    text = f"{species:,} of {listed:,} species of the list have pictures."
    yield QualityCheck("Species", level_of(species / max(1, listed), 0.5, 0.9), text)
    first = 1 - (later + unknown) / max(1, pictures)
    note = substitutes(later, unknown, pictures) or "all are the first photo of their observation"
    yield QualityCheck("The photo of an observation", level_of(first, 0.5, 0.99), f"{note[0].upper()}{note[1:]}.")
    ours, lot = drawn.get("spread_drawn"), drawn.get("spread_random")
    if ours is not None and lot:  # nothing where no species was cut
        text = f"{ours:.1f} effective cells in the mean over cut species; by lot {lot:.1f}."
        yield QualityCheck("How widely the draw is spread", level_of(ours / lot, 0.95, 1.0), text)
    yield _positions_check(tally, settings, unmatched)
    # Pictures without a licence are dropped; a licence without a version has no text to follow
    bare = sum(count for licence, count in tally.licences.items() if not licence.url)
    text = f"All {pictures:,} pictures have a licence"
    rest = f"; of {bare:,} the source does not give the version." if bare else ", with the address of its text."
    yield QualityCheck("Licences", "amber" if bare else "green", text + rest)


def _pictures_check(pictures: int, drawn_rows: int, waiting: int, checked: bool) -> QualityCheck:
    what = "Pictures"
    if not checked:
        return QualityCheck(what, "red", "The pictures were missing, and nobody checked them.")
    wait = f"; {waiting:,} wait for a person" if waiting else ""
    text = f"{pictures:,} of {drawn_rows:,} drawn photos passed the checks{wait}."
    share = pictures / max(1, drawn_rows)
    return QualityCheck(what, "amber" if waiting and share >= 0.9 else level_of(share, 0.9, 0.98), text)


def _positions_check(tally: CollectionTally, settings: CollectionSettings, unmatched: int) -> QualityCheck:
    what, hidden = "Positions of taxa at risk", f"{tally.coarse:,} positions are coarsened."
    if unmatched:
        text = f"{unmatched:,} taxa to coarsen match no species, and their positions may be exact."
        return QualityCheck(what, "red", text)
    if settings.positions.taxa is None:
        return QualityCheck(what, "amber", f"No list of taxa to coarsen was given; {hidden}")
    return QualityCheck(what, "green", f"All taxa to coarsen match species of the list; {hidden}")


def write(
    out: Path,
    inputs: CollectionInputs,
    settings: CollectionSettings,
    *,
    steps: Sequence[StepResult],
    tally: CollectionTally,
    cells: Sequence[Cell],
    notes: Sequence[str],
    standing: Mapping[str, Any],
) -> None:
    """Write `card.md` and `card.html` and `croissant.json`; `standing` is what the checks are told of the pictures."""
    drawn, listed, odd = standing["drawn"], len(inputs.species), len(unmatched(inputs.species, settings.positions))
    rows = [(licence.name, licence.url, f"{count:,}") for licence, count in tally.licences.most_common()]
    # The mean effective number of cells over species that were cut
    names = {"spread_before": "all candidates", "spread_random": "as many by lot", "spread_drawn": "this draw"}
    spread = [(title, f"{drawn[name]:.1f}") for name, title in names.items() if drawn.get(name) is not None]
    note = (
        f"Effective number (exponential of the entropy) of equal-area cells, 2 degrees wide at the equator, mean over "
        f"the {drawn['over_cap']:,} species of which not every observation was taken."
    )
    evenness = CardTable("How widely the draw is spread", ("", "cells"), spread, note)
    licences = CardTable("Licences", ("licence", "text", "pictures"), rows)
    content = CardContent(
        out.absolute().name,
        f"{len(tally.species):,} pictures of {len(set(tally.species)):,} species, each of one observation; drawn so "
        "that there are as many places, days and observers as possible.",
        settings.sampling.seed,
        answers=_answers(tally, settings),
        tables=[licences, coverage_table(cells), evenness],
        notes=notes,
        checks=list(quality_checks(tally, settings, listed=listed, unmatched=odd, **standing)),
        citation=inputs.citation,
        licence="each picture under its own licence; attributions.csv names it with the holder",
    )
    made = card_of(steps, content)
    write_card(made, out)
    tables = {"pictures": LABELS, "attributions": ATTRIBUTIONS, "taxonomy": TAXONOMY, "funnel": FUNNEL}
    write_croissant(made, {name: {"whole": place} for name, place in tables.items()}, out)


def _answers(tally: CollectionTally, settings: CollectionSettings) -> dict[str, dict[str, str]]:
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
