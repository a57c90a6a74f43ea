"""A made-up export of any size, with planted changes of names, gaps and crowds: to try the pipeline and to time it.

    python -m tests.worlds.inat_export EXPORT 200000

writes observations, photos, taxa and observers as iNaturalist's export has them, and beside them `targets.csv` and
`mapping.csv`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.tables import write_csv
from eyespot.types import UsageError
from tests.worlds.inat import tsv

_TREE = (
    (1, "", 70, "kingdom", "Animalia"),
    (2, "1", 60, "phylum", "Chordata"),
    (3, "1/2", 50, "class", "Aves"),
    (4, "1/2/3", 40, "order", "Passeriformes"),
    (5, "1/2/3/4", 30, "family", "Paridae"),
)
_GENUS, _SPECIES, _TOWNS = 100_000, 1_000_000, 2000  # where the ids of genera and species begin; how many towns
RENAMED, SPLIT, MERGED, LOST, GONE = range(5)  # what became of species: LOST went into MERGED, GONE is not there
_SHARES = {"day": 0.01, "position": 0.01, "grade": 0.05, "year": 0.1, "licence": 0.02, "photo": 0.01, "second": 0.2}
_LICENCES = ("CC0", "CC-BY", "CC-BY-NC", "CC-BY-NC-SA")


def make(folder: Path, observations: int, seed: int = 0) -> dict[str, int]:
    """Write an export, the same one for the same size and seed: how many observations have each fault, none has two."""
    if observations < 100:
        raise UsageError("an export of fewer than 100 observations shows nothing; ask for more")
    folder.mkdir(parents=True, exist_ok=True)
    species, people = max(12, observations // 1000), range(1, 2 + observations // 100)
    _lists(folder, species)
    observers = [{"observer_id": id, "login": f"user{id}", "name": f'Ann "{id}" Lee'} for id in people]
    tsv(folder / "observers.csv.gz", observers)
    random = np.random.default_rng(seed)
    wrong = random.choice([*_SHARES, ""], observations, p=[*_SHARES.values(), 1 - sum(_SHARES.values())])
    seen = _observations(random, wrong, species, len(people))
    tsv(folder / "observations.csv.gz", seen)
    tsv(folder / "photos.csv.gz", _photos(seen, wrong))
    return {name: int((wrong == name).sum()) for name in _SHARES}


def _observations(random: np.random.Generator, wrong: Any, species: int, people: int) -> list[dict[str, Any]]:
    count = len(wrong)
    of = random.choice(species, count, p=_power(species))  # the species whose taxa changed are often seen
    # most is seen in North America and Europe: a third anywhere near the home of a species, the rest in crowds in towns
    towns = np.stack([random.normal(45, 6, _TOWNS), random.choice([-95, 10], _TOWNS) + random.normal(0, 12, _TOWNS)], 1)
    homes = towns[random.integers(0, _TOWNS, species)][of]  # (count, 2), degrees
    crowds = towns[random.choice(_TOWNS, count, p=_power(_TOWNS))]
    wide, dense = homes + random.normal(0, 5, (count, 2)), crowds + random.normal(0, 0.1, (count, 2))
    place = np.where(random.random((count, 1)) < 0.3, wide, dense)
    day = np.datetime64("2021-01-01") + random.integers(0, 365 * 3, count) - 2000 * (wrong == "year")
    columns = {
        "observation_uuid": [UUID(bytes=random.bytes(16)) for _ in range(count)],
        "observer_id": (random.random(count) ** 2 * people).astype(int) + 1,
        "latitude": np.where(wrong == "position", None, np.clip(place[:, 0], -90, 90).round(5)),
        "longitude": np.where(wrong == "position", None, ((place[:, 1] + 180) % 360 - 180).round(5)),
        "positional_accuracy": random.choice([5, 50, 500, 28_000], count, p=[0.5, 0.3, 0.15, 0.05]),
        "taxon_id": _taxon_of(random, of),
        "quality_grade": np.where(wrong == "grade", "casual", "research"),
        "observed_on": np.where(wrong == "day", None, day.astype(str)),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _power(count: int) -> NDArray[np.float64]:
    share = 1 / np.arange(2, count + 2)
    return np.asarray(share / share.sum())


def _taxon_of(random: np.random.Generator, species: NDArray[np.int64]) -> NDArray[np.int64]:
    """The taxon of today: renamed, one of the two parts of the split, or what the two merged into."""
    taxon = _SPECIES + 10 * np.where(species == LOST, MERGED, species)
    return taxon + (species == RENAMED) + (species == SPLIT) * random.integers(1, 3, len(species))


def _photos(seen: list[dict[str, Any]], wrong: Any) -> list[dict[str, Any]]:
    found = []
    for number, (row, fault) in enumerate(zip(seen, wrong, strict=True)):
        about = {"observation_uuid": row["observation_uuid"], "observer_id": row["observer_id"], "extension": "jpg"}
        about |= {"license": None if fault == "licence" else _LICENCES[number % 4], "width": 800, "height": 600}
        for position in range({"photo": 0, "second": 2}.get(fault, 1)):
            id = 10 * number + position
            found.append({"photo_uuid": UUID(int=id), "photo_id": id, **about, "position": position})
    return found


def _lists(folder: Path, species: int) -> None:
    taxa = [*_TREE, *((_GENUS + genus, "1/2/3/4/5", 20, "genus", _genus(genus)) for genus in range(species // 10 + 1))]
    for number in range(species):
        if number != GONE:
            taxa.append((_SPECIES + 10 * number, _ancestry(number), 10, "species", _name(number)))
    new = ((RENAMED, 1, "Novus nominatus"), (SPLIT, 1, "Pars prima"), (SPLIT, 2, "Pars altera"))
    taxa += [(_SPECIES + 10 * number + more, _ancestry(number), 10, "species", name) for number, more, name in new]
    old = {_SPECIES + 10 * number for number in (RENAMED, SPLIT, LOST)}
    names = ("taxon_id", "ancestry", "rank_level", "rank", "name", "active")
    rows = ((*taxon, str(taxon[0] not in old).lower()) for taxon in taxa)
    tsv(folder / "taxa.csv.gz", [dict(zip(names, row, strict=True)) for row in rows])
    write_csv(folder / "targets.csv", [("id", "name"), *((number, _name(number)) for number in range(species))])
    renamed, split, lost, merged = (_SPECIES + 10 * number for number in (RENAMED, SPLIT, LOST, MERGED))
    changes = [(renamed, renamed + 1, "rename"), (split, split + 1, "split"), (split, split + 2, "split")]
    write_csv(folder / "mapping.csv", [("old", "new", "kind"), *changes, (lost, merged, "merge")])


def _ancestry(number: int) -> str:
    return f"1/2/3/4/5/{_GENUS + number // 10}"


def _genus(number: int) -> str:
    return "G" + _letters(number)


def _name(number: int) -> str:
    return f"{_genus(number // 10)} s{_letters(number)}"


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:05d}")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
