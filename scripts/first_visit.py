"""A first visit, done for real: from `eyespot demo` to a labelled query and its qrels, timed, with its pictures.

    python scripts/first_visit.py [--out docs/use/label] [--seconds-a-photo 0.4] [--python .venv/bin/python]

Needs chromium and playwright (the `[dev]` extra); `--python` is one in which eyespot is installed, which needs no more
than the `[web]` extra. The visitor of this script knows windmills by their files' names, and takes as long to look at a
photo as it is told. It prints how long each step took and writes the pictures of the page.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import urlopen

HERE = Path(__file__).resolve().parent
CHROMIUM = "/usr/bin/chromium"
QUERY, KNOWN_BY = "a windmill", "windmill"
WIDE, TALL = 1000, 640  # pixels
LARGEST = 80_000  # bytes of a picture


class Visit:
    """Somebody at a browser: what they do, how long it took, and what they saw."""

    def __init__(self, page: Any, out: Path, pace: float) -> None:
        self.page, self.out, self.pace = page, out, pace

    def look(self, name: str) -> None:
        """Keep what is seen now, small enough for a page of the docs."""
        from PIL import Image

        self.page.mouse.move(0, 0)
        self.page.wait_for_load_state("networkidle")
        bottom = self.page.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
        tall = {"x": 0, "y": 0, "width": WIDE, "height": min(TALL, bottom)}  # without the empty rest of the window
        seen = Image.open(BytesIO(self.page.screenshot(clip=tall))).convert("RGB")
        for quality in range(85, 30, -5):
            seen.save(self.out / f"{name}.jpg", quality=quality, optimize=True)
            if (self.out / f"{name}.jpg").stat().st_size <= LARGEST:
                return

    def say_name(self) -> None:
        self.page.keyboard.type("Ada")
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def ask(self) -> None:
        self.page.fill("#text", QUERY)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
        self.page.wait_for_selector(".shot.here")

    def label(self, relevant: set[str], until: str) -> int:
        """Mark one photo after the other until something shows; gives how many."""
        for count in range(1_000):
            time.sleep(self.pace)
            self.saved()  # what the page says of the last photo comes before another key
            if self.page.locator(until).count():
                return count
            self.page.keyboard.press("y" if self._here() in relevant else "n")
        raise SystemExit(f"{until} never came")

    def _here(self) -> str:
        """The id of the photo under the cursor, out of its picture's address."""
        address = self.page.get_attribute(".shot.here img", "src")
        return str(address).rsplit("/", 1)[1]

    def saved(self) -> None:
        self.page.get_by_text("All saved", exact=True).wait_for()

    def audit(self) -> None:
        with self.page.expect_navigation():
            self.page.click("#audit")
        self.page.wait_for_selector(".shot.here")

    def tell(self) -> None:
        """The three criteria of the intake, on the page about the query; then back to all queries."""
        self.page.click(".brand")
        self.page.get_by_role("link", name="Annotate").click()
        self.page.click(".more-cell a")
        self.page.fill(".facts-of [name=category]", "Buildings")
        for name in ("visible", "feasible", "of_interest"):
            self.page.select_option(f".facts-of [name={name}]", "yes")
        with self.page.expect_navigation():
            self.page.click(".facts-of button")
        self.page.get_by_role("link", name="All queries").click()

    def take_along(self, place: Path) -> None:
        with self.page.expect_download() as coming:
            self.page.click("text=Download the labelled set")
        coming.value.save_as(place)


@contextmanager
def timed(what: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    print(f"{time.perf_counter() - begun:6.1f} s  {what}", flush=True)


class Terminal:
    """Where the visitor types: the folder, and the Python in which eyespot is installed."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder, self.python = folder, python

    def run(self, *words: str) -> str:
        """What a Python program of that installation prints."""
        line = [str(self.python), *words]
        return subprocess.run(line, cwd=self.folder, check=True, text=True, stdout=subprocess.PIPE).stdout

    def eyespot(self, *words: str) -> str:
        return self.run("-m", "eyespot.cli", *words)

    @contextmanager
    def served(self) -> Iterator[str]:
        """`eyespot serve` at its address, once it is ready."""
        line = [str(self.python), "-m", "eyespot.cli", "serve", "--port", "0"]
        with subprocess.Popen(line, cwd=self.folder, stderr=subprocess.PIPE, text=True) as child:
            assert child.stderr is not None
            note = child.stderr.readline()
            if "look at" not in note:
                raise SystemExit(note + child.stderr.read())
            address = note.split(";")[0].split()[-1]
            while not _ready(address):
                time.sleep(0.1)
            yield address
            child.terminate()


def _ready(address: str) -> bool:
    try:
        with urlopen(f"{address}readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def relevant_photos(terminal: Terminal) -> set[str]:
    """The ids of the photos that the visitor takes for windmills."""
    items = json.loads(terminal.eyespot("search", QUERY, "-k", "1000", "--json"))["items"]
    return {item["id"] for item in items if KNOWN_BY in item["path"].rsplit("/", 1)[1]}


def visit(terminal: Terminal, out: Path, pace: float) -> None:
    """All steps, each timed."""
    from playwright.sync_api import sync_playwright

    with timed("eyespot demo"):
        terminal.eyespot("demo")
    with timed("eyespot index PHOTOS"):
        photos = terminal.run("-c", "from eyespot import sample; print(sample.photos())").strip()
        terminal.eyespot("index", photos)
    relevant = relevant_photos(terminal)
    with sync_playwright() as opened, timed("the rest, with the browser"):
        with timed("eyespot serve, until it is ready"):
            serving = terminal.served()
            address = serving.__enter__()
        try:
            browser = opened.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDE, "height": TALL}, accept_downloads=True)
            page.goto(f"{address}annotate")
            _label(Visit(page, out, pace), relevant, terminal.folder)
            browser.close()
        finally:
            serving.__exit__(None, None, None)
    with timed("eyespot annotate export labelled"):
        print(terminal.eyespot("annotate", "export", "labelled"), end="")
    scored = ("labelled/qrels.json", "labelled/candidates.json", "-m", "AP@50", "-m", "R@20")
    print(terminal.eyespot("metrics", *scored), end="")


def _label(visitor: Visit, relevant: set[str], folder: Path) -> None:
    with timed("name and query"):
        visitor.say_name()
        visitor.look("1-query")
        visitor.ask()
    with timed("labelling until 100 in a row are not relevant"):
        for _ in range(12):
            visitor.page.keyboard.press("y" if visitor._here() in relevant else "n")
            time.sleep(visitor.pace)
        visitor.saved()
        visitor.look("2-grid")
        print(visitor.label(relevant, "#stop:not([hidden])") + 12, "photos labelled")
        visitor.saved()
    visitor.look("3-stop")
    with timed("the audit"):
        visitor.audit()
        print(visitor.label(relevant, "#interval:not(:empty)"), "photos audited")
        visitor.saved()
    visitor.look("4-audit")
    with timed("intake and download"):
        visitor.tell()
        visitor.take_along(folder / "labelled.zip")
    visitor.look("5-done")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "use" / "label")
    parser.add_argument("--seconds-a-photo", type=float, default=0.4)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="eyespot-visit-") as folder, timed("all of it"):
        visit(Terminal(Path(folder), given.python.absolute()), given.out, given.seconds_a_photo)


if __name__ == "__main__":
    main()
