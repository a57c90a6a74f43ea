"""`eyespot publish`: a gallery on object storage, or anywhere that others reach."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import print_result, progress_bar
from eyespot.cli.settings import flag, gallery_here, gallery_option, json_option


def run(
    url: str = typer.Argument(
        help="The target: s3://BUCKET/NAME, gs://…, az://…, file:///FOLDER, or any address that fsspec knows."
    ),
    gallery: Path = gallery_option("The gallery to publish."),
    check: bool = flag("--check", "Read every file that is published, and send again what is damaged."),
    json: bool = json_option(),
) -> None:
    """Publish a gallery: what is new or missing is sent; others search it with -g URL."""
    from eyespot.gallery.remote import address_of, publish

    place = gallery_here(gallery, writes=True)
    url = url if address_of(url) else f"file://{Path(url).expanduser().absolute()}"  # a plain folder

    with progress_bar("bytes") as progress:
        done = publish(place, url, progress=progress, check=check)
    files = "1 file" if done.sent == 1 else f"{done.sent} files"
    line = f"{files} sent ({done.size / 1e6:,.1f} MB), {done.known} were there; search it with -g {url}"
    print_result({"url": url, "sent": done.sent, "bytes": done.size, "known": done.known}, [line], json)
