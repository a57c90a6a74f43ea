"""How well words beside the photos, and photos that bear them, answer a query: AP, not time.

Birds: chilean_birds among open_wildlife and the sample photos; half of the birds lose their labels, by ten seeds. A
query is a name of a species that some photos still bear and others lost: AP of those that lost it, without the photos
that bear it, by Latin, English and Spanish names. A ratio is 0.57 over ours: the goal is 1. Beside it, the share of
queries where not every labelled photo stands before all others.
Captions: a caption of flickr8k_100 finds its photo (RR) where the photos bear their other four captions, and where
every second one bears one; a title of the sample photos finds its photo. The ratio is the better of look and words
alone over both; beside it the difference with its 95 % interval (paired bootstrap over the queries).
Names: the same birds, half of which bear their Latin names and no others; a query by a Latin, English or Spanish name
with and without a table that says which names are equal. AP of all photos of the species, labelled or not.
Unknown words: queries of which no word stands beside a photo; the share that look and both rank differently.

    python bench/words.py [--quick] [--json]
"""

from __future__ import annotations

import csv
import hashlib
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import eyespot
from bench.harness import Command, Measurement, Reals, metadata, shared
from eyespot import sample
from eyespot.gallery.indexing import index
from eyespot.gallery.taxonomy.name_index import add_names
from eyespot.search.chain import chain_of
from eyespot.search.word_matches import word_matches
from eyespot.settings.search import RankingSettings, Way
from eyespot.types import Encoder, Query, Run

SEEDS = 10
GOAL = 0.57  # AP of the birds whose labels are hidden
NAMES = ("latin_name", "english_name", "spanish_name")
SLACK = 0.01  # that both may lose to the better of look and words
EXPERTS = (
    "an animal eating its prey",
    "nest with eggs seen from above",
    "courtship display of two males",
    "parasites on the skin",
    "camouflaged among leaves",
    "swimming under water",
    "flock flying in formation",
    "leg band visible",
    "juvenile begging for food",
    "bioluminescence at night",
)
Row = dict[str, str]


