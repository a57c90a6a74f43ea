"""Ask `eyespot mcp` over the gallery of this folder, as an assistant does: find, look, read facts; 0 if all come.

python scripts/ask_mcp.py WORDS
"""

from __future__ import annotations

import asyncio
import sys

from mcp import Client, StdioServerParameters


async def ask(words: str) -> None:
    """The SDK's client starts the server and speaks to it over stdio."""
    async with Client(StdioServerParameters(command="eyespot", args=["mcp"])) as client:
        print(*sorted(tool.name for tool in (await client.list_tools()).tools))
        found = await client.call_tool("search", {"query": words, "k": 3})
        assert found.structured_content is not None
        ids = [hit["id"] for hit in found.structured_content["hits"]]
        looked = await client.call_tool("look", {"ids": ids, "width": 320, "query": words})
        assert [block.type for block in looked.content] == ["text", "image"] * 3
        facts = await client.call_tool("facts", {"ids": ids})
        assert facts.structured_content is not None
        print(*(item["path"] for item in facts.structured_content["items"]), sep="\n")


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1]))
