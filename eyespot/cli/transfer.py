"""`eyespot import` and `eyespot export`: galleries from and to the formats others use."""

from __future__ import annotations

import typer

importing = typer.Typer(no_args_is_help=True, help="Make a gallery of vectors that others computed.")
exporting = typer.Typer(no_args_is_help=True, help="Write a gallery in a format that others read.")
