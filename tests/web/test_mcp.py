"""What an assistant can do: the client of the protocol's own SDK finds, looks and answers, by every transport."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from eyespot.ledger.judgements import Judgements
from eyespot.web import ServerSettings
from eyespot.web._settings import Role
from eyespot.web._state import AppState
from tests.command import environment
from tests.lazy_import import requires
from tests.web.conftest import HOSTILE, TOKENS, copy_gallery, serving

requires("mcp")

Script = Callable[[Any], Awaitable[Any]]


def talk(server: Any, script: Script) -> Any:
    from mcp import Client

    async def run() -> Any:
        async with Client(server) as client:
            return await script(client)

    return in_a_loop(run())


def in_a_loop(script: Coroutine[Any, Any, Any]) -> Any:
    """What it gives in a thread of its own: a browser of other tests has a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, script).result()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppState]:
    made = AppState(ServerSettings(copy_gallery(tmp_path_factory.mktemp("mcp"))))
    yield made
    made.close()


@pytest.fixture
def server(state: AppState) -> Any:
    from eyespot.web.mcp import GalleryServer

    return GalleryServer(state)


async def find_and_look(client: Any) -> Any:
    """An assistant at work: what columns there are, a search under a filter, a look at the best, its facts."""
    columns = (await client.call_tool("columns", {})).structured_content
    kinds = {"column": "kind", "values": {"egret": 48, "heron": 24}, "others": 0}
    assert kinds in columns["labels"] and columns["columns"]["kind"] == "VARCHAR" and columns["box"] is None
    found = (
        await client.call_tool("search", {"query": "a disc", "k": 3, "where": "kind = 'heron'"})
    ).structured_content
    ids = [hit["id"] for hit in found["hits"]]
    looked = await client.call_tool("look", {"ids": ids, "width": 100, "query": "a disc"})
    assert [block.type for block in looked.content] == ["text", "image"] * 3
    assert looked.structured_content is None
    facts = (await client.call_tool("facts", {"ids": [ids[0], "none"]})).structured_content
    return found, looked, facts


def check(found: Any, looked: Any, facts: Any) -> None:
    assert (found["total"], [hit["rank"] for hit in found["hits"]]) == (24, [1, 2, 3])
    lines = [json.loads(block.text) for block in looked.content[::2]]
    assert [line["id"] for line in lines] == [hit["id"] for hit in found["hits"]]
    assert lines[0]["date"].startswith("202") and -1 <= lines[0]["score"] <= 1
    with Image.open(BytesIO(base64.b64decode(looked.content[1].data))) as picture:
        assert (picture.format, max(picture.size)) == ("JPEG", 100)
    assert facts["unknown"] == ["none"] and facts["items"][0]["kind"] == "heron"
    assert not {"latitude", "longitude", "author"} & facts["items"][0].keys()


def test_the_client_finds_looks_and_answers(server: Any) -> None:
    check(*talk(server, find_and_look))


def test_it_does_so_over_stdio(state: AppState) -> None:
    from mcp import StdioServerParameters

    line = ["-m", "eyespot", "mcp", "-e", "starter", "-g", str(state.settings.gallery)]
    check(*talk(StdioServerParameters(command=sys.executable, args=line, env=environment()), find_and_look))


def test_positions_leave_where_the_line_allows_it(state: AppState) -> None:
    from mcp import StdioServerParameters

    async def first_facts(client: Any) -> Any:
        (hit,) = (await client.call_tool("search", {"query": "a disc", "k": 1})).structured_content["hits"]
        return (await client.call_tool("facts", {"ids": [hit["id"]]})).structured_content["items"][0]

    line = ["-m", "eyespot", "mcp", "-g", str(state.settings.gallery), "--allow", "positions"]
    facts = talk(StdioServerParameters(command=sys.executable, args=line, env=environment()), first_facts)
    assert {"latitude", "longitude", "author"} <= facts.keys()


