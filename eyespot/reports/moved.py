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

from eyespot.metrics import Compared, Move
from eyespot.search.contact_sheet import NOTHING, img, page, safe
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
    headings = texts or {}
    return [Section(pair, m.query, headings.get(m.query, m.query), _move_text(m, compared)) for m in moves]


def _move_text(move: Move, compared: Compared) -> str:
    arrow = "▲" if move.difference > 0 else "▼"
    return f"{arrow} {compared.measure} {move.baseline:.4f} → {move.value:.4f} ({_signed(move.difference)})"


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
    from eyespot.gallery.photos.sources import Root, Seen, scan

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name one that holds the images with --images")
    wanted = set(images)
    ways: list[dict[str, list[str]]] = [{} for _ in _SPELLINGS]
    for seen in scan(Root(str(folder), "folder")):
        if isinstance(seen, Seen):
            for way, spelled in zip(ways, _SPELLINGS, strict=True):
                if (name := spelled(PurePosixPath(seen.path))) in wanted:
                    way.setdefault(name, []).append(seen.path)
    places = ((image, _only_one(image, ways)) for image in sorted(wanted))
    return {image: Picture(str(folder / place), image) for image, place in places if place is not None}


_SPELLINGS: tuple[Callable[[PurePosixPath], str], ...] = (
    str,
    lambda path: str(path.with_suffix("")),
    lambda path: path.name,
    lambda path: path.stem,
)


def _only_one(image: str, ways: Sequence[Mapping[str, Sequence[str]]]) -> str | None:
    found = next((way[image] for way in ways if image in way), ())
    return found[0] if len(found) == 1 else None


# -- the page -----------------------------------------------------------------------------------------------

_STYLE = """\
:root { --good: #0072b2; --bad: #c04f00 }
@media (prefers-color-scheme: dark) { :root { --good: #56b4e9; --bad: #e69f00 } }
main > p { margin-top: .6rem; color: var(--soft); overflow-wrap: anywhere }
h3 { margin: .9rem 0 .35rem; font-size: .95rem; overflow-wrap: anywhere }
h3 small { font-weight: normal; color: var(--soft) }
section .asked { margin-bottom: .5rem }
.side { overflow-x: auto; padding-bottom: .3rem }
.side ol { grid-auto-flow: column; grid-template-columns: none; gap: .5rem;
  grid-auto-columns: max(7.2rem, calc((100% - 4.5rem) / 10)) }
.side figure { border-radius: .5rem }
.side .mat { position: relative; padding: .3rem; font-size: .75rem; overflow-wrap: anywhere }
.side figcaption { padding: .35rem .45rem .45rem }
.side .facts { gap: .3rem; font-size: .75rem }
.side .title { font-size: .75rem }
.relevant figure { border: 3px solid var(--good) }
.wrong figure { border: 3px dashed var(--bad) }
.sign { display: inline-block; min-width: 1.35rem; padding: 0 .35rem; text-align: center; font: bold .8rem/1.35rem
  system-ui, sans-serif; color: var(--page) }
.relevant .sign { border-radius: .7rem; background: var(--good) }
.wrong .sign { background: var(--bad) }
.relevant .id, .wrong .id { padding-top: 1.2rem }
.mat .sign { position: absolute; top: .25rem; right: .25rem }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem }
"""

_LEGEND = (
    '<p class="legend"><span class="relevant"><span class="sign">✓</span> solid frame: relevant</span>'
    '<span class="wrong"><span class="sign">×</span> dashed frame: judged, not relevant</span>'
    "<span>plain: not judged</span><span>▲ ▼: ranks gained and lost; new, gone: ranked by one run only</span></p>\n"
)


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
    images = shown_images(chosen)
    looks_pictures = pictures or {}
    known = {image: looks_pictures[image] for image in images if image in looks_pictures}
    boxes = {image: img(thumbnail_of(picture.path, SIDE), picture.title) for image, picture in known.items()}
    seen = {image: (box, safe(known[image].title)) for image, box in boxes.items() if box}
    looks = {image: (f'<span class="id">{safe(image)}</span>', "") for image in images} | seen
    sentences = "".join(f'<p dir="auto">{safe(sentence)}</p>\n' for sentence in intro)
    body = "".join(_section(section, looks) for section in chosen) or f'<p class="none">{ALIKE}</p>\n'
    return page(title, sentences + _LEGEND + body, style=_STYLE)


