"""`eyespot search`: find pictures by words, by picture, or both, under a filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._hits_out import OUTPUT, HitsOut
from eyespot.cli._ray import backend_on, refuse_on_cluster
from eyespot.cli._searching import minus_words, open_collection, search
from eyespot.cli.settings import PanelCommand, flag, gallery_here, gallery_option
from eyespot.settings.fields import EVERYDAY, JUDGES, RESEARCH
from eyespot.settings.search import BackendSettings, SearchSettings
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.collection import Collection


class SearchCommand(PanelCommand):
    """A verb whose query may begin with a minus and a space, or have a word with a minus, which are not options."""

    panels = (EVERYDAY, OUTPUT, JUDGES, RESEARCH)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let such a query pass as an argument."""
        options = tuple(name for param in self.params for name in param.opts if not name.startswith("--"))
        words = [arg for arg in args if arg.startswith("- ") or (minus_words(arg) and not arg.startswith(options))]
        return super().parse_args(ctx, [f" {arg}" if arg in words else arg for arg in args])


def run(
    context: typer.Context,
    settings: SearchSettings,
    backend: BackendSettings,
    output: HitsOut,
    query: list[str] = typer.Argument(
        None, help="Words, pictures, weights: 2:heron + ./pool.jpg - people; without any, filters list by date."
    ),
    gallery: Path = gallery_option("The gallery to search."),
    image: Path = typer.Option(None, "--image", help="A picture to search with, alone or with words."),
    json: bool = flag("--json", "Print JSON on stdout.", rich_help_panel=OUTPUT),
    server: bool = typer.Option(True, "--server/--no-server", help="Ask a server of this gallery that runs here."),
) -> None:
    """Find pictures by words, by picture, or both."""
    if json + output.paths + output.print0 > 1:
        raise UsageError("--json, --paths and --print0 exclude each other; choose one")
    if settings.dry_run and not (settings.rerank or output.writes):
        raise UsageError("--dry-run is about a judge or files; add --rerank, --copy, --album, --xmp, --csv or --html")
    refuse_on_cluster(settings.adapt, backend, backend.index)

    def opened() -> Collection:
        collection = open_collection(gallery_here(gallery), settings.encoder, backend.index)
        collection.backend = context.with_resource(backend_on(backend)) or collection.backend
        return collection

    words = " ".join(query) if query else None  # however the terminal split it
    search(opened, settings, output, words, image=image, json=json)
