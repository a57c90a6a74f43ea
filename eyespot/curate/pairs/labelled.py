"""Labelled pictures to pairs of two pictures of one class, to train TA and QuARI on (QuARI, table 1b).

Whole classes are drawn, by a seed and their names alone, and of each class at most some pictures. Some of the drawn
classes are held out. In what is drawn each picture asks for the next of its class in an order by lot, and never for a
copy of itself: copies are those of `eyespot duplicates`, by perceptual hashes.

    OUT/labels.parquet              every picture with its label
    OUT/drawn.parquet               what is drawn of them
    OUT/left_out.parquet            pictures that are not, with the reason
    OUT/train/00000/…               pictures.parquet and captions.parquet, as of the other sets; without_pair.parquet
                                    has drawn pictures that give no pair once they are read, with the reason
    OUT/held-out/00000/…            the same of the classes that are held out

Of a gallery there is no pictures.parquet: it has its pictures, and captions.parquet names them by their ids. DuckDB
does the draw in bounded memory; pictures are read a part at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from eyespot.curate.inat.tables import Tables, opened, parquet, quoted
from eyespot.curate.pair_set import (
    CAPTIONS,
    LEFT_OUT,
    PICTURES,
    LeftOut,
    PairRow,
    PairsResult,
    begin_folder,
    digest,
    fill_parts,
)
from eyespot.curate.pairs.label_lists import MANY, is_gallery, reader, root_folder
from eyespot.curate.set_folder import TEXT, new_table
from eyespot.gallery.groups.near_duplicates import Near, near_duplicates
from eyespot.parallel import ordered_map
from eyespot.photos.hashes import Hashes, picture_hashes
from eyespot.photos.names import real_name
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again
from eyespot.settings.build import LabelledSettings
from eyespot.storage.tables import rows_of
from eyespot.types import NothingFound, Progress

PART = 1 << 16  # pictures, and the class that the last one is of
WITHOUT_PAIR, LOST_COLUMNS = "without_pair.parquet", ("name", "label", "reason")
SIDE = 64  # pixels of a picture that its hash needs at least
SMALL = 256  # pictures of a class
ROWS = 8_192  # of labels that are written together
_LABELS = {**dict.fromkeys(("name", "label", "reason"), TEXT), "there": "bool_", "hashes": "binary"}
ALONE, TWICE, FULL, BEYOND = (
    "is the one picture of its class",
    MANY,
    "its class has enough pictures (--per-class)",
    "its class is not drawn (--count)",
)
ALL_COPIES = "every other picture of its class is a copy of it"
READ_ALONE = "is the one picture of its class that can be read"


@dataclass(frozen=True)
class _Hashed:
    """A drawn picture with its hashes (8,), or why it has none."""

    name: str
    label: str
    hashes: Hashes | None
    reason: str = ""


@dataclass
class LabelledSet:
    """A `PairSource` whose parts are drawn. `without`: paths or ids to leave out."""

    given: LabelledSettings
    without: frozenset[str] = frozenset()
    files: Sequence[Path] = ()
    classes: dict[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Pairs, and the list of pictures where there is no gallery yet."""
        key = "id" if is_gallery(self.given) else "file_name"
        pairs = {CAPTIONS: (key, "asked_with", "label"), WITHOUT_PAIR: LOST_COLUMNS}
        return pairs if is_gallery(self.given) else {PICTURES: (key, "label"), **pairs}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The draw and where the labels come from."""
        given = self.given
        draw = {name: getattr(given, name) for name in ("count", "per_class", "partners", "held_out", "seed")}
        images = None if given.images is None else str(given.images.absolute())
        place = {"place": str(given.place.absolute()), "column": given.label, "images": images, "split": given.split}
        return {**draw, **place, "without": digest(self.without)}

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """The pairs of one part, class by class."""
        side, number = file.parts
        drawn = f"SELECT name, label, hashes FROM {parquet(self.given.out / 'drawn.parquet')}"
        where = f"WHERE side = {quoted(side)} AND part = {int(number)} ORDER BY label_key, label, name_key"
        with opened(self.given.out / ".reading", 0.5) as tables:
            rows = chain.from_iterable(batch.to_pylist() for batch in tables.batches(f"{drawn} {where}", ROWS))
            hashed = ordered_map(_hashed, rows, self.given.workers, 4 * self.given.workers)
            for label, pictures in groupby(hashed, lambda one: one.label):
                yield from self._pairs(self.given.out / file, label, list(pictures))

    def _pairs(self, part: Path, label: str, pictures: list[_Hashed]) -> Iterator[PairRow | LeftOut]:
        """Each picture of a class asks for others, the next ones in the order of the draw."""
        yield from (_without_pair(one, one.reason) for one in pictures if one.hashes is None)
        whole = [one for one in pictures if one.hashes is not None]
        if len(whole) == 1:
            yield _without_pair(whole[0], READ_ALONE)
            return
        key = self.columns[CAPTIONS][0]
        names = [one.name if key == "id" else os.path.relpath(one.name, part) for one in whole]
        for at, partners in enumerate(partners_of([one.hashes for one in whole], self.given.partners)):
            if not partners:
                yield _without_pair(whole[at], ALL_COPIES)
            elif PICTURES in self.columns:
                yield PairRow(PICTURES, {key: names[at], "label": label})
            for other in partners:
                yield PairRow(CAPTIONS, {key: names[other], "asked_with": names[at], "label": label})


def make(source: LabelledSet, tell: Progress) -> PairsResult:
    """List the labels, draw, and make every part that is not there yet; run it again after it was cut.

    Raises `UsageError` for a folder with other pairs, `NothingFound` if no class has two pictures.
    """
    out, read = source.given.out, reader(source.given)
    begin_folder(out, {"of": "labelled", **source.settings})
    with opened(out / ".drawing", 1.0) as tables:
        if not (out / "labels.parquet").is_file():
            with new_table(out / "labels.parquet", _LABELS, ROWS) as add:
                for number, one in enumerate(read()):
                    if number % ROWS == 0:
                        tell("labels", number, 0)
                    if one.name in source.without or Path(one.name).name in source.without:
                        add({"name": one.name, "there": False, "reason": LEFT_OUT})
                    else:
                        add({"there": False, **vars(one)})
        if not (out / "drawn.parquet").is_file():
            _draw(tables, source)
        sides = tables.rows(f"SELECT DISTINCT side, part FROM {parquet(out / 'drawn.parquet')} ORDER BY ALL")
        source.classes = dict(
            tables.rows(f"SELECT side, count(DISTINCT label) FROM {parquet(out / 'drawn.parquet')} GROUP BY 1")
        )
        lost = tables.rows(
            f"SELECT reason, count(*), min(name) FROM {parquet(out / 'left_out.parquet')} GROUP BY 1 ORDER BY 1"
        )
    if not sides:
        why = f"{out / 'left_out.parquet'} says why of each picture; try again into a new folder"
        raise NothingFound(f"no class of {source.given.place} has two pictures or more and fits into --count; {why}")
    names = [Path(side) / f"{part:05d}" for side, part in sides]
    made = fill_parts(source, {name: out / name for name in names}, tell)
    without_pair = filter(Path.is_file, (out / name / WITHOUT_PAIR for name in names))  # older parts have none
    lost += [(row["reason"], 1, row["name"]) for table in without_pair for _, row in rows_of(table)]
    for reason, count, name in lost:
        made.left_out[reason] += count
        made.examples.setdefault(reason, name)
    del made.rows[WITHOUT_PAIR]
    return made


def _without_pair(one: _Hashed, reason: str) -> PairRow:
    return PairRow(WITHOUT_PAIR, {"name": one.name, "label": one.label, "reason": reason})


def partners_of(hashes: Sequence[Any], count: int) -> list[list[int]]:
    """For each of n pictures, by their hashes (n, 8), the next `count` ones around the circle that are not copies."""
    pictures, signs = len(hashes), np.stack(hashes)
    if pictures > SMALL:
        close = near_duplicates(signs, np.zeros((pictures, 0), np.float32), Near(cosine=2))
        copies = {(pair.first, pair.second) for pair in close} | {(pair.second, pair.first) for pair in close}
    else:  # the tables of a search would take longer than to compare all with all
        bits = np.bitwise_count(signs[:, None] ^ signs[None, :, :1]).min(axis=2)  # (pictures, pictures)
        shown: Any = signs.any(axis=1)  # without a pattern a picture is close to nothing
        near = np.argwhere((bits <= Near().bits) & shown[:, None] & shown).tolist()
        copies = {(first, second) for first, second in near}
    return [
        [other for step in range(1, pictures) if (at, other := (at + step) % pictures) not in copies][:count]
        for at in range(pictures)
    ]


# -- the draw -------------------------------------------------------------------------------------------------


def _draw(tables: Tables, source: LabelledSet) -> None:
    """Write what is drawn, and what is not with the reason.

    A key of MD5 over seed and name stands for chance: the same on every machine, whatever the order of the files and
    wherever their folder lies.
    """
    out, draw = source.given.out, source.given
    folder = quoted(str(root_folder(draw).absolute()) + os.sep)

    def key(what: str, column: str) -> str:
        return f"md5('{draw.seed}\x1f{what}\x1f' || {column})"

    short = key(
        "picture", f"CASE WHEN starts_with(name, {folder}) THEN substr(name, length({folder}) + 1) ELSE name END"
    )

    tables.run(
        f"""CREATE TABLE listed AS SELECT name, min(label) AS label, count(DISTINCT label) AS labels,
            min(hashes) AS hashes, bool_or(there) AS there, min(reason) AS reason
            FROM {parquet(out / "labels.parquet")} GROUP BY name"""
    )
    tables.run(
        f"""CREATE TABLE good AS SELECT name, label, hashes, {short} AS name_key,
            {key("class", "label")} AS label_key,
            row_number() OVER (PARTITION BY label ORDER BY {short}, name) AS place,
            count(*) OVER (PARTITION BY label) AS pictures
            FROM listed WHERE reason IS NULL AND there AND labels = 1"""
    )
    tables.run(
        f"""CREATE TABLE classes AS SELECT label, sum(least(pictures, {draw.per_class})) OVER
            (ORDER BY label_key, label ROWS UNBOUNDED PRECEDING) AS so_far, label_key
            FROM good WHERE place = 1 AND pictures > 1 QUALIFY so_far <= {draw.count}"""
    )
    tables.run(
        f"""CREATE TABLE sides AS SELECT label, CASE WHEN row_number() OVER (ORDER BY {key("held", "label")}, label)
            <= round({draw.held_out} * (SELECT count(*) FROM classes)) THEN 'held-out' ELSE 'train' END AS side,
            (so_far::BIGINT // {PART})::INTEGER AS part FROM classes"""
    )
    tables.write(_reasons(draw), out / "left_out.parquet")
    drawn = f"SELECT good.*, side, part FROM good JOIN sides USING (label) WHERE place <= {draw.per_class}"
    tables.write(f"{drawn} ORDER BY side, part, label_key, label, name_key", out / "drawn.parquet")


