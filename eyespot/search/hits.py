"""What a search found, to be looked at: a table in a console, a contact sheet in a notebook or a file, rows for pandas.

hits = collection.search("a heron", k=12)
hits[0].path, hits[0].score, hits[0].title
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from eyespot.html import render, tidy
from eyespot.photos.places import picture_of
from eyespot.photos.videos.addresses import title_of
from eyespot.rooms import needs
from eyespot.search.contact_sheet import NOTHING, WORDS, SheetPanel, Tile, as_html, thumbnail_of
from eyespot.storage.atomic import write_whole
from eyespot.types import EyespotError, Run, UsageError, kind_text, quantity, refusing

if TYPE_CHECKING:
    from PIL.Image import Image

ROWS, TILES, SIDE = 10, 40, 200  # lines of a table; pictures of a sheet in a notebook, and their longer side in pixels


@dataclass(frozen=True, repr=False)
class SearchHit:
    """One picture that a search found; `score` is None where pictures are listed by date."""

    id: str
    score: float | None
    rank: int  # from 1
    facts: Mapping[str, Any] = field(compare=False)  # all that the gallery knows of it

    @property
    def path(self) -> Path | None:
        """Where the picture lies, or the archive or video and its place in it; None for vectors that were imported."""
        return Path(self.facts["path"]) if self.facts.get("path") else None

    @property
    def title(self) -> str:
        """Its title, else the name of its file, else its id."""
        return str(self.facts.get("title") or (title_of(self.facts["path"]) if self.facts.get("path") else self.id))

    def __repr__(self) -> str:
        score = None if self.score is None else round(self.score, 3)
        return f"Hit(rank={self.rank}, score={score}, title={self.title!r}, path={str(self.path)!r})"

    def thumbnail(self, px: int = SIDE) -> Image:
        """The picture, upright in RGB, at most `px` pixels wide and high; `EyespotError` if it cannot be read."""
        if not isinstance(px, int) or px < 1:
            raise UsageError(f"a thumbnail is 1 pixel wide or more, not {kind_text(px)}")
        from eyespot.photos.pictures import BadPicture  # with all that reads pictures, which a list of hits does not

        try:
            picture = picture_of(str(self.facts.get("path") or ""))
        except (OSError, BadPicture) as error:
            reason = str(getattr(error, "strerror", None) or error).lower()
            raise EyespotError(f"cannot show {self.title} ({reason}); bring {self.path or 'its file'} back") from error
        picture.thumbnail((px, px))
        return picture


Hit = SearchHit


class Hits(Sequence[SearchHit]):
    """The pictures that a search found, best first; `run` is the same as a `Run` of one query, for measures and stages.

    Slices are `Hits` too. Raises `UsageError` for a run of several queries.
    """

    def __init__(self, run: Run) -> None:
        with refusing("hits are those of a run of one query", run):
            ((_, ranked),) = run.items()
            scored, facts = not run.header.get("by_date"), run.facts
            ranks = [(rank, hit.image, hit.score if scored else None) for rank, hit in enumerate(ranked, 1)]
            self._hits = [SearchHit(id, score, rank, facts.get(id, {})) for rank, id, score in ranks]
        self.run = run

    @overload
    def __getitem__(self, at: int) -> SearchHit: ...

    @overload
    def __getitem__(self, at: slice) -> Hits: ...

    def __getitem__(self, at: int | slice) -> SearchHit | Hits:
        if not isinstance(at, slice):
            if isinstance(at, str):
                raise UsageError("hits are numbered from 0, as in hits[0]; their ranking by a query's id is hits.run")
            return self._hits[at]
        ((query, ranked),) = self.run.items()
        some = Hits(self.run.reranked({query: ranked[at]}))
        some._hits = self._hits[at]  # with the ranks that they have here
        return some

    def __len__(self) -> int:
        return len(self._hits)

    @property
    def query(self) -> str:
        """What was searched, as one writes it."""
        return str(self.run.header.get("heading", self.run.header.get("query", next(iter(self.run)))))

    @property
    def notes(self) -> list[str]:
        """What the user should know before trusting the order, a sentence each."""
        return self.run.notes

    @property
    def paths(self) -> list[Path | None]:
        """Where each picture lies."""
        return [hit.path for hit in self]

    @property
    def scores(self) -> list[float | None]:
        """The score of each hit."""
        return [hit.score for hit in self]

    @property
    def ids(self) -> list[str]:
        """The id of each picture."""
        return [hit.id for hit in self]

    def to_dicts(self) -> list[dict[str, Any]]:
        """A row for each hit: rank, id, score, title and path, then its other facts."""
        names = ("rank", "id", "score", "title")
        rows = [{name: getattr(hit, name) for name in names} | {"path": hit.facts.get("path")} for hit in self]
        return [row | dict(hit.facts) | row for row, hit in zip(rows, self, strict=True)]

    def to_pandas(self) -> Any:
        """The same as a table; `EyespotError` with the line to install where pandas is missing."""
        with needs("to_pandas"):
            import pandas  # type: ignore[import-untyped]
        return pandas.DataFrame(self.to_dicts())

    def __repr__(self) -> str:
        head = f"{quantity(len(self), 'hit')} for {tidy(self.query)!r} by {self.run.header.get('encoder', 'a run')}"
        lines = ["rank   score  title                                     path"] if self else [NOTHING]
        for hit in self[:ROWS]:
            score = "–" if hit.score is None else f"{hit.score:z.3f}"
            lines.append(f"{hit.rank:>4}  {score:>6}  {tidy(hit.title)[:40]:40}  {tidy(str(hit.path or hit.id))}")
        more = [f"… and {len(self) - ROWS} more"] if len(self) > ROWS else []
        return "\n".join([head, *lines, *more, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        panel, more = self[:TILES].panel(side=SIDE), max(0, len(self) - TILES)
        return render("hits.html", panel=panel, more=more, **WORDS)

    def panel(self, captions: Sequence[str] = (), side: int = 320) -> SheetPanel:
        """The hits as a part of a contact sheet, thumbnails of `side` pixels; `captions` are columns below each."""
        tiles = []
        for hit in self:
            more = [f"+{hit.facts['others']}"] if hit.facts.get("others") else []  # of its group
            caption = " · ".join([*more, *(str(hit.facts[name]) for name in captions if hit.facts.get(name))])
            tiles.append(Tile(thumbnail_of(hit.facts.get("path"), side), hit.rank, hit.score, hit.title, caption))
        picture = next(islice(self.run.header.get("pictures", ()), 1), None)
        return SheetPanel(self.query, " ".join(self.notes), tiles, thumbnail_of(picture, side))


def write_html(place: Path, found: Sequence[Hits], title: str = "eyespot", captions: Sequence[str] = ()) -> None:
    """One self-contained page of several searches; `captions` are the columns shown under each title (author, …).

    A sheet carries no position and no owner's name unless their columns are named.
    """
    page = as_html(title, [hits.panel(captions) for hits in found]).encode()
    write_whole(place, lambda file: file.write(page))
