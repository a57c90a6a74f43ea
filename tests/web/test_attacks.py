"""Attacks on every route: other sites, missing rights, paths that lead out, hostile parameters and bodies.

The routes are read from the application, so a new page is attacked the day it is added.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from eyespot.web import Role, ServerSettings, application
from eyespot.web._search_params import parameters_of
from tests.examples import share
from tests.web.conftest import HOSTILE, TOKENS, at_this_machine, from_afar, make_gallery
from tests.worlds import index_gallery

SECRET = "planted-secret-4711"  # in a file that nobody may read
WRITING = {"POST", "PUT", "PATCH", "DELETE"}
OPEN = ("/healthz", "/readyz", "/login", "/static/{name}")  # without a token


@dataclass(frozen=True)
class Door:
    """One route and method, with the names of its query parameters."""

    method: str
    path: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def at(self, value: str) -> str:
        """The path with this value in each of its places."""
        return re.sub(r"\{[^}]*\}", lambda _: value, self.path)


def doors(settings: ServerSettings) -> list[Door]:
    def walk(routes: list[Any], prefix: str = "") -> Iterator[tuple[str, APIRoute]]:
        for route in routes:
            if isinstance(route, APIRoute):
                yield prefix + route.path, route
            elif inner := getattr(route, "original_router", None):
                yield from walk(inner.routes, prefix + route.include_context.prefix)

    found = [
        Door(method, path, tuple(parameters_of(route.dependant)))
        for path, route in walk(list(application(settings).routes))
        for method in sorted(route.methods or ())
    ]
    assert len(found) > 50, "the routes are no longer found"
    return found


@pytest.fixture(scope="module")
def every(settings: ServerSettings) -> list[Door]:
    return doors(settings)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, settings: ServerSettings) -> Iterator[TestClient]:
    """A gallery of its own, with a secret beside it; the server may be changed by what gets through."""
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "secret.txt").write_text(SECRET)
    gallery, table = make_gallery(folder, 6), folder / "photos" / "metadata.csv"
    table.write_text(table.read_text().replace("heron", HOSTILE.removeprefix('">')))
    index_gallery(gallery)
    with at_this_machine(replace(settings, gallery=gallery, cache=None)) as client:
        while client.get("/readyz").status_code != 200:
            time.sleep(0.01)
        yield client


def test_every_route_refuses_a_parameter_that_it_does_not_have(client: TestClient, every: list[Door]) -> None:
    """What a mailer adds to a link is not of a search."""
    answers = {str(one): client.request(one.method, one.at("x") + "?utm_source=mail&box=1") for one in every}
    refused = {key: (one.status_code, "no parameter 'box' here; " in one.text) for key, one in answers.items()}
    assert refused == dict.fromkeys(refused, (422, True))


def test_a_page_without_the_unknown_parameter_is_a_link_away(client: TestClient) -> None:
    headers, rest = {"Accept": "text/html"}, "q=red+%26+green&label=kind%3Dheron&label=kind%3Degret"
    page = client.get(f"/?box=1,2&{rest}&ungrouped=true", headers=headers)
    ((address,),) = [re.findall(r'href="(/\?[^"]*)"', page.text)]
    assert page.status_code == 422 and unescape(address) == f"/?{rest}"
    assert client.get(unescape(address), headers=headers).status_code == 200
    assert 'href="/lists"' in client.get("/lists?gone=1", headers=headers).text


# -- who has no right ----------------------------------------------------------------------------------------------


def test_no_route_answers_from_afar_without_a_token(settings: ServerSettings, every: list[Door]) -> None:
    client = from_afar(settings)
    closed = [*(one for one in every if one.path not in OPEN), Door("GET", "/openapi.json", ())]
    answers = {str(one): client.request(one.method, one.at("x")).status_code for one in closed}
    links = {name: answers.pop(name) for name in [*answers] if "/shared/" in name}  # their token is in the address
    assert answers == dict.fromkeys(answers, 401) and set(links.values()) == {401, 404}
    assert [client.get(path).status_code for path in ("/healthz", "/login", "/static/style.css")] == [200] * 3


@pytest.mark.long
def test_no_route_takes_orders_from_another_site(settings: ServerSettings, every: list[Door]) -> None:
    client = at_this_machine(settings)
    foreign: list[dict[str, str]] = [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ]

    taken = [
        (str(one), headers)
        for one in every
        if one.method in WRITING
        for headers in foreign
        if client.request(one.method, one.at("x"), headers=headers).status_code != 403
    ]

    assert taken == []


OWNERS = re.compile(
    r"\w+ (/add.*|/v1/(videos|originals)/.*|/annotate/(assign|rules))"
    r"|POST /map/make"
)
ANNOTATORS = re.compile(r"\w+ (/(annotate|review|lists|v1/lists|v1/judgements|v1/clicks)($|/.*)|/spread|/count.*)")
CLOSED = {
    Role.READER: (OWNERS, ANNOTATORS),
    Role.ANNOTATOR: (OWNERS,),
    Role.OWNER: (re.compile("POST /add/folder"),),
}


@pytest.mark.parametrize("role", list(Role))
def test_each_role_may_do_what_is_its_own(settings: ServerSettings, every: list[Door], role: Role) -> None:
    client = from_afar(settings, TOKENS[role])
    refused = {str(one) for one in every if client.request(one.method, one.at("x")).status_code == 403}
    assert refused == {str(one) for one in every if any(kind.fullmatch(str(one)) for kind in CLOSED[role])}


# -- paths, parameters and bodies ----------------------------------------------------------------------------------

OUT = (
    "../secret.txt", "../../secret.txt", "..%2f..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "....//....//etc/passwd", "..%5c..%5csecret.txt", "%2fetc%2fpasswd", "/etc/passwd", "file:%2f%2f%2fetc%2fpasswd",
    "x%00.jpg", "%c0%ae%c0%ae%c0%afetc%c0%afpasswd", "%ff%fe", "a" * 5000,
)  # fmt: skip
ODD = (
    "", "../secret.txt", "/etc/passwd", "\x00", "\ud800".encode("utf-8", "surrogatepass").decode("latin1"), HOSTILE,
    "javascript:alert(1)", "//evil.example", "x\r\nSet-Cookie: a=b", "-1", "1e400", "nan", "9" * 400, "[" * 2000,
    "' OR 1=1 --", "1 UNION SELECT * FROM read_text('/etc/passwd')", "{{7*7}}${7*7}", "(a+)+$", "\u202e\u0000\uffff",
)  # fmt: skip


def check(answer: Any, what: object) -> None:
    """No server's error, and nothing of what lies beside the gallery."""
    assert answer.status_code < 500 or answer.status_code == 503, what
    assert SECRET not in answer.text, what
    assert "root:x:" not in answer.text, what
    assert "set-cookie" not in answer.headers or "a=b" not in answer.headers["set-cookie"], what
    assert "evil.example" not in answer.headers.get("location", ""), what


