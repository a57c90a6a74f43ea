"""Contact sheets: everything is shown, nothing a title says can harm, and people see what was found."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from PIL import Image

from eyespot.search.contact_sheet import NOTHING, UNREADABLE, SheetPanel, Tile, as_html
from tests.examples import examples

RED, GREEN, BLUE = (200, 30, 30), (30, 160, 30), (30, 30, 200)
HOSTILE = '<script>alert("1")</script> \' onerror=x {style} &lt;'


def jpeg(colour: tuple[int, int, int], size: tuple[int, int] = (320, 240)) -> bytes:
    data = BytesIO()
    Image.new("RGB", size, colour).save(data, "JPEG", quality=95)
    return data.getvalue()


class Page(HTMLParser):
    """What a browser would make of a page: elements with attributes, the text in each, and tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def panels() -> list[SheetPanel]:
    found = [Tile(jpeg(RED), 1, 0.4321, "a red door", "Ada · CC0-1.0"), Tile(None, 2, -0.1, "lost")]
    return [SheetPanel("a door", "a note", found, jpeg(BLUE)), SheetPanel("a unicorn")]


def test_the_page_shows_every_panel_and_tile(panels: list[SheetPanel]) -> None:
    page = Page(as_html("My searches", panels))
    assert page.texts["h1"] == ["My searches"]
    assert page.texts["h2"] == ["a door", "a unicorn"]
    assert page.texts["p"] == ["a note", NOTHING]
    assert page.texts["b"] == ["1", "2"]
    assert "0.432" not in str(page.texts)  # a cosine means nothing to whoever gets the page
    assert [text for text in page.texts["div"] if text.strip()] == ["a red door", "Ada · CC0-1.0", UNREADABLE, "lost"]
    assert [image["alt"] for image in page.all("img")] == ["the picture searched with", "a red door"]


def test_the_page_needs_and_reaches_nothing_outside_itself(panels: list[SheetPanel]) -> None:
    page = Page(as_html("My searches", panels))
    policies = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert all((image["src"] or "").startswith("data:image/jpeg;base64,/9j/") for image in page.all("img"))
    assert {name for _, attributes in page.elements for name in attributes} <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "dir", "src", "alt", "title")
    }
    assert not any(word in page.texts["style"][0] for word in ("url(", "@import", "expression"))


def hostile_page(text: str) -> Page:
    tile = Tile(jpeg(RED, (8, 8)), 1, 0.5, text, text)
    return Page(as_html(text, [SheetPanel(text, text, [tile], jpeg(RED, (8, 8)))]))


@settings(deadline=None, max_examples=examples(100))
@given(st.text(st.characters() | st.sampled_from("<>&\"'/={}\udcff\u202e\0\n"), min_size=1))
@example(HOSTILE)
def test_no_text_breaks_the_page(text: str) -> None:
    page = hostile_page(text)
    assert page.open == []
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in hostile_page("a title").elements} - {"script"}
    as_html(text, []).encode()
    if text == HOSTILE:
        assert page.texts["h1"] == page.texts["h2"] == [HOSTILE]
        assert page.all("img")[1]["alt"] == HOSTILE


def test_names_cannot_be_turned_around_and_odd_bytes_show_as_marks() -> None:
    page = Page(as_html("x", [SheetPanel("cat\u202egpj.exe\nand caf\udce9")]))
    assert page.texts["h2"] == ["catgpj.exe and caf?"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    path = which("chromium") or which("google-chrome")
    if path is None:
        pytest.skip("needs chromium")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


def opened(browser: Any, page: Path) -> tuple[Any, list[str]]:
    view = browser.new_context(viewport={"width": 320, "height": 800}).new_page()
    log: list[str] = []
    view.on("console", lambda message: log.append(message.text))
    view.on("request", lambda request: log.append(request.url[:30]))
    view.goto(page.as_uri())
    return view, [line for line in log if not line.startswith(("data:", page.as_uri()[:30]))]


def test_a_browser_shows_all_within_the_screen_and_asks_nobody(browser: Any, tmp_path: Path) -> None:
    tiles = [Tile(jpeg(RED), 1, 0.5, HOSTILE, "x" * 200), Tile(jpeg(GREEN, (80, 320)), 2, 0.4, "y" * 300)]
    (tmp_path / "sheet.html").write_text(as_html("z" * 300, [SheetPanel("w" * 300, "note", tiles, jpeg(BLUE))]))
    view, log = opened(browser, tmp_path / "sheet.html")
    assert log == []
    assert view.evaluate("document.documentElement.scrollWidth") == 320
    assert view.evaluate("[...document.images].map(i => i.naturalWidth)") == [320, 320, 80]
    boxes = view.evaluate("[...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect().toJSON())")
    assert boxes[0]["top"] == boxes[1]["top"]  # two tiles side by side even on a small phone