def _section(section: Section, looks: Mapping[str, tuple[str, str]]) -> str:
    note = f'<p class="note" dir="auto">{safe(section.note)}</p>' if section.note else ""
    heading = f'<div class="asked"><div><h2 dir="auto">{safe(section.heading)}</h2>{note}</div></div>'
    both = (_side(section, run, looks) for run in (0, 1))
    return f"<section>\n{heading}\n{''.join(both)}</section>\n"


def _side(section: Section, run: int, looks: Mapping[str, tuple[str, str]]) -> str:
    tiles = _tiles(section, run)
    items = "".join(_item(tile, section.pair.names, run, looks[tile.image]) for tile in tiles)
    answer = f"<ol>\n{items}</ol>" if tiles else f'<p class="none">{NOTHING}</p>'
    relevant = sum(grade >= section.pair.rel for grade in _grades(section).values())
    found = f"{sum(tile.mark == 'relevant' for tile in tiles)} of {relevant} relevant"
    name = f"<bdi>{safe(section.pair.names[run])}</bdi> <small>{found} in the first {section.pair.depth}</small>"
    return f'<h3 dir="auto">{name}</h3>\n<div class="side">{answer}</div>\n'


class _Tile(NamedTuple):
    """An image of one run: its ranks in both, None where a run lacks it, its mark, and its grade (0: unjudged)."""

    image: str
    ranks: tuple[int | None, int | None]
    mark: str
    grade: int


def _tiles(section: Section, run: int) -> list[_Tile]:
    grades, rel = _grades(section), section.pair.rel
    first, second = (_ranks(each, section.query) for each in section.pair.runs)
    top = list((first, second)[run])[: section.pair.depth]
    tiles = []
    for i in top:
        grade = grades.get(i, -1)
        mark = "unjudged" if grade < 0 else "relevant" if grade >= rel else "wrong"
        tiles.append(_Tile(i, (first.get(i), second.get(i)), mark, grades.get(i, 0)))
    return tiles


def _grades(section: Section) -> Mapping[str, int]:
    return section.pair.qrels.get(section.query, {})


def _ranks(run: Run, query: str) -> dict[str, int]:
    """Each image's rank, best first."""
    return {hit.image: rank for rank, hit in enumerate(run.get(query, ()), 1)}


def _item(tile: _Tile, names: tuple[str, str], run: int, look: tuple[str, str]) -> str:
    box, title = look
    places = (f"rank {rank} in {name}" for name, rank in zip(names, tile.ranks, strict=True) if rank)
    said = safe(f"{tile.image}: {', '.join(places)}")
    # A tick, with the grade where grades tell more than yes and no, or a cross
    grade = f" {tile.grade}" if tile.grade > 1 else ""
    signs = {"relevant": ("relevant", f"✓{grade}"), "wrong": ("not relevant", "×")}
    if tile.mark not in signs:
        text = ""
    else:
        word, sign = signs[tile.mark]
        text = f'<span class="sign" title="{word}">{sign}</span>'
    return (
        f'<li class="{tile.mark}"><figure title="{said}"><div class="mat">{box}{text}</div><figcaption>'
        f'<div class="facts"><b>{tile.ranks[run]}</b><span>{_change(*tile.ranks)}</span></div>'
        f'<div class="title" dir="auto">{title}</div></figcaption></figure></li>\n'
    )


def _change(before: int | None, after: int | None) -> str:
    if before is None:
        return "new"
    if after is None:
        return "gone"
    up = before - after
    return f"▲ {up}" if up > 0 else f"▼ {-up}" if up < 0 else "="
