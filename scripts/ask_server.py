"""Start `eyespot serve` in this folder and ask it as browsers and programs would; 0 if all comes.

Pages, searches, a ranking of documents, a link to a list, and the rest of a download that was cut.

python scripts/ask_server.py
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import Any
from urllib.request import Request, urlopen

PAGES = ("", "docs", "healthz", "v1/search?q=a+windmill&limit=3")


def ask(address: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    """An answer, whole; whatever is not answered with 2xx ends in urllib's error."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data, {"Content-Type": "application/json", **headers})
    with urlopen(request, timeout=60) as answer:
        print(answer.status, address)
        answer.content = answer.read()
        return answer


def visit(address: str) -> None:
    """What people and programs ask for."""
    for page in PAGES:
        found = ask(address + page)
    ids = [item["id"] for item in json.loads(found.content)["items"]]
    ranking = {"query": "a windmill", "documents": ["a fish", "an old windmill"], "top_n": 1}
    assert json.loads(ask(address + "v1/rerank", ranking).content)["results"][0]["index"] == 1
    queries = {"queries": ["a windmill", "a fish"], "limit": 3}
    assert len(json.loads(ask(address + "v1/search", queries).content)["results"]) == 2
    one = json.loads(ask(address + "v1/lists", {"name": "mills", "items": ids}).content)["list"]
    made = json.loads(ask(f"{address}v1/lists/{one}/link", {"download": True}).content)["link"]
    link = address.rstrip("/") + made
    assert ask(link).content.count(b'<li class="tile') == len(ids)
    whole = ask(f"{link}/photos.zip")
    half = len(whole.content) // 2
    rest = ask(f"{link}/photos.zip", **{"Range": f"bytes={half}-", "If-Range": whole.headers["ETag"]})
    assert (rest.status, whole.content[:half] + rest.content) == (206, whole.content)


def main() -> int:
    """The exit code."""
    with subprocess.Popen(["eyespot", "serve", "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        note = server.stderr.readline()
        address = re.search(r"look at (\S+);", note)
        try:
            if address is None:
                print(note + server.stderr.read(), file=sys.stderr)
                return 1
            visit(address[1])
        finally:
            server.send_signal(signal.SIGINT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
