"""Pictures in a terminal: which one says that it shows some, and what is sent decodes to the strip."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from eyespot import sample
from eyespot.cli._terminal_pictures import HEIGHT, as_iterm, as_kitty, protocol, strip
from tests.cli.conftest import done
from tests.command import environment
from tests.worlds import draw_photos


@pytest.mark.parametrize(
    ("shell", "known"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "xterm-256color"}, None),
        ({}, None),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux-1"}, None),
    ],
)
def test_a_terminal_says_by_its_environment_how_it_shows_pictures(shell: dict[str, str], known: str | None) -> None:
    assert protocol(shell) == known


def size(png: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(png)) as picture:
        return picture.size


def kitty_picture(text: str) -> bytes:
    pieces = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", text)
    assert [head.rsplit("m=", 1)[1] for head, _ in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    assert all(len(piece) <= 4096 for _, piece in pieces)
    return base64.b64decode("".join(piece for _, piece in pieces))


def test_the_strip_holds_as_many_pictures_as_fit_and_both_protocols_carry_it_whole() -> None:
    paths = sorted(map(str, Path(sample.photos()).glob("*.jpg")))[:6]
    wide, narrow = strip(["nowhere.jpg", *paths], 2000), strip(paths, 10)
    assert wide is not None and narrow is not None and strip(["nowhere.jpg"], 2000) is None

    with Image.open(paths[0]) as first:
        one = (round(first.width * HEIGHT / first.height), HEIGHT)
    assert size(narrow) == one and one[0] < size(wide)[0] <= 2000
    assert kitty_picture(as_kitty(wide)) == wide
    head, _, data = as_iterm(wide).removeprefix("\x1b]1337;File=").removesuffix("\x07").partition(":")
    assert base64.b64decode(data) == wide and f"size={len(wide)}" in head


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of Unix")
@pytest.mark.parametrize(
    ("term", "more", "shown"),
    [("xterm-kitty", (), True), ("xterm-kitty", ("--no-pictures",), False), ("dumb", (), False)],
)
def test_a_search_shows_its_hits_where_the_terminal_can(
    term: str, more: tuple[str, ...], shown: bool, tmp_path: Path
) -> None:
    import pty

    done("index", draw_photos(tmp_path / "photos", 3), cwd=tmp_path)
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "eyespot.cli", "search", "stripes", "-k", "2", *more]
    text = b""
    with subprocess.Popen(
        line, stdout=theirs, cwd=tmp_path, stderr=subprocess.PIPE, env=environment(TERM=term)
    ) as process:
        os.close(theirs)
        try:
            while read := os.read(ours, 65536):
                text += read
        except OSError:  # its end on Linux
            pass
        assert process.wait(120) == 0
    assert (b"\x1b_G" in text) is shown and text.count(b".png") + text.count(b".jpg") == 2