@pytest.mark.long
def test_no_path_leads_out_of_any_route(attacked: TestClient, every: list[Door]) -> None:
    for one in (one for one in every if "{" in one.path):
        for path in OUT:
            answer = attacked.request(one.method, one.at(path), follow_redirects=False)
            check(answer, (str(one), path))
            assert answer.status_code >= 300, (str(one), path)  # 303: to where somebody says their name first


@pytest.mark.long
def test_no_parameter_breaks_any_route(attacked: TestClient, every: list[Door]) -> None:
    pairs = [(one, name) for one in every for name in one.names]
    for turn, (one, name) in enumerate(pairs):
        for value in share(ODD, turn, 6):
            address = f"{one.at('x')}?{name}={quote(value, safe='')}"
            check(attacked.request(one.method, address, follow_redirects=False), (str(one), name, value))


JSON = (
    b"",
    b"null",
    b"[]",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"q": NaN, "item": Infinity}',
    b'{"rank": ' + b"9" * 5000 + b"}",
    b'{"q": "\\ud800", "item": "\\u0000", "verdict": "yes"}',
    b'{"q": "a", "q": "b", "item": "x", "verdict": "yes"}',
    b'{"q": {"$ne": 1}, "item": ["x"], "verdict": true}',
)
FORMS = (b"", b"{", b"\xff\xfe{\x00}", b"q=1&q=2&item=%00&name=../../x")


@pytest.mark.long
def test_no_body_breaks_any_route(attacked: TestClient, every: list[Door]) -> None:
    for one in (one for one in every if one.method in WRITING):
        for kind, bodies in {
            "application/json": (*JSON, *FORMS),
            "application/x-www-form-urlencoded": FORMS,
            "multipart/form-data; boundary=x": FORMS,
            "text/plain": FORMS,
        }.items():
            for body in bodies:
                address, headers = one.at("x"), {"Content-Type": kind}
                answer = attacked.request(one.method, address, content=body, headers=headers, follow_redirects=False)
                check(answer, (str(one), kind, body[:40]))


