"""The page on the server names every option, every address of the API and every key."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
import typer
from fastapi.testclient import TestClient

from eyespot.cli import app
from eyespot.web import Role

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serve.md"


def test_every_option_is_on_the_page() -> None:
    options = typer.main.get_command(app).commands["serve"].params  # type: ignore[attr-defined]
    names = [option.opts[-1] for option in options]
    assert [name for name in names if f"`{name}" not in PAGE.read_text(encoding="utf-8")] == []


def test_every_address_of_the_api_is_on_the_page(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    text = PAGE.read_text(encoding="utf-8")
    assert [path for path in paths if path.replace(":path", "") not in text] == []


def test_the_tables_of_the_api_page_have_names_of_their_own(client: TestClient) -> None:
    names = re.findall('role="region" aria-label="(.*?)"', client.get("/docs", headers={"Accept": "text/html"}).text)
    assert len(names) == len(set(names)) > 10


def test_the_api_page_begins_with_a_search_and_its_example_works(client: TestClient) -> None:
    text = client.get("/docs", headers={"Accept": "text/html"}).text
    example = re.findall('curl "(.*?)"', text)
    assert re.findall('aria-label="Parameters of (.*?)"', text)[0] == "GET /v1/search"
    assert len(client.get(html.unescape(example[0])).json()["items"]) == 3


@pytest.mark.parametrize("role", list(Role))
def test_every_role_is_on_the_page(role: Role) -> None:
    assert f"`{role.name.lower()}`" in PAGE.read_text(encoding="utf-8")


def test_the_keys_of_the_page_are_those_of_the_help(client: TestClient) -> None:
    shown = set(re.findall(r"<dt>(.*?)</dt>", client.get("/", headers={"Accept": "text/html"}).text))
    keys = {key for one in shown for key in re.findall(r"<kbd>(\w|/)</kbd>", one)}
    assert keys == {"/", "f", "m", "x", "y", "n", "d", "u", "w", "z", "0", "1"}
    assert all(f"`{key}`" in PAGE.read_text(encoding="utf-8") for key in keys)
