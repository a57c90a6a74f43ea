"""The batch APIs of OpenAI and Anthropic, as their documentation has them, over the script of a double."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.command import environment
from tests.worlds.servers import Act, Body, Response, Seen, error

EXPIRED, CANCELLED = Response(-1), Response(-2)  # what the script gives for a request that a batch ends without


@dataclass
class BatchServer(dict[str, Act]):
    """What a double `offers`: files, batches, message batches; `act` answers each request of a batch.

    `sent` counts the requests by their bodies. `victim` is killed with the `kill_at`th call from then on, before the
    server does anything, or `after` it did.
    """

    act: Act
    sent: Counter[str] = field(default_factory=Counter)
    files: list[bytes] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    victim: subprocess.Popen[bytes] | None = None
    kill_at: int = 0
    after: bool = False
    failing: str = ""  # why no batch is taken
    gone: str = ""  # what the server has deleted
    polls: int = 0  # how often more it is looked at before a batch has ended

    def get(self, path: str, default: Any = None) -> Any:
        return self._call

    def _call(self, seen: Seen) -> Response:
        self.kill_at -= 1
        if self.kill_at == 0 and self.victim and not self.after:
            self.victim.kill()
            return error(500)
        if self.gone and self.gone in seen.path and not seen.body:
            return error(404)
        response = self._anthropic(seen) if "/messages/batches" in seen.path else self._openai(seen)
        if self.kill_at == 0 and self.victim:
            self.victim.kill()
        return response

    def _answer(self, body: Body) -> Response:
        self.sent[json.dumps(body, sort_keys=True)] += 1
        return self.act(Seen("", {}, body))

    def _openai(self, seen: Seen) -> Response:
        parts = seen.path.partition("?")[0].split("/")[2:]
        if parts == ["files"]:
            rows = [line for line in seen.body["form"].split(b"\r\n") if line.startswith(b'{"custom_id"')]
            assert b'name="purpose"\r\n\r\nbatch' in seen.body["form"]
            self.files.append(rows[0])
            return Response(data={"id": f"file-{len(self.files) - 1}", "object": "file"})
        if parts[0] == "files":
            return Response(data=self.files[int(parts[1].partition("-")[2])])
        if parts == ["batches"] and not seen.body:
            return Response(data={"data": self.batches[::-1], "has_more": False})
        if parts == ["batches"]:
            assert seen.body["completion_window"] == "24h" and seen.body["endpoint"] == "/v1/chat/completions"
            self.batches.append({"id": f"batch_{len(self.batches)}", "created_at": 4e9, "status": "validating"})
            self.batches[-1] |= {"metadata": seen.body["metadata"], "input": seen.body["input_file_id"]}
            return Response(data=self.batches[-1])
        batch = self.batches[int(parts[1].partition("_")[2])]
        if self.failing:
            return Response(data={**batch, "status": "failed", "errors": {"data": [{"message": self.failing}]}})
        if batch["status"] == "validating":
            batch |= {"status": "in_progress", "request_counts": {"total": 3, "completed": 1, "failed": 1}}
        elif batch["status"] == "in_progress":
            self._work(batch)
        return Response(data=batch)

    def _work(self, batch: dict[str, Any]) -> None:
        if self.polls > 0:
            self.polls -= 1
            return
        good, bad, batch["status"] = b"", b"", "completed"
        for line in self.files[int(batch["input"].partition("-")[2])].splitlines():
            row = json.loads(line)
            assert row["method"] == "POST" and row["url"] == "/v1/chat/completions"
            response = self._answer(row["body"])
            about: dict[str, Any] = {"custom_id": row["custom_id"], "response": None, "error": None}
            if response == EXPIRED:
                about["error"] = {"code": "batch_expired", "message": "This request could not be executed in time."}
            elif response == CANCELLED:
                about["error"] = {"code": "batch_cancelled", "message": "This request was cancelled with its batch."}
                batch["status"] = "cancelled"
            else:
                about["response"] = {"status_code": response.status, "body": response.data}
            kept = json.dumps(about).encode() + b"\n"
            good, bad = (good + kept, bad) if response.status == 200 else (good, bad + kept)
        for name, content in (("output_file_id", good), ("error_file_id", bad)):
            if content:
                self.files.append(content)
                batch[name] = f"file-{len(self.files) - 1}"

    def _anthropic(self, seen: Seen) -> Response:
        parts = seen.path.partition("?")[0].split("/messages/batches")[1].split("/")[1:]
        if not parts and not seen.body:
            return Response(data={"data": self.batches[::-1], "has_more": False})
        if not parts:
            names = [one["custom_id"] for one in seen.body["requests"]]
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
            id, at = f"msgbatch_{len(self.batches)}", "2096-01-01T00:00:00Z"
            self.files.append(json.dumps(seen.body["requests"]).encode())
            self.batches.append({"id": id, "created_at": at, "processing_status": "in_progress", "polled": 0})
            self.batches[-1]["input"] = len(self.files) - 1
            return Response(data=self.batches[-1])
        batch = self.batches[int(parts[0].partition("_")[2])]
        if parts[1:]:
            return Response(data=self.files[batch["output"]])
        batch["polled"] += 1
        if batch["polled"] >= 2 and batch["processing_status"] != "ended":
            self.files.append(b"".join(map(self._result, json.loads(self.files[batch["input"]]))))
            batch |= {"processing_status": "ended", "output": len(self.files) - 1}
        return Response(data=batch)

    def _result(self, row: Mapping[str, Any]) -> bytes:
        assert "n" not in row["params"]
        response = self._answer(row["params"])
        result: dict[str, Any] = {"type": "succeeded", "message": response.data}
        if response in (EXPIRED, CANCELLED):
            result = {"type": "expired" if response == EXPIRED else "canceled"}
        elif response.status != 200:
            result = {"type": "errored", "error": {"type": "error", "error": {"type": "invalid_request_error"}}}
        return json.dumps({"custom_id": row["custom_id"], "result": result}).encode() + b"\n"


def run_until_killed(server: BatchServer, call: int, after: bool, *words: object) -> bool:
    """Run `eyespot WORDS` until the server kills it with its nth call; False: it ended before, by itself."""
    server.after, server.kill_at = after, 0
    line = [sys.executable, "-m", "eyespot", *map(str, words)]
    server.victim = subprocess.Popen(
        line, cwd=Path(__file__).parents[2], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    server.kill_at = call
    _, errors = server.victim.communicate()
    assert server.victim.returncode in (0, 3, -signal.SIGKILL), (os.linesep, errors.decode())
    return server.victim.returncode == -signal.SIGKILL
