"""`eyespot download`: files of the model hub and of other hosts, resumed and checked."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import print_result, progress_bar
from eyespot.cli.settings import json_option
from eyespot.types import UsageError


def run(
    source: str = typer.Argument(
        metavar="SOURCE", help="https://…/FILE, hub:OWNER/NAME or hub:datasets/OWNER/NAME, with @REVISION if you like."
    ),
    out: Path = typer.Option(..., "--out", help="The folder to put it into."),
    files: list[str] = typer.Option(
        None, "--files", metavar="PATTERN", help="Of a repository: only these; repeatable."
    ),
    sha256: str = typer.Option(None, "--sha256", help="Of a single file: the digest that it must have."),
    json: bool = json_option(),
) -> None:
    """Download a repository of the hub, or one file; run it again to go on where it was cut."""
    from eyespot.models.downloads import HUB, download, verify

    if sha256 and HUB.fullmatch(source):
        raise UsageError(
            "--sha256 is the digest of a single file; those of a repository are checked with the hub's own digests"
        )
    with progress_bar("bytes") as progress:
        done = download(source, out, files, progress)
    if sha256:
        verify(done.place, sha256)
    print_result({"place": str(done.place), "revision": done.revision, "bytes": done.bytes}, [str(done.place)], json)