@dataclass(frozen=True)
class PhotoSet:
    """Photos under one folder of links, with a table of labels that can be written again, and their gallery."""

    folder: Path
    encoder: Encoder

    def add(self, name: str, photo: Path) -> None:
        place = self.folder / "x" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(photo.resolve())

    def label(self, rows: Sequence[Row]) -> None:
        """Give the photos these labels and no others; embedded they are once."""
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with (self.folder / "x" / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        index(self.folder / "gallery", [str(self.folder / "x")], [self.encoder])

    def rankings(self, texts: Mapping[str, str], by: Way, named: bool = False) -> dict[str, list[str]]:
        """The names of all photos for each text, best first."""
        collection = eyespot.open(self.folder / "gallery")
        mask = collection.allowed()
        stage = chain_of(collection, RankingSettings(by=by), k=int(mask.sum()), mask=mask, named=named)
        run: Run = stage([Query.words(text, name) for name, text in texts.items()])
        name_of = {id: Path(facts["path"]).name for id, facts in run.facts.items()}
        return {query: [name_of[hit.image] for hit in run[query]] for query in run}


@dataclass(frozen=True, kw_only=True)
class Quality(Measurement):
    """The means beside the ratio, and the difference to the better peer with its interval."""

    means: dict[str, float]
    difference: tuple[float, float, float] | None = None

    def __str__(self) -> str:
        means = ", ".join(f"{name} {mean:.3f}" for name, mean in self.means.items())
        tail = "" if self.difference is None else "; {:+.3f} [{:+.3f}, {:+.3f}]".format(*self.difference)
        return f"{super().__str__()} ({means}{tail})"


def average_precision(ranking: Sequence[str], relevant: set[str]) -> float:
    hits = np.cumsum([name in relevant for name in ranking])
    ranks = np.flatnonzero([name in relevant for name in ranking])
    return float((hits[ranks] / (ranks + 1)).sum() / len(relevant))


def resampled(values: Reals, draws: int) -> Reals:
    """The mean of each resample of the queries, (draws,)."""
    picks = np.random.default_rng(0).integers(0, len(values), (draws, len(values)))
    return np.asarray(values[picks].mean(axis=1))


# -- labels teach ---------------------------------------------------------------------------------------------------


def file_name(row: Row) -> str:
    """A name that says nothing: the photos' own hold the Latin name."""
    return hashlib.sha256(row["file"].encode()).hexdigest()[:12] + Path(row["file"]).suffix


def bird_photos(photos: PhotoSet) -> list[Row]:
    """The rows of the birds; they and the photos that are no birds stand in the set."""
    table = metadata(shared("data/chilean_birds"))
    for row in table:
        photos.add(file_name(row), shared("data/chilean_birds") / row["file"])
    others = [*sorted(sample.photos().glob("*.jpg")), *sorted((shared("data/open_wildlife") / "images").iterdir())]
    for number, place in enumerate(others):
        photos.add(f"o{number:04d}{place.suffix}", place)
    return table


def birds(photos: PhotoSet, quick: bool) -> Iterator[Measurement]:
    table = bird_photos(photos)
    ways: tuple[Way, ...] = ("look", "both")
    values: dict[tuple[str, Way], list[float]] = {(name, by): [] for name in NAMES for by in ways}
    sizes: dict[str, list[int]] = {name: [] for name in NAMES}  # of the species of each query
    behind: list[float] = []
    for seed in range(2 if quick else SEEDS):
        labelled = set(np.random.default_rng(seed).permutation(len(table))[: len(table) // 2].tolist())
        bearing = [row for number, row in enumerate(table) if number in labelled]
        photos.label([{"file_name": file_name(row), **{name: row[name] for name in NAMES}} for row in bearing])
        for (name, by), found in values.items():
            groups = {word: species(table, name, word, labelled) for word in sorted({row[name] for row in table})}
            queries = {word: word for word, parts in groups.items() if all(parts)}
            for word, ranking in photos.rankings(queries, by).items():
                mine, lost = groups[word]
                found.append(average_precision([photo for photo in ranking if photo not in mine], lost))
                behind += [float(set(ranking[: len(mine)]) != mine)] if by == "both" else []
                sizes[name] += [len(mine) + len(lost)] if by == "both" else []
    for name in NAMES:
        for least, what in ((2, "all"), (3, "of three photos and more")):
            wanted = np.array(sizes[name]) >= least
            ours, look = (np.array(values[name, by])[wanted] for by in ("both", "look"))
            p10, p90 = np.percentile(GOAL / resampled(ours, 200), (10, 90)).tolist()
            means = {"both": float(ours.mean()), "look": float(look.mean())}
            title, mean = f"birds {name} AP, {what}", means["both"]
            yield Quality(title, GOAL / mean, f"AP {GOAL}", p10, p90, len(ours), 1.0, means=means)
    yield Measurement.from_mean("birds labelled photos behind others", behind, "all queries", 0.0)


def equal_names(photos: PhotoSet, quick: bool) -> Iterator[Measurement]:
    table = bird_photos(photos)
    values: dict[tuple[str, bool], list[float]] = {(name, named): [] for name in NAMES for named in (False, True)}
    for seed in range(2 if quick else SEEDS):
        labelled = set(np.random.default_rng(seed).permutation(len(table))[: len(table) // 2].tolist())
        bearing = [row for number, row in enumerate(table) if number in labelled]
        photos.label([{"file_name": file_name(row), "latin_name": row["latin_name"]} for row in bearing])
        add_names(photos.folder / "gallery", shared("data/chilean_birds") / "metadata.csv")
        for (name, named), found in values.items():
            groups = {word: species(table, name, word, labelled) for word in sorted({row[name] for row in table})}
            queries = {word: word for word, parts in groups.items() if all(parts)}
            rankings = photos.rankings(queries, "both", named)
            found += [average_precision(ranking, set().union(*groups[word])) for word, ranking in rankings.items()]
    for name in NAMES:
        without, ours = (np.array(values[name, named]) for named in (False, True))
        ratios = resampled(without, 200) / resampled(ours, 200)
        p10, p90 = np.percentile(ratios, (10, 90)).tolist()
        low, high = np.percentile(resampled(ours - without, 200), (2.5, 97.5)).tolist()
        means = {"with names": float(ours.mean()), "without": float(without.mean())}
        difference = (float((ours - without).mean()), low, high)
        ratio = means["without"] / means["with names"]
        yield Quality(
            f"equal names, asked by {name}", ratio, "without names", p10, p90, len(ours), 1.03, means=means,
            difference=difference,
        )  # fmt: skip


def species(table: Sequence[Row], column: str, name: str, labelled: set[int]) -> tuple[set[str], set[str]]:
    """The photos of a species: those that bear its name, and those that lost it."""
    parts: tuple[set[str], set[str]] = (set(), set())
    for number, row in enumerate(table):
        if row[column] == name:
            parts[number not in labelled].add(file_name(row))
    return parts


# -- one ranking out of both ----------------------------------------------------------------------------------------


def fusion(name: str, photos: PhotoSet, texts: Mapping[str, str], draws: int) -> Measurement:
    """Each text belongs to the photo whose name is its key: RR of look, words and both."""
    found = {by: photos.rankings(texts, by) for by in ("look", "words", "both")}
    values = {by: np.array([average_precision(its[photo], {photo}) for photo in texts]) for by, its in found.items()}
    means = {by: float(its.mean()) for by, its in values.items()}
    better = max(("look", "words"), key=means.__getitem__)
    difference = values["both"] - values[better]
    low, high = np.percentile(resampled(difference, draws), (2.5, 97.5)).tolist()
    ratios = resampled(values[better], draws) / resampled(values["both"], draws)
    p10, p90 = np.percentile(ratios, (10, 90)).tolist()
    goal = means[better] / max(means[better] - SLACK, 1e-9)
    ratio = means[better] / means["both"]
    return Quality(
        name, ratio, f"{better} alone", p10, p90, len(texts), goal, means=means,
        difference=(float(difference.mean()), low, high),
    )  # fmt: skip


def captions(photos: PhotoSet, quick: bool) -> Iterator[Measurement]:
    table, draws = metadata(shared("data/flickr8k_100")), 200 if quick else 2000
    names = [Path(row["file"]).name for row in table]
    for name, row in zip(names, table, strict=True):
        photos.add(name, shared("data/flickr8k_100") / row["file"])
    for caption in (1,) if quick else (1, 2, 3, 4, 5):
        texts = {name: row[f"caption_{caption}"] for name, row in zip(names, table, strict=True)}
        rest = [f"caption_{number}" for number in range(1, 6) if number != caption]
        bearing = zip(names, table, strict=True)
        photos.label([{"file_name": name, **{column: row[column] for column in rest}} for name, row in bearing])
        yield fusion(f"caption {caption}, photos bear the other four", photos, texts, draws)
        pairs = list(zip(names, table, strict=True))[::2]
        photos.label([{"file_name": name, "caption": row[rest[0]]} for name, row in pairs])
        yield fusion(f"caption {caption}, every second photo bears another", photos, texts, draws)


def titles(photos: PhotoSet, quick: bool) -> Iterator[Measurement]:
    table = metadata(sample.photos())
    names = [f"{number:04d}{Path(row['file_name']).suffix}" for number, row in enumerate(table)]
    for name, row in zip(names, table, strict=True):
        photos.add(name, sample.photos() / row["file_name"])
    photos.label([{"file_name": name, "title": row["title"]} for name, row in zip(names, table, strict=True)])
    titled = {name: row["title"] for name, row in zip(names, table, strict=True) if row["title"]}
    yield fusion("sample photos by their titles", photos, titled, 200 if quick else 2000)
    collection = eyespot.open(photos.folder / "gallery")
    matches = {text: word_matches(collection.words, collection.view, Query.words(text)).rows for text in EXPERTS}
    unknown = {text: text for text, rows in matches.items() if not len(rows)}
    look, both = photos.rankings(unknown, "look"), photos.rankings(unknown, "both")
    differ = [float(look[text] != both[text]) for text in unknown]
    yield Measurement.from_mean("queries without label words ranked otherwise than by look", differ, "look", 0.0)


def measurements(options: Namespace) -> Iterator[Measurement]:
    encoder = eyespot.load_encoder("starter")
    for measure in (titles, captions, birds, equal_names):
        yield from measure(PhotoSet(options.folder / measure.__name__, encoder), options.quick)


if __name__ == "__main__":
    Command(__doc__, quick="fewer seeds, captions and draws").run(measurements)