def test_and_in_a_server_with_its_tokens(settings: ServerSettings) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def script(token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            return await find_and_look(client)

    with serving(replace(settings, trust_loopback=False)) as address:
        check(*in_a_loop(script(TOKENS[Role.READER])))
        for headers in ({}, {"Authorization": "Bearer nobody-has-this-token"}):
            assert httpx2.post(f"{address}/mcp", json={}, headers=headers, timeout=60).status_code == 401


def test_titles_of_others_are_data_on_one_line(server: Any) -> None:
    async def script(client: Any) -> Any:
        hits = (await client.call_tool("search", {"query": "a disc", "k": 100})).structured_content["hits"]
        (id,) = (hit["id"] for hit in hits if hit["title"] == HOSTILE)
        line, _ = (await client.call_tool("look", {"ids": [id]})).content
        item = (await client.read_resource(f"eyespot://item/{id}")).contents[0]
        small = (await client.read_resource(f"eyespot://thumbnail/{id}")).contents[0]
        return line.text, json.loads(item.text), base64.b64decode(small.blob), id

    line, item, small, id = talk(server, script)
    assert "\n" not in line and json.loads(line)["title"] == HOSTILE
    assert item["id"] == id and "latitude" not in item
    assert Image.open(BytesIO(small)).size[0] <= 320


@pytest.mark.parametrize(
    ("tool", "given", "word"),
    [
        ("search", {"query": "a disc", "k": 101}, "k: "),
        ("search", {"query": ""}, "query: "),
        ("search", {"query": "a disc", "where": "no_such = 1"}, "no_such"),
        ("search", {"query": "../../etc/passwd.jpg"}, "file"),
        ("search", {"query": "a disc", "limit": 3}, "takes no 'limit'; it takes query, k, where"),
        ("search", {"query": "a disc", "where": "kind = 'heron' AND abs(LATITUDE) < 50"}, "cannot ask for latitude"),
        ("similar", {"id": "a", "where": "author = 'Ada'"}, "cannot ask for author"),
        ("columns", {"all": True}, "it takes nothing"),
        ("look", {"ids": ["a"] * 9}, "ids: "),
        ("look", {"ids": ["a"], "width": 5000}, "width: "),
        ("similar", {"id": "../../etc/passwd"}, "there is no item"),
        ("judge", {"query": "a disc", "id": "a", "verdict": "yes"}, "Unknown tool"),
    ],
)
def test_limits_and_refusals_are_sentences(server: Any, tool: str, given: Any, word: str) -> None:
    answer = talk(server, lambda client: client.call_tool(tool, given))
    assert answer.is_error and word in answer.content[0].text, answer.content[0].text
    assert "Traceback" not in answer.content[0].text and "pydantic" not in answer.content[0].text


def test_words_find_nothing_in_columns_that_are_not_given_out(state: AppState) -> None:
    """A photo that bears a word scores above its cosine, which `look` gives."""
    from eyespot.web.mcp import GalleryServer

    async def gains(client: Any) -> list[bool]:
        found = []
        for query in ("Ada", "heron"):
            (hit,) = (await client.call_tool("search", {"query": query, "k": 1})).structured_content["hits"]
            line, _ = (await client.call_tool("look", {"ids": [hit["id"]], "query": query})).content
            found.append(hit["score"] > json.loads(line.text)["score"] + 0.01)
        return found

    open_state = AppState(replace(state.settings, allowed=("positions",)))
    try:
        assert talk(GalleryServer(open_state), gains) == [True, True]
        assert talk(GalleryServer(state), gains) == [False, True]
    finally:
        open_state.close()


def test_a_resource_leads_to_nothing_but_items(server: Any) -> None:
    from mcp import MCPError

    async def script(client: Any) -> None:
        for place in ("item/none", "thumbnail/none", "thumbnail/../../gallery.toml", "item//etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(f"eyespot://{place}")

    talk(server, script)


def test_a_server_without_a_fitting_sdk_serves_the_rest(state: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with version 1 of it, or a folder of its name where the server starts."""
    import httpx2

    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.delitem(sys.modules, "eyespot.web.mcp", raising=False)
    with serving(state.settings) as address:
        assert httpx2.post(f"{address}/mcp", json={}, timeout=60).status_code == 404
        assert httpx2.get(f"{address}/v1/columns", timeout=60).status_code == 200


def test_what_the_owner_allows(state: AppState) -> None:
    from eyespot.web.mcp import GalleryServer

    allowing = replace(state.settings, allowed=("judge", "positions"))
    open_state = AppState(allowing)

    async def script(client: Any) -> Any:
        (hit,) = (await client.call_tool("search", {"query": "stripes", "k": 1})).structured_content["hits"]
        similar = (await client.call_tool("similar", {"id": hit["id"], "k": 2})).structured_content["hits"]
        assert similar[0]["id"] == hit["id"]
        facts = (await client.call_tool("facts", {"ids": [hit["id"]]})).structured_content["items"][0]
        near = {"query": "a disc", "where": "latitude IS NOT NULL"}
        assert (await client.call_tool("search", near)).structured_content["total"] > 0
        judged = await client.call_tool("judge", {"query": "stripes", "id": hit["id"], "verdict": "yes"})
        tools = {tool.name: tool.annotations.read_only_hint for tool in (await client.list_tools()).tools}
        return facts, judged.structured_content, tools

    try:
        facts, judged, tools = talk(GalleryServer(open_state), script)
    finally:
        open_state.close()
    assert facts["author"] == "Ada" and "latitude" in facts
    assert judged["by"] == "mcp:local"  # and no person's
    assert [name for name, reads in tools.items() if not reads] == ["judge"]
    with Judgements(state.settings.ledger) as ledger:
        assert [row.judgement.judge for row in ledger.rows()] == ["mcp:local"]
