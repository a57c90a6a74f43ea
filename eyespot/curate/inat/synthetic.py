"""A made-up export of any size, with planted changes of names, gaps and crowds: to try the pipeline and to time it.

    python -m eyespot.curate.inat.synthetic EXPORT 200000

writes observations, photos, taxa and observers as iNaturalist's export has them, and beside them `targets.csv` and
`mapping.csv`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.curate.inat.tables import Tables, opened, quoted
from eyespot.storage.tables import write_csv
from eyespot.types import UsageError

_AT_ONCE = 1 << 20
_TREE = (
    (1, "", 70, "kingdom", "Animalia"),
    (2, "1", 60, "phylum", "Chordata"),
    (3, "1/2", 50, "class", "Aves"),
    (4, "1/2/3", 40, "order", "Passeriformes"),
    (5, "1/2/3/4", 30, "family", "Paridae"),
)
_GENUS, _SPECIES = 100_000, 1_000_000  # where the ids of genera and species begin
RENAMED, SPLIT, MERGED = 0, 1, 2  # places in the list of the species whose taxa changed
LOST = 3  # merged into MERGED
GONE = 4  # of the list, and not in the export
_COLUMNS = {
    "observation_uuid": "VARCHAR",
    "observer_id": "INTEGER",
    "latitude": "DOUBLE",
    "longitude": "DOUBLE",
    "positional_accuracy": "INTEGER",
    "taxon_id": "INTEGER",
    "quality_grade": "VARCHAR",
    "observed_on": "VARCHAR",
    "license": "VARCHAR",
    "pictures": "INTEGER",
    "number": "BIGINT",
}
_SHARES = {"day": 0.01, "position": 0.01, "grade": 0.05, "year": 0.1, "licence": 0.02, "photo": 0.01, "second": 0.2}


@dataclass(frozen=True)
class Planted:
    """The planted faults: observations by their fault, each with only one."""

    observations: int
    faults: dict[str, int]
    photos: int


def make(folder: Path, observations: int, seed: int = 0) -> Planted:
    """Write an export into a folder; the same one for the same size and seed."""
    if observations < 100:
        raise UsageError("an export of fewer than 100 observations shows nothing; ask for more")
    folder.mkdir(parents=True, exist_ok=True)
    species = max(12, observations // 1000)
    _lists(folder, species)
    faults = dict.fromkeys(_SHARES, 0)
    with opened(folder / ".spill") as tables:
        ids = range(1, 2 + observations // 100)
        logins, people = (f"user{id}" for id in ids), (f'Ann "{id}" Lee' for id in ids)
        observers = {"observer_id": ids, "login": logins, "name": people}
        _write(tables, "SELECT * FROM t", folder / "observers.csv.gz", observers)
        tables.run(f"CREATE TEMP TABLE o ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())})")
        world = _World.of(np.random.default_rng(seed), species, observations)
        for start in range(0, observations, _AT_ONCE):
            _add(tables, world, range(start, min(start + _AT_ONCE, observations)), faults)
        names = ", ".join(list(_COLUMNS)[:8])
        _write(tables, f"SELECT {names} FROM o", folder / "observations.csv.gz")
        photos = tables.number("SELECT sum(pictures) FROM o")
        _write(
            tables,
            "SELECT md5(number || '/' || position)::UUID AS photo_uuid, number * 10 + position AS photo_id, "
            "observation_uuid, observer_id, 'jpg' AS extension, license, 800 AS width, 600 AS height, position FROM "
            "(SELECT *, unnest(range(pictures)) AS position FROM o)",
            folder / "photos.csv.gz",
        )
    return Planted(observations, faults, photos)


def _write(tables: Tables, sql: str, path: Path, columns: dict[str, Any] | None = None) -> None:
    if columns is not None:
        tables.know("t", {name: map(str, values) for name, values in columns.items()})
    tables.run(f"COPY ({sql}) TO {quoted(path)} (FORMAT csv, DELIMITER '\t', HEADER, COMPRESSION gzip, QUOTE '')")


# -- where, when, who -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _World:
    """Places that draw people, species with their homes, and how often each is seen."""

    random: np.random.Generator
    towns: NDArray[np.float64]  # (towns, 2), degrees
    town_share: NDArray[np.float64]
    homes: NDArray[np.float64]  # (species, 2), degrees
    species_share: NDArray[np.float64]
    observers: int

    @classmethod
    def of(cls, random: np.random.Generator, species: int, observations: int) -> _World:
        rich = random.random(2000) < 0.7  # as in life, most is seen in North America and Europe
        west = random.random(2000) < 0.5
        latitude = np.where(rich, random.normal(45, 6, 2000), random.uniform(-50, 60, 2000))
        longitude = np.where(rich, np.where(west, random.normal(-95, 15, 2000), random.normal(10, 10, 2000)),
                             random.uniform(-180, 180, 2000))  # fmt: skip
        towns = np.stack([latitude, longitude], axis=1)
        homes = towns[random.integers(0, 2000, species)]
        return cls(random, towns, _power(random, 2000), homes, _power(random, species), 1 + observations // 100)


def _power(random: np.random.Generator, count: int) -> NDArray[np.float64]:
    share = 1.0 / np.arange(2, count + 2) ** 1.0
    random.shuffle(share[10:])  # the species whose taxa changed are often seen
    shares: NDArray[np.float64] = share / share.sum()
    return shares


def _add(tables: Tables, world: _World, numbers: range, faults: dict[str, int]) -> None:
    import pyarrow as pa

    random, count = world.random, len(numbers)
    species = random.choice(len(world.species_share), count, p=world.species_share)
    town = random.choice(len(world.towns), count, p=world.town_share)
    # a third is anywhere; the rest in crowds near a town
    place = world.towns[town] + random.normal(0, 0.1, (count, 2))
    anywhere = random.random(count) < 0.3
    place[anywhere] = world.homes[species[anywhere]] + random.normal(0, 5, (int(anywhere.sum()), 2))
    wrong = random.choice([*_SHARES, ""], count, p=[*_SHARES.values(), 1 - sum(_SHARES.values())])
    for name in faults:
        faults[name] += int((wrong == name).sum())
    day = np.datetime64("2021-01-01") + random.integers(0, 365 * 3, count)
    day[wrong == "year"] -= np.timedelta64(2000, "D")
    columns = {
        "number": np.arange(numbers.start, numbers.stop),
        "observer": (random.random(count) ** 2 * world.observers).astype(np.int64) + 1,
        "latitude": np.clip(place[:, 0], -90, 90).round(5),
        "longitude": ((place[:, 1] + 180) % 360 - 180).round(5),
        "accuracy": random.choice([5, 50, 500, 28_000], count, p=[0.5, 0.3, 0.15, 0.05]),
        "taxon": _taxon_of(random, species),
        "day": day.astype(str),
        "wrong": wrong,
    }
    tables.run("DROP TABLE IF EXISTS piece")
    kinds = {name: pa.array(values).type for name, values in columns.items()}
    tables.know("piece", columns, kinds)
    tables.run(
        "INSERT INTO o SELECT md5('o' || number)::UUID, observer, CASE WHEN wrong <> 'position' THEN latitude END, "
        "CASE WHEN wrong <> 'position' THEN longitude END, accuracy, taxon, "
        "CASE WHEN wrong = 'grade' THEN 'casual' ELSE 'research' END, CASE WHEN wrong <> 'day' THEN day END, "
        "CASE WHEN wrong <> 'licence' THEN ['CC0', 'CC-BY', 'CC-BY-NC', 'CC-BY-NC-SA'][1 + number % 4] END, "
        "CASE wrong WHEN 'photo' THEN 0 WHEN 'second' THEN 2 ELSE 1 END, number FROM piece"
    )


def _taxon_of(random: np.random.Generator, species: NDArray[np.int64]) -> NDArray[np.int64]:
    """The taxon of today: renamed, one of the two parts of the split, or what the two merged into."""
    taxon = _SPECIES + 10 * species
    taxon[species == RENAMED] += 1
    taxon[species == SPLIT] += 1 + (random.random(int((species == SPLIT).sum())) < 0.5)
    taxon[(species == MERGED) | (species == LOST)] = _SPECIES + 10 * MERGED
    return taxon


# -- taxa -------------------------------------------------------------------------------------------------------


def _lists(folder: Path, species: int) -> None:
    taxa = [(*row, "true") for row in _TREE]
    taxa += [(_GENUS + genus, "1/2/3/4/5", 20, "genus", _genus(genus), "true") for genus in range(species // 10 + 1)]
    for number in range(species):
        taxa += _taxa_of(number)
    names = ("taxon_id", "ancestry", "rank_level", "rank", "name", "active")
    with opened(folder / ".spill") as tables:
        columns = dict(zip(names, zip(*taxa, strict=True), strict=True))
        _write(tables, "SELECT * FROM t", folder / "taxa.csv.gz", columns)
    write_csv(folder / "targets.csv", [("id", "name"), *((number, _name(number)) for number in range(species))])
    renamed, split, lost, merged = (_SPECIES + 10 * number for number in (RENAMED, SPLIT, LOST, MERGED))
    changes = [(renamed, renamed + 1, "rename"), (split, split + 1, "split"), (split, split + 2, "split")]
    write_csv(folder / "mapping.csv", [("old", "new", "kind"), *changes, (lost, merged, "merge")])


def _taxa_of(number: int) -> list[tuple[Any, ...]]:
    """The taxa of a species of the list, those that changed with what they became."""
    id, ancestry = _SPECIES + 10 * number, f"1/2/3/4/5/{_GENUS + number // 10}"

    def row(id: int, name: str, active: str) -> tuple[Any, ...]:
        return (id, ancestry, 10, "species", name, active)

    if number == RENAMED:
        return [row(id, _name(number), "false"), row(id + 1, "Novus nominatus", "true")]
    if number == SPLIT:
        parts = [row(id + 1, "Pars prima", "true"), row(id + 2, "Pars altera", "true")]
        return [row(id, _name(number), "false"), *parts]
    return [] if number == GONE else [row(id, _name(number), "false" if number == LOST else "true")]


def _genus(number: int) -> str:
    return "G" + _letters(number)


def _name(number: int) -> str:
    return f"{_genus(number // 10)} s{_letters(number)}"


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:05d}")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