def _reasons(draw: LabelledSettings) -> str:
    """Pictures that are not drawn, with their labels and the reason, as a query."""
    why = f"""CASE WHEN g.pictures = 1 THEN {quoted(ALONE)} WHEN s.label IS NULL THEN {quoted(BEYOND)}
        ELSE {quoted(FULL)} END"""
    undrawn = f"""SELECT g.name, g.label, {why} AS reason FROM good g LEFT JOIN sides s USING (label)
        WHERE s.label IS NULL OR g.place > {draw.per_class}"""
    bad = f"""SELECT name, label, coalesce(reason, CASE WHEN labels > 1 THEN {quoted(TWICE)}
        WHEN NOT there THEN 'is not there' ELSE 'has no label' END) FROM listed
        WHERE reason IS NOT NULL OR NOT there OR labels <> 1"""
    return f"{undrawn} UNION ALL {bad} ORDER BY reason, name"


def _hashed(row: Mapping[str, Any]) -> _Hashed:
    """A drawn picture with its hashes, read from its file where the gallery has none."""
    name, label = str(row["name"]), str(row["label"])
    if row["hashes"] is not None:
        return _Hashed(name, label, np.frombuffer(row["hashes"], "<u8"))
    try:
        return _Hashed(name, label, picture_hashes(open_picture(read_again(real_name(name)), SIDE).image))
    except (OSError, BadPicture) as error:
        return _Hashed(name, label, None, f"cannot be read ({getattr(error, 'strerror', None) or error})")
