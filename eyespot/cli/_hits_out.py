"""What `eyespot search` does with hits besides printing them: copies, links, a table, keywords, a page that opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._options import flag
from eyespot.cli.console import SHOWN, escaped, note, note_all, note_first
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.formats.albums import AlbumReport
    from eyespot.types import Run


def copy_option() -> Any:
    """The option `--copy`."""
    return typer.Option(None, "--copy", metavar="FOLDER", help="Copy the originals of the hits into this folder.")


def album_option() -> Any:
    """The option `--album`."""
    return typer.Option(None, "--album", metavar="FOLDER", help="Put links to the hits into this folder.")


def csv_option() -> Any:
    """The option `--csv`."""
    return typer.Option(None, "--csv", metavar="FILE", help="Write the hits with their facts as a table.")


def all_columns_option() -> Any:
    """The option `--all-columns`."""
    help = "In --csv, also the columns that reveal where a picture was taken and who owns it."
    return typer.Option(False, "--all-columns", help=help)


def xmp_option() -> Any:
    """The option `--xmp`."""
    help = "Write this keyword into XMP sidecars beside the hits; the photos are not changed."
    return typer.Option(None, "--xmp", metavar="KEYWORD", help=help)


def open_option() -> Any:
    """The option `--open`."""
    return flag("--open", "Show the hits in the browser.")


@dataclass(frozen=True)
class HitsOut:
    """Where hits go besides stdout."""

    copy: Path | None = None
    album: Path | None = None
    csv: Path | None = None
    all_columns: bool = False
    xmp: str | None = None
    open: bool = False

    def __post_init__(self) -> None:
        if self.xmp is not None and not (self.xmp.strip() and self.xmp.isprintable()):
            raise UsageError("--xmp takes a keyword of visible characters, as in --xmp heron")
        if self.all_columns and self.csv is None:
            raise UsageError("--all-columns says what --csv writes; name its file, as in --csv hits.csv")

    def write(self, hits: Sequence[dict[str, Any]], sheet: Run) -> int:
        """Do all that is wanted; the number of hits for which something failed."""
        from eyespot.formats.albums import copy_hits, link_hits, write_table
        from eyespot.formats.sidecars import add_keyword
        from eyespot.search.contact_sheet import write_html

        failed = 0
        if self.copy is not None:
            failed += _report(copy_hits(hits, self.copy), f"copied to {self.copy}")
        if self.album is not None:
            failed += _report(link_hits(hits, self.album), f"linked in {self.album}")
        if self.csv is not None and (left_out := write_table(hits, self.csv, self.all_columns)):
            note(f"left out of {self.csv}: {', '.join(left_out)} (where and whose; --all-columns writes them)")
        if self.xmp is not None:
            failed += _report(add_keyword(hits, self.xmp.strip()), f"have the keyword {self.xmp.strip()}")
        if self.copy or self.album or self.xmp:
            _name_times(hits)
        if self.open:
            import tempfile
            import webbrowser

            # A folder for temporary files that only this user may read
            page = Path(tempfile.mkdtemp(prefix="eyespot-")) / "hits.html"
            write_html(page, [sheet])
            if not webbrowser.open(page.as_uri()):
                note(f"no browser was found; open {escaped(str(page))}")
        return failed


def _name_times(hits: Sequence[dict[str, Any]]) -> None:
    """A video stands for all its frames: at which times the hits are."""
    from eyespot.photos.videos.addresses import clock, frame_of

    times: dict[str, list[str]] = {}
    for frame in filter(None, (frame_of(hit["path"] or "") for hit in hits)):
        times.setdefault(frame.video, []).append(clock(frame.ms))
    note_all(f"found in {video} at {', '.join(found)}" for video, found in list(times.items())[:SHOWN])


def _report(report: AlbumReport, what: str) -> int:
    note(f"{len(report.files)} {'picture' if len(report.files) == 1 else 'pictures'} {what}")
    left_out = [f"left out: {failure.path or failure.id} ({failure.reason})" for failure in report.failed]
    note_first(left_out, lambda count: f"and {count} more")
    return len(report.failed)
