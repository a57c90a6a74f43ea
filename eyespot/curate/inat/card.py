"""The data card of a curated collection: checks, funnel, licences, settings, and a datasheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from eyespot.curate.set_folder import datasheet
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
from eyespot.settings.build import InatSettings


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
    settings: InatSettings,
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
    if not checked:
        yield QualityCheck("Pictures", "red", "The pictures were missing, and nobody checked them.")
    else:
        text = f"{pictures:,} of {drawn_rows:,} drawn photos passed the checks"
        text += f"; {waiting:,} wait for a person." if waiting else "."
        share = pictures / max(1, drawn_rows)
        yield QualityCheck("Pictures", "amber" if waiting and share >= 0.9 else level_of(share, 0.9, 0.98), text)
        face_checked = "face" in settings.check
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


def _positions_check(tally: CollectionTally, settings: InatSettings, unmatched: int) -> QualityCheck:
    what, hidden = "Positions of taxa at risk", f"{tally.coarse:,} positions are coarsened."
    if unmatched:
        text = f"{unmatched:,} taxa to coarsen match no species, and their positions may be exact."
        return QualityCheck(what, "red", text)
    if settings.coarsen is None:
        return QualityCheck(what, "amber", f"No list of taxa to coarsen was given; {hidden}")
    return QualityCheck(what, "green", f"All taxa to coarsen match species of the list; {hidden}")


def write(
    out: Path,
    inputs: CollectionInputs,
    *,
    steps: Sequence[StepResult],
    tally: CollectionTally,
    notes: Sequence[str],
    standing: Mapping[str, Any],
) -> None:
    """Write `card.md` and `card.html` and `croissant.json`; `standing` is what the checks are told of the pictures."""
    listed, odd = len(inputs.species), len(unmatched(inputs.species, inputs.settings))
    rows = [(licence.name, licence.url, f"{count:,}") for licence, count in tally.licences.most_common()]
    licences = CardTable("Licences", ("licence", "text", "pictures"), rows)
    content = CardContent(
        out.absolute().name,
        f"{len(tally.species):,} pictures of {len(set(tally.species)):,} species, each of one observation; drawn so "
        "that there are as many places, days and observers as possible.",
        inputs.settings.seed,
        answers=_answers(tally, inputs.settings),
        tables=[licences],
        notes=notes,
        checks=list(quality_checks(tally, inputs.settings, listed=listed, unmatched=odd, **standing)),
        citation=inputs.source.citation,
        licence="each picture under its own licence; attributions.csv names it with the holder",
    )
    made = card_of(steps, content)
    write_card(made, out)
    tables = {"pictures": LABELS, "attributions": ATTRIBUTIONS, "taxonomy": TAXONOMY, "funnel": FUNNEL}
    write_croissant(made, {name: {"whole": place} for name, place in tables.items()}, out)


def _answers(tally: CollectionTally, settings: InatSettings) -> dict[str, dict[str, str]]:
    if settings.photos is None:
        people = "Nobody checked: the pictures were missing."
    elif "face" not in settings.check:
        people = "Faces were not looked for."
    else:
        people = "Pictures in which a detector saw a face are left out unless a person accepted them; it misses some."
    how = {**settings.model_dump(), "degrees": f"{settings.coarse_degrees:g}", "limit": f"{settings.accuracy:g}"}
    counts = {"coarse": f"{tally.coarse:,}", "first": tally.first, "last": tally.last}
    return datasheet(Path(__file__), people=people, **counts, **how)
