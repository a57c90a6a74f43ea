"""RMIR in batches: the same set as without, each request paid for once, also by a run that is killed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eyespot.pipelines import CostLimits, RunOptions
from eyespot.pipelines.work_db import WorkDB
from tests.worlds.batches import BatchServer, run_until_killed
from tests.worlds.rmir import Rates, Scripted, behind, files, made, recipe
from tests.worlds.servers import Double, Response, Seen

pytestmark = pytest.mark.long  # whole pipelines
MIXED = Rates(abstains=0.1, breaks=0.1, refuses=0.05)


def openai(model: Scripted) -> Any:
    return model


def anthropic(model: Scripted) -> Any:
    """The same script behind Anthropic's messages, which have the form in words alone."""

    def act(seen: Seen) -> Response:
        text = json.dumps(seen.body["messages"])
        schema = (
            json.loads(
                json.loads('"' + re.findall(r"of this JSON schema: (.*?)\"", text)[0].replace('\\\\"', "'") + '"')
            )
            if 0
            else None
        )
        found = re.search(r"of this JSON schema: ({.*})", "\n".join(words(seen.body)))
        assert found and schema is None
        form = json.loads(found[1])
        body = {**seen.body, "response_format": {"json_schema": {"name": form["title"], "schema": form}}}
        reply = model(Seen("", {}, body)).data
        said = reply["choices"][0]["message"]
        content, usage = said["content"] or "I'm sorry, but I can't.", {"input_tokens": 100, "output_tokens": 2}
        return Response(
            data={"content": [{"type": "text", "text": content}], "stop_reason": "end_turn", "usage": usage}
        )

    return act


def words(body: Any) -> list[str]:
    parts = [part for one in body["messages"] for part in (one["content"] if isinstance(one["content"], list) else [])]
    return [part["text"] for part in parts if part["type"] == "text"]


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_run_that_is_killed_ten_times_makes_the_same_set_and_pays_once(
    vendor: str, tmp_path: Path, gallery: Path
) -> None:
    script = {"openai": openai, "anthropic": anthropic}[vendor]
    outs = {name: tmp_path / name for name in ("direct", "killed")}
    with Double(then=script(Scripted(MIXED))) as server:
        models = behind(server.url if vendor == "openai" else server.url.removesuffix("/v1")).replace(
            "openai:", f"{vendor}:"
        )
        made(recipe(outs["direct"], gallery, models, inputs="count = 4"), outs["direct"])
        batches = BatchServer(script(Scripted(MIXED)))
        server.offers = batches
        if vendor == "anthropic":
            server.then = batches._call
        place = recipe(outs["killed"], gallery, models, inputs="count = 4")
        line = "build", "rmir", place, "--out", outs["killed"], "--batch"
        kills = [run_until_killed(batches, 1 + turn % 5, turn % 3 != 1, *line) for turn in range(10)]
        while run_until_killed(batches, 0, False, *line):
            pass

    with WorkDB(outs["killed"] / "work") as memory:
        calls = memory.total().calls
    assert all(kills)
    assert files(outs["killed"]) == files(outs["direct"])
    assert calls == batches.sent.total() and len(batches.batches) > 3
    assert max(batches.sent.values()) == 1 or vendor == "anthropic"
