"""Checks that open the card of a collection: pictures that were seen, substitutes, and positions that are hidden."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from eyespot.curate.inat.collection import CollectionTally
from eyespot.curate.inat.settings import CollectionSettings
from eyespot.pipelines.data_card import QualityCheck, level_of


class StandIns(NamedTuple):
    """Photos that stand for their observation without being its first: by position, or the first one listed."""

    later: int  # position 0 is not in the source
    unknown: int  # the source gives no position

    def note(self, pictures: int) -> str:
        """How many of the pictures, and why."""
        parts = []
        if self.later:
            parts.append(f"{self.later:,} have a later photo of their observation, as the source lacks the first")
        if self.unknown:
            parts.append(f"{self.unknown:,} have the photo listed first, as the source gives no order")
        return f"of {pictures:,} pictures " + " and ".join(parts) if parts else ""


class CollectionStanding(NamedTuple):
    """What the checks need to know of a finished collection."""

    tally: CollectionTally
    listed: int  # species of the target list
    drawn: Mapping[str, Any]
    drawn_rows: int
    waiting: int  # pictures that wait for a person
    checked: bool  # whether the pictures were there
    stand_ins: StandIns
    unmatched: int  # entries of the list of taxa to coarsen that match no species


def quality_checks(made: CollectionStanding, settings: CollectionSettings) -> Iterator[QualityCheck]:
    """The checks, in the order of the card."""
    pictures = len(made.tally.species)
    yield _pictures_check(made, pictures)
    if made.checked:
        looked = "face" in settings.pictures.checks
        text = "A detector looked for faces; it misses small ones." if looked else "Nobody looked for faces."
        yield QualityCheck("People in the pictures", "green" if looked else "amber", text)
    species = len(set(made.tally.species))
    text = f"{species:,} of {made.listed:,} species of the list have pictures."
    yield QualityCheck("Species", level_of(species / max(1, made.listed), 0.5, 0.9), text)
    first = 1 - (made.stand_ins.later + made.stand_ins.unknown) / max(1, pictures)
    note = made.stand_ins.note(pictures) or "all are the first photo of their observation"
    yield QualityCheck("The photo of an observation", level_of(first, 0.5, 0.99), f"{note[0].upper()}{note[1:]}.")
    yield from _spread_check(made.drawn)
    yield _positions_check(made, settings)
    yield _licences_check(made.tally)


def _pictures_check(made: CollectionStanding, pictures: int) -> QualityCheck:
    what = "Pictures"
    if not made.checked:
        return QualityCheck(what, "red", "The pictures were missing, and nobody checked them.")
    waiting = f"; {made.waiting:,} wait for a person" if made.waiting else ""
    text = f"{pictures:,} of {made.drawn_rows:,} drawn photos passed the checks{waiting}."
    share = pictures / max(1, made.drawn_rows)
    return QualityCheck(what, "amber" if made.waiting and share >= 0.9 else level_of(share, 0.9, 0.98), text)


def _spread_check(drawn: Mapping[str, Any]) -> Iterator[QualityCheck]:
    """Whether the draw is spread at least as widely as one by lot; nothing where no species was cut."""
    ours, lot = drawn.get("spread_drawn"), drawn.get("spread_random")
    if ours is not None and lot:
        text = f"{ours:.1f} effective cells in the mean over cut species; by lot {lot:.1f}."
        yield QualityCheck("How widely the draw is spread", level_of(ours / lot, 0.95, 1.0), text)


def _positions_check(made: CollectionStanding, settings: CollectionSettings) -> QualityCheck:
    what, hidden = "Positions of taxa at risk", f"{made.tally.coarse:,} positions are coarsened."
    if made.unmatched:
        text = f"{made.unmatched:,} taxa to coarsen match no species, and their positions may be exact."
        return QualityCheck(what, "red", text)
    if settings.positions.taxa is None:
        return QualityCheck(what, "amber", f"No list of taxa to coarsen was given; {hidden}")
    return QualityCheck(what, "green", f"All taxa to coarsen match species of the list; {hidden}")


def _licences_check(tally: CollectionTally) -> QualityCheck:
    """Pictures without a licence are dropped; a licence without a version has no text to follow."""
    bare = sum(count for licence, count in tally.licences.items() if not licence.url)
    text = f"All {len(tally.species):,} pictures have a licence"
    rest = f"; of {bare:,} the source does not give the version." if bare else ", with the address of its text."
    return QualityCheck("Licences", "amber" if bare else "green", text + rest)
