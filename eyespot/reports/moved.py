"""What moved between two runs: for each query the first images of the one above the first images of the other.

    pair = Pair(("plain", "adapted"), (plain, adapted), qrels)
    write_html(Path("moved.html"), "Plain and adapted", [Section(pair, query, text) for query, text in chosen.items()])

Relevant images are told by a solid frame with a tick, judged ones that are not relevant by a dashed frame with a cross,
so that no reader depends on the colours. The page needs nothing beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from eyespot.html import img, render
from eyespot.metrics import Compared
from eyespot.search.contact_sheet import NOTHING
from eyespot.search.sheets import thumbnail_of
from eyespot.storage.files import write_whole
from eyespot.types import Qrels, Run, UsageError

SIDE = 240  # pixels of a thumbnail's longer side
ALIKE = "No query moved."
GALLERY_ID = "gallery:"  # before the gallery's id of an image that the judgements do not know


class RunPair(NamedTuple):
    """Two runs with their names, what is relevant (a grade of `rel` or more), and how many images are shown of each."""

    names: tuple[str, str]
    runs: tuple[Run, Run]
    qrels: Qrels
    rel: int = 1
    depth: int = 10


class Section(NamedTuple):
    """One query of the page, under a heading and a note."""

    pair: RunPair
    query: str
    heading: str
    note: str = ""


class Picture(NamedTuple):
    """Where an image lies, and what it is called."""

    path: str | None
    title: str


def sections(pair: RunPair, compared: Compared, most: int = 6, texts: Mapping[str, str] | None = None) -> list[Section]:
    """The `most` largest losses, the largest first, then the `most` largest gains; `texts` says what queries ask."""
    moves = [*compared.down(most), *compared.up(most)]
    headings, chosen = texts or {}, []
    for move in moves:
        change = f"{move.baseline:.4f} → {move.value:.4f} ({_signed(move.difference)})"
        note = f"{'▲' if move.difference > 0 else '▼'} {compared.measure} {change}"
        chosen.append(Section(pair, move.query, headings.get(move.query, move.query), note))
    return chosen


def _signed(number: float) -> str:
    return f"{number:+.4f}".replace("-", "−")


def summary(compared: Compared) -> str:
    """One line about all queries of a comparison."""
    (before, after), (low, high) = compared.means, compared.interval
    return (
        f"{compared.measure} of {compared.run}: {before:.4f} → {after:.4f} ({_signed(compared.difference)}, "
        f"95% interval {_signed(low)} to {_signed(high)}, corrected p = {compared.corrected_p:.2g}); "
        f"{compared.wins} queries won, {compared.losses} lost, {compared.ties} tied"
    )


# -- where images lie ---------------------------------------------------------------------------------------


def shown_images(chosen: Iterable[Section]) -> list[str]:
    """The images that these sections show, each once."""
    return list(dict.fromkeys(tile.image for section in chosen for run in (0, 1) for tile in _tiles(section, run)))


def from_gallery(gallery: Path, images: Iterable[str]) -> dict[str, Picture]:
    """Those images that a gallery has, told by id, path, file name or file stem, whichever tells most of them."""
    from eyespot.gallery.view import Gallery
    from eyespot.search.matching import matched

    opened = Gallery(gallery)
    view = opened.view(opened.stem())
    asked = list(images)
    own = {image.removeprefix(GALLERY_ID): image for image in asked if image.startswith(GALLERY_ID)}
    matchings = matched(view, [image for image in asked if image not in own.values()]), matched(view, own, "id")
    pairs = (pair for each in matchings for pair in zip(each.names, each.rows.tolist(), strict=True))
    rows = {own.get(name, name): row for name, row in pairs if row >= 0}
    pictures = {}
    for image, facts in zip(rows, view.facts([*rows.values()]), strict=True):
        path = facts["path"]
        pictures[image] = Picture(path, str(facts.get("title") or (Path(path).stem if path else facts["id"])))
    return pictures


def from_folder(folder: Path, images: Iterable[str]) -> dict[str, Picture]:
    """Those images that a folder has: by path below it, with or without ending, else by file name or stem.

    A name that two files answer to in the same way shows neither. Raises `UsageError` if there is no such folder.
    """
    from eyespot.gallery.photos.names import real_name, stored_name
    from eyespot.gallery.photos.sources import Root, Seen, scan

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name one that holds the images with --images")
    wanted = set(images)
    ways: list[dict[str, list[str]]] = [{} for _ in _SPELLINGS]
    for seen in scan(Root(stored_name(str(folder)), "folder")):
        if isinstance(seen, Seen):
            for way, spelled in zip(ways, _SPELLINGS, strict=True):
                if (name := spelled(PurePosixPath(seen.path))) in wanted:
                    way.setdefault(name, []).append(seen.path)
    pictures = {}
    for image in sorted(wanted):
        paths: Sequence[str] = next((way[image] for way in ways if image in way), ())
        if len(paths) == 1:
            pictures[image] = Picture(str(folder / real_name(paths[0])), image)
    return pictures


_SPELLINGS: tuple[Callable[[PurePosixPath], str], ...] = (
    str,
    lambda path: str(path.with_suffix("")),
    lambda path: path.name,
    lambda path: path.stem,
)


# -- the page -----------------------------------------------------------------------------------------------


def write_html(
    place: Path,
    title: str,
    chosen: Sequence[Section],
    pictures: Mapping[str, Picture] | None = None,
    intro: Sequence[str] = (),
) -> None:
    """The page of `as_html` on disk, whole or not at all."""
    html = as_html(title, chosen, pictures, intro).encode()
    write_whole(place, lambda file: file.write(html))


def as_html(
    title: str,
    chosen: Sequence[Section],
    pictures: Mapping[str, Picture] | None = None,
    intro: Sequence[str] = (),
) -> str:
    """One self-contained page with a section for each query; an image without a picture is shown by its id.

    `pictures` come from `from_gallery` or `from_folder`; `intro` are sentences above the sections.
    """
    looks = {}
    for image, picture in (pictures or {}).items():
        if box := img(thumbnail_of(picture.path, SIDE), picture.title):
            looks[image] = (box, picture.title)
    content = {"title": title, "intro": intro, "sections": chosen, "looks": looks, "footer": ""}
    return render("moved.html", sides=_sides, alike=ALIKE, nothing=NOTHING, **content)


class _Tile(NamedTuple):
    """An image of one run: its ranks in both, None where a run lacks it, its mark, and its grade (0: unjudged)."""

    image: str
    ranks: tuple[int | None, int | None]
    mark: str
    grade: int

    @property
    def change(self) -> str:
        """How far the second run moved it."""
        before, after = self.ranks
        if before is None or after is None:
            return "new" if before is None else "gone"
        up = before - after
        return f"▲ {up}" if up > 0 else f"▼ {-up}" if up < 0 else "="

    def places(self, names: tuple[str, str]) -> str:
        """Its rank in each run that has it."""
        return ", ".join(f"rank {rank} in {name}" for name, rank in zip(names, self.ranks, strict=True) if rank)


class _Side(NamedTuple):
    """One run of a section: its number, its name, its first images, and how many of the relevant ones are there."""

    run: int
    name: str
    tiles: list[_Tile]
    relevant: str


def _sides(section: Section) -> list[_Side]:
    relevant = sum(grade >= section.pair.rel for grade in _grades(section).values())
    sides = []
    for run, name in enumerate(section.pair.names):
        tiles = _tiles(section, run)
        there = sum(tile.mark == "relevant" for tile in tiles)
        sides.append(_Side(run, name, tiles, f"{there} of {relevant} relevant"))
    return sides


def _tiles(section: Section, run: int) -> list[_Tile]:
    grades, rel = _grades(section), section.pair.rel
    ranks = [  # of each image in both runs, best first
        {hit.image: rank for rank, hit in enumerate(ranked.get(section.query, ()), 1)} for ranked in section.pair.runs
    ]
    tiles = []
    for image in list(ranks[run])[: section.pair.depth]:
        grade = grades.get(image, -1)
        mark = "unjudged" if grade < 0 else "relevant" if grade >= rel else "wrong"
        tiles.append(_Tile(image, (ranks[0].get(image), ranks[1].get(image)), mark, grades.get(image, 0)))
    return tiles


def _grades(section: Section) -> Mapping[str, int]:
    return section.pair.qrels.get(section.query, {})
