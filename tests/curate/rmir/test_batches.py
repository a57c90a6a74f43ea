"""RMIR in batches: each request is paid for once, also by a run that is killed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eyespot.pipelines.work_db import WorkDB
from tests.worlds.batches import BatchServer, run_until_killed
from tests.worlds.rmir import Rates, Scripted, behind, files, recipe
from tests.worlds.servers import Double, Response, Seen

pytestmark = pytest.mark.long  # whole pipelines
MIXED = Rates(abstains=0.1, breaks=0.03, refuses=0.05)


def anthropic(seen: Seen) -> Response:
    """The same script behind Anthropic's messages, which have the form in words alone."""
    contents = [one["content"] for one in seen.body["messages"] if isinstance(one["content"], list)]
    words = "\n".join(part["text"] for parts in contents for part in parts if part["type"] == "text")
    found = re.search(r"of this JSON schema: ({.*})", words)
    assert found
    form = json.loads(found[1])
    body = {**seen.body, "response_format": {"json_schema": {"name": form["title"], "schema": form}}}
    text = Scripted(MIXED)(Seen("", {}, body)).data["choices"][0]["message"]["content"]
    content = [{"type": "text", "text": text or "I'm sorry, but I can't."}]
    usage = {"input_tokens": 100, "output_tokens": 2}
    return Response(data={"content": content, "stop_reason": "end_turn", "usage": usage})


def openai(seen: Seen) -> Response:
    """The script, which gives as many choices as a request says."""
    response = Scripted(MIXED)(seen)
    return response._replace(data={**response.data, "choices": response.data["choices"] * seen.body.get("n", 1)})


@pytest.mark.parametrize(("vendor", "script"), [("openai", openai), ("anthropic", anthropic)])
def test_a_run_that_is_killed_ten_times_makes_the_same_set_and_pays_once(
    vendor: str, script: Any, tmp_path: Path, gallery: Path
) -> None:
    sent = {}
    with Double(then=script) as server:
        url = server.url if vendor == "openai" else server.url.removesuffix("/v1")
        models = behind(url).replace("openai:", f"{vendor}:")
        for name, kills in (("calm", 0), ("killed", 10)):
            out, batches = tmp_path / name, BatchServer(script)
            server.offers = batches
            line = "build", "rmir", recipe(out, gallery, models, inputs="count = 3"), "--out", out, "--batch"
            turns = [run_until_killed(batches, 1 + turn % 4, turn % 3 != 1, *line) for turn in range(kills)]
            assert all(turns), turns
            assert not run_until_killed(batches, 0, False, *line)
            with WorkDB(out / "work") as memory:
                assert memory.total().calls == batches.sent.total() > 3
                assert memory.total().tokens_in == 100 * batches.sent.total()
            sent[name] = batches.sent

        plain = tmp_path / "plain"
        run_until_killed(
            batches, 0, False, *line[:2], recipe(plain, gallery, models, inputs="count = 3"), "--out", plain
        )

    assert sent["killed"] == sent["calm"]
    assert files(tmp_path / "killed") == files(tmp_path / "calm") == files(plain)
