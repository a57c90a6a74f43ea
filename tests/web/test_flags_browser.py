"""Flags on the search page's large view in a real browser: one key, one digit, and who may not raise any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyespot.web import Role, ServerSettings
from tests.web.conftest import TOKENS, copy_gallery, from_afar, serving
from tests.web.test_browser import opened
from tests.web.test_team_browser import named

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.long  # a browser


@pytest.fixture
def world(tmp_path: Path, settings: ServerSettings) -> Iterator[ServerSettings]:
    yield replace(settings, gallery=copy_gallery(tmp_path), cache=None)


def test_a_photo_is_flagged_in_the_large_view_and_the_letter_is_no_verdict(browser: Any, world: ServerSettings) -> None:
    with serving(world) as address, opened(browser, address) as page:
        named(page, "Ada")
        page.goto("/?q=stripes")
        tile = page.locator(".tile").first
        tile.locator(".picture").click()
        page.locator("#large[open] h2").wait_for()
        page.keyboard.press("f")
        page.locator("#flagging[open]").wait_for()
        page.keyboard.press("1")
        expect(page.locator("#large .flagged")).to_have_text("⚑ a face")
        page.locator("#large [data-act=flag]").click()
        page.locator("#flag-reason").fill("no")
        page.keyboard.press("Enter")
        expect(page.locator("#large .flagged")).to_contain_text("another reason: no")
        page.keyboard.press("Escape")
        expect(page.locator("#large")).to_be_hidden()
        tile.locator(".picture").click()
        expect(page.locator("#large .flagged")).to_contain_text("⚑ a face")
        raised = page.request.get("/v1/flags").json()["flags"]
        verdict = tile.get_attribute("data-verdict")

    assert [(one["kind"], one["by"]) for one in raised] == [("face", "Ada"), ("other", "Ada")] and verdict is None


def test_readers_raise_no_flags(world: ServerSettings) -> None:
    with from_afar(world, TOKENS[Role.READER]) as reader, from_afar(world, TOKENS[Role.ANNOTATOR]) as annotator:
        id = reader.get("/v1/items").json()["items"][0]["id"]
        pages = [client.get(f"/photo/{id}?q=stripes").text for client in (reader, annotator)]

    assert ['data-act="flag"' in page for page in pages] == [False, True]
    assert ["flags.js" in page for page in pages] == [False, True]
