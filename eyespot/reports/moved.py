"""What moved between two runs: for each query the first images of the one above the first images of the other.

    pair = Pair(("plain", "adapted"), (plain, adapted), qrels)
    page = as_html("Plain and adapted", [Section(pair, query, text) for query, text in chosen.items()])

Relevant images are told by a solid frame with a tick, judged ones that are not relevant by a dashed frame with a cross,
so that no reader depends on the colours. The page needs nothing beside it; with the address of a running `eyespot
serve` its queries and pictures link into that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from eyespot.html import img, photo_address, render
from eyespot.metrics import Compared
from eyespot.search.contact_sheet import NOTHING, thumbnail_of
from eyespot.types import Qrels, Run, UsageError, quantity

if TYPE_CHECKING:
    from markupsafe import Markup

SIDE = 240  # pixels of a thumbnail's longer side
ALIKE = "No query moved."
MOST_FILES = 200_000  # of a folder that are looked through for pictures
GALLERY_ID = "gallery:"  # before the gallery's id of an image that the judgements do not know


@dataclass(frozen=True)
class RunPair:
    """Runs with their names, what is relevant (a grade of `rel` or more), and how many images are shown of each.

    Mostly two; one alone is shown without changes, and of more each is compared with the first.
    """

    names: tuple[str, ...]
    runs: tuple[Run, ...]
    qrels: Qrels
    rel: int = 1
    depth: int = 10


@dataclass(frozen=True)
class Section:
    """One query of the page, under a heading and a note.

    `words` are what a search for it says, where it has words; `address` is that search in a running page.
    """

    pair: RunPair
    query: str
    heading: str
    note: str = ""
    words: str = ""
    address: str = ""

    def address_of(self, photo: str) -> str:
        """The address of a photo of a running page, within this search."""
        return photo and f"{photo}?{urlsplit(self.address).query}".rstrip("?")


@dataclass(frozen=True)
class Picture:
    """Where an image lies, what it is called, its id in a gallery, and its address in a running page."""

    path: str | None
    title: str
    id: str | None = None
    address: str = ""


def sections(pair: RunPair, compared: Compared, most: int = 6, texts: Mapping[str, str] | None = None) -> list[Section]:
    """The `most` largest losses, the largest first, then the `most` largest gains; `texts` says what queries ask."""
    moves = [*compared.down(most), *compared.up(most)]
    headings, chosen = texts or {}, []
    for move in moves:
        change = f"{move.baseline:.4f} → {move.value:.4f} ({_signed(move.difference)})"
        note = f"{'▲' if move.difference > 0 else '▼'} {compared.measure} {change}"
        words = headings.get(move.query, "")
        chosen.append(Section(pair, move.query, words or move.query, note, words))
    return chosen


def _signed(number: float) -> str:
    return f"{number:+.4f}".replace("-", "−")


def summary(compared: Compared) -> str:
    """One line about all queries of a comparison."""
    (before, after), (low, high) = compared.means, compared.interval
    spread = "no interval" if low != low else f"95% interval {_signed(low)} to {_signed(high)}"
    return (
        f"{compared.measure} of {compared.run}: {before:.4f} → {after:.4f} ({_signed(compared.difference)}, "
        f"{spread}, corrected p = {compared.corrected_p:.2g}); "
        f"{quantity(compared.wins, 'query')} won, {compared.losses} lost, {compared.ties} tied"
    )


# -- where images lie ---------------------------------------------------------------------------------------


def shown_images(chosen: Iterable[Section]) -> list[str]:
    """The images that these sections show, each once."""
    strips = (strip for section in chosen for strip in [*sides_of(section), missed_of(section)])
    return list(dict.fromkeys(tile.image for strip in strips for tile in strip.tiles))


def from_gallery(gallery: Path, images: Iterable[str]) -> dict[str, Picture]:
    """Those images that a gallery has, told by id, path, file name or file stem, whichever tells most of them."""
    from eyespot.gallery.view import Gallery
    from eyespot.search.matching import matched

    opened = Gallery(gallery)
    view = opened.view(opened.stem())
    names = list(images)
    of_gallery = {image.removeprefix(GALLERY_ID): image for image in names if image.startswith(GALLERY_ID)}
    others = [image for image in names if image not in of_gallery.values()]
    matchings = matched(view, others), matched(view, of_gallery, "id")
    pairs = (pair for each in matchings for pair in zip(each.names, each.rows.tolist(), strict=True))
    rows = {of_gallery.get(name, name): row for name, row in pairs if row >= 0}
    pictures = {}
    for image, facts in zip(rows, view.facts([*rows.values()]), strict=True):
        path = facts["path"]
        title = str(facts.get("title") or (Path(path).stem if path else facts["id"]))
        pictures[image] = Picture(path, title, str(facts["id"]))
    return pictures


def from_folder(folder: Path, images: Iterable[str]) -> dict[str, Picture]:
    """Those images that a folder has: by path below it, with or without ending, else by file name or stem.

    A name that two files answer to in the same way shows neither. Of a very large folder only the first 200,000 files
    are looked at. Raises `UsageError` if the folder is missing.
    """
    from eyespot.photos.found import Seen
    from eyespot.photos.names import real_name, stored_name
    from eyespot.photos.places import Root
    from eyespot.photos.sources import scan

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name one that holds the images with --images")
    wanted = set(images)
    ways: list[dict[str, list[str]]] = [{} for _ in _SPELLINGS]
    for seen in islice(scan(Root(stored_name(str(folder)), "folder")), MOST_FILES):
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


def as_html(
    title: str, chosen: Sequence[Section], pictures: Mapping[str, Picture] | None = None, intro: Sequence[str] = ()
) -> str:
    """One self-contained page with a section for each query; an image without a picture is shown by its id.

    `pictures` come from `from_gallery` or `from_folder`; `intro` are sentences above the sections.
    """
    content = {"title": title, "intro": intro, "sections": chosen, "looks": shown_pictures(pictures or {})}
    return render("moved.html", alike=ALIKE, footer="", **content, **KIT)


@dataclass(frozen=True)
class ShownPicture:
    """An image as a page shows it: its picture, what it is called, and its address in a running page."""

    box: Markup
    title: str
    address: str


def shown_pictures(pictures: Mapping[str, Picture], side: int = SIDE, most: float = inf) -> dict[str, ShownPicture]:
    """The pictures that can be read, at most `side` pixels long, until together they have `most` bytes."""
    shown: dict[str, ShownPicture] = {}
    taken = 0
    for image, picture in pictures.items():
        small = thumbnail_of(picture.path, side) if taken < most else None
        if box := img(small, picture.title):
            taken += len(box)
            shown[image] = ShownPicture(box, picture.title, picture.address)
    return shown


def linked(
    page: str, chosen: Iterable[Section], pictures: Mapping[str, Picture]
) -> tuple[list[Section], dict[str, Picture]]:
    """Sections and pictures with their addresses in the running page at `page`; as they are where that is empty."""
    if not page:
        return list(chosen), dict(pictures)
    parts = [replace(one, address=f"{page}/?{urlencode({'q': one.words})}" if one.words else "") for one in chosen]
    photos = {
        image: replace(one, address=photo_address(page, one.id)) if one.id else one for image, one in pictures.items()
    }
    return parts, photos


# -- strips of images ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tile:
    """An image of a strip: its rank in each run, None where a run lacks it, its mark, and its grade (0: unjudged)."""

    image: str
    ranks: tuple[int | None, ...]
    mark: str
    grade: float
    run: int = 0  # whose strip it stands in

    @property
    def change(self) -> str:
        """How far a run moved it from the first one; in the first, how far the second moved it."""
        if len(self.ranks) < 2 or (self.run == 0 and len(self.ranks) > 2):
            return ""
        before, after = self.ranks[0], self.ranks[self.run or 1]
        if before is None or after is None:
            return "new" if before is None else "gone"
        up = before - after
        return f"▲ {up}" if up > 0 else f"▼ {-up}" if up < 0 else "="

    def places(self, names: Sequence[str]) -> str:
        """Its rank in each run that has it."""
        ranks = [f"rank {rank} in {name}" for name, rank in zip(names, self.ranks, strict=True) if rank]
        return ", ".join(ranks) or "in no ranking"

    @property
    def numbers(self) -> str:
        """Its ranks alone, in the order of the runs."""
        return ", ".join("–" if rank is None else str(rank) for rank in self.ranks)


@dataclass(frozen=True)
class ImageStrip:
    """Images side by side: of which run, its name, the images, and how many of the relevant ones are there."""

    run: int
    name: str
    tiles: list[_Tile]
    relevant: str


def sides_of(section: Section) -> list[ImageStrip]:
    """The first images of each run."""
    ranks, relevant = _ranks(section), len(_relevant(section))
    sides = []
    for run, name in enumerate(section.pair.names):
        tiles = [_tile(section, ranks, image, run) for image in list(ranks[run])[: section.pair.depth]]
        there = sum(tile.mark == "relevant" for tile in tiles)
        sides.append(ImageStrip(run, name, tiles, f"{there} of {relevant} relevant"))
    return sides


def missed_of(section: Section) -> ImageStrip:
    """Relevant images that no run has among its first ones, the furthest down first, at most as many as those."""
    ranks, depth = _ranks(section), section.pair.depth

    def best(image: str) -> int | None:
        return min((rank[image] for rank in ranks if image in rank), default=None)

    lost = [image for image in _relevant(section) if (best(image) or inf) > depth]
    lost.sort(key=lambda image: -(best(image) or inf))
    tiles = [_tile(section, ranks, image, 0) for image in lost[:depth]]
    caption = f"{len(lost)} relevant beyond the first {depth}" + (f"; the last {depth}" if len(lost) > depth else "")
    if len(ranks) > 1:
        caption += f"; ranks in {', '.join(section.pair.names)}"
    return ImageStrip(-1, "missed", tiles, caption)


def _tile(section: Section, ranks: Sequence[Mapping[str, int]], image: str, run: int) -> _Tile:
    grades, rel = _grades(section), section.pair.rel
    grade = grades.get(image, -1)
    mark = "unjudged" if grade < 0 else "relevant" if grade >= rel else "wrong"
    return _Tile(image, tuple(rank.get(image) for rank in ranks), mark, grades.get(image, 0), run)


def _ranks(section: Section) -> list[dict[str, int]]:
    """The rank of each image in each run, best first."""
    runs = (ranked.get(section.query, ()) for ranked in section.pair.runs)
    return [{hit.image: rank for rank, hit in enumerate(hits, 1)} for hits in runs]


def _relevant(section: Section) -> list[str]:
    return [image for image, grade in _grades(section).items() if grade >= section.pair.rel]


def _grades(section: Section) -> Mapping[str, float]:
    return section.pair.qrels.get(section.query, {})


KIT = {"sides": sides_of, "missed_of": missed_of, "nothing": NOTHING}  # what the templates of strips call
