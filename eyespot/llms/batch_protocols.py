"""The batch APIs of OpenAI and Anthropic: what is sent, how far it is, and what came of each request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from eyespot.llms.flow_control import CancellableSleep, RetryPolicy
from eyespot.llms.protocols import AnthropicMessages, ChatCompletions, Dialect
from eyespot.llms.transport import Transport
from eyespot.llms.unsupported_fields import UnsupportedFields
from eyespot.types import Price

Body = Mapping[str, Any]
UNANSWERED = 0  # in place of a status: the batch ended before the request was answered
SKEW = 300.0  # seconds between the clock of a server and this one


@dataclass(frozen=True)
class ServedModel:
    """One model at one address, and how it is asked again."""

    transport: Transport
    model: str
    dialect: Dialect
    name: str = ""
    price: Price | None = None  # None: no table has the model
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: CancellableSleep = field(default_factory=CancellableSleep)
    unsupported: UnsupportedFields = field(default_factory=UnsupportedFields)

    @property
    def address(self) -> str:
        """Where requests go."""
        return self.transport.address


@dataclass(frozen=True)
class BatchState:
    """How far a batch is; `failure`: why the server did not begin it."""

    ended: bool
    done: int
    failure: str = ""
    files: tuple[str, ...] = ()  # where its results are


@dataclass(frozen=True)
class BatchResult:
    """What came of one request: a status of HTTP or `UNANSWERED`, and the reply or a reason."""

    name: str
    status: int
    reply: Any


class OpenAIBatches:
    """A file of requests, a batch of it, and files of outputs and of errors.

    Requests are bodies by names that begin with the token of their batch.
    """

    def create(self, endpoint: ServedModel, token: str, requests: Mapping[str, Body]) -> str:
        """Send a batch; its id."""
        url = f"/v1{endpoint.dialect.path}"
        rows = ({"custom_id": name, "method": "POST", "url": url, "body": body} for name, body in requests.items())
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        file = endpoint.transport.upload("/files", {"purpose": "batch"}, f"{token}.jsonl", content)
        about = {"input_file_id": file["id"], "endpoint": url, "completion_window": "24h"}
        return str(endpoint.transport.post("/batches", {**about, "metadata": {"eyespot": token}})["id"])

    def find(self, endpoint: ServedModel, token: str, since: float) -> str | None:
        """The id of the batch with this token, which was perhaps created after this time; None if there is none."""
        for batch in _pages(endpoint, "/batches?limit=100", "after"):
            if (batch.get("metadata") or {}).get("eyespot") == token:
                return str(batch["id"])
            if float(batch["created_at"]) < since - SKEW:  # the newest come first
                return None
        return None

    def state(self, endpoint: ServedModel, id: str) -> BatchState:
        """How far it is."""
        batch = endpoint.transport.get(f"/batches/{id}")
        counts, errors = batch.get("request_counts") or {}, (batch.get("errors") or {}).get("data") or []
        failure = "; ".join(str(error.get("message")) for error in errors) or "without a reason"
        files = tuple(str(batch[name]) for name in ("output_file_id", "error_file_id") if batch.get(name))
        return BatchState(
            batch["status"] in ("completed", "expired", "cancelled", "failed"),
            counts.get("completed", 0) + counts.get("failed", 0),
            failure if batch["status"] == "failed" else "",
            files,
        )

    def results(self, endpoint: ServedModel, state: BatchState) -> Iterator[BatchResult]:
        """What came of its requests, in any order."""
        for file in state.files:
            for row in endpoint.transport.lines(f"/files/{file}/content"):
                response, error = row.get("response"), row.get("error") or {}
                if response:
                    yield BatchResult(row["custom_id"], int(response["status_code"]), response["body"])
                else:
                    yield BatchResult(row["custom_id"], UNANSWERED, error.get("message") or error.get("code"))


class AnthropicBatches:
    """A batch of requests, and its results as JSON lines. It has no field for a token: the ids of its requests do."""

    place = "/v1/messages/batches"

    def create(self, endpoint: ServedModel, token: str, requests: Mapping[str, Body]) -> str:
        rows = [{"custom_id": name, "params": body} for name, body in requests.items()]
        return str(endpoint.transport.post(self.place, {"requests": rows})["id"])

    def find(self, endpoint: ServedModel, token: str, since: float) -> str | None:
        from datetime import datetime

        for batch in _pages(endpoint, f"{self.place}?limit=100", "after_id"):
            if datetime.fromisoformat(batch["created_at"]).timestamp() < since - SKEW:
                return None
            state = await_end(self, endpoint, str(batch["id"]))
            if any(one.name.startswith(token) for one in self.results(endpoint, state)):
                return str(batch["id"])
        return None

    def state(self, endpoint: ServedModel, id: str) -> BatchState:
        batch = endpoint.transport.get(f"{self.place}/{id}")
        counts = batch.get("request_counts") or {}
        done = sum(count for name, count in counts.items() if name != "processing")
        return BatchState(batch["processing_status"] == "ended", done, files=(id,))

    def results(self, endpoint: ServedModel, state: BatchState) -> Iterator[BatchResult]:
        for row in endpoint.transport.lines(f"{self.place}/{state.files[0]}/results"):
            result = row["result"]
            if result["type"] == "succeeded":
                yield BatchResult(row["custom_id"], 200, result["message"])
            elif result["type"] == "errored":
                error = result["error"].get("error") or result["error"]
                status = STATUSES.get(error.get("type"), 500)
                yield BatchResult(row["custom_id"], status, {"error": error})
            else:
                yield BatchResult(row["custom_id"], UNANSWERED, f"the batch ended with it {result['type']}")


STATUSES = {  # the HTTP status of each type of error, by Anthropic's documentation
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


BatchProtocol: TypeAlias = OpenAIBatches | AnthropicBatches
PROTOCOLS: Mapping[str, BatchProtocol] = {  # by the path of a single request
    ChatCompletions.path: OpenAIBatches(),
    AnthropicMessages.path: AnthropicBatches(),
}


def _pages(endpoint: ServedModel, path: str, cursor: str) -> Iterator[Mapping[str, Any]]:
    """All that a server lists under a path, page after page."""
    after = ""
    while True:
        page = endpoint.transport.get(path + (f"&{cursor}={after}" if after else ""))
        yield from page["data"]
        if not page.get("has_more") or not page["data"]:
            return
        after = str(page["data"][-1]["id"])


def await_end(
    protocol: BatchProtocol, endpoint: ServedModel, id: str, tell: Callable[[int], None] = lambda _done: None
) -> BatchState:
    """The state of a batch once it has ended; it is looked at ever more rarely, at last once a minute."""
    rest = endpoint.retry.first_delay
    while not (state := protocol.state(endpoint, id)).ended:
        tell(state.done)
        endpoint.sleep(rest)
        rest = min(2 * rest, endpoint.retry.max_delay)
    return state
