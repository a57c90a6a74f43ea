"""The first hits as a strip of pictures in the terminal, where it says that it shows some.

Two protocols are common: kitty's graphics (kitty, Ghostty, Konsole) and iTerm2's inline images (iTerm2, WezTerm,
mintty, VS Code). Which one a terminal has is read from its environment. To query the terminal itself would wait where
nothing answers, and would swallow what somebody types.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from PIL import Image

from eyespot.search.contact_sheet import thumbnail_of

HEIGHT, GAP = 160, 6  # pixels
CELL = 10  # pixels that a letter is wide, about
ROWS = 9  # lines of text that the strip takes
KITTY = {"xterm-kitty", "ghostty", "konsole"}
ITERM = {"iterm.app", "wezterm", "mintty", "vscode"}
PIECE = 4096  # characters of kitty's data at once


def protocol(environment: Mapping[str, str]) -> Literal["kitty", "iterm"] | None:
    """How this terminal takes a picture; None where it does not say so, and inside tmux and screen, which take none."""
    if environment.get("TMUX") or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None
    names = {environment.get(name, "").lower() for name in ("TERM", "TERM_PROGRAM")}
    if names & KITTY or {"KITTY_WINDOW_ID", "KONSOLE_VERSION"} & environment.keys():
        return "kitty"
    return "iterm" if names & ITERM else None


def show(items: Sequence[Mapping[str, Any]]) -> bool:
    """Show the first hits on stdout; False where stdout is not a terminal that shows pictures, or none can be read."""
    known = protocol(os.environ) if sys.stdout.isatty() else None
    if known is None:
        return False
    width = shutil.get_terminal_size().columns * CELL
    if (picture := strip((str(item["path"] or "") for item in items), width)) is None:
        return False
    sys.stdout.write((as_kitty if known == "kitty" else as_iterm)(picture) + "\n")
    return True


def strip(paths: Any, width: int) -> bytes | None:
    """As many of the pictures side by side as fit, as PNG; None for none that can be read."""
    found: list[Image.Image] = []
    used = 0
    for path in paths:
        if (data := thumbnail_of(path, 2 * HEIGHT)) is None:
            continue
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        picture = picture.resize((max(1, round(picture.width * HEIGHT / picture.height)), HEIGHT))
        if found and used + picture.width > width:
            break
        found.append(picture)
        used += picture.width + GAP
    if not found:
        return None
    whole = Image.new("RGBA", (used - GAP, HEIGHT))
    at = 0
    for picture in found:
        whole.paste(picture, (at, 0))
        at += picture.width + GAP
    out = io.BytesIO()
    whole.save(out, "PNG")
    return out.getvalue()


def as_kitty(png: bytes) -> str:
    """The escape sequences that show a PNG in kitty (its page "Terminal graphics protocol")."""
    text = base64.standard_b64encode(png).decode()
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    heads = [f"a=T,f=100,q=2,r={ROWS},", *[""] * (len(pieces) - 1)]
    more = [*["m=1"] * (len(pieces) - 1), "m=0"]
    return "".join(f"\x1b_G{head}{m};{piece}\x1b\\" for head, m, piece in zip(heads, more, pieces, strict=True))


def as_iterm(png: bytes) -> str:
    """The escape sequence that shows a PNG in iTerm2 (its page "Inline images protocol")."""
    text = base64.standard_b64encode(png).decode()
    return f"\x1b]1337;File=inline=1;size={len(png)};height={ROWS}:{text}\x07"
