"""Where hits go: onto stdout as lines or paths, into folders, a table, keywords, a page, and the browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from eyespot.cli.console import SHOWN, escaped, warn, warn_all, warn_first
from eyespot.settings.fields import Settings, setting
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.formats.albums import AlbumReport
    from eyespot.types import Run

OUTPUT = "Output"


class FilesOut(Settings):
    """Folders and tables that get photos."""

    copy_to: Path | None = setting(
        "Copy the hits' originals here.", spelled=("--copy",), metavar="FOLDER", panel=OUTPUT
    )
    album: Path | None = setting("Put links to the hits into this folder.", metavar="FOLDER", panel=OUTPUT)
    csv: Path | None = setting("Write the hits with their facts as a table.", metavar="FILE", panel=OUTPUT)
    all_columns: bool = setting("In --csv, also columns of where and whose a picture is.", default=False, panel=OUTPUT)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.all_columns and self.csv is None:
            raise UsageError("--all-columns says what --csv writes; name its file, as in --csv hits.csv")
        if self.csv is not None and self.csv.suffix.lower() in (".parquet", ".json", ".jsonl", ".tsv", ".xlsx"):
            raise UsageError(f"--csv writes CSV, not {self.csv.suffix}; see eyespot export parquet, and search --json")
        return self

    def write(self, hits: Sequence[dict[str, Any]], dry_run: bool = False) -> int:
        """Do all that is wanted, or say what would be done; the number of hits for which something failed."""
        if not (self.copy_to or self.album or self.csv):
            return 0
        from eyespot.formats.albums import copy_hits, link_hits, write_table

        failed = 0
        if self.copy_to is not None:
            failed += _report(copy_hits(hits, self.copy_to, dry_run), f"copied to {self.copy_to}", dry_run)
        if self.album is not None:
            failed += _report(link_hits(hits, self.album, dry_run), f"linked in {self.album}", dry_run)
        if self.csv is not None and dry_run:
            warn(f"{self.csv} would get a table of {quantity(len(hits), 'picture')}")
        elif self.csv is not None and (left_out := write_table(hits, self.csv, self.all_columns)):
            warn(f"left out of {self.csv}: {', '.join(left_out)} (where and whose; --all-columns writes them)")
        if self.copy_to or self.album:
            _name_times(hits)
        return failed


class HitsOut(FilesOut):
    """The same, and what else becomes of the hits of a search."""

    xmp: str | None = setting("Write this keyword into XMP sidecars beside the hits.", metavar="KEYWORD", panel=OUTPUT)
    why: bool = setting("Say what each term and word of the query adds.", default=False, panel=OUTPUT)
    paths: bool = setting("Print only paths, one per line.", default=False, panel=OUTPUT)
    print0: bool = setting("Print only paths, each followed by a NUL (for xargs -0).", default=False, panel=OUTPUT)
    html: Path | None = setting("Write a contact sheet.", panel=OUTPUT)
    open: bool = setting("Show the hits in the browser.", default=False, panel=OUTPUT)
    pictures: bool = setting("Show the first hits in a terminal that can.", default=True, panel=OUTPUT)

    @model_validator(mode="after")
    def _visible(self) -> Self:
        if self.xmp is not None and not (self.xmp.strip() and self.xmp.isprintable()):
            raise UsageError("--xmp takes a keyword of visible characters, as in --xmp heron")
        return self

    @property
    def writes(self) -> bool:
        """Whether files are written beside photos, or in folders."""
        return any((self.copy_to, self.album, self.csv, self.xmp, self.html))

    def write_all(self, hits: Sequence[dict[str, Any]], sheet: Run, dry_run: bool = False) -> int:
        """Do all that is wanted, or say what would be done; the number of hits for which something failed."""
        failed = self.write(hits, dry_run)
        if self.html and dry_run:
            warn(f"{self.html} would get a contact sheet")
        if self.xmp is not None:
            from eyespot.formats.sidecars import add_keyword

            keyword = self.xmp.strip()
            failed += _report(add_keyword(hits, keyword, dry_run), f"given the keyword {keyword}", dry_run)
            if not (self.copy_to or self.album):
                _name_times(hits)
        if self.open:
            import tempfile
            import webbrowser

            from eyespot.search.hits import Hits, write_html

            # A folder for temporary files that only this user may read
            page = Path(tempfile.mkdtemp(prefix="eyespot-")) / "hits.html"
            write_html(page, [Hits(sheet)])
            if not webbrowser.open(page.as_uri()):
                warn(f"no browser was found; open {escaped(str(page))}")
        return failed


def _name_times(hits: Sequence[dict[str, Any]]) -> None:
    """A video stands for all its frames: at which times the hits are."""
    from eyespot.photos.videos.addresses import clock, frame_of

    times: dict[str, list[str]] = {}
    for frame in filter(None, (frame_of(hit["path"] or "") for hit in hits)):
        times.setdefault(frame.video, []).append(clock(frame.ms))
    warn_all(f"found in {video} at {', '.join(found)}" for video, found in list(times.items())[:SHOWN])


def _report(report: AlbumReport, what: str, dry_run: bool) -> int:
    known, new = len(report.known), [file for file in report.files if file not in report.known]
    files = f", as {', '.join(str(file) for file in new[:3])}{', …' * (len(new) > 3)}" if dry_run and new else ""
    pictures = quantity(len(new), "picture")
    warn(f"{pictures} {'would be ' * dry_run}{what}{files}" + (f"; {known} were already" if known else ""))
    left_out = [f"left out: {failure.path or failure.id} ({failure.reason})" for failure in report.failed]
    warn_first(left_out, lambda count: f"and {count} more")
    return len(report.failed)
