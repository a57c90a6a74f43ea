"""`eyespot mcp`: the gallery for an assistant that starts this program, by the Model Context Protocol over stdio."""

from __future__ import annotations

from eyespot.cli.settings import gallery_here
from eyespot.rooms import needs
from eyespot.settings.serve import McpSettings


def run(settings: McpSettings) -> None:
    """Let an assistant (Claude, Cursor, …) search the gallery and look at its pictures; only reads unless allowed."""
    with needs("eyespot mcp"):
        from eyespot.web import ServerSettings
        from eyespot.web.mcp import run_stdio

    place = gallery_here(settings.gallery)
    run_stdio(ServerSettings(place, settings.encoder, allowed=tuple((settings.allow or "").split(","))))
