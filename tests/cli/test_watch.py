"""`eyespot index --watch`: photos that come are indexed by the running process, which Ctrl-C ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from eyespot.cli.index import keep_up
from eyespot.gallery import watching
from eyespot.photos.places import Root
from tests.command import refuses, run_eyespot
from tests.worlds import draw, index_gallery

pytest.importorskip("watchfiles")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of one photo, in which the gallery comes to lie as well."""
    folder = tmp_path / "photos"
    draw(folder / "0.jpg", 0)
    return folder


@pytest.fixture
def process(photos: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that watches, from when it says so."""
    line = [sys.executable, "-m", "eyespot.cli", "index", str(photos), "-g", str(photos / "gallery"), "--watch"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=photos.parent) as process:
        lines_until(process, f"watching {photos}; Ctrl-C ends it")
        yield process
        process.kill()


def lines_until(process: subprocess.Popen[str], end: str) -> list[str]:
    """What the process prints until a line that holds `end`; pytest's own timeout ends a wait in vain."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if end in line:
            return lines
    raise AssertionError(f"the process ended after {lines}")


def searchable(gallery: Path, cwd: Path) -> set[str]:
    paths = run_eyespot("search", "a drawing", "-g", gallery, "--paths", cwd=cwd).stdout
    return {Path(path).name for path in paths.splitlines()}


@pytest.mark.long
def test_what_comes_changes_and_goes_is_followed(photos: Path, process: subprocess.Popen[str]) -> None:
    """The gallery among the photos does not count."""
    gallery = photos / "gallery"

    (gallery / "note.txt").write_text("mine")
    (photos / "torn.jpg").write_bytes(b"\xff\xd8 no more")
    draw(photos / "new" / "1.jpg", 1)
    lines_until(process, "could not be read")
    draw(photos / "torn.jpg", 2)
    lines_until(process, "3 pictures from 3 files: 1 embedded now")
    assert searchable(gallery, photos) == {"0.jpg", "1.jpg", "torn.jpg"}

    (photos / "torn.jpg").unlink()
    lines_until(process, "holds")
    process.send_signal(signal.SIGINT)
    assert lines_until(process, "no longer watching") and process.wait() == 0


def test_a_folder_that_goes_away_is_waited_for(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new gallery in its place would stand in the way of the disk that comes back."""
    for name in ("CHECK_MS", "QUIET_MS"):
        monkeypatch.setattr(watching, name, 50)
    seen = watching.changes([str(photos)], photos / "gallery")
    next(seen)
    away, waits = photos.rename(photos.with_name("away")), []

    def come_back(seconds: float) -> None:
        waits.append((seconds, photos.exists()))
        away.rename(photos)

    monkeypatch.setattr(watching.time, "sleep", come_back)

    next(seen)

    assert waits == [(0.05, False)] and photos.is_dir()


@pytest.mark.long
def test_who_waits_for_a_folder_that_is_away_is_told_so(photos: Path) -> None:
    gallery = photos.parent / "gallery"
    index_gallery(gallery, photos)
    away = photos.rename(photos.with_name("away"))
    line = [sys.executable, "-m", "eyespot.cli", "index", "-g", str(gallery), "--watch"]

    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=photos.parent) as process:
        try:
            lines_until(process, f"waiting for {photos}, which is missing; Ctrl-C ends it")
            away.rename(photos)
            lines_until(process, f"watching {photos}; Ctrl-C ends it")
        finally:
            process.kill()


@pytest.mark.parametrize("words", ["list.csv --watch", "photos --watch --dry-run"])
def test_what_cannot_be_watched_is_refused(words: str, photos: Path) -> None:
    photos.with_name("list.csv").write_text("path\nphotos/0.jpg\n")

    refuses("index", *words.split(), cwd=photos.parent)

    assert not (photos.parent / ".eyespot").exists()


@pytest.mark.long
def test_a_round_that_fails_in_any_way_is_listed_and_the_watch_goes_on(
    photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "QUIET_MS", 50)
    errors = [MemoryError(), OSError(28, "No space left on device"), KeyboardInterrupt()]

    def later() -> None:
        draw(photos / f"{len(errors)}.jpg", len(errors))  # for the next round
        raise errors.pop(0)

    first = partial(draw, photos / "first.jpg", 9)  # something comes while the first run goes on
    keep_up(photos / "gallery", [Root(str(photos), "folder")], first, later)

    printed = capsys.readouterr().err
    assert "this round failed (MemoryError: no more is known); the next change tries it again" in printed
    assert "No space left on device" in printed and not errors