CONDITIONS = (
    "1=1) OR (1=1",
    "1; DROP TABLE items",
    "id IN (SELECT content FROM read_text('/etc/passwd'))",
    "EXISTS (SELECT 1 FROM read_csv('../secret.txt'))",
    "EXISTS (SELECT 1 FROM glob('/etc/*'))",
    "EXISTS (WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM a) SELECT * FROM a)",
    "repeat('a', 2000000000) = 'a'",
    "regexp_matches(repeat('a', 30) || 'b', '(a+)+$')",
    "(SELECT count(*) FROM duckdb_settings()) > 0",
    "COPY (SELECT 1) TO 'made.csv'",
    "ATTACH 'made.db'",
    "list_transform([1], x -> x) = [1]",
    "/* */ SELECT 1",
    " AND ".join(["1=1"] * 900),
    "(" * 400 + "1=1" + ")" * 400,
)


@pytest.mark.parametrize("condition", CONDITIONS, ids=range(len(CONDITIONS)))
def test_no_condition_of_sql_reads_or_makes_a_file(attacked: TestClient, condition: str) -> None:
    folder = Path(attacked.app.state.eyespot.settings.gallery).parent  # type: ignore[attr-defined]
    before = sorted(folder.iterdir())
    answer = attacked.get("/v1/search", params={"q": "a", "where": condition})
    check(answer, condition)
    assert answer.status_code in (200, 404, 422, 503)  # 503: a busy machine is no error
    assert sorted(folder.iterdir()) == before
    assert not Path("made.csv").exists() and not Path("made.db").exists()


# -- what comes back -----------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a browser would run: scripts within the page, handlers in attributes, addresses that are code."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        own = (given.get("src") or "").startswith("/static/") or given.get("type") == "application/json"
        if tag == "script" and not own:
            self.runs.append(tag)
        self.runs += [f"{tag} {name}" for name in given if name.startswith("on")]
        addresses = [given.get(name) or "" for name in ("href", "src", "action", "formaction")]
        self.runs += [
            f"{tag} {one}" for one in addresses if re.match(r"\s*(javascript|data:text|vbscript)", one, re.IGNORECASE)
        ]


def runs_in(text: str) -> list[str]:
    page = Page()
    page.feed(text)
    return page.runs


@pytest.mark.long
def test_no_page_carries_what_somebody_sent_as_code(attacked: TestClient, every: list[Door]) -> None:
    pages = 0
    html = {"Accept": "text/html"}
    ids = [item["id"] for item in attacked.get("/v1/items").json()["items"]]
    for one in (one for one in every if one.method == "GET"):
        for place in (*ids[:4], quote(HOSTILE, safe="")) if "{" in one.path else ("x",):
            every_name = "&".join(f"{name}={quote(HOSTILE)}" for name in one.names)
            for address in (one.at(place), f"{one.at(place)}?q={quote(HOSTILE)}", f"{one.at(place)}?{every_name}"):
                answer = attacked.get(address, headers=html)
                if "text/html" in answer.headers.get("content-type", ""):
                    assert runs_in(answer.text) == [], address
                    pages += 1
    assert pages > 20


def plant(client: TestClient) -> list[str]:
    """Code as every text that is kept of people; the pages that show it."""
    first, *_ = ids = [item["id"] for item in client.get("/v1/items").json()["items"]]
    client.post("/name", data={"name": HOSTILE})
    asked = client.post("/annotate/queries", data={"text": HOSTILE}).url
    query = {"query": asked.params["query"]}
    note = {**query, "image": first, "mark": "note", "note": HOSTILE}
    for who, mark in (("Bo", "n"), (HOSTILE, "y")):
        client.post("/name", data={"name": who})
        assert client.post("/annotate/marks", params=query, json={"marks": {first: mark}}).status_code == 200
    assert client.post("/annotate/settle", data=note).status_code == 200
    flag = {"image": first, "kind": "other", "reason": HOSTILE}
    assert client.post("/annotate/flags", data=flag).status_code == 200
    kept = client.post("/v1/lists", json={"name": HOSTILE, "items": ids, "query": f"q={quote(HOSTILE)}"}).json()
    link = client.post(f"/v1/lists/{kept['list']}/link").json()["link"]
    client.get("/", params={"q": HOSTILE})
    of_query = [f"/annotate/{name}?query={quote(asked.params['query'])}" for name in ("query", "label", "disputes")]
    return [
        *("/", "/lists", kept["page"], f"{kept['page']}/delete", link, f"/?q=a&list={kept['list']}"),
        *("/annotate", "/annotate/flagged", *of_query, "/values?unit=kind&contains=img"),
    ]


def test_no_page_shows_as_code_what_somebody_left_there(attacked: TestClient) -> None:
    for place in plant(attacked):
        answer = attacked.get(place, headers={"Accept": "text/html"})
        assert answer.status_code == 200 and runs_in(answer.text) == [], place
        assert "&lt;img src=x onerror=alert(1)&gt;" in answer.text, place
