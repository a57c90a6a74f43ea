"""Servers for tests: a double that answers as a script says and counts what judges and encoders asked it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, Self

Body = Mapping[str, Any]


class Response(NamedTuple):
    """What the double sends: a status, headers and a body; `cut` breaks off in its middle, `hang` says nothing."""

    status: int = 200
    data: Any = None
    headers: Mapping[str, str] = {}
    cut: bool = False
    hang: bool = False

    @property
    def bytes(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else json.dumps(self.data).encode()


class Seen(NamedTuple):
    """A request as it came; the names of its headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Body

    @property
    def pair(self) -> str:
        """A digest of what was shown and asked."""
        return hashlib.sha256(json.dumps(self.body["messages"]).encode()).hexdigest()


Act = Callable[[Seen], Response]


def error(status: int, message: str = "no", **headers: str) -> Response:
    return Response(status, {"error": {"message": message}}, {name.replace("_", "-"): v for name, v in headers.items()})


def chat(text: str, top: Mapping[str, float] | None = None, finish: str = "stop", **message: Any) -> Response:
    """A chat completion; `top` maps alternatives of its first token to their probabilities."""
    choice: dict[str, Any] = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    if top is not None:
        listed = [{"token": token, "logprob": math.log(share)} for token, share in top.items()]
        choice["logprobs"] = {"content": [{"token": text, "logprob": 0.0, "top_logprobs": listed}]}
    return Response(data={"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 1}})


def chat_json(value: Any) -> Response:
    return chat(json.dumps(value))


def digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def under(key: str, what: str, rate: float) -> bool:
    """Whether a lot that hangs on the key alone falls under the rate."""
    return int(digest(key, what), 16) / 16**12 < rate


def message(text: str, stop: str = "end_turn") -> Response:
    usage = {"input_tokens": 100, "output_tokens": 2}
    return Response(data={"content": [{"type": "text", "text": text}], "stop_reason": stop, "usage": usage})


HANG = Response(hang=True)
YES = chat("Yes", {"Yes": 0.75, "No": 0.25})


@dataclass
class Double:
    """A server whose nth answer is the nth of the script, and `then` for all after it.

    `offers` are other paths that it knows, the rest is 404. `seen` are all requests, `answered` those that got a whole
    answer with status 200.
    """

    script: list[Response] = field(default_factory=list)
    then: Response | Act = YES
    offers: Mapping[str, Act] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    answered: list[Seen] = field(default_factory=list)
    closing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # what ends with the server
    _over: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    def __enter__(self) -> Self:
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.double = self
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.closing.close()
        self.server.shutdown()
        self.server.server_close()
        self.server.hang_up()

    def asked(self, path: str) -> list[Seen]:
        return [one for one in self.seen if one.path == path]

    def answer(self, seen: Seen) -> Response:
        with self._lock:
            self.seen.append(seen)
            if not seen.path.partition("?")[0].endswith(("/chat/completions", "/messages", "/embeddings")):
                offered = self.offers.get(seen.path)
                return offered(seen) if offered else error(404, "Not Found")
            if self.script:
                return self.script.pop(0)
        return self.then(seen) if callable(self.then) else self.then

    def note(self, seen: Seen) -> None:
        with self._lock:
            self.answered.append(seen)

    def hang(self) -> None:
        self._over.wait(60)


class Quiet(BaseHTTPRequestHandler):
    """A handler that writes no log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def listening(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server of this handler, as `host:port`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    double: Double

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close what clients hold open: a connection that lives on would still be answered by its thread."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no news."""


class _Handler(Quiet):
    server: _Server
    wbufsize = -1  # headers and body leave together, or every answer waits for an acknowledgement
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        form = self.headers["Content-Type"].startswith("multipart/")
        self._answer({"form": data} if form else json.loads(data))

    def _answer(self, body: Body) -> None:
        seen = Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        response = self.server.double.answer(seen)
        if response.hang:
            self.server.double.hang()
            self.close_connection = True
            return
        self._send(response)
        if response.status == 200 and not response.cut:
            self.server.double.note(seen)

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(response.bytes)))
        self.end_headers()
        self.wfile.write(response.bytes[: len(response.bytes) // 2] if response.cut else response.bytes)
        self.wfile.flush()
        self.close_connection = self.close_connection or response.cut
